"""Verifying a season in its database: it is played again from its data and the replies on record, and compared.

Where the data cannot be had again (prices came live, or the data set is not here) rounds are taken as recorded;
decisions are still made again from what was shown, and every account from the decisions and the prices."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Table, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.account.daily_target import Booking, DailyTarget, SharedTarget, Step, replay
from tradeassay.arena.agents import OUTSIDE, OutsideAgent, entry_agents
from tradeassay.arena.amending import check_signature
from tradeassay.arena.queries.seasons import read_season, season_ids
from tradeassay.arena.queries.snapshot import SeasonSnapshot
from tradeassay.arena.replay import Evidence, ReplayStore
from tradeassay.arena.rounds.deciding import Slots, Together, packets
from tradeassay.arena.rounds.feed import SnapshotFeed
from tradeassay.arena.rounds.prices import decision_played
from tradeassay.arena.season import BudgetRules, Season, amended
from tradeassay.arena.state import tables as t
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.rows import ClosedSlot, Known, Round, Slot, read_row, unpacked
from tradeassay.arena.state.store import Store, decided_row
from tradeassay.arena.web.serving import PlayOptions, play
from tradeassay.arena.web.site import render, render_front
from tradeassay.core.arena import Action, Packet, SettledOutcome
from tradeassay.core.closeness import close
from tradeassay.core.errors import UNDECODABLE, RunError, TradeassayError
from tradeassay.core.files import is_litter
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.secrets import without_secrets
from tradeassay.core.time import Instant
from tradeassay.data import load_proven
from tradeassay.llm import parse_name
from tradeassay.runs.store.outcome import ClaimOutcome, Violation, Word
from tradeassay.runs.verify.replay import differences
from tradeassay.runs.verify.report import RUNNERS_CLAIM, VerifyReport

_MONEY = Booking.__struct_fields__
_PHASES = ("opened", "executed", "settled")
_MOST = 25
"""How many contradictions of one table are named; the rest is counted."""
_OF_SEASONS = (
    *(t.rounds, t.decisions, t.bookings, t.door_agents, t.rewards, t.events, t.memories),
    *(t.stream_items, t.stream_rounds, t.skipped, t.amendments),
)
_UNPLAYED = (".json", ".html", ".css", ".js", ".svg", ".xml", ".txt")
_NOT_PAGES = ("now.json", ".written.json")
"""Files of a site that no journal decides: what workers do now, and how far the writer is."""

Found = Iterator[tuple[str, str]]
Place = tuple[Any, ...]
Rows = dict[Place, Place]


def verify_arena(db: str, *, home: Path | None = None, pages: Path | None = None) -> VerifyReport:
    """Return what becomes of the claims of all seasons in a database, and of the ``pages`` written from it.

    Raises :class:`RunError` for a file that is not an arena's database, and for an arena without a season: nothing
    in it could be verified."""
    with tempfile.TemporaryDirectory() as place:
        try:
            copy = copied_database(db, Path(place))
            store = Store(open_engine(copy, durable=False, called=db))
            with store.read() as connection:
                rows = connection.execute(select(t.seasons)).all()
                found = [_Season(connection, store, row, home) for row in rows]
                for one in found:
                    one.check()
                claims = [claim for one in found for claim in one.claims]
                violations = [violation for one in found for violation in one.violations]
                known = {row.id for row in rows}
                for table in _OF_SEASONS:
                    for season in connection.execute(select(table.c.season).distinct()).scalars():
                        if season not in known:
                            what = f"{table.name} has rows of '{str(season)[:80]}', which is not there"
                            violations.append(Violation(check="seasons", what=what))
                orphans = select(t.bookings.c.id).outerjoin(t.decisions, t.decisions.c.id == t.bookings.c.slot)
                for id in connection.execute(orphans.where(t.decisions.c.id.is_(None)).limit(_MOST)).scalars():
                    violations.append(Violation(check="seasons", what=f"booking {id} belongs to no decision"))
            if pages is not None:
                wrong = list(_other_pages(store, pages)) if not violations else ["the journal does not hold"]
                violations += [Violation(check="pages", what=what) for what in wrong]
                claims.append(ClaimOutcome(claim="pages", outcome="contradicted" if wrong else "re-derived"))
            store.engine.dispose()
        except SQLAlchemyError as error:
            what = str(error).partition("\n")[0]
            raise RunError(f"{db} cannot be read as an arena: {what}", hint="name an arena's database") from error
    if not found and not violations:
        raise RunError(f"'{db}' has no season: nothing was verified", hint="tradeassay arena run plays one")
    workers = "since when workers are in their state, and what troubles them, is as they say"
    return VerifyReport(
        folder=db,
        episodes=len(found),
        counted="season",
        steps=sum(one.slots for one in found),
        claims=tuple(claims),
        violations=tuple(violations),
        notes=(*(note for one in found for note in one.notes), workers),
    )


def copied_database(db: str, place: Path) -> str:
    """Return a copy of an SQLite file, as whoever opens it next would find it; the file itself is left as it is.

    Raises :class:`RunError` for a database that computes."""
    if "://" in db:
        return db
    source, copy = Path(db).resolve(), place / "arena.db"
    os.close(os.open(copy, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    beside = [name for ending in ("-wal", "-journal") if (name := Path(f"{source}{ending}")).exists()]
    try:
        # Without a file beside it nobody has it open, and even a reader would leave one there.
        address = f"{source.as_uri()}?{'mode=ro' if beside else 'immutable=1'}"
        with closing(sqlite3.connect(address, uri=True)) as held, closing(sqlite3.connect(copy)) as target:
            held.backup(target)
    except sqlite3.Error:
        # A writer died in the middle of a transaction: its journal undoes that in the copy.
        for name in (source, *beside):
            if name.is_file():
                shutil.copyfile(name, place / f"arena.db{str(name).removeprefix(str(source))}")
    try:
        with closing(sqlite3.connect(copy)) as connection:
            held_there = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    except sqlite3.Error:
        held_there = []  # whoever reads it next says why
    for kind, name, sql in held_there:
        if kind == "table" and name not in t.metadata.tables and not str(name).startswith("sqlite_"):
            raise RunError(f"{db} holds a table '{str(name)[:80]}', which no arena has", hint="do not believe it")
        # A database that computes is refused: reading a view may never end, or give anything.
        computes = kind not in ("table", "index") or str(sql).upper().startswith("CREATE VIRTUAL")
        ours = (kind, name, str(sql).split()) == ("view", "slots", t.CREATE_SLOTS.split())
        if computes and not ours:
            raise RunError(f"{db} holds a {kind} '{str(name)[:80]}', which no arena has", hint="do not open it")
    return str(copy)


def operators_choice(season: Season) -> str:
    """Say what an operator chose: every setting that is not usual, and what it calls season and entries."""
    plain = Season(
        id=season.id, assets=season.assets, entries=season.entries, first=season.first, last=season.last
    )
    own = [f'"{entry.label}" for {entry.id}, {entry.kind}' for entry in season.entries if entry.label]
    chosen = [
        f"{where} {new} instead of {'the usual' if old is None else old}"
        for name in Season.__struct_fields__
        if name not in ("title", "budget")
        for where, old, new in differences(
            msgspec.to_builtins(getattr(plain, name)), msgspec.to_builtins(getattr(season, name)), name
        )
    ]
    called = f' called "{season.title}"' if season.title else ""
    words = "; ".join([*chosen, *(["labels " + ", ".join(own)] if own else [])]) or "nothing"
    return (
        f"{season.id}{called} has the spec {season.sha256[:16]}, which binds what it says if it was published "
        f"before; chosen by its operator: {words}"
    )


def _other_pages(store: Store, folder: Path) -> Iterator[str]:
    """Make every page again from the journal; yield the files that are others, missing, or nobody's.

    Line ends, which git changes, are not compared, and what desktops leave is passed over."""
    made = [render_front(store)]
    for id in season_ids(store):
        season = read_season(store, id)
        assert season is not None  # it was read just now
        made.append(render(SeasonSnapshot(store, season)))
    paths = set()
    for path, content in chain.from_iterable(made):
        paths.add(path)
        file = folder / path
        if not file.is_file():
            yield f"{path} is missing"
        elif file.read_bytes().replace(b"\r\n", b"\n") != without_secrets(content).replace(b"\r\n", b"\n"):
            yield f"{path} is not what the journal gives"
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        known = path in paths or file.name in _NOT_PAGES or is_litter(file.name)
        if file.is_file() and file.suffix in _UNPLAYED and not known:
            yield f"{path} is no page of this arena"


class _Season:
    """One season being checked."""

    def __init__(self, db: Connection, store: Store, row: Row[Any], home: Path | None) -> None:
        self.claims: list[ClaimOutcome] = []
        self.violations: list[Violation] = []
        self.notes: list[str] = []
        self.slots = 0
        self._db, self._store, self._row, self._home = db, store, row, home

    def check(self) -> None:
        """Check the spec; then play the season again, or check what is left of it where that cannot be."""
        season = self._spec()
        if season is None:
            return
        evidence = Evidence(self._db, season)
        self.slots = len(evidence.rows)
        try:
            if season.live:
                raise RunError("a live source is asked once; its answer is as recorded")
            for name in {asset.dataset for asset in season.assets}:
                load_proven(name, self._home)  # never a folder that came with the database, never an edited world
            feed = SnapshotFeed.open(season, self._home)
        except TradeassayError as error:
            self._say("prices", "cannot be checked", error.message)
            self._as_recorded(season, evidence)
        else:
            self._play_again(season, evidence, feed)
        if evidence.live:
            self._say("replies", "cannot be checked", RUNNERS_CLAIM)
        for what, count in sorted(evidence.odd.items()):
            self._say("tokens", "cannot be checked", f"{what} ({count} replies)")
        for what, count in sorted(evidence.taken.items()):
            self._say("decisions", "cannot be checked", f"{count} {what}, by the operator's word")
            self.notes[0] += f"; {count} {what}, by the operator's word"  # beside what else was chosen
        # What is said of workers, of agents at the doors, and of experts.
        own = {"season": season.id}
        there = self._db.execute(select(func.count(t.rounds.c.id)).filter_by(**own)).scalar_one()
        told = self._db.execute(select(func.sum(t.workers.c.rounds)).filter_by(**own)).scalar() or 0
        if told > there:
            self._broken("workers", f"workers say that they played {told} rounds; the journal has {there}")
        inside = {entry.id for entry in season.everyone if entry.architecture not in OUTSIDE}
        registered = select(t.door_agents.c.entry).filter_by(**own)
        for entry in sorted(inside & set(self._db.execute(registered).scalars())):
            self._broken("doors", f"an agent is registered for '{entry}', who decides here")
        judged = select(func.count(t.stream_reviews.c.item)).join(t.stream_items)
        if told := self._db.execute(judged.where(t.stream_items.c.season == season.id)).scalar_one():
            self._say("experts' judgements", "cannot be checked", f"{told} are as recorded")

    def _spec(self) -> Season | None:
        """Return the season as it has become; None where its spec or its amendments cannot be read."""
        part = "season"
        try:
            season = msgspec.json.decode(self._row.spec, type=Season)
            frozen = self._row.spec.encode()
            if (sha256_bytes(frozen), season.id, season.frozen) != (self._row.sha256, self._row.id, frozen):
                self._broken("season", "its spec is not the one under whose hash it is frozen")
            self._say("season", "contradicted" if self.violations else "re-derived")
            self.notes.append(operators_choice(season))
            part = "amendments"
            return self._amended(season)
        except (TradeassayError, KeyError, *UNDECODABLE) as error:
            self._broken(part, f"its {'spec' if part == 'season' else part} cannot be read: {error}")
            self._say(part, "contradicted")
            return None

    def _amended(self, season: Season) -> Season:
        """Return what the season has become. What the operator changed is hashed, one behind the other, told in
        the journal before the first session that it changes, and signed where the spec names a key."""
        made, before = self._store.amendments(season.id), season.sha256
        query = select(t.events.c.kind, t.events.c.body).filter_by(season=season.id).order_by(t.events.c.seq)
        told: list[tuple[str, dict[str, str]]] = []  # with the newest session of every asset by then
        opened: dict[str, str] = {}
        for kind, body in self._db.execute(query.where(t.events.c.kind.in_(("amended", "opened")))):
            if kind == "amended":
                told.append((body, dict(opened)))
                continue
            here = msgspec.json.decode(body, type=dict[str, Any])
            asset, session = str(here.get("asset")), str(here.get("session"))
            opened[asset] = max(opened.get(asset, ""), session)
        written = [msgspec.json.encode(msgspec.structs.asdict(one)).decode() for one in made]
        if [body for body, _ in told] != written:
            self._broken("amendments", "the journal tells of others than are on record")
        at = ""
        for number, one in enumerate(made, 1):
            if (one.number, one.sha256) != (number, one.after(before)):
                self._broken("amendments", f"amendment {one.number} is not what its hash says")
            if one.at < at:
                self._broken("amendments", f"amendment {one.number} is dated before the one that it follows")
            before, at = one.sha256, one.at
            if season.operator:
                try:
                    check_signature(season.operator, one.sha256, one.signature)
                except TradeassayError:
                    self._broken("amendments", f"amendment {one.number} is not signed with the operator's key")
        for one, (_, then) in zip(made, told, strict=False):
            if one.late(then):
                what = f"amendment {one.number} changes {one.day}, and a session from then on had been opened"
                self._broken("amendments", what)
        if made and not any(violation.check == "amendments" for violation in self.violations):
            why = "" if season.operator else f"{len(made)} of an operator whose key the spec does not name"
            self._say("amendments", "cannot be checked" if why else "re-derived", why)
        return amended(season, made)

    # -- played again --------------------------------------------------------------------------------------------

    def _play_again(self, season: Season, evidence: Evidence, feed: SnapshotFeed) -> None:
        """Play the season again into a journal of its own, as far as it was played, and compare row by row."""
        try:
            dues = feed.due(season)
        except TradeassayError as error:
            self._settled("rounds and prices", iter([("the season", error.message)]))
            return
        played = self._all(t.rounds)
        reached = {(row.asset, row.session) for row in (*played, *self._all(t.stream_rounds))}
        reached |= {(row.asset, row.next_session) for row in played}
        until = max((due.at for due in dues if (due.asset, due.session) in reached), default=0)
        spec = msgspec.json.decode(self._row.spec, type=Season)
        spec = msgspec.structs.replace(spec, budget=BudgetRules())  # what was over it depended on who was first
        with tempfile.TemporaryDirectory() as place:
            again = ReplayStore(open_engine(f"{place}/again.db", durable=False), evidence)
            replies = self._db.execute(select(t.stream_calls)).all()
            live = [row for row in replies if parse_name(row.model).route != "scripted"]
            with again.write("replies") as db:
                for table, rows in ((t.stream_calls, live), (t.amendments, self._all(t.amendments))):
                    if rows:
                        db.execute(insert(table), [row._asdict() for row in rows])
            how = PlayOptions(worker="replay", opener=evidence.opener, feed=feed, outside=evidence.outside)
            gc.freeze()  # what is on record stays until the end: it need not be looked through again and again
            try:
                asyncio.run(play(spec, again, None, until, how))
            except (TradeassayError, *UNDECODABLE) as error:
                self._broken("replay", f"the season cannot be played again: {error}")
                self._say("replay", "contradicted")
                return
            finally:
                gc.unfreeze()
                with again.read() as db:
                    here, there = _journal(self._db, season), _journal(db, season)
                    open_ = _under_way(here, there, {(due.asset, due.session): due.at for due in dues}, until)
                    for claim, which in _CLAIMS.items():
                        self._settled(claim, _differences(which, here, there, open_))
                    begun = db.execute(select(t.seasons.c.created_at)).scalar_one()
                if self._row.created_at != begun:
                    what = f"the season was created at {self._row.created_at}, played again at {begun}"
                    self._broken("log", what)
                again.close()
        self._settled("calls", iter(evidence.faults))
        left = sum(not due.closing for due in dues) - len(played)
        if left > 0:
            self._say("complete", "cannot be checked", f"{left} of its rounds are not played yet")

    # -- taken as recorded ---------------------------------------------------------------------------------------

    def _as_recorded(self, season: Season, evidence: Evidence) -> None:
        played = self._all(t.rounds, t.rounds.c.session, t.rounds.c.id)
        self._settled("information", self._packets(season, played))
        self._settled("log", self._begun(season, played))
        self._settled("rounds", self._rounds(season, evidence, played))
        self._settled("account", self._accounts(season, evidence, {row.id: row for row in played}))
        revised = bool(self._all(t.corrections))
        if revised:
            why = "prices were revised by their source: what was booked before a revision is as recorded"
            self._say("bookings before a revision", "cannot be checked", why)
        if revised and season.rules.cross_asset:
            why = "an account over all assets was revised while entries decided: what they were told is not known"
            self._say("decisions", "cannot be checked", why)
        elif self.violations:
            self._say("decisions", "cannot be checked", "what they follow from is contradicted")
        else:
            decided = asyncio.run(self._decisions(season, evidence, played, revised=revised))
            self._settled("decisions", iter((*decided, *evidence.faults)))

    def _begun(self, season: Season, played: Iterable[Row[Any]]) -> Found:
        """The journal begins with the season, when it was created, and a round came later."""
        created, begins = self._row.created_at, (t.events.c.season == season.id, t.events.c.kind == "season")
        if self._db.execute(select(t.events.c.at).where(*begins)).scalars().all() != [created]:
            yield "the season", f"the journal does not begin when it was created, {created}"
        if (first := min((row.opened_at for row in played), default=created)) < created:
            yield "the season", f"it was created at {created}, after its first round of {first}"
        self.notes.append(f"{season.id} was created at {created}, as recorded")

    def _packets(self, season: Season, played: Iterable[Row[Any]]) -> Found:
        """What entries were shown is hashed, written as we write it, and speaks of its own round."""
        for row in played:
            if sha256_bytes(row.packet.encode()) != row.packet_sha256:
                yield _where(row), "what entries were shown is not what the round's hash says"
                continue
            try:
                packet = msgspec.json.decode(row.packet, type=Packet)
                kind = season.asset(row.asset).kind
            except (TradeassayError, *UNDECODABLE) as error:
                yield _where(row), f"what entries were shown cannot be read: {error}"
                continue
            if canonical_json(packet) != row.packet.encode():
                yield _where(row), "what entries were shown is not written as tradeassay writes it"
            is_ = {
                "season": season.id,
                "date": row.session,
                "decided_at": row.decision_time,
                "symbol": row.asset,
                "price": row.price,
                "momentum": row.momentum,
                "phase": row.stage,
                "kind": kind,
                "position": 0,  # this and the rest are told to each entry by itself
                "outcomes": (),
                "others": (),
            }
            if any(getattr(packet, name) != value for name, value in is_.items()):
                yield _where(row), "what entries were shown speaks of another round, price or stage"
            given = {"season": season.id, "asset": row.asset, "session": row.session}
            edited = self._db.execute(select(t.stream_rounds.c.news).filter_by(**given)).scalar()
            if edited is not None and edited.encode() != canonical_json(packet.news):
                yield _where(row), "the news that entries were shown are not those of the round's edition"

    def _rounds(self, season: Season, evidence: Evidence, played: Iterable[Row[Any]]) -> Found:
        """Everybody is in every round, all but an asset's last are settled, to the next, and stages are right."""
        everyone = cache(lambda session: {entry.id for entry in season.on(session).everyone})
        seats = Counter(place[:2] for place in evidence.rows)
        for asset, session, entry in evidence.rows:
            if entry not in everyone(session):
                yield f"{asset} {session}", f"'{entry}' decides, who is not in the season"
        gone = {(row.asset, row.session) for row in self._all(t.skipped)}
        by_asset: dict[str, list[Row[Any]]] = {}
        for row in played:
            by_asset.setdefault(row.asset, []).append(row)
            if seats[row.asset, row.session] != len(everyone(row.session)):
                yield _where(row), "not everybody in the season has a decision"
            if not season.rules.cross_asset and row.shared is not None:
                yield _where(row), "it tells of an account over all assets, which the season does not have"
        for asset, mine in by_asset.items():
            if asset not in {one.symbol for one in season.assets}:
                yield asset, "it is not an asset of the season"
                continue
            past = sorted({row.session for row in mine} | {day for name, day in gone if name == asset})
            for row, following in zip(mine, [*mine[1:], None], strict=True):
                warming = season.warming(season.asset(asset), row.session, past.index(row.session))
                if row.stage != ("warm-up" if warming else "live"):
                    yield _where(row), f"it is called {row.stage}, which the season's rules do not say"
                prices = (row.base_price, row.next_price, row.next_session)
                if row.phase == "settled":
                    if None in prices or row.next_session <= row.session:
                        yield _where(row), "it is settled without a later price"
                elif row.phase not in _PHASES or prices != (None, None, None):
                    yield _where(row), "it has a price to be settled at and is not settled"
                elif following is not None:
                    yield _where(row), "a later round was opened before it was settled"
                if following is not None and (row.next_session or "") > following.session:
                    if (asset, following.session) not in gone:
                        yield _where(row), f"it was settled at {row.next_session}, after the next round"

    def _accounts(self, season: Season, evidence: Evidence, played: dict[int, Row[Any]]) -> Found:
        """Play every account again from its decisions on the newest prices, in the order in which it was booked.

        An account that no revision touched has exactly these lines; of any other the newest line of a decision
        says what the newest prices say."""
        slots = {row.id: row for row in evidence.rows.values()}
        for slot in slots.values():
            round, where = played.get(slot.round), f"{_where(slot)}, {slot.entry}"
            place = None if round is None else (round.asset, round.session, round.stage)
            if (slot.asset, slot.session, slot.stage) != place:
                yield where, "it is not of the round that it names"
            if slot.status not in ("open", "decided", "failed", "missed"):
                yield where, f"its status is {slot.status!r}"
            if slot.status != "decided" and slot.action not in (None, "HOLD"):
                yield where, "it acts undecided"
            elif slot.status == "decided" and slot.action not in get_args(Action):
                yield where, f"{slot.action!r} is not an action"
        kind, on = SharedTarget if season.rules.cross_asset else DailyTarget, cache(season.on)
        policy = kind(hold=season.money.hold, fee_bp=season.money.fee_bp)
        accounts: dict[tuple[str, ...], list[Row[Any]]] = {}
        for row in self._all(t.bookings, t.bookings.c.id):
            slot = slots.get(row.slot)
            if slot is None or slot.round not in played:
                continue  # named already
            if (slot.entry, slot.asset, slot.stage) != (row.entry, row.asset, row.stage):
                yield f"booking {row.id}", "it belongs to no decision"
                continue
            account = (row.stage, row.entry, *(() if season.rules.cross_asset else (row.asset,)))
            accounts.setdefault(account, []).append(row)
        booked: dict[tuple[int, int], Row[Any]] = {}
        for account, lines in sorted(accounts.items()):
            booked |= {(row.slot, row.number): row for row in lines}
            steps = []
            for slot, row in ((slots[row.slot], row) for row in lines if row.number <= 1):
                action: Action = slot.action if slot.action in get_args(Action) else "HOLD"
                decided = decision_played(on(slot.session), slot.id, slot, played[slot.round], action)
                steps.append((row.kind, decided))
            stage, *whose = account
            warmed = accounts.get(("warm-up", *whose), []) if stage == "live" and season.keeps_position else []
            yield from _same_account(", ".join(account), policy, steps, lines, _last_position(warmed))
        # Every decision is booked as far as its round is, and nobody is told another reward than it earned.
        for slot in (one for one in slots.values() if one.round in played):
            round = played[slot.round]
            numbers = [number for number in (0, 1) if (slot.id, number) in booked]
            if numbers != list(range(_PHASES.index(round.phase) if round.phase in _PHASES else 0)):
                yield f"{_where(round)}, {slot.entry}", f"it is not booked as its round is {round.phase}"
        earned = {slot_id: row.earned for (slot_id, number), row in sorted(booked.items()) if number}
        told = self._all(t.rewards)
        if {row.slot: row.reward for row in told} != (earned if season.rules.feedback else {}):
            yield "rewards", "they are not what decisions earned, or the season's rules tell nobody"
        for row in told:
            made = slots.get(row.slot)
            if made is not None and (row.entry, row.asset, row.session) != (made.entry, made.asset, made.session):
                yield f"reward of decision {row.slot}", "it is not of the decision that it names"

    async def _decisions(
        self, season: Season, evidence: Evidence, played: Iterable[Row[Any]], *, revised: bool
    ) -> list[tuple[str, str]]:
        """Ask rules and desks again, with what they were shown and the replies on record."""
        found: list[tuple[str, str]] = []
        memory: dict[tuple[str, str], bytes] = {}
        spec = msgspec.structs.replace(season, budget=BudgetRules())
        opened = entry_agents(spec, outside=evidence.outside, opener=evidence.opener, recorded=True)
        async with opened as agents:
            inside = {id for id, agent in agents.items() if not isinstance(agent.agent, OutsideAgent)}
            closing: Together[ClosedSlot, int] = Together(lambda made: [0] * len(made), thread=False)
            for row in played:
                deciding = Slots(store=self._store, season=spec.on(row.session), agents=agents, closed=closing)
                told = packets(self._store, season, read_row(Round, row))
                past = self._outcomes_then(row) if revised else None
                for entry in season.on(row.session).everyone:
                    made = evidence.rows.get((row.asset, row.session, entry.id))
                    if made is None or made.status in ("open", "missed") or entry.id not in inside:
                        if made is not None and made.status != "open":
                            what = "were missed" if made.status == "missed" else "were made outside"
                            evidence.taken[f"decisions {what}"] += 1
                        continue
                    packet = told[entry.id]
                    if past is not None:
                        packet = msgspec.structs.replace(packet, outcomes=tuple(past.get(entry.id, ())))
                    place = {name: getattr(made, name) for name in _SLOT}
                    known = Known(memory=memory.get((entry.id, row.asset)))
                    closed = await deciding.decide(Slot(**place, status="open"), packet, known)
                    assert closed is not None  # whoever decides inside is asked again for free
                    closed = evidence.check(closed)
                    if closed.choice.memory is not None:
                        memory[entry.id, row.asset] = closed.choice.memory
                    for name, value in decided_row(closed).items():
                        if not _equal(getattr(made, name), value):
                            where = f"{_where(row)}, {entry.id}"
                            found.append(
                                (where, f"its {name} is {_short(getattr(made, name))}, not {_short(value)}")
                            )
        remembered = {(row.entry, row.asset): unpacked(row.body) for row in self._all(t.memories)}
        open_now = {place[2::-2] for place, row in evidence.rows.items() if row.status == "open"}
        if any(remembered.get(key) != body for key, body in memory.items() if key not in open_now):
            found.append(("memories", "they are not what the entries remember after their decisions"))
        return found

    def _outcomes_then(self, round: Row[Any]) -> dict[str, list[SettledOutcome]]:
        """Return the outcomes that entries were shown in a round: on the prices that were known then."""
        begun = select(func.min(t.bookings.c.id)).join(t.decisions, t.decisions.c.id == t.bookings.c.slot)
        cut = self._db.execute(begun.where(t.decisions.c.round == round.id)).scalar()
        last = select(t.rounds.c.id).filter_by(season=round.season, asset=round.asset, phase="settled")
        last = last.where(t.rounds.c.session < round.session).order_by(t.rounds.c.session.desc()).limit(10)
        columns = (*t.decisions.c["entry", "session", "action"], *t.bookings.c["position", "earned"])
        query = select(*columns).join(t.bookings, t.bookings.c.slot == t.decisions.c.id)
        settled = t.decisions.c.round.in_(self._db.execute(last).scalars().all())
        query = query.where(settled, t.bookings.c.number >= 1).order_by(t.bookings.c.number)
        if cut is not None:
            query = query.where(t.bookings.c.id < cut)
        found: dict[tuple[str, str], SettledOutcome] = {}
        for entry, session, action, position, earned in self._db.execute(query):
            found[entry, session] = SettledOutcome(
                date=session, action=action or "HOLD", position=position, earned=earned or 0.0
            )
        told: dict[str, list[SettledOutcome]] = {}
        for (entry, _), outcome in sorted(found.items()):
            told.setdefault(entry, []).append(outcome)
        return told

    def _all(self, table: Table, *order: ColumnElement[Any]) -> Sequence[Any]:
        """Return the season's rows of a table."""
        return self._db.execute(select(table).filter_by(season=self._row.id).order_by(*order)).all()

    # -- what is said --------------------------------------------------------------------------------------------

    def _settled(self, claim: str, found: Found) -> None:
        count = 0
        for where, what in found:
            count += 1
            if count <= _MOST:
                self._broken(claim, f"{where}: {what}")
        if count > _MOST:
            self._broken(claim, f"and {count - _MOST} more")
        self._say(claim, "contradicted" if count else "re-derived")

    def _say(self, claim: str, outcome: Word, why: str = "") -> None:
        self.claims.append(ClaimOutcome(claim=f"{self._row.id} {claim}", outcome=outcome, why=why))

    def _broken(self, check: str, what: str) -> None:
        self.violations.append(Violation(check=check, what=what, episode=self._row.id))


