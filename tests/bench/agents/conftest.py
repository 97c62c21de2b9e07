"""A market in memory, as an agent sees it: enough of a view to test rules without a store."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradeassay_bench.core.agent import Observation, Rules
from tradeassay_bench.core.view import AccountState, Instrument, Position

sys.path.insert(0, str(Path(__file__).parent))  # the module of the foreign agents

DAY = 86_400_000_000_000


@dataclass
class MemoryView:
    """Completed closes (rows, columns) and, when the session has opened, today's opens."""

    closes: np.ndarray
    instruments: tuple[Instrument, ...]
    today_opens: np.ndarray | None = None
    suspended: Sequence[str] = ()

    @property
    def clock(self) -> int:
        return (len(self.closes) + 20_000) * DAY

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(instrument.symbol for instrument in self.instruments)

    def column(self, symbol: str) -> int:
        return self.symbols.index(symbol)

    def instrument(self, symbol: str) -> Instrument:
        return self.instruments[self.column(symbol)]

    def sessions(self, lookback: int) -> np.ndarray:
        return (np.datetime64("2024-01-01") + np.arange(len(self.closes)))[-lookback:]

    def bars(self, name: str, lookback: int, *, adjust: str = "split") -> np.ndarray:
        assert name in ("close", "amount")  # a hundred shares of every name trade each session
        rows = (self.closes if name == "close" else self.closes * 100.0)[-lookback:]
        rows.flags.writeable = False
        return rows

    def opens(self) -> np.ndarray | None:
        return self.today_opens

    def tradable(self) -> np.ndarray:
        return np.array([symbol not in self.suspended for symbol in self.symbols])


@pytest.fixture
def observe():
    """Return a function that makes an observation out of closes and a few wishes; the rest are
    rules.
    """

    def make(
        closes: Any,
        *,
        held: dict[str, tuple[float, float]] | None = None,
        cash: float = 100_000.0,
        step: int = 0,
        opens: Sequence[float] | None = None,
        suspended: Sequence[str] = (),
        instruments: tuple[Instrument, ...] | None = None,
        locked: dict[str, float] | None = None,
        **rules: Any,
    ) -> Observation:
        table = np.array(closes, dtype=float)
        instruments = instruments or tuple(
            Instrument(symbol=f"S{i}") for i in range(table.shape[1])
        )
        today = None if opens is None else np.array(opens, dtype=float)
        view = MemoryView(table, instruments, today, suspended)
        universe = tuple(one.symbol for one in instruments if one.kind != "index")
        positions = {}
        for symbol, (quantity, price) in (held or {}).items():
            sellable = quantity - (locked or {}).get(symbol, 0.0)
            positions[symbol] = Position(
                symbol=symbol, quantity=quantity, sellable=sellable, cost=price, mark=price, held=3
            )
        nav = cash + sum(position.value for position in positions.values())
        usual = {
            "venue": "test",
            "currency": "USD",
            "long_only": True,
            "lot": 1.0,
            "t_plus_1": False,
        }
        return Observation(
            step=step,
            session=str(np.datetime64("2024-01-01") + len(table)),
            time=view.clock,
            universe=universe,
            columns=np.array([view.column(symbol) for symbol in universe], dtype=np.int64),
            view=view,
            account=AccountState(cash=cash, nav=nav, initial=100_000.0, positions=positions),
            rules=Rules(**{**usual, **rules}),
            since_last=(),
            sessions_left=10,
        )

    return make
