"""Verify an arena's database: replay its seasons, and compare every row.

A season is replayed from its data and recorded replies. If its data cannot be read again, the
season is replayed from the packets and prices in its journal. This is the case for live prices, and
for a data set that is not installed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Table, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.core.errors import UNDECODABLE, TradeassayError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.secrets import without_secrets
from tradeassay_arena.agents import OUTSIDE
from tradeassay_arena.journal_replay import JournalReplay
from tradeassay_arena.queries.seasons import read_season, season_ids
from tradeassay_arena.queries.snapshot import SeasonSnapshot
from tradeassay_arena.replay import Evidence, ReplayStore
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.season import Amendment, BudgetRules, Season, amended
from tradeassay_arena.state import tables as t
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.rows import unpacked
from tradeassay_arena.state.store import Store
from tradeassay_arena.web.serving import PlayOptions, play
from tradeassay_arena.web.site import render, render_front
from tradeassay_arena.web.words import LANGUAGES
from tradeassay_bench.core.closeness import close
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.files import is_litter
from tradeassay_bench.core.time import Instant
from tradeassay_bench.data import load_verified
from tradeassay_bench.llm import parse_name
from tradeassay_bench.runs.store.outcome import ClaimOutcome, ClaimStatus, Violation
from tradeassay_bench.runs.verify.replay import differences
from tradeassay_bench.runs.verify.report import RUNNERS_CLAIM, VerifyReport

_PHASES = ("opened", "executed", "settled")
_MOST = 25
"""Maximum number of listed contradictions per table. Further contradictions are only counted."""
_OF_SEASONS = (
    *(t.rounds, t.decisions, t.bookings, t.door_agents, t.rewards, t.events, t.memories),
    *(t.stream_items, t.stream_rounds, t.skipped),
)
_UNPLAYED = (".json", ".html", ".css", ".js", ".svg", ".xml", ".txt")
_NOT_PAGES = ("now.json", ".written.json")
"""Files of a site that do not follow from the journal: the states of workers and writer."""

Found = Iterator[tuple[str, str]]
Place = tuple[Any, ...]
Rows = dict[Place, Place]


def verify_arena(db: str, *, home: Path | None = None, pages: Path | None = None) -> VerifyReport:
    """Return a report on all seasons in a database, and on the ``pages`` written from it.

    Raises :class:`RunError` if the file is not an arena's database or contains no season.
    """
    with tempfile.TemporaryDirectory() as place:
        try:
            copy = copied_database(db, Path(place))
            store = Store(open_engine(copy, durable=False, called=db))
            with store.read() as connection:
                rows = connection.execute(select(t.seasons)).all()
                found = [_Season(connection, store, row, home) for row in rows]
                for one in found:
                    one.check()
                claims = list(chain.from_iterable(one.claims for one in found))
                violations = list(chain.from_iterable(one.violations for one in found))
                known = {row.id for row in rows}
                for table in _OF_SEASONS:
                    for season in connection.execute(select(table.c.season).distinct()).scalars():
                        if season not in known:
                            what = (
                                f"{table.name} has rows of the unknown season '{str(season)[:80]}'"
                            )
                            violations.append(Violation(check="seasons", what=what))
                orphans = select(t.bookings.c.id).outerjoin(
                    t.decisions, t.decisions.c.id == t.bookings.c.slot
                )
                for id in connection.execute(
                    orphans.where(t.decisions.c.id.is_(None)).limit(_MOST)
                ).scalars():
                    violations.append(
                        Violation(check="seasons", what=f"booking {id} belongs to no decision")
                    )
            if pages is not None:
                wrong = (
                    list(_other_pages(store, pages))
                    if not violations
                    else ["the journal does not hold"]
                )
                violations += [Violation(check="pages", what=what) for what in wrong]
                claims.append(
                    ClaimOutcome(claim="pages", outcome="contradicted" if wrong else "re-derived")
                )
            store.engine.dispose()
        except SQLAlchemyError as error:
            what = str(error).partition("\n")[0]
            raise RunError(
                f"{db} cannot be read as an arena: {what}", hint="name an arena's database"
            ) from error
    if not found and not violations:
        raise RunError(
            f"'{db}' has no season: nothing was verified", hint="tradeassay arena run plays one"
        )
    workers = "the times of workers' states and their troubles are as reported"
    return VerifyReport(
        folder=db,
        episodes=len(found),
        counted="season",
        steps=sum(one.slots for one in found),
        claims=tuple(claims),
        violations=tuple(violations),
        notes=(*chain.from_iterable(one.notes for one in found), workers),
    )


def copied_database(db: str, place: Path) -> str:
    """Return the path of a copy of an SQLite file, in the state that the next reader would see.

    The file itself is not changed. Raises :class:`RunError` for a database with tables, views or
    triggers that are not the arena's.
    """
    if "://" in db:
        return db
    source, copy = Path(db).resolve(), place / "arena.db"
    os.close(os.open(copy, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    beside = [
        name for ending in ("-wal", "-journal") if (name := Path(f"{source}{ending}")).exists()
    ]
    try:
        # Without other files next to it, no writer has the file open. Even a reader would leave a
        # file there.
        address = f"{source.as_uri()}?{'mode=ro' if beside else 'immutable=1'}"
        with (
            closing(sqlite3.connect(address, uri=True)) as held,
            closing(sqlite3.connect(copy)) as target,
        ):
            held.backup(target)
    except sqlite3.Error:
        # A writer died in the middle of a transaction. Its journal undoes the transaction in the
        # copy.
        for name in (source, *beside):
            if name.is_file():
                shutil.copyfile(name, place / f"arena.db{str(name).removeprefix(str(source))}")
    try:
        with closing(sqlite3.connect(copy)) as connection:
            held_there = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    except sqlite3.Error:
        held_there = []  # the next read reports the cause
    for kind, name, sql in held_there:
        if (
            kind == "table"
            and name not in t.metadata.tables
            and not str(name).startswith("sqlite_")
        ):
            raise RunError(
                f"{db} holds a table '{str(name)[:80]}', which no arena has",
                hint="do not trust it",
            )
        # Refuse views and triggers: reading a view may never end, or return anything.
        computes = kind not in ("table", "index") or str(sql).upper().startswith("CREATE VIRTUAL")
        ours = (kind, name, str(sql).split()) == ("view", "slots", t.CREATE_SLOTS.split())
        if computes and not ours:
            raise RunError(
                f"{db} holds a {kind} '{str(name)[:80]}', which no arena has", hint="do not open it"
            )
    return str(copy)


def operators_choice(season: Season) -> str:
    """Return a sentence on the operator's choices.

    It lists all labels, and every setting that differs from its default.
    """
    plain = Season(
        id=season.id,
        assets=season.assets,
        entries=season.entries,
        first=season.first,
        last=season.last,
    )
    own = [
        f'"{entry.label}" for {entry.id}, {entry.kind}' for entry in season.entries if entry.label
    ]
    chosen = []
    for name in Season.__struct_fields__:
        if name not in ("title", "budget"):
            for where, old, new in differences(
                msgspec.to_builtins(getattr(plain, name)),
                msgspec.to_builtins(getattr(season, name)),
                name,
            ):
                chosen.append(f"{where} {new} instead of {'the usual' if old is None else old}")
    called = f' called "{season.title}"' if season.title else ""
    words = "; ".join([*chosen, *(["labels " + ", ".join(own)] if own else [])]) or "nothing"
    return (
        f"{season.id}{called} has the spec {season.sha256[:16]}, which binds what it says if it "
        "was published "
        f"before; chosen by its operator: {words}"
    )


def _other_pages(store: Store, folder: Path) -> Iterator[str]:
    """Yield a message for each file that is missing, differs, or does not belong to the site.

    Every page is rendered again from the journal. Line ends are not compared, because git changes
    them. Files created by desktops are ignored. The arena's own server writes its pages only in
    English.
    """
    languages = LANGUAGES if (folder / "zh").exists() else LANGUAGES[:1]
    made = [render_front(store, languages=languages)]
    for id in season_ids(store):
        season = read_season(store, id)
        assert season is not None  # its id was just listed
        made.append(render(SeasonSnapshot(store, season), languages=languages))
    paths = set()
    for path, content in chain.from_iterable(made):
        paths.add(path)
        file = folder / path
        if not file.is_file():
            yield f"{path} is missing"
        elif file.read_bytes().replace(b"\r\n", b"\n") != without_secrets(content).replace(
            b"\r\n", b"\n"
        ):
            yield f"{path} is not what the journal gives"
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        known = path in paths or file.name in _NOT_PAGES or is_litter(file.name)
        if file.is_file() and file.suffix in _UNPLAYED and not known:
            yield f"{path} is no page of this arena"


class _Season:
    """The verification of one season."""

    def __init__(self, db: Connection, store: Store, row: Row[Any], home: Path | None) -> None:
        self.claims: list[ClaimOutcome] = []
        self.violations: list[Violation] = []
        self.notes: list[str] = []
        self.slots = 0
        self._db, self._store, self._row, self._home = db, store, row, home

    def check(self) -> None:
        """Check the spec, then replay the season from its data or from its journal."""
        season = self._spec()
        if season is None:
            return
        evidence = Evidence(self._db, season)
        self.slots = len(evidence.rows)
        try:
            if season.live:
                raise RunError("a live source is asked once; its answer is as recorded")
            for name in {asset.dataset for asset in season.assets}:
                load_verified(
                    name, self._home
                )  # neither a folder that came with the database nor an edited world
            feed = SnapshotFeed.open(season, self._home)
        except TradeassayError as error:
            self._say("prices", "cannot be checked", error.message)
            self._play_journal(season, evidence)
        else:
            self._play_again(season, evidence, feed)
        if evidence.live:
            self._say("replies", "cannot be checked", RUNNERS_CLAIM)
        for what, count in sorted(evidence.odd.items()):
            self._say("tokens", "cannot be checked", f"{what} ({count} replies)")
        for what, count in sorted(evidence.taken.items()):
            self._say("decisions", "cannot be checked", f"{count} {what}, by the operator's word")
            self.notes[0] += (
                # This joins the operator's other choices in one note.
                f"; {count} {what}, by the operator's word"
            )
        # Claims on workers, registered agents and experts.
        own = {"season": season.id}
        there = self._db.execute(select(func.count(t.rounds.c.id)).filter_by(**own)).scalar_one()
        told = self._db.execute(select(func.sum(t.workers.c.rounds)).filter_by(**own)).scalar() or 0
        if told > there:
            self._broken("workers", f"workers report {told} rounds; the journal has {there}")
        inside = {entry.id for entry in season.all_entries if entry.architecture not in OUTSIDE}
        registered = select(t.door_agents.c.entry).filter_by(**own)
        for entry in sorted(inside & set(self._db.execute(registered).scalars())):
            self._broken(
                "agents", f"an agent is registered for '{entry}', which decides inside the arena"
            )
        judged = select(func.count(t.stream_reviews.c.item)).join(t.stream_items)
        if told := self._db.execute(
            judged.where(t.stream_items.c.season == season.id)
        ).scalar_one():
            self._say("experts' judgements", "cannot be checked", f"{told} are as recorded")

    def _spec(self) -> Season | None:
        """Return the amended season, or None if the spec or an amendment cannot be read."""
        part = "season"
        try:
            season = msgspec.json.decode(self._row.spec, type=Season)
            frozen = self._row.spec.encode()
            if (sha256_bytes(frozen), season.id, season.frozen) != (
                self._row.sha256,
                self._row.id,
                frozen,
            ):
                self._broken("season", "its spec does not match the hash under which it is frozen")
            self._say("season", "contradicted" if self.violations else "re-derived")
            self.notes.append(operators_choice(season))
            part = "amendments"
            return self._amended(season)
        except (TradeassayError, KeyError, *UNDECODABLE) as error:
            self._broken(
                part, f"its {'spec' if part == 'season' else part} cannot be read: {error}"
            )
            self._say(part, "contradicted")
            return None

    def _amended(self, season: Season) -> Season:
        """Return the amended season.

        An amendment that changes a session with an earlier round is reported as a contradiction.
        """
        query = (
            select(t.events.c.kind, t.events.c.body)
            .filter_by(season=season.id)
            .order_by(t.events.c.seq)
        )
        made: list[Amendment] = []
        opened: dict[str, str] = {}  # The newest session with a round, by asset.
        for kind, body in self._db.execute(query.where(t.events.c.kind.in_(("amended", "opened")))):
            if kind == "opened":
                here = msgspec.json.decode(body, type=dict[str, Any])
                asset, session = str(here.get("asset")), str(here.get("session"))
                opened[asset] = max(opened.get(asset, ""), session)
                continue
            one = msgspec.json.decode(body, type=Amendment)
            if one.number != len(made) + 1:
                self._broken(
                    "amendments",
                    f"amendment {one.number} has the position of amendment {len(made) + 1}",
                )
            if made and one.at < made[-1].at:
                self._broken(
                    "amendments", f"amendment {one.number} is dated before the previous amendment"
                )
            if one.late(opened):
                what = (
                    f"amendment {one.number} changes {one.day}, but that session or a later "
                    "one "
                    "had been opened"
                )
                self._broken("amendments", what)
            made.append(one)
        if made and not any(violation.check == "amendments" for violation in self.violations):
            said = "; ".join(
                f"{one.change} {one.what} "
                f"{one.value if one.change in ('rename', 'rule') else one.day}"
                for one in made
            )
            self._say(
                "amendments", "cannot be checked", f"{len(made)} by the operator's word: {said}"
            )
        return amended(season, made)

    # -- played again ------------------------------------------------------------------------------

    def _play_again(self, season: Season, evidence: Evidence, feed: SnapshotFeed) -> None:
        """Replay the season from its data into a new journal, and compare row by row.

        The replay ends at the newest event of the season.
        """
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
        spec = msgspec.structs.replace(
            spec, budget=BudgetRules()
        )  # which entry was over budget depended on the order of entries
        with tempfile.TemporaryDirectory() as place:
            again = ReplayStore(open_engine(f"{place}/again.db", durable=False), evidence)
            replies = self._db.execute(select(t.stream_calls)).all()
            live = [row for row in replies if parse_name(row.model).route != "scripted"]
            with again.write("replies") as db:
                told = [row for row in self._all(t.events, t.events.c.seq) if row.kind == "amended"]
                for table, rows in ((t.stream_calls, live), (t.events, told)):
                    if rows:
                        db.execute(insert(table), [row._asdict() for row in rows])
            how = PlayOptions(
                worker="replay", opener=evidence.opener, feed=feed, outside=evidence.outside
            )
            gc.freeze()  # the record stays until the end, so the collector need not scan it
            try:
                asyncio.run(play(spec, again, None, until, how))
            except (TradeassayError, *UNDECODABLE) as error:
                self._broken("replay", f"the season cannot be replayed: {error}")
                self._say("replay", "contradicted")
                return
            finally:
                gc.unfreeze()
                with again.read() as db:
                    here, there = _journal(self._db, season), _journal(db, season)
                    open_ = _under_way(
                        here, there, {(due.asset, due.session): due.at for due in dues}, until
                    )
                    for claim, which in _CLAIMS.items():
                        self._settled(claim, _differences(which, here, there, open_))
                    begun = db.execute(select(t.seasons.c.created_at)).scalar_one()
                if self._row.created_at != begun:
                    what = (
                        f"the season was created at {self._row.created_at}, in the replay at "
                        f"{begun}"
                    )
                    self._broken("log", what)
                again.close()
        self._settled("calls", iter(evidence.faults))
        left = sum(not due.closing for due in dues) - len(played)
        if left > 0:
            self._say("complete", "cannot be checked", f"{left} of its rounds are not played yet")

    # -- played again from its journal -----------------------------------------------------------

    def _play_journal(self, season: Season, evidence: Evidence) -> None:
        """Replay the events of the journal with its prices, and compare row by row."""
        spec = msgspec.json.decode(self._row.spec, type=Season)
        created = self._row.created_at
        self.notes.append(f"{season.id} was created at {created}, as recorded")
        with tempfile.TemporaryDirectory() as place:
            again = ReplayStore(open_engine(f"{place}/again.db", durable=False), evidence)
            replay = JournalReplay(self._db, again, evidence, spec)
            asyncio.run(replay.play())
            with again.read() as db:
                here, there = _journal(self._db, season), _journal(db, season)
            again.close()
        missed = sum(row.status == "missed" for row in evidence.rows.values())
        if missed:
            evidence.taken["decisions were missed"] += missed
        begun = [event.at for event in self._all(t.events) if event.kind == "season"]
        if begun != [created]:
            self._broken(
                "log", f"the journal does not begin when the season was created, {created}"
            )
        first = min((row.opened_at for row in self._all(t.rounds)), default=created)
        if first < created:
            self._broken("log", f"it was created at {created}, after its first round of {first}")
        self._settled("rounds", chain(replay.faults, _differences(_ROUNDS, here, there, set())))
        _drop_repeatable(here, there, replay.revised)
        self._settled("log", _differences((t.events,), here, there, set()))
        restated = _restated(here, there, season) if replay.revised else iter(())
        accounts = _differences((t.bookings, t.rewards), here, there, set())
        self._settled("account", chain(restated, accounts))
        if replay.revised:
            why = (
                "prices were revised by their source: what was booked before a revision is as "
                "recorded"
            )
            self._say("bookings before a revision", "cannot be checked", why)
        if replay.decides:
            decided = _differences((t.decisions, t.memories), here, there, set())
            self._settled("decisions", chain(evidence.faults, decided))
        else:
            why = (
                "an account over all assets was revised while entries decided: what they were "
                "told is not known"
            )
            self._say("decisions", "cannot be checked", why)

    def _all(self, table: Table, *order: ColumnElement[Any]) -> Sequence[Any]:
        """Return the season's rows of a table."""
        return self._db.execute(select(table).filter_by(season=self._row.id).order_by(*order)).all()

    # -- results -----------------------------------------------------------------------------------

    def _settled(self, claim: str, found: Found) -> None:
        count = 0
        for where, what in found:
            count += 1
            if count <= _MOST:
                self._broken(claim, f"{where}: {what}")
        if count > _MOST:
            self._broken(claim, f"and {count - _MOST} more")
        self._say(claim, "contradicted" if count else "re-derived")

    def _say(self, claim: str, outcome: ClaimStatus, why: str = "") -> None:
        self.claims.append(ClaimOutcome(claim=f"{self._row.id} {claim}", outcome=outcome, why=why))

    def _broken(self, check: str, what: str) -> None:
        self.violations.append(Violation(check=check, what=what, episode=self._row.id))


