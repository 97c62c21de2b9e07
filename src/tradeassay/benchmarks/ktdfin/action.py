"""The action: what ``submit_action`` takes, how it becomes orders, and the rules that orders must obey."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from tradeassay.benchmarks.error_messages import in_plain_words
from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.wire import BadArguments, Stock, Wire
from tradeassay.benchmarks.protocol import schema_of
from tradeassay.core.dialogue import ToolSpec
from tradeassay.core.errors import UNDECODABLE, DataError
from tradeassay.core.measure import plain_sum
from tradeassay.core.orders import Order, Side
from tradeassay.llm.prompting import unreadable

NO_SUCH = "there is no stock with that stock_id; use an id exactly as shown"
SLACK = 1e-9
"""Weights and money are compared with this relative slack."""


class ActionViolation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One broken rule. ``stock_id`` is None where the action as a whole breaks it."""

    rule: str
    detail: str
    stock_id: Stock | None = None


class Move(NamedTuple):
    """An order with what it means at the last close: shares held, shares traded (signed), price, column."""

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
        """Shares held when it is done."""
        return self.held + self.change


Rule = Callable[[Sequence[Move], Desk], Iterable[ActionViolation]]


def check_orders(orders: Sequence[Order], desk: Desk) -> tuple[ActionViolation, ...]:
    """Return every rule that the orders break, in the order of :data:`RULES`."""
    strangers = tuple(_reach(orders, desk))
    away = {violation.stock_id.symbol for violation in strangers if violation.stock_id is not None}
    moves = [move_of(order, desk) for order in orders if order.symbol not in away]
    broken = [*_count(orders, desk), *strangers]
    for rule in RULES:
        broken.extend(rule(moves, desk))
    return tuple(broken)


def move_of(order: Order, desk: Desk) -> Move:
    """Return what an order means at the last close."""
    column = desk.view.column(order.symbol)
    position = desk.account.positions.get(order.symbol)
    held = 0.0 if position is None else position.quantity
    price = float(desk.last_close[column])
    if order.unit == "shares":
        change = order.amount if order.side == "BUY" else -order.amount
    elif order.amount == 0.0:
        change = -held
    else:
        change = order.amount * desk.account.nav / price - held if price > 0 else 0.0
    return Move(order, column, price, held, 0.0 if position is None else position.sellable, change)


def _count(orders: Sequence[Order], desk: Desk) -> Iterable[ActionViolation]:
    most = desk.config.max_candidates
    if len(orders) > most:
        yield ActionViolation(rule="max_candidates", detail=f"{len(orders)} orders; at most {most} per step")
    seen: set[str] = set()
    for order in orders:
        if order.symbol in seen:
            said = "more than one order for a name"
            yield ActionViolation(rule="duplicate", detail=said, stock_id=Stock(order.symbol))
        seen.add(order.symbol)


def _reach(orders: Sequence[Order], desk: Desk) -> Iterable[ActionViolation]:
    """Only members may be bought, and only holdings sold."""
    members, held = desk.members, desk.account.positions
    for order in orders:
        if order.symbol in (members if order.side == "BUY" else held):
            continue
        stock = Stock(order.symbol)
        try:
            desk.column(stock)
        except DataError:
            yield ActionViolation(rule="universe", detail=NO_SUCH, stock_id=stock)
            continue
        if order.side == "BUY":
            said = "not in the universe today: it cannot be bought"
            yield ActionViolation(rule="universe", detail=said, stock_id=stock)
        elif order.side == "SELL":
            said = "nothing of it is held: it cannot be sold"
            yield ActionViolation(rule="not_held", detail=said, stock_id=stock)


def _side(moves: Sequence[Move], desk: Desk) -> Iterable[ActionViolation]:
    """A side that is given with a target must agree with it. Which of the two is meant is not for us to say."""
    for move in moves:
        if move.order.unit != "target_weight" or not move.price > 0:
            continue
        weight, side, target = desk.account.weight(move.order.symbol), move.order.side, move.order.amount
        if side is not None and side != _side_of(move.order.amount, weight):
            said = (
                f"its weight is {desk.share(weight):.4f}, and {side} with a target_weight of {target:.4f} "
                "contradicts itself; a target_weight is the weight after the trade"
            )
            yield ActionViolation(rule="side", detail=said, stock_id=move.stock)


def _side_of(target: float, weight: float) -> Side:
    return "BUY" if target > weight else "SELL"


def _single_weight(moves: Sequence[Move], desk: Desk) -> Iterable[ActionViolation]:
    """No purchase may bring a name above the limit."""
    most, nav = desk.config.max_weight, desk.account.nav
    for move in moves:
        if move.order.side != "BUY":
            continue
        target = move.order.unit == "target_weight"
        weight = move.order.amount if target else move.after * move.price / nav if nav > 0 else 0.0
        if weight > most * (1 + SLACK):
            said = f"its weight would be {desk.share(weight):.4f}; the most is {most:g}"
            yield ActionViolation(rule="max_weight", detail=said, stock_id=move.stock)


