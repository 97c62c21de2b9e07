"""Every task's reference solution: the host's replay against an untouched cerebro."""

import numpy as np
import pytest
from tests.code.backtrader.plain_cerebro import run_trusted
from tests.code.one_program import run_program

from tradeassay.benchmarks.quantcode import load_tasks
from tradeassay.code.backtrader import terms_of
from tradeassay.code.bars import make_bars
from tradeassay.code.task import CodeTask
from tradeassay.sandbox import TrustedCodeInProcess

TASKS = [task for task in load_tasks() if task.reference]


def same(task: CodeTask) -> None:
    bars = make_bars(task.market, task.timeframe, task.assets, task.bars, 1)
    ours = run_program(TrustedCodeInProcess(), task.reference, bars, terms_of(task), trust="reference")
    theirs = run_trusted(task.reference, bars, terms_of(task), trust="reference")
    assert ours.failure is None
    assert [(fill.bar, fill.asset, fill.size, fill.price) for fill in ours.fills] == [
        (fill.bar, fill.asset, fill.size, fill.price) for fill in theirs.fills
    ]
    mine = sorted((t.asset, t.tradeid, t.entry_bar, t.exit_bar or -1, round(t.net, 6)) for t in ours.trades)
    assert mine == sorted(
        (t.asset, t.tradeid, t.entry_bar, t.exit_bar or -1, round(t.net, 6)) for t in theirs.trades
    )
    assert ours.final_value == pytest.approx(theirs.value, rel=1e-12)
    np.testing.assert_allclose(ours.equity, theirs.equity, rtol=1e-12)
    assert ours.trades
    assert ours.tricks == ()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=[task.id for task in TASKS])
def test_every_reference_agrees_with_an_untouched_cerebro(task):
    same(task)
