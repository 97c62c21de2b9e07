"""Run a season: wait for the next decision time, settle, ask every agent, book positions.

Any number of processes may run one season on one database. Each step is safe to repeat, so a killed
process is simply started again. A step that fails because of a vendor, a disk or a database is
retried with growing pauses until it works or its time is over.

With a live clock, a session whose time has passed is recorded as missed, with the cause, and never
decided late. Rounds with the same decision time run concurrently, so a silent agent or a late
vendor delays no other round.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

import msgspec
from sqlalchemy import update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tradeassay.core.errors import TradeassayError, UserError
from tradeassay_arena.agents import EntryAgent
from tradeassay_arena.clock import ArenaClock
from tradeassay_arena.rounds import prices
from tradeassay_arena.rounds.deciding import Batcher, SlotDecider, packets
from tradeassay_arena.rounds.feed import (
    AssetFacts,
    PlannedSession,
    PriceFeed,
    calendars_end,
    doubt,
    refuse_future,
)
from tradeassay_arena.rounds.health import Health, Level
from tradeassay_arena.rounds.money import execute, settle, shared_accounts
from tradeassay_arena.rounds.prices import Closes, Held
from tradeassay_arena.rounds.spending import SeasonCapped
from tradeassay_arena.season import Season, amended
from tradeassay_arena.state.rows import ClosedSlot, Round, Slot, Stage
from tradeassay_arena.state.store import Amended, Store
from tradeassay_arena.state.tables import rounds
from tradeassay_bench.core.arena import NewsShown, Packet
from tradeassay_bench.core.errors import FutureDataError
from tradeassay_bench.core.time import HOUR, MINUTE, SECOND, Instant, iso, parse_iso

Publish = Callable[[Season, PlannedSession, AssetFacts], Awaitable[tuple[NewsShown, ...]]]
"""Returns the news that a round publishes, as of the decision time.

The function may wait for a model that summarises. For the same round it always returns the same
items.
"""

T = TypeVar("T")
OpenAgents = Callable[[Season], Awaitable[Mapping[str, EntryAgent]]]
"""Opens the agents of a season's entries, and returns each agent by its entry."""

DATABASE = (DBAPIError, OSError)
"""Errors that may end after a pause, in a replay too: a database that restarts, a full disk."""


class Stalled(TradeassayError):
    """Raised if a part that the arena needs has failed for too long. Start the process again."""


class Missed(Exception):
    """Raised if the time of a session is over before its round is opened. The message is the
    cause.
    """


class _Retries:
    """The failed attempts of one step: their number, the next pause, and the start of the step."""

    def __init__(self, runner: Runner) -> None:
        self._runner, self._count, self._wait = runner, 0, 1.0
        self._began, self._since = runner.clock.now(), runner.real_time()

    async def pause_or_raise(self, part: str, error: Exception) -> None:
        """Pause before the next attempt.

        With a live clock, raises :class:`Stalled` if the database or a disk has failed for an hour.
        In a replay, raises ``error`` after four attempts, or after a minute for errors that may end
        after a pause. A FutureDataError is raised at the first attempt.
        """
        clock = self._runner.clock
        self._count += 1
        if clock.live:
            passed = clock.now() - self._began
            if passed > HOUR and isinstance(error, SQLAlchemyError | OSError):
                why = f"{part} has failed for {passed // SECOND} seconds: {error}"
                raise Stalled(
                    why, hint="fix it and start the arena again; nothing is lost"
                ) from error
            await clock.wait_until(clock.now() + int(self._wait * SECOND))
            self._wait = min(self._wait * 2, self._runner.longest_s)
            return
        if isinstance(error, DATABASE):
            over = self._runner.real_time() - self._since >= 60
        else:
            over = self._count >= 4 or isinstance(error, FutureDataError)
        if over:
            raise error
        await asyncio.sleep(min(0.05 * 2**self._count, 2.0))