def _kept(table: Table) -> tuple[str, ...]:
    """Return the columns of a table that a journal decides."""
    return tuple(name for name in table.c.keys() if name not in _KEYS[table.name][1])


class _Journal(NamedTuple):
    """The rows of a season by table, each under what it is about: ids are another database's business."""

    rows: dict[str, Rows]
    twice: list[tuple[str, Place]]


def _journal(db: Connection, season: Season) -> _Journal:
    query = select(t.decisions.c.id, t.rounds.c.asset, t.rounds.c.session, t.decisions.c.entry)
    query = query.join(t.rounds, t.rounds.c.id == t.decisions.c.round).where(t.decisions.c.season == season.id)
    slots: dict[int, Place] = {id: tuple(place) for id, *place in db.execute(query)}
    made = _Journal({}, [])
    for name, (key, _, order) in _KEYS.items():
        table, found, count = t.metadata.tables[name], Rows(), Counter[Place]()
        slot = table.c.id if table is t.decisions else table.c.get("slot")
        picked = (*key, *_kept(table), *order[1:])
        query = select(*table.c[picked], *(() if slot is None else (slot, table.c.entry)))
        if "season" in table.c:
            query = query.where(table.c.season == season.id)
        if order:
            query = query.order_by(table.c[order[0]])
        ends, kinds = len(picked) - len(order[1:]), len(picked)  # a row: its key, what is kept, its order
        for row in db.execute(query).all():
            place, own = tuple(row[: len(key)]), tuple(row[len(key) : ends])
            if table is t.memories:
                own = (*own, slots.get(row[-2]))
            elif slot is not None:
                place = (*(slots.get(row[-2]) or ("nothing", "", row[-1])), *place)
            if order:
                kind = tuple(row[ends:kinds])
                count[kind] += 1
                own = (*own, count[kind])
            if place in found:
                made.twice.append((name, place))
            found[place] = own
        made.rows[name] = found
    return made


