"""Write the public site: folders of HTML and JSON that any static server can serve.

:func:`render` renders the files of a season from its snapshot, which is computed from the journal
alone. :class:`PageWriter` writes changed files, each file atomically, and can be restarted at any
time. The present state of workers is not in the journal. It is in ``now.json``, which pages poll,
together with a version of every page, so a reader only fetches changed pages.

A site for any static server contains its pages in every language. The arena's own server writes the
English pages, and renders other languages on request (:meth:`PageWriter.translate`).
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from threading import Event, Lock
from typing import Any

import msgspec
from jinja2 import Environment
from markupsafe import escape
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from tradeassay import __version__
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.secrets import without_secrets
from tradeassay.report.shell import page_environment, template_text
from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.queries.decisions import holdings, newest_events, read_round, who_decides
from tradeassay_arena.queries.seasons import (
    SeasonState,
    badges_of,
    facts_of,
    read_season,
    season_ids,
    state_of,
)
from tradeassay_arena.queries.snapshot import SeasonSnapshot
from tradeassay_arena.rounds.health import Health
from tradeassay_arena.season import Season
from tradeassay_arena.standings import BoardConfig, LineBook
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import bookings, decisions, events, rounds, stream_items
from tradeassay_arena.stream import item_page as read_item
from tradeassay_arena.web import pages
from tradeassay_arena.web.pages import Page, asset_folders, names_of, season_pages
from tradeassay_arena.web.words import LANGUAGES, NAMES, Language, words

# Charts use inline styles, which cannot run code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' "
    "data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'"
)
_MARK = "version-of-this-page"
_LASTING = re.compile(r"/(assets/[^/]+/\d{4}-\d\d-\d\d|items/[^/]+)/index\.html$")
"""Pages that are usually written once and are never polled."""

MOST_TRANSLATIONS = 256
"""Maximum number of pages in other languages that are cached in memory."""

COMING_S = 1.0
"""Minimum time that rendering waits for agents after a round opens, in seconds."""
GIVE_WAY_S = 4.0
"""Maximum time that rendering waits for agents before one update, in seconds."""

_SHELL = ("page.css", "theme.js", "shell.js", "charts.js")
_OWN = ("arena.css", "arena.js", "mark.svg")
Files = Iterator[tuple[str, bytes]]


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """``now.json``: the state of workers, the entries that open rounds are waiting for, and a
    version of every page that changes.

    ``judged``: experts may judge items here. ``provisional`` is each entry's return since the last
    decisions, at prices of ``priced_at``. No booking uses it, and it is empty if outside agents
    take part.
    """

    states: dict[str, SeasonState]
    pages: dict[str, str]
    deciding: dict[str, list[str]] = {}
    judged: bool = False
    provisional: dict[str, float] = {}
    priced_at: str | None = None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The state from which a season's pages on disk were rendered: the newest event they show, its
    hash, the spec and our templates.

    The hash matters because a database may be restored and continue with other events.
    """

    seq: int
    event: str
    spec: str
    look: str
    pages: dict[str, str]


def render(
    state: SeasonSnapshot,
    shown: Collection[tuple[str, str]] | None = None,
    items: Collection[str] | None = None,
    *,
    languages: Sequence[Language] = LANGUAGES,
) -> Files:
    """Return the files of a season by their path in the site. Equal journals give equal bytes.

    ``shown`` selects the rounds (asset, session) and ``items`` the news whose pages are rendered.
    None selects all.
    """
    season, home = state.season, _home(state.season)
    for language in languages:
        for page in season_pages(state, words(language)):
            yield from _files(language, home, page, state)
    yield f"{home}feed.xml", atom(state).encode()
    yield f"{home}standings.json", msgspec.json.encode(state.board())
    yield f"{home}equity.json", msgspec.json.encode(state.equity())
    mine = (
        select(rounds.c.asset, rounds.c.session)
        .filter_by(season=season.id)
        .order_by(rounds.c.session)
    )
    if items is None:
        items = [
            id
            for (id,) in state.store.rows(
                select(stream_items.c.id).filter_by(season=season.id, kind="news")
            )
        ]
    before: dict[str, str] = {}
    for asset, day in state.store.rows(mine):
        if shown is None or (asset, day) in shown:
            round_page = _round_page(state, asset, day, before.get(asset))
            if round_page is not None:
                for language in languages:
                    yield from _files(language, home, round_page, state)
        before[asset] = day
    for item in sorted(items):
        item_page = _item_page(state, item)
        for language in languages:
            yield from _files(language, home, item_page, state)