def _kept(table: Table) -> tuple[str, ...]:
    """Return the names of a table's columns that are compared."""
    return tuple(name for name in table.c.keys() if name not in _KEYS[table.name][1])


class _Journal(NamedTuple):
    """The rows of a season by table.

    Keys contain no ids, because ids differ between databases.
    """

    rows: dict[str, Rows]
    twice: list[tuple[str, Place]]


def _journal(db: Connection, season: Season) -> _Journal:
    """Return the rows of a season in a database, by table and key."""
    query = select(t.decisions.c.id, t.rounds.c.asset, t.rounds.c.session, t.decisions.c.entry)
    query = query.join(t.rounds, t.rounds.c.id == t.decisions.c.round).where(
        t.decisions.c.season == season.id
    )
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
        ends, kinds = (
            len(picked) - len(order[1:]),
            len(picked),
        )  # a row: its key, the compared columns, its order
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
"""For each table: the columns that identify a row within its slot, the columns that are not
compared, and the column of the rows' order followed by the columns within which the order is
compared.
"""

_ROUNDS = (t.rounds, t.skipped)
_CLAIMS: dict[str, tuple[Table, ...]] = {
    "rounds and prices": (t.rounds, t.skipped, t.held_bars, t.price_vintages, t.corrections),
    "information": (t.stream_items, t.stream_rounds, t.stream_calls, t.stream_inbox),
    "decisions": (t.decisions, t.memories),
    "account": (t.bookings, t.rewards),
    "log": (t.events,),
}


