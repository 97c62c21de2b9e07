"""Daily references in an untouched Backtrader trade as their task says; decoys for the judge do something else."""

import pytest
from tests.code.backtrader.plain_cerebro import TrustedRun, run_trusted

from tradeassay.benchmarks.quantcode import load_task, load_tasks
from tradeassay.code.backtrader import terms_of
from tradeassay.code.bars import make_bars
from tradeassay.code.task import CodeTask

SEEDS = (1, 2, 3)
DAILY = tuple(task for task in load_tasks() if task.timeframe == "1d")
ONE_OF_A_KIND = ("d-ema-cross-flip", "d-limit-dip", "d-turn-of-month", "d-macd-and-rsi", "d-oco-exits")


def run(task: CodeTask, source: str, seed: int) -> TrustedRun:
    bars = make_bars(task.market, task.timeframe, task.assets, task.bars, seed)
    return run_trusted(source, bars, terms_of(task), trust="reference")


def fills(found: TrustedRun) -> set[tuple[str, int, float]]:
    return {(fill.asset, fill.bar, round(fill.size, 3)) for fill in found.fills}


def check(task: CodeTask, seed: int) -> None:
    """The reference keeps its own expectations, and no decoy for the judge makes most of its fills."""
    found = run(task, task.reference, seed)
    assert len(found.trades) >= task.expect.min_trades
    assert task.expect.max_trades is None or len(found.trades) <= task.expect.max_trades
    sides = {trade.long for trade in found.trades}
    assert sides <= {"long": {True}, "short": {False}, "both": {True, False}}[task.expect.direction]
    if task.expect.max_holding_bars is not None:
        ends = (task.bars - 1 if trade.exit_bar is None else trade.exit_bar for trade in found.trades)
        held = [end - trade.entry_bar for end, trade in zip(ends, found.trades, strict=True)]
        assert max(held) <= task.expect.max_holding_bars
    gold = fills(found)
    for decoy in task.decoys:
        if decoy.fails_at == "judge":
            other = fills(run(task, decoy.source, seed))
            assert 2 * len(gold & other) < 0.9 * (len(gold) + len(other)), decoy.name


@pytest.mark.parametrize("task_id", ONE_OF_A_KIND)
def test_a_reference_trades_as_its_task_says(task_id):
    check(load_task(task_id), seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", sorted({str(task.family) for task in DAILY}))
def test_every_daily_reference_trades_on_three_markets(family, seed):
    for task in DAILY:
        if task.family == family:
            check(task, seed)