def _home(season: Season) -> str:
    return f"seasons/{season.id}/"


def _round_page(state: SeasonSnapshot, asset: str, day: str, before: str | None) -> Page | None:
    """Return the page of a round, or None if there is no such round. ``before`` is the session of
    the previous round.
    """
    found = read_round(state.store, state.season, asset, day, sealed=state.sealed)
    if found is None:
        return None
    path = f"assets/{asset_folders(state.season)[asset]}/{day}/"
    return Page(path, "round", {"round": found, "before": before}, found)


def _item_page(state: SeasonSnapshot, item: str) -> Page:
    found = read_item(state.store, state.season.id, item)
    return Page(f"items/{item}/", "item", {"found": found}, found)


def _page_at(state: SeasonSnapshot, path: str, language: Language) -> Page | None:
    """Return the page of a season at a path below its home."""
    kind, _, rest = path.rstrip("/").partition("/")
    if kind == "items":
        return _item_page(state, rest)
    folder, _, day = rest.partition("/")
    if kind == "assets" and day:
        assets = {place: asset for asset, place in asset_folders(state.season).items()}
        if folder not in assets:
            return None
        earlier = state.store.last_round(state.season.id, assets[folder], before=day)
        return _round_page(state, assets[folder], day, None if earlier is None else earlier.session)
    for page in season_pages(state, words(language)):
        if page.path == path:
            return page
    return None


def _front_pages(store: Store, language: Language) -> tuple[Page, ...]:
    facts = []
    for id in season_ids(store):
        season = read_season(store, id)
        if season is not None:
            facts.append(facts_of(store, season, badges_of(season)))
    listed = {"seasons": tuple(facts)}
    leads_to = f"{_prefix(language)}/seasons/{facts[0].id}/" if facts else ""
    return (
        Page("seasons/", "seasons", listed, listed),
        Page("seat/", "seat", {}),
        Page("", "seasons", {**listed, "leads_to": leads_to}),
    )


def render_front(store: Store, *, languages: Sequence[Language] = LANGUAGES) -> Files:
    """Return the files outside all seasons: the list of seasons, the front page, error pages and
    static files.
    """
    for language in languages:
        for page in _front_pages(store, language):
            yield from _files(language, "", page, None)
        yield (
            f"{_prefix(language)}/404.html".lstrip("/"),
            render_page(language, "error", {}).encode(),
        )
    for name in (*_SHELL, *_OWN):
        yield static_address(name).lstrip("/"), _static(name)
    hidden = "".join(f"Disallow: /{path}\n" for path in ("agents", "api", "health", "metrics"))
    yield "robots.txt", f"User-agent: *\n{hidden}".encode()


