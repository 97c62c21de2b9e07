"""Represent one session and one order for the policies of a venue.

This module answers three questions about an order. Is it valid? How many shares does it trade?
Does a bar reach its price?

Money and weights are converted to shares at the *sizing price*: the reference price at which the
order trades, before slippage. Weights are fractions of NAV at the reference prices of the batch.

| order | at the open | during the session |
|---|---|---|
| market | the open | - |
| limit BUY L | open <= L: the open | low <= L: L |
| limit SELL L | open >= L: the open | high >= L: L |
| stop BUY S | open >= S: the open | high >= S: S |
| stop SELL S | open <= S: the open | low <= S: S |

An order submitted at the close is compared with the closing price only. Resting orders from an
earlier session are compared with the whole bar.
"""

from collections.abc import Collection
from math import isfinite, ulp
from typing import Literal, NamedTuple

from tradeassay_bench.account.commission import Fees
from tradeassay_bench.account.ledger import Ledger
from tradeassay_bench.core.events import RejectReason
from tradeassay_bench.core.orders import LARGEST_PRICE, LEAST_PRICE, Order, is_price, not_a_size
from tradeassay_bench.core.view import Instrument, SessionBars

OpenOrClose = Literal["open", "close"]
"""Selects the session's opening or closing prices, for fills or for marks."""


class SessionState:
    """The working state of one session at the exchange: prices, account and volume used.

    ``open`` ... ``volume`` are arrays by column. ``reference`` contains the prices of the current
    batch of trades or marks, selected by :meth:`turn_to`. ``used`` is the volume already traded per
    symbol, for the participation limit. ``universe`` contains the symbols that may be bought,
    ``delisted`` the symbols that have left the exchange.
    """

    __slots__ = tuple(
        "_nav account bars close columns delisted fees moment open prev_close reference trading "
        "universe used "
        "volume".split()
    )

    def __init__(
        self, fees: Fees, bars: SessionBars, account: Ledger, columns: dict[str, int]
    ) -> None:
        self.fees = fees
        self.bars = bars
        self.account = account
        self.columns = columns
        self.universe: Collection[str] | None = None
        self.delisted: Collection[str] = ()
        self.used: dict[str, float] = {}
        # A memoryview returns Python floats, three times as fast as indexing the array. numpy
        # scalars would slow every later operation.
        self.open = bars.open.data
        self.close = bars.close.data
        self.prev_close = bars.prev_close.data
        self.volume = bars.volume.data
        self.trading = bars.trading.data
        self.turn_to("open")

    def turn_to(self, moment: OpenOrClose) -> None:
        """Start a batch of trades or marks at the open or at the close."""
        self.moment: OpenOrClose = moment
        self.reference = self.close if moment == "close" else self.open
        self._nav: float | None = None

    def has_price(self, column: int) -> bool:
        """Return whether a column trades in this session and has a valid reference price."""
        return bool(self.trading[column]) and LEAST_PRICE <= self.reference[column] <= LARGEST_PRICE

    def price_of(self, symbol: str) -> float:
        """Return a held symbol's reference price, or its last mark if it has no price today."""
        column = self.columns[symbol]
        price: float = self.reference[column]
        traded = self.trading[column] and LEAST_PRICE <= price <= LARGEST_PRICE
        return price if traded else self.account.mark(symbol)

    def exposure(self) -> tuple[float, float]:
        """Return (equity, gross exposure) at reference prices. Names without a price use their last
        mark.
        """
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
            equity += value
        return equity, gross

    def take_nav(self) -> None:
        """Compute :attr:`nav` now, before the batch's first fill changes the account."""
        self._nav = self.nav

    @property
    def nav(self) -> float:
        """Return the account's value at reference prices before the batch's first fill.

        All weights of one batch are fractions of this value.
        """
        if self._nav is None:
            self._nav = self.exposure()[0]
        return self._nav


class Refusal(NamedTuple):
    """The reason of a refused order: a category for the counts, and a sentence for the log."""

    reason: RejectReason
    detail: str


