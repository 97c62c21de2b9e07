"""Read a model's answer, and check that its numbers are consistent and its purchases affordable.

Models see the texts of the complaints, so a change of wording needs a new version.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from tradeassay_bench.benchmarks.error_messages import in_plain_words, unknown_fields
from tradeassay_bench.benchmarks.protocol import schema_of
from tradeassay_bench.benchmarks.stockbench.briefing import Briefing, Name
from tradeassay_bench.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay_bench.core.orders import Order
from tradeassay_bench.llm.prompting import Refused, answer_object, unreadable

Action = Literal["increase", "hold", "decrease", "close"]
T = TypeVar("T", bound=msgspec.Struct)
Amount = Annotated[float, Meta(ge=0)]
LONGEST_REASON = 1_000
_SPACE = re.compile(r"\s+")


class AnswerComplaint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One mistake in an answer, in words for the model."""

    kind: str
    detail: str
    symbol: str | None = None


class AnswerFeedback(msgspec.Struct, frozen=True, kw_only=True):
    """All mistakes in an answer."""

    failures: tuple[AnswerComplaint, ...]
    kind: str = "feedback"


class AnswerRefused(Refused):
    """A refused answer. All its complaints are of the same kind."""

    def __init__(self, *complaints: AnswerComplaint) -> None:
        super().__init__(complaints[0].kind, *map(in_words, complaints))
        self.complaints = complaints