_IDS = ("id", "slot", "round", "seq")
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "rounds": (("asset", "session"), _IDS, ("id", "asset")),
    "decisions": ((), (*_IDS, "lease_owner", "lease_until"), ("id", "entry", "asset")),
    "bookings": (("number",), _IDS, ("id", "stage", "entry", "asset")),
    "rewards": ((), _IDS, ()),
    "memories": (("asset", "entry"), _IDS, ()),
    "events": (("kind", "body"), _IDS, ()),
    "stream_items": (("asset", "session", "id"), (), ()),
    "stream_rounds": (("asset", "session"), (), ()),
    "stream_calls": (("item", "number"), (), ()),
    "stream_inbox": (("asset", "key"), (), ()),
    "price_vintages": (("asset", "session", "number"), (), ()),
    "corrections": (("asset", "session", "id"), _IDS, ()),
    "held_bars": (("asset", "session"), (), ()),
    "skipped_sessions": (("asset", "session"), (), ()),
}
"""By table: what names a row beside the slot it belongs to, which columns no journal decides, and the column of
its order with those within which the order is compared."""

_CLAIMS: dict[str, tuple[Table, ...]] = {
    "rounds and prices": (t.rounds, t.skipped, t.held_bars, t.price_vintages, t.corrections),
    "information": (t.stream_items, t.stream_rounds, t.stream_calls, t.stream_inbox),
    "decisions": (t.decisions, t.memories),
    "account": (t.bookings, t.rewards),
    "log": (t.events,),
}
_SLOT = ("id", "round", "season", "asset", "session", "stage", "entry")


