"""Replay a season in the order of its journal, for prices that cannot be read a second time.

Packets, prices and times of events are read from the journal. The arena's own code computes
everything else: stages, slots, decisions, bookings, rewards, and the events that report them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from tradeassay.core.errors import UNDECODABLE, TradeassayError
from tradeassay_arena.agents import EntryAgent, entry_agents
from tradeassay_arena.replay import Evidence, RecordedAgent, ReplayStore
from tradeassay_arena.rounds.deciding import Batcher, SlotDecider, packets
from tradeassay_arena.rounds.money import execute, settle
from tradeassay_arena.season import Amendment, BudgetRules, Season, amended
from tradeassay_arena.state import tables as t
from tradeassay_arena.state.rows import ClosedSlot, Round, Stage
from tradeassay_bench.core.arena import NewsShown, Packet, SettledOutcome
from tradeassay_bench.core.errors import RunError

_NEWS = msgspec.json.Decoder(tuple[NewsShown, ...])
_COPIED = ("amended", "corrected", "held", "word", "review", "stream")
"""Events that cannot be computed again: words from an operator, a vendor or an expert."""
_FROM_PACKET = ("history", "annual_report", "quarterly_report")


class JournalReplay:
    """Replays a season from its journal in ``db`` into ``store``.

    ``faults`` lists events that the arena could not have written, as (place, description).
    ``revised`` contains the assets whose prices were revised.
    """

    def __init__(
        self, db: Connection, store: ReplayStore, evidence: Evidence, spec: Season
    ) -> None:
        self._db, self._store, self._evidence = db, store, evidence
        # Which entry was over budget depended on the order of entries. Only the record states it.
        self._spec = msgspec.structs.replace(spec, budget=BudgetRules())
        self._season = self._spec
        self._agents: Mapping[str, EntryAgent] = {}
        self._told: tuple[int, Mapping[str, Packet]] = 0, {}
        self._rounds = {(row.asset, row.session): row for row in self._all(t.rounds)}
        self._editions = {(row.asset, row.session): row.news for row in self._all(t.stream_rounds)}
        self._skipped = {(row.asset, row.session) for row in self._all(t.skipped)}
        self._sessions = self._sessions_by_asset()
        self._late = self._late_rounds()
        self.revised = {str(row.asset) for row in self._all(t.corrections)}
        self.faults: list[tuple[str, str]] = []

    @property
    def decides(self) -> bool:
        """Whether decisions can be computed again.

        This is not possible if prices were revised for an account over all assets, because the
        packets of that time are then unknown.
        """
        return not (self.revised and self._spec.rules.cross_asset)

    async def play(self) -> None:
        """Replay every event of the journal."""
        season = self._evidence.season
        spec = msgspec.structs.replace(season, budget=BudgetRules())
        outside = self._evidence.outside
        opened = entry_agents(spec, outside=outside, opener=self._evidence.opener, recorded=True)
        async with opened as agents:
            self._agents = agents
            if not self.decides:
                self._agents = {id: EntryAgent(RecordedAgent(self._evidence, id)) for id in agents}
            query = select(t.events).filter_by(season=season.id).order_by(t.events.c.seq)
            for event in self._db.execute(query).all():
                await self._play_event(event)

    async def _play_event(self, event: Any) -> None:
        try:
            body = msgspec.json.decode(event.body, type=dict[str, Any])
        except UNDECODABLE as error:
            self.faults.append((f"event {event.seq}", f"it cannot be read: {error}"))
            return
        place = str(body.get("asset")), str(body.get("session"))
        try:
            if event.kind == "season":
                self._store.create_season(self._spec, event.at)
            elif event.kind in _COPIED:
                self._copy(event)
            elif event.kind == "opened":
                self._open(place, event.at)
            elif event.kind == "missed":
                self._miss(place, body, event.at)
            elif event.kind in ("decided", "failed"):
                await self._decide(place, str(body.get("entry")))
            elif event.kind in ("executed", "settled"):
                self._advance(place, event.kind, event.at)
        except (TradeassayError, ArithmeticError, KeyError, TypeError, *UNDECODABLE) as error:
            self.faults.append((" ".join(place), f"{event.kind} cannot be played again: {error}"))

    def _copy(self, event: Any) -> None:
        with self._store.change() as db:
            db.execute(insert(t.events).values({**event._asdict(), "seq": None}))
            if event.kind != "amended":
                return
            made = msgspec.json.decode(event.body, type=Amendment)
            if made.change == "reopen":
                place = {"season": event.season, "asset": made.what, "session": made.day}
                db.execute(delete(t.skipped).filter_by(**place))
        self._season = amended(self._spec, self._store.amendments(event.season))

    def _open(self, place: tuple[str, str], now: str) -> None:
        row = self._rounds.get(place)
        if row is None:
            return  # The comparison reports the missing round.
        asset, session = place
        last = self._store.last_round(self._spec.id, asset)
        if last is not None and last.phase != "settled":
            self.faults.append(
                (" ".join(place), "it was opened before the round before it was settled")
            )
        told = msgspec.json.decode(row.packet, type=Packet)
        edition = self._editions.get(place)
        season = self._season.on(session)
        packet = Packet(
            season=self._spec.id,
            date=session,
            decided_at=row.decision_time,
            symbol=asset,
            kind=season.asset(asset).kind,
            price=row.price,
            momentum=row.momentum,
            news=told.news if edition is None else _NEWS.decode(edition),
            phase=self._stage(place),
            **{name: getattr(told, name) for name in _FROM_PACKET},
        )
        shared = row.shared if season.rules.cross_asset else None
        cause = self._late.get(place, "")
        self._store.open_round(season, packet, now, missed=cause, shared=shared)

    def _miss(self, place: tuple[str, str], body: dict[str, Any], now: str) -> None:
        cause = str(body.get("cause"))
        if "slots" in body:
            self._store.miss(self._round(place), now, cause)
        elif "price" not in body:  # with a price it was written together with the round
            self._store.skip(self._spec.id, *place, self._stage(place), cause, now)

    async def _decide(self, place: tuple[str, str], entry: str) -> None:
        round = self._round(place)
        if self._told[0] != round.id:
            told = dict(packets(self._store, self._season, round))
            if self.revised:
                outcomes = self._outcomes_then(place)
                for id, packet in told.items():
                    then = tuple(outcomes.get(id, ()))
                    told[id] = msgspec.structs.replace(packet, outcomes=then)
            self._told = round.id, told
        open_slots = self._store.claim(round.id, "replay", 0.0, 0.0, 1_000_000)
        slots = [slot for slot in open_slots if slot.entry == entry]
        if not slots:
            raise RunError(f"'{entry}' has nothing to decide there")
        closed = Batcher[ClosedSlot, int](self._close, thread=False)
        season = self._season.on(round.session)
        deciding = SlotDecider(store=self._store, season=season, agents=self._agents, closed=closed)
        known = self._store.known(slots)[slots[0].id]
        made = await deciding.decide(slots[0], self._told[1][entry], known)
        if made is not None:
            self._close([made])

    def _close(self, made: Sequence[ClosedSlot]) -> list[int]:
        return [self._store.decide(made, "replay")] * len(made)

    def _advance(self, place: tuple[str, str], phase: str, now: str) -> None:
        round = self._round(place)
        before = "opened" if phase == "executed" else "executed"
        if round.phase != before:
            raise RunError(f"the round is {round.phase}, not {before}")
        if phase == "executed":
            execute(self._store, self._season, round, now)
            return
        row = self._rounds[place]
        if None in (row.base_price, row.next_price, row.next_session):
            self.faults.append((" ".join(place), "it is settled without a later price"))
            return
        if not self._is_next(place, row.next_session):
            self.faults.append((" ".join(place), f"it is settled at {row.next_session}"))
        settle(
            self._store,
            self._season,
            round,
            row.base_price,
            row.next_price,
            row.next_session,
            now,
        )

    # -- rows of the journal ----------------------------------------------------------------------

    def _all(self, table: Any) -> Any:
        return self._db.execute(select(table).filter_by(season=self._evidence.season.id)).all()

    def _round(self, place: tuple[str, str]) -> Round:
        round = self._store.round(self._spec.id, *place)
        if round is None:
            raise RunError("no such round was opened")
        return round

    def _sessions_by_asset(self) -> dict[str, list[str]]:
        found: dict[str, set[str]] = {}
        for asset, session in (*self._rounds, *self._skipped):
            found.setdefault(asset, set()).add(session)
        return {asset: sorted(sessions) for asset, sessions in found.items()}

    def _stage(self, place: tuple[str, str]) -> Stage:
        asset, session = place
        number = sum(day < session for day in self._sessions.get(asset, ()))
        warming = self._season.warming(self._season.asset(asset), session, number)
        return "warm-up" if warming else "live"

    def _is_next(self, place: tuple[str, str], settled_at: str) -> bool:
        """Return whether the asset has no round between a round and the session that settled it."""
        asset, session = place
        played = self._rounds.keys() - self._skipped
        between = [day for day in self._sessions[asset] if session < day < settled_at]
        return session < settled_at and not any((asset, day) in played for day in between)

    def _late_rounds(self) -> dict[tuple[str, str], str]:
        """Return the cause for each round that was opened after its time to decide."""
        query = select(t.events.c.body).filter_by(season=self._spec.id, kind="missed")
        found = {}
        for (text,) in self._db.execute(query):
            try:
                body = msgspec.json.decode(text, type=dict[str, Any])
            except UNDECODABLE:
                continue  # The replay of the event reports it.
            if "price" in body:
                place = str(body.get("asset")), str(body.get("session"))
                found[place] = str(body.get("cause"))
        return found

    def _outcomes_then(self, place: tuple[str, str]) -> dict[str, list[SettledOutcome]]:
        """Return the outcomes that entries saw in a round, on the prices known at that time."""
        asset, session = place
        season = self._spec.id
        of_slot = t.decisions.c.id == t.bookings.c.slot
        begun = select(func.min(t.bookings.c.id)).join(t.decisions, of_slot)
        cut = self._db.execute(begun.where(t.decisions.c.round == self._rounds[place].id)).scalar()
        last = select(t.rounds.c.id).filter_by(season=season, asset=asset, phase="settled")
        last = last.where(t.rounds.c.session < session).order_by(t.rounds.c.session.desc())
        settled = self._db.execute(last.limit(10)).scalars().all()
        columns = (
            *t.decisions.c["entry", "session", "action"],
            *t.bookings.c["position", "earned"],
        )
        query = select(*columns).join(t.bookings, of_slot)
        query = query.where(t.decisions.c.round.in_(settled), t.bookings.c.number >= 1)
        if cut is not None:
            query = query.where(t.bookings.c.id < cut)
        newest: dict[tuple[str, str], SettledOutcome] = {}
        for entry, day, action, position, earned in self._db.execute(
            query.order_by(t.bookings.c.number)
        ):
            newest[entry, day] = SettledOutcome(
                date=day, action=action or "HOLD", position=position, earned=earned or 0.0
            )
        shown: dict[str, list[SettledOutcome]] = {}
        for (entry, _), outcome in sorted(newest.items()):
            shown.setdefault(entry, []).append(outcome)
        return shown
