"""A hard cap on what models cost: money is reserved before every attempt and settled after it. Tokens are counted
without any tokenizer.

:func:`estimate_tokens` is for planning: about right on prose and on JSON full of numbers. :func:`most_tokens` is
for budgets: never too low, because every tokenizer in use falls back to bytes and no token is shorter than one.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from dataclasses import dataclass
from functools import lru_cache

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.llm.model import Attempt, ModelParams, Provider, QuestionPlace, failed_reply, request_texts
from tradeassay.llm.tables import Price

PER_MESSAGE = 12
"""Tokens a chat format adds to a message (role, separators), at most."""
PER_TOOL = 40
"""Tokens a provider adds to a tool's own text, at most."""
TOOL_PREAMBLE = 800
"""Tokens a provider adds when any tool is offered (its own instructions), at most."""

LEAST_SHARE = 0.25
"""A provider that counts less than this share of what the house counts has not counted: the larger is taken."""

MOST_TOKENS = 10**12
"""What one answer may claim: nobody reads more, and sums of more would break a run when it is scored."""

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
"""How many texts' counts are kept, and how long such a text may be: conversations repeat their beginning."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has. A word counts by its letters, a number by groups of three digits,
    any other character as one; white space is mostly part of the word that follows it."""
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
    return round(pieces - len(long) + sum(long) / _LETTERS_PER_TOKEN + 0.5 * len(_BREAK.findall(text)))


_remembered = lru_cache(_REMEMBERED)(_count)


def most_tokens(text: str) -> int:
    """Return a number of tokens that a text cannot exceed: its UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def estimate_request(request: AskModel) -> int:
    return sum(map(estimate_tokens, request_texts(request))) + 4 * len(request.messages)


def most_request(request: AskModel) -> int:
    frame = PER_MESSAGE * (len(request.messages) + 1) + PER_TOOL * len(request.tools)
    return sum(map(most_tokens, request_texts(request))) + frame + (TOOL_PREAMBLE if request.tools else 0)


def estimate_reply(reply: ModelReply) -> int:
    parts = [reply.text, *(part for call in reply.calls for part in (call.name, call.arguments))]
    return sum(map(estimate_tokens, parts))


@dataclass(slots=True)
class Reservation:
    """Money put aside for one call. It is settled exactly once."""

    usd: float
    open: bool = True


class Budget:
    """Dollars that may be spent in total. ``max_usd`` None counts without a cap. ``spent_usd`` is what an earlier
    part of the same run has already spent. One budget may serve several models, but only one event loop."""

    def __init__(self, max_usd: float | None = None, *, spent_usd: float = 0.0) -> None:
        if max_usd is not None and not max_usd > 0:
            hint = "give a positive amount, or none at all"
            raise UserError(f"a budget of {max_usd} dollars buys nothing", hint=hint)
        self.max_usd, self.spent_usd = max_usd, spent_usd
        self.reserved_usd = 0.0
        self.uncertain_usd = 0.0
        self.unpriced_calls = 0
        self._waiting: deque[tuple[float, asyncio.Future[bool]]] = deque()
        self._under_way = 0

    @property
    def left_usd(self) -> float | None:
        """What may still be reserved, or None without a cap."""
        return None if self.max_usd is None else max(0.0, self.max_usd - self.spent_usd - self.reserved_usd)

    async def reserve(self, usd: float) -> Reservation | None:
        """Put money aside; return None when it exceeds the cap and no call in flight could give some back. Callers
        are served in the order they came: a small call does not slip past a big one that is waiting."""
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
        """Replace a reservation with what the call cost. None means that the call may have been billed and nobody
        knows how much (a time-out, a lost answer): the whole reservation is then counted as spent, and as
        uncertain."""
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
        # With no call in flight nothing is reserved: rounding must not pile up over thousands of calls.
        self.reserved_usd = self.reserved_usd - usd if self._under_way else 0.0

    def _serve(self) -> None:
        """Grant or refuse those who wait, until one must go on waiting for a call in flight to give money back."""
        while self._waiting:
            usd, answer = self._waiting[0]
            if not answer.done():
                # A billionth of a dollar is rounding.
                wanted = self.spent_usd + self.reserved_usd + usd
                fits = self.max_usd is None or wanted <= self.max_usd + 1e-9
                if not fits and self._under_way:
                    return
                if fits:
                    self.reserved_usd += usd
                    self._under_way += 1
                answer.set_result(fits)
            self._waiting.popleft()


class BudgetedProvider:
    """Asks another provider while the money lasts; then answers ``over_budget``. Raises :class:`UserError` when
    there is a cap and the price is unknown: such a cap cannot be enforced."""

    def __init__(self, inner: Provider, params: ModelParams, budget: Budget, price: Price | None) -> None:
        if price is None and budget.max_usd is not None:
            raise UserError(
                f"the price of {inner.name} is unknown, so a cap of {budget.max_usd:g} dollars cannot be kept",
                hint="give its price in a file of prices, or run without a cap",
            )
        self._inner, self.name = inner, inner.name
        self._budget, self._price = budget, price
        # A provider that takes a separate budget for reasoning bills it on top of the answer.
        self._most_output = params.max_tokens + (params.reasoning_tokens or 0)
        self._lost: dict[QuestionPlace, float] = {}

    def lost(self, place: QuestionPlace) -> float:
        """Return the dollars that a question's attempts may have cost without an answer that says so, once."""
        return self._lost.pop(place, 0.0)

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        if self._price is None:
            self._budget.unpriced_calls += 1
            return await self._inner.attempt(request, place)
        worst = self._price.worst_usd(most_request(request), self._most_output)
        reservation = await self._budget.reserve(worst)
        if reservation is None:
            return Attempt(
                reply=failed_reply(
                    "over_budget",
                    f"the budget of {self._budget.max_usd:g} dollars has {self._budget.left_usd:.6f} left, "
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
                self._lost[place] = self._lost.get(place, 0.0) + worst
        return attempt