class Picked(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the overview. Unknown fields are ignored."""

    analyse: list[str]
    reason: str = ""


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one name. The actions hold and close need no target."""

    action: Action
    reasons: list[str]
    confidence: Annotated[float, Meta(ge=0, le=1)]
    target_cash_amount: Amount | None = None
    target_shares: Amount | None = None


class _Decisions(msgspec.Struct, frozen=True, kw_only=True):
    decisions: dict[str, object]


class _DecisionsAsked(msgspec.Struct, frozen=True, kw_only=True):
    decisions: dict[str, Decided]


PICKED_SCHEMA = schema_of(Picked)
DECISIONS_SCHEMA = schema_of(_DecisionsAsked)


class _DecidedLoosely(Decided, frozen=True, kw_only=True):
    reasons: list[str] | str  # type: ignore[assignment]  # a single reason is read too


_FIELDS = tuple(field.name for field in msgspec.structs.fields(Decided))
_CHOICES = {
    "action": "increase, hold, decrease or close",
    "confidence": "a number from 0 to 1",
    "target_cash_amount": "a number, 0 or more",
    "target_shares": "a number, 0 or more",
}


def read_picks(
    text: str, symbols: Collection[str], most: int
) -> tuple[tuple[str, ...], tuple[AnswerComplaint, ...]]:
    """Return the picked names that exist, and complaints about unknown or surplus names.

    Raises :class:`AnswerRefused` for an answer of the wrong form.
    """
    picked = _read(text, Picked)
    names = tuple(dict.fromkeys(picked.analyse))
    known = tuple(name for name in names if name in symbols)
    wrong = [
        _complaint("schema", "there is no such stock today", name)
        for name in names
        if name not in symbols
    ]
    if len(known) > most:
        wrong.append(_complaint("schema", f"{len(known)} stocks were named; {most} at most"))
    return known[:most], tuple(wrong)


def read_decisions(
    text: str, symbols: Collection[str]
) -> tuple[dict[str, Decided], tuple[AnswerComplaint, ...]]:
    """Return the readable decisions, and complaints about the unreadable ones.

    Raises :class:`AnswerRefused` for an answer of the wrong form.
    """
    raw = _read(text, _Decisions).decisions
    readable: dict[str, Decided] = {}
    wrong: list[AnswerComplaint] = []
    for symbol, value in raw.items():
        if symbol not in symbols:
            wrong.append(_complaint("schema", "there is no such stock today", symbol))
            continue
        try:
            read = msgspec.convert(value, _DecidedLoosely)
        except msgspec.ValidationError as error:
            wrong.append(
                _complaint("schema", _validation_problem(str(error), value, _FIELDS), symbol)
            )
            continue
        if read.target_cash_amount is None and read.action in ("increase", "decrease"):
            wrong.append(_complaint("schema", f"{read.action} needs a target_cash_amount", symbol))
            continue
        decided = msgspec.structs.asdict(read)
        if isinstance(read.reasons, str):
            decided["reasons"] = [read.reasons]
        if read.action == "decrease" and read.target_cash_amount == 0.0:
            decided["action"] = "close"
        readable[symbol] = Decided(**decided)
    return readable, tuple(wrong)


def _read(text: str, form: type[T]) -> T:
    """Return an answer in its expected form, found by its first field.

    Raises :class:`AnswerRefused` for an answer of the wrong form.
    """
    fields = form.__struct_fields__
    body = answer_object(text, fields[0])
    if body is None:
        detail = f"the answer holds no JSON object that can be read: {unreadable(text)}"
        raise AnswerRefused(_complaint("schema", detail))
    try:
        return msgspec.convert(body, form)
    except msgspec.ValidationError as error:
        raise AnswerRefused(
            _complaint("schema", _validation_problem(str(error), body, fields))
        ) from None


def _validation_problem(error: str, body: object, fields: Sequence[str]) -> str:
    """Return a validation error in words for the model, with the names of unknown fields."""
    words = in_plain_words(error, fields=fields, choices=_CHOICES)
    strange = unknown_fields(body, fields) if isinstance(body, dict) else []
    if not strange:
        return words
    return (
        f"{words}; unknown: {', '.join(name[:40] for name in strange[:5])}; the fields are "
        f"{', '.join(fields)}"
    )


def in_words(complaint: AnswerComplaint) -> str:
    """Return a complaint as a sentence."""
    if complaint.symbol is None:
        return complaint.detail
    return f"{complaint.symbol}: {complaint.detail}"


def _complaint(kind: str, detail: str, symbol: str | None = None) -> AnswerComplaint:
    return AnswerComplaint(kind=kind, detail=detail, symbol=symbol)


CENT = 0.01
"""Tolerance of values, because they are shown in cents."""
DUST = 1e-9
DRIFT = 0.1
"""Fraction by which a position may drift past its target without contradicting the action."""


def select_valid_orders(
    decisions: Mapping[str, Decided], briefing: Briefing
) -> tuple[tuple[Order, ...], int, tuple[AnswerComplaint, ...]]:
    """Return the orders of the valid decisions, the number of valid decisions, and complaints.

    A target that is met within the tolerance needs no order and is not a mistake. Sales come first.
    Purchases are accepted in the given order while the account can pay for them.
    """
    stand: dict[str, Decided] = {}
    wrong: list[AnswerComplaint] = []
    idle = 0
    for symbol, decided in decisions.items():
        name = briefing.by_symbol[symbol]
        if _is_met(name, decided, briefing.config):
            idle += 1
        elif detail := _arithmetic(name, decided, briefing.config.tolerance):
            wrong.append(_complaint("arithmetic", detail, symbol))
        else:
            stand[symbol] = decided
    paid, short = _payable(stand, briefing)
    orders = [
        _order(briefing.by_symbol[symbol], decided)
        for symbol, decided in stand.items()
        if symbol in paid and not _changes_nothing(briefing.by_symbol[symbol], decided)
    ]
    if not briefing.config.spends_cash_only:
        orders.sort(key=lambda order: order.side == "BUY")
    return tuple(orders), idle + len(paid), (*wrong, *short)


def _changes_nothing(name: Name, decided: Decided) -> bool:
    return decided.action == "hold" or (decided.action == "close" and name.shares == 0.0)


def _is_met(name: Name, decided: Decided, config: StockbenchConfig) -> bool:
    """Return whether a position already has the target of an increase or a decrease.

    Under ``corrected`` this includes a position that price changes have moved slightly past the
    target.
    """
    if (
        decided.action not in ("increase", "decrease")
        or name.shares == 0.0
        or decided.target_shares is not None
    ):
        return False
    assert decided.target_cash_amount is not None
    more = decided.target_cash_amount - name.value
    past = (more < 0) == (decided.action == "increase") and decided.target_cash_amount > 0
    room = DRIFT if past and config.keeps_valid_decisions else config.tolerance
    return abs(more) <= room * name.value + CENT


def _payable(
    decisions: Mapping[str, Decided], briefing: Briefing
) -> tuple[set[str], list[AnswerComplaint]]:
    """Return the symbols of the decisions that can be traded and paid for, and complaints."""
    config, rules = briefing.config, briefing.rules
    fine: set[str] = set()
    wrong: list[AnswerComplaint] = []
    buys: list[tuple[str, float]] = []
    money = briefing.cash
    for symbol, decided in decisions.items():
        name = briefing.by_symbol[symbol]
        if _changes_nothing(name, decided):
            fine.add(symbol)
        elif name.price is None:
            wrong.append(
                _complaint("liquidity", "it does not trade today and can only be held", symbol)
            )
        elif decided.action == "increase" and not name.buyable:
            wrong.append(
                _complaint("liquidity", "it has left the universe and cannot be bought", symbol)
            )
        else:
            wanted = 0.0 if decided.action == "close" else decided.target_cash_amount
            if decided.action != "close" and decided.target_shares is not None:
                wanted = decided.target_shares * name.price
            assert wanted is not None
            change = wanted - name.value
            if change > 0:
                buys.append((symbol, change * (1.0 + rules.buy_cost)))
                continue
            fine.add(symbol)
            if not config.spends_cash_only:
                money -= change * (1.0 - rules.sell_cost)
    spent = 0.0
    for symbol, need in buys:
        used = 0.0 if config.spends_cash_only else spent
        if used + need <= money * (1.0 + DUST) + CENT:
            fine.add(symbol)
            spent += need
        else:
            detail = f"the purchase needs {need:.2f}, costs included; {money - used:.2f} is left"
            wrong.append(_complaint("liquidity", detail, symbol))
    return fine, wrong


def _arithmetic(name: Name, decided: Decided, tolerance: float) -> str | None:
    """Return the contradiction between a decision's action, target and shares, or None."""
    action, value = decided.action, name.value
    target, shares = decided.target_cash_amount, decided.target_shares
    if action == "close":
        return "close leaves nothing, the target must be 0" if target or shares else None
    if action == "hold":
        if target is not None and abs(target - value) > tolerance * value + CENT:
            return f"hold keeps {value:.2f}, the target says {target:.2f}"
        if shares is not None and abs(shares - name.shares) > tolerance * name.shares:
            return f"hold keeps {name.shares:g} shares, the target says {shares:g}"
        return None
    assert target is not None
    if action == "decrease" and target == 0.0:
        return "decrease to 0 is close"
    if target <= value + CENT / 2 if action == "increase" else target >= value - CENT / 2:
        return (
            f"its worth is {value:.2f}, and {action} with a target_cash_amount of {target:.2f} "
            "contradicts "
            "itself; target_cash_amount is what the position shall be worth after the trade"
        )
    if shares is not None and name.price is not None:
        worth = shares * name.price
        if abs(worth - target) > tolerance * target:
            return (
                f"{shares:g} shares at {name.price:g} are {worth:.2f}, the target is {target:.2f}"
            )
        if (shares > name.shares) != (action == "increase") or shares == name.shares:
            return f"{action}: {shares:g} shares are wanted, {name.shares:g} are held"
    if action == "decrease" and name.shares == 0.0:
        return "nothing of it is held, so it cannot be sold"
    return None


def _order(name: Name, decided: Decided) -> Order:
    by_shares = decided.action == "close" or decided.target_shares is not None
    amount = decided.target_shares if by_shares else decided.target_cash_amount
    return Order(
        symbol=name.symbol,
        amount=0.0 if decided.action == "close" else float(amount or 0.0),
        unit="target_shares" if by_shares else "target_value",
        side="BUY" if decided.action == "increase" else "SELL",
        confidence=float(decided.confidence),
        reason=_SPACE.sub(" ", "; ".join(decided.reasons)).strip()[:LONGEST_REASON],
    )