def _under_way(
    here: _Journal, there: _Journal, dues: dict[tuple[str, str], Instant], until: Instant
) -> set[Place]:
    """Return the newest rounds of each asset that have advanced less than in the replay."""
    mine, at = here.rows[t.rounds.name], _kept(t.rounds).index("phase")
    newest: dict[str, str] = {}
    for asset, session in mine:
        newest[asset] = max(newest.get(asset, ""), session)
    found = set()
    for (asset, session), row in there.rows[t.rounds.name].items():
        if (asset, session) not in mine:
            if dues.get((asset, session)) == until and session > newest.get(asset, ""):
                found.add((asset, session))
        elif (
            newest[asset] == session
            and mine[asset, session][at] in _PHASES[: _PHASES.index(row[at])]
        ):
            found.add((asset, session))
    return found


def _differences(
    tables: tuple[Table, ...], here: _Journal, there: _Journal, open_: set[Place]
) -> Found:
    """Yield the differences between the recorded rows and the replayed rows.

    Rounds in ``open_`` may still be in progress.
    """
    for table in tables:
        found, again = here.rows[table.name], there.rows[table.name]
        names = (
            *_kept(table),
            "place",
        )  # the position of a row in its order, for tables with an order
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
                yield where, "it is on record, but the replay has no such row"
            elif given is None:
                if not under_way:
                    yield where, "it is missing: the replay has it"
            elif not (under_way and (table is t.memories or "open" in given)):
                late = ("phase", "base_price", "next_price", "next_session") if under_way else ()
                for name, one, other in zip(names, given, wanted, strict=False):
                    if name not in late and not _equal(one, other):
                        yield where, f"its {name} is {_short(one)}, in the replay {_short(other)}"
    for name, place in here.twice:
        if any(table.name == name for table in tables):
            yield f"{name} {' '.join(map(str, place))[:120]}", "it occurs twice"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return close(one, other)
    if isinstance(one, bytes) and isinstance(other, bytes):
        return one == other or unpacked(one) == unpacked(other)
    return bool(one == other) and isinstance(one, float) == isinstance(other, float)


