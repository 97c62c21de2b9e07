"""Write a static site: boards by benchmark, a page per run, and searchable conversations.

A board lists all runs of a benchmark. Every page is one self-contained file, so that the folder can
be opened from a disk or published on any web host. The board is also written as JSON, as a feed,
and as cards to embed.

Each run is verified while the site is written. Only numbers of verified runs are displayed, and
only verdicts of assays that are recomputed. Every row states this. Sealed runs in the folder are
offered for download if their bytes match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import msgspec

from tradeassay.core import __version__
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.files import write_atomic
from tradeassay.core.measure import Measure
from tradeassay.report.formatting import common_scale, shown
from tradeassay.report.shell import page_environment, render_page, write_page
from tradeassay.report.verdicts import TONES
from tradeassay.verdict import Assay
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.examine.assay_file import recorded_assay, stated_in
from tradeassay_bench.papers import paper_pages
from tradeassay_bench.report.decisions import DecisionPack, tools_of
from tradeassay_bench.report.export_tables import paste_tables
from tradeassay_bench.report.paste_cells import PasteCell, PasteTable, paste_cell
from tradeassay_bench.report.run_html import render_html, write_html
from tradeassay_bench.report.run_words import standing
from tradeassay_bench.runs import CodeRun, Run, load_run
from tradeassay_bench.runs.play.progress import CountListener
from tradeassay_bench.runs.summary import RunSummary, decision_notes, summary_of
from tradeassay_bench.runs.summary.models import turns
from tradeassay_bench.runs.summary.rows import DecisionNote
from tradeassay_bench.runs.verify.freedom import Freedom, freedom_of
from tradeassay_bench.runs.verify.report import VerdictWord, verify
from tradeassay_bench.runs.verify.seal import run_root, seal_beside

_PAGE = 4_000_000
"""The maximum number of conversation characters on one page, so that it stays below two megabytes.
"""
_ROWS = 1_000
"""The number of rows of a board on one page."""


_NO_FIGURE = PasteCell("\u2013")


class SiteRow(msgspec.Struct, frozen=True, kw_only=True):
    """One account of one run on the board of its benchmark.

    ``checked`` is the result of the verification. ``verdict`` is the verdict of the recomputed
    assay, or the comparison with the baseline, and ``tone`` is its colour. ``alpha`` is the
    recorded alpha. ``excess`` is the excess return, and ``versus`` states the benchmark and the
    period ("per year versus buy and hold"). ``figures`` contains the measures of this kind of
    benchmark by column title. ``link`` is the address of the account on the page of the run, and
    ``card`` the address of a picture. ``unranked`` is the reason why the row is listed after the
    ranked rows, or None.
    """

    benchmark: str
    setting: str
    run: str
    agent: str
    figures: dict[str, PasteCell]
    verdict: str
    tone: str
    alpha: Measure | None = None
    excess: Measure | None = None
    versus: str = ""
    checked: str
    link: str
    card: str
    unranked: str | None = None

    @property
    def result(self) -> tuple[str, PasteCell]:
        """Return the leading figure and its title: the return, or for programs the last share."""
        return next(
            (pair for pair in reversed(self.figures.items()) if pair[1].low is not None),
            ("", _NO_FIGURE),
        )


class RunVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verification of a run while the site was written.

    ``word`` is its result (see :attr:`~tradeassay_bench.runs.VerifyReport.word`). ``why`` lists the
    claims that were not recomputed. ``root`` is the hash over its scores and evidence. ``version``
    is the version of the verifier.
    """

    root: str
    word: VerdictWord
    why: tuple[str, ...] = ()
    version: str = __version__


class SiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run on the site.

    ``talked`` is the number of sessions with a conversation. ``sealed`` is the file name of its
    seal. An ``unverified`` run is listed without its numbers.
    """

    name: str
    verdict: RunVerdict
    freedom: Freedom
    benchmarks: tuple[str, ...]
    tables: tuple[PasteTable, ...]
    talked: int
    sealed: str | None


class SiteReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verifications of a written site, by run.

    ``left_out`` contains pairs of a folder and the reason why it was left out.
    """

    index: Path
    runs: dict[str, RunVerdict]
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
    """Write a site over all runs below ``runs`` into ``out``. Each run is verified.

    A run is left out and reported if it cannot be read, is contradicted, is a copy of another run,
    or has a seal that does not match its bytes. Pages of runs that are not displayed are removed. A
    run whose numbers could not be recomputed is listed without them. ``home`` is the data store's
    root.
    """
    folders, left_out = _run_folders(runs)
    if not folders and not left_out:
        raise UserError(
            f"no run in {runs}", hint="give the folder that contains the runs, e.g. runs/"
        )
    site_runs: list[SiteRun] = []
    rows: list[SiteRow] = []
    talks = _Talks(out)
    roots: dict[str, str] = {}
    for folder in folders:
        try:
            run = load_run(folder, home=home)
            if not run.complete:
                raise RunError(
                    f"{folder.name} is not finished", hint=f"tradeassay resume {run.folder}"
                )
            checked = verify(folder, home=home, workers=workers, progress=progress)
            if checked.contradicted:
                first = next(iter(checked.violations), "a claim")
                raise RunError(f"contradicted: {first}", hint=f"tradeassay verify {folder}")
            verdict = RunVerdict(root=run_root(folder), word=checked.word, why=checked.unchecked)
            if (twin := roots.setdefault(verdict.root, folder.name)) != folder.name:
                raise RunError(
                    f"it has the same bytes as {twin}",
                    hint="remove the copy: one run is one row",
                )
            site_run, run_rows = _write_run(run, verdict, out, talks)
            site_runs.append(site_run)
            rows += run_rows
        except TradeassayError as error:
            left_out.append((folder.name, error.message))
        except OSError as error:
            # An unreadable file of a run excludes that run. A file of the site that cannot be
            # written stops the work.
            within = (folder, folder.absolute(), folder.resolve())
            if not isinstance(error.filename, str) or not any(
                map(Path(error.filename).is_relative_to, within)
            ):
                raise
            left_out.append((folder.name, f"{error.filename} cannot be read: {error.strerror}"))
    _take_away(out, {run.name for run in site_runs}, talks)
    if not site_runs:
        raise RunError(
            f"none of the {len(left_out)} runs in {runs} can be shown", hint=left_out[0][1]
        )
    write_atomic(out / "runs.json", _json(site_runs))
    write_atomic(out / "board.json", _json(rows))
    pages = talks.written() + 1 + sum(bool(run.tables) for run in site_runs)

    boards = {}
    for name in dict.fromkeys(row.benchmark for row in rows):
        inside = sorted((row for row in rows if row.benchmark == name), key=_board_order)
        boards[name] = [inside[place : place + _ROWS] for place in range(0, len(inside), _ROWS)]
    context = {
        "runs": site_runs,
        "boards": boards,
        "left_out": left_out,
        "talks": talks.pages,
        "common_scale": common_scale,
        "titles_of": lambda rows: list(
            dict.fromkeys(chain.from_iterable(row.figures for row in rows))
        ),
    }
    for name, parts in boards.items():
        for number, part in enumerate(parts[1:], start=2):
            alone = {"boards": {name: [part]}, "runs": [], "left_out": []}
            write_page(out / f"{name}-{number}.html", render_page("site.html.j2", context | alone))
            pages += 1
    index = write_page(out / "index.html", render_page("site.html.j2", context))
    written = {run.name: (runs / run.name / "scores.json").stat().st_mtime for run in site_runs}
    entries = [(run, datetime.fromtimestamp(written[run.name], UTC)) for run in site_runs]
    entries.sort(key=lambda entry: entry[1], reverse=True)
    feed = page_environment().get_template("feed.xml.j2").render(entries=entries[:50])
    write_atomic(out / "feed.xml", feed.encode())
    verdicts = {run.name: run.verdict for run in site_runs}
    return SiteReport(index=index, runs=verdicts, pages=pages, left_out=tuple(left_out))