def _positions(moves: Sequence[Move], desk: Desk) -> Iterable[ActionViolation]:
    """No more names than allowed, counted as if every order were filled."""
    held = set(desk.account.positions)
    for move in moves:
        if move.after > 0:
            held.add(move.order.symbol)
        else:
            held.discard(move.order.symbol)
    most = desk.config.max_positions
    opened = any(move.held == 0 and move.after > 0 for move in moves)
    if opened and len(held) > most:
        yield ActionViolation(rule="max_positions", detail=f"{len(held)} positions; at most {most}")


def _settlement(moves: Sequence[Move], desk: Desk) -> Iterable[ActionViolation]:
    """Shares that T+1 locks, or that are not held, cannot be sold."""
    for move in moves:
        if move.order.side != "SELL" or move.change >= 0:
            continue
        # The exchange rounds a target to whole lots: an excess of less than a lot is not a mistake.
        slack = 0.0 if move.order.unit == "shares" or move.order.amount == 0.0 else _within(move, desk)
        if -move.change > move.sellable + slack + SLACK:
            free = desk.shares_shown(move.column, move.sellable)
            locked = "T+1 locks the rest" if move.sellable < move.held else "there is no more"
            said = f"{free:g} shares can be sold; {locked}"
            yield ActionViolation(rule="t_plus_1", detail=said, stock_id=move.stock)


def _lots(moves: Sequence[Move], desk: Desk) -> Iterable[ActionViolation]:
    """Shares are bought in lots, and sold in lots or together with the whole odd lot."""
    lot = desk.rules.lot
    for move in moves:
        if move.order.unit != "shares":
            continue
        amount = move.order.amount
        odd = move.held % lot if move.order.side == "SELL" else 0.0
        if amount % lot != 0.0 and (odd == 0.0 or amount % lot != odd):
            said = f"{amount:g} shares are no multiple of {lot:g}"
            yield ActionViolation(rule="lot", detail=said, stock_id=move.stock)
    # Less than one lot by weight would not become an order at all.
    for move in moves:
        if (
            move.order.unit == "target_weight"
            and move.order.side == "BUY"
            and move.price > 0
            and 0 < move.change < _within(move, desk)
        ):
            # What to do about it can always be followed.
            least = math.ceil((move.held + lot) * move.price / desk.account.nav * 1e4) / 1e4
            if desk.shown is not None:
                said = f"the purchase is too small: the weight must grow by {LEAST:g} or more"
            elif least > desk.config.max_weight * (1 + SLACK):
                most = f"{desk.config.max_weight:g}"
                said = f"one lot of it is worth more than the largest weight of {most}, so it cannot be bought"
            else:
                said = f"the target is worth less than one lot; the least is a target_weight of {least:.4f}"
            yield ActionViolation(rule="lot", detail=said, stock_id=move.stock)


def _within(move: Move, desk: Desk) -> float:
    """Return how many shares are too few to count: one lot, or what is worth LEAST where levels are hidden.

    An answer that hangs on a lot's price tells that price to whoever asks often enough."""
    return desk.rules.lot if desk.shown is None else LEAST * desk.account.nav / move.price


def _price_limits(moves: Sequence[Move], desk: Desk) -> Iterable[ActionViolation]:
    """Under the paper's convention no BUY of what closed limit-up, no SELL of what closed limit-down."""
    if not desk.config.refuses_at_limit:
        return
    for move in moves:
        if move.order.side == "BUY" and desk.at_limit_up[move.column]:
            yield ActionViolation(rule="limit_up", detail="closed at its upper limit: no BUY", stock_id=move.stock)
        elif move.order.side == "SELL" and desk.at_limit_down[move.column]:
            said = "closed at its lower limit: no SELL"
            yield ActionViolation(rule="limit_down", detail=said, stock_id=move.stock)


def _cash(moves: Sequence[Move], desk: Desk) -> Iterable[ActionViolation]:
    """Purchases must fit the cash and the proceeds of the sales, at the last close and before costs."""
    spent = plain_sum(move.change * move.price for move in moves if move.change > 0 and move.price > 0)
    raised = plain_sum(-move.change * move.price for move in moves if move.change < 0 and move.price > 0)
    room = desk.account.cash + raised
    if spent > room * (1 + 1e-6) + 0.01:
        said = f"purchases of {spent:.2f} do not fit {room:.2f} of cash and proceeds"
        if desk.shown is not None:
            said = "the purchases do not fit cash and proceeds"
        yield ActionViolation(rule="cash", detail=said)


RULES: tuple[Rule, ...] = (_side, _single_weight, _positions, _settlement, _lots, _price_limits, _cash)


LEAST = 0.01
"""The least change of a weight where levels are hidden."""
SAME = 5e-4
"""A target this close to the present weight is met: weights are shown with four decimals."""
DRIFT = 0.1
"""By how much of itself a weight may have drifted past a target before the order's side contradicts the target."""


