"""The host's replay against an untouched cerebro: fills, trades and every bar's value."""

from pathlib import Path

import numpy as np
import pytest
from tests.code.backtrader.plain_cerebro import run_trusted
from tests.code.one_program import run_program

from tradeassay.account.backtrader import BrokerTerms
from tradeassay.code.bars import TaskBars, make_bars
from tradeassay.code.task import Sizing
from tradeassay.sandbox import TrustedCodeInProcess

FOLDER = Path(__file__).parent / "strategies"
PERCENT = BrokerTerms(cash=10_000.0, commission=0.002, sizing=Sizing(kind="percent", value=40))
FIXED = BrokerTerms(cash=5_000.0, commission=0.001, sizing=Sizing(kind="fixed", value=10))


def source(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text()


def compare(text: str, bars: TaskBars, terms: BrokerTerms, *, rtol: float = 1e-12) -> tuple[int, int]:
    """Run both ways and compare; returns the numbers of fills and trades."""
    ours = run_program(TrustedCodeInProcess(), text, bars, terms, trust="reference")
    assert ours.failure is None, ours.failure
    theirs = run_trusted(text, bars, terms, trust="reference")
    shape = [(fill.bar, fill.asset, fill.size, fill.price, fill.opened, fill.closed) for fill in theirs.fills]
    assert [(f.bar, f.asset, f.size, f.price, f.opened, f.closed) for f in ours.fills] == shape
    for mine, other in zip(ours.fills, theirs.fills, strict=True):
        assert mine.commission == pytest.approx(other.commission, rel=rtol)
        assert mine.pnl == pytest.approx(other.pnl, rel=rtol, abs=1e-9)
    key = lambda trade: (trade.asset, trade.tradeid, trade.entry_bar, trade.exit_bar or 10**9)  # noqa: E731
    for mine, other in zip(sorted(ours.trades, key=key), sorted(theirs.trades, key=key), strict=True):
        for name in ("asset", "tradeid", "entry_bar", "exit_bar", "long"):
            assert getattr(mine, name) == getattr(other, name)
        assert mine.pnl == pytest.approx(other.pnl, rel=rtol, abs=1e-9)
        assert mine.net == pytest.approx(other.net, rel=rtol, abs=1e-9)
    assert ours.equity.shape == (bars.rows,)
    # With several assets the framework adds them up in the order in which they were first asked for.
    np.testing.assert_allclose(ours.equity[: theirs.equity.size], theirs.equity, rtol=rtol, atol=1e-9)
    assert ours.final_value == pytest.approx(theirs.value, rel=rtol, abs=1e-9)
    assert not [trick for trick in ours.tricks if trick.name == "account-mismatch"]
    return len(ours.fills), len(ours.trades)


SINGLE = """cross reverse too_large protected signals own_sizer ends_early before_the_start late_child timers
    no_number""".split()


@pytest.mark.parametrize(("bars", "seed", "other"), [(200, 3, 0), pytest.param(400, 4, 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("number", "name"), list(enumerate(SINGLE)))
def test_strategies_agree(number, name, bars, seed, other):
    terms = (FIXED, PERCENT)[(number + other) % 2]
    fills, trades = compare(source(name), make_bars("volatile", "1d", 1, bars, seed), terms)
    assert fills >= trades >= 1 - other


def test_a_strategy_that_does_nothing_keeps_its_cash():
    assert compare(source("nothing"), make_bars("us", "1d", 1, 50), FIXED) == (0, 0)


def test_several_assets_agree():
    fills, _ = compare(source("rotation"), make_bars("crypto", "1d", 4, 200, 2), PERCENT)
    assert fills > 20


@pytest.mark.parametrize("seed", range(4))
def test_any_orders_agree(seed):
    text = source("any_order").replace("SEED = 0", f"SEED = {seed}")
    market, timeframe, assets = (("volatile", "1d", 1), ("us", "15m", 2), ("crypto", "1h", 3))[seed % 3]
    fills, trades = compare(text, make_bars(market, timeframe, assets, 150, seed), (FIXED, PERCENT)[seed % 2])
    assert fills > 10
    assert trades >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 260))
def test_many_more_orders_agree(seed):
    text = source("any_order").replace("SEED = 0", f"SEED = {seed}")
    market = ("volatile", "us", "crypto", "futures", "range")[seed % 5]
    timeframe = ("1d", "15m", "1h", "5m", "1m")[seed // 5 % 5]
    compare(text, make_bars(market, timeframe, 1 + seed % 3, 500, seed), (FIXED, PERCENT)[seed % 2])
