"""Fills: inside the bar, at an honest price, of a name that traded, within limits, lots, volume and T+1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tradeassay.core.events import Filled
from tradeassay.core.instruments import Board
from tradeassay.core.orders import Order
from tradeassay.runs.audit.day import Account, Day
from tradeassay.runs.audit.finding import Finding, near


class FillAuditor:
    """Checks the fills of one session, one after the other."""

    def __init__(self, day: Day, account: Account, orders: Mapping[str, Order], new: frozenset[str]) -> None:
        self._day = day
        self._account = account
        self._orders = orders
        self._new = new
        self._at_start = dict(account.shares)
        self._sold: dict[str, float] = {}
        self._traded: dict[str, float] = {}
        self._nav = _value_at_reference(day, account)

    def check(self, fill: Filled) -> Iterator[Finding]:
        """Yield what is wrong with a fill; the account must stand before it."""
        day = self._day
        if not day.knows(fill.symbol):
            yield Finding("fills", f"{fill.symbol} was filled but is not listed by then")
            return
        if not day.trades(fill.symbol):
            yield Finding("suspension", f"{fill.symbol} was filled while it did not trade")
            return
        yield from self._price(fill)
        yield from self._costs(fill)
        if not fill.forced:
            yield from self._limits(fill)
            yield from self._lots(fill)
            yield from self._volume(fill)
            yield from self._concentration(fill)
        yield from self._holding(fill)

    def _price(self, fill: Filled) -> Iterator[Finding]:
        day, order = self._day, self._orders.get(fill.order_id)
        low, high = day.price("low", fill.symbol), day.price("high", fill.symbol)
        if not low <= fill.reference <= high:
            yield Finding("fills", f"{fill.symbol} at {fill.reference:g}, outside its bar {low:g} to {high:g}")
        # An order that waited since an earlier session is there when the market opens.
        moment = day.config.mark if fill.forced else day.config.fill if fill.order_id in self._new else "open"
        exact = day.price(moment, fill.symbol)
        if (fill.forced or (order is not None and order.kind == "market")) and fill.reference != exact:
            yield Finding("fills", f"{fill.symbol} at {fill.reference:g}, its {moment} was {exact:g}")
        against = (fill.price - fill.reference) * (1 if fill.quantity > 0 else -1)
        allowed = fill.reference * day.venue.slippage.bps * 1e-4
        if against < 0 and not near(fill.price, fill.reference):
            yield Finding(
                "fills", f"{fill.symbol} at {fill.price:g}, better than its reference {fill.reference:g}"
            )
        limited = order is not None and order.kind == "limit"
        if not near(against, allowed, fill.reference) and not (limited and 0 <= against < allowed):
            yield Finding("slippage", f"{fill.symbol} paid {against:g} of slippage, the venue takes {allowed:g}")

    def _costs(self, fill: Filled) -> Iterator[Finding]:
        fees = self._day.venue.fees
        value = abs(fill.quantity) * fill.price * fill.multiplier
        rate = fees.buy_bps if fill.quantity > 0 else fees.sell_bps
        tax = 0.0 if fill.quantity > 0 else value * fees.sell_tax_bps * 1e-4
        fee = value * rate * 1e-4 + abs(fill.quantity) * fees.per_unit
        fee = max(fee, fees.minimum - tax if fees.minimum_covers_tax else fees.minimum)
        if not near(fill.fee, fee, value) or not near(fill.tax, tax, value):
            yield Finding(
                "fees",
                f"{fill.symbol} paid {fill.fee:g} and {fill.tax:g} tax, the venue takes {fee:g} and {tax:g}",
            )
        future = self._day.instrument(fill.symbol).kind == "future"
        expected = (0.0 if future else -fill.quantity * fill.price * fill.multiplier) - fill.fee - fill.tax
        if not near(fill.cash, expected, value + fee):
            yield Finding("cash", f"{fill.symbol} moved {fill.cash:g} of cash, its fill is worth {expected:g}")
        if fill.multiplier != self._day.instrument(fill.symbol).multiplier or fill.margined != future:
            yield Finding("fills", f"{fill.symbol} has other contract terms than its instrument")

    def _limits(self, fill: Filled) -> Iterator[Finding]:
        limits, day = self._day.venue.price_limits, self._day
        if limits is None:
            return
        board = day.instrument(fill.symbol).board
        limit = {
            Board.MAIN: limits.main, Board.CHINEXT: limits.chinext, Board.STAR: limits.star, Board.BSE: limits.bse,
            Board.NONE: limits.none,
        }[board]  # fmt: skip
        before = day.price("prev_close", fill.symbol)
        if limit is None or not before > 0:
            return
        tested = fill.reference if limits.limit_test == "open" else day.price("close", fill.symbol)
        change = tested / before - 1
        threshold = limit - limits.buffer
        if fill.quantity > 0 and change >= threshold - 1e-9:
            yield Finding("limits", f"{fill.symbol} was bought at {change:+.2%}, at or beyond its limit")
        if fill.quantity < 0 and change <= 1e-9 - threshold:
            yield Finding("limits", f"{fill.symbol} was sold at {change:+.2%}, at or beyond its limit")

    def _lots(self, fill: Filled) -> Iterator[Finding]:
        lots, held = self._day.venue.lots, self._account.shares.get(fill.symbol, 0.0)
        instrument = self._day.instrument(fill.symbol)
        lot = instrument.lot if lots.lot is None else lots.lot
        size = abs(fill.quantity)
        closes = held * fill.quantity < 0 and near(size, abs(held))
        rest = abs(held) % lot if held * fill.quantity < 0 else 0.0
        if not closes and not _whole(size / lot) and not (rest and _whole((size - rest) / lot)):
            yield Finding("lots", f"{size:g} of {fill.symbol} is no multiple of {lot:g}")

    def _volume(self, fill: Filled) -> Iterator[Finding]:
        policy, volume = self._day.venue.participation, self._day.price("volume", fill.symbol)
        taken = self._traded.get(fill.symbol, 0.0) + abs(fill.quantity)
        self._traded[fill.symbol] = taken
        exempt = self._day.instrument(fill.symbol).kind == "index" and not policy.index_funds
        if policy.max_share is None or exempt or volume != volume:
            return
        if taken > volume * policy.max_share * (1 + 1e-9):
            yield Finding("volume", f"{taken:g} of {fill.symbol} traded, {volume * policy.max_share:g} is allowed")

    def _concentration(self, fill: Filled) -> Iterator[Finding]:
        config, held = self._day.config, self._account.shares.get(fill.symbol, 0.0)
        after = held + fill.quantity
        if abs(after) <= abs(held):
            return
        if config.max_positions is not None and held == 0 and len(self._account.shares) >= config.max_positions:
            yield Finding("concentration", f"{fill.symbol} is position {len(self._account.shares) + 1}")
        worth = abs(after) * fill.reference * fill.multiplier
        if config.max_weight is not None and worth > (config.max_weight + 1e-6) * self._nav:
            yield Finding("concentration", f"{fill.symbol} became {worth / self._nav:.2%} of the account")

    def _holding(self, fill: Filled) -> Iterator[Finding]:
        if fill.quantity == 0:
            yield Finding("fills", f"{fill.symbol} has a fill of nothing")
        if fill.quantity >= 0 or self._day.venue.margin is not None:
            return
        sold = self._sold.get(fill.symbol, 0.0) - fill.quantity
        self._sold[fill.symbol] = sold
        if self._day.venue.settlement.t_plus and sold > self._at_start.get(fill.symbol, 0.0) * (1 + 1e-9):
            yield Finding("t_plus_1", f"{sold:g} of {fill.symbol} sold, some of it bought the same day")
        held = self._account.shares.get(fill.symbol, 0.0)
        if -fill.quantity > held * (1 + 1e-9):
            yield Finding("positions", f"{-fill.quantity:g} of {fill.symbol} sold, {held:g} held")


def _whole(count: float) -> bool:
    return count > 0.5 and abs(count - round(count)) <= max(1e-5, 1e-12 * count)


def _value_at_reference(day: Day, account: Account) -> float:
    """The account before the first fill, at the prices at which orders are filled."""
    total = account.cash
    for symbol, quantity in account.shares.items():
        if not day.knows(symbol):
            continue
        instrument = day.instrument(symbol)
        price = day.price(day.config.fill, symbol)
        worth = price if day.trades(symbol) and price > 0 else account.marks.get(symbol, 0.0)
        if instrument.kind == "future":
            worth -= account.marks.get(symbol, 0.0)
        total += quantity * worth * instrument.multiplier
    return total
