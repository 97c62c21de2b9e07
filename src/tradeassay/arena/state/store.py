"""The only writer of the arena's database. Every method is one transaction, and can be repeated without harm.

A process may die between any two of them. What makes that safe: a round, a slot, a call and a booking have unique
keys; a slot is decided by whoever holds its lease and only while it is open; a round's status only moves
forward, and each move does all of its work in its own transaction.

Statements that every slot or round needs are made once, because building them takes longer than running them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from tradeassay.account.daily_target import Booking
from tradeassay.arena.season import Amendment, Season
from tradeassay.arena.state.rows import (
    ClosedSlot,
    Known,
    ModelCall,
    Round,
    Skipped,
    Slot,
    Stage,
    packed,
    read_packet,
    read_round,
    read_slot,
    unpacked,
)
from tradeassay.arena.state.tables import (
    amendments,
    bookings,
    calls,
    decisions,
    door_offers,
    events,
    memories,
    rewards,
    rounds,
    seasons,
    skipped,
)
from tradeassay.core.arena import AgentChoice, ChoiceFailure, Packet
from tradeassay.core.dialogue import Usage
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes

_ROUND = tuple(rounds.c[name] for name in Round.__struct_fields__)
_ENCODE = msgspec.json.encode
_CHOICE = msgspec.json.Decoder(AgentChoice)

_FIND_ROUND = select(*_ROUND).where(
    rounds.c.season == bindparam("season"),
    rounds.c.asset == bindparam("asset"),
    rounds.c.session == bindparam("session"),
)
_LAST_ROUND = (
    select(*_ROUND)
    .where(rounds.c.season == bindparam("season"), rounds.c.asset == bindparam("asset"))
    .order_by(rounds.c.session.desc())
    .limit(1)
)
_AMENDMENTS = select(amendments).where(amendments.c.season == bindparam("season")).order_by(amendments.c.number)
_PACKET = select(rounds.c.packet).where(rounds.c.id == bindparam("round"))
_OPEN = select(func.count()).where(decisions.c.round == bindparam("round"), decisions.c.status == "open")
_CLAIMED = tuple(decisions.c[name] for name in "id round season asset session stage entry status".split())
_LEASE = decisions.c.lease_until
_FREE = _LEASE.is_(None) | (_LEASE <= bindparam("now")) | (decisions.c.lease_owner == bindparam("worker"))
CLAIM = (
    select(*_CLAIMED)
    .where(decisions.c.round == bindparam("round"), decisions.c.status == "open", _FREE)
    .order_by(decisions.c.id)
    .limit(bindparam("most"))
)
_SOME = decisions.c.id.in_(bindparam("ids", expanding=True))
_TAKE = update(decisions).where(_SOME).values(lease_owner=bindparam("worker"), lease_until=bindparam("until"))
_OURS = select(decisions.c.id).where(
    _SOME, decisions.c.status == "open", decisions.c.lease_owner == bindparam("worker")
)
_ASKED = calls.c.slot.in_(bindparam("slots", expanding=True))
CALLS = select(calls).where(_ASKED).order_by(calls.c.slot, calls.c.number)
_PHASE = select(rounds.c.phase).where(rounds.c.id == bindparam("round"))
_MOVE = update(rounds).where(rounds.c.id == bindparam("which")).values(phase=bindparam("to"))
_ADD_ROUND, _ADD_SLOT = insert(rounds).returning(rounds.c.id), insert(decisions)
_MINE = (memories.c.season == bindparam("season"), memories.c.asset == bindparam("asset"))
_MEMORIES = select(memories.c.entry, memories.c.body).where(*_MINE)
_DECIDED = (
    "status action confidence allocation reasoning message talk failures decided_at calls "
    "input_tokens output_tokens usd"
).split()
_DECIDE = (
    update(decisions)
    .where(decisions.c.id == bindparam("which"))
    .values({"lease_until": None, **{name: bindparam(f"b_{name}") for name in _DECIDED}})
)
_FORGET = delete(memories).where(
    *(memories.c[name] == bindparam(f"b_{name}") for name in ("season", "entry", "asset"))
)
_ADD_EVENT, _ADD_CALL, _ADD_MEMORY, _ADD_BOOKING, _ADD_REWARD = map(
    insert, (events, calls, memories, bookings, rewards)
)


class RoundOpening(msgspec.Struct, frozen=True, kw_only=True):
    """A round about to be opened. ``missed``: its time to decide is over, so all its slots are missed, for
    ``cause``.

    ``shared`` is what accounts over all assets are worth now, as JSON. ``withdrawn`` entries, each with its last
    day, are not asked.
    """

    asset: str
    session: str
    decision_time: str
    stage: Stage
    packet: Packet
    opened_at: str
    missed: bool = False
    cause: str = ""
    shared: str | None = None
    withdrawn: Mapping[str, str] = {}


class Amended(TradeassayError):
    """The season is not any more what whoever opens a round believes it to be; it has to be planned again."""


class Store:
    """Writes and the reads that writing needs. ``committed`` is told the name of every transaction after it."""

    def __init__(self, engine: Engine, committed: Callable[[str], None] | None = None) -> None:
        self.engine = engine
        self._committed = committed
        self._locks = engine.dialect.name == "postgresql"
        self._turn: AbstractContextManager[object] = nullcontext() if self._locks else Lock()

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """Return a connection inside one transaction.

        SQLite has one writer at a time and lets the others look again and again; threads of one process wait
        here, where the next is let in at once.
        """
        with self._turn, self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, what: str) -> Iterator[Connection]:
        """Return a connection inside one transaction, for the arena's own rooms; ``what`` names it."""
        with self.change() as connection:
            yield connection
        if self._committed is not None:
            self._committed(what)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self.engine.connect().execution_options(read_only=True) as connection:
            yield connection

    def found_season(self, season: Season, now: str) -> None:
        """Write a season down; raises :class:`UserError` when its id already stands for another spec."""
        try:
            with self.write("season") as db:
                known = db.execute(select(seasons.c.spec).where(seasons.c.id == season.id)).scalar()
                if known is None:
                    spec = season.frozen.decode()
                    db.execute(
                        insert(seasons).values(id=season.id, spec=spec, sha256=season.sha256, created_at=now)
                    )
                    tell(db, season.id, "season", now, {"id": season.id, "title": season.title})
        except IntegrityError:  # another worker wrote it at the same moment
            with self.read() as db:
                known = db.execute(select(seasons.c.spec).where(seasons.c.id == season.id)).scalar()
        # The specs are compared, not their hashes: a setting that came later stands at its default in older ones.
        if known is not None and not season.founded and msgspec.json.decode(known, type=Season) != season:
            raise UserError(
                f"season '{season.id}' is frozen with another spec", hint="give the changed one another id"
            )

    def open_round(self, season: Season, opening: RoundOpening) -> Round:
        """Open a round with a slot for every entry, or return the one that is there."""
        packet = canonical_json(opening.packet)
        row = {
            "season": season.id,
            "asset": opening.asset,
            "session": opening.session,
            "decision_time": opening.decision_time,
            "stage": opening.stage,
            "phase": "opened",
            "price": opening.packet.price,
            "momentum": opening.packet.momentum,
            "packet": packet.decode(),
            "packet_sha256": sha256_bytes(packet),
            "opened_at": opening.opened_at,
            "shared": opening.shared,
        }
        try:
            with self.write("open") as db:
                there = _find_round(db, season.id, opening.asset, opening.session)
                if there is not None:
                    return there
                self._lock_season(db, season.id)
                if len(db.execute(_AMENDMENTS, {"season": season.id}).all()) != len(season.amendments):
                    raise Amended(f"season '{season.id}' was amended just now")
                id = db.execute(_ADD_ROUND, row).scalar_one()
                db.execute(_ADD_SLOT, [_new_slot(season, id, opening, e.id) for e in season.everyone])
                told = {"asset": opening.asset, "session": opening.session, "price": opening.packet.price}
                tell(db, season.id, "opened", opening.opened_at, told)
                if opening.missed:
                    tell(db, season.id, "missed", opening.opened_at, {**told, "cause": opening.cause})
        except IntegrityError:  # another worker opened it at the same moment
            pass
        found = self.round(season.id, opening.asset, opening.session)
        assert found is not None
        return found

    def round(self, season: str, asset: str, session: str) -> Round | None:
        with self.read() as db:
            return _find_round(db, season, asset, session)

    def last_round(self, season: str, asset: str, before: str | None = None) -> Round | None:
        query = _LAST_ROUND if before is None else _LAST_ROUND.where(rounds.c.session < before)
        with self.read() as db:
            row = db.execute(query, {"season": season, "asset": asset}).first()
        return None if row is None else read_round(row)

    def settle_later(self, round: Round, session: str) -> None:
        """Let a settled round earn until a later session; what that changes is booked as a correction."""
        with self.write("later") as db:
            db.execute(update(rounds).where(rounds.c.id == round.id).values(next_session=session))

    def packet(self, round: int) -> Packet:
        with self.read() as db:
            return read_packet(db.execute(_PACKET, {"round": round}).scalar_one())

    def claim(self, round: int, worker: str, now: float, until: float, most: int) -> tuple[Slot, ...]:
        """Lease up to ``most`` open slots of a round to a worker; ``now``/``until`` are real seconds.

        A worker gets its own leases back at once: it can only ask again after it has died.
        """
        query = CLAIM.with_for_update(skip_locked=True) if self._locks else CLAIM
        asked = {"round": round, "worker": worker, "now": now, "most": most}
        with self.write("claim") as db:
            found = tuple(Slot(**row) for row in db.execute(query, asked).mappings())
            if found:
                db.execute(_TAKE, {"ids": [slot.id for slot in found], "worker": worker, "until": until})
        return found

    def open_slots(self, round: int) -> int:
        with self.read() as db:
            return int(db.execute(_OPEN, {"round": round}).scalar_one())

    def known(self, claimed: Sequence[Slot]) -> dict[int, Known]:
        """Return the answers that slots of one round have had, and what their agents remember of the asset."""
        if not claimed:
            return {}
        first, made = claimed[0], dict[int, list[ModelCall]]()
        with self.read() as db:
            for row in db.execute(CALLS, {"slots": [slot.id for slot in claimed]}):
                made.setdefault(row.slot, []).append(read_call(row))
            found = db.execute(_MEMORIES, {"season": first.season, "asset": first.asset})
            bodies = {row.entry: unpacked(row.body) for row in found}
        return {
            slot.id: Known(calls=tuple(made.get(slot.id, ())), memory=bodies.get(slot.entry)) for slot in claimed
        }

    def record_calls(self, slot: int, made: Sequence[ModelCall]) -> None:
        """Write answers down before the next question is put."""
        with self.write("call") as db:
            _insert_calls(db, [(slot, call) for call in made])

    def calls(self, slot: int) -> tuple[ModelCall, ...]:
        with self.read() as db:
            return tuple(read_call(row) for row in db.execute(CALLS, {"slots": [slot]}))

    def decide(self, made: Sequence[ClosedSlot], worker: str) -> int:
        """Close slots, each with its choice, its memory and the calls not yet written.

        Returns how many were closed: a slot that is no longer this worker's is left alone.
        """
        ours = {"ids": [decided.slot.id for decided in made], "worker": worker}
        with self.write("decide") as db:
            held = set(db.execute(_OURS.with_for_update() if self._locks else _OURS, ours).scalars())
            mine = [decided for decided in made if decided.slot.id in held]
            # An answer that was acknowledged counts, also when whoever waited for it gave up a moment before.
            failed = [decided.slot.id for decided in mine if decided.choice.status == "failed"]
            query = select(door_offers.c.slot, door_offers.c.body).where(door_offers.c.slot.in_(failed))
            answered = {row.slot: _CHOICE.decode(row.body) for row in db.execute(query)} if failed else {}
            mine = [
                msgspec.structs.replace(decided, choice=answered.get(decided.slot.id, decided.choice))
                for decided in mine
            ]
            close_slots(db, mine)
        return len(mine)

    def miss(self, round: Round, now: str, cause: str) -> int:
        """Record the slots of a round that are still open as missed, and why; returns how many.

        An answer that was received and acknowledged counts, whatever became of the worker that was to take it.
        """
        values = {"status": "missed", "action": "HOLD", "decided_at": now, "lease_until": None}
        query = select(*_CLAIMED, door_offers.c.body).join(door_offers, door_offers.c.slot == decisions.c.id)
        query = query.where(decisions.c.round == round.id, decisions.c.status == "open").order_by(decisions.c.id)
        with self.write("miss") as db:
            answered = [
                ClosedSlot(
                    slot=read_slot(row),
                    choice=_CHOICE.decode(row.body),
                    usage=Usage(usd=0.0),
                    calls=0,
                    decided_at=round.decision_time,
                )
                for row in db.execute(query.with_for_update(of=decisions) if self._locks else query)
            ]
            close_slots(db, answered)
            closed = db.execute(
                update(decisions)
                .where(decisions.c.round == round.id, decisions.c.status == "open")
                .values(**values, failures=_missed_because(cause))
            )
            if closed.rowcount:
                told = {"asset": round.asset, "session": round.session, "cause": cause, "slots": closed.rowcount}
                tell(db, round.season, "missed", now, told)
            return int(closed.rowcount)

    def skip(self, season: str, asset: str, session: str, stage: Stage, cause: str, now: str) -> bool:
        """Record a session without a round, which everybody missed; False when that is on record."""
        row = {"season": season, "asset": asset, "session": session, "stage": stage, "cause": cause, "at": now}
        try:
            with self.write("skip") as db:
                db.execute(insert(skipped).values(**row))
                tell(db, season, "missed", now, {"asset": asset, "session": session, "cause": cause})
        except IntegrityError:
            return False
        return True

    def skipped(self, season: str) -> tuple[Skipped, ...]:
        query = select(skipped).where(skipped.c.season == season).order_by(skipped.c.session, skipped.c.asset)
        with self.read() as db:
            return tuple(
                Skipped(asset=r.asset, session=r.session, stage=r.stage, cause=r.cause, at=r.at)
                for r in db.execute(query)
            )

    def amendments(self, season: str) -> tuple[Amendment, ...]:
        """Return what the operator has changed so far, oldest first."""
        with self.read() as db:
            rows = db.execute(_AMENDMENTS, {"season": season}).mappings().all()
        return tuple(Amendment(**{name: row[name] for name in Amendment.__struct_fields__}) for row in rows)

    def amend(self, season: Season, made: Sequence[Amendment]) -> None:
        """Write amendments down behind those that ``season`` has, and tell of them.

        Raises :class:`UserError` where somebody else was faster, or a session was opened that one of them changes.
        """
        with self.write("amend") as db:
            self._lock_season(db, season.id)
            newest = select(rounds.c.asset, func.max(rounds.c.session)).where(rounds.c.season == season.id)
            opened = {asset: session for asset, session in db.execute(newest.group_by(rounds.c.asset))}
            there = db.execute(_AMENDMENTS, {"season": season.id}).all()
            for one in made:
                own = one.change in ("retire", "reopen", "add")
                played = opened.get(one.what, "") if own else max(opened.values(), default="")
                begins = one.change in ("join", "rule", "reopen")
                late = one.change != "rename" and (played >= one.day if begins else played > one.day)
                if late or len(there) != len(season.amendments):
                    raise UserError("the season went on meanwhile", hint="give the command again")
            for one in made:
                row = msgspec.structs.asdict(one)
                db.execute(insert(amendments).values(season=season.id, **row))
                if one.change == "reopen":
                    place = (skipped.c.season == season.id, skipped.c.asset == one.what)
                    db.execute(delete(skipped).where(*place, skipped.c.session == one.day))
                tell(db, season.id, "amended", one.at, row)

    def _lock_season(self, db: Connection, season: str) -> None:
        """Let nobody else open a round or amend the season before this transaction ends; SQLite has one writer."""
        if self._locks:
            db.execute(select(seasons.c.id).where(seasons.c.id == season).with_for_update())

    def memory(self, season: str, entry: str, asset: str) -> bytes | None:
        query = select(memories.c.body).where(*_MINE, memories.c.entry == bindparam("entry"))
        with self.read() as db:
            body = db.execute(query, {"season": season, "entry": entry, "asset": asset}).scalar()
        return None if body is None else unpacked(body)

    def advance(
        self, round: Round, moves: Callable[[Connection], dict[str, Any] | None], to: str, now: str
    ) -> bool:
        """Move a round to its next phase: ``moves`` does the work in the same transaction and says what to tell.

        Returns False, with nothing done, when the round has left the phase it was read in or ``moves`` gives None.
        """
        with self.write(to) as db:
            lock = _PHASE.with_for_update() if self._locks else _PHASE
            phase = db.execute(lock, {"round": round.id}).scalar_one()
            if phase != round.phase:
                return False
            told = moves(db)
            if told is None:
                return False
            db.execute(_MOVE, {"which": round.id, "to": to})
            tell(db, round.season, to, now, {"asset": round.asset, "session": round.session, **told})
        return True


