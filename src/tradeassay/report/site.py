"""A leaderboard site without a server: an index, a page per run, per agent and per run's conversations.

Every page is one self-contained file, so the folder can be opened from a disk or put on any web host. Numbers are
shown of runs that were verified here, or whose verdict was kept here for exactly their bytes; the verdict stands
in every row. Sealed runs that lie beside the runs are offered for download, if they are of these bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from tradeassay.core.errors import RunError, TradeassayError, UserError
from tradeassay.core.files import write_atomic
from tradeassay.report.export_tables import paste_tables
from tradeassay.report.formatting import PasteCell, PasteTable
from tradeassay.report.page import write_html
from tradeassay.report.shell import render_page, write_page
from tradeassay.runs import CodeRun, Run, load_run
from tradeassay.runs.play.progress import CountListener
from tradeassay.runs.verify.attested import Attestation, attest, seal_beside
from tradeassay.runs.verify.freedom import Freedom, freedom_of

_LONGEST = 20_000
"""Signs of one question or answer that a page shows; the run itself has all of it."""
_PAGE = 3_000_000
"""Signs after which a run's conversations go on on another page."""


class SiteRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one table of one run; ``verdict`` says what became of the run's claims."""

    run: str
    verdict: Attestation
    title: str
    agent: str
    columns: tuple[str, ...]
    entries: tuple[PasteCell, ...]


class SiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run on the site: ``talked`` turns on ``talks`` pages; ``sealed`` is its archive's name, None without.

    A run that is ``unverified`` is listed without its numbers.
    """

    slug: str
    verdict: Attestation
    freedom: Freedom
    benchmarks: tuple[str, ...]
    agents: tuple[str, ...]
    tables: tuple[PasteTable, ...]
    complete: bool
    talked: int
    talks: int
    sealed: str | None


class SpokenText(msgspec.Struct, frozen=True):
    """A message under the ``id`` of its words; ``text`` is None where an earlier message of the page has them."""

    role: str
    id: str
    text: str | None


class SpokenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its answer as the site shows them."""

    episode: str
    session: str
    purpose: str
    attempt: int
    asked: tuple[SpokenText, ...]
    said: str
    error: str


class SiteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was written: the verdicts of the runs by name. ``left_out`` pairs a folder with the reason."""

    index: Path
    runs: dict[str, Attestation]
    pages: int
    left_out: tuple[tuple[str, str], ...]


def write_site(
    runs: Path,
    out: Path,
    *,
    home: Path | None = None,
    workers: int | None = None,
    progress: CountListener | None = None,
) -> SiteReport:
    """Write a site over all runs below ``runs`` into ``out``; each is verified, unless its verdict is known.

    A run that cannot be read, that is contradicted or whose seal is of other bytes is left out and named; one
    whose numbers could not be made again is listed without them. ``home`` is the data store's root.
    """
    folders = sorted(path.parent for path in runs.glob("*/manifest.json"))
    if not folders:
        raise UserError(f"no run in {runs}", hint="name the folder that holds the runs, e.g. runs/")
    shown: list[SiteRun] = []
    left_out: list[tuple[str, str]] = []
    for folder in folders:
        try:
            run = load_run(folder, home=home)
            if not run.complete:
                raise RunError(f"{folder.name} is not finished", hint=f"tradeassay resume {run.folder}")
            verdict = attest(folder, home=home, workers=workers, progress=progress)
            if verdict.word == "contradicted":
                raise RunError(f"contradicted: {verdict.why[0]}", hint=f"tradeassay verify {folder}")
            shown.append(_write_run(run, verdict, out))
        except TradeassayError as error:
            left_out.append((folder.name, error.message))
    if not shown:
        raise RunError(f"none of the {len(folders)} runs in {runs} can be shown", hint=left_out[0][1])
    write_atomic(out / "runs.json", _json(shown))
    names = _write_agents(shown, out)
    page = render_page("site.html.j2", {"runs": shown, "names": names, "left_out": left_out})
    index = write_page(out / "index.html", page)
    pages = 1 + len(names) + sum(run.talks + bool(run.tables) for run in shown)
    return SiteReport(
        index=index, runs={run.slug: run.verdict for run in shown}, pages=pages, left_out=tuple(left_out)
    )


def _write_run(run: Run | CodeRun, verdict: Attestation, out: Path) -> SiteRun:
    sealed, sure = seal_beside(run.folder, verdict.root), verdict.word != "unverified"
    tables = paste_tables(run) if sure else ()
    # A slug is the runner's word, and two runs may share one: the folder's name is what sets them apart here.
    name = run.folder.resolve().name
    place = out / "runs" / name
    place.mkdir(parents=True, exist_ok=True)
    if sure:
        write_html(run, place / "index.html")
    talks = _talks(run) if sure else []
    names = [f"conversations{f'-{number}' if number > 1 else ''}.html" for number in range(1, len(talks) + 1)]
    for number, turns in enumerate(talks):
        context = {"title": name, "turns": turns, "pages": names, "number": number}
        write_page(place / names[number], render_page("site_talk.html.j2", context))
    if sealed is not None:
        write_atomic(place / sealed.name, sealed.read_bytes())
    agents = dict.fromkeys(row[table.named].text for table in tables for row in table.rows)
    made = SiteRun(
        slug=name,
        verdict=verdict,
        freedom=freedom_of(run.folder, run.manifest),
        benchmarks=tuple(dict.fromkeys(episode.benchmark for episode in run.episodes)),
        agents=tuple(agents),
        tables=tables,
        complete=run.complete,
        talked=sum(map(len, talks)),
        talks=len(talks),
        sealed=None if sealed is None else sealed.name,
    )
    write_atomic(place / "table.json", _json(made))
    return made


def _write_agents(shown: Sequence[SiteRun], out: Path) -> dict[str, str]:
    """Write a page for every agent and return their files' names."""
    rows: dict[str, list[SiteRow]] = {}
    for run in shown:
        for table in run.tables:
            for entries in table.rows:
                who = entries[table.named].text
                row = SiteRow(
                    run=run.slug,
                    verdict=run.verdict,
                    title=table.title,
                    agent=who,
                    columns=table.columns,
                    entries=entries,
                )
                rows.setdefault(who, []).append(row)
    names: dict[str, str] = {}
    for who, found in rows.items():
        names[who] = _file_name(who, names.values())
        page = render_page("site_agent.html.j2", {"title": who, "rows": found})
        write_page(out / "agents" / names[who], page)
    return names


def _json(value: SiteRun | Sequence[SiteRun]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _file_name(who: str, taken: Collection[str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9.-]+", "-", who).strip("-.")[:80] or "agent"
    name, count = f"{stem}.html", 1
    while name in taken:
        count += 1
        name = f"{stem}-{count}.html"
    return name


def _talks(run: Run | CodeRun) -> list[list[SpokenTurn]]:
    """Return a run's conversations by pages. Every question repeats what came before it, so that a page holds each
    text once: written out again, a month of research is a gigabyte.
    """
    pages: list[list[SpokenTurn]] = []
    known: dict[str, str] = {}
    size = _PAGE
    for episode in run.episodes:
        for line in run.dialogue(episode.key):
            if size >= _PAGE:
                pages.append([])
                known, size = {}, 0
            asked = []
            for message in line.messages:
                text = _cut(message.text)
                new = text not in known
                size += len(text) if new else 0
                asked.append(
                    SpokenText(message.role, known.setdefault(text, f"w{len(known)}"), text if new else None)
                )
            calls = [f"{call.name}({call.arguments})" for call in line.reply.calls]
            said = _cut("\n".join([line.reply.text, *calls]).strip())
            size += len(said)
            pages[-1].append(
                SpokenTurn(
                    episode=episode.key,
                    session=line.session,
                    purpose=line.purpose,
                    attempt=line.attempt,
                    asked=tuple(asked),
                    said=said,
                    error=str(line.reply.error or ""),
                )
            )
    return pages


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text) - _LONGEST:,} more signs)"
