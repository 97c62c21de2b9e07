"""One session as the auditor sees it: bars by symbol, and the account as it stands."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tradeassay.account import Venue
from tradeassay.core.instruments import CorporateAction, Instrument
from tradeassay.core.view import SessionBars
from tradeassay.play import MarketConfig


@dataclass
class Account:
    """Cash, shares and marks, changed by nothing but the journal's own events."""

    cash: float = 0.0
    shares: dict[str, float] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    """Orders that rest, id to symbol."""

    def move(self, symbol: str, quantity: float) -> None:
        """Change a holding."""
        self.hold(symbol, self.shares.get(symbol, 0.0) + quantity)

    def hold(self, symbol: str, quantity: float) -> None:
        """Set a holding; nothing is no holding."""
        if quantity == 0:
            self.shares.pop(symbol, None)
            self.marks.pop(symbol, None)
        else:
            self.shares[symbol] = quantity


@dataclass(frozen=True)
class Day:
    """What the data says about a session, and the rules it is played under."""

    config: MarketConfig
    venue: Venue
    bars: SessionBars
    columns: dict[str, int]
    actions: tuple[CorporateAction, ...]
    delisted: Collection[str]
    members: frozenset[str]
    """What may be bought."""
    decided_at: int

    def knows(self, symbol: str) -> bool:
        """Whether the symbol is listed by now."""
        return symbol in self.columns

    def instrument(self, symbol: str) -> Instrument:
        """The facts about a symbol."""
        return self.bars.instruments[self.columns[symbol]]

    def trades(self, symbol: str) -> bool:
        """Whether it traded in this session."""
        return bool(self.bars.trading[self.columns[symbol]])

    def price(self, which: str, symbol: str) -> float:
        """A field of the bar (``open``, ``high``, ``low``, ``close``, ``volume``, ``prev_close``)."""
        return float(getattr(self.bars, which)[self.columns[symbol]])

    def mark_price(self, symbol: str) -> float | None:
        """The price at which a holding is valued, None when it has none today."""
        price = self.price(self.config.mark, symbol)
        return price if self.trades(symbol) and price > 0 else None
