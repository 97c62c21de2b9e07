"""The daily protocol as it is played from ``-v2`` on: words instead of blocks, and rules that a model can satisfy.

Prompts are prose and plain tables and end with what is asked; refusals are prose with the smallest complete
example; a sound order stands beside one that is not, which is counted (``dropped``); an error of the provider or
a cut-off answer is no attempt; the same wrong answer twice ends the attempts; only the last refused answer stays
in the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from tradeassay.benchmarks.ask_again import (
    CUT_OFF,
    REPEATED,
    Patience,
    cell,
    left_in_words,
    listed,
    shortened,
    table,
    unknown_fields,
    was_cut,
)
from tradeassay.benchmarks.daily.conversation import FINAL, PURPOSE, Daily, DailyConfig
from tradeassay.benchmarks.daily.day import complaint
from tradeassay.benchmarks.daily.prompts import PROMPTS_V2
from tradeassay.benchmarks.error_messages import in_plain_words, refusal_in_words
from tradeassay.benchmarks.protocol import ProtocolConfig, protocols
from tradeassay.core.agent import Observation, Rules
from tradeassay.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply
from tradeassay.core.events import Rejected
from tradeassay.core.orders import Decision, Failure, Order
from tradeassay.llm.prompting import answer_object

DROPPED = "dropped"
_BUY = '{"symbol": "SYMBOL", "unit": "target_weight", "amount": 0.05, "reason": "why"}'
_SELL = '{"symbol": "ANOTHER", "unit": "target_weight", "amount": 0, "reason": "why"}'
SMALLEST = f'{{"orders": [{_BUY}], "reason": "what you are doing"}}'
_FIELDS = tuple(field.name for field in msgspec.structs.fields(Order))
_CHOICES = {
    "unit": "target_weight, target_value, target_shares, shares or dollars", "side": "BUY or SELL",
    "kind": "market, limit or stop", "tif": "day or gtc", "amount": "a number",
}  # fmt: skip


class DailyV2Config(DailyConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model plays a daily benchmark from ``-v2`` on: the same settings."""


class _Refused(Exception):
    """An answer of which nothing can stand."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@protocols.register("daily-v2")
class DailyV2(Daily):
    """The conversation rules of one episode. See :class:`~tradeassay.benchmarks.protocol.ModelProtocol`."""

    Config: ClassVar[type[ProtocolConfig]] = DailyV2Config
    prompts: ClassVar[tuple[str, ...]] = PROMPTS_V2.files

    def dialogue(self, observation: Observation) -> Dialogue:
        """Ask for one day's orders; its messages start afresh every day."""
        patience = Patience(self.config.attempts)
        given = self._given(observation)
        opening = self._opening(observation, given)
        failures: list[Failure] = []
        tail: tuple[Message, ...] = ()
        while True:
            reply = yield AskModel(
                purpose=PURPOSE, messages=(*opening, *tail), attempt=patience.number, given=given
            )
            if reply.error is not None or reply.error_kind is not None:
                kind = reply.error_kind or "unreachable"
                failures.append(Failure(kind=kind, detail=reply.error or "no answer"))
                if kind in FINAL or patience.silence():
                    return _failed("no answer came", failures)
                continue
            try:
                orders, reason, dropped = self._read(reply.text, observation)
            except _Refused as refused:
                if was_cut(reply):
                    failures.append(Failure(kind=CUT_OFF, detail="the answer was cut off at the token limit"))
                    if patience.silence():
                        return _failed("every answer was cut off at the token limit", failures)
                    tail = (Message(role="user", text=PROMPTS_V2.fill("cut", example=SMALLEST)),)
                    continue
                failures.append(Failure(kind="schema", detail=str(refused)))
                if patience.refuse(reply):
                    failures.append(Failure(kind=REPEATED, detail="the same answer came again"))
                if patience.left <= 0:
                    failures.append(Failure(kind="give_up", detail=f"{patience.attempts} attempts"))
                    return _failed("no usable answer", failures)
                tail = _again(reply, refused.lines, patience.left)
                told = msgspec.json.encode({"failures": [{"detail": line} for line in refused.lines]}).decode()
                given = msgspec.structs.replace(given, feedback=told)
                continue
            failures += [Failure(kind=DROPPED, detail=line) for line in dropped]
            return Decision(orders=orders, reason=reason, failures=tuple(failures))

    def _read(self, text: str, seen: Observation) -> tuple[tuple[Order, ...], str, tuple[str, ...]]:
        """Return the orders that can stand, the reason, and what is wrong with the others."""
        body = answer_object(text, "orders")
        if body is None:
            raise _Refused("the answer holds no JSON object")
        raw = body.get("orders")
        if not isinstance(raw, list):
            strange = unknown_fields(body, ("orders", "reason"))
            named = f"; there is no field {', '.join(strange[:5])}" if strange else ""
            raise _Refused(f"orders must be a list{named}" if "orders" in body else f"orders is missing{named}")
        kept: list[Order] = []
        wrong: list[str] = []
        for number, one in enumerate(raw[: self.config.max_orders], start=1):
            try:
                order = _order(one)
            except msgspec.ValidationError as error:
                wrong.append(f"order {number}: {in_plain_words(str(error), fields=_FIELDS, choices=_CHOICES)}")
                continue
            bad = complaint(Decision(orders=(*kept, order)), seen, self.config.max_orders)
            if bad is None:
                kept.append(order)
            else:
                wrong.append(bad.detail)
        if wrong and not kept:
            raise _Refused(*wrong)
        reason = body.get("reason")
        return tuple(kept), reason if isinstance(reason, str) else "", tuple(wrong)

    def _opening(self, seen: Observation, given: Given) -> tuple[Message, ...]:
        rules = seen.rules
        system = PROMPTS_V2.fill(
            "system",
            buy_cost=f"{rules.buy_cost * 100:g} %",
            sell_cost=f"{rules.sell_cost * 100:g} %",
            rules=_rules(rules),
        )
        shown = msgspec.json.decode(given.observation)
        held = [row["symbol"] for row in shown["positions"]]
        only = (
            f"Only what you hold can be sold: {', '.join(held)}."
            if held
            else "You hold nothing, so nothing can be sold."
        )
        user = PROMPTS_V2.fill(
            "day",
            session=seen.session,
            left=seen.sessions_left,
            currency=rules.currency,
            cash=f"{shown['cash']:.2f}",
            nav=f"{shown['nav']:.2f}",
            positions=_positions(shown["positions"]),
            happened=_happened(shown["since_last_session"], seen),
            names=_names(shown["names"]),
            held=only if rules.long_only else "",
            example=f'{{"orders": [{_BUY}, {_SELL}], "reason": "what you are doing"}}' if held else SMALLEST,
        )
        return Message(role="system", text=system), Message(role="user", text=user)