def already_so(move: Move, desk: Desk) -> bool:
    """Tell whether a target is met as nearly as whole lots allow: such an order changes nothing, and is sound.

    A position that prices have carried a little past the target that it is bought or sold towards is there too."""
    if move.order.unit != "target_weight" or not move.price > 0 or not move.held > 0:
        return False
    weight = desk.account.weight(move.order.symbol)
    off = abs(move.order.amount - weight)
    past = move.order.side not in (None, _side_of(move.order.amount, weight)) and off <= DRIFT * weight
    return off <= SAME or (move.order.amount > 0.0 and (past or abs(move.change) < _within(move, desk)))


def sift(orders: Sequence[Order], desk: Desk) -> tuple[tuple[Order, ...], tuple[ActionViolation, ...]]:
    """Return the orders that can stand together, and what is wrong with each of the others.

    Sales are looked at first, because their proceeds pay for purchases; then orders in the order given, each kept
    if it breaks no rule together with those kept before it. Orders that would change nothing are left out
    silently."""
    known: list[Order] = []
    for given in orders:
        order = given
        # Where a share is another unit, which hides the lots, an order in shares is one by weight.
        if desk.shown is not None and order.unit == "shares" and order.symbol in desk.view.symbols:
            order = _by_weight(order, desk)
        if order.symbol in desk.account.positions and already_so(move_of(order, desk), desk):
            continue
        if order.side is None:
            side = _side_of(order.amount, desk.account.weight(order.symbol))
            order = msgspec.structs.replace(order, side=side)
        known.append(order)
    if not check_orders(known, desk):
        return tuple(known), ()
    kept: list[Order] = []
    broken: list[ActionViolation] = []
    for order in sorted(known, key=lambda order: order.side == "BUY"):
        wrong, stock = check_orders([*kept, order], desk), Stock(order.symbol)
        if not wrong:
            kept.append(order)
        broken += [msgspec.structs.replace(one, stock_id=one.stock_id or stock) for one in wrong]
    stand = {id(order) for order in kept}
    return tuple(order for order in known if id(order) in stand), tuple(broken)


def _by_weight(order: Order, desk: Desk) -> Order:
    column = desk.view.column(order.symbol)
    shown = desk.price(column, float(desk.last_close[column]), "close") or 0.0
    change = order.amount * shown / desk.account.nav * (1.0 if order.side == "BUY" else -1.0)
    target = round(desk.account.weight(order.symbol) + change, 4)
    # Shares are shown in two digits: what would be left of a sale of all of them is sold too.
    return msgspec.structs.replace(order, amount=target if target > LEAST / 2 else 0.0, unit="target_weight")


NAME = "submit_action"
_LONGEST_REASON = 2_000
_SPACE = re.compile(r"\s+")


class OrderAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One order of an action. Exactly one of ``target_weight`` and ``shares`` is given; only ``shares`` need a
    ``side``, because a target says itself whether it is above or below what is held."""

    stock_id: Stock
    confidence: Annotated[float, Meta(ge=0, le=1)]
    reason: str
    side: Literal["BUY", "SELL"] | None = None
    target_weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    shares: Annotated[float, Meta(gt=0, le=2**53)] | None = None


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step's action. No orders means to leave everything as it is."""

    orders: list[OrderAsked]
    overall_reason: str = ""


SUBMIT = ToolSpec(
    name=NAME,
    description=(
        "Submit today's orders and end the day. Each order has either target_weight (the share of the account's "
        "value that the stock shall have; 0 sells all of it) or shares (how many to trade, with side). An empty "
        "list of orders trades nothing."
    ),
    schema=schema_of(Action),
)


class _Loose(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    orders: list[msgspec.Raw]
    overall_reason: str = ""


FIELDS = tuple(field.name for field in msgspec.structs.fields(OrderAsked))
_CHOICES = {"side": "BUY or SELL", "confidence": "a number from 0 to 1"}


def read_submission(raw: str, wire: Wire, min_reason: int) -> tuple[tuple[Order, ...], str, tuple[str, ...]]:
    """Return an action's orders in true terms, its reason, and in words what is wrong with the orders left out.

    Raises :class:`BadArguments` for arguments that are not an action at all."""
    try:
        action = msgspec.json.decode(raw or "{}", type=_Loose)
    except msgspec.ValidationError as error:
        names = ("orders", "overall_reason")
        raise BadArguments(in_plain_words(str(error), fields=names, may_repeat=wire.may_repeat)) from None
    except UNDECODABLE:
        raise BadArguments(f"the arguments are not one JSON object: {unreadable(raw)}") from None
    orders: list[Order] = []
    unread: list[str] = []
    for number, one in enumerate(action.orders, start=1):
        try:
            orders.append(_read_order(bytes(one), wire, min_reason))
        except BadArguments as error:
            unread.append(f"order {number}: {error}")
        except DataError:
            unread.append(f"order {number}: {NO_SUCH}")
    reason = wire.gate.incoming(_plain(action.overall_reason)[:_LONGEST_REASON])
    return tuple(orders), reason, tuple(unread)


def _read_order(raw: bytes, wire: Wire, min_reason: int) -> Order:
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
    # A number of shares stays in the shown unit here: whole lots of the true one would tell their price.
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