def book(db: Connection, made: Sequence[tuple[Slot, Booking]], *, rewarded: bool = False) -> None:
    """Append bookings to the journal, and with ``rewarded`` what they earned to the reward log."""
    if not made:
        return
    rows = []
    for slot, booking in made:
        where = {name: getattr(slot, name) for name in ("season", "stage", "entry", "asset")}
        money = {name: getattr(booking, name) for name in Booking.__struct_fields__}
        rows.append({"slot": slot.id, "number": int(booking.kind == "settled"), **where, **money})
    db.execute(_ADD_BOOKING, rows)
    if rewarded:
        paid = [
            {"slot": slot.id, "reward": booking.earned, **{n: getattr(slot, n) for n in _LOGGED}}
            for slot, booking in made
        ]
        db.execute(_ADD_REWARD, paid)


_LOGGED = ("season", "entry", "asset", "session")


def _find_round(db: Connection, season: str, asset: str, session: str) -> Round | None:
    row = db.execute(_FIND_ROUND, {"season": season, "asset": asset, "session": session}).first()
    return None if row is None else read_round(row)


def _new_slot(season: Season, round: int, opening: RoundOpening, entry: str) -> dict[str, Any]:
    gone = opening.withdrawn.get(entry)
    cause = f"withdrawn by the operator on {gone}" if gone is not None else opening.cause
    why = _missed_because(cause) if cause else None
    closed = {"status": "missed", "action": "HOLD", "decided_at": opening.opened_at, "failures": why}
    free = {"status": "open", "action": None, "decided_at": None, "failures": None}
    return {
        "round": round,
        "season": season.id,
        "asset": opening.asset,
        "session": opening.session,
        "stage": opening.stage,
        "entry": entry,
        **(closed if opening.missed or gone is not None else free),
    }