RETRYABLE: frozenset[RejectReason] = frozenset(
    {"suspended", "no_price", "limit_up", "limit_down", "no_volume", "t_plus_1"}
)
"""Reasons that may no longer apply on a later day. A good-till-cancelled order that is refused for
one of these reasons rests. Any other order is rejected.
"""


class OrderTicket:
    """The working state of one order in one session: its direction, size, price and costs.

    ``quantity`` and ``requested`` are unsigned, ``buying`` is the direction, and ``held`` is the
    account's signed holding. ``reference`` is the price of the trade before slippage, ``price`` the
    price after slippage, and ``lot`` the lot size of the name. ``explicit`` is True if the order
    states a number of shares, so that rounding would change the order. ``resting`` marks an order
    from an earlier session. ``trims`` lists the cuts by policies as (reason, quantity before,
    quantity after).
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
    requested = 0.0
    fee = 0.0
    tax = 0.0
    cash = 0.0
    trims: list[tuple[RejectReason, float, float]] | None = None

    def __init__(
        self, id: str, order: Order, column: int, instrument: Instrument, lot: float
    ) -> None:
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

    def set_change(self, change: float) -> None:
        """Set direction and quantity from a signed change of the holding."""
        self.buying = change > 0.0
        self.quantity = float(abs(change))
        self.requested = self.quantity

    def signed(self, quantity: float) -> float:
        """Return an unsigned quantity with this order's sign: positive for a purchase."""
        return quantity if self.buying else -quantity

    def trim(self, quantity: float, reason: RejectReason) -> None:
        """Cut the quantity and record the reason."""
        if self.trims is None:
            self.trims = []
        self.trims.append((reason, self.quantity, quantity))
        self.quantity = quantity


def order_mistake(order: Order) -> Refusal | None:
    """Return the refusal of an order with missing or contradictory fields, or None."""
    amount, unit = order.amount, order.unit
    wrong = not_a_size(amount)
    if wrong is not None:
        return Refusal("bad_amount", f"amount {wrong}")
    if unit in TARGETS:
        if order.side not in (None, "BUY", "SELL"):
            return Refusal("unsupported", f"side '{order.side}' does not exist")
    elif unit not in ("shares", "dollars"):
        return Refusal("unsupported", f"unit '{unit}' does not exist")
    elif amount <= 0.0:
        return Refusal(
            "bad_amount", f"amount {amount:g} must be positive; the side says the direction"
        )
    elif order.side not in ("BUY", "SELL"):
        return Refusal("bad_amount", f"an order in {unit} needs a side, BUY or SELL")
    if order.kind != "market" or order.limit_price is not None or order.stop_price is not None:
        refusal = _bad_price(order)
        if refusal is not None:
            return refusal
    if order.tif not in ("day", "gtc"):
        return Refusal("unsupported", f"time in force '{order.tif}' does not exist; use day or gtc")
    return None


def _bad_price(order: Order) -> Refusal | None:
    """Return the refusal of an order whose limit or stop price is wrong, or None."""
    prices = {"limit": order.limit_price, "stop": order.stop_price}
    if order.kind not in ("market", "limit", "stop"):
        return Refusal("unsupported", f"order kind '{order.kind}' does not exist")
    for name, price in prices.items():
        if name == order.kind:
            if price is None or not price > 0.0:
                return Refusal(
                    "bad_price", f"a {name} order needs a positive {name}_price, got {price!r}"
                )
            if not is_price(price):
                return Refusal(
                    "bad_price",
                    f"{name}_price {price!r} is no price: from {LEAST_PRICE:g} to "
                    f"{LARGEST_PRICE:g}",
                )
        elif price is not None:
            return Refusal("bad_price", f"a {order.kind} order takes no {name}_price")
    return None


def untradable(symbol: str, column: int, session: SessionState) -> Refusal | None:
    """Return the reason why a name cannot be traded in this session, or None."""
    bars = session.bars
    if bars.instruments[column].kind == "future":
        return Refusal("unsupported", f"{symbol} is a future, which no account here can hold")
    if symbol in session.delisted:
        return Refusal("not_listed", f"{symbol} has left the exchange")
    if not session.trading[column]:
        return Refusal("suspended", f"{symbol} does not trade on {bars.session}")
    if not is_price(session.reference[column]):
        return Refusal("no_price", f"{symbol} has no {session.moment} price on {bars.session}")
    return None


