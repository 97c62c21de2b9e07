"""Run the exchange: turn orders into events and apply each event to the account immediately."""

from collections.abc import Collection, Sequence

import msgspec

from tradeassay_bench.account.end_of_day import apply_actions, close_positions, emit
from tradeassay_bench.account.ledger import Ledger
from tradeassay_bench.account.session import (
    AT_CLOSE,
    AT_OPEN,
    DURING,
    RETRYABLE,
    OpenOrClose,
    OrderTicket,
    Refusal,
    SessionState,
    explicit_quantity,
    order_mistake,
    satisfied,
    signed_change,
    size,
    touched,
    trigger_price,
    untradable,
)
from tradeassay_bench.account.venue import Era, Venue
from tradeassay_bench.core.errors import ExchangeError
from tradeassay_bench.core.events import Event, Expired, Filled, Rejected, Rested, Trimmed
from tradeassay_bench.core.orders import Order, is_price
from tradeassay_bench.core.view import CorporateAction, SessionBars


class RestingOrder(msgspec.Struct, frozen=True):
    """An order that rests on the book until a later session.

    ``quantity`` is the signed remainder. ``triggered`` is True once the stop price was reached.
    """

    id: str
    order: Order
    quantity: float
    triggered: bool = False


class Exchange:
    """Execute orders at one venue, session by session.

    For each session, call :meth:`open_session`, :meth:`execute` and :meth:`close_session` in this
    order. If agents decide after the market opened, call :meth:`execute_resting` before the
    decision. Between sessions the exchange keeps only the book of resting orders.
    """

    def __init__(self, venue: Venue) -> None:
        self.venue = venue
        self.book: dict[str, RestingOrder] = {}  # the resting orders, oldest first
        self._era: Era | None = None
        self._buy_gates = venue.gates(buying=True)
        self._sell_gates = venue.gates(buying=False)
        self._lot = venue.lots.lot
        self._slip = venue.slippage.price
        self._held_to_side = venue.resting.held_to_side is True
        self._symbols: tuple[str, ...] = ()
        self._columns: dict[str, int] = {}
        self._session: SessionState | None = None
        self._met_batch = False
        self._bar_worked = False
        self._start_book()

    def open_session(
        self,
        bars: SessionBars,
        actions: Sequence[CorporateAction],
        account: Ledger,
        *,
        delisted: Collection[str] = (),
    ) -> list[Event]:
        """Apply the corporate actions before the open, and return their events.

        Corporate actions are dividends, splits and delistings. ``delisted`` contains the symbols
        whose last session is over. No price of ``bars`` is used. A resting order expires if its
        symbol is split or delisted.
        """
        self._session = None
        self._start_book()
        session = self._session_of(bars, account)
        session.delisted = delisted
        events: list[Event] = []
        if actions or delisted:
            apply_actions(actions, delisted, self.venue.lots, session, events)
        if self.book:
            # A split changes the meaning of a resting order's price and quantity, so the order
            # expires.
            gone = {action.symbol for action in actions if action.kind == "split"}.union(delisted)
            self._expire_resting(gone, account, events)
        return events

    def execute_resting(
        self, bars: SessionBars, account: Ledger, *, until: OpenOrClose
    ) -> list[Event]:
        """Execute the resting orders and return the events.

        The orders are compared with the open alone (``until="open"``) or with the session's whole
        bar. Call this method before an agent sees those prices. Otherwise the agent could withdraw
        an order after seeing that its price was reached. A new order in :meth:`execute` still
        supersedes the remaining orders.
        """
        events: list[Event] = []
        if not self.book:
            return events
        session = self._session_of(bars, account)
        session.turn_to(until)
        tickets: list[OrderTicket] = []
        self._collect_resting(session, events, tickets, auction=until == "open")
        self._bar_worked = until == "close"
        self._trade(tickets, session, events)
        return events

    def execute(
        self,
        orders: Sequence[tuple[str, Order]],
        bars: SessionBars,
        account: Ledger,
        *,
        fill: OpenOrClose = "open",
        universe: Collection[str] | None = None,
    ) -> list[Event]:
        """Execute the resting orders and a batch of new (id, order) pairs. Return the events.

        Call this method even for an empty batch. ``universe`` contains the symbols that may be
        bought (None = all). Every holding may be sold. Raises :class:`ExchangeError` if the id of a
        new order belongs to a resting order.
        """
        session = self._session_of(bars, account)
        session.turn_to(fill)
        session.universe = universe
        events: list[Event] = []
        tickets: list[OrderTicket] = []
        if self.book and not self._met_batch:
            if self.venue.resting.supersede:
                self._expire_resting({order.symbol for _, order in orders}, account, events)
            if not self._bar_worked:
                self._collect_resting(session, events, tickets)
        self._met_batch = True
        for order_id, order in orders:
            if order_id in self.book:
                raise ExchangeError(
                    f"order id '{order_id}' belongs to a resting order", hint="use a new id"
                )
            self._admit(order_id, order, session, events, tickets)
        self._trade(tickets, session, events)
        return events

    def close_session(
        self, bars: SessionBars, account: Ledger, *, mark: OpenOrClose = "close"
    ) -> list[Event]:
        """End the session and return its last events.

        Borrow fees and interest are charged, margin calls are made, and the account is marked.
        """
        session = self._session_of(bars, account)
        session.turn_to(mark)
        events: list[Event] = []
        close_positions(self.venue, session, events)
        return events

    def _session_of(self, bars: SessionBars, account: Ledger) -> SessionState:
        """Return the state of the current session, or a new state for a different session.

        The fees and price limits of a new session are those of its era.
        """
        previous = self._session
        if previous is not None and previous.bars is bars and previous.account is account:
            return previous
        # Views return the same tuple until a name is added, so an identity check is enough for most
        # sessions.
        if bars.symbols is not self._symbols:
            if bars.symbols != self._symbols:
                self._columns = {symbol: column for column, symbol in enumerate(bars.symbols)}
            self._symbols = bars.symbols
        era = self.venue.era(bars.session)
        if era is not None and era is not self._era:
            self._era = era
            self._buy_gates = self.venue.gates(buying=True, era=era)
            self._sell_gates = self.venue.gates(buying=False, era=era)
        fees = self.venue.fees if era is None else era.fees
        session = SessionState(fees, bars, account, self._columns)
        self._session = session
        if (
            previous is not None
            and previous.bars.session == bars.session
            and previous.account is account
        ):
            # The bars object is new but the session is the same, so the volume already traded still
            # counts.
            session.delisted, session.used = previous.delisted, previous.used
        else:
            self._start_book()
        return session

    def _start_book(self) -> None:
        """Reset the book's state for a new session."""
        self._met_batch = False
        self._bar_worked = False
        self._tried: set[str] = set()

    def _collect_resting(
        self,
        session: SessionState,
        events: list[Event],
        tickets: list[OrderTicket],
        *,
        auction: bool = False,
    ) -> None:
        """Collect the resting orders that trade in this session.

        An order that was collected in the opening ``auction`` is not collected again in the same
        session.
        """
        for resting in tuple(self.book.values()):  # a copy, because admission changes the book
            if resting.id not in self._tried:
                self._check_resting(resting, session, events, tickets, auction=auction)
        if auction:
            self._tried.update(ticket.id for ticket in tickets)

    def _trade(
        self, tickets: list[OrderTicket], session: SessionState, events: list[Event]
    ) -> None:
        """Execute tickets in trading order.

        NAV is fixed once, before the first trade.
        """
        if tickets:
            sells_first = self.venue.priority == "sells_first"
            tickets.sort(key=lambda ticket: 2 * ticket.stage + (sells_first and ticket.buying))
            session.take_nav()
            for ticket in tickets:
                self._execute_order(ticket, session, events)

    def _expire_resting(
        self, symbols: Collection[str], account: Ledger, events: list[Event]
    ) -> None:
        """Remove the resting orders for some symbols from the book."""
        for resting in tuple(self.book.values()):
            if resting.order.symbol in symbols:
                emit(Expired(resting.id, resting.order.symbol), account, events)
                del self.book[resting.id]

    def _admit(
        self,
        order_id: str,
        order: Order,
        session: SessionState,
        events: list[Event],
        tickets: list[OrderTicket],
    ) -> None:
        """Validate a new order and determine when and at what price it would trade."""
        symbol = order.symbol
        column = session.columns.get(symbol)
        if column is None:
            detail = f"no instrument '{symbol}' is listed here"
            emit(Rejected(order_id, symbol, "unknown_symbol", detail), session.account, events)
            return
        instrument = session.bars.instruments[column]
        lot = self._lot
        ticket = OrderTicket(
            order_id, order, column, instrument, instrument.lot if lot is None else lot
        )
        refusal = order_mistake(order)
        if refusal is None:
            refusal = untradable(symbol, column, session)
            if refusal is not None:
                change = explicit_quantity(order, session.account) or 0.0
                contradicts = order.side is not None and (change > 0.0) != (order.side == "BUY")
                if not (contradicts and self._held_to_side):
                    ticket.set_change(change)
        if refusal is None:
            ticket.buying = (
                order.side == "BUY" if order.side is not None else _buys(ticket, session)
            )
            if ticket.buying and session.universe is not None and symbol not in session.universe:
                # Covering a short position is always allowed.
                covers = session.account.quantity(symbol) < 0.0
                if not covers:
                    refusal = Refusal("not_in_universe", f"{symbol} may not be bought now")
        if refusal is not None:
            self._refuse(ticket, refusal, session, events)
            return
        at_open = session.moment == "open"
        ticket.stage = AT_OPEN if at_open else AT_CLOSE
        ticket.reference = session.reference[column]
        if (
            order.kind == "market"
            or satisfied(order, ticket.buying, ticket.reference)
            or (at_open and self._touched_later(ticket, session))
        ):
            tickets.append(ticket)
        else:
            self._not_reached(ticket, session, events)

    def _check_resting(
        self,
        resting: RestingOrder,
        session: SessionState,
        events: list[Event],
        tickets: list[OrderTicket],
        *,
        auction: bool,
    ) -> None:
        """Check whether a resting order trades in this session.

        The order is compared with the whole bar. In the opening ``auction`` it is compared with the
        open alone.
        """
        order = resting.order
        column = session.columns[order.symbol]
        refusal = untradable(order.symbol, column, session)
        instrument = session.bars.instruments[column]
        ticket = OrderTicket(
            resting.id, order, column, instrument, self.venue.lots.lot_of(instrument)
        )
        ticket.resting = True
        ticket.set_change(resting.quantity)
        if refusal is not None:
            self._refuse(ticket, refusal, session, events)
            return
        ticket.reference = session.open[column]
        at_market = resting.triggered or order.kind == "market"
        # Without an open a market order has no price and rests. A limit or stop order may still be
        # reached during the session.
        if is_price(ticket.reference) and (
            at_market or satisfied(order, ticket.buying, ticket.reference)
        ):
            tickets.append(ticket)
        elif not (at_market or auction) and self._touched_later(ticket, session):
            tickets.append(ticket)

    @staticmethod
    def _touched_later(ticket: OrderTicket, session: SessionState) -> bool:
        """Return whether the bar reached a limit or stop order's price after the open.

        If it did, the ticket gets that price.
        """
        bars = session.bars
        price = touched(
            ticket.order, ticket.buying, bars.high.item(ticket.column), bars.low.item(ticket.column)
        )
        if price is None:
            return False
        ticket.reference = price
        ticket.stage = DURING
        return True

    def _not_reached(self, ticket: OrderTicket, session: SessionState, events: list[Event]) -> None:
        """Expire a day order whose price was not reached. Rest a good-till-cancelled order."""
        if ticket.order.tif == "day":
            emit(Expired(ticket.id, ticket.symbol), session.account, events)
            return
        trigger = trigger_price(ticket.order)
        assert trigger is not None
        ticket.reference = float(trigger)
        ticket.held = session.account.quantity(ticket.symbol)
        refusal = size(ticket, session) or self.venue.lots.gate(ticket, session)
        if refusal is not None:
            self._refuse(ticket, refusal, session, events)
        else:
            self._rest(ticket, ticket.quantity, session, events)

    def _execute_order(
        self, ticket: OrderTicket, session: SessionState, events: list[Event]
    ) -> None:
        """Size an order, check it against the venue's policies, and fill or refuse it."""
        holding = session.account.holdings.get(ticket.symbol)
        ticket.held = 0.0 if holding is None else holding.quantity
        if not ticket.resting:
            refusal = size(ticket, session)
            if refusal is not None:
                self._refuse(ticket, refusal, session, events)
                return
        ticket.price = self._slip(ticket.reference, ticket.buying, ticket.order.limit_price)
        for gate in self._buy_gates if ticket.buying else self._sell_gates:
            refusal = gate(ticket, session)
            if refusal is None and ticket.trims:
                refusal = self.venue.lots.after_cut(ticket)
            if refusal is not None:
                self._refuse(ticket, refusal, session, events)
                return
        self._fill(ticket, session, events)

    def _fill(self, ticket: OrderTicket, session: SessionState, events: list[Event]) -> None:
        """Fill an order, and rest or report the parts that were cut."""
        account, symbol, quantity = session.account, ticket.symbol, ticket.quantity
        filled = Filled(
            ticket.id,
            symbol,
            quantity if ticket.buying else -quantity,
            ticket.price,
            ticket.reference,
            ticket.fee,
            ticket.tax,
            ticket.cash,
            False,
            ticket.multiplier,
        )
        events.append(filled)
        account.apply(filled)
        used = session.used
        used[symbol] = used.get(symbol, 0.0) + quantity
        if ticket.resting:
            self.book.pop(ticket.id, None)
        remainder = 0.0
        for reason, asked, done in ticket.trims or ():
            if reason in RETRYABLE and ticket.order.tif == "gtc":
                remainder += asked - done
            else:
                trimmed = Trimmed(
                    ticket.id, symbol, ticket.signed(asked), ticket.signed(done), reason
                )
                emit(trimmed, account, events)
        if remainder > 0.0:
            self._rest(ticket, remainder, session, events, traded=True)

    def _refuse(
        self, ticket: OrderTicket, refusal: Refusal, session: SessionState, events: list[Event]
    ) -> None:
        """Reject an order, or rest it if its time in force and the reason allow another attempt."""
        if refusal.reason in RETRYABLE and ticket.order.tif == "gtc" and ticket.requested > 0.0:
            if not ticket.resting:
                self._rest(ticket, ticket.requested, session, events)
            return
        self.book.pop(ticket.id, None)
        quantity = ticket.signed(ticket.requested) if ticket.requested > 0.0 else None
        emit(Rejected(ticket.id, ticket.symbol, *refusal, quantity), session.account, events)

    def _rest(
        self,
        ticket: OrderTicket,
        quantity: float,
        session: SessionState,
        events: list[Event],
        *,
        traded: bool = False,
    ) -> None:
        """Add an order to the book.

        If a stop order was partly filled, its remainder rests as a market order. Any other stop
        order keeps its stop price.
        """
        signed = ticket.signed(quantity)
        self.book.pop(ticket.id, None)  # a partly filled order moves to the end of the book
        stopped = traded and ticket.order.kind == "stop"
        self.book[ticket.id] = RestingOrder(ticket.id, ticket.order, signed, stopped)
        emit(Rested(ticket.id, ticket.symbol, signed), session.account, events)


def _buys(ticket: OrderTicket, session: SessionState) -> bool:
    """Return whether an order without a side is a purchase: its target is above the holding."""
    order = ticket.order
    price = trigger_price(order) if order.kind != "market" else None
    price = session.reference[ticket.column] if price is None else price
    held = session.account.quantity(ticket.symbol)
    return signed_change(order, price * ticket.multiplier, held, session) > 0.0
