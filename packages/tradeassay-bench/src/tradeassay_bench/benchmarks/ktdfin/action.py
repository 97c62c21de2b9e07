"""Define the model's action: the arguments of ``submit_action``, its orders, and their rules.

Models see the texts of violations, so a change of wording needs a new version.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.errors import UNDECODABLE, DataError
from tradeassay_bench.benchmarks.error_messages import in_plain_words
from tradeassay_bench.benchmarks.ktdfin.day_view import DayView
from tradeassay_bench.benchmarks.ktdfin.wire import BadArguments, Stock, Wire
from tradeassay_bench.benchmarks.protocol import schema_of
from tradeassay_bench.core.dialogue import ToolSpec
from tradeassay_bench.core.orders import Order, Side
from tradeassay_bench.llm.prompting import unreadable

NO_SUCH = "there is no stock with that stock_id; use an id exactly as shown"
SLACK = 1e-9
"""Relative tolerance in comparisons of weights and amounts."""


class ActionViolation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One broken rule. ``stock_id`` is None if the rule applies to the action as a whole."""

    rule: str
    detail: str
    stock_id: Stock | None = None


class Move(NamedTuple):
    """An order valued at the last close. ``change`` is the signed number of shares to trade."""

    order: Order
    column: int
    price: float
    held: float
    sellable: float
    change: float

    @property
    def stock(self) -> Stock:
        return Stock(self.order.symbol)

    @property
    def after(self) -> float:
        """Return the number of shares held after the trade."""
        return self.held + self.change


Rule = Callable[[Sequence[Move], DayView], Iterable[ActionViolation]]


def check_orders(orders: Sequence[Order], day_view: DayView) -> tuple[ActionViolation, ...]:
    """Return a violation for every rule that the orders break, in the order of :data:`RULES`.

    Violations about the number of orders and about unknown names come first.
    """
    unreachable = tuple(_reach(orders, day_view))
    excluded = {
        violation.stock_id.symbol for violation in unreachable if violation.stock_id is not None
    }
    moves = [move_of(order, day_view) for order in orders if order.symbol not in excluded]
    broken = [*_count(orders, day_view), *unreachable]
    for rule in RULES:
        broken.extend(rule(moves, day_view))
    return tuple(broken)


def move_of(order: Order, day_view: DayView) -> Move:
    """Return an order valued at the last close."""
    column = day_view.view.column(order.symbol)
    position = day_view.account.positions.get(order.symbol)
    held = 0.0 if position is None else position.quantity
    price = float(day_view.last_close[column])
    if order.unit == "shares":
        change = order.amount if order.side == "BUY" else -order.amount
    elif order.amount == 0.0:
        change = -held
    else:
        change = order.amount * day_view.account.nav / price - held if price > 0 else 0.0
    return Move(order, column, price, held, 0.0 if position is None else position.sellable, change)


