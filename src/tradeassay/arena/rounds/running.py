"""The loop of a season: wait for the next decision time, settle what is due, ask everybody, take positions.

Any number of processes may run it on one database; each step is safe to repeat, so a killed process is simply
started again. With a live clock a session whose time has passed is recorded as missed and never decided late.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.arena.agents import EntryAgent
from tradeassay.arena.clock import ArenaClock
from tradeassay.arena.rounds.deciding import decide_slot, failed, packets
from tradeassay.arena.rounds.feed import AssetFacts, Due, PriceFeed, refuse_future
from tradeassay.arena.rounds.money import execute, settle
from tradeassay.arena.season import Season
from tradeassay.arena.state.records import ClosedSlot, Known, Round, Slot, Stage
from tradeassay.arena.state.store import RoundOpening, Store
from tradeassay.core.arena import NewsShown, Packet
from tradeassay.core.drive import fault_of
from tradeassay.core.errors import TradeassayError
from tradeassay.core.time import SECOND, Instant, iso, parse_iso

Published = tuple[NewsShown, ...]
Publish = Callable[[Due, AssetFacts], Published | Awaitable[Published]]
"""The information stream: which of a feed's news is fit to be published, as of the decision time.

It may have to wait for a model that summarises. Asked again for the same round it must give the same items.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Everything a season needs to run. ``worker`` names this process; a restarted one keeps its name.

    ``publish`` None passes the feed's news on as it is. ``at_once`` is how many slots are decided concurrently.
    """

    season: Season
    store: Store
    feed: PriceFeed
    clock: ArenaClock
    agents: Mapping[str, EntryAgent]
    publish: Publish | None = None
    worker: str = "main"
    at_once: int = 32
    lease_s: float = 600.0
    real_time: Callable[[], float] = time.time
    poll_s: float = 0.2
    retry_s: int = 60

    async def run(self, until: Instant | None = None) -> int:
        """Play all rounds due by ``until`` (None: to the season's end); returns how many were finished."""
        self.store.found_season(self.season, iso(self.clock.now()))
        done = 0
        for number, due in self._left():
            if until is not None and due.at > until:
                break
            await self.clock.wait_until(due.at)
            done += await self._play(due, self._stage(due, number))
        return done

    def _left(self) -> list[tuple[int, Due]]:
        """Return the decisions that may still need something, each with its place among its asset's sessions."""
        counts: dict[str, int] = {}
        newest = {a.symbol: self.store.last_round(self.season.id, a.symbol) for a in self.season.assets}
        left = []
        for due in self.feed.due(self.season):
            number = counts.get(due.asset, 0)
            counts[due.asset] = number + 1
            last = newest[due.asset]
            if last is None or due.session >= last.session:
                left.append((number, due))
        return left

    def _stage(self, due: Due, number: int) -> Stage:
        return "warm-up" if number < self.season.warmup else "live"

    async def _play(self, due: Due, stage: Stage) -> bool:
        round = self.store.round(self.season.id, due.asset, due.session)
        while round is None:
            late = self._too_late(due.at)
            round = await self._open(due, stage)
            if round is not None:
                break
            if not self.clock.live:
                return False
            if late:
                self.store.note(self.season.id, "no data", iso(self.clock.now()), due.asset, due.session)
                return False
            await self.clock.wait_until(self.clock.now() + self.retry_s * SECOND)  # the vendor is late itself
        if round.phase == "opened":
            await self._decide(round)
            execute(self.store, self.season, round, iso(self.clock.now()))
        return True

    async def _open(self, due: Due, stage: Stage) -> Round | None:
        asset = self.season.asset(due.asset)
        facts = self.feed.facts(asset, due.session, due.at, self.season.news_days)
        if facts is None:
            return None
        refuse_future(facts, due.at)
        self._settle_last(due, facts)
        news = await self._published(due, facts)
        packet = Packet(
            season=self.season.id,
            date=due.session,
            decided_at=iso(due.at),
            symbol=due.asset,
            kind=asset.kind,
            price=facts.price,
            history=facts.history,
            news=news,
            annual_report=facts.annual_report,
            quarterly_report=facts.quarterly_report,
            momentum=facts.momentum,
            phase=stage,
        )
        opening = RoundOpening(
            asset=due.asset,
            session=due.session,
            decision_time=iso(due.at),
            stage=stage,
            packet=packet,
            opened_at=iso(self.clock.now()),
            missed=self._too_late(due.at),
        )
        return self.store.open_round(self.season, opening)

    def _settle_last(self, due: Due, facts: AssetFacts) -> None:
        last = self.store.last_round(self.season.id, due.asset)
        if last is None or last.phase == "settled" or last.session >= due.session:
            return
        if last.phase == "opened":  # its last decider died, and its time is over
            self.store.miss(last.id, iso(self.clock.now()))
            execute(self.store, self.season, last, iso(self.clock.now()))
            last = self.store.round(self.season.id, last.asset, last.session)
            assert last is not None
        asset = self.season.asset(due.asset)
        dividends = self.season.convention == "sound"
        base = self.feed.comparable(asset, last.session, due.at, dividends=dividends)
        settle(self.store, self.season, last, base or last.price, facts.price, iso(self.clock.now()))

    async def _published(self, due: Due, facts: AssetFacts) -> Published:
        if self.publish is None:
            return facts.news
        given = self.publish(due, facts)
        news = await given if inspect.isawaitable(given) else given
        refuse_future(msgspec.structs.replace(facts, news=news), due.at)
        return news

    def _too_late(self, at: Instant) -> bool:
        return self.clock.live and self.clock.now() > at + self.season.window_s * SECOND

    async def _decide(self, round: Round) -> None:
        told = None
        while True:
            if self._too_late(parse_iso(round.decision_time)):
                self.store.miss(round.id, iso(self.clock.now()))
                return
            now = self.real_time()
            mine = self.store.claim(round.id, self.worker, now, now + self.lease_s, self.at_once)
            if mine:
                told = told or packets(self.store, self.season, round)
                known = self.store.known(mine)
                made = await asyncio.gather(*(self._one(slot, told[slot.entry], known[slot.id]) for slot in mine))
                left = [decided for decided in made if decided is not None]
                if left:
                    self.store.decide(left, self.worker)
                continue
            here = self.store.round(round.season, round.asset, round.session)
            if here is None or here.phase != "opened" or not self.store.open_slots(round.id):
                return
            await asyncio.sleep(self.poll_s)  # another worker still has some

    async def _one(self, slot: Slot, packet: Packet, known: Known) -> ClosedSlot | None:
        """Decide one slot. What cannot be repeated is written at once, the rest returned to be written later."""
        agent = self.agents.get(slot.entry)
        try:
            if agent is None:
                raise TradeassayError(f"entry '{slot.entry}' has no agent")
            making = decide_slot(self.store, slot, agent, packet, known)
            if agent.repeatable and agent.model is None:
                decided = await making  # a rule answers at once: a timeout around it would cost more than it does
            else:
                decided = await asyncio.wait_for(making, self.season.timeout_s)
        except TimeoutError:
            decided = failed(slot, packet, "timeout", f"no decision within {self.season.timeout_s} s")
        except SQLAlchemyError:
            raise  # the arena's own trouble, not the agent's
        except (TradeassayError, ValueError) as error:
            decided = failed(slot, packet, "agent", str(error))
        except Exception as error:
            decided = failed(slot, packet, "agent", str(fault_of(error)))
        if agent is not None and agent.repeatable:
            return decided
        self.store.decide([decided], self.worker)
        return None