def _short(value: Any) -> str:
    return repr(value)[:60]


def _drop_repeatable(here: _Journal, there: _Journal, revised: Collection[str]) -> None:
    """Remove events that need not agree.

    Copied events may occur twice, and a revised price changes the return in a settled event.
    """
    once = ("season", "opened", "decided", "failed", "executed", "settled")
    here.twice[:] = [
        (name, place) for name, place in here.twice if name != "events" or place[0] in once
    ]
    for journal in (here, there):
        events = journal.rows["events"]
        for place in [place for place in events if place[0] == "settled"]:
            try:
                asset = msgspec.json.decode(place[1], type=dict[str, Any]).get("asset")
            except UNDECODABLE:
                continue
            if asset in revised:
                del events[place]


class _Line(NamedTuple):
    """A booking in a journal: its decision, its number for the decision, and its columns."""

    decision: Place
    number: int
    row: SimpleNamespace


def _lines(journal: _Journal, season: Season) -> dict[Place, list[_Line]]:
    """Return the bookings of every account, in the order of writing."""
    names = _kept(t.bookings)
    accounts: dict[Place, list[_Line]] = {}
    for place, columns in journal.rows["bookings"].items():
        row = SimpleNamespace(**dict(zip(names, columns, strict=False)))
        account: Place = (row.stage, row.entry)
        if not season.rules.cross_asset:
            account = (*account, row.asset)
        accounts.setdefault(account, []).append(_Line(place[:-1], place[-1], row))
    return accounts


