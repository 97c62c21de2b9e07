"""The doors of the arena: everything an outside agent may do, however it connects.

All state is in the arena's database, so the process that answers agents and the one that plays rounds may be two.
An agent is only ever shown what its own packet holds and its own past; nothing here reads another entry's rows.

A token is 256 random bits, shown once; only a salted hash is kept. A slow hash protects words that people choose.
These secrets cannot be guessed, so a fast one is as safe and lets nobody keep the server busy with wrong tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event, Lock
from typing import Annotated, Any, Literal

import msgspec
from sqlalchemy import (
    BindParameter,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from tradeassay.agents.foreign.address import Unusable, parse_target
from tradeassay.agents.foreign.ama import TradingAction, to_choice
from tradeassay.arena.agents import OUTSIDE
from tradeassay.arena.rounds.deciding import packets
from tradeassay.arena.season import Season
from tradeassay.arena.state.engine import open_engine, schema_lock
from tradeassay.arena.state.rows import Stage, Status, read_slot
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import decisions, rewards, rounds, seasons, slots
from tradeassay.core.arena import Action, AgentChoice, Packet
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.core.time import Clock, WallClock, iso

metadata = MetaData()

agents = Table(
    "door_agents",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("season", String(64), nullable=False),
    Column("entry", String(64), nullable=False),
    Column("address", Text),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("revoked_at", String(40)),
    UniqueConstraint("season", "entry"),
)

offers = Table(
    "door_offers",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("agent", String(16), nullable=False),
    Column("body", Text, nullable=False),
    Column("received", Float, nullable=False),  # real seconds
)

nonces = Table(
    "door_nonces",
    metadata,
    Column("agent", String(16), primary_key=True),
    Column("nonce", String(128), primary_key=True),
    Column("received", Float, nullable=False),
)


keys = Table(
    "door_keys",  # those of the operator and of experts; they survive a restart and can be revoked
    metadata,
    Column("id", String(16), primary_key=True),
    Column("kind", String(8), nullable=False),  # operator or expert
    Column("name", String(64), nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("revoked_at", String(40)),
)

counts = Table(
    "door_counts",  # how often somebody knocked in a minute, over all processes
    metadata,
    Column("key", String(80), primary_key=True),
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
)


class TurnedAway(Exception):
    """A request that is turned away; ``status`` is the HTTP status that says so."""

    def __init__(self, status: int, detail: str, *, retry_s: float | None = None) -> None:
        self.status, self.detail, self.retry_s = status, detail, retry_s
        super().__init__(detail)


class RegisteredAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who is registered: an entry of a season."""

    id: str
    season: str
    entry: str
    address: str | None = None


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A registration. This is the only time its token is shown."""

    agent: RegisteredAgent
    token: str


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that waits for an agent: what it may know, and what it has to name when it answers."""

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


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """An answer on its way in: whose it is, and the key by which a second sending of it is known."""

    agent: RegisteredAgent
    nonce: str
    offer: Offer


class OwnDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One of the agent's own decisions; ``earned`` is None until it is settled."""

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
    """A line of the reward log (only in seasons with the rule ``feedback``)."""

    slot: int
    asset: str
    session: str
    action: Action | None
    reward: float


KeyKind = Literal["operator", "expert"]
_FORM = re.compile(r"ta-([0-9a-f]{12})-([A-Za-z0-9_-]{43})")
_PERSON = b"tradeassay-door"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A new token: ``shown`` goes to its owner and nowhere else, the rest into the database."""

    id: str
    shown: str
    salt: bytes
    digest: bytes


def new_token() -> Token:
    """Draw a token."""
    id, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(16)
    return Token(id=id, shown=f"ta-{id}-{secret}", salt=salt, digest=digest(secret, salt))


def digest(secret: str, salt: bytes) -> bytes:
    """Return the salted hash of a secret."""
    return hashlib.blake2b(secret.encode(), salt=salt, person=_PERSON).digest()


def split_token(token: str) -> tuple[str, str] | None:
    """Return a token's id and secret, or None when it is malformed."""
    found = _FORM.fullmatch(token)
    return None if found is None else (found[1], found[2])


