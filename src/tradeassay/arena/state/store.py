"""The only writer of the arena's database. Every method is one transaction, and can be repeated without harm.

A process may die between any two of them. What makes that safe: a round, a slot and a call have unique keys; a
slot is decided by the one who holds its lease and only while it is open; phases only move forward, and each move
does all of its work in its own transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from tradeassay.arena.season import Season
from tradeassay.arena.state.records import Call, Decided, Round, Slot, Stage, read_packet, read_round, read_slot
from tradeassay.arena.state.tables import calls, events, memories, rewards, rounds, seasons, slots
from tradeassay.core.arena import Packet
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes

_ROUND = tuple(rounds.c[name] for name in Round.__struct_fields__)
_ENCODE = msgspec.json.encode


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A round about to be opened. ``missed``: its time to decide is over, so all its slots are missed."""

    asset: str
    session: str
    decision_time: str
    stage: Stage
    packet: Packet
    opened_at: str
    missed: bool = False


class Store:
    """Writes and the reads that writing needs. ``committed`` is told the name of every transaction after it."""

    def __init__(self, engine: Engine, committed: Callable[[str], None] | None = None) -> None:
        self.engine = engine
        self._committed = committed
        self._locks = engine.dialect.name == "postgresql"

    @contextmanager
    def _write(self, what: str) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            yield connection
        if self._committed is not None:
            self._committed(what)

    @contextmanager
    def write(self, what: str) -> Iterator[Connection]:
        """Return a connection inside one transaction, for the arena's own rooms; ``what`` names it."""
        with self._write(what) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Return a connection that only reads."""
        with self.engine.connect().execution_options(read_only=True) as connection:
            yield connection

    def found_season(self, season: Season, now: str) -> None:
        """Write a season down; raises :class:`UserError` when its id stands for another spec already."""
        try:
            with self._write("season") as db:
                known = db.execute(select(seasons.c.sha256).where(seasons.c.id == season.id)).scalar()
                if known is None:
                    spec = canonical_json(season).decode()
                    db.execute(
                        insert(seasons).values(id=season.id, spec=spec, sha256=season.sha256, created_at=now)
                    )
                    _event(db, season.id, "season", now, {"id": season.id, "title": season.title})
        except IntegrityError:  # another worker wrote it at the same moment
            with self.read() as db:
                known = db.execute(select(seasons.c.sha256).where(seasons.c.id == season.id)).scalar()
        if known not in (None, season.sha256):
            raise UserError(
                f"season '{season.id}' is frozen with another spec", mend="give the changed one another id"
            )

    def open_round(self, season: Season, opening: Opening) -> Round:
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
        }
        try:
            with self._write("open") as db:
                there = _find_round(db, season.id, opening.asset, opening.session)
                if there is not None:
                    return there
                id = db.execute(insert(rounds).values(**row).returning(rounds.c.id)).scalar_one()
                db.execute(insert(slots), [_new_slot(season, id, opening, e.id) for e in season.everyone])
                told = {"asset": opening.asset, "session": opening.session, "price": opening.packet.price}
                _event(db, season.id, "opened", opening.opened_at, told)
        except IntegrityError:  # another worker opened it at the same moment
            pass
        found = self.round(season.id, opening.asset, opening.session)
        assert found is not None
        return found

    def round(self, season: str, asset: str, session: str) -> Round | None:
        """Return a round, or None when it was never opened."""
        with self.read() as db:
            return _find_round(db, season, asset, session)

    def last_round(self, season: str, asset: str) -> Round | None:
        """Return the newest round of an asset."""
        query = select(*_ROUND).where(rounds.c.season == season, rounds.c.asset == asset)
        with self.read() as db:
            row = db.execute(query.order_by(rounds.c.session.desc()).limit(1)).first()
        return None if row is None else read_round(row)

    def packet(self, round: int) -> Packet:
        """Return what everybody may know in a round."""
        with self.read() as db:
            return read_packet(db.execute(select(rounds.c.packet).where(rounds.c.id == round)).scalar_one())

    def claim(self, round: int, worker: str, now: float, until: float, most: int) -> tuple[Slot, ...]:
        """Lease up to ``most`` open slots of a round to a worker; ``now``/``until`` are real seconds.

        A worker gets its own leases back at once: it can only ask again after it has died.
        """
        free = (slots.c.lease_until.is_(None)) | (slots.c.lease_until <= now) | (slots.c.lease_owner == worker)
        query = select(slots).where(slots.c.round == round, slots.c.status == "open", free).order_by(slots.c.id)
        query = query.limit(most)
        if self._locks:
            query = query.with_for_update(skip_locked=True)
        with self._write("claim") as db:
            found = tuple(read_slot(row) for row in db.execute(query))
            if found:
                mine = slots.c.id.in_([slot.id for slot in found])
                db.execute(update(slots).where(mine).values(lease_owner=worker, lease_until=until))
        return found

    def open_slots(self, round: int) -> int:
        """Return how many slots of a round are not closed."""
        query = select(func.count()).where(slots.c.round == round, slots.c.status == "open")
        with self.read() as db:
            return int(db.execute(query).scalar_one())

    def record_calls(self, slot: int, made: Sequence[Call]) -> None:
        """Write answers down before the next question is put."""
        with self._write("call") as db:
            _insert_calls(db, slot, made)

    def calls(self, slot: int) -> tuple[Call, ...]:
        """Return the answers a slot has had so far."""
        query = select(calls).where(calls.c.slot == slot).order_by(calls.c.number)
        with self.read() as db:
            return tuple(
                Call(
                    number=row.number,
                    purpose=row.purpose,
                    request_sha256=row.request_sha256,
                    request=zlib.decompress(row.request),
                    reply=zlib.decompress(row.reply),
                )
                for row in db.execute(query)
            )

    def decide(self, slot: Slot, decided: Decided, worker: str, made: Sequence[Call] = ()) -> bool:
        """Close a slot with a choice, its memory and the calls not yet written; False when it is ours no more."""
        choice = decided.choice
        values = {
            "status": choice.status,
            "action": choice.action,
            "confidence": choice.confidence,
            "allocation": choice.allocation,
            "reasoning": choice.reasoning,
            "message": choice.message,
            "talk": _ENCODE(choice.talk).decode(),
            "failures": _ENCODE(choice.failures).decode(),
            "decided_at": decided.decided_at,
            "calls": decided.calls,
            "input_tokens": decided.usage.input_tokens,
            "output_tokens": decided.usage.output_tokens,
            "usd": decided.usage.usd,
            "lease_until": None,
        }
        ours = (slots.c.id == slot.id, slots.c.status == "open", slots.c.lease_owner == worker)
        with self._write("decide") as db:
            if db.execute(update(slots).where(*ours).values(**values)).rowcount != 1:
                return False
            _insert_calls(db, slot.id, made)
            if choice.memory is not None:
                _remember(db, slot, choice.memory)
            told = {"asset": slot.asset, "session": slot.session, "entry": slot.entry, "action": choice.action}
            _event(db, slot.season, choice.status, decided.decided_at, told)
        return True

    def note(self, season: str, kind: str, now: str, asset: str, session: str) -> None:
        """Tell whoever watches that something did not come to pass."""
        with self._write("note") as db:
            tell(db, season, kind, now, {"asset": asset, "session": session})

    def miss(self, round: int, now: str) -> int:
        """Record the slots of a round that are still open as missed; returns how many."""
        with self._write("miss") as db:
            closed = db.execute(
                update(slots)
                .where(slots.c.round == round, slots.c.status == "open")
                .values(status="missed", action="HOLD", decided_at=now, lease_until=None)
            )
            return int(closed.rowcount)

    def memory(self, season: str, entry: str, asset: str) -> bytes | None:
        """Return what an agent remembers about an asset."""
        where = (memories.c.season == season, memories.c.entry == entry, memories.c.asset == asset)
        with self.read() as db:
            body = db.execute(select(memories.c.body).where(*where)).scalar()
        return None if body is None else zlib.decompress(body)

    def advance(
        self, round: Round, moves: Callable[[Connection], dict[str, Any] | None], to: str, now: str
    ) -> bool:
        """Move a round to its next phase: ``moves`` does the work in the same transaction and says what to tell.

        Returns False, with nothing done, when the round has left the phase it was read in or ``moves`` gives None.
        """
        lock = select(rounds.c.phase).where(rounds.c.id == round.id)
        with self._write(to) as db:
            phase = db.execute(lock.with_for_update() if self._locks else lock).scalar_one()
            if phase != round.phase:
                return False
            told = moves(db)
            if told is None:
                return False
            db.execute(update(rounds).where(rounds.c.id == round.id).values(phase=to))
            _event(db, round.season, to, now, {"asset": round.asset, "session": round.session, **told})
        return True


def reward(db: Connection, slot: Slot, earned: float) -> None:
    """Add a line to the reward log."""
    where = {name: getattr(slot, name) for name in ("season", "entry", "asset", "session")}
    db.execute(insert(rewards).values(slot=slot.id, reward=earned, **where))


def _find_round(db: Connection, season: str, asset: str, session: str) -> Round | None:
    where = (rounds.c.season == season, rounds.c.asset == asset, rounds.c.session == session)
    row = db.execute(select(*_ROUND).where(*where)).first()
    return None if row is None else read_round(row)


def _new_slot(season: Season, round: int, opening: Opening, entry: str) -> dict[str, Any]:
    closed = {"status": "missed", "action": "HOLD", "decided_at": opening.opened_at}
    free = {"status": "open", "action": None, "decided_at": None}
    return {
        "round": round,
        "season": season.id,
        "asset": opening.asset,
        "session": opening.session,
        "stage": opening.stage,
        "entry": entry,
        **(closed if opening.missed else free),
    }


def _insert_calls(db: Connection, slot: int, made: Sequence[Call]) -> None:
    if made:
        db.execute(
            insert(calls),
            [
                {
                    "slot": slot,
                    "number": call.number,
                    "purpose": call.purpose,
                    "request_sha256": call.request_sha256,
                    "request": zlib.compress(call.request, 1),
                    "reply": zlib.compress(call.reply, 1),
                }
                for call in made
            ],
        )


def _remember(db: Connection, slot: Slot, body: bytes) -> None:
    key = (memories.c.season == slot.season, memories.c.entry == slot.entry, memories.c.asset == slot.asset)
    db.execute(delete(memories).where(*key))
    row = {"season": slot.season, "entry": slot.entry, "asset": slot.asset, "slot": slot.id}
    db.execute(insert(memories).values(**row, body=zlib.compress(body, 1)))


def tell(db: Connection, season: str, kind: str, at: str, body: dict[str, Any]) -> None:
    """Add an event for whoever watches, in the transaction of what happened."""
    _event(db, season, kind, at, body)


def _event(db: Connection, season: str, kind: str, at: str, body: dict[str, Any]) -> None:
    db.execute(insert(events).values(season=season, kind=kind, at=at, body=_ENCODE(body).decode()))
