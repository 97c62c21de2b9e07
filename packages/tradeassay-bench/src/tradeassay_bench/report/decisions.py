"""Pack decisions and conversations for a page: every text once, compressed, for ``decisions.js``.

Prompts repeat earlier texts. Unpacked, they would multiply the size of a page.
"""

from __future__ import annotations

import base64
import gzip
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from tradeassay.report import numbers
from tradeassay_bench.core.orders import Order
from tradeassay_bench.runs.summary.rows import DecisionNote

BUDGET = 300_000
"""The maximum number of characters of a page's decisions.

Conversations are omitted first, then quiet sessions.
"""


class PackedTurn(msgspec.Struct, frozen=True, array_like=True):
    """A question and its answer. Texts are indices into the list of texts; -1 means no text."""

    purpose: str
    attempt: int
    asked: tuple[tuple[str, int], ...]
    said: int
    calls: tuple[tuple[str, int, int, str], ...]
    error: int


class PackedDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision in the format of ``decisions.js``.

    ``of`` is the name of the agent, if several agents share a list.
    """

    session: str
    reason: str = ""
    failed: bool = False
    problems: tuple[str, ...] = ()
    orders: tuple[tuple[str, str, str, str, str], ...] = ()
    more: int = 0
    attempts: int = 0
    tokens: int = 0
    cost: str = ""
    turns: tuple[PackedTurn, ...] = ()
    why: str = ""
    of: str = ""
    link: str = ""


class DecisionPack:
    """Collects decisions. :meth:`encoded` returns the text for a page."""

    def __init__(self) -> None:
        self.rows: list[PackedDecision] = []
        self.size = 0
        self._texts: dict[str, int] = {}

    def add(self, note: DecisionNote, *, talk: bool = True, of: str = "", link: str = "") -> None:
        """Add a decision. Without ``talk`` its conversation is omitted."""
        orders = []
        for placed in note.orders:
            order = placed.order
            confidence = ""
            if order.confidence is not None:
                confidence = numbers.written(order.confidence, "share")
            orders.append((order_words(order), placed.tone, placed.fate, confidence, order.reason))
        turns = []
        for turn in note.turns if talk else ():
            questions = tuple((role, self._text(text)) for role, text in turn.asked)
            reply = self._text(turn.said)
            calls = tuple(
                (
                    call.name,
                    self._text(call.arguments),
                    self._text(call.result or ""),
                    call.found_in,
                )
                for call in turn.calls
            )
            error = self._text(turn.error or "")
            turns.append(PackedTurn(turn.purpose, turn.attempt, questions, reply, calls, error))
        self.rows.append(
            PackedDecision(
                session=note.session,
                reason=note.reason,
                failed=note.failed,
                problems=note.problems,
                orders=tuple(orders),
                more=note.more_orders,
                attempts=note.attempts,
                tokens=note.tokens,
                cost=numbers.dollars(note.usd) if note.tokens else "",
                turns=tuple(turns),
                why=note.why,
                of=of,
                link=link,
            )
        )

    def _text(self, text: str) -> int:
        if not text:
            return -1
        if text not in self._texts:
            self.size += len(text)
        return self._texts.setdefault(text, len(self._texts))

    def encoded(self) -> str:
        """Return the pack as text. Equal decisions give equal text."""
        data = msgspec.json.encode({"texts": list(self._texts), "rows": self.rows})
        return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def packed(
    accounts: Sequence[Sequence[DecisionNote]], budget: int = BUDGET
) -> list[tuple[str, int, int]]:
    """Return the packs of a page's accounts, with their numbers of decisions and conversations.

    If the packs exceed ``budget`` characters, all accounts omit the same amount.
    """
    packs: list[tuple[str, int, int]] = []
    for talks, quiet in ((None, None), (24, None), (6, None), (2, 150), (2, 60), (0, 20)):
        packs = [_pack(notes, talks, quiet) for notes in accounts]
        if sum(len(text) for text, _, _ in packs) <= budget:
            break
    return packs


def _pack(
    notes: Sequence[DecisionNote], talks: int | None, quiet: int | None
) -> tuple[str, int, int]:
    """Return a pack with ``talks`` conversations, and its numbers of decisions and conversations.

    Of the sessions without a conversation, it contains the ``quiet`` latest.
    """
    pack = DecisionPack()
    spoken = [note for note in notes if note.turns]
    order = {"mistakes": 0, "large loss": 1, "large gain": 1, "much traded": 2}
    chosen = sorted(range(len(spoken)), key=lambda place: order.get(spoken[place].why, 3))
    kept = {id(spoken[place]) for place in chosen[: len(chosen) if talks is None else talks]}
    left = len(notes) if quiet is None else quiet
    for note in notes:
        if id(note) in kept or (note.failed and left > -60) or left > 0:
            left -= 1
            pack.add(note, talk=id(note) in kept)
    return pack.encoded(), len(pack.rows), sum(bool(row.turns) for row in pack.rows)


def tools_of(notes: Iterable[DecisionNote]) -> list[str]:
    """Return the names of the called tools, the most frequent first."""
    counts = Counter[str]()
    for turn in chain.from_iterable(note.turns for note in notes):
        counts.update(call.name for call in turn.calls)
    return sorted(counts, key=lambda name: (-counts[name], name))


def order_words(order: Order) -> str:
    """Return an order as text: ``AAPL to 10.0% of the account``, ``buy 20 MSFT, limit 410.5``."""
    side = "" if order.side is None else f"{order.side.lower()} "
    amount = f"{order.amount:,.10g}"
    text = {
        "shares": f"{side}{amount} {order.symbol}",
        "dollars": f"{side}{order.symbol} for {amount}",
        "target_weight": f"{side}{order.symbol} to {numbers.number(order.amount, unit='fraction')} "
        "of the account",
        "target_value": f"{side}{order.symbol} to a value of {amount}",
        "target_shares": f"{side}{order.symbol} to {amount} shares",
    }[order.unit]
    if order.kind == "limit" and order.limit_price is not None:
        text += f", limit {order.limit_price:g}"
    if order.kind == "stop" and order.stop_price is not None:
        text += f", stop {order.stop_price:g}"
    return text