def atom(state: SeasonSnapshot) -> str:
    """Return the newest events as an Atom feed. A decision appears only when it may be shown."""
    said, folders, id = words(LANGUAGES[0]), asset_folders(state.season), state.season.id
    kinds = ("settled", "corrected", "amended", "season")
    told = newest_events(state.store, state.season, 40, sealed=state.sealed, kinds=kinds)
    entries = []
    for one in told:
        asset, session = str(one.body.get("asset", "")), str(one.body.get("session", ""))
        path = (
            f"assets/{folders[asset]}/{session}/"
            if one.kind == "settled" and asset in folders
            else "rules/"
        )
        if one.kind == "amended":
            body = {name: one.body.get(name, "") for name in ("what", "day", "value")}
            title = said(f"rules.{one.body['change']}", **body)
        else:
            title = f"{said.maybe(f'event.{one.kind}', one.kind)} {asset} {session}".strip()
        entries.append(
            f"<entry><id>tag:tradeassay,2026:{id}/{one.seq}</id><title>{escape(title)}</title>"
            f"<updated>{escape(one.at)}</updated><link "
            f'href="/seasons/{id}/{escape(path)}"/></entry>'
        )
    newest = told[0].at if told else "1970-01-01T00:00:00Z"
    note = state.badges.note
    subtitle = f"<subtitle>{escape(note)}</subtitle>" if note else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>tag:tradeassay,2026:{id}</id><title>{escape(state.facts.title)}</title>{subtitle}"
        f"<updated>{newest}</updated>"
        f'<author><name>tradeassay</name></author><link rel="self" href="/seasons/{id}/feed.xml"/>'
        f"{''.join(entries)}</feed>\n"
    )


def _prefix(language: Language) -> str:
    return "" if language == "en" else f"/{language}"


def _files(language: Language, home: str, page: Page, state: SeasonSnapshot | None) -> Files:
    path = f"/{home}{page.path}"
    if page.data is not None and language == LANGUAGES[0]:
        yield f"{path}index.json".lstrip("/"), msgspec.json.encode(page.data)
    text = _html(language, home, page, state)
    # The version is the hash of the page without the version.
    version = hashlib.sha256(text.encode()).hexdigest()[:12]
    yield f"{_prefix(language)}{path}index.html".lstrip("/"), text.replace(_MARK, version).encode()


def _html(language: Language, home: str, page: Page, state: SeasonSnapshot | None) -> str:
    """Return a page in one language, with a placeholder for its version."""
    path = f"/{home}{page.path}"
    context: dict[str, Any] = {
        "json_at": f"{path}index.json" if page.data is not None else "",
        "path": path,
    }
    if state is not None:
        context |= {
            "season": state.season,
            "facts": state.facts,
            "names": names_of(words(language), state.season),
            "folders": asset_folders(state.season),
            "now": f"/{home}now.json",
        }
    elif page.template == "seasons":
        context["now"] = "/seasons/now.json"
    return render_page(language, page.template, context | page.context)


def render_page(language: Language, template: str, context: dict[str, Any]) -> str:
    """Return a page in one language.

    Without a ``season`` in its context it belongs to no season.
    """
    said, prefix, path = words(language), _prefix(language), context.get("path", "/")
    season: Season | None = context.get("season")
    first = "" if season is None else asset_folders(season)[season.assets[0].symbol]
    everywhere: dict[str, Any] = {
        "t": said,
        "lang": language,
        "languages": [
            (one, NAMES[one], f"{_prefix(one)}{path}") for one in LANGUAGES if one != language
        ],
        "prefix": prefix,
        "home": "" if season is None else f"{prefix}/seasons/{season.id}",
        "menu": (
            ("standings", ""),
            ("asset", f"assets/{first}/"),
            *((name, f"{name}/") for name in ("feed", "information", "rules", "published")),
        ),
        "page": template,
        "policy": POLICY,
        "version_mark": _MARK,
        "live_words": said.some("state", "now", "site", "prompt"),
        **dict.fromkeys(("season", "facts", "now", "json_at", "leads_to")),
    }
    return _environment().get_template(f"{template}.html.j2").render(everywhere | context)


@cache
def _environment() -> Environment:
    made = page_environment("tradeassay_arena.web")
    own = {name: getattr(pages, name) for name in ("percent", "price", "money", "spoken", "when")}
    made.globals.update(own, static=static_address, mark=pages.mark_of, version=__version__)
    return made


@cache
def _static(name: str) -> bytes:
    if name in _SHELL:
        return template_text(name).encode()
    return resources.files(__package__).joinpath("static", name).read_bytes()


