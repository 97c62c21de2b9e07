"""References in an untouched Backtrader trade as their task says, and the same tasks as signals
on frames.
"""

from collections import Counter

import pytest
from tests.programs.code.backtrader.plain_cerebro import TrustedRun, run_trusted
from tests.programs.code.one_program import run_program

from tradeassay_bench.account.backtrader import RoundTrip
from tradeassay_programs.benchmarks.quantcode import load_task, load_tasks
from tradeassay_programs.code import frames
from tradeassay_programs.code.backtrader import terms_of
from tradeassay_programs.code.bars import TaskBars, make_bars
from tradeassay_programs.code.program_source import check_compiles
from tradeassay_programs.code.task import CodeTask
from tradeassay_programs.sandbox import TrustedCodeInProcess

SEEDS = (1, 2, 3)
TASKS = load_tasks()
INTRADAY = tuple(task for task in TASKS if task.timeframe != "1d")
DAILY = tuple(task for task in TASKS if task.timeframe == "1d")
ON_FRAMES = tuple(task for task in TASKS if task.frame is not None)
ONE_OF_A_KIND = (
    "h-inside-bar-oco",
    "q-leader-laggard",
    "d-ema-cross-flip",
    "d-limit-dip",
    "d-turn-of-month",
)
"""Orders that cancel each other, two assets, and more; all others are among the slow tests."""
SAME_TRADES = (
    "d-stronger-of-two",
    "d-macd-hist-zero",
    "h-rsi-dip-buyer",
    "q-lunch-fade",
    "f-basket-breadth",
    "m-average-cross-futures",
)


def bars_of(task: CodeTask, seed: int = 1) -> TaskBars:
    return make_bars(task.market, task.timeframe, task.assets, task.bars, seed)


def run(task: CodeTask, source: str, seed: int) -> TrustedRun:
    return run_trusted(source, bars_of(task, seed), terms_of(task))


def outline(trades: tuple[RoundTrip, ...]) -> Counter[tuple[object, ...]]:
    return Counter((trade.asset, trade.entry_bar, trade.exit_bar, trade.long) for trade in trades)


def sizes(found: TrustedRun) -> Counter[tuple[object, ...]]:
    return Counter((fill.asset, fill.bar, round(fill.size, 3)) for fill in found.fills)


def check(task: CodeTask, seed: int) -> None:
    """The reference keeps its own expectations; a decoy for the judge makes other trades."""
    expect, found = task.expect, run(task, task.reference, seed)
    days = bars_of(task, seed).sessions
    assert expect.min_trades <= len(found.trades) <= (expect.max_trades or len(found.trades))
    sides = {trade.long for trade in found.trades}
    assert sides <= {"long": {True}, "short": {False}, "both": {True, False}}[expect.direction]
    for trade in found.trades:
        end = task.bars - 1 if trade.exit_bar is None else trade.exit_bar
        assert expect.max_holding_bars is None or end - trade.entry_bar <= expect.max_holding_bars
        assert not expect.flat_by_session_end or days[trade.entry_bar] == days[end]
    for decoy in task.decoys:
        if decoy.fails_at == "judge":
            made, sized = (
                run(task, decoy.source, seed),
                task in DAILY or decoy.kind == "wrong-sizing",
            )
            gold, other = (sizes(one) if sized else outline(one.trades) for one in (found, made))
            assert 2 * (gold & other).total() < 0.9 * (gold.total() + other.total()), decoy.name


def test_there_are_intraday_tasks_of_every_timeframe_and_tasks_for_frames():
    found = Counter(task.timeframe for task in INTRADAY)
    assert all(
        found[timeframe] >= least
        for timeframe, least in {"1h": 18, "15m": 14, "5m": 14, "1m": 12}.items()
    )
    assert sum(task.family == "session" for task in INTRADAY) >= 12
    assert all(1_000 <= task.bars <= 4_000 for task in INTRADAY)
    assert len(ON_FRAMES) >= 24 and sum(task.assets > 1 for task in ON_FRAMES) >= 3
    assert {task.timeframe for task in ON_FRAMES} == {"1d", "1h", "15m", "5m", "1m"}
    for task in ON_FRAMES:
        assert task.frame is not None and task.frame.decoys
        formal, conversational = task.text("formal", "frame"), task.text("conversational", "frame")
        assert formal and conversational and formal != conversational and "signals(frame" in formal
        assert check_compiles(task.frame.reference, "frame").status == "passed", task.id
        for decoy in task.frame.decoys:
            assert decoy.source.strip() != task.frame.reference.strip()
            assert check_compiles(decoy.source, "frame").status == "passed", (task.id, decoy.name)


@pytest.mark.parametrize("task_id", ONE_OF_A_KIND)
def test_a_reference_trades_as_its_task_says(task_id):
    check(load_task(task_id), seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_every_reference_trades_on_three_markets(task, seed):
    check(task, seed)


def same_trades(task: CodeTask, seed: int) -> None:
    """The two references of a task make the same trades and end with the same money."""
    assert task.frame is not None
    bars, terms = bars_of(task, seed), terms_of(task)
    here = TrustedCodeInProcess()
    on_frames = run_program(here, task.frame.reference, bars, terms, frames, trust="reference")
    assert on_frames.ok, on_frames.failure
    in_backtrader = run(task, task.reference, seed)
    assert outline(on_frames.trades) == outline(in_backtrader.trades)
    assert on_frames.final_value == pytest.approx(in_backtrader.value, abs=0.01)


@pytest.mark.parametrize("task_id", SAME_TRADES)
def test_both_frameworks_make_the_same_trades(task_id):
    same_trades(load_task(task_id), seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", ON_FRAMES, ids=lambda task: task.id)
def test_both_frameworks_make_the_same_trades_on_three_markets(task, seed):
    same_trades(task, seed)
