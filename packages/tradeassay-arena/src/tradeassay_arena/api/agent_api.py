"""Register outside agents, give them packets and take their answers, for HTTP and MCP.

All state is in the arena's database, so one process may answer agents while another process runs
rounds. An agent sees only its own packet and its own past. No method returns another entry's rows.

A token has 256 random bits and is displayed once. Only a salted hash is stored. Slow hashes protect
passwords that people choose. A random token cannot be guessed, so a fast hash is as safe, and wrong
tokens cannot keep the server busy.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from threading import Event, Lock
from typing import Annotated, Any, Literal

import msgspec
from sqlalchemy import BindParameter, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from starlette.concurrency import run_in_threadpool

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay_arena.agents import OUTSIDE
from tradeassay_arena.clock import LiveClock
from tradeassay_arena.queries.seasons import opened_store, read_season
from tradeassay_arena.rounds.deciding import Batcher, packets
from tradeassay_arena.rounds.feed import is_live
from tradeassay_arena.season import BASELINE, Season
from tradeassay_arena.state import tables as t
from tradeassay_arena.state.engine import existing_engine
from tradeassay_arena.state.rows import Stage, Status, read_row, read_slot
from tradeassay_arena.state.store import Store, add_unless_there, insert_unless
from tradeassay_bench.agents.foreign.ama import TradingAction, to_choice
from tradeassay_bench.agents.foreign.transport import Unusable, parse_target
from tradeassay_bench.core.arena import Action, AgentChoice, Packet
from tradeassay_bench.core.time import SECOND, Clock, iso, parse_iso


class Rejected(Exception):
    """Raised for a rejected request. ``status`` is the HTTP status."""

    def __init__(
        self, status: int, detail: str, *, hint: str | None = None, retry_s: float | None = None
    ) -> None:
        self.status, self.detail, self.hint, self.retry_s = status, detail, hint, retry_s
        super().__init__(detail)


class RegisteredAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The registered agent of an entry."""

    id: str
    season: str
    entry: str
    address: str | None = None


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that waits for an agent.

    It has the packet, and the hash of the packet that the answer must repeat.
    """

    slot: int
    packet_sha256: str
    packet: Packet


class Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's answer to :class:`Notification`."""

    slot: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    packet_sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    recommended_action: Action
    reasoning: str
    confidence: float | None = None
    allocation: float | None = None
    message: str | None = None


class OwnDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One of an agent's decisions. ``earned`` is None until the decision is settled."""

    slot: int
    asset: str
    session: str
    stage: Stage
    status: Status
    action: Action | None
    position: int | None
    earned: float | None
    failures: tuple[str, ...] = ()


