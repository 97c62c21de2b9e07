"""A provider made into a model: a bounded number of connections, and another try where one may help."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import RunError, UserError
from tradeassay.llm.model import Provider, QuestionPlace


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential waits between attempts. A provider's own Retry-After is honoured up to ``patience_s``. A longer
    one ends the attempts: a caller told to come back in an hour should not hold a connection. After ``silences``
    time-outs in a row in one episode the run is stopped, to be resumed: waiting out every question of a provider
    that has gone silent would take days, and each would count as a day without an answer. None never stops."""

    attempts: Annotated[int, Meta(ge=1)] = 6
    first_s: Annotated[float, Meta(ge=0.0)] = 1.0
    longest_s: Annotated[float, Meta(ge=0.0)] = 60.0
    patience_s: Annotated[float, Meta(ge=0.0)] = 300.0
    silences: Annotated[int, Meta(ge=1)] | None = 5

    def wait(self, failed: int, wanted_s: float | None, place: QuestionPlace) -> float | None:
        """Return the seconds to wait after the ``failed``-th attempt (from 1), or None to give up. Waits double,
        and are spread over their upper half so that callers do not all come back at once. The spread follows from
        the place of the call: no clock and no random numbers are read."""
        if failed >= self.attempts or (wanted_s is not None and wanted_s > self.patience_s):
            return None
        full = min(self.longest_s, self.first_s * 2.0 ** (failed - 1))
        where = f"{place.episode}\0{place.step}\0{place.sample}\0{place.index}\0{failed}"
        fraction = int.from_bytes(hashlib.sha256(where.encode()).digest()[:8], "big") / 2.0**64
        spread = full * (0.5 + 0.5 * fraction)
        return spread if wanted_s is None else max(wanted_s, spread)


Sleep = Callable[[float], Awaitable[None]]


class AskingModel:
    """Asks a provider with at most ``connections`` requests at a time, shared by all callers. A caller keeps its
    connection while it waits to try again: being told to slow down should not let another caller in instead."""

    def __init__(
        self, provider: Provider, *, connections: int, retry: RetryPolicy, sleep: Sleep = asyncio.sleep
    ) -> None:
        if connections < 1:
            raise UserError(f"{connections} connections cannot carry a question", hint="give 1 or more")
        self.name = provider.name
        self._provider = provider
        self._retry = retry
        self._sleep = sleep
        self._slots = asyncio.Semaphore(connections)
        self._silent: dict[str, int] = {}
        self._seconds: dict[QuestionPlace, float] = {}

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Answer one request, trying again as the policy says. Raises :class:`RunError` when the provider has gone
        silent: what is recorded stays, the run can be resumed."""
        reply = await self._ask(request, place)
        silent = self._silent.get(place.episode, 0) + 1 if reply.error_kind == "timeout" else 0
        self._silent[place.episode] = silent
        if self._retry.silences is not None and silent >= self._retry.silences:
            raise RunError(
                f"{self.name} did not answer {silent} questions in a row within its time limit",
                hint="resume the run when it answers again; a longer timeout_s may help",
            )
        return reply

    def took(self, place: QuestionPlace) -> float:
        """Return the seconds of a question's last attempt, once: neither queueing nor earlier attempts count."""
        return self._seconds.pop(place, 0.0)

    async def _ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        async with self._slots:
            failed = 0
            while True:
                began = time.perf_counter()
                attempt = await self._provider.attempt(request, place)
                whole = time.perf_counter() - began
                self._seconds[place] = whole if attempt.seconds is None else attempt.seconds
                if not attempt.again:
                    return attempt.reply
                failed += 1
                wait = self._retry.wait(failed, attempt.wait_s, place)
                if wait is None:
                    return attempt.reply
                await self._sleep(wait)
