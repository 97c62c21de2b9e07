"""What a judged reward runs: short markets that still tell, one child for all of them, and what
it says of it.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.code.backtrader import BacktestJob, fed_backtests, fed_together, terms_of
from tradeassay_programs.code.bars import TaskBars, make_bars
from tradeassay_programs.code.judges.decisions import (
    DecisionsConfig,
    compare_decisions,
    decision_events,
    passes,
)
from tradeassay_programs.code.judges.markets import (
    SHARED_DRAWS,
    DrawConfig,
    JudgedMarket,
    Judging,
    draw_markets,
    is_stated,
    mutants_of,
)
from tradeassay_programs.code.lookahead.grow_frames import (
    REWARDED,
    GrowthPlan,
    frame_lookahead,
    run_grown,
)
from tradeassay_programs.code.reward import BRIEF, reward
from tradeassay_programs.code.running import exam_settings, run_programs
from tradeassay_programs.sandbox import JobExecutor

SECRET = "5e" * 16
TASK = load_task("d-bollinger-pctb")


@pytest.fixture(scope="module")
def brief(pool: JobExecutor) -> Judging:
    """The markets that rewards are judged on: shared, so that the rewards need not draw them
    again.
    """
    return SHARED_DRAWS.all_markets(pool, TASK, "backtrader", exam_settings(SECRET), BRIEF)


def _noticed(pool: JobExecutor, sources: list[str], markets: tuple[JudgedMarket, ...]) -> set[str]:
    rule, found = DecisionsConfig(), set()
    for market in markets:
        runs = run_programs(
            pool, TASK, ((source, market.bars) for source in sources), rules=exam_settings(SECRET)
        )
        for source, run in zip(sources, runs, strict=True):
            events = decision_events(run, market.bars, TASK.cash) if run.ok else ()
            if not passes(compare_decisions(events, market.events, market.bars.rows, rule), rule):
                found.add(source)
    return found


def test_a_short_market_is_the_beginning_of_the_judges_and_tells_the_same_mutants(pool, brief):
    whole = draw_markets(pool, TASK, "backtrader", exam_settings(SECRET), DrawConfig())
    assert len(brief.markets) == len(whole.markets)
    assert sum(one.bars.rows for one in brief.markets) < 0.6 * sum(
        one.bars.rows for one in whole.markets
    )
    for short, long in zip(brief.markets, whole.markets, strict=True):
        rows = short.bars.rows
        assert BRIEF.shortest is not None and BRIEF.shortest <= rows <= long.bars.rows
        assert short.events == tuple(event for event in long.events if event.bar < rows)
        assert sum(event.bar == event.opened for event in short.events) > BRIEF.least_trades
        assert (short.bars.times == long.bars.times[:rows]).all() and short.bars.name.endswith(
            f"to bar {rows}"
        )
    stated = [
        one.source for one in mutants_of(TASK.reference) if is_stated(one, TASK, "backtrader")
    ]
    assert _noticed(pool, stated, whole.markets) == _noticed(pool, stated, brief.markets) != set()


CROSS = """
import backtrader as bt

SEEN = []


class Cross(bt.Strategy):
    runs = []

    def __init__(self):
        self.cross = bt.indicators.CrossOver(bt.indicators.SMA(period=5), bt.indicators.SMA(period=15))
        self.runs.append(1)
        SEEN.append(1)

    def next(self):
        {line}
        if self.cross[0] > 0 and not self.position:
            self.buy(size=len(self.runs) + 10 * len(SEEN))
        elif self.cross[0] < 0 and self.position:
            self.close()
"""


def _jobs(
    source: str, tables: list[TaskBars], terms: BrokerTerms | None = None
) -> list[BacktestJob]:
    return [BacktestJob(source=source, bars=bars, terms=terms or BrokerTerms()) for bars in tables]


TABLES = [
    make_bars("us", "1d", assets, rows, seed)
    for assets, rows, seed in ((1, 160, 3), (1, 90, 4), (1, 240, 5))
]
PAIRS = [make_bars("us", "1d", 2, rows, rows) for rows in (120, 150)]


@pytest.mark.parametrize("tables", [TABLES, TABLES[:1], PAIRS], ids=["three", "one", "two assets"])
def test_one_child_runs_a_strategy_on_several_tables_as_several_children_do(pool, tables):
    jobs = _jobs(CROSS.format(line="pass"), tables)
    together, apart = fed_together(pool, jobs), list(fed_backtests(pool, jobs))
    assert len(together) == len(tables)
    for one, other in zip(together, apart, strict=True):
        assert one.ok and one.fills == other.fills and one.trades == other.trades and one.trades
        assert one.tricks == other.tricks == () and (one.equity == other.equity).all()
        assert (one.orders.ref == other.orders.ref).all()


@pytest.mark.parametrize(
    "line",
    [
        "assert len(self) < 50",  # on the first table
        "assert len(self) < 200",  # on the third: the first is run by itself, and the caller asks for the rest
        "self.env.runstop() if len(self) == 40 else None",
        "raise SystemExit",
    ],
)
def test_a_strategy_that_ends_early_is_told_as_when_it_is_alone(pool, line):
    jobs = _jobs(CROSS.format(line=line), TABLES)
    together = fed_together(pool, jobs)
    (alone,) = fed_backtests(pool, jobs[:1])
    assert len(together) == 1
    assert together[0].ok == alone.ok and together[0].fills == alone.fills
    assert getattr(together[0].failure, "text", "") == getattr(alone.failure, "text", "")


FRAME = """
CALLS = []