class OwnReward(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log of rewards. Only seasons with the rule ``feedback`` have this log."""

    slot: int
    asset: str
    session: str
    action: Action | None
    reward: float


class Applicant(msgspec.Struct, frozen=True, kw_only=True):
    """An application to join. Only the operator sees ``contact``."""

    entry: str
    label: str
    contact: str
    address: str | None
    at: str
    status: Literal["waiting", "approved", "declined"]


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an agent's registration and decisions.

    ``note`` states why the season has no ranks, or that decisions are made at the price of their
    fill.
    """

    season: str
    entry: str
    status: Literal["waiting", "declined", "registered", "revoked"]
    since: str
    joined: str | None = None
    withdrawn: str | None = None
    open: int = 0
    counts: dict[str, int] = {}
    newest: OwnDecision | None = None
    note: str = ""


Offered = tuple[RegisteredAgent, str, Offer]
"""A submitted answer: the agent, the nonce that identifies a repeated request, and the offer."""

KeyKind = Literal["operator", "expert"]
Place = tuple[str, str, str, str]
"""A season, an entry, an asset and a session."""

FRESH_S = 2.0
"""Time in seconds that a season stays cached."""

MOST = 500
"""Maximum number of rows of its past that an agent receives in one answer."""

_TOKEN = re.compile(r"ta-([0-9a-f]{12})-([A-Za-z0-9_-]{43})")
# Statements are built once, because building one takes longer than running it.
_SOME: BindParameter[Any] = bindparam("some", expanding=True)
_WHO = select(t.door_agents).where(
    t.door_agents.c.id.in_(_SOME), t.door_agents.c.revoked_at.is_(None)
)
_PLACE = t.decisions.c["id", "season", "entry", "asset", "session"]
_SLOTS = select(*_PLACE, t.rounds.c.decision_time).join(
    t.rounds, t.rounds.c.id == t.decisions.c.round
)
_PLACES = _SLOTS.where(t.decisions.c.id.in_(_SOME))
_OPEN = (t.decisions.c.status == "open", t.rounds.c.phase == "opened")
_UNANSWERED = _SLOTS.outerjoin(t.door_offers, t.door_offers.c.slot == t.decisions.c.id).where(
    *_OPEN, t.door_offers.c.slot.is_(None)
)
_WAITING = _UNANSWERED.where(
    t.decisions.c.season == bindparam("season"), t.decisions.c.entry.in_(_SOME)
)
_WAITING = _WAITING.order_by(t.rounds.c.decision_time, t.decisions.c.id)
# Query the table, not the view of slots: PostgreSQL cannot lock rows of an outer join.
_OPEN_OF = select(*_PLACE).where(t.decisions.c.id.in_(_SOME), t.decisions.c.status == "open")
_OPEN_OF = _OPEN_OF.order_by(t.decisions.c.id)
_ANSWERED = select(t.door_offers.c.slot).where(t.door_offers.c.slot.in_(_SOME))
_SEEN = select(t.door_nonces.c.agent, t.door_nonces.c.nonce).where(
    t.door_nonces.c.agent.in_(_SOME), t.door_nonces.c.nonce.in_(bindparam("given", expanding=True))
)
_OPEN_OFFERS = (
    select(*t.decisions.c["entry", "asset", "session"], t.door_offers.c.body)
    .join(t.decisions, t.decisions.c.id == t.door_offers.c.slot)
    .join(t.rounds, t.rounds.c.id == t.decisions.c.round)
    .where(t.rounds.c.season == bindparam("season"), *_OPEN)
)
_CHOICE = msgspec.json.Decoder(AgentChoice)


def _digest(secret: str, salt: bytes) -> bytes:
    return hashlib.blake2b(secret.encode(), salt=salt, person=b"tradeassay-door").digest()


def _new_token() -> tuple[str, dict[str, Any]]:
    """Return a new token, and the columns that are stored instead of the token."""
    id, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(16)
    return f"ta-{id}-{secret}", {"id": id, "salt": salt, "digest": _digest(secret, salt)}


def _fits(token: re.Match[str], row: Any) -> bool:
    """Return whether a token's secret matches the hash in a row.

    The comparison takes constant time.
    """
    return hmac.compare_digest(_digest(token[2], row.salt), row.digest)


class AgentApi:
    """Registration, decisions and history of outside agents in one database. Thread-safe.

    ``clock`` is the clock of the rounds, so a wrong wall clock rejects no answer.
    """

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self.store = store
        self.clock = clock or LiveClock()
        self._seasons: dict[str, tuple[float, Season]] = {}
        self.sent: dict[
            int, tuple[Any, str]
        ] = {}  # The slots whose packets were sent, with the hashes of the packets.
        self._told: dict[tuple[str, str, str], tuple[float, dict[str, tuple[Packet, str]]]] = {}
        self._lock = Lock()
        self.last_move = float(
            "-inf"
        )  # The last time at which a packet was sent or an answer accepted.
        self.closing = Event()  # Set when the process stops, so that waiting requests end.

    # -- registration ------------------------------------------------------------------------------

    def register(self, season: str, entry: str, *, now: str, address: str | None = None) -> str:
        """Register an outside entry and return its token, which is never shown again.

        Raises :class:`UserError` for an unknown season or entry, an entry that decides inside the
        arena, an entry that is already registered, or an invalid address.
        """
        found = self._season(season, entry).entry(entry)
        if found.architecture not in OUTSIDE:
            raise UserError(
                f"entry '{entry}' decides inside ({found.architecture})",
                hint=f"entries with architecture {', '.join(OUTSIDE)} can be registered",
            )
        if address is not None:
            parse_target(address)
        token, kept = _new_token()
        row = {"season": season, "entry": entry, "address": address, "created_at": now}
        with self.store.change() as db:
            added = add_unless_there(db, t.door_agents, {**kept, **row})
        if not added:
            raise UserError(
                f"entry '{entry}' is registered already", hint="renew its token instead"
            )
        return token

    def renew(self, season: str, entry: str) -> str:
        """Return a new token for an entry. The old token becomes invalid immediately.

        Raises :class:`UserError` if the entry is not registered.
        """
        token, kept = _new_token()
        with self.store.change() as db:
            mine = update(t.door_agents).filter_by(season=season, entry=entry)
            if not db.execute(mine.values(**kept, revoked_at=None)).rowcount:
                raise UserError(f"entry '{entry}' is not registered", hint="register it first")
        return token

    def revoke(self, season: str, entry: str, *, now: str) -> bool:
        """Revoke an entry's token, and return whether the entry had a token."""
        mine = update(t.door_agents).filter_by(season=season, entry=entry, revoked_at=None)
        with self.store.change() as db:
            return db.execute(mine.values(revoked_at=now)).rowcount == 1

    def registered(self, season: str) -> dict[str, RegisteredAgent]:
        """Return the registered agents of a season, by entry."""
        found = self.store.rows(select(t.door_agents).filter_by(season=season, revoked_at=None))
        return {row.entry: read_row(RegisteredAgent, row) for row in found}

    def agent_of(self, token: str) -> RegisteredAgent | None:
        return self.agents_of((token,))[0]

    def agents_of(self, tokens: Sequence[str]) -> list[RegisteredAgent | None]:
        """Return the agent of each token, or None for an unknown token."""
        parts = [_TOKEN.fullmatch(token) for token in tokens]
        found = {
            row.id: row for row in self.store.rows(_WHO, {"some": list({p[1] for p in parts if p})})
        }
        whose = [(part, found.get(part[1]) if part else None) for part in parts]
        return [
            read_row(RegisteredAgent, r) if part and r and _fits(part, r) else None
            for part, r in whose
        ]

    # -- applicants --------------------------------------------------------------------------------

    def apply(
        self, season: str, entry: str, *, label: str, contact: str, address: str | None, now: str
    ) -> str:
        """Apply for an entry and return its token, which becomes valid when an operator approves.

        Raises :class:`UserError` if the name is taken or too many applicants are waiting.
        """
        if any(one.id == entry for one in self._season(season).all_entries):
            raise UserError(f"'{entry}' is taken", hint="choose another name")
        if address is not None:
            parse_target(address)
        token, kept = _new_token()
        row = {
            "season": season,
            "entry": entry,
            "label": label,
            "contact": contact,
            "address": address,
            "at": now,
        }
        waiting = select(func.count(t.door_applicants.c.id)).filter_by(
            season=season, status="waiting"
        )
        with self.store.change() as db:
            if db.execute(waiting).scalar_one() >= 100:
                raise UserError("too many are waiting for the operator", hint="try again later")
            added = add_unless_there(db, t.door_applicants, {**kept, **row, "status": "waiting"})
        if not added:
            raise UserError(f"'{entry}' is taken", hint="choose another name")
        return token

    def applicants(self, season: str) -> tuple[Applicant, ...]:
        own = t.door_applicants
        query = select(own).filter_by(season=season).order_by(own.c.at, own.c.id)
        return tuple(read_row(Applicant, row) for row in self.store.rows(query))

    def applicant(self, season: str, entry: str) -> Applicant:
        """Return a waiting applicant.

        Raises :class:`UserError` if no applicant of that name is waiting.
        """
        waiting = {one.entry: one for one in self.applicants(season) if one.status == "waiting"}
        if entry not in waiting:
            hint = f"waiting: {', '.join(waiting) or 'none'}"
            raise UserError(f"no applicant '{entry}' is waiting", hint=hint)
        return waiting[entry]

    def judge(self, season: str, entry: str, *, approve: bool, now: str) -> None:
        """Approve or decline an applicant.

        Raises :class:`UserError` if no applicant of that name is waiting.
        """
        self.applicant(season, entry)
        kept = ("id", "season", "entry", "address", "salt", "digest")
        with self.store.change() as db:
            row = db.execute(select(t.door_applicants).filter_by(season=season, entry=entry)).one()
            if approve:
                db.execute(
                    insert(t.door_agents).values(
                        **{name: getattr(row, name) for name in kept}, created_at=now
                    )
                )
            word = "approved" if approve else "declined"
            db.execute(update(t.door_applicants).filter_by(id=row.id).values(status=word))

    def status(self, token: str) -> AgentStatus | None:
        """Return the state of a token's owner, even if the token is not valid.

        Returns None for an unknown token.
        """
        part = _TOKEN.fullmatch(token)
        if part is None:
            return None
        found = [
            self.store.rows(select(table).filter_by(id=part[1]))
            for table in (t.door_agents, t.door_applicants)
        ]
        row, asks = (rows[0] if rows else None for rows in found)
        if (whose := row or asks) is None or not _fits(part, whose):
            return None
        if row is None:
            word: Literal["waiting", "declined"] = (
                "waiting" if whose.status == "waiting" else "declined"
            )
            return AgentStatus(season=whose.season, entry=whose.entry, status=word, since=whose.at)
        query = select(t.decisions.c.status, func.count()).filter_by(
            season=row.season, entry=row.entry
        )
        counts = {
            status: count for status, count in self.store.rows(query.group_by(t.decisions.c.status))
        }
        season = self._season(row.season, row.entry)
        return AgentStatus(
            season=row.season,
            entry=row.entry,
            status="registered" if row.revoked_at is None else "revoked",
            since=row.revoked_at or row.created_at,
            joined=season.joined.get(row.entry),
            withdrawn=season.withdrawn.get(row.entry),
            open=counts.pop("open", 0),
            counts=counts,
            newest=next(iter(self.decisions(read_row(RegisteredAgent, row), 1)), None),
            note=season.price_note,
        )

    # -- keys of the operator and of experts -------------------------------------------------------

    def issue_key(self, kind: KeyKind, name: str, *, now: str) -> str:
        """Return a new key for the operator or an expert.

        An older key of the same name becomes invalid.
        """
        token, kept = _new_token()
        self.revoke_key(kind, name, now=now)
        with self.store.change() as db:
            db.execute(
                insert(t.door_keys).values(**kept, kind=kind, name=name[:64], created_at=now)
            )
        return token

    def revoke_key(self, kind: KeyKind, name: str, *, now: str) -> bool:
        """Revoke a key, and return whether there was a key."""
        mine = update(t.door_keys).filter_by(kind=kind, name=name[:64], revoked_at=None)
        with self.store.change() as db:
            return db.execute(mine.values(revoked_at=now)).rowcount > 0

    def key_names(self, kind: KeyKind) -> tuple[str, ...]:
        query = (
            select(t.door_keys.c.name)
            .filter_by(kind=kind, revoked_at=None)
            .order_by(t.door_keys.c.name)
        )
        return tuple(name for (name,) in self.store.rows(query))

    def key_owner(self, kind: KeyKind, key: str) -> str | None:
        part = _TOKEN.fullmatch(key)
        if part is None:
            return None
        found = self.store.rows(
            select(t.door_keys).filter_by(id=part[1], kind=kind, revoked_at=None)
        )
        return next((str(row.name) for row in found if _fits(part, row)), None)

    def count(self, added: Mapping[str, int], minute: int) -> dict[str, int]:
        """Add to this minute's counts, and return the totals over all processes.

        Counts of older minutes are deleted.
        """
        if not added:
            return {}
        # Sorted, because two processes that lock the same rows in different orders would deadlock.
        made = [
            {"key": key[:80], "minute": minute, "count": number}
            for key, number in sorted(added.items())
        ]
        with self.store.change() as db:
            row = insert_unless(db, t.door_counts)
            more = {"count": t.door_counts.c.count + row.excluded.count}
            add = row.on_conflict_do_update(index_elements=["key", "minute"], set_=more)
            db.execute(add, made)
            db.execute(delete(t.door_counts).where(t.door_counts.c.minute < minute - 2))
            mine = (
                t.door_counts.c.minute == minute,
                t.door_counts.c.key.in_([key[:80] for key in added]),
            )
            query = select(t.door_counts.c.key, t.door_counts.c.count).where(*mine)
            return {known: number for known, number in db.execute(query)}

    # -- deciding ----------------------------------------------------------------------------------

    def waiting(self, agent: RegisteredAgent) -> Notification | None:
        """Return the agent's oldest unanswered decision, or None."""
        return self.all_waiting((agent,))[0]

    def all_waiting(self, asked: Sequence[RegisteredAgent]) -> list[Notification | None]:
        """Return the oldest unanswered decision of each agent, or None for an agent without one."""
        first: dict[tuple[str, str], Any] = {}
        for season in {agent.season for agent in asked}:
            some = list({agent.entry for agent in asked if agent.season == season})
            for row in self.store.rows(_WAITING, {"season": season, "some": some}):
                first.setdefault((season, row.entry), row)
        waits: dict[tuple[str, str], Notification] = {}
        self.last_move = time.monotonic() if first else self.last_move
        for whose, row in first.items():
            packet, sha256 = self._packet(_place(row))
            waits[whose] = Notification(slot=row.id, packet_sha256=sha256, packet=packet)
            with self._lock:
                self.sent[row.id] = (row, sha256)
                while len(self.sent) > 10_000:
                    del self.sent[next(iter(self.sent))]
        return [waits.get((agent.season, agent.entry)) for agent in asked]

    @property
    def busy(self) -> bool:
        """Whether agents are deciding at the moment, so that other work should wait."""
        return time.monotonic() - self.last_move < 0.75

    def submit(self, agent: RegisteredAgent, nonce: str, offer: Offer) -> None:
        """Accept an agent's answer for one of its open slots.

        Raises :class:`Rejected` with status 404 for another agent's slot. The status is 409 if the
        request was seen before, the slot is closed or answered, or the packet's hash does not match
        the slot. It is 422 for an invalid answer or nonce.
        """
        (refused,) = self.submit_all(((agent, nonce, offer),))
        if refused is not None:
            raise refused

    def submit_all(self, made: Sequence[Offered]) -> list[Rejected | None]:
        """Accept several answers in one transaction.

        Returns a rejection or None for each answer.
        """
        self.last_move = time.monotonic()
        refused: list[Rejected | None] = [None] * len(made)
        sent = {offer.slot: self.sent.get(offer.slot) for _, _, offer in made}
        left = [slot for slot, known in sent.items() if known is None]
        rows = [known[0] for known in sent.values() if known]
        rows += self.store.rows(_PLACES, {"some": left}) if left else ()
        there = {row.id: row for row in rows}
        taken: dict[int, str] = {}
        for number, (agent, nonce, offer) in enumerate(made):
            try:
                taken[number] = self._accepted(agent, nonce, offer, there.get(offer.slot))
            except Rejected as error:
                refused[number] = error
        if not taken:
            return refused
        some = {"some": [made[number][2].slot for number in taken]}
        asked = {
            "some": [made[number][0].id for number in taken],
            "given": [made[number][1] for number in taken],
        }
        at, used, written = self._now(), [], []
        try:
            with self.store.change() as db:
                lock = _OPEN_OF.with_for_update() if db.dialect.name == "postgresql" else _OPEN_OF
                free = {
                    row.id for row in db.execute(lock, some) if _place(row) == _place(there[row.id])
                }
                answered = set(db.execute(_ANSWERED, some).scalars())
                seen = {(agent, nonce) for agent, nonce in db.execute(_SEEN, asked)}
                for number, body in taken.items():
                    agent, nonce, offer = made[number]
                    if (agent.id, nonce) in seen:
                        refused[number] = Rejected(409, "this request was received before")
                    elif offer.slot not in free:
                        refused[number] = Rejected(409, "this slot is closed")
                    elif offer.slot in answered:
                        refused[number] = Rejected(409, "this slot is answered already")
                    else:
                        seen.add((agent.id, nonce))
                        answered.add(offer.slot)
                        used.append({"agent": agent.id, "nonce": nonce, "received": at})
                        written.append(
                            {"slot": offer.slot, "agent": agent.id, "body": body, "received": at}
                        )
                if written:
                    db.execute(insert(t.door_nonces), used)
                    db.execute(insert(t.door_offers), written)
        except IntegrityError as error:  # Another process was first with one of these requests.
            if len(made) > 1:
                return [self.submit_all((one,))[0] for one in made]
            again = Rejected(409, "this request was received before")
            again.__cause__ = error
            return [again]
        return refused

    def _accepted(self, agent: RegisteredAgent, nonce: str, offer: Offer, row: Any) -> str:
        """Return an answer in its stored form. Raises :class:`Rejected` if it does not match its
        slot.

        ``row`` is the slot, or None if it does not exist.
        """
        if not (8 <= len(nonce) <= 128 and nonce.isascii() and nonce.isprintable()):
            raise Rejected(422, "an idempotency key has 8 to 128 printable ASCII characters")
        said = {name: getattr(offer, name) for name in TradingAction.__struct_fields__}
        try:
            choice = to_choice(TradingAction(**said))
        except Unusable as error:
            raise Rejected(422, error.text) from error
        if row is None or (row.season, row.entry) != (agent.season, agent.entry):
            raise Rejected(404, "you have no such slot")
        # Usually the packet was sent before, and it does not change while the slot is open.
        sent = self.sent.get(offer.slot, (None, ""))[1] == offer.packet_sha256
        if not sent and self._packet(_place(row))[1] != offer.packet_sha256:
            raise Rejected(409, "packet_sha256 is not that of this slot's packet")
        spec = self._season(row.season)
        closes = spec.closes(row.asset, row.session, parse_iso(row.decision_time))
        if (
            is_live(spec) and self.clock.now() > closes
        ):  # The time is checked too, because there may be no worker that closes the slot.
            raise Rejected(409, "this slot is closed: its time to decide is over")
        return msgspec.json.encode(choice).decode()

    def open_offers(self, season: str) -> dict[tuple[str, str, str], AgentChoice]:
        """Return the answers for slots that are still open, by entry, asset and session.

        The process that runs the rounds reads these answers.
        """
        found = self.store.rows(_OPEN_OFFERS, {"season": season})
        return {(row.entry, row.asset, row.session): _CHOICE.decode(row.body) for row in found}

    # -- the agent's own past ----------------------------------------------------------------------

    def decisions(self, agent: RegisteredAgent, most: int = 50) -> tuple[OwnDecision, ...]:
        """Return an agent's newest decisions, newest first."""
        query = (
            select(t.slots)
            .filter_by(season=agent.season, entry=agent.entry)
            .where(t.slots.c.status != "open")
        )
        query = query.order_by(t.slots.c.session.desc(), t.slots.c.id.desc()).limit(min(most, MOST))
        same = ("asset", "session", "stage", "status", "action", "position", "earned")
        return tuple(
            OwnDecision(
                slot=slot.id,
                failures=tuple(failure.kind for failure in slot.failures),
                **{name: getattr(slot, name) for name in same},
            )
            for slot in map(read_slot, self.store.rows(query))
        )

    def rewards(
        self, agent: RegisteredAgent, after: int = 0, most: int = MOST
    ) -> tuple[OwnReward, ...]:
        """Return an agent's lines of the log of rewards, oldest first.

        Only lines with a slot greater than ``after`` are returned.
        """
        query = select(t.rewards, t.slots.c.action).join(t.slots, t.slots.c.id == t.rewards.c.slot)
        mine = (
            t.rewards.c.season == agent.season,
            t.rewards.c.entry == agent.entry,
            t.rewards.c.slot > after,
        )
        rows = self.store.rows(query.where(*mine).order_by(t.rewards.c.slot).limit(min(most, MOST)))
        return tuple(read_row(OwnReward, row) for row in rows)

    # -- seasons and packets -----------------------------------------------------------------------

    def _now(self) -> float:
        return self.clock.now() / SECOND

    def _season(self, id: str, entry: str = BASELINE) -> Season:
        """Return the amended season.

        A cached season is used for a few seconds, unless it lacks ``entry``.
        """
        known, now = self._seasons.get(id), self._now()
        if (
            known is None
            or not 0 <= now - known[0] < FRESH_S
            or all(e.id != entry for e in known[1].all_entries)
        ):
            found = read_season(self.store, id)
            if found is None:
                raise UserError(f"there is no season '{id}'", hint="start the arena with it first")
            known = (now, found)
            self._seasons[id] = known
        return known[1]

    def _packet(self, place: Place) -> tuple[Packet, str]:
        """Return an entry's packet in a round, and its hash.

        All agents send requests when a round opens, so the first request builds and caches the
        packets of all entries.
        """
        season, entry, *_ = place
        spec, now, of = self._season(season, entry), self._now(), (season, *place[2:])
        at, told = self._told.get(of, (now, {}))
        if entry not in told or not 0 <= now - at < FRESH_S:
            round = self.store.round(*of)
            assert round is not None  # Every slot has a round.
            made = packets(self.store, spec, round)
            told = {id: (packet, sha256_of(packet)) for id, packet in made.items()}
            fresh = {
                key: known for key, known in self._told.items() if 0 <= now - known[0] < FRESH_S
            }
            self._told = {**fresh, of: (now, told)}
        return told[entry]


def _place(row: Any) -> Place:
    return (row.season, row.entry, row.asset, row.session)


def change_key(db: str, kind: KeyKind, name: str, *, revoke: bool) -> str | None:
    """Create a key for the operator or an expert and return it, or revoke the present key.

    Returns None if a key was revoked. Raises :class:`UserError` if there is no database, or no key
    to revoke.
    """
    with opened_store(db, existing_engine) as store:
        api = AgentApi(store)
        now = iso(api.clock.now())
        if not revoke:
            return api.issue_key(kind, name, now=now)
        if not api.revoke_key(kind, name, now=now):
            known = ", ".join(api.key_names(kind)) or "nobody"
            raise UserError(f"{kind} '{name}' has no key", hint=f"names with a key: {known}")
        return None


# -- many agents at once ---------------------------------------------------------------------------

MAX_WAIT_S = 25.0


class RequestBatcher:
    """Combines the database queries of many agents, because the queries would all be the same."""

    def __init__(self, api: AgentApi) -> None:
        self.api = api
        self.agent_of = Batcher(api.agents_of).ask
        self.waiting = Batcher(api.all_waiting).ask
        self._offers = Batcher(api.submit_all)
        self._looking: asyncio.Task[frozenset[tuple[str, str]]] | None = None
        self._waits = 0

    async def submit(self, agent: RegisteredAgent, nonce: str, offer: Offer) -> None:
        """Accept an agent's answer like :meth:`AgentApi.submit`. Raises :class:`Rejected`."""
        refused = await self._offers.ask((agent, nonce, offer))
        if refused is not None:
            raise refused

    async def packet(self, agent: RegisteredAgent, wait: float) -> Notification | None:
        """Return the decision that waits for an agent, or None after ``wait`` seconds."""
        loop = asyncio.get_running_loop()
        # If too many requests are waiting already, answer without waiting.
        until = loop.time() + (min(wait, MAX_WAIT_S) if self._waits < 200 else 0.0)
        self._waits += 1
        try:
            found = await self.waiting(agent)
            while found is None and loop.time() < until and not self.api.closing.is_set():
                if (
                    self._looking is None
                    or self._looking.done()
                    or self._looking.get_loop() is not loop
                ):
                    self._looking = loop.create_task(
                        self._look()
                    )  # One query serves all waiting requests.
                if (agent.season, agent.entry) in await asyncio.shield(self._looking):
                    found = await self.waiting(agent)
            return found
        finally:
            self._waits -= 1

    async def _look(self) -> frozenset[tuple[str, str]]:
        """Return the season and entry of every open decision, after a short pause."""
        await asyncio.sleep(0.25)
        rows = await run_in_threadpool(self.api.store.rows, _UNANSWERED)
        return frozenset((row.season, row.entry) for row in rows)
