"""Enforce a cap on the cost of models.

Money is reserved before every attempt and settled after it. Tokens are counted without a tokenizer.
:func:`estimate_tokens` is for planning. It is approximately right for prose and for JSON with many
numbers. :func:`most_tokens` is for budgets. It is never too low, because every tokenizer in use
falls back to bytes and no token is shorter than a byte.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.llm.model import (
    Attempt,
    ModelParams,
    Provider,
    QuestionPlace,
    failed_reply,
    request_texts,
)
from tradeassay_bench.llm.tables import Price

PER_MESSAGE = 12
"""The maximum number of tokens that a chat format adds to a message (role, separators)."""
PER_TOOL = 40
"""The maximum number of tokens that a provider adds to a tool's own text."""
TOOL_PREAMBLE = 800
"""The maximum number of tokens that a provider adds for its own instructions on tools."""

LEAST_SHARE = 0.25
"""The minimum credible ratio of a provider's token count to our estimate.

If the ratio is smaller, the estimate is used instead.
"""

MOST_TOKENS = 10**12
"""The maximum number of tokens that an answer may report.

Larger numbers would make sums in scoring inexact.
"""

_WORD_OR_SIGN = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]")
_LETTERS_PER_TOKEN = 6.5
_LONG_WORD = re.compile(r"[A-Za-z]{7,}")
_BREAK = re.compile(r"\s{2,}|[^\S ]")
_LETTERS = bytes(sign for sign in range(128) if chr(sign).isalpha())
_DIGITS = b"0123456789"
_BLANKS = bytes(sign for sign in range(128) if chr(sign).isspace())
_NO_SIGN = _LETTERS + _DIGITS + _BLANKS
_ONLY_LETTERS = bytes(sign if sign in _LETTERS else 32 for sign in range(256))
_ONLY_DIGITS = bytes(sign if sign in _DIGITS else 32 for sign in range(256))
_REMEMBERED, _REMEMBERED_SIZE = 512, 65_536
"""The number of texts whose counts are cached, and their maximum length.

The cache helps because a conversation repeats its earlier messages.
"""


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens in a text.

    A word counts by its letters, a number by groups of three digits, any other character as one.
    White space is mostly part of the word that follows it.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_SIZE else _count(text)