@cache
def static_address(name: str) -> str:
    """Return the address of a script or style. It contains a hash, so it may be cached for ever."""
    stem, _, ending = name.rpartition(".")
    return f"/static/{stem}-{hashlib.sha256(_static(name)).hexdigest()[:12]}.{ending}"


@cache
def _look() -> str:
    """Return a hash of all inputs to the look of a page except the journal."""
    made = hashlib.sha256(__version__.encode())
    for name in (*_SHELL, *_OWN):
        made.update(_static(name))
    for package in ("tradeassay_bench.report", "tradeassay_arena.web"):
        for folder in ("templates", "words"):
            there = resources.files(package).joinpath(folder)
            for file in sorted(there.iterdir(), key=lambda one: one.name) if there.is_dir() else ():
                made.update(file.read_bytes())
    return made.hexdigest()[:16]


@dataclass(slots=True)
class _Followed:
    """A season whose pages are updated continuously. ``book`` reads only new settlements.

    ``seq`` is the newest event that the pages show, ``snapshot_seq`` the newest event of the
    snapshot.
    """

    season: Season
    book: LineBook
    seq: int = -1
    snapshot: SeasonSnapshot | None = None
    snapshot_seq: int = -1
    pages: dict[str, str] = field(default_factory=dict)


class PageWriter:
    """Writes the pages of all seasons of a database into a folder and updates them.

    Any number of processes may write one folder. A lock makes them take turns, and the second
    process has nothing to write. Unchanged files are not rewritten. If a process dies between a
    settlement and its pages, the pages still name their newest event, and the next process
    continues from there.

    ``languages`` are the languages of the written pages. :meth:`translate` renders pages in other
    languages.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        config: BoardConfig | None = None,
        own: Callable[[], Health | None] = lambda: None,
        api: AgentApi | None = None,
        languages: Sequence[Language] = LANGUAGES,
    ) -> None:
        self._store, self._folder, self._config, self._own = store, folder, config, own
        self._languages = tuple(languages)
        self._translating = Lock()
        self._translations: dict[tuple[Language, str], tuple[str, bytes]] = {}
        self._api, self.waited, self._shared = api or AgentApi(store), 0.0, api is not None
        self._followed: dict[str, _Followed] = {}
        self._seen = 0

    def update(self, *, everything: bool = False) -> int:
        """Write what has changed, or ``everything``, and return the number of written files."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.waited = 0.0
        with (self._folder / ".lock").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            written = 0
            newest = self._store.scalar(select(func.max(events.c.seq))) or 0
            if newest < self._seen:  # An older database was restored in the meantime.
                self._followed.clear()
                self._seen = 0
            # Decisions alone change no public page: they appear with their round.
            moved = (
                events.c.kind.not_in(("decided", "failed")),
                events.c.seq > (0 if everything else self._seen),
            )
            query = (
                select(events.c.season, func.max(events.c.seq))
                .where(*moved)
                .group_by(events.c.season)
            )
            newer = {season: seq for season, seq in self._store.rows(query)}
            if everything or newer or not self._seen:
                for path, content in render_front(self._store, languages=self._languages):
                    written += self._write(path, content)
            for id, seq in newer.items():
                written += self._season(id, seq, everything=everything)
            states = {id: state_of(self._store, one.season) for id, one in self._followed.items()}
            judged = bool(self._api.key_names("expert"))
            for id, one in self._followed.items():
                made, at = self._provisional(one.season)
                doing: dict[str, Any] = {"deciding": who_decides(self._store, id), "judged": judged}
                now = Now(
                    states={id: states[id]},
                    pages=one.pages,
                    provisional=made,
                    priced_at=at,
                    **doing,
                )
                written += self._write(f"seasons/{id}/now.json", msgspec.json.encode(now))
            versions = {}
            for language in self._languages:
                path = f"{_prefix(language)}/seasons/"
                file = self._folder / path[1:] / "index.html"
                if file.exists():
                    versions[path] = _version(file.read_bytes())
            now = Now(states=states, pages=versions, judged=judged)
            written += self._write("seasons/now.json", msgspec.json.encode(now))
            self._seen = max(self._seen, *newer.values(), 0)
            return written

    def follow(self, stop: Event, *, every_s: float = 0.5) -> None:
        """Update the pages until ``stop`` is set. Writing takes at most a quarter of the time.

        After a failure of the database or the disk it tries again, because pages must not delay the
        season.
        """
        while True:
            began = time.monotonic()
            last = stop.is_set()  # One more update after the last event.
            try:
                self.update()
            except (SQLAlchemyError, OSError):
                every_s = max(every_s, 1.0)
            if last:
                return
            took = time.monotonic() - began - self.waited
            stop.wait(max(every_s, 3.0 * took))

    def translate(self, path: str) -> bytes | None:
        """Return the page at a path in a language whose pages are not written, or None if there is
        no page.

        It has the version of the English page, because both change together.
        """
        for language in LANGUAGES:
            prefix = _prefix(language)
            if language not in self._languages and path.startswith(f"{prefix}/"):
                return self._translated(language, path.removeprefix(prefix))
        return None

    def _translated(self, language: Language, path: str) -> bytes | None:
        file = self._folder / path[1:] / "index.html"
        if not path.endswith("/") or not file.exists():
            return None
        version = _version(file.read_bytes())
        with self._translating:
            known, content = self._translations.get((language, path), ("", b""))
            if known == version:
                return content
            text = self._page_text(language, path)
            if text is None:
                return None
            content = without_secrets(text.replace(_MARK, version).encode())
            if len(self._translations) >= MOST_TRANSLATIONS:
                self._translations.clear()
            self._translations[language, path] = version, content
            return content

    def _page_text(self, language: Language, path: str) -> str | None:
        if not path.startswith("/seasons/") or path == "/seasons/":
            for front in _front_pages(self._store, language):
                if f"/{front.path}" == path:
                    return _html(language, "", front, None)
            return None
        id, _, rest = path.removeprefix("/seasons/").partition("/")
        one = self._followed.get(id)
        if one is None:
            return None
        if one.snapshot is None or one.snapshot_seq != one.seq:
            # Another process has written the newest pages.
            seq = one.seq
            one.snapshot = self._snapshot(one)
            one.snapshot_seq = seq
        page = _page_at(one.snapshot, rest, language)
        return None if page is None else _html(language, _home(one.season), page, one.snapshot)

    def _snapshot(self, one: _Followed) -> SeasonSnapshot:
        return SeasonSnapshot(
            self._store, one.season, one.book.lines(), self._config, before=one.snapshot
        )

    def _season(self, id: str, seq: int, *, everything: bool) -> int:
        one, season = self._followed.get(id), read_season(self._store, id)
        assert season is not None  # The season has an event.
        if one is None or one.season != season:
            one = _Followed(season, LineBook(self._store, season))
            self._followed[id] = one
        if seq == one.seq and not everything:
            return 0
        mark = self._folder / "seasons" / id / ".written.json"
        since = 0 if everything else self._on_disk(mark, one, seq)
        if since == seq:
            one.seq = seq
            return 0
        if badges_of(season).sealed:
            self._give_way(COMING_S)
        state = self._snapshot(one)
        changed = None if since == 0 else self._changed(id, since)
        shown, items = changed or (None, None)
        written, versions = 0, dict[str, str]()
        for path, content in render(state, shown, items, languages=self._languages):
            self._give_way()
            written += self._write(path, content)
            if path.endswith(".html") and not _LASTING.search(path):
                versions[f"/{path.removesuffix('index.html')}"] = _version(content)
        one.snapshot = state
        one.seq = seq
        one.snapshot_seq = seq
        one.pages = versions
        done = Written(
            seq=seq, event=self._event(seq), spec=one.season.sha256, look=_look(), pages=versions
        )
        self._write(f"seasons/{id}/.written.json", msgspec.json.encode(done))
        return written

    def _give_way(self, least: float = 0.0) -> None:
        """Wait while agents use this process's API, but at least ``least`` seconds."""
        while self._shared and (self.waited < least or self._api.busy) and self.waited < GIVE_WAY_S:
            time.sleep(0.02)
            self.waited += 0.02

    def _on_disk(self, mark: Path, one: _Followed, newest: int) -> int:
        """Return the newest event that the pages on disk show, or 0 if they belong to another
        journal.
        """
        try:
            found = msgspec.json.decode(mark.read_bytes(), type=Written)
        except (OSError, *UNDECODABLE):
            return 0
        same = (found.spec, found.look) == (one.season.sha256, _look())
        # A restored database may be older than its pages, or have other events.
        if not same or found.seq > newest or found.event != self._event(found.seq):
            return 0
        one.pages = found.pages
        return found.seq

    def _event(self, seq: int) -> str:
        found = self._store.rows(select(*events.c["season", "kind", "body"]).filter_by(seq=seq))
        return hashlib.sha256(repr(found).encode()).hexdigest()[:16]

    def _changed(self, season: str, since: int) -> tuple[set[tuple[str, str]], set[str]] | None:
        """Return the rounds and news whose pages changed since an event, or None if all may have
        changed.
        """
        shown: set[tuple[str, str]] = set()
        items: set[str] = set()
        query = select(events.c.kind, events.c.body).where(
            events.c.season == season, events.c.seq > since
        )
        news = (stream_items.c.season == season, stream_items.c.kind == "news")
        with self._store.read() as db:
            for kind, body in db.execute(query).all():
                told = msgspec.json.decode(body)
                if kind == "amended":
                    return None
                if kind in ("executed", "settled"):
                    shown.add((told["asset"], told["session"]))
                elif kind == "corrected":
                    query = select(decisions.c.session).join(
                        bookings, bookings.c.slot == decisions.c.id
                    )
                    where = (
                        bookings.c.season == season,
                        bookings.c.asset == told["asset"],
                        bookings.c.number > 1,
                    )
                    shown |= {
                        (told["asset"], day)
                        for day in db.execute(query.where(*where).distinct()).scalars()
                    }
                elif kind == "review":
                    items.add(told["item"])
                elif kind == "stream":
                    here = (
                        stream_items.c.asset == told["asset"],
                        stream_items.c.session == told["session"],
                    )
                    for found in db.execute(
                        select(*stream_items.c["id", "merged_into"]).where(*news, *here)
                    ):
                        items |= {*found} - {None}
        return shown, items

    def _provisional(self, season: Season) -> tuple[dict[str, float], str | None]:
        """Return the accounts' provisional returns since the last decisions, from this process's
        worker.
        """
        own = self._own()
        marks = own.marks if own is not None and own.season == season.id else {}
        if not marks or badges_of(season).sealed or season.rules.cross_asset:
            return {}, None
        found = {}
        for entry, held in holdings(self._store, season, sealed=False).items():
            worth = [(line.nav or 0.0, line, marks.get(asset)) for asset, line in held.items()]
            # A mark is valid from the close of the position's session until that session is
            # settled.
            moved = [
                nav * (line.position or 0) * (mark.growth - 1.0)
                for nav, line, mark in worth
                if mark is not None and mark.session == line.session and line.phase == "executed"
            ]
            total = math.fsum(nav for nav, _, _ in worth)
            if moved and total > 0:
                found[entry] = round(math.fsum(moved) / total, 5)
        return found, max(mark.at for mark in marks.values())

    def _write(self, path: str, content: bytes) -> int:
        """Write a file of the site atomically. Returns 0 if the file already has this content.

        The disk is not synced: a page lost in a power cut is written again.
        """
        file, content = self._folder / path, without_secrets(content)
        try:
            if file.read_bytes() == content:
                return 0
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{file.name}.{os.getpid()}")
        aside.write_bytes(content)
        os.replace(aside, file)
        return 1


def _version(page: bytes) -> str:
    return page.partition(b'data-version="')[2].partition(b'"')[0].decode()
