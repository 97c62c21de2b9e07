"""The only writer of the arena's database. Every method is one transaction, and can be repeated without harm.

A process may die between any two of them. What makes that safe: a round, a slot, a call and a booking have unique
keys; a slot is decided by whoever holds its lease and only while it is open; a round's status only moves
forward, and each move does all of its work in its own transaction.

Statements that every slot or round needs are made once, because building them takes longer than running them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Select, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tradeassay.account.daily_target import Booking
from tradeassay.arena.season import Amendment, Season
from tradeassay.arena.state import rows as read, tables as t
from tradeassay.arena.state.rows import ClosedSlot, Known, ModelCall, Round, Skipped, Slot, Stage, unpacked
from tradeassay.core.arena import AgentChoice, ChoiceFailure, Packet
from tradeassay.core.dialogue import Usage
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes

ROUND = tuple(t.rounds.c[name] for name in Round.__struct_fields__)
_ENCODE = msgspec.json.encode
_CHOICE = msgspec.json.Decoder(AgentChoice)

_FIND_ROUND = select(*ROUND).filter_by(**{name: bindparam(name) for name in ("season", "asset", "session")})
_OF_ASSET: dict[str, Any] = {name: bindparam(name) for name in ("season", "asset")}
_LAST_ROUND = select(*ROUND).filter_by(**_OF_ASSET).order_by(t.rounds.c.session.desc()).limit(1)
_AMENDMENTS = select(t.amendments).filter_by(season=bindparam("season")).order_by(t.amendments.c.number)
_PACKET = select(t.rounds.c.packet).filter_by(id=bindparam("round"))
_OPEN = select(func.count(t.decisions.c.id)).filter_by(round=bindparam("round"), status="open")
_CLAIMED = tuple(t.decisions.c[name] for name in "id round season asset session stage entry status".split())
_LEASE = t.decisions.c.lease_until
_FREE = _LEASE.is_(None) | (_LEASE <= bindparam("now")) | (t.decisions.c.lease_owner == bindparam("worker"))
_MINE = select(*_CLAIMED).filter_by(round=bindparam("round"), status="open").where(_FREE)
CLAIM = _MINE.order_by(t.decisions.c.id).limit(bindparam("most"))
_SOME = t.decisions.c.id.in_(bindparam("ids", expanding=True))
_TAKE = update(t.decisions).where(_SOME).values(lease_owner=bindparam("worker"), lease_until=bindparam("until"))
_OURS = select(t.decisions.c.id).where(_SOME).filter_by(status="open", lease_owner=bindparam("worker"))
_ASKED = t.calls.c.slot.in_(bindparam("slots", expanding=True))
CALLS = select(t.calls).where(_ASKED).order_by(t.calls.c.slot, t.calls.c.number)
_PHASE = select(t.rounds.c.phase).where(t.rounds.c.id == bindparam("round"))
_MOVE = update(t.rounds).where(t.rounds.c.id == bindparam("which")).values(phase=bindparam("to"))
_ADD_SLOT = insert(t.decisions)
_MEMORIES = select(t.memories.c.entry, t.memories.c.body).filter_by(**_OF_ASSET)
_DECIDED = (
    "status action confidence allocation reasoning message talk failures decided_at calls "
    "input_tokens output_tokens usd"
).split()
_NEW: dict[str, Any] = {"lease_until": None, **{name: bindparam(f"b_{name}") for name in _DECIDED}}
_DECIDE = update(t.decisions).filter_by(id=bindparam("which")).values(_NEW)
_FORGET = delete(t.memories).filter_by(**{name: bindparam(f"b_{name}") for name in ("season", "entry", "asset")})
_ADD_EVENT, _ADD_CALL, _ADD_MEMORY, _ADD_BOOKING, _ADD_REWARD = map(
    insert, (t.events, t.calls, t.memories, t.bookings, t.rewards)
)


# A row that another worker has written is no error: PostgreSQL would put each one into its log.
_ADD_ROUND = {
    "postgresql": postgresql.insert(t.rounds).on_conflict_do_nothing().returning(t.rounds.c.id),
    "sqlite": sqlite.insert(t.rounds).on_conflict_do_nothing().returning(t.rounds.c.id),
}


class Amended(TradeassayError):
    """The season is not any more what whoever opens a round believes it to be; it has to be planned again."""


class Store:
    """Writes and the reads that writing needs. ``committed`` is told the name of every transaction after it."""

    def __init__(self, engine: Engine, committed: Callable[[str], None] | None = None) -> None:
        self.engine = engine
        self._committed = committed
        self._locks = engine.dialect.name == "postgresql"
        self._turn: AbstractContextManager[object] = nullcontext() if self._locks else Lock()
        # PostgreSQL shows every statement what is committed by then, in a transaction or not, and a transaction
        # takes two more messages. On SQLite it makes several statements see one moment.
        self._reading = {"isolation_level": "AUTOCOMMIT"} if self._locks else {"read_only": True}

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """Return a connection inside one transaction.

        SQLite has one writer at a time and lets the others look again and again; threads of one process wait
        here, where the next is let in at once."""
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
        with self.engine.connect().execution_options(**self._reading) as connection:
            yield connection

    def rows(self, query: Select[Any], given: Mapping[str, Any] | None = None) -> Sequence[Any]:
        """Return what a query finds now."""
        with self.read() as db:
            return db.execute(query, given).all()

    def scalar(self, query: Select[Any], given: Mapping[str, Any] | None = None) -> Any:
        """Return the first column of the first row that a query finds now, or None."""
        with self.read() as db:
            return db.execute(query, given).scalar()

    def found_season(self, season: Season, now: str) -> None:
        """Write a season down; raises :class:`UserError` when its id already stands for another spec."""
        spec = select(t.seasons.c.spec).where(t.seasons.c.id == season.id)
        with self.write("season") as db:
            known = db.execute(spec).scalar()
            if known is None:
                row = {"id": season.id, "spec": season.frozen.decode(), "sha256": season.sha256}
                if add_unless_there(db, t.seasons, {**row, "created_at": now}):
                    tell(db, season.id, "season", now, {"id": season.id, "title": season.title})
                else:  # another worker wrote it at the same moment
                    known = db.execute(spec).scalar()
        # The specs are compared, not their hashes: a setting that came later stands at its default in older ones.
        if known is not None and not season.founded and msgspec.json.decode(known, type=Season) != season:
            what = f"season '{season.id}' is frozen with another spec"
            raise UserError(what, hint="give the changed one another id")

    def open_round(self, season: Season, packet: Packet, now: str, *, missed: str, shared: str | None) -> Round:
        """Open a round with a slot for every entry, or return the one that is there.

        ``missed`` says why its time to decide is over, so that all its slots are missed. ``shared`` is what
        accounts over all assets are worth now, as JSON."""
        body, asset, session = canonical_json(packet), packet.symbol, packet.date
        place = {"season": season.id, "asset": asset, "session": session, "stage": packet.phase}
        row: dict[str, Any] = {**place, "phase": "opened", "opened_at": now, "shared": shared}
        row |= {"decision_time": packet.decided_at, "price": packet.price, "momentum": packet.momentum}
        row |= {"packet": body.decode(), "packet_sha256": sha256_bytes(body)}
        free = {"status": "open", "action": None, "decided_at": None, "failures": None}
        slots = []
        for entry in season.everyone:
            gone = season.withdrawn.get(entry.id, session)  # the last day on which it was asked
            cause = f"withdrawn by the operator on {gone}" if gone < session else missed
            closed = {"status": "missed", "action": "HOLD", "decided_at": now, "failures": _missed_because(cause)}
            slots.append({**place, "entry": entry.id, **(closed if cause else free)})
        with self.write("open") as db:
            self.lock_season(db, season.id)
            if len(db.execute(_AMENDMENTS, {"season": season.id}).all()) != len(season.amendments):
                raise Amended(f"season '{season.id}' was amended just now")
            id = db.execute(_ADD_ROUND[db.dialect.name], row).scalar()
            if id is not None:  # else another worker has opened it
                db.execute(_ADD_SLOT, [{**slot, "round": id} for slot in slots])
                told = {"asset": asset, "session": session, "price": packet.price}
                tell(db, season.id, "opened", now, told)
                if missed:
                    tell(db, season.id, "missed", now, {**told, "cause": missed})
        found = self.round(season.id, asset, session)
        assert found is not None
        return found

    def round(self, season: str, asset: str, session: str) -> Round | None:
        found = self.rows(_FIND_ROUND, {"season": season, "asset": asset, "session": session})
        return read.read_row(Round, found[0]) if found else None

    def last_round(self, season: str, asset: str, before: str | None = None) -> Round | None:
        query = _LAST_ROUND if before is None else _LAST_ROUND.where(t.rounds.c.session < before)
        found = self.rows(query, {"season": season, "asset": asset})
        return read.read_row(Round, found[0]) if found else None

    def packet(self, round: int) -> Packet:
        return read.read_packet(self.scalar(_PACKET, {"round": round}))

    def claim(self, round: int, worker: str, now: float, until: float, most: int) -> tuple[Slot, ...]:
        """Lease up to ``most`` open slots of a round to a worker; ``now``/``until`` are real seconds.

        A worker gets its own leases back at once: it can only ask again after it has died."""
        query = CLAIM.with_for_update(skip_locked=True) if self._locks else CLAIM
        asked = {"round": round, "worker": worker, "now": now, "most": most}
        with self.write("claim") as db:
            found = tuple(Slot(**row) for row in db.execute(query, asked).mappings())
            if found:
                db.execute(_TAKE, {"ids": [slot.id for slot in found], "worker": worker, "until": until})
        return found

    def open_slots(self, round: int) -> int:
        return int(self.scalar(_OPEN, {"round": round}))

    def known(self, claimed: Sequence[Slot]) -> dict[int, Known]:
        """Return the answers that slots of one round have had, and what their agents remember of the asset."""
        if not claimed:
            return {}
        first, made = claimed[0], dict[int, list[ModelCall]]()
        for row in self.rows(CALLS, {"slots": [slot.id for slot in claimed]}):
            made.setdefault(row.slot, []).append(read_call(row))
        found = self.rows(_MEMORIES, {"season": first.season, "asset": first.asset})
        bodies = {row.entry: unpacked(row.body) for row in found}
        return {
            slot.id: Known(calls=tuple(made.get(slot.id, ())), memory=bodies.get(slot.entry)) for slot in claimed
        }

    def record_call(self, slot: int, made: ModelCall) -> None:
        """Write an answer down before the next question is put."""
        with self.write("call") as db:
            _insert_calls(db, [(slot, made)])

    def calls(self, slot: int) -> tuple[ModelCall, ...]:
        return tuple(read_call(row) for row in self.rows(CALLS, {"slots": [slot]}))

    def decide(self, made: Sequence[ClosedSlot], worker: str) -> int:
        """Close slots, each with its choice, its memory and the calls not yet written.

        Returns how many were closed: a slot that is no longer this worker's is left alone."""
        ours = {"ids": [decided.slot.id for decided in made], "worker": worker}
        with self.write("decide") as db:
            held = set(db.execute(_OURS.with_for_update() if self._locks else _OURS, ours).scalars())
            mine = [decided for decided in made if decided.slot.id in held]
            # An answer that was acknowledged counts, also when whoever waited for it gave up a moment before.
            failed = [decided.slot.id for decided in mine if decided.choice.status == "failed"]
            query = select(t.door_offers.c.slot, t.door_offers.c.body).where(t.door_offers.c.slot.in_(failed))
            answered = {row.slot: _CHOICE.decode(row.body) for row in db.execute(query)} if failed else {}
            replace = msgspec.structs.replace
            close_slots(db, [replace(one, choice=answered.get(one.slot.id, one.choice)) for one in mine])
        return len(mine)

    def miss(self, round: Round, now: str, cause: str) -> None:
        """Record the slots of a round that are still open as missed, and why.

        An answer that was received and acknowledged counts, whatever became of the worker that was to take it."""
        unanswered = (t.decisions.c.round == round.id, t.decisions.c.status == "open")
        query = select(*_CLAIMED, t.door_offers.c.body).where(*unanswered).order_by(t.decisions.c.id)
        query = query.join(t.door_offers, t.door_offers.c.slot == t.decisions.c.id)
        spent: dict[str, Any] = {"usage": Usage(usd=0.0), "calls": 0, "decided_at": round.decision_time}
        with self.write("miss") as db:
            found = db.execute(query.with_for_update(of=t.decisions) if self._locks else query).all()
            made = [ClosedSlot(slot=read.read_slot(r), choice=_CHOICE.decode(r.body), **spent) for r in found]
            close_slots(db, made)
            late = {"status": "missed", "action": "HOLD", "decided_at": now, "failures": _missed_because(cause)}
            closed = db.execute(update(t.decisions).where(*unanswered).values(**late, lease_until=None))
            if closed.rowcount:
                told = {"asset": round.asset, "session": round.session, "cause": cause, "slots": closed.rowcount}
                tell(db, round.season, "missed", now, told)

    def skip(self, season: str, asset: str, session: str, stage: Stage, cause: str, now: str) -> None:
        """Record a session without a round, which everybody missed, unless it is on record."""
        row = {"season": season, "asset": asset, "session": session, "stage": stage, "cause": cause, "at": now}
        with self.write("skip") as db:
            if add_unless_there(db, t.skipped, row):
                tell(db, season, "missed", now, {"asset": asset, "session": session, "cause": cause})

    def skipped(self, season: str) -> tuple[Skipped, ...]:
        query = select(t.skipped).filter_by(season=season).order_by(t.skipped.c.session, t.skipped.c.asset)
        return tuple(read.read_row(Skipped, row) for row in self.rows(query))

    def amendments(self, season: str) -> tuple[Amendment, ...]:
        """Return what the operator has changed so far, oldest first."""
        return tuple(read.read_row(Amendment, row) for row in self.rows(_AMENDMENTS, {"season": season}))

    def amend(self, season: Season, made: Sequence[Amendment]) -> None:
        """Write amendments down behind those that ``season`` has, and tell of them.

        Raises :class:`UserError` where somebody else was faster, or a session was opened that one of them changes.
        """
        with self.write("amend") as db:
            self.lock_season(db, season.id)
            newest = select(t.rounds.c.asset, func.max(t.rounds.c.session)).where(t.rounds.c.season == season.id)
            opened = {asset: session for asset, session in db.execute(newest.group_by(t.rounds.c.asset))}
            there = db.execute(_AMENDMENTS, {"season": season.id}).all()
            if len(there) != len(season.amendments) or any(one.late(opened) for one in made):
                raise UserError("the season went on meanwhile", hint="give the command again")
            for one in made:
                row = msgspec.structs.asdict(one)
                db.execute(insert(t.amendments).values(season=season.id, **row))
                if one.change == "reopen":
                    db.execute(delete(t.skipped).filter_by(season=season.id, asset=one.what, session=one.day))
                tell(db, season.id, "amended", one.at, row)

    def lock_season(self, db: Connection, season: str) -> None:
        """Let nobody else open a round or amend the season before this transaction ends; SQLite has one writer."""
        if self._locks:
            db.execute(select(t.seasons.c.id).filter_by(id=season).with_for_update())

    def memory(self, season: str, entry: str, asset: str) -> bytes | None:
        body = self.scalar(select(t.memories.c.body).filter_by(season=season, entry=entry, asset=asset))
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
    rows, paid = [], []
    for slot, booking in made:
        where = {"slot": slot.id, "season": slot.season, "entry": slot.entry, "asset": slot.asset}
        number = int(booking.kind == "settled")
        rows.append({**where, "number": number, "stage": slot.stage, **msgspec.structs.asdict(booking)})
        paid.append({**where, "session": slot.session, "reward": booking.earned})
    db.execute(_ADD_BOOKING, rows)
    if rewarded:
        db.execute(_ADD_REWARD, paid)