def _count(text: str) -> int:
    if text.isascii():  # the same count, without an object for every sign
        raw = text.encode()
        words = [len(word) for word in raw.translate(_ONLY_LETTERS).split()]
        groups = sum([(len(number) + 2) // 3 for number in raw.translate(_ONLY_DIGITS).split()])
        long = [letters for letters in words if letters > _LETTERS_PER_TOKEN]
        pieces = len(words) + groups + len(raw.translate(None, _NO_SIGN))
    else:
        long = list(map(len, _LONG_WORD.findall(text)))
        pieces = len(_WORD_OR_SIGN.findall(text))
    return round(
        pieces - len(long) + sum(long) / _LETTERS_PER_TOKEN + 0.5 * len(_BREAK.findall(text))
    )


_remembered = lru_cache(_REMEMBERED)(_count)


def most_tokens(text: str) -> int:
    """Return an upper bound of the number of tokens in a text: its UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def estimate_request(request: AskModel) -> int:
    return sum(map(estimate_tokens, request_texts(request))) + 4 * len(request.messages)


def most_request(request: AskModel) -> int:
    frame = PER_MESSAGE * (len(request.messages) + 1) + PER_TOOL * len(request.tools)
    return (
        sum(map(most_tokens, request_texts(request)))
        + frame
        + (TOOL_PREAMBLE if request.tools else 0)
    )


def estimate_reply(reply: ModelReply) -> int:
    parts = [reply.text, *chain.from_iterable((call.name, call.arguments) for call in reply.calls)]
    return sum(map(estimate_tokens, parts))


@dataclass(slots=True)
class Reservation:
    """Money reserved for one call. It is settled exactly once."""

    usd: float
    open: bool = True


class Budget:
    """The total dollars that may be spent.

    If ``max_usd`` is None, spending is counted without a cap. ``spent_usd`` is the amount that an
    earlier part of the run has spent. Several models may share a budget, but only in one event
    loop.
    """

    def __init__(self, max_usd: float | None = None, *, spent_usd: float = 0.0) -> None:
        if max_usd is not None and not max_usd > 0:
            hint = "give a positive amount, or omit the budget"
            raise UserError(f"expected a positive budget, got {max_usd} dollars", hint=hint)
        self.max_usd, self.spent_usd = max_usd, spent_usd
        self.reserved_usd = 0.0
        self.uncertain_usd = 0.0
        self.unpriced_calls = 0
        self._waiting: deque[tuple[float, asyncio.Future[bool]]] = deque()
        self._under_way = 0

    @property
    def left_usd(self) -> float | None:
        """Return the dollars that may still be reserved; None without a cap."""
        if self.max_usd is None:
            return None
        return max(0.0, self.max_usd - self.spent_usd - self.reserved_usd)

    async def reserve(self, usd: float) -> Reservation | None:
        """Reserve money for a call.

        Returns None if it exceeds the cap and no call in flight could return money. Callers are
        served in order of arrival. A small call does not overtake a large waiting call.
        """
        if usd < 0:
            raise ValueError(f"cannot reserve {usd} dollars")
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        entry = (usd, answer)
        self._waiting.append(entry)
        self._serve()
        try:
            granted = await answer
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif answer.done() and not answer.cancelled() and answer.result():
                self._give_back(usd)
            self._serve()
            raise
        return Reservation(usd) if granted else None

    def settle(self, reservation: Reservation, usd: float | None) -> None:
        """Replace a reservation with the cost of the call.

        None means that the call may have been billed an unknown amount (a time-out, a lost answer).
        The whole reservation then counts as spent, and as uncertain.
        """
        if not reservation.open:
            raise ValueError("a reservation is settled once")
        reservation.open = False
        self._give_back(reservation.usd)
        self.spent_usd += reservation.usd if usd is None else usd
        if usd is None:
            self.uncertain_usd += reservation.usd
        self._serve()

    def _give_back(self, usd: float) -> None:
        self._under_way -= 1
        # With no call in flight nothing is reserved. The reset keeps rounding errors from adding up
        # over thousands of calls.
        self.reserved_usd = self.reserved_usd - usd if self._under_way else 0.0

    def _serve(self) -> None:
        """Grant or refuse waiting callers, in order.

        It stops at a caller that must wait until a call in flight returns money.
        """
        while self._waiting:
            usd, answer = self._waiting[0]
            if not answer.done():
                # A billionth of a dollar is rounding.
                total = self.spent_usd + self.reserved_usd + usd
                fits = self.max_usd is None or total <= self.max_usd + 1e-9
                if not fits and self._under_way:
                    return
                if fits:
                    self.reserved_usd += usd
                    self._under_way += 1
                answer.set_result(fits)
            self._waiting.popleft()


class BudgetedProvider:
    """A provider with a cap: it queries another provider, and replies ``over_budget`` at the cap.

    Raises :class:`UserError` if there is a cap and the price is unknown, because such a cap cannot
    be enforced.
    """

    def __init__(
        self, inner: Provider, params: ModelParams, budget: Budget, price: Price | None
    ) -> None:
        if price is None and budget.max_usd is not None:
            raise UserError(
                f"the price of {inner.name} is unknown, so a cap of {budget.max_usd:g} dollars "
                "cannot be enforced",
                hint="add its price to a file of prices, or run without a cap",
            )
        self._inner, self.name = inner, inner.name
        self._budget, self._price = budget, price
        # A provider that takes a separate budget for reasoning bills it on top of the answer.
        self._most_output = params.max_tokens + (params.reasoning_tokens or 0)
        self._unbilled: dict[QuestionPlace, float] = {}

    def unbilled_usd(self, place: QuestionPlace) -> float:
        """Return the maximum cost of a question's attempts without a bill, and delete it."""
        return self._unbilled.pop(place, 0.0)

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Reserve the highest cost of an attempt, make the attempt, and settle the reservation."""
        if self._price is None:
            self._budget.unpriced_calls += 1
            return await self._inner.attempt(request, place)
        worst = self._price.worst_usd(most_request(request), self._most_output)
        reservation = await self._budget.reserve(worst)
        if reservation is None:
            return Attempt(
                reply=failed_reply(
                    "over_budget",
                    f"the budget of {self._budget.max_usd:g} dollars has "
                    f"{self._budget.left_usd:.6f} left, "
                    f"and this call may cost up to {worst:.6f}",
                )
            )
        cost: float | None = None
        try:
            attempt = await self._inner.attempt(request, place)
            cost = attempt.reply.usage.usd
        finally:
            self._budget.settle(reservation, cost)
            if cost is None:
                self._unbilled[place] = self._unbilled.get(place, 0.0) + worst
        return attempt