def _order(raw: object) -> Order:
    order = msgspec.convert(raw, Order)
    # A number is a number: the journal holds floats.
    return msgspec.structs.replace(order, amount=float(order.amount))


def _rules(rules: Rules) -> str:
    lines = ["Only names in the table can be bought; what you hold can always be sold."]
    if rules.long_only:
        lines.append("You can only buy and sell what you hold: no borrowing, no short sales.")
    if rules.t_plus_1:
        lines.append("What was bought in a session cannot be sold before the next one.")
    if rules.lot != 1.0:
        lines.append(f"Purchases are made in multiples of {rules.lot:g}; the rest of an order is left out.")
    else:
        lines.append("Shares are whole; the rest of an order is left out.")
    if rules.max_weight is not None:
        lines.append(f"No purchase may bring a name above a weight of {rules.max_weight:g}.")
    if rules.max_positions is not None:
        lines.append(f"At most {rules.max_positions} names can be held at once.")
    return "\n".join(f"- {line}" for line in lines)


def _positions(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "You hold nothing."
    columns = ("symbol", "shares", "value", "weight", "sessions held")
    return "You hold:\n" + table(columns, (tuple(row.values()) for row in rows))


def _happened(lines: Sequence[str], seen: Observation) -> str:
    words = {f"the order for {event.symbol} was refused: {event.reason}": event for event in seen.since_last
             if isinstance(event, Rejected)}  # fmt: skip
    told = [
        f"the order for {words[line].symbol} was refused: {refusal_in_words(words[line].reason)}"
        if line in words
        else line
        for line in lines
    ]
    return "\nSince the last session:\n" + "\n".join(f"- {line}" for line in told) + "\n" if told else ""


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = ("symbol", "close", "return 1", "return 5", "return 20", "return 60", "trades today")
    return table(columns, (tuple(map(cell, row.values())) for row in rows))


def _again(reply: ModelReply, lines: Sequence[str], left: int) -> tuple[Message, ...]:
    own = (Message(role="assistant", text=shortened(reply.text)),) if reply.text.strip() else ()
    text = PROMPTS_V2.fill("again", wrong=listed(lines), left=left_in_words(left), example=SMALLEST)
    return (*own, Message(role="user", text=text))


def _failed(reason: str, failures: Sequence[Failure]) -> Decision:
    return Decision(status="failed", reason=reason, failures=tuple(failures))
