"""Programs on frames that are called on the rows so far: what looks ahead shows itself where it
does.
"""

import numpy as np
import pytest

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.code.backtrader import BacktestJob
from tradeassay_programs.code.bars import TaskBars, make_bars
from tradeassay_programs.code.lookahead.grow_frames import (
    AWAY,
    HOME,
    GrownRun,
    GrowthPlan,
    frame_lookahead,
    run_grown,
)
from tradeassay_programs.sandbox import SandboxPool

HONEST = """
def signals(frame):
    close = frame["close"]
    return (close.rolling(5).mean() > close.rolling(20).mean()).astype(float)
"""
WARM_UP = (
    HONEST.replace(
        "    return (", "    peep = (close.shift(-1) > close).astype(float)\n    own = ("
    ).rstrip()
    + "\n    return own.where(frame['volume'].expanding().count() > 15, peep)\n"
)
LINE = '    close = frame["close"]\n'
SHORT = HONEST.replace(LINE, "    assert len(frame) > {rows}\n" + LINE)


def grown(pool: SandboxPool, source: str, bars: TaskBars, plan: GrowthPlan = HOME) -> GrownRun:
    job = BacktestJob(source=source, bars=bars, terms=BrokerTerms())
    (found,) = run_grown(pool, [job], [(plan, np.random.default_rng(0))])
    assert found.run.targets is not None
    return found


def test_an_honest_program_is_proven_and_a_leak_in_the_warm_up_is_found(pool):
    bars = make_bars("us", "1d", 1, 120, 3)
    honest = grown(pool, HONEST, bars)
    assert len(honest.answers) == 120 and honest.difference() == (None, "", ())
    row, reason, _ = grown(pool, WARM_UP, bars).difference()
    assert row is not None and row < 15 and "no rows after it" in reason


SAMPLED = GrowthPlan(every=10, warm_up=3, drawn=5, changes=40)


def test_sampled_rows_answer_for_all_rows_before_them(pool):
    bars = make_bars("us", "1d", 1, 120, 3)
    honest = grown(pool, HONEST, bars, SAMPLED)
    assert honest.difference() == (None, "", ())
    by_length = HONEST.replace(
        LINE, LINE + "    close = close.shift(-1).ffill() if len(frame) > 119 else close\n"
    )
    leak = grown(pool, by_length, bars, SAMPLED)
    row, reason, _ = leak.difference()
    assert row is not None and row < max(leak.answers) and f"no rows after {row}" not in reason


def test_a_leak_on_one_row_is_found_where_the_scored_run_changes_a_target(pool):
    bars = make_bars("us", "1d", 1, 120, 3)
    at = 77
    peep = (
        f"    own.iloc[{at}:{at + 1}] = 0.5 * float(len(own) > {at + 1} and close.iloc[-1] > "
        "0)\n    return own\n"
    )
    source = HONEST.replace("return (", "own = (") + peep
    plans = [(SAMPLED, np.random.default_rng(0))]
    found = grown(pool, source, bars, SAMPLED)
    finding, record = frame_lookahead(pool, [found], plans)
    assert at not in plans[0][0].rows(120, np.random.default_rng(0))
    assert finding.failed and record.leaky and f"on row {at}" in record.reason
    clean, record = frame_lookahead(pool, [grown(pool, HONEST, bars, SAMPLED)], plans)
    assert clean.passed and record.fed == "" and "is not excluded" in record.reason
    assert frame_lookahead(pool, [grown(pool, HONEST, bars)], plans)[1].fed == "same"


def test_breaking_on_short_tables_is_noted_before_the_first_position_and_a_finding_after_it(pool):
    bars = make_bars("us", "1d", 1, 120, 3)
    _, reason, notes = grown(pool, SHORT.replace("{rows}", "10"), bars).difference()
    assert not reason and "before its first position" in notes[0]
    _, reason, _ = grown(pool, SHORT.replace("{rows}", "100"), bars).difference()
    assert "it breaks: AssertionError" in reason


def test_what_breaks_while_it_grows_is_run_on_the_whole_table_all_the_same(pool):
    bars = make_bars("us", "1d", 1, 60, 3)
    found = grown(
        pool,
        HONEST.replace(LINE, "    if len(frame) == 30:\n        raise SystemExit\n" + LINE),
        bars,
    )
    assert (
        found.run.ok
        and len(found.answers) == 29
        and "it ends after 29 rows" in found.difference()[1]
    )


def test_long_tables_are_asked_about_in_the_warm_up_and_at_random():
    rows = HOME.rows(5_000, np.random.default_rng(1))
    assert set(range(300)) <= set(rows.tolist()) and 400 < len(rows) < 501
    assert len(AWAY.rows(300, np.random.default_rng(1))) == 300


@pytest.mark.parametrize("plan", [AWAY, HOME])
def test_the_printed_bound_holds_for_a_leak_that_keeps_out_of_the_way(plan):
    """It acts behind the warm-up, on rows on which no target changes: only drawn ones meet it."""
    rows = 2_000
    hidden = np.flatnonzero(np.abs(np.arange(rows) % 20 - 10) < 6)[200:]
    few = plan.fewest_met(rows)
    met = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        leak = rng.choice(hidden, few, replace=False)
        met += bool(np.isin(plan.rows(rows, rng), leak).any())
    assert met >= 180