def signals(frame):
    close = frame["close"]
    CALLS.append(len(frame))
    {line}
    return (close.rolling(5).mean() > close.rolling(15).mean()).astype(float)
"""
SAMPLED = GrowthPlan(
    every=0, warm_up=2, drawn=6, changes=3, hinted=4, hints=(30, 31, 40, 41, 50, 51)
)


def _plans(
    tables: list[TaskBars], plan: GrowthPlan
) -> list[tuple[GrowthPlan, np.random.Generator]]:
    return [(plan, np.random.default_rng(number)) for number in range(len(tables))]


def test_one_child_grows_on_several_tables_as_several_children_do(pool):
    for line in (
        "pass",
        "assert len(CALLS) < 14",
    ):  # what a module keeps is gone with the next table
        jobs = _jobs(FRAME.format(line=line), TABLES)
        together = run_grown(pool, jobs, _plans(TABLES, SAMPLED))
        for number, one in enumerate(together):
            (other,) = run_grown(
                pool, jobs[number : number + 1], _plans(TABLES, SAMPLED)[number : number + 1]
            )
            assert one.run.ok and one.run.targets is not None
            assert (
                np.array_equal(one.run.targets, other.run.targets)
                and one.run.fills == other.run.fills
            )
            assert one.answers.keys() == other.answers.keys() and one.ended == other.ended == ""
            assert all(np.array_equal(one.answers[row], other.answers[row]) for row in one.answers)
            drawn = len(one.answers)
            assert 8 <= drawn <= 12 and len({30, 31, 40, 41, 50, 51} & one.answers.keys()) >= 4


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        ("raise ValueError('no')", "ValueError"),
        ("assert len(frame) < 200", "AssertionError"),
        ("import os; os._exit(3)", ""),
    ],
)
def test_a_program_that_breaks_on_one_table_is_run_on_each_by_itself(pool, line, failed):
    found = run_grown(pool, _jobs(FRAME.format(line=line), TABLES), _plans(TABLES, SAMPLED))
    broken = [one.run.failure for one in found]
    assert broken[2] is not None and failed in broken[2].text
    assert (broken[0] is None) == ("200" in line)


def test_a_leak_on_the_last_table_alone_is_found_there(pool):
    peep = FRAME.format(line="close = close.shift(-1).ffill() if close.iloc[0] == START else close")
    start = float(next(iter(TABLES[2].feeds.values()))["close"][0])
    jobs = _jobs(f"START = {start!r}\n{peep}", TABLES)
    plans = _plans(TABLES, SAMPLED)
    found, record = frame_lookahead(pool, run_grown(pool, jobs, plans), plans)
    assert found.failed and record.leaky and TABLES[2].name in record.reason


def test_a_judged_reward_says_on_how_many_rows_it_asked(pool):
    assert TASK.frame is not None
    found = reward(
        TASK, TASK.frame.reference, "behaviour", executor=pool, framework="frame", secret=SECRET
    )
    assert found.value == 1.0 and found.evaluation.leak is not None
    record = found.evaluation.leak
    assert record.verdict == "clean" and record.fed == "" and "is not excluded" in record.reason
    markets = SHARED_DRAWS.all_markets(pool, TASK, "frame", exam_settings(SECRET), BRIEF).markets
    rows = sum(one.bars.rows for one in markets)
    assert record.notes[-1].startswith(
        f"{record.bars} of {rows} rows on {len(markets)} markets were asked about"
    )
    decided = [
        {
            event.bar - before
            for event in one.events
            for before in range(3)
            if event.bar - before < one.bars.rows
        }
        for one in markets
    ]
    least = sum(min(len(one), REWARDED.hinted) for one in decided)
    assert least <= record.bars <= least + REWARDED.drawn * len(markets)


def test_fed_on_short_markets_the_reference_decides_what_it_is_compared_with(pool, brief):
    market = brief.markets
    jobs = [
        replace(job, terms=terms_of(TASK))
        for job in _jobs(TASK.reference, [one.bars for one in market])
    ]
    for run, one in zip(fed_together(pool, jobs), market, strict=True):
        assert decision_events(run, one.bars, TASK.cash) == one.events


@pytest.mark.parametrize("place", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_program_that_breaks_on_one_market_is_judged_on_the_others(pool, brief, place):
    start = float(next(iter(brief.markets[place].bars.feeds.values()))["close"][0])
    line = f"        assert self.data.close.array[0] != {start!r}\n"
    source = TASK.reference.replace("        value = ", f"{line}        value = ")
    found = reward(TASK, source, "behaviour", executor=pool, secret=SECRET)
    assert found.evaluation.judge_behaviour is not None and found.value is not None
    said = found.evaluation.judge_behaviour.markets
    assert [bool(one.failure) for one in said] == [number == place for number in range(3)]
    assert found.outcome == "judge" and 0.3 < found.value < 0.6


def test_nearer_constants_are_worth_no_less_on_short_markets(pool):
    values = []
    for far in (0, 2, 6, 14):
        source = TASK.reference.replace("period=20", f"period={20 + far}")
        assert far == 0 or source != TASK.reference
        found = reward(TASK, source, "behaviour", executor=pool, secret=SECRET)
        values.append(found.value or 0.0)
    assert values[0] == 1.0 and all(after <= before for before, after in itertools.pairwise(values))