def _under_way(
    here: _Journal, there: _Journal, dues: dict[tuple[str, str], Instant], until: Instant
) -> set[Place]:
    """Return the rounds that are not as far as those of the replay, and that nothing came after."""
    mine, at = here.rows[t.rounds.name], _kept(t.rounds).index("phase")
    newest: dict[str, str] = {}
    for asset, session in mine:
        newest[asset] = max(newest.get(asset, ""), session)
    found = set()
    for (asset, session), row in there.rows[t.rounds.name].items():
        if (asset, session) not in mine:
            if dues.get((asset, session)) == until and session > newest.get(asset, ""):
                found.add((asset, session))
        elif newest[asset] == session and mine[asset, session][at] in _PHASES[: _PHASES.index(row[at])]:
            found.add((asset, session))
    return found


def _differences(tables: tuple[Table, ...], here: _Journal, there: _Journal, open_: set[Place]) -> Found:
    """Yield where tables are not those of the replay; the rounds in ``open_`` may be under way."""
    for table in tables:
        found, again = here.rows[table.name], there.rows[table.name]
        names = (*_kept(table), "place")  # of a row among its kind, where there is an order
        for place in {**again, **found}:
            given, wanted = found.get(place), again.get(place)
            if given == wanted or (table is t.events and place[0] in ("review", "amended")):
                continue
            where, about = f"{table.name} {' '.join(map(str, place))[:120]}", tuple(place[:2])
            if table is t.events:
                try:
                    told = msgspec.json.decode(place[1], type=dict[str, Any])
                except UNDECODABLE:
                    told = {}
                about = (told.get("asset"), told.get("session"))
            under_way = about in open_
            if table is t.memories:
                under_way = any(asset == place[0] for asset, _ in open_)
            if wanted is None:
                yield where, "it is on record, and the season played again has no such row"
            elif given is None:
                if not under_way:
                    yield where, "it is missing: the season played again has it"
            elif not (under_way and (table is t.memories or "open" in given)):
                late = ("phase", "base_price", "next_price", "next_session") if under_way else ()
                for name, one, other in zip(names, given, wanted, strict=False):
                    if name not in late and not _equal(one, other):
                        yield where, f"its {name} is {_short(one)}, played again {_short(other)}"
    for name, place in here.twice:
        if any(table.name == name for table in tables):
            yield f"{name} {' '.join(map(str, place))[:120]}", "it is there twice"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return close(one, other)
    if isinstance(one, bytes) and isinstance(other, bytes):
        return one == other or unpacked(one) == unpacked(other)
    return bool(one == other) and isinstance(one, float) == isinstance(other, float)