def _missed_because(cause: str) -> str:
    return _ENCODE((ChoiceFailure(kind="missed", text=cause[:2000]),)).decode()


def read_call(row: Any, unpacked: Callable[[bytes], bytes] = unpacked) -> ModelCall:
    _, number, purpose, digest, request, reply = row
    request, reply = unpacked(request), unpacked(reply)
    return ModelCall(number=number, purpose=purpose, request_sha256=digest, request=request, reply=reply)


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
    if not made:
        return
    closed, kept, told = [], [], []
    for one in made:
        slot, choice = one.slot, one.choice
        closed.append({"which": slot.id, **{f"b_{name}": value for name, value in decided_row(one).items()}})
        if choice.memory is not None:
            key = {"season": slot.season, "entry": slot.entry, "asset": slot.asset}
            kept.append({**key, "slot": slot.id, "body": read.packed(choice.memory)})
        body = {"asset": slot.asset, "session": slot.session, "entry": slot.entry, "action": choice.action}
        at = {"season": slot.season, "kind": choice.status, "at": one.decided_at}
        told.append({**at, "body": _ENCODE(body).decode()})
    db.execute(_DECIDE, closed)
    _insert_calls(db, [(one.slot.id, call) for one in made for call in one.unwritten])
    if kept:
        db.execute(_FORGET, [{f"b_{name}": row[name] for name in ("season", "entry", "asset")} for row in kept])
        db.execute(_ADD_MEMORY, kept)
    db.execute(_ADD_EVENT, told)


def _insert_calls(db: Connection, made: Sequence[tuple[int, ModelCall]]) -> None:
    rows = []
    for slot, call in made:
        bodies = {"request": read.packed(call.request), "reply": read.packed(call.reply)}
        rows.append({"slot": slot, **msgspec.structs.asdict(call), **bodies})
    if rows:
        db.execute(_ADD_CALL, rows)


def insert_unless(db: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insert that can be told what to do about a row that another worker wrote a moment ago."""
    return postgresql.insert(table) if db.dialect.name == "postgresql" else sqlite.insert(table)


def add_unless_there(db: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row; False, and nothing changes, where a row with one of its unique keys is there already.

    A row that another transaction is writing is waited for."""
    statement = insert_unless(db, table).on_conflict_do_nothing().values(**row)
    return db.execute(statement.returning(*table.primary_key)).first() is not None


def tell(db: Connection, season: str, kind: str, at: str, body: dict[str, Any]) -> None:
    """Add an event for the live pages, in the transaction of what happened."""
    db.execute(_ADD_EVENT, {"season": season, "kind": kind, "at": at, "body": _ENCODE(body).decode()})