def _restated(here: _Journal, there: _Journal, season: Season) -> Found:
    """Compare the accounts that a revision of prices has changed, and yield the differences.

    The bookings of these accounts are removed from both journals. The replay uses the newest prices
    from the beginning. The newest line of a decision must agree with the replay. Every line must
    begin with the final value of the previous line.
    """
    again = _lines(there, season)
    for account, lines in sorted(_lines(here, season).items()):
        if all(line.number <= 1 for line in lines):
            continue
        made = again.get(account, [])
        yield from _restated_account(", ".join(account), lines, made)
        for journal, bookings in ((here, lines), (there, made)):
            for line in bookings:
                del journal.rows["bookings"][(*line.decision, line.number)]


def _restated_account(where: str, lines: list[_Line], made: list[_Line]) -> Found:
    """Yield the contradictions between an account's recorded and replayed bookings.

    ``lines`` are the recorded bookings, and ``made`` the replayed bookings.
    """
    first_lines = {line[:2] for line in lines if line.number <= 1}
    if first_lines != {line[:2] for line in made}:
        yield where, "its bookings do not match its decisions"
        return
    worth = 1.0
    for line in lines:
        if line.row.kind != "settled" and not _close(line.row.nav_before, worth):
            yield where, f"a booking begins at {line.row.nav_before:.12g}, not at {worth:.12g}"
        worth = line.row.nav
    newest = {line.decision: line for line in lines}
    last_made = {line.decision: line.row for line in made}
    for decision, booking in last_made.items():
        number, row = newest[decision].number, newest[decision].row
        what = " ".join(map(str, decision))
        if number > 1:
            # A correction must match the decision's return, and the account before it, on the
            # newest prices.
            then = (row.restated_before, row.fee, row.exposure_before, row.exposure)
            now = (booking.nav_before, booking.fee, booking.exposure_before, booking.exposure)
            pairs = zip(then, now, strict=True)
            restated = all(_close(old or 0.0, new or 0.0) for old, new in pairs)
        elif booking.exposure is not None and row.kind == "settled":
            # It was never corrected, so the account before it must still match the prices.
            restated = _close(row.nav_before, booking.nav_before)
        else:
            restated = True
        earned_other = booking.kind == "settled" and not _close(
            booking.earned or 0.0, row.earned or 0.0
        )
        if earned_other:
            yield where, f"the decision of {what} earned {booking.earned}, not {row.earned}"
        elif not restated:
            yield where, f"the decision of {what} is not restated on the newest prices"
        elif (row.position_before, row.position) != (booking.position_before, booking.position):
            yield where, f"the decision of {what} is booked with a wrong position"
    if not _close(made[-1].row.nav, worth):
        yield where, f"the newest prices give {made[-1].row.nav:.12g}, not {worth:.12g}"


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))