class _Progress:
    """Counts the rounds of a replay and reports finished and total rounds."""

    def __init__(
        self,
        season: Iterable[PlannedSession],
        left: Iterable[tuple[int, PlannedSession]],
        report: Callable[[int, int], None],
    ) -> None:
        self._all = sum(not due.closing for due in season)
        self._left = sum(not due.closing for _, due in left)
        self._report = report

    def finished(self, group: Iterable[tuple[int, PlannedSession]]) -> None:
        self._left -= sum(not due.closing for _, due in group)
        self._report(self._all - self._left, self._all)


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs one season in this process.

    - ``season`` is the spec at first, and the amended season after an amendment.
    - ``open_agents`` opens the agents of new entries.
    - ``publish`` returns the news of a round. If it is None, the feed's news is used unchanged.
    - ``worker`` names this process. It must be the same after a restart.
    - ``at_once`` is the maximum number of slots of a round that are decided concurrently.
    - ``poll_s`` is the pause in seconds while other workers decide, ``beat_s`` the pause between
      reports that this worker is alive, and ``longest_s`` the longest pause between attempts.
    - ``progress`` is called with the number of finished rounds of a replay and the total.
    - ``health`` records problems.
    """

    season: Season
    store: Store
    feed: PriceFeed
    clock: ArenaClock
    agents: dict[str, EntryAgent]
    open_agents: OpenAgents | None = None
    publish: Publish | None = None
    worker: str = "main"
    at_once: int = 32
    real_time: Callable[[], float] = time.time
    poll_s: float = 0.2
    beat_s: float = 10.0
    longest_s: float = 60.0
    progress: Callable[[int, int], None] = lambda done, total: None
    health: Health = field(init=False)
    _spec: Season = field(init=False)
    _amending: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.health = Health(self.season.id, self.worker, live=self.clock.live, now=self.real_time)
        self._spec = self.season

    async def run(self, until: Instant | None = None) -> int:
        """Run all rounds that are due by ``until``, or to the season's end if it is None.

        Returns the number of rounds that this worker executed.

        Raises :class:`Stalled` if the database or another part stays unavailable for too long, and
        :class:`UserError` for a fault that only an operator can fix.
        """
        founded = False
        try:
            await self._with_retries(
                lambda: self.store.create_season(self._spec, iso(self.clock.now()))
            )
            founded = True
            await self._all_groups(until)
        except BaseException as found:
            error = found
            while isinstance(error, BaseExceptionGroup):  # the first reason is enough
                error = error.exceptions[0]
            if founded or not isinstance(
                error, UserError
            ):  # the id belongs to a season with another spec
                ended = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SeasonCapped)
                self.health.ends("stopped" if ended else "stalled", self.store)
            if error is found:
                raise
            raise error from None
        self.health.waits(None)
        self.health.ends("finished" if until is None else "stopped", self.store)
        return self.health.rounds

    # -- planning ----------------------------------------------------------------------------------

    async def _all_groups(self, until: Instant | None) -> None:
        """Run the rounds grouped by decision time, in order.

        Live groups may overlap, but an asset's next round starts after its previous round.
        """
        running: dict[str, asyncio.Task[None]] = {}
        planned: set[tuple[str, str]] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                left = await self._still_to_plan(planned)
                progress = _Progress(self.feed.due(self.season), left, self.progress)
                for at, group in groupby(left, key=lambda pair: pair[1].at):
                    if until is not None and at > until:
                        return
                    if await self._wait(at):
                        left = []
                        break  # the plan has changed
                    here = list(group)
                    planned.update((due.asset, due.session) for _, due in here)
                    if self.clock.live:
                        await self._start(here, running, tasks)
                    else:
                        await self._play_group(here)
                        progress.finished(here)
                # Live sessions are planned a month ahead, so more may be due later.
                if await self._with_retries(self._has_new_amendments):
                    continue
                if self._is_over(until):
                    return
                if not left:
                    await self._wait(self.clock.now() + HOUR)

    async def _still_to_plan(
        self, planned: set[tuple[str, str]]
    ) -> list[tuple[int, PlannedSession]]:
        """Apply new amendments, and return the sessions that were not planned before.

        Each session has its index among its asset's sessions. A reopened session is planned again.
        """
        known = len(self.season.amendments)
        await self._amend()
        left = await self._with_retries(self._left, part="plan")
        for amendment in self.season.amendments[known:]:
            if amendment.change == "reopen":
                planned.discard((amendment.what, amendment.day))
        return [(number, due) for number, due in left if (due.asset, due.session) not in planned]

    async def _start(
        self,
        group: list[tuple[int, PlannedSession]],
        running: dict[str, asyncio.Task[None]],
        tasks: asyncio.TaskGroup,
    ) -> None:
        """Start the live rounds of one decision time.

        Each round starts after the previous round of its asset.
        """
        for number, due in group:
            before = running.get(due.asset)
            task = tasks.create_task(self._play_group([(number, due)], after=before))
            running[due.asset] = task
            # A round that was missed long ago must be recorded before the asset's next round.
            if self._too_late(due.asset, due.session, due.at):
                await asyncio.wait([task])

    def _is_over(self, until: Instant | None) -> bool:
        """Return whether no further session will be due."""
        if not self.clock.live or (until is not None and self.clock.now() > until):
            return True
        today = iso(self.clock.now())[:10]
        ends = [self.season.days(asset)[1] for asset in self.season.assets]
        return not any(last is None or last >= today for last in ends)

    async def _play_group(
        self, group: list[tuple[int, PlannedSession]], after: asyncio.Task[None] | None = None
    ) -> None:
        """Run the rounds of one decision time.

        The rounds are opened one after another, decided concurrently, and booked in order. The
        order makes two replays equal. It also matters if one account spans all assets. ``after`` is
        the previous live round of the same asset, which must end first.
        """
        if after is not None:
            await asyncio.wait([after])
        opened = []
        for number, due in group:
            warming = self.season.warming(self.season.asset(due.asset), due.session, number)
            round = await self._open_with_retries(due, "warm-up" if warming else "live")
            if round is not None and round.phase == "opened":
                opened.append(round)
        if (
            len(opened) == 1
        ):  # as in every live round: a separate task would change the order of the journal
            await self._decide(opened[0])
        else:
            # If one round stops, wait for the other rounds: their answers are already paid for.
            stopped = await asyncio.gather(
                *(self._decide(round) for round in opened), return_exceptions=True
            )
            for error in stopped:
                if error is not None:
                    raise error
        for round in opened:
            if await self._with_retries(
                lambda: execute(self.store, self.season, round, iso(self.clock.now()))  # noqa: B023
            ):
                self.health.rounds += 1

    async def _wait(self, at: Instant) -> bool:
        """Wait until an instant, and meanwhile report that this worker is alive.

        Returns whether an amendment has arrived. If one arrives, waiting ends early.
        """
        self.health.waits(at)
        self._beat()
        step, looked = int(self.beat_s * SECOND), self.real_time()
        while self.clock.live and at - self.clock.now() > step:
            await self.clock.wait_until(min(at, self.clock.now() + step))
            self._beat()
            if self.real_time() - looked >= self.beat_s:
                looked = self.real_time()
                if await self._with_retries(self._has_new_amendments):
                    return True
        await self.clock.wait_until(at)
        return await self._with_retries(self._has_new_amendments)

    def _has_new_amendments(self) -> bool:
        """Return whether the database has amendments that are not yet applied."""
        return len(self.store.amendments(self.season.id)) > len(self.season.amendments)

    async def _amend(self) -> None:
        """Apply new amendments and open the agents of new entries."""
        async with self._amending:
            made = await self._with_retries(lambda: self.store.amendments(self.season.id))
            if len(made) == len(self.season.amendments):
                return
            season = amended(self._spec, made)
            new = tuple(one for one in season.entries if one.id not in self.agents)
            if new and self.open_agents is not None:
                self.agents.update(
                    await self.open_agents(msgspec.structs.replace(season, entries=new))
                )
            self.season = season

    def _beat(self) -> None:
        """Report that this worker is alive, and any problem with the clock or a calendar."""
        if self.health.beat(self.store) and self.clock.live:
            ends, soon = calendars_end(self.season, self.clock.now())
            watched: tuple[tuple[str, str, Level], ...] = (
                ("calendar", ends, "alarm" if soon else "warning"),
                ("clock", self.clock.jumped, "alarm"),
            )
            for part, why, level in watched:
                if why:
                    self.health.trouble(part, TradeassayError(why), level)
                else:
                    self.health.fine(part)

    def _left(self) -> list[tuple[int, PlannedSession]]:
        """Return the sessions that may still need work.

        Each session has its index among its asset's sessions.
        """
        counts: dict[str, int] = {}
        newest = {
            a.symbol: self.store.last_round(self.season.id, a.symbol) for a in self.season.assets
        }
        gone = {(skip.asset, skip.session) for skip in self.store.skipped(self.season.id)}
        left = []
        for due in self.feed.due(self.season):
            number = counts.get(due.asset, 0)
            counts[due.asset] = number + 1
            last = newest[due.asset]
            closed = due.closing and last is not None and last.next_session == due.session
            if closed or (due.asset, due.session) in gone:
                continue
            if last is None or due.session >= last.session:
                left.append((number, due))
        return left

    # -- one round ---------------------------------------------------------------------------------

    async def _open_with_retries(self, due: PlannedSession, stage: Stage) -> Round | None:
        """Return a session's round, and open the round if needed.

        An attempt that fails is repeated until the time to decide is over. Returns None if the
        session gets no round. The session is then recorded as skipped, with the cause.
        """
        retries, closes_at = _Retries(self), self.season.closes(due.asset, due.session, due.at)
        while True:
            self._beat()
            late = await self._late(due.asset, due.session, due.at)
            try:
                round = self.store.round(self.season.id, due.asset, due.session)
                if round is None:
                    round = await self._try_to_open(due, stage)
            except UserError:
                raise
            except Missed as missed:
                return await self._skipped(due, stage, str(missed))
            except Exception as error:
                held = isinstance(error, Held)
                part = "database" if isinstance(error, SQLAlchemyError) else "round"
                part = f"bar of {due.asset}" if held else part
                self.health.trouble(part, error, "alarm" if held else "stalled")
                if late and not isinstance(error, SQLAlchemyError | OSError):
                    return await self._skipped(due, stage, f"{type(error).__name__}: {error}")
                await retries.pause_or_raise(part, error)
                continue
            for part in (f"vendor of {due.asset}", f"bar of {due.asset}", "database", "round"):
                self.health.fine(part)
            if round is not None:
                self.health.fine(f"asset {due.asset}")
            if round is not None or not self.clock.live:
                return round
            trouble = getattr(self.feed, "last_trouble", "") or "no price"
            if late:
                return await self._skipped(due, stage, trouble)
            self.health.trouble(f"vendor of {due.asset}", TradeassayError(trouble), "alarm")
            # The vendor is late. Ask again while there is time, and once more afterwards to settle.
            await self.clock.wait_until(min(self.clock.now() + MINUTE, closes_at + SECOND))

    async def _skipped(self, due: PlannedSession, stage: Stage, cause: str) -> Round | None:
        """Record a session as skipped and return None.

        A session without a decision is not recorded.
        """
        if due.closing:
            return None
        place, now = (self.season.id, due.asset, due.session), iso(self.clock.now())
        await self._with_retries(lambda: self.store.skip(*place, stage, cause, now))
        for part in ("vendor", "bar"):
            self.health.fine(f"{part} of {due.asset}")
        idle = f"its session {due.session} was skipped: {cause}"
        self.health.trouble(f"asset {due.asset}", TradeassayError(idle), "alarm")
        return None

    async def _try_to_open(self, due: PlannedSession, stage: Stage) -> Round | None:
        """Settle the asset's last round at this session's price, and open the session's round.

        Returns None if the feed has no price yet. For a session without a decision, returns the
        asset's last round.
        """
        season = self.season.on(due.session)
        asset = season.asset(due.asset)
        asked = (asset, due.session, due.at, season.news_days)
        if self.feed.blocking:  # a slow vendor must not block other rounds
            facts = await asyncio.to_thread(self.feed.facts, *asked)
        else:
            facts = self.feed.facts(*asked)
        if facts is None:
            return None
        refuse_future(facts, due.at)
        self._hold_doubtful_bar(due, facts)
        news: tuple[NewsShown, ...] = ()
        if not due.closing:
            news = (
                facts.news if self.publish is None else await self.publish(self.season, due, facts)
            )
            refuse_future(msgspec.structs.replace(facts, news=news), due.at)
        self._settle_last(due, facts)
        if due.closing:
            return self.store.last_round(self.season.id, due.asset)
        copied = ("price", "history", "annual_report", "quarterly_report", "momentum")
        packet = Packet(
            season=self.season.id,
            date=due.session,
            decided_at=iso(due.at),
            symbol=due.asset,
            kind=asset.kind,
            news=news,
            phase=stage,
            **{name: getattr(facts, name) for name in copied},
        )
        shared = None
        if self.season.rules.cross_asset:
            shared = msgspec.json.encode(shared_accounts(self.store, season, stage)).decode()
        late = self._too_late(due.asset, due.session, due.at)
        cause = "the arena was not running, or had no data, in time to decide" if late else ""
        try:
            return self.store.open_round(
                season, packet, iso(self.clock.now()), missed=cause, shared=shared
            )
        except Amended:
            await self._amend()
            return await self._try_to_open(due, stage)

    def _hold_doubtful_bar(self, due: PlannedSession, facts: AssetFacts) -> None:
        """Raise :class:`Held` for a live bar that looks wrong and is not accepted yet.

        An operator or a second look can accept the bar. Raises :class:`Missed` if the time to
        decide is over.
        """
        asset = self.season.asset(due.asset)
        if not self.clock.live:
            return
        last = self.store.last_round(self.season.id, due.asset, before=due.session)
        why = doubt(asset, facts, self.season.prices, None if last is None else last.price)
        place, now = (self.season.id, due.asset, due.session), iso(self.clock.now())
        if why is None:
            if prices.held_bar(self.store, *place) is not None:
                prices.end_hold(self.store, *place, "replaced", now)
            return
        alone = not facts.needs_operator
        if prices.hold_or_accept(
            self.store, self.season, *place[1:], facts.price, why, now, alone=alone
        ):
            return
        self.feed.forget(asset)
        if self._too_late(due.asset, due.session, due.at):
            prices.end_hold(self.store, *place, "missed", now)
            raise Missed(f"the bar was doubted: {why}")
        raise Held(
            f"{due.asset} {due.session}: {why}",
            hint="tradeassay arena amend bar accepts or refuses it",
        )

    def _settle_last(self, due: PlannedSession, facts: AssetFacts) -> None:
        """Settle the asset's last round at this session's price, and book corrections.

        A last round that is still open is closed first: its open slots are missed.
        """
        now = iso(self.clock.now())
        asset = self.season.asset(due.asset)
        dividends = self.season.convention == "corrected"
        closes = self.feed.closes(asset, due.session, dividends=dividends)
        if closes:
            with self.store.write("prices") as db:
                prices.record_closes(
                    db, self.season.id, due.asset, closes, now, used=(due.session,)
                )
        last = self.store.last_round(self.season.id, due.asset)
        if last is None or last.session >= due.session:
            return
        if last.phase == "opened":  # its worker died, and its time is over
            self.store.miss(last, now, "nobody was left to decide before the next session")
            execute(self.store, self.season, last, now)
            last = self.store.round(self.season.id, last.asset, last.session)
            assert last is not None
        if last.phase == "executed":
            if closes:
                base: float | None = prices.carried(
                    last, closes, due.session, self._known_before(last)
                )
            else:
                base = self.feed.comparable(asset, last.session, due.at, dividends=dividends)
            settle(self.store, self.season, last, base or last.price, facts.price, due.session, now)
        if closes:
            self._restate(due, last, closes, now)

    def _known_before(self, last: Round) -> tuple[str, float] | None:
        """Return an earlier session with its price as known at that time.

        The source is the previous round, or the history in the packet of the first round. Returns
        None if there is neither.
        """
        before = self.store.last_round(self.season.id, last.asset, before=last.session)
        if before is not None:
            return before.session, before.price
        history = self.store.packet(last.id).history
        return (history[-1].date, history[-1].price) if history else None

    def _restate(self, due: PlannedSession, last: Round, closes: Closes, now: str) -> None:
        """Book the returns of sessions without a round, and the vendor's revisions.

        Raises :class:`Held` for a doubtful revision if there is no later look at the session.
        """
        # If the session that settled a round got no round of its own, the position earns until this
        # one.
        if not due.review and last.next_session is not None and last.next_session < due.session:
            with self.store.write("later") as db:  # the difference is booked as a correction
                db.execute(update(rounds).filter_by(id=last.id).values(next_session=due.session))
        doubted = prices.doubted_revisions(self.store, self.season, due.asset, closes, now)
        prices.correct(self.store, self.season, due.asset, closes, now, without=doubted)
        if doubted and due.review:  # there is no later look
            self.feed.forget(self.season.asset(due.asset))
            why = "its close was changed by more than is believed at once"
            raise Held(f"{due.asset} {min(doubted)}: {why}")

    async def _late(self, asset: str, session: str, at: Instant) -> bool:
        """Return whether a session's time to decide is over.

        Waits while the clock may be wrong.
        """
        while (late := self._too_late(asset, session, at)) and not self.clock.certain:
            self._beat()
            await self._pause(self.longest_s)
        return late

    def _too_late(self, asset: str, session: str, at: Instant) -> bool:
        return self.clock.live and self.clock.now() > self.season.closes(asset, session, at)

    # -- deciding ----------------------------------------------------------------------------------

    async def _decide(self, round: Round) -> None:
        """Ask every agent that has not answered, until all slots are closed or the time is over."""
        season = self.season.on(round.session)

        def close(made: Sequence[ClosedSlot]) -> list[int]:
            return [self.store.decide(made, self.worker)] * len(made)

        closed = Batcher(close, thread=False)
        slots = SlotDecider(store=self.store, season=season, agents=self.agents, closed=closed)
        packet_of: Mapping[str, Packet] = {}

        def claim() -> tuple[Slot, ...]:
            now = self.real_time()
            lease_until = now + 600  # then another worker takes over its open slots
            return self.store.claim(round.id, self.worker, now, lease_until, self.at_once)

        while True:
            self._beat()
            if await self._late(round.asset, round.session, parse_iso(round.decision_time)):
                now = iso(self.clock.now())
                await self._with_retries(
                    lambda: self.store.miss(round, now, "its time to decide was over")  # noqa: B023
                )
                return
            claimed = await self._with_retries(claim)
            if claimed:
                if not packet_of:
                    packet_of = await self._with_retries(lambda: packets(self.store, season, round))
                # Slots are decided side by side. A slot that failed is claimed again.
                known = await self._with_retries(lambda: self.store.known(claimed))  # noqa: B023 - awaited at once
                making = [
                    slots.decide(slot, packet_of[slot.entry], known[slot.id]) for slot in claimed
                ]
                made = await asyncio.gather(*making, return_exceptions=True)
                broken = next((one for one in made if isinstance(one, BaseException)), None)
                if broken is not None and not isinstance(
                    broken, SQLAlchemyError if self.clock.live else DATABASE
                ):
                    raise broken
                left = [one for one in made if isinstance(one, ClosedSlot)]
                if left:
                    await self._with_retries(lambda: self.store.decide(left, self.worker))  # noqa: B023 - awaited at once
                if (
                    broken is not None
                ):  # the arena's own trouble: recorded answers are not requested again
                    self.health.trouble("database", broken)
                    await self._pause(1)
            if not await self._with_retries(lambda: self.store.open_slots(round.id)):
                return
            if not claimed:
                await asyncio.sleep(self.poll_s)  # another worker still has open slots

    # -- retries -----------------------------------------------------------------------------------

    async def _with_retries(self, do: Callable[[], T], part: str = "database") -> T:
        """Call a function until it raises no error, and return its result.

        A UserError is raised at the first attempt. Raises :class:`Stalled` if the function fails
        for too long.
        """
        retries = _Retries(self)
        while True:
            try:
                found = do()
            except UserError:
                raise
            except Exception as error:
                self.health.trouble(part, error)
                await retries.pause_or_raise(part, error)
            else:
                self.health.fine(part)
                return found

    async def _pause(self, seconds: float) -> None:
        await self.clock.wait_until(self.clock.now() + int(seconds * SECOND))
