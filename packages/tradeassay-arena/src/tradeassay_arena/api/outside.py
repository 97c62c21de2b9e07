"""Connect entries that decide outside the arena.

Some agents are called by the arena, and other agents fetch their packets.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from tradeassay.core.errors import UserError
from tradeassay_arena.agents import OUTSIDE, OutsideAgent
from tradeassay_arena.api.agent_api import AgentApi, RegisteredAgent
from tradeassay_arena.rounds.deciding import Batcher
from tradeassay_arena.season import Entry, Season
from tradeassay_bench.agents.foreign.ama import Decides, PythonAgent, SubprocessAgent, load_agent
from tradeassay_bench.agents.foreign.transport import (
    Network,
    Unusable,
    checked_address,
    parse_target,
    resolve_by_system,
)
from tradeassay_bench.core.arena import AgentChoice, Packet

Place = tuple[str, str, str]
"""An entry, an asset and a session."""


class OfferWatch:
    """Waits for answers that arrive through the API, with one query for all agents."""

    def __init__(self, api: AgentApi, *, poll_s: float = 0.1) -> None:
        self._api, self._poll_s = api, poll_s
        self._waited: dict[tuple[str, Place], asyncio.Future[AgentChoice]] = {}
        self._looking: asyncio.Task[None] | None = None

        def registered(seasons: Sequence[str]) -> list[dict[str, RegisteredAgent]]:
            found = {season: api.registered(season) for season in dict.fromkeys(seasons)}
            return [found[season] for season in seasons]

        # Registrations of a season: one query for all agents that decide at once.
        self.registered = Batcher(registered)

    async def wait(self, season: str, place: Place) -> AgentChoice:
        """Return the answer for an entry, asset and session as soon as it has arrived."""
        future: asyncio.Future[AgentChoice] = asyncio.get_running_loop().create_future()
        self._waited[season, place] = future
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())
        try:
            return await future
        finally:
            del self._waited[season, place]

    async def _look(self) -> None:
        while self._waited:
            try:
                for season in {season for season, _ in self._waited}:
                    found = await asyncio.to_thread(self._api.open_offers, season)
                    for place, choice in found.items():
                        future = self._waited.get((season, place))
                        if future is not None and not future.done():
                            future.set_result(choice)
            except (
                Exception
            ) as error:  # The waiting agents get the error. The database may be unavailable.
                for future in self._waited.values():
                    if not future.done():
                        future.set_exception(error)
            await asyncio.sleep(self._poll_s)


class PollingAgent:
    """Waits until an agent has fetched its packet and answered.

    The round's time-out ends the wait.
    """

    def __init__(self, watch: OfferWatch, entry: str) -> None:
        self._watch, self._entry = watch, entry

    async def decide(self, packet: Packet) -> AgentChoice:
        return await self._watch.wait(packet.season, (self._entry, packet.symbol, packet.date))


class RemoteAgent:
    """The agent of an outside entry.

    The registration is looked up at every decision, so a new registration applies from the next
    decision on. An agent with an address is called there. Any other agent fetches its packets.
    """

    def __init__(
        self, season: Season, entry: Entry, watch: OfferWatch, *, allow: Sequence[Network] = ()
    ) -> None:
        self._season, self._entry, self._allow = season, entry, allow
        self._watch, self._waiting = watch, PollingAgent(watch, entry.id)
        self._asked: tuple[str, OutsideAgent] | None = None

    async def address(self) -> str:
        """Return the agent's present address, or an empty text if the agent fetches its packets."""
        registered = await self._watch.registered.ask(self._season.id)
        mine = registered.get(self._entry.id)
        return (mine and mine.address) or str(self._entry.params.get("url", ""))

    async def decide(self, packet: Packet) -> AgentChoice:
        address = await self.address()
        if self._entry.architecture != "http" or not address:
            return await self._waiting.decide(packet)
        if self._asked is None or self._asked[0] != address:
            agent = _asked(self._entry, address, float(self._season.timeout_s), self._allow)
            self._asked = (address, agent)
        return await self._asked[1].decide(packet)


@asynccontextmanager
async def outside_agents(
    season: Season,
    api: AgentApi,
    *,
    objects: Mapping[str, Decides] | None = None,
    allow: Sequence[Network] = (),
) -> AsyncIterator[dict[str, OutsideAgent]]:
    """Yield an agent for every entry of a season that decides outside. Leaving the block ends their
    processes.

    - ``http``: called at its registered address, or at ``params.url``. Without either it works as
      ``mcp``.
    - ``mcp``: fetches its packets.
    - ``subprocess``: runs ``params.command``, split as a shell would.
    - ``python``: the entry's object in ``objects``, or the class named by ``params.class``.

    Raises :class:`UserError` for an entry with a missing setting.
    """
    watch, limit = OfferWatch(api), float(season.timeout_s)
    async with AsyncExitStack() as stack:
        found: dict[str, OutsideAgent] = {}
        for entry in (one for one in season.entries if one.architecture in OUTSIDE):
            if entry.architecture == "python":
                given = (objects or {}).get(entry.id)
                agent = given if given is not None else load_agent(_param(entry, "class"))
                found[entry.id] = PythonAgent(agent, timeout_s=limit)
            elif entry.architecture == "subprocess":
                process = SubprocessAgent(shlex.split(_param(entry, "command")), timeout_s=limit)
                stack.push_async_callback(process.close)
                found[entry.id] = process
            else:
                given_url = str(entry.params.get("url", ""))
                if given_url:
                    _asked(
                        entry, given_url, limit, allow
                    )  # Raises an error now if the address is invalid.
                found[entry.id] = RemoteAgent(season, entry, watch, allow=allow)
        yield found


async def refuse_private(season: Season, allow: Sequence[Network]) -> None:
    """Raise :class:`UserError` for an entry whose address is in a private network that is not
    allowed.

    Checks only numbers and ``localhost``. A host name is looked up at every call, because its
    address may change.
    """
    for entry in season.entries:
        url = str(entry.params.get("url", "")) if entry.architecture == "http" else ""
        if url and (
            (host := parse_target(url).host) == "localhost" or ":" in host or host[-1].isdigit()
        ):
            try:
                await checked_address(parse_target(url), allow, resolve_by_system)
            except Unusable as error:
                if error.kind == "forbidden":
                    hint = "allow its network, e.g. allow='127.0.0.0/8'"
                    raise UserError(f"entry '{entry.id}': {error.text}", hint=hint) from error


def _asked(entry: Entry, address: str, limit: float, allow: Sequence[Network]) -> OutsideAgent:
    from tradeassay_bench.agents.foreign.ama import WIRES, HttpAgent

    own = bool(entry.params.get("own", False))
    wire = str(entry.params.get("wire", "tradeassay"))
    if wire not in WIRES:
        raise UserError(
            f"entry '{entry.id}': unknown wire '{wire}'", hint=f"one of {', '.join(WIRES)}"
        )
    return HttpAgent(address, model=entry.model, timeout_s=limit, allow=allow, own=own, wire=wire)


def _param(entry: Entry, name: str) -> str:
    value = entry.params.get(name)
    if not isinstance(value, str) or not value:
        raise UserError(f"entry '{entry.id}' has no '{name}'", hint=f"add params.{name}")
    return value
