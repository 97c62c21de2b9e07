"""One session as the policies see it: prices by column, the account, and what was used up so far."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from tradeassay.core.account import Account
from tradeassay.core.view import SessionBars
from tradeassay.execution.fees import Fees

Moment = Literal["open", "close"]
"""When orders are filled, or positions marked: at the session's open or at its close."""


class Session:
    """What is fixed while one batch of orders is worked off.

    ``used`` counts the volume taken per symbol, for the participation limit. :attr:`nav` is the account's
    value at the reference prices before the first fill of the batch, so that all weights of one decision
    are shares of the same sum.
    """

    __slots__ = (
        "_nav", "account", "bars", "close_at", "columns", "delisted", "fees", "fill", "open_at", "prev_close_at",
        "reference_at", "trading_at", "universe", "used",  "volume_at",
    )  # fmt: skip

    def __init__(
        self, fees: Fees, bars: SessionBars, account: Account, columns: dict[str, int], fill: Moment = "open"
    ) -> None:
        self.fees = fees
        self.bars = bars
        self.account = account
        self.columns = columns
        self.fill: Moment = fill
        self.universe: Collection[str] | None = None
        self.delisted: Collection[str] = ()
        self.used: dict[str, float] = {}
        # Bound ``item`` methods return Python floats; numpy scalars would slow every later operation.
        self.open_at = bars.open.item
        self.close_at = bars.close.item
        self.prev_close_at = bars.prev_close.item
        self.trading_at = bars.trading.item
        self.volume_at = bars.volume.item
        self.reference_at = self.close_at if fill == "close" else self.open_at
        self._nav: float | None = None

    def has_price(self, column: int) -> bool:
        """Say whether a column trades in this session and has a reference price."""
        return bool(self.trading_at(column)) and self.reference_at(column) > 0.0

    def price_of(self, symbol: str) -> float:
        """Return a held symbol's reference price, or its last mark when it has none this session."""
        column = self.columns[symbol]
        price: float = self.reference_at(column)
        return price if self.trading_at(column) and price > 0.0 else self.account.mark(symbol)

    def exposure(self) -> tuple[float, float]:
        """Return (equity, gross exposure) of the account now, at reference prices."""
        account, instruments, columns = self.account, self.bars.instruments, self.columns
        equity = account.cash
        gross = 0.0
        for symbol in account.held():
            instrument = instruments[columns[symbol]]
            price = self.price_of(symbol)
            value = account.quantity(symbol) * price * instrument.multiplier
            gross += abs(value)
            if instrument.kind == "future":
                # Only the unsettled part of a futures position is the account's own money.
                value -= account.quantity(symbol) * account.mark(symbol) * instrument.multiplier
            equity += value
        return equity, gross

    @property
    def nav(self) -> float:
        """The account's value at reference prices when first asked for in this batch."""
        if self._nav is None:
            self._nav = self.exposure()[0]
        return self._nav
