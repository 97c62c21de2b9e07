"""Where the doors ask the database: many agents at once cost little more than one.

When a round opens fifty agents come in the same moment. Were each of them to ask for itself, fifty threads would
wait for one interpreter and fifty transactions for one disk, one after the other. Here those who come while a
question is on its way are asked for together, in the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from sqlalchemy.exc import OperationalError
from starlette.concurrency import run_in_threadpool

from tradeassay.arena.api.doors import Doors, Notification, Offer, Offered, RegisteredAgent

A = TypeVar("A")
B = TypeVar("B")

MAX_WAIT_S = 25.0
MOST_WAITING = 200
"""How many agents may wait for a packet at once at one desk; others are answered at once."""

LOOK_S = 0.25
"""How often it is looked for agents that wait whether there is something for them."""

MOST_TOGETHER = 64
"""How many are asked for at once. More would let those who came first wait for the last."""


class Together(Generic[A, B]):
    """Puts the questions of all who ask in the same moment as one, in a thread; each gets its own answer."""

    def __init__(self, do: Callable[[Sequence[A]], Sequence[B]]) -> None:
        self._do = do
        self._asked: list[tuple[A, asyncio.Future[B]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, what: A) -> B:
        """Return the answer to a question; raises what putting it raised."""
        here = asyncio.get_running_loop()
        if self._asking is None or self._asking.done() or self._asking.get_loop() is not here:
            self._asked = []
            self._asking = here.create_task(self._ask())
        answer: asyncio.Future[B] = here.create_future()
        self._asked.append((what, answer))
        return await answer

    async def _ask(self) -> None:
        while self._asked:
            now, self._asked = self._asked[:MOST_TOGETHER], self._asked[MOST_TOGETHER:]
            await self._answer(now)

    async def _answer(self, now: list[tuple[A, asyncio.Future[B]]]) -> None:
        try:
            found = await run_in_threadpool(self._do, [what for what, _ in now])
        except Exception as error:
            if len(now) > 1 and not isinstance(error, OperationalError):  # one of them may have spoilt it for all
                for one in now:
                    await self._answer([one])
                return
            for _, answer in now:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), given in zip(now, found, strict=True):
            if not answer.done():  # whoever asked may have gone
                answer.set_result(given)


class DoorDesk:
    """Everything that the doors ask the database again and again."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors
        self._who = Together(doors.all_of)
        self._waiting = Together(doors.all_waiting)
        self._offers = Together(doors.submit_all)
        self._looking: asyncio.Task[frozenset[tuple[str, str]]] | None = None
        self._waits = 0

    async def who(self, token: str) -> RegisteredAgent | None:
        """Return whose token this is, or None."""
        return await self._who.ask(token)

    async def waiting(self, agent: RegisteredAgent) -> Notification | None:
        """Return the oldest decision still waiting for an agent's answer, or None."""
        return await self._waiting.ask(agent)

    async def submit(self, agent: RegisteredAgent, nonce: str, offer: Offer) -> None:
        """Take an agent's answer, as :meth:`Doors.submit` does; raises :class:`TurnedAway`."""
        refused = await self._offers.ask(Offered(agent=agent, nonce=nonce, offer=offer))
        if refused is not None:
            raise refused

    async def packet(self, agent: RegisteredAgent, wait: float) -> Notification | None:
        """Return the decision that waits for an agent, waiting up to ``wait`` seconds for one."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (min(wait, MAX_WAIT_S) if self._waits < MOST_WAITING else 0.0)
        self._waits += 1
        try:
            told = await self.waiting(agent)
            while told is None and loop.time() < until and not self.doors.closing.is_set():
                if (agent.season, agent.entry) in await self._seats_soon():
                    told = await self.waiting(agent)
            return told
        finally:
            self._waits -= 1

    async def _seats_soon(self) -> frozenset[tuple[str, str]]:
        """Wait a moment and return who has a decision waiting then: one look for all who wait."""
        here = asyncio.get_running_loop()
        if self._looking is None or self._looking.done() or self._looking.get_loop() is not here:
            self._looking = here.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> frozenset[tuple[str, str]]:
        await asyncio.sleep(LOOK_S)
        return await run_in_threadpool(self.doors.open_seats)
