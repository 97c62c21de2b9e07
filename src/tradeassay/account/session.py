"""What the policies of a venue see: one session, and one order on its way through it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from tradeassay.account.commission import Fees
from tradeassay.account.ledger import Ledger
from tradeassay.core.events import RejectReason
from tradeassay.core.instruments import Instrument
from tradeassay.core.orders import LARGEST_PRICE, LEAST_PRICE, Order
from tradeassay.core.view import SessionBars

Moment = Literal["open", "close"]
"""When orders are filled, or positions marked: at the session's open or at its close."""


class Session:
    """What is fixed while one batch of orders is worked off.

    ``open`` ... ``volume`` are read by column. ``reference`` is the price at which the batch trades or is
    marked, chosen by :meth:`turn_to`. ``used`` counts the volume taken per symbol, for the participation
    limit; ``universe`` names what may be bought, ``delisted`` what has left the exchange.
    """

    __slots__ = (
        "_nav",
        "account",
        "bars",
        "close",
        "columns",
        "delisted",
        "fees",
        "moment",
        "open",
        "prev_close",
        "reference",
        "trading",
        "universe",
        "used",
        "volume",
    )

    def __init__(self, fees: Fees, bars: SessionBars, account: Ledger, columns: dict[str, int]) -> None:
        self.fees = fees
        self.bars = bars
        self.account = account
        self.columns = columns
        self.universe: Collection[str] | None = None
        self.delisted: Collection[str] = ()
        self.used: dict[str, float] = {}
        # A memoryview gives Python floats, three times as fast as indexing the array; numpy scalars
        # would slow every later operation.
        self.open = bars.open.data
        self.close = bars.close.data
        self.prev_close = bars.prev_close.data
        self.volume = bars.volume.data
        self.trading = bars.trading.data
        self.turn_to("open")

    def turn_to(self, moment: Moment) -> None:
        """Start a batch that trades, or marks, at the open or at the close."""
        self.moment: Moment = moment
        self.reference = self.close if moment == "close" else self.open
        self._nav: float | None = None

    def has_price(self, column: int) -> bool:
        return bool(self.trading[column]) and LEAST_PRICE <= self.reference[column] <= LARGEST_PRICE

    def price_of(self, symbol: str) -> float:
        column = self.columns[symbol]
        price: float = self.reference[column]
        traded = self.trading[column] and LEAST_PRICE <= price <= LARGEST_PRICE
        return price if traded else self.account.mark(symbol)

    def exposure(self) -> tuple[float, float]:
        account, instruments, columns = self.account, self.bars.instruments, self.columns
        reference, trading = self.reference, self.trading
        equity = account.cash
        gross = 0.0
        for symbol, holding in account.holdings.items():
            column = columns[symbol]
            instrument = instruments[column]
            quantity = holding.quantity
            price: float = reference[column]
            if not (trading[column] and LEAST_PRICE <= price <= LARGEST_PRICE):
                price = holding.mark
            value = quantity * price * instrument.multiplier
            gross += abs(value)
            if instrument.kind == "future":
                # Only the unsettled part of a futures position is the account's own money.
                value -= quantity * holding.mark * instrument.multiplier
            equity += value
        return equity, gross

    def take_nav(self) -> None:
        """Fix :attr:`nav`; call it before the batch's first fill."""
        self._nav = self.nav

    @property
    def nav(self) -> float:
        """The account's value at reference prices before the batch's first fill.

        All weights of one batch are shares of this one sum.
        """
        if self._nav is None:
            self._nav = self.exposure()[0]
        return self._nav


class Refusal(NamedTuple):
    """A counted reason and a sentence for the reader of the log."""

    reason: RejectReason
    detail: str


WAITS: frozenset[RejectReason] = frozenset(
    {"suspended", "no_price", "limit_up", "limit_down", "no_volume", "t_plus_1"}
)
"""Reasons that another day may cure: a good-till-cancelled order rests on them, any other is rejected."""


class Ticket:
    """Working state of one order in one session.

    ``quantity`` is a magnitude, ``buying`` its direction, ``held`` the signed holding it meets.
    ``reference`` is the price before slippage at which it would trade, ``price`` the one after, ``lot``
    the multiple in which the name trades. ``explicit`` says that the quantity was given as a number of
    shares, so that rounding it would be a correction. ``resting`` marks an order of an earlier session.
    """

    # Class-level defaults keep the constructor short: it runs for every order.
    buying = True
    explicit = True
    resting = False
    stage = 0
    held = 0.0
    reference = 0.0
    price = 0.0
    quantity = 0.0
    asked = 0.0
    fee = 0.0
    tax = 0.0
    cash = 0.0
    trims: list[tuple[RejectReason, float, float]] | None = None

    def __init__(self, id: str, order: Order, column: int, instrument: Instrument, lot: float) -> None:
        self.id = id
        self.order = order
        self.symbol = order.symbol
        self.column = column
        self.instrument = instrument
        self.multiplier = instrument.multiplier
        self.lot = lot

    @property
    def side(self) -> str:
        return "BUY" if self.buying else "SELL"

    def ask(self, change: float) -> None:
        self.buying = change > 0.0
        self.quantity = self.asked = float(abs(change))

    def signed(self, quantity: float) -> float:
        """Return a magnitude with this order's sign: positive for a buy."""
        return quantity if self.buying else -quantity

    def trim(self, quantity: float, reason: RejectReason) -> None:
        if self.trims is None:
            self.trims = []
        self.trims.append((reason, self.quantity, quantity))
        self.quantity = quantity
