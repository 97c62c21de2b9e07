"""Filling a live season's inbox. What is fetched after a decision time is for the next decision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from tradeassay.arena.season import Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.stream.items import RawItem
from tradeassay.arena.stream.store import put_in_inbox
from tradeassay.core.errors import SourceError
from tradeassay.core.time import Clock, Instant, iso

Fetch = Callable[[str], bytes]
"""Return the document at an address; raises :class:`SourceError`. Injected, so that tests need no network."""


class Connector(Protocol):
    """A live source of items about one asset."""

    @property
    def asset(self) -> str:
        """The asset's symbol."""
        ...

    @property
    def source(self) -> str:
        """The name it is cited by."""
        ...

    def read(self, now: Instant) -> tuple[RawItem, ...]:
        """Return what the source has now; raises :class:`SourceError`."""
        ...


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What a visit to all sources brought: new items, and the sources that could not be had with the reason."""

    new: int
    failed: tuple[tuple[str, str], ...] = ()


async def collect(store: Store, season: Season, connectors: Sequence[Connector], clock: Clock) -> Collected:
    """Visit every source once. A source that fails is named in the result and does not stop the others.

    Items are stamped with the time *after* they were read, so that none can look older than it is.
    """
    known = {asset.symbol for asset in season.assets}
    new, failed = 0, []
    for connector in connectors:
        if connector.asset not in known:
            season.asset(connector.asset)  # raises, and says which assets there are
        try:
            found = await asyncio.to_thread(connector.read, clock.now())
        except SourceError as error:
            failed.append((connector.source, str(error)))
            continue
        stamp = iso(clock.now())
        new += put_in_inbox(store, season.id, [msgspec.structs.replace(r, fetched_at=stamp) for r in found])
    return Collected(new=new, failed=tuple(failed))


async def keep_collecting(
    store: Store,
    season: Season,
    connectors: Sequence[Connector],
    clock: Clock,
    *,
    every_s: float = 300.0,
    told: Callable[[Collected], None] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Visit the sources again and again, until cancelled. Run it beside the season's runner."""
    while True:
        found = await collect(store, season, connectors, clock)
        if told is not None:
            told(found)
        await sleep(every_s)
