"""A provider made into a model: so many connections at once, and another try where one may help."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.llm.attempt import Provider
from tradeassay.llm.backoff import RetryPolicy
from tradeassay.llm.model import Place

Sleep = Callable[[float], Awaitable[None]]


class AskingModel:
    """Asks a provider with at most ``connections`` requests at a time, shared by all callers.

    A caller keeps its connection while it waits to try again: whoever is told to slow down should not send its
    neighbour in its place.
    """

    def __init__(
        self, provider: Provider, *, connections: int, retry: RetryPolicy, sleep: Sleep = asyncio.sleep
    ) -> None:
        if connections < 1:
            raise UserError(f"{connections} connections cannot carry a question", mend="give 1 or more")
        self._provider = provider
        self._retry = retry
        self._sleep = sleep
        self._slots = asyncio.Semaphore(connections)

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._provider.name

    async def ask(self, request: AskModel, place: Place) -> ModelReply:
        """Answer one request, trying again as the policy says."""
        async with self._slots:
            failed = 0
            while True:
                attempt = await self._provider.attempt(request, place)
                if not attempt.again:
                    return attempt.reply
                failed += 1
                wait = self._retry.wait(failed, attempt.wait_s, place)
                if wait is None:
                    return attempt.reply
                await self._sleep(wait)