def _board_order(row: SiteRow) -> tuple[bool, float]:
    """Return the sort key of a board: ranked rows first, then by alpha, or by the result."""
    for measure in (row.alpha, row.excess, row.result[1]):
        if measure is not None and measure.value is not None:
            return row.unranked is not None, -measure.value
    return row.unranked is not None, 1e9


def _run_folders(runs: Path) -> tuple[list[Path], list[tuple[str, str]]]:
    """Return the folders of runs, and the unreadable folders with the reason."""
    folders, closed = [], list[tuple[str, str]]()
    for folder in sorted(runs.iterdir()):
        manifest = folder / "manifest.json"
        try:
            if manifest.exists():
                folders.append(folder)
            elif broken_link := next(
                (link for link in (folder, manifest) if link.is_symlink() and not link.exists()),
                None,
            ):
                closed.append((folder.name, f"{broken_link} is a broken link"))
        except OSError as error:
            closed.append((folder.name, f"{folder} cannot be read: {error.strerror}"))
    return folders, closed


def _take_away(out: Path, shown: set[str], talks: _Talks) -> None:
    """Remove the pages of runs that are no longer displayed. Folders of runs are not changed."""
    talks.written()
    for page in out.glob("conversations*.html"):
        if page.name not in talks.pages:
            page.unlink()
    for kind, files in (
        ("runs", ("index.html", "table.json", "*.seal", "cards/*.html")),
        ("cards", ("*.svg",)),
    ):
        for folder in out.glob(f"{kind}/*/"):
            if folder.name not in shown and not (folder / "manifest.json").exists():
                for page in chain.from_iterable(folder.glob(pattern) for pattern in files):
                    page.unlink()


def _write_run(
    run: Run | CodeRun, verdict: RunVerdict, out: Path, talks: _Talks
) -> tuple[SiteRun, list[SiteRow]]:
    """Write the pages of one run. Return its entry and its rows."""
    sealed, sure = seal_beside(run.folder, verdict.root), verdict.word != "unverified"
    # Two runs may share a name, which is the runner's choice. The folder's name distinguishes them.
    name = run.folder.resolve().name
    place = out / "runs" / name
    place.mkdir(parents=True, exist_ok=True)
    tables: tuple[PasteTable, ...] = ()
    rows: list[SiteRow] = []
    before = talks.count
    if sure and isinstance(run, Run):
        summary = summary_of(run)
        tables = paste_tables(summary)
        assayed = recorded_assay(run)
        if assayed is not None and (stated := stated_in(assayed)):
            verdict = msgspec.structs.replace(verdict, word="warning", why=(*verdict.why, *stated))
        write_page(place / "index.html", render_html(summary, paper_pages(run), None, assayed))
        rows = _board(run, summary, name, verdict, assayed)
    elif sure and isinstance(run, CodeRun):
        tables = paste_tables(run)
        write_html(run, place / "index.html")
        for number, cells in enumerate(tables[0].rows):
            who = tables[0].named
            row = SiteRow(
                benchmark=run.benchmark,
                setting=tables[0].title,
                run=name,
                agent=cells[who].text,
                figures=dict(zip(tables[0].columns[who + 1 :], cells[who + 1 :], strict=True)),
                verdict="",
                tone="none",
                checked=verdict.word,
                link=f"runs/{name}/index.html",
                card=f"cards/{name}/m{number}.svg",
                unranked=tables[0].unranked(cells),
            )
            rows.append(row)
    if sure:
        talks.add(run, name)
    for row in rows:
        text = (
            page_environment()
            .get_template("site_card.svg.j2")
            .render(row=row, scale=common_scale, shown=shown)
        )
        write_page(out / row.card, text)
    if sealed is not None:
        write_atomic(place / sealed.name, sealed.read_bytes())
    made = SiteRun(
        name=name,
        verdict=verdict,
        freedom=freedom_of(run.folder, run.manifest),
        benchmarks=tuple(dict.fromkeys(episode.benchmark for episode in run.episodes)),
        tables=tables,
        talked=talks.count - before,
        sealed=None if sealed is None else sealed.name,
    )
    write_atomic(place / "table.json", _json(made))
    return made, rows