TARGETS = frozenset({"target_weight", "target_value", "target_shares"})

DUST = 4.0
"""Tolerance between a holding and its target, in units of the last binary digit of the holding. For
example, 1 - 0.7 is not exactly 0.3.
"""


NEGLIGIBLE = 1e-6
"""Largest change of a position, as a fraction of a lot, that is treated as no change."""


def signed_change(order: Order, unit_value: float, held: float, session: SessionState) -> float:
    """Return the signed change in shares for an order in money or with a target, before rounding.

    ``unit_value`` is the value of one share (or contract) at the sizing price, ``held`` the current
    holding.
    """
    amount, unit = order.amount, order.unit
    if unit == "dollars":
        quantity = amount / unit_value
        return quantity if order.side == "BUY" else -quantity
    if unit == "target_shares" or amount == 0.0:
        return amount - held
    value = amount * session.nav if unit == "target_weight" else amount
    return value / unit_value - held


def explicit_quantity(order: Order, account: Ledger) -> float | None:
    """Return the signed change of an order in shares, or None for an order that needs a price."""
    if order.unit == "shares":
        return order.amount if order.side == "BUY" else -order.amount
    if order.unit == "target_shares" or (order.unit in TARGETS and order.amount == 0.0):
        return order.amount - account.quantity(order.symbol)
    return None


def size(ticket: OrderTicket, session: SessionState) -> Refusal | None:
    """Set the ticket's quantity in shares from the order's amount and unit.

    Return a refusal if the order changes nothing, contradicts its side or has no valid size.
    Otherwise return None.
    """
    order = ticket.order
    # An agent may state 100 or a numpy number. Events contain plain floats, because a replay would
    # otherwise differ in type.
    if order.unit == "shares":
        ticket.quantity = float(order.amount)
        ticket.requested = ticket.quantity
        return None
    change = signed_change(order, ticket.reference * ticket.multiplier, ticket.held, session)
    if not isfinite(change):
        return Refusal(
            "bad_amount", f"{order.amount!r} in {order.unit} is no number of {order.symbol}"
        )
    nothing = max(DUST * ulp(ticket.held), NEGLIGIBLE * ticket.lot)
    if change == 0.0 or (order.unit in TARGETS and order.amount != 0.0 and abs(change) <= nothing):
        return Refusal("no_change", f"{order.symbol} is already where the order wants it")
    if (change > 0.0) != ticket.buying:
        verb = "buy" if change > 0.0 else "sell"
        return Refusal(
            "side_contradicts_target",
            f"the target means to {verb} {abs(change):.6g}, the order says {ticket.side}",
        )
    ticket.quantity = float(abs(change))
    ticket.requested = ticket.quantity
    # A target of zero also states a number of shares: the whole holding.
    ticket.explicit = order.unit == "target_shares" or (
        order.amount == 0.0 and order.unit in TARGETS
    )
    return None


AT_OPEN, DURING, AT_CLOSE = 0, 1, 2
"""The order of fills within one session."""


def trigger_price(order: Order) -> float | None:
    """Return an order's limit or stop price, or None for a market order."""
    return order.limit_price if order.kind == "limit" else order.stop_price


def satisfied(order: Order, buying: bool, price: float) -> bool:
    """Return whether an order trades at ``price``. Market orders always do."""
    if order.kind == "market":
        return True
    trigger = trigger_price(order)
    assert trigger is not None, "admission lets no limit or stop order pass without its price"
    # A limit purchase waits for a low price, a stop purchase for a high price. Sales do the
    # opposite.
    wants_low = buying == (order.kind == "limit")
    return price <= trigger if wants_low else price >= trigger


def touched(order: Order, buying: bool, high: float, low: float) -> float | None:
    """Return the price at which a limit or stop order trades after the open, or None.

    Call this function only if the open did not satisfy the order.
    """
    trigger = trigger_price(order)
    reached = satisfied(order, buying, low if buying == (order.kind == "limit") else high)
    return float(trigger) if reached and trigger is not None else None
