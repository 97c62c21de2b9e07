"""A market in memory, as an agent sees it: enough of a view to test rules without a store."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradeassay.core.agent import Observation, Rules
from tradeassay.core.errors import DataError
from tradeassay.core.view import AccountState, Instrument, Position

sys.path.insert(0, str(Path(__file__).parent))  # the module of the foreign agents

DAY = 86_400_000_000_000


@dataclass
class MemoryView:
    """Completed closes (rows, columns) and, when the session has opened, today's opens."""

    closes: np.ndarray
    instruments: tuple[Instrument, ...]
    first_day: str = "2024-01-01"
    today_opens: np.ndarray | None = None
    suspended: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    @property
    def clock(self) -> int:
        return (len(self.closes) + 20_000) * DAY

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(instrument.symbol for instrument in self.instruments)

    def column(self, symbol: str) -> int:
        try:
            return self.symbols.index(symbol)
        except ValueError:
            raise DataError(f"unknown symbol {symbol}") from None

    def instrument(self, symbol: str) -> Instrument:
        return self.instruments[self.column(symbol)]

    def sessions(self, lookback: int | None = None) -> np.ndarray:
        days = np.datetime64(self.first_day) + np.arange(len(self.closes))
        return days if lookback is None else days[-lookback:] if lookback else days[:0]

    def bars(self, name: str, lookback: int | None = None, *, adjust: str = "split") -> np.ndarray:
        assert name in ("close", "amount")  # a hundred shares of every name trade each session
        whole = self.closes if name == "close" else self.closes * 100.0
        rows = whole if lookback is None else whole[max(0, len(whole) - lookback) :]
        rows = rows.view()
        rows.flags.writeable = False
        return rows

    def opens(self) -> np.ndarray | None:
        return self.today_opens

    def tradable(self) -> np.ndarray:
        return np.array([symbol not in self.suspended for symbol in self.symbols])

    def members(self, index: str) -> tuple[str, ...]:
        return tuple(i.symbol for i in self.instruments if i.kind != "index")


Watch = Callable[..., Observation]


@pytest.fixture
def observe():
    """Return a function that makes an observation out of closes and a few wishes."""

    def make(
        closes: Any,
        *,
        held: dict[str, tuple[float, float]] | None = None,
        cash: float = 100_000.0,
        step: int = 0,
        opens: Sequence[float] | None = None,
        suspended: Sequence[str] = (),
        instruments: tuple[Instrument, ...] | None = None,
        universe: tuple[str, ...] | None = None,
        locked: dict[str, float] | None = None,
        **rules: Any,
    ) -> Observation:
        table = np.array(closes, dtype=float)
        if instruments is None:
            instruments = tuple(Instrument(symbol=f"S{i}") for i in range(table.shape[1]))
        view = MemoryView(
            table,
            instruments,
            today_opens=None if opens is None else np.array(opens, dtype=float),
            suspended=frozenset(suspended),
        )
        if universe is None:
            universe = tuple(i.symbol for i in instruments if i.kind != "index")
        positions = {
            symbol: Position(
                symbol=symbol,
                quantity=quantity,
                sellable=quantity - (locked or {}).get(symbol, 0.0),
                cost=price,
                mark=price,
                held=3,
            )
            for symbol, (quantity, price) in (held or {}).items()
        }
        nav = cash + sum(position.value for position in positions.values())
        return Observation(
            step=step,
            session=str(np.datetime64("2024-01-01") + len(table)),
            time=view.clock,
            universe=universe,
            columns=np.array([view.column(symbol) for symbol in universe], dtype=np.int64),
            view=view,
            account=AccountState(cash=cash, nav=nav, initial=100_000.0, positions=positions),
            rules=Rules(
                **{"venue": "test", "currency": "USD", "long_only": True, "lot": 1.0, "t_plus_1": False, **rules}
            ),
            since_last=(),
            sessions_left=10,
        )

    return make