def _count(orders: Sequence[Order], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield violations of the number of orders: ``max_candidates`` in total, one per name."""
    most = day_view.config.max_candidates
    if len(orders) > most:
        yield ActionViolation(
            rule="max_candidates", detail=f"{len(orders)} orders; at most {most} per step"
        )
    seen: set[str] = set()
    for order in orders:
        if order.symbol in seen:
            detail = "more than one order for a name"
            yield ActionViolation(rule="duplicate", detail=detail, stock_id=Stock(order.symbol))
        seen.add(order.symbol)


def _reach(orders: Sequence[Order], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield violations by purchases of names that are not members and sales of names not held."""
    members, held = day_view.members, day_view.account.positions
    for order in orders:
        if order.symbol in (members if order.side == "BUY" else held):
            continue
        stock = Stock(order.symbol)
        try:
            day_view.column(stock)
        except DataError:
            yield ActionViolation(rule="universe", detail=NO_SUCH, stock_id=stock)
            continue
        if order.side == "BUY":
            detail = "not in the universe today: it cannot be bought"
            yield ActionViolation(rule="universe", detail=detail, stock_id=stock)
        elif order.side == "SELL":
            detail = "nothing of it is held: it cannot be sold"
            yield ActionViolation(rule="not_held", detail=detail, stock_id=stock)


def _side(moves: Sequence[Move], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield violations by orders whose side contradicts the target.

    The intention of such an order is never guessed.
    """
    for move in moves:
        if move.order.unit != "target_weight" or not move.price > 0:
            continue
        weight = day_view.account.weight(move.order.symbol)
        side, target = move.order.side, move.order.amount
        if side is not None and side != _side_of(move.order.amount, weight):
            detail = (
                f"its weight is {day_view.share(weight):.4f}, and {side} with a target_weight of "
                f"{target:.4f} "
                "contradicts itself; a target_weight is the weight after the trade"
            )
            yield ActionViolation(rule="side", detail=detail, stock_id=move.stock)


def _side_of(target: float, weight: float) -> Side:
    return "BUY" if target > weight else "SELL"


def _single_weight(moves: Sequence[Move], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield violations by purchases that bring a name above the largest weight."""
    most, nav = day_view.config.max_weight, day_view.account.nav
    for move in moves:
        if move.order.side != "BUY":
            continue
        if move.order.unit == "target_weight":
            weight = move.order.amount
        else:
            weight = move.after * move.price / nav if nav > 0 else 0.0
        if weight > most * (1 + SLACK):
            detail = f"its weight would be {day_view.share(weight):.4f}; the most is {most:g}"
            yield ActionViolation(rule="max_weight", detail=detail, stock_id=move.stock)


def _positions(moves: Sequence[Move], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield a violation if purchases exceed the limit on positions, assuming that every order
    fills.
    """
    held = set(day_view.account.positions)
    for move in moves:
        if move.after > 0:
            held.add(move.order.symbol)
        else:
            held.discard(move.order.symbol)
    most = day_view.config.max_positions
    opened = any(move.held == 0 and move.after > 0 for move in moves)
    if opened and len(held) > most:
        yield ActionViolation(rule="max_positions", detail=f"{len(held)} positions; at most {most}")


def _settlement(moves: Sequence[Move], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield violations by sales of shares that T+1 locks or that are not held."""
    for move in moves:
        if move.order.side != "SELL" or move.change >= 0:
            continue
        # The exchange rounds a target to whole lots, so an excess of less than a lot is accepted.
        slack = 0.0
        if move.order.unit != "shares" and move.order.amount != 0.0:
            slack = _within(move, day_view)
        if -move.change > move.sellable + slack + SLACK:
            free = day_view.shares_shown(move.column, move.sellable)
            locked = "T+1 locks the rest" if move.sellable < move.held else "there is no more"
            detail = f"{free:g} shares can be sold; {locked}"
            yield ActionViolation(rule="t_plus_1", detail=detail, stock_id=move.stock)


def _lots(moves: Sequence[Move], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield violations by orders that are not in lots or are worth less than a lot.

    A sale may include the whole odd lot.
    """
    lot = day_view.rules.lot
    for move in moves:
        if move.order.unit != "shares":
            continue
        amount = move.order.amount
        odd = move.held % lot if move.order.side == "SELL" else 0.0
        if amount % lot != 0.0 and (odd == 0.0 or amount % lot != odd):
            detail = f"{amount:g} shares are no multiple of {lot:g}"
            yield ActionViolation(rule="lot", detail=detail, stock_id=move.stock)
    # A change of weight worth less than one lot would not become an order.
    for move in moves:
        if (
            move.order.unit == "target_weight"
            and move.order.side == "BUY"
            and move.price > 0
            and 0 < move.change < _within(move, day_view)
        ):
            # The model must be able to follow the advice.
            least = math.ceil((move.held + lot) * move.price / day_view.account.nav * 1e4) / 1e4
            if day_view.shown is not None:
                detail = f"the purchase is too small: the weight must grow by {LEAST:g} or more"
            elif least > day_view.config.max_weight * (1 + SLACK):
                most = f"{day_view.config.max_weight:g}"
                detail = (
                    f"one lot of it is worth more than the largest weight of {most}, so it "
                    "cannot be bought"
                )
            else:
                detail = (
                    "the target is worth less than one lot; the least is a target_weight of "
                    f"{least:.4f}"
                )
            yield ActionViolation(rule="lot", detail=detail, stock_id=move.stock)


def _within(move: Move, day_view: DayView) -> float:
    """Return the number of shares below which a difference is ignored: one lot, or LEAST by weight.

    LEAST is used if levels are hidden. Otherwise a model could infer the price of a lot from many
    questions.
    """
    return (
        day_view.rules.lot if day_view.shown is None else LEAST * day_view.account.nav / move.price
    )


def _price_limits(moves: Sequence[Move], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield violations of the price limits, which are checked only under ``paper``.

    A name that closed at its upper limit cannot be bought. A name that closed at its lower limit
    cannot be sold.
    """
    if not day_view.config.refuses_at_limit:
        return
    for move in moves:
        if move.order.side == "BUY" and day_view.at_limit_up[move.column]:
            yield ActionViolation(
                rule="limit_up", detail="closed at its upper limit: no BUY", stock_id=move.stock
            )
        elif move.order.side == "SELL" and day_view.at_limit_down[move.column]:
            detail = "closed at its lower limit: no SELL"
            yield ActionViolation(rule="limit_down", detail=detail, stock_id=move.stock)


def _cash(moves: Sequence[Move], day_view: DayView) -> Iterable[ActionViolation]:
    """Yield a violation if cash and sale proceeds do not cover the purchases.

    Orders are valued at the last close, before costs.
    """
    priced = [move for move in moves if move.price > 0]
    spent = float(np.sum([move.change * move.price for move in priced if move.change > 0]))
    raised = float(np.sum([-move.change * move.price for move in priced if move.change < 0]))
    room = day_view.account.cash + raised
    if spent > room * (1 + 1e-6) + 0.01:
        detail = f"purchases of {spent:.2f} do not fit {room:.2f} of cash and proceeds"
        if day_view.shown is not None:
            detail = "the purchases do not fit cash and proceeds"
        yield ActionViolation(rule="cash", detail=detail)


RULES: tuple[Rule, ...] = (
    _side,
    _single_weight,
    _positions,
    _settlement,
    _lots,
    _price_limits,
    _cash,
)


LEAST = 0.01
"""The smallest change of a weight if levels are hidden."""
SAME = 5e-4
"""Tolerance between a target and the current weight. Weights are shown with four decimals."""
DRIFT = 0.1
"""Fraction by which a weight may drift past its target without contradicting the order's side."""


def is_target_met(move: Move, day_view: DayView) -> bool:
    """Return whether a position is as close to its target as whole lots allow.

    Such an order is valid and changes nothing. This includes a position that price changes have
    moved slightly past the target of the order.
    """
    if move.order.unit != "target_weight" or not move.price > 0 or not move.held > 0:
        return False
    weight = day_view.account.weight(move.order.symbol)
    off = abs(move.order.amount - weight)
    past = (
        move.order.side not in (None, _side_of(move.order.amount, weight)) and off <= DRIFT * weight
    )
    return off <= SAME or (
        move.order.amount > 0.0 and (past or abs(move.change) < _within(move, day_view))
    )


def select_valid_orders(
    orders: Sequence[Order], day_view: DayView
) -> tuple[tuple[Order, ...], tuple[ActionViolation, ...]]:
    """Return the orders that are valid together, and the violations of the other orders.

    Sales are checked first, because their proceeds pay for purchases. Each order is kept if it
    breaks no rule together with the orders that were already kept. Orders that would change nothing
    are dropped without a violation.
    """
    known: list[Order] = []
    for submitted in orders:
        order = submitted
        # If share counts are rescaled to hide the lots, an order in shares is converted to one by
        # weight.
        if (
            day_view.shown is not None
            and order.unit == "shares"
            and order.symbol in day_view.view.symbols
        ):
            order = _by_weight(order, day_view)
        if order.symbol in day_view.account.positions and is_target_met(
            move_of(order, day_view), day_view
        ):
            continue
        if order.side is None:
            side = _side_of(order.amount, day_view.account.weight(order.symbol))
            order = msgspec.structs.replace(order, side=side)
        known.append(order)
    if not check_orders(known, day_view):
        return tuple(known), ()
    kept: list[Order] = []
    broken: list[ActionViolation] = []
    for order in sorted(known, key=lambda order: order.side == "BUY"):
        wrong, stock = check_orders([*kept, order], day_view), Stock(order.symbol)
        if not wrong:
            kept.append(order)
        for violation in wrong:
            stock_id = violation.stock_id or stock
            broken.append(msgspec.structs.replace(violation, stock_id=stock_id))
    # Keep the order objects as submitted: equal orders are distinguished by identity.
    kept_ids = {id(order) for order in kept}
    return tuple(order for order in known if id(order) in kept_ids), tuple(broken)


def _by_weight(order: Order, day_view: DayView) -> Order:
    """Return an order in shares as an order for a target weight, from displayed share counts."""
    column = day_view.view.column(order.symbol)
    shown = day_view.price(column, float(day_view.last_close[column]), "close") or 0.0
    change = order.amount * shown / day_view.account.nav * (1.0 if order.side == "BUY" else -1.0)
    target = round(day_view.account.weight(order.symbol) + change, 4)
    # Shares are shown with two digits, so a sale of all of them may leave a remainder, which is
    # sold too.
    return msgspec.structs.replace(
        order, amount=target if target > LEAST / 2 else 0.0, unit="target_weight"
    )


NAME = "submit_action"
_LONGEST_REASON = 2_000
_SPACE = re.compile(r"\s+")


class OrderAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One order of an action.

    Exactly one of ``target_weight`` and ``shares`` is given. Only ``shares`` need a ``side``,
    because a target implies it.
    """

    stock_id: Stock
    confidence: Annotated[float, Meta(ge=0, le=1)]
    reason: str
    side: Literal["BUY", "SELL"] | None = None
    target_weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    shares: Annotated[float, Meta(gt=0, le=2**53)] | None = None


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step's action. Without orders nothing is traded."""

    orders: list[OrderAsked]
    overall_reason: str = ""


SUBMIT = ToolSpec(
    name=NAME,
    description=(
        "Submit today's orders and end the day. Each order has either target_weight (the share of "
        "the account's "
        "value that the stock shall have; 0 sells all of it) or shares (how many to trade, with "
        "side). An empty "
        "list of orders trades nothing."
    ),
    schema=schema_of(Action),
)


class _Loose(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    orders: list[msgspec.Raw]
    overall_reason: str = ""


FIELDS = tuple(field.name for field in msgspec.structs.fields(OrderAsked))
_CHOICES = {"side": "BUY or SELL", "confidence": "a number from 0 to 1"}


def read_submission(
    raw: str, wire: Wire, min_reason: int
) -> tuple[tuple[Order, ...], str, tuple[str, ...]]:
    """Return an action's orders with their true symbols, its reason, and the unreadable orders'
    mistakes.

    Raises :class:`BadArguments` for arguments that are not an action.
    """
    try:
        action = msgspec.json.decode(raw or "{}", type=_Loose)
    except msgspec.ValidationError as error:
        names = ("orders", "overall_reason")
        raise BadArguments(
            in_plain_words(str(error), fields=names, may_repeat=wire.may_repeat)
        ) from None
    except UNDECODABLE:
        raise BadArguments(f"the arguments are not one JSON object: {unreadable(raw)}") from None
    orders: list[Order] = []
    unread: list[str] = []
    for number, raw_order in enumerate(action.orders, start=1):
        try:
            orders.append(_read_order(bytes(raw_order), wire, min_reason))
        except BadArguments as error:
            unread.append(f"order {number}: {error}")
        except DataError:
            unread.append(f"order {number}: {NO_SUCH}")
    reason = wire.gate.incoming(_plain(action.overall_reason)[:_LONGEST_REASON])
    return tuple(orders), reason, tuple(unread)


def _read_order(raw: bytes, wire: Wire, min_reason: int) -> Order:
    """Return one order of an action, with its true symbol. Raises :class:`BadArguments`."""
    asked = wire.decode(raw, OrderAsked, FIELDS, _CHOICES)
    if (asked.target_weight is None) == (asked.shares is None):
        given = "neither was" if asked.shares is None else "both were"
        raise BadArguments(f"give either target_weight or shares; {given} given")
    if asked.shares is not None and asked.side is None:
        raise BadArguments("shares need a side, BUY or SELL")
    if len(_plain(asked.reason)) < min_reason:
        least = "empty" if min_reason == 1 else f"shorter than {min_reason} characters"
        raise BadArguments(f"its reason is {least}")
    amount = asked.target_weight if asked.shares is None else asked.shares
    assert amount is not None
    # A number of shares keeps the displayed unit here. Whole true lots would reveal their price.
    real = wire.gate.real_order(
        Order(
            symbol=wire.stock_id(asked.stock_id),
            amount=float(amount),
            unit="target_weight",
            side=asked.side,
            confidence=float(asked.confidence),
            reason=_plain(asked.reason)[:_LONGEST_REASON],
        )
    )
    return real if asked.shares is None else msgspec.structs.replace(real, unit="shares")


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