def _board(
    run: Run, summary: RunSummary, name: str, checked: RunVerdict, assayed: Assay | None
) -> list[SiteRow]:
    """Return the rows of a trading run."""
    judged = {} if assayed is None else {(one.setting, one.agent): one for one in assayed.agents}
    rows = []
    for number, setting in enumerate(summary.settings):
        for place, agent in enumerate(setting.ranked):
            told, one = standing(agent, setting), judged.get((setting.id, agent.name))
            alpha = None
            label, tone = told.label, str(told.tone)
            if one is not None and not agent.baseline:
                label, tone = one.verdict.label, TONES[one.verdict.kind]
                stated = one.statement("alpha")
                alpha = None if stated is None else stated.measure
            tier = None if setting.contest is None else setting.contest.tier_of(agent.name)
            rows.append(
                SiteRow(
                    benchmark=setting.benchmark,
                    setting=setting.title,
                    run=name,
                    agent=agent.name,
                    figures={
                        "Return": paste_cell(agent.result, "change"),
                        "Tier": _NO_FIGURE if tier is None else PasteCell(str(tier), tier),
                    },
                    verdict=label,
                    tone=tone,
                    alpha=alpha if alpha is not None and alpha.value is not None else None,
                    excess=agent.excess
                    if agent.excess and agent.excess.value is not None
                    else None,
                    versus=f"{setting.horizon.words} versus {setting.baseline_phrase}",
                    checked=checked.word,
                    link=f"runs/{name}/index.html#c{number}-a{place}",
                    card=f"cards/{name}/c{number}-a{place}.svg",
                    unranked=agent.unranked,
                )
            )
    return rows


class _Talks:
    """The conversations of all runs, on pages of one list.

    The list can be searched by words, outcome and tool.
    """

    def __init__(self, out: Path) -> None:
        self.count, self.pages = 0, list[str]()
        self._out, self._pack, self._notes = out, DecisionPack(), list[DecisionNote]()

    def add(self, run: Run | CodeRun, name: str) -> None:
        for episode in run.episodes:
            for note in _spoken(run, episode.key):
                label = f"{name} · {run.names[episode.label]}"
                self._pack.add(note, of=label, link=f"runs/{name}/index.html")
                self._notes.append(note)
                self.count += 1
                if self._pack.size > _PAGE:
                    self.written()

    def written(self) -> int:
        """Write the remaining conversations and return the number of pages."""
        if self._pack.rows:
            number = len(self.pages) + 1
            self.pages.append(f"conversations{f'-{number}' if number > 1 else ''}.html")
            context = {
                "pack": self._pack.encoded(),
                "n": len(self._pack.rows),
                "tools": tools_of(self._notes),
            }
            page = render_page(
                "site_talk.html.j2", context | {"number": number}, scripts=("decisions.js",)
            )
            write_page(self._out / self.pages[-1], page)
            self._pack, self._notes = DecisionPack(), []
        return len(self.pages)


def _spoken(run: Run | CodeRun, key: str) -> Iterator[DecisionNote]:
    """Yield the sessions of an episode with a conversation."""
    if isinstance(run, Run):
        records = tuple(run.records(key))
        notes, _ = decision_notes(records, run.dialogue(key), talks=len(records), most=1)
        yield from (note for note in notes if note.turns)
    elif lines := list(run.dialogue(key)):
        outcome = run.outcome(key)
        yield DecisionNote(
            session=lines[0].session,
            reason=key,
            failed=outcome is None or outcome.status == "failed",
            turns=turns(lines),
            tokens=sum(
                line.reply.usage.input_tokens + line.reply.usage.output_tokens for line in lines
            ),
        )


def _json(value: SiteRun | Sequence[SiteRun] | Sequence[SiteRow]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
