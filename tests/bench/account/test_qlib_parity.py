"""The same orders under Qlib's rules give Qlib's NAV: against its arithmetic written out, and
against itself.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tradeassay_bench.account import ASHARE_QLIB, Exchange, Ledger
from tradeassay_bench.core.events import Rejected, Trimmed
from tradeassay_bench.core.orders import Order
from tradeassay_bench.core.view import Board, Instrument, SessionBars

NAMES, SESSIONS, CASH = 40, 150, 1_000_000.0
PERF = Path(__file__).resolve().parents[3] / "perf"


def single(values: np.ndarray) -> np.ndarray:
    """Prices that float32 can hold."""
    return values.astype(np.float32).astype(np.float64)


def market(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    returns = np.clip(rng.standard_t(3, (SESSIONS + 1, NAMES)) * 0.025, -0.1, 0.1)
    close = single(
        np.round(rng.uniform(10.0, 60.0, NAMES) * np.exp(np.cumsum(returns, axis=0) * 0.3), 2)
    )
    close[1:] = single(np.round(close[:-1] * (1.0 + returns[1:]), 2))
    opens = single(np.round(close[:-1] * (1.0 + rng.normal(0.0, 0.006, (SESSIONS, NAMES))), 2))
    return opens, close


class Written:
    """Qlib's executor for one account: limits by the closing change, cash clipping, lots of 100,
    minimum fee.
    """

    def __init__(self) -> None:
        self.cash = CASH
        self.shares = np.zeros(NAMES)

    def deal(self, column: int, amount: float, side: str, price: float, change: float) -> None:
        if (side == "BUY" and change >= 0.095) or (side == "SELL" and change <= -0.095):
            return
        if side == "SELL":
            value = amount * price
            cost = max(value * 0.0015, 5.0)
            self.cash += value - cost
            self.shares[column] -= amount
            return
        value = amount * price
        if self.cash < max(value * 0.0005, 5.0):
            return
        if self.cash < value + max(value * 0.0005, 5.0):
            # Above this much cash the proportional fee exceeds the minimum.
            critical = 5.0 / 0.0005 + 5.0
            most = (
                self.cash / 1.0005 / price if self.cash >= critical else (self.cash - 5.0) / price
            )
            amount = (min(most, amount) + 0.1) // 100 * 100
            value = amount * price
        if value > 1e-5:
            self.cash -= value + max(value * 0.0005, 5.0)
            self.shares[column] += amount


def draw_orders(
    rng: np.random.Generator, shares: np.ndarray, cash: float, last: np.ndarray
) -> list[tuple[int, float, str]]:
    """Sell a few holdings in full, then spend a little more than there is on a few others."""
    held = np.flatnonzero(shares)
    sold = rng.permutation(held)[: 3 if held.size >= 12 else 0].tolist()
    others = [column for column in rng.permutation(NAMES).tolist() if shares[column] == 0.0][
        : 15 - held.size + len(sold)
    ]
    orders = [(column, float(shares[column]), "SELL") for column in sold]
    money = (cash + float(shares[sold] @ last[sold])) * 1.03
    for column in others:
        lots = money / len(others) / last[column] // 100
        if lots:
            orders.append((column, float(lots * 100), "BUY"))
    return orders


def test_the_written_out_arithmetic_gives_the_same_path():
    rng = np.random.default_rng(17)
    opens, close = market(rng)
    symbols = tuple(f"SH60{column:04d}" for column in range(NAMES))
    instruments = tuple(
        Instrument(symbol=symbol, board=Board.MAIN, lot=100.0) for symbol in symbols
    )
    written, exchange, ledger = (
        Written(),
        Exchange(ASHARE_QLIB),
        Ledger(CASH, terms=ASHARE_QLIB.terms),
    )
    rejected = trimmed = 0
    for row in range(SESSIONS):
        before, after = close[row], close[row + 1]
        change = after / before - 1.0
        assert np.abs(np.abs(change) - 0.095).min() > 1e-7
        orders = draw_orders(rng, written.shares, written.cash, before)
        for column, amount, side in orders:
            written.deal(column, amount, side, opens[row, column], change[column])
        high, low = np.maximum(opens[row], after), np.minimum(opens[row], after)
        volume = np.full(NAMES, np.nan)
        prices = (opens[row], high, low, after)
        bars = SessionBars(
            str(row), row, symbols, instruments, *prices, volume, volume, before, ~np.isnan(after)
        )
        placed = [
            (str(number), Order(symbol=symbols[column], amount=amount, side=side))
            for number, (column, amount, side) in enumerate(orders)
        ]
        exchange.open_session(bars, (), ledger)
        events = exchange.execute(placed, bars, ledger) + exchange.close_session(bars, ledger)
        rejected += sum(isinstance(event, Rejected) for event in events)
        trimmed += sum(isinstance(event, Trimmed) for event in events)
        assert written.cash >= 0.0, "Qlib overdrew its account; this seed cannot be compared"
        nav = written.cash + float(written.shares @ after)
        assert ledger.nav() == pytest.approx(nav, rel=1e-12)
        assert ledger.cash == pytest.approx(written.cash, rel=1e-9, abs=1e-6)
        assert [ledger.quantity(symbol) for symbol in symbols] == written.shares.tolist()
    assert rejected > 10
    assert trimmed > 50


@pytest.mark.slow
def test_qlib_itself_gives_the_same_path(request):
    """Qlib comes from an earlier run of perf/qlib_parity.py; the speed printed there decides
    nothing here.
    """
    if "slow" not in request.config.getoption("-m"):
        pytest.skip("takes a minute: opt in with -m slow")
    if not (PERF / ".work" / "qlib-venv" / "ready").exists():
        pytest.skip("Qlib is not installed; run python perf/qlib_parity.py once")
    command = [sys.executable, str(PERF / "qlib_parity.py"), "--repeats", "1", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert json.loads(done.stdout)["largest_relative_gap"] <= 1e-12