def _missed_because(cause: str) -> str:
    return _ENCODE((ChoiceFailure(kind="missed", text=cause[:2000]),)).decode()


def read_call(row: Any, unpacked: Callable[[bytes], bytes] = unpacked) -> ModelCall:
    _, number, purpose, digest, request, reply = row
    return ModelCall(
        number=number,
        purpose=purpose,
        request_sha256=digest,
        request=unpacked(request),
        reply=unpacked(reply),
    )


def decided_row(decided: ClosedSlot) -> dict[str, Any]:
    """Return what a closed slot writes into its row of ``decisions``."""
    choice, usage = decided.choice, decided.usage
    same = ("status", "action", "confidence", "allocation", "reasoning", "message")
    return {
        **{name: getattr(choice, name) for name in same},
        **{name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "usd")},
        "talk": _ENCODE(choice.talk).decode(),
        "failures": _ENCODE(choice.failures).decode(),
        "decided_at": decided.decided_at,
        "calls": decided.calls,
    }


def close_slots(db: Connection, made: Sequence[ClosedSlot]) -> None:
    """Write down decisions, each with its memory and the calls not yet written."""
    if made:
        rows = [(one.slot.id, decided_row(one)) for one in made]
        db.execute(_DECIDE, [{"which": id, **{f"b_{name}": row[name] for name in row}} for id, row in rows])
        _insert_calls(db, [(decided.slot.id, call) for decided in made for call in decided.unwritten])
        _remember(db, [decided for decided in made if decided.choice.memory is not None])
        db.execute(_ADD_EVENT, [_told(decided) for decided in made])