def _short(value: Any) -> str:
    return repr(value)[:60]


def _where(row: Any) -> str:
    return f"{row.asset} {row.session}"


def _last_position(lines: list[Row[Any]]) -> int:
    """Return what an account holds after its newest decision; 0 without one."""
    return next((row.position for row in reversed(lines) if row.number == 0), 0)


def _same_account(
    where: str, policy: DailyTarget | SharedTarget, steps: list[Step], lines: list[Row[Any]], position: int
) -> Found:
    """Yield where an account's lines are not what its decisions make on the newest prices. ``position`` is what it
    began with."""
    try:
        made = replay(policy, steps, position)
    except (TradeassayError, KeyError):
        yield where, "it was settled without being executed, or on an impossible price"
        return
    if all(row.number <= 1 for row in lines):  # no revision touched it
        for row, booking in zip(lines, made, strict=True):
            if any(not _equal(getattr(row, name), getattr(booking, name)) for name in _MONEY):
                yield where, f"booking {row.id} gives {row.nav:.12g}, decision and price {booking.nav:.12g}"
            if row.restated_before is not None or row.number != (0 if row.kind == "executed" else 1):
                yield where, f"booking {row.id} restates what was never revised"
        return
    worth, last = 1.0, {row.slot: row for row in lines}
    for row in lines:
        if row.kind != "settled" and not _close(row.nav_before, worth):
            yield where, f"booking {row.id} begins at {row.nav_before:.12g}, not at {worth:.12g}"
        worth = row.nav
    for number, booking in {played.slot: one for (_, played), one in zip(steps, made, strict=True)}.items():
        row = last[number]
        if row.number > 1:  # it says what the newest prices say of the decision, and of the account before it
            then = (row.restated_before, row.fee, row.exposure_before, row.exposure)
            now = (booking.nav_before, booking.fee, booking.exposure_before, booking.exposure)
            restated = all(_close(one or 0.0, other or 0.0) for one, other in zip(then, now, strict=True))
        else:  # never corrected: only the account before it must still be what the prices say
            one_account = made[-1].exposure is not None and row.kind == "settled"
            restated = not one_account or _close(row.nav_before, booking.nav_before)
        if booking.kind == "settled" and not _close(booking.earned or 0.0, row.earned or 0.0):
            yield where, f"decision {number} earned {booking.earned}, not {row.earned}"
        elif not restated:
            yield where, f"decision {number} is not restated as the newest prices say"
        elif (row.position_before, row.position) != (booking.position_before, booking.position):
            yield where, f"decision {number} is booked with another position than it takes"
    if not _close(made[-1].nav, worth):
        yield where, f"the newest prices give {made[-1].nav:.12g}, not {worth:.12g}"


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))