def matches(secret: str, salt: bytes, expected: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(digest(secret, salt), expected)


Place = tuple[str, str, str, str]
"""A season, an entry, an asset and a session."""

MOST_TOLD = 10_000
"""Of how many packets the hash is remembered."""

NONCE_LENGTH = (8, 128)
MOST = 500
"""How many lines of its own past an agent gets at once."""

# Made once, because building a statement takes longer than running it.
_SOME: BindParameter[Any] = bindparam("some", expanding=True)
_WHO = select(agents).where(agents.c.id.in_(_SOME), agents.c.revoked_at.is_(None))
_WAITING = (
    select(decisions.c.id, decisions.c.entry, decisions.c.asset, decisions.c.session)
    .join(rounds, rounds.c.id == decisions.c.round)
    .outerjoin(offers, offers.c.slot == decisions.c.id)
    .where(
        decisions.c.season == bindparam("season"),
        decisions.c.entry.in_(_SOME),
        decisions.c.status == "open",
        rounds.c.phase == "opened",
        offers.c.slot.is_(None),
    )
    .order_by(rounds.c.decision_time, decisions.c.id)
)
_PLACES = select(
    decisions.c.id, decisions.c.season, decisions.c.entry, decisions.c.asset, decisions.c.session
).where(decisions.c.id.in_(_SOME))
# The table, not the view of slots: PostgreSQL locks no row behind an outer join.
_OPEN_OF = (
    select(decisions.c.id).where(decisions.c.id.in_(_SOME), decisions.c.status == "open").order_by(decisions.c.id)
)
_ANSWERED = select(offers.c.slot).where(offers.c.slot.in_(_SOME))
_SEEN = select(nonces.c.agent, nonces.c.nonce).where(
    nonces.c.agent.in_(_SOME), nonces.c.nonce.in_(bindparam("given", expanding=True))
)
_SEATS = (
    select(decisions.c.season, decisions.c.entry)
    .join(rounds, rounds.c.id == decisions.c.round)
    .outerjoin(offers, offers.c.slot == decisions.c.id)
    .where(decisions.c.status == "open", rounds.c.phase == "opened", offers.c.slot.is_(None))
)
_OPEN_OFFERS = (
    select(decisions.c.entry, decisions.c.asset, decisions.c.session, offers.c.body)
    .join(decisions, decisions.c.id == offers.c.slot)
    .join(rounds, rounds.c.id == decisions.c.round)
    .where(rounds.c.season == bindparam("season"), rounds.c.phase == "opened", decisions.c.status == "open")
)
_CHOICE = msgspec.json.Decoder(AgentChoice)
_SEASON = msgspec.json.Decoder(Season)


class Doors:
    """Registration and everything behind it, over one database. Methods may be called from any thread."""

    def __init__(self, store: Store, *, real_time: Callable[[], float] = time.time) -> None:
        self.store = store
        self._real_time = real_time
        self._seasons: dict[str, Season] = {}
        self._told: dict[int, str] = {}  # the hashes of packets, by slot
        self._lock = Lock()
        self.closing = Event()  # set by the process that is about to stop: nobody waits here any longer
        with schema_lock(store.engine) as db:
            metadata.create_all(db)

    # -- registration --------------------------------------------------------------------------------------------

    def register(self, season: str, entry: str, *, now: str, address: str | None = None) -> Issued:
        """Register an entry that decides outside and return its token, which is never shown again.

        Raises :class:`UserError` for an unknown season or entry, one that decides inside, one that is registered
        already, and an address that makes no sense.
        """
        found = self._season(season).entry(entry)
        if found.architecture not in OUTSIDE:
            raise UserError(
                f"entry '{entry}' decides inside ({found.architecture})",
                hint=f"entries with architecture {', '.join(OUTSIDE)} can be registered",
            )
        if address is not None:
            parse_target(address)
        token = new_token()
        row = {"season": season, "entry": entry, "address": address, "created_at": now}
        try:
            with self.store.change() as db:
                db.execute(insert(agents).values(id=token.id, salt=token.salt, digest=token.digest, **row))
        except IntegrityError as error:
            raise UserError(f"entry '{entry}' is registered already", hint="renew its token instead") from error
        agent = RegisteredAgent(id=token.id, season=season, entry=entry, address=address)
        return Issued(agent=agent, token=token.shown)

    def renew(self, season: str, entry: str) -> Issued:
        """Give an entry a new token; the old one stops working at once. Raises :class:`UserError`."""
        token = new_token()
        mine = (agents.c.season == season, agents.c.entry == entry)
        fresh = {"id": token.id, "salt": token.salt, "digest": token.digest, "revoked_at": None}
        with self.store.change() as db:
            row = db.execute(select(agents.c.address).where(*mine)).first()
            if row is None:
                raise UserError(f"entry '{entry}' is not registered", hint="register it first")
            db.execute(update(agents).where(*mine).values(**fresh))
        agent = RegisteredAgent(id=token.id, season=season, entry=entry, address=row.address)
        return Issued(agent=agent, token=token.shown)

    def revoke(self, season: str, entry: str, *, now: str) -> bool:
        """Invalidate an entry's token; False when it had none."""
        mine = (agents.c.season == season, agents.c.entry == entry, agents.c.revoked_at.is_(None))
        with self.store.change() as db:
            return db.execute(update(agents).where(*mine).values(revoked_at=now)).rowcount == 1

    def registered(self, season: str) -> dict[str, RegisteredAgent]:
        """Return who is registered for a season, by entry."""
        query = select(agents).where(agents.c.season == season, agents.c.revoked_at.is_(None))
        with self.store.read() as db:
            return {
                row.entry: RegisteredAgent(id=row.id, season=row.season, entry=row.entry, address=row.address)
                for row in db.execute(query)
            }

    def who(self, token: str) -> RegisteredAgent | None:
        """Return whose token this is, or None."""
        return self.all_of((token,))[0]

    def all_of(self, tokens: Sequence[str]) -> list[RegisteredAgent | None]:
        """Return whose token each of several is, or None."""
        parts = [split_token(token) for token in tokens]
        with self.store.read() as db:
            found = {row.id: row for row in db.execute(_WHO, {"some": list({p[0] for p in parts if p})})}

        def owner(part: tuple[str, str] | None) -> RegisteredAgent | None:
            row = None if part is None else found.get(part[0])
            if part is None or row is None or not matches(part[1], row.salt, row.digest):
                return None
            return RegisteredAgent(id=row.id, season=row.season, entry=row.entry, address=row.address)

        return [owner(part) for part in parts]

    # -- keys of the house ---------------------------------------------------------------------------------------

    def issue_key(self, kind: KeyKind, name: str, *, now: str) -> str:
        """Return a new key for the operator or an expert; an older one of the same name stops working."""
        token = new_token()
        self.revoke_key(kind, name, now=now)
        row = {"kind": kind, "name": name[:64], "salt": token.salt, "digest": token.digest, "created_at": now}
        with self.store.change() as db:
            db.execute(insert(keys).values(id=token.id, **row))
        return token.shown

    def revoke_key(self, kind: KeyKind, name: str, *, now: str) -> bool:
        """Invalidate a key; False when there was none."""
        mine = (keys.c.kind == kind, keys.c.name == name[:64], keys.c.revoked_at.is_(None))
        with self.store.change() as db:
            return db.execute(update(keys).where(*mine).values(revoked_at=now)).rowcount > 0

    def key_names(self, kind: KeyKind) -> tuple[str, ...]:
        """Return whose keys of a kind are valid."""
        query = select(keys.c.name).where(keys.c.kind == kind, keys.c.revoked_at.is_(None)).order_by(keys.c.name)
        with self.store.read() as db:
            return tuple(db.execute(query).scalars())

    def key_owner(self, kind: KeyKind, key: str) -> str | None:
        """Return whose key this is, or None."""
        parts = split_token(key)
        if parts is None:
            return None
        query = select(keys).where(keys.c.id == parts[0], keys.c.kind == kind, keys.c.revoked_at.is_(None))
        with self.store.read() as db:
            row = db.execute(query).first()
        if row is None or not matches(parts[1], row.salt, row.digest):
            return None
        return str(row.name)

    def count(self, added: Mapping[str, int], minute: int) -> dict[str, int]:
        """Add to this minute's counts and return them, over all processes; older minutes are forgotten."""
        if not added:
            return {}
        make = postgresql.insert if self.store.engine.dialect.name == "postgresql" else sqlite.insert
        row = make(counts)
        more = {"count": counts.c.count + row.excluded.count}
        add = row.on_conflict_do_update(index_elements=["key", "minute"], set_=more)
        with self.store.change() as db:
            db.execute(
                add, [{"key": key[:80], "minute": minute, "count": number} for key, number in added.items()]
            )
            db.execute(delete(counts).where(counts.c.minute < minute - 2))
            mine = (counts.c.minute == minute, counts.c.key.in_([key[:80] for key in added]))
            query = select(counts.c.key, counts.c.count).where(*mine)
            return {known: number for known, number in db.execute(query)}

    # -- deciding ------------------------------------------------------------------------------------------------

    def waiting(self, agent: RegisteredAgent) -> Notification | None:
        """Return the oldest decision still waiting for an agent's answer, or None."""
        return self.all_waiting((agent,))[0]

    def all_waiting(self, asked: Sequence[RegisteredAgent]) -> list[Notification | None]:
        """Return for each of several agents the oldest decision still waiting for its answer, or None."""
        first: dict[tuple[str, str], tuple[int, Place]] = {}
        with self.store.read() as db:
            for season in {agent.season for agent in asked}:
                some = list({agent.entry for agent in asked if agent.season == season})
                for row in db.execute(_WAITING, {"season": season, "some": some}):
                    place = (season, row.entry, row.asset, row.session)
                    first.setdefault((season, row.entry), (row.id, place))
        told = self._packets(place for _, place in first.values())

        def waits(agent: RegisteredAgent) -> Notification | None:
            found = first.get((agent.season, agent.entry))
            if found is None:
                return None
            slot, place = found
            sha256 = sha256_of(told[place])
            self._remember(slot, sha256)
            return Notification(slot=slot, packet_sha256=sha256, packet=told[place])

        return [waits(agent) for agent in asked]

    def open_seats(self) -> frozenset[tuple[str, str]]:
        """Return the season and entry of everybody who has a decision waiting."""
        with self.store.read() as db:
            return frozenset((season, entry) for season, entry in db.execute(_SEATS))

    def submit(self, agent: RegisteredAgent, nonce: str, offer: Offer) -> None:
        """Take an agent's answer for one of its open slots.

        Raises :class:`TurnedAway`: 404 when the slot is not this agent's; 409 when the request was seen before,
        the slot is closed or answered, or the packet named is not this slot's; 422 for an invalid answer
        or nonce.
        """
        (refused,) = self.submit_all((Offered(agent=agent, nonce=nonce, offer=offer),))
        if refused is not None:
            raise refused

    def submit_all(self, made: Sequence[Offered]) -> list[TurnedAway | None]:
        """Take several answers in one transaction; returns for each why it was turned away, or None."""
        told: list[TurnedAway | None] = [None] * len(made)
        taken: dict[int, str] = {}
        with self.store.read() as db:
            found = db.execute(_PLACES, {"some": [one.offer.slot for one in made]})
            places = {id: (season, entry, asset, session) for id, season, entry, asset, session in found}
        hashes = self._hashes(made, places)
        for number, one in enumerate(made):
            try:
                taken[number] = _accepted(one, places.get(one.offer.slot), hashes)
            except TurnedAway as error:
                told[number] = error
        try:
            if taken:
                with self.store.change() as db:
                    told = self._write(db, made, taken, told)
        except IntegrityError as error:  # another process was faster with one of them
            if len(made) > 1:
                return [self.submit_all((one,))[0] for one in made]
            refused = TurnedAway(409, "this request was received before")
            refused.__cause__ = error
            return [refused]
        return told

    def _write(
        self, db: Connection, made: Sequence[Offered], taken: Mapping[int, str], told: list[TurnedAway | None]
    ) -> list[TurnedAway | None]:
        """Write down the answers that still fit; returns ``told`` with what is to be said about the others."""
        told = list(told)
        some = {"some": [made[number].offer.slot for number in taken]}
        free = _OPEN_OF.order_by(decisions.c.id)
        open_ = set(
            db.execute(free.with_for_update() if db.dialect.name == "postgresql" else free, some).scalars()
        )
        answered = set(db.execute(_ANSWERED, some).scalars())
        asked = {"some": [made[n].agent.id for n in taken], "given": [made[n].nonce for n in taken]}
        seen = {(agent, nonce) for agent, nonce in db.execute(_SEEN, asked)}
        at, keys_, rows = self._real_time(), [], []
        for number, body in taken.items():
            one = made[number]
            if (one.agent.id, one.nonce) in seen:
                told[number] = TurnedAway(409, "this request was received before")
            elif one.offer.slot not in open_:
                told[number] = TurnedAway(409, "this slot is closed")
            elif one.offer.slot in answered:
                told[number] = TurnedAway(409, "this slot is answered already")
            else:
                seen.add((one.agent.id, one.nonce))
                answered.add(one.offer.slot)
                keys_.append({"agent": one.agent.id, "nonce": one.nonce, "received": at})
                rows.append({"slot": one.offer.slot, "agent": one.agent.id, "body": body, "received": at})
        if rows:
            db.execute(insert(nonces), keys_)
            db.execute(insert(offers), rows)
        return told

    def open_offers(self, season: str) -> dict[tuple[str, str, str], AgentChoice]:
        """Return what was answered for slots that are not closed yet, by entry, asset and session.

        For the process that plays the rounds, whose slots they are.
        """
        with self.store.read() as db:
            found = db.execute(_OPEN_OFFERS, {"season": season}).all()
        return {(row.entry, row.asset, row.session): _CHOICE.decode(row.body) for row in found}

    # -- the agent's own past ------------------------------------------------------------------------------------

    def decisions(self, agent: RegisteredAgent, most: int = 50) -> tuple[OwnDecision, ...]:
        """Return an agent's own newest decisions, newest first."""
        query = select(slots).where(slots.c.season == agent.season, slots.c.entry == agent.entry)
        query = query.where(slots.c.status != "open").order_by(slots.c.session.desc(), slots.c.id.desc())
        with self.store.read() as db:
            found = [read_slot(row) for row in db.execute(query.limit(min(most, MOST)))]
        return tuple(
            OwnDecision(
                slot=slot.id,
                asset=slot.asset,
                session=slot.session,
                stage=slot.stage,
                status=slot.status,
                action=slot.action,
                position=slot.position,
                earned=slot.earned,
                failures=tuple(failure.kind for failure in slot.failures),
            )
            for slot in found
        )

    def rewards(self, agent: RegisteredAgent, after: int = 0, most: int = MOST) -> tuple[OwnReward, ...]:
        """Return the agent's own lines of the reward log whose slot is greater than ``after``, oldest first."""
        query = select(rewards, slots.c.action).join(slots, slots.c.id == rewards.c.slot)
        query = query.where(
            rewards.c.season == agent.season, rewards.c.entry == agent.entry, rewards.c.slot > after
        )
        with self.store.read() as db:
            rows = db.execute(query.order_by(rewards.c.slot).limit(min(most, MOST))).all()
        return tuple(
            OwnReward(slot=r.slot, asset=r.asset, session=r.session, action=r.action, reward=r.reward)
            for r in rows
        )

    # -- small things --------------------------------------------------------------------------------------------

    def _season(self, id: str) -> Season:
        if id not in self._seasons:  # frozen, so it may be kept
            with self.store.read() as db:
                spec = db.execute(select(seasons.c.spec).where(seasons.c.id == id)).scalar()
            if spec is None:
                raise UserError(f"there is no season '{id}'", hint="start the arena with it first")
            self._seasons[id] = _SEASON.decode(spec)
        return self._seasons[id]

    def _packets(self, wanted: Iterable[Place]) -> dict[Place, Packet]:
        """Return what entries are told about assets at sessions, all of which have a round."""
        entries: dict[tuple[str, str, str], set[str]] = {}
        for season, entry, asset, session in wanted:
            entries.setdefault((season, asset, session), set()).add(entry)
        found: dict[Place, Packet] = {}
        for (season, asset, session), some in entries.items():
            round = self.store.round(season, asset, session)
            assert round is not None  # a slot has a round
            for entry, packet in packets(self.store, self._season(season), round, some).items():
                found[season, entry, asset, session] = packet
        return found

    def _hashes(self, made: Sequence[Offered], places: Mapping[int, Place]) -> dict[int, str]:
        """Return the hash of each slot's packet. It was told before, as a rule, and does not change while open."""
        found: dict[int, str] = {}
        left: dict[int, Place] = {}
        for one in made:
            slot, place = one.offer.slot, places.get(one.offer.slot)
            if place is None or place[:2] != (one.agent.season, one.agent.entry):
                continue
            if self._told.get(slot) == one.offer.packet_sha256:
                found[slot] = one.offer.packet_sha256
            else:
                left[slot] = place
        made_now = self._packets(left.values())
        return {**found, **{slot: sha256_of(made_now[place]) for slot, place in left.items()}}

    def _remember(self, slot: int, sha256: str) -> None:
        with self._lock:
            self._told[slot] = sha256
            while len(self._told) > MOST_TOLD:
                del self._told[next(iter(self._told))]


def _accepted(one: Offered, place: Place | None, hashes: Mapping[int, str]) -> str:
    """Return an answer as it is written down; raises :class:`TurnedAway` where it does not fit its slot."""
    low, high = NONCE_LENGTH
    if not (low <= len(one.nonce) <= high and one.nonce.isascii() and one.nonce.isprintable()):
        raise TurnedAway(422, f"an idempotency key has {low} to {high} printable ASCII characters")
    body = msgspec.json.encode(_choice(one.offer)).decode()
    if place is None or place[:2] != (one.agent.season, one.agent.entry):
        raise TurnedAway(404, "you have no such slot")
    if hashes[one.offer.slot] != one.offer.packet_sha256:
        raise TurnedAway(409, "packet_sha256 is not that of this slot's packet")
    return body


def _choice(offer: Offer) -> AgentChoice:
    kept = {name: getattr(offer, name) for name in TradingAction.__struct_fields__}
    try:
        return to_choice(TradingAction(**kept))
    except Unusable as error:
        raise TurnedAway(422, error.text) from error


def house_key(
    db: str, kind: KeyKind, name: str, *, revoke: bool = False, clock: Clock | None = None
) -> str | None:
    """Give the operator or an expert a new key, or revoke the one they have; returns the new key.

    Raises :class:`UserError` when there is none to revoke.
    """
    engine = open_engine(db)
    now = iso((clock or WallClock()).now())
    try:
        doors = Doors(Store(engine))
        if not revoke:
            return doors.issue_key(kind, name, now=now)
        if not doors.revoke_key(kind, name, now=now):
            known = ", ".join(doors.key_names(kind)) or "nobody"
            raise UserError(f"{kind} '{name}' has no key", hint=f"those who have one: {known}")
        return None
    finally:
        engine.dispose()


def register_entry(
    db: str,
    season: str,
    entry: str,
    *,
    address: str | None = None,
    renew: bool = False,
    clock: Clock | None = None,
) -> str:
    """Register an entry of a season that the database knows, or renew its token; returns the token.

    Raises :class:`UserError` as :meth:`Doors.register` and :meth:`Doors.renew` do, and for a new address together
    with a new token.
    """
    if renew and address is not None:
        raise UserError("an address is given once, at registration", hint="leave out --address or --renew")
    engine = open_engine(db)
    try:
        doors = Doors(Store(engine))
        if renew:
            return doors.renew(season, entry).token
        now = iso((clock or WallClock()).now())
        return doors.register(season, entry, now=now, address=address).token
    finally:
        engine.dispose()
