"""The host's replay against an untouched cerebro: fills, trades and every bar's value."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.programs.code.backtrader.plain_cerebro import run_trusted
from tests.programs.code.one_program import run_program

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.benchmarks.quantcode import load_tasks
from tradeassay_programs.code.backtrader import Backtest, terms_of
from tradeassay_programs.code.bars import TaskBars, make_bars
from tradeassay_programs.code.task import Sizing
from tradeassay_programs.sandbox import TrustedCodeInProcess

FOLDER = Path(__file__).parent / "strategies"
PERCENT = BrokerTerms(cash=10_000.0, commission=0.002, sizing=Sizing(kind="percent", value=40))
FIXED = BrokerTerms(cash=5_000.0, commission=0.001, sizing=Sizing(kind="fixed", value=10))


def source(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text()


def compare(text: str, bars: TaskBars, terms: BrokerTerms, *, rtol: float = 1e-12) -> Backtest:
    """Run both ways and compare; returns our run."""
    ours = run_program(TrustedCodeInProcess(), text, bars, terms, trust="reference")
    assert ours.failure is None, ours.failure
    theirs = run_trusted(text, bars, terms)
    shape = [
        (fill.bar, fill.asset, fill.size, fill.price, fill.opened, fill.closed)
        for fill in theirs.fills
    ]
    assert [(f.bar, f.asset, f.size, f.price, f.opened, f.closed) for f in ours.fills] == shape
    for mine, other in zip(ours.fills, theirs.fills, strict=True):
        assert mine.commission == pytest.approx(other.commission, rel=rtol)
        assert mine.pnl == pytest.approx(other.pnl, rel=rtol, abs=1e-9)
    told = ("asset", "tradeid", "entry_bar", "exit_bar", "long")

    def outline(trade: Any) -> tuple[Any, ...]:
        return tuple(10**9 if (value := getattr(trade, name)) is None else value for name in told)

    for mine, other in zip(
        sorted(ours.trades, key=outline), sorted(theirs.trades, key=outline), strict=True
    ):
        assert outline(mine) == outline(other)
        assert mine.pnl == pytest.approx(other.pnl, rel=rtol, abs=1e-9)
        assert mine.net == pytest.approx(other.net, rel=rtol, abs=1e-9)
    assert ours.equity.shape == (bars.rows,)
    # With several assets the framework adds them up in the order in which they were first asked for.
    np.testing.assert_allclose(
        ours.equity[: theirs.equity.size], theirs.equity, rtol=rtol, atol=1e-9
    )
    assert ours.final_value == pytest.approx(theirs.value, rel=rtol, abs=1e-9)
    assert not [trick for trick in ours.tricks if trick.name == "account-mismatch"]
    return ours


SINGLE = (
    "cross too_large signals own_sizer ends_early before_the_start late_child timers no_number"
).split()
"""What ``any_order`` does not do at random."""


@pytest.mark.parametrize(
    ("bars", "seed", "other"), [(200, 3, 0), pytest.param(400, 4, 1, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("number", "name"), list(enumerate(SINGLE)))
def test_strategies_agree(number, name, bars, seed, other):
    terms = (FIXED, PERCENT)[(number + other) % 2]
    ours = compare(source(name), make_bars("volatile", "1d", 1, bars, seed), terms)
    assert len(ours.fills) >= len(ours.trades) >= 1 - other


def test_a_strategy_that_does_nothing_keeps_its_cash():
    still = compare(
        "import backtrader as bt\nclass S(bt.Strategy): pass", make_bars("us", "1d", 1, 50), FIXED
    )
    assert not still.fills and not still.trades


@pytest.mark.parametrize("seed", range(4))
def test_any_orders_agree(seed):
    text = source("any_order").replace("SEED = 0", f"SEED = {seed}")
    market, timeframe, assets = (("volatile", "1d", 1), ("us", "15m", 2), ("crypto", "1h", 3))[
        seed % 3
    ]
    ours = compare(
        text, make_bars(market, timeframe, assets, 150, seed), (FIXED, PERCENT)[seed % 2]
    )
    assert len(ours.fills) > 10 and len(ours.trades) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 260))
def test_many_more_orders_agree(seed):
    text = source("any_order").replace("SEED = 0", f"SEED = {seed}")
    market = ("volatile", "us", "crypto", "futures", "range")[seed % 5]
    timeframe = ("1d", "15m", "1h", "5m", "1m")[seed // 5 % 5]
    compare(text, make_bars(market, timeframe, 1 + seed % 3, 500, seed), (FIXED, PERCENT)[seed % 2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", [task for task in load_tasks() if task.reference], ids=lambda task: task.id
)
def test_every_reference_of_a_task_agrees(task):
    bars = make_bars(task.market, task.timeframe, task.assets, task.bars, 1)
    ours = compare(task.reference, bars, terms_of(task))
    assert ours.trades and ours.tricks == ()
