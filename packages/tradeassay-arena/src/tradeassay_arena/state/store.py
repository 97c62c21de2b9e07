"""Write and read seasons, rounds, slots and calls in the arena's database.

Other modules write through :meth:`Store.write`. Every method that writes does so in one transaction
and can safely be repeated. A process may die between any two transactions. Four rules make this
safe:

- Rounds, slots, calls and bookings have unique keys.
- Only the worker that leases a slot decides it, and only while the slot is open.
- The phase of a round only moves forward.
- Each move does all of its work in one transaction.

Statements for every slot or round are built once, because building a statement takes longer than
running it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import Any

import msgspec
from sqlalchemy import (
    Connection,
    Engine,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay_arena.daily_target import Booking
from tradeassay_arena.season import Amendment, Season
from tradeassay_arena.state import rows as read, tables as t
from tradeassay_arena.state.rows import (
    ClosedSlot,
    ModelCall,
    Round,
    Skipped,
    Slot,
    SlotStart,
    Stage,
    unpacked,
)
from tradeassay_bench.core.arena import AgentChoice, ChoiceFailure, Packet
from tradeassay_bench.core.dialogue import Usage

ROUND = tuple(t.rounds.c[name] for name in Round.__struct_fields__)
_ENCODE = msgspec.json.encode
_CHOICE = msgspec.json.Decoder(AgentChoice)
_AMENDMENT = msgspec.json.Decoder(Amendment)

_FIND_ROUND = select(*ROUND).filter_by(
    **{name: bindparam(name) for name in ("season", "asset", "session")}
)
_OF_ASSET: dict[str, Any] = {name: bindparam(name) for name in ("season", "asset")}
_LAST_ROUND = select(*ROUND).filter_by(**_OF_ASSET).order_by(t.rounds.c.session.desc()).limit(1)
_AMENDMENTS = select(t.events.c.body).where(t.events.c.season == bindparam("season"), t.AMENDED)
_AMENDMENTS = _AMENDMENTS.order_by(t.events.c.seq)
_PACKET = select(t.rounds.c.packet).filter_by(id=bindparam("round"))
_OPEN = select(func.count(t.decisions.c.id)).filter_by(round=bindparam("round"), status="open")
_CLAIMED = tuple(
    t.decisions.c[name] for name in "id round season asset session stage entry status".split()
)
_LEASE = t.decisions.c.lease_until
_FREE = (
    _LEASE.is_(None)
    | (_LEASE <= bindparam("now"))
    | (t.decisions.c.lease_owner == bindparam("worker"))
)
_MINE = select(*_CLAIMED).filter_by(round=bindparam("round"), status="open").where(_FREE)
CLAIM = _MINE.order_by(t.decisions.c.id).limit(bindparam("most"))
_SOME = t.decisions.c.id.in_(bindparam("ids", expanding=True))
_TAKE = (
    update(t.decisions)
    .where(_SOME)
    .values(lease_owner=bindparam("worker"), lease_until=bindparam("until"))
)
_OURS = (
    select(t.decisions.c.id).where(_SOME).filter_by(status="open", lease_owner=bindparam("worker"))
)
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
_FORGET = delete(t.memories).filter_by(
    **{name: bindparam(f"b_{name}") for name in ("season", "entry", "asset")}
)
_ADD_EVENT, _ADD_CALL, _ADD_MEMORY, _ADD_BOOKING, _ADD_REWARD = map(
    insert, (t.events, t.calls, t.memories, t.bookings, t.rewards)
)


# A row of another worker is not an error. Without this clause PostgreSQL would log each one.
_ADD_ROUND = {
    "postgresql": postgresql.insert(t.rounds).on_conflict_do_nothing().returning(t.rounds.c.id),
    "sqlite": sqlite.insert(t.rounds).on_conflict_do_nothing().returning(t.rounds.c.id),
}


class Amended(TradeassayError):
    """Raised if the season was amended in the meantime. The round must be planned again."""


class Store:
    """The arena's database, with its transactions.

    ``committed`` is called with the name of every transaction that :meth:`write` committed.
    """

    def __init__(self, engine: Engine, committed: Callable[[str], None] | None = None) -> None:
        self.engine = engine
        self.committed = committed
        self._locks = engine.dialect.name == "postgresql"
        self._turn: AbstractContextManager[object] = nullcontext() if self._locks else Lock()
        # On PostgreSQL every statement sees all data committed before it, so a transaction would
        # only add two messages. On SQLite a transaction gives several statements the same state.
        self._reading = {"isolation_level": "AUTOCOMMIT"} if self._locks else {"read_only": True}

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """Open one transaction and yield its connection.

        SQLite allows one writer at a time and makes other writers poll. Threads of one process
        therefore wait for a lock instead, and the next thread continues immediately.
        """
        with self._turn, self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, what: str) -> Iterator[Connection]:
        """Open one named transaction of the arena's modules and yield its connection."""
        with self.change() as connection:
            yield connection
        if self.committed is not None:
            self.committed(what)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for reading and yield it."""
        with self.engine.connect().execution_options(**self._reading) as connection:
            yield connection

    def rows(self, query: Select[Any], given: Mapping[str, Any] | None = None) -> Sequence[Any]:
        """Return the rows of a query."""
        with self.read() as db:
            return db.execute(query, given).all()

    def scalar(self, query: Select[Any], given: Mapping[str, Any] | None = None) -> Any:
        """Return the first column of the first row of a query, or None."""
        with self.read() as db:
            return db.execute(query, given).scalar()

    def create_season(self, season: Season, now: str) -> None:
        """Store a season. Raises :class:`UserError` if its id belongs to another spec."""
        spec = select(t.seasons.c.spec).where(t.seasons.c.id == season.id)
        with self.write("season") as db:
            known = db.execute(spec).scalar()
            if known is None:
                row = {"id": season.id, "spec": season.frozen.decode(), "sha256": season.sha256}
                if add_unless_there(db, t.seasons, {**row, "created_at": now}):
                    add_event(
                        db, season.id, "season", now, {"id": season.id, "title": season.title}
                    )
                else:  # another worker stored it at the same moment
                    known = db.execute(spec).scalar()
        # Compare specs and not hashes: older specs lack settings that were added later.
        if (
            known is not None
            and not season.founded
            and msgspec.json.decode(known, type=Season) != season
        ):
            what = f"season '{season.id}' is frozen with another spec"
            raise UserError(what, hint="give the changed season another id")

    def open_round(
        self, season: Season, packet: Packet, now: str, *, missed: str, shared: str | None
    ) -> Round:
        """Return a session's round, and open it with a slot for every entry if there is none.

        ``missed`` is the cause if the time to decide is over, and empty otherwise. With a cause,
        all slots are missed. ``shared`` is the present state of accounts over all assets, as JSON.
        Raises :class:`Amended` if ``season`` lacks an amendment.
        """
        body, asset, session = canonical_json(packet), packet.symbol, packet.date
        place = {"season": season.id, "asset": asset, "session": session, "stage": packet.phase}
        row: dict[str, Any] = {**place, "phase": "opened", "opened_at": now, "shared": shared}
        row |= {
            "decision_time": packet.decided_at,
            "price": packet.price,
            "momentum": packet.momentum,
        }
        row |= {"packet": body.decode(), "packet_sha256": sha256_bytes(body)}
        free = {"status": "open", "action": None, "decided_at": None, "failures": None}
        slots = []
        for entry in season.all_entries:
            gone = season.withdrawn.get(entry.id, session)  # the last day of the entry's decisions
            cause = f"withdrawn by the operator on {gone}" if gone < session else missed
            closed = {
                "status": "missed",
                "action": "HOLD",
                "decided_at": now,
                "failures": _missed_because(cause),
            }
            slots.append({**place, "entry": entry.id, **(closed if cause else free)})
        with self.write("open") as db:
            self.lock_season(db, season.id)
            if len(db.execute(_AMENDMENTS, {"season": season.id}).all()) != len(season.amendments):
                raise Amended(f"season '{season.id}' was amended just now")
            id = db.execute(_ADD_ROUND[db.dialect.name], row).scalar()
            if id is not None:  # otherwise another worker has opened it
                db.execute(_ADD_SLOT, [{**slot, "round": id} for slot in slots])
                told = {"asset": asset, "session": session, "price": packet.price}
                add_event(db, season.id, "opened", now, told)
                if missed:
                    add_event(db, season.id, "missed", now, {**told, "cause": missed})
        found = self.round(season.id, asset, session)
        assert found is not None
        return found

    def round(self, season: str, asset: str, session: str) -> Round | None:
        """Return the round of an asset's session, or None if it was not opened."""
        found = self.rows(_FIND_ROUND, {"season": season, "asset": asset, "session": session})
        return read.read_row(Round, found[0]) if found else None

    def last_round(self, season: str, asset: str, before: str | None = None) -> Round | None:
        """Return an asset's round with the latest session, or None if there is no round.

        With ``before``, only rounds of sessions before that day are searched.
        """
        query = _LAST_ROUND if before is None else _LAST_ROUND.where(t.rounds.c.session < before)
        found = self.rows(query, {"season": season, "asset": asset})
        return read.read_row(Round, found[0]) if found else None

    def packet(self, round: int) -> Packet:
        """Return the packet of a round: the facts that its agents see."""
        return read.read_packet(self.scalar(_PACKET, {"round": round}))

    def claim(
        self, round: int, worker: str, now: float, until: float, most: int
    ) -> tuple[Slot, ...]:
        """Lease open slots of a round to a worker, and return them.

        At most ``most`` slots are leased, until ``until``. ``now`` and ``until`` are seconds of
        real time. A worker gets its own unexpired leases again, because it claims a slot twice only
        after a restart.
        """
        query = CLAIM.with_for_update(skip_locked=True) if self._locks else CLAIM
        asked = {"round": round, "worker": worker, "now": now, "most": most}
        with self.write("claim") as db:
            found = tuple(Slot(**row) for row in db.execute(query, asked).mappings())
            if found:
                db.execute(
                    _TAKE, {"ids": [slot.id for slot in found], "worker": worker, "until": until}
                )
        return found

    def open_slots(self, round: int) -> int:
        """Return the number of open slots of a round."""
        return int(self.scalar(_OPEN, {"round": round}))

    def known(self, claimed: Sequence[Slot]) -> dict[int, SlotStart]:
        """Return the recorded calls and the agent's memory of the asset for each claimed slot.

        All slots must belong to one round. Keys are the ids of slots.
        """
        if not claimed:
            return {}
        first, made = claimed[0], dict[int, list[ModelCall]]()
        for row in self.rows(CALLS, {"slots": [slot.id for slot in claimed]}):
            made.setdefault(row.slot, []).append(read_call(row))
        found = self.rows(_MEMORIES, {"season": first.season, "asset": first.asset})
        bodies = {row.entry: unpacked(row.body) for row in found}
        return {
            slot.id: SlotStart(calls=tuple(made.get(slot.id, ())), memory=bodies.get(slot.entry))
            for slot in claimed
        }

    def record_call(self, slot: int, made: ModelCall) -> None:
        """Write one call to a model with its answer."""
        with self.write("call") as db:
            _insert_calls(db, [(slot, made)])

    def calls(self, slot: int) -> tuple[ModelCall, ...]:
        return tuple(read_call(row) for row in self.rows(CALLS, {"slots": [slot]}))

    def decide(self, made: Sequence[ClosedSlot], worker: str) -> int:
        """Close slots, each with its choice, its memory and the calls not yet written.

        Returns the number of closed slots. A slot that another worker has taken over is not
        changed.
        """
        ours = {"ids": [decided.slot.id for decided in made], "worker": worker}
        with self.write("decide") as db:
            held = set(
                db.execute(_OURS.with_for_update() if self._locks else _OURS, ours).scalars()
            )
            mine = [decided for decided in made if decided.slot.id in held]
            # An acknowledged answer counts, even if the worker stopped waiting a moment before.
            failed = [decided.slot.id for decided in mine if decided.choice.status == "failed"]
            query = select(t.door_offers.c.slot, t.door_offers.c.body).where(
                t.door_offers.c.slot.in_(failed)
            )
            answered = (
                {row.slot: _CHOICE.decode(row.body) for row in db.execute(query)} if failed else {}
            )
            replace = msgspec.structs.replace
            close_slots(
                db, [replace(one, choice=answered.get(one.slot.id, one.choice)) for one in mine]
            )
        return len(mine)

    def miss(self, round: Round, now: str, cause: str) -> None:
        """Record the open slots of a round as missed, with the cause.

        An acknowledged answer counts, even if the worker that should process it died.
        """
        unanswered = (t.decisions.c.round == round.id, t.decisions.c.status == "open")
        query = (
            select(*_CLAIMED, t.door_offers.c.body).where(*unanswered).order_by(t.decisions.c.id)
        )
        query = query.join(t.door_offers, t.door_offers.c.slot == t.decisions.c.id)
        spent: dict[str, Any] = {
            "usage": Usage(usd=0.0),
            "calls": 0,
            "decided_at": round.decision_time,
        }
        with self.write("miss") as db:
            found = db.execute(
                query.with_for_update(of=t.decisions) if self._locks else query
            ).all()
            made = [
                ClosedSlot(slot=read.read_slot(r), choice=_CHOICE.decode(r.body), **spent)
                for r in found
            ]
            close_slots(db, made)
            late = {
                "status": "missed",
                "action": "HOLD",
                "decided_at": now,
                "failures": _missed_because(cause),
            }
            closed = db.execute(
                update(t.decisions).where(*unanswered).values(**late, lease_until=None)
            )
            if closed.rowcount:
                told = {
                    "asset": round.asset,
                    "session": round.session,
                    "cause": cause,
                    "slots": closed.rowcount,
                }
                add_event(db, round.season, "missed", now, told)

    def skip(
        self, season: str, asset: str, session: str, stage: Stage, cause: str, now: str
    ) -> None:
        """Record that a session has no round, unless this is recorded already."""
        row = {
            "season": season,
            "asset": asset,
            "session": session,
            "stage": stage,
            "cause": cause,
            "at": now,
        }
        with self.write("skip") as db:
            if add_unless_there(db, t.skipped, row):
                add_event(
                    db, season, "missed", now, {"asset": asset, "session": session, "cause": cause}
                )

    def skipped(self, season: str) -> tuple[Skipped, ...]:
        query = (
            select(t.skipped)
            .filter_by(season=season)
            .order_by(t.skipped.c.session, t.skipped.c.asset)
        )
        return tuple(read.read_row(Skipped, row) for row in self.rows(query))

    def amendments(self, season: str) -> tuple[Amendment, ...]:
        """Return the amendments so far, oldest first."""
        return tuple(
            _AMENDMENT.decode(body) for (body,) in self.rows(_AMENDMENTS, {"season": season})
        )

    def amend(self, season: Season, made: Sequence[Amendment]) -> None:
        """Append amendments to the journal, after the existing amendments of ``season``.

        Raises :class:`UserError` if another amendment was written in the meantime, or if a round
        was opened for a session that an amendment changes.
        """
        with self.write("amend") as db:
            self.lock_season(db, season.id)
            newest = select(t.rounds.c.asset, func.max(t.rounds.c.session)).where(
                t.rounds.c.season == season.id
            )
            opened = {
                asset: session for asset, session in db.execute(newest.group_by(t.rounds.c.asset))
            }
            there = db.execute(_AMENDMENTS, {"season": season.id}).all()
            if len(there) != len(season.amendments) or any(one.late(opened) for one in made):
                raise UserError(
                    "the season has advanced in the meantime", hint="run the command again"
                )
            for one in made:
                if one.change == "reopen":
                    db.execute(
                        delete(t.skipped).filter_by(
                            season=season.id, asset=one.what, session=one.day
                        )
                    )
                add_event(db, season.id, "amended", one.at, msgspec.structs.asdict(one))

    def lock_season(self, db: Connection, season: str) -> None:
        """Lock the season until the end of this transaction.

        On SQLite nothing is locked, because it allows only one writer.
        """
        if self._locks:
            db.execute(select(t.seasons.c.id).filter_by(id=season).with_for_update())

    def memory(self, season: str, entry: str, asset: str) -> bytes | None:
        """Return an entry's memory of an asset, or None if nothing was stored."""
        body = self.scalar(
            select(t.memories.c.body).filter_by(season=season, entry=entry, asset=asset)
        )
        return None if body is None else unpacked(body)

    def advance(
        self, round: Round, moves: Callable[[Connection], dict[str, Any] | None], to: str, now: str
    ) -> bool:
        """Move a round to the phase ``to``, and return whether it moved.

        ``moves`` does the work in the same transaction and returns the body of the event. Nothing
        changes if the round has already left its phase or ``moves`` returns None.
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
            add_event(
                db, round.season, to, now, {"asset": round.asset, "session": round.session, **told}
            )
        return True


def book(db: Connection, made: Sequence[tuple[Slot, Booking]], *, rewarded: bool = False) -> None:
    """Append bookings to the journal.

    With ``rewarded``, the returns are also appended to the log of rewards.
    """
    if not made:
        return
    rows, paid = [], []
    for slot, booking in made:
        where = {"slot": slot.id, "season": slot.season, "entry": slot.entry, "asset": slot.asset}
        number = int(booking.kind == "settled")
        rows.append(
            {**where, "number": number, "stage": slot.stage, **msgspec.structs.asdict(booking)}
        )
        paid.append({**where, "session": slot.session, "reward": booking.earned})
    db.execute(_ADD_BOOKING, rows)
    if rewarded:
        db.execute(_ADD_REWARD, paid)


def _missed_because(cause: str) -> str:
    return _ENCODE((ChoiceFailure(kind="missed", text=cause[:2000]),)).decode()


def read_call(row: Any, unpacked: Callable[[bytes], bytes] = unpacked) -> ModelCall:
    """Return the call of a row of ``calls``. ``unpacked`` decompresses its bodies."""
    _, number, purpose, digest, request, reply = row
    request, reply = unpacked(request), unpacked(reply)
    return ModelCall(
        number=number, purpose=purpose, request_sha256=digest, request=request, reply=reply
    )


def decided_row(decided: ClosedSlot) -> dict[str, Any]:
    """Return the columns of ``decisions`` that a closed slot sets."""
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
    """Write the decisions of closed slots, with their memories, unwritten calls and events."""
    if not made:
        return
    closed, kept, told = [], [], []
    for one in made:
        slot, choice = one.slot, one.choice
        closed.append(
            {"which": slot.id, **{f"b_{name}": value for name, value in decided_row(one).items()}}
        )
        if choice.memory is not None:
            key = {"season": slot.season, "entry": slot.entry, "asset": slot.asset}
            kept.append({**key, "slot": slot.id, "body": read.packed(choice.memory)})
        body = {
            "asset": slot.asset,
            "session": slot.session,
            "entry": slot.entry,
            "action": choice.action,
        }
        at = {"season": slot.season, "kind": choice.status, "at": one.decided_at}
        told.append({**at, "body": _ENCODE(body).decode()})
    db.execute(_DECIDE, closed)
    unwritten = []
    for one in made:
        for call in one.unwritten:
            unwritten.append((one.slot.id, call))
    _insert_calls(db, unwritten)
    if kept:
        db.execute(
            _FORGET,
            [{f"b_{name}": row[name] for name in ("season", "entry", "asset")} for row in kept],
        )
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
    """Return an insert statement of the database's dialect, which has ON CONFLICT clauses."""
    return postgresql.insert(table) if db.dialect.name == "postgresql" else sqlite.insert(table)


def add_unless_there(db: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless a row with one of its unique keys exists, and return whether it was
    inserted.

    Waits for a row that another transaction is writing.
    """
    statement = insert_unless(db, table).on_conflict_do_nothing().values(**row)
    return db.execute(statement.returning(*table.primary_key)).first() is not None


def add_event(db: Connection, season: str, kind: str, at: str, body: dict[str, Any]) -> None:
    """Append an event to the journal, in the transaction of the reported change."""
    db.execute(
        _ADD_EVENT, {"season": season, "kind": kind, "at": at, "body": _ENCODE(body).decode()}
    )