def _told(decided: ClosedSlot) -> dict[str, Any]:
    slot, choice = decided.slot, decided.choice
    body = {"asset": slot.asset, "session": slot.session, "entry": slot.entry, "action": choice.action}
    at = {"season": slot.season, "kind": choice.status, "at": decided.decided_at}
    return {**at, "body": _ENCODE(body).decode()}


def _insert_calls(db: Connection, made: Sequence[tuple[int, ModelCall]]) -> None:
    if made:
        rows = [
            {
                "slot": slot,
                "number": call.number,
                "purpose": call.purpose,
                "request_sha256": call.request_sha256,
                "request": packed(call.request),
                "reply": packed(call.reply),
            }
            for slot, call in made
        ]
        db.execute(_ADD_CALL, rows)


def _remember(db: Connection, made: Sequence[ClosedSlot]) -> None:
    if made:
        keys = [(decided, decided.slot) for decided in made]
        db.execute(_FORGET, [{"b_season": s.season, "b_entry": s.entry, "b_asset": s.asset} for _, s in keys])
        rows = [
            {
                "season": slot.season,
                "entry": slot.entry,
                "asset": slot.asset,
                "slot": slot.id,
                "body": packed(decided.choice.memory or b""),
            }
            for decided, slot in keys
        ]
        db.execute(_ADD_MEMORY, rows)


def tell(db: Connection, season: str, kind: str, at: str, body: dict[str, Any]) -> None:
    """Add an event for the live pages, in the transaction of what happened."""
    db.execute(_ADD_EVENT, {"season": season, "kind": kind, "at": at, "body": _ENCODE(body).decode()})
