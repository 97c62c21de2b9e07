"""Display a run of programs: one page for every benchmark, and one table for a terminal."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tradeassay.core.measure import NOT_REDERIVABLE, BadgeTexts
from tradeassay.core.registry import Registry
from tradeassay.core.tables import Cell, counted
from tradeassay.report.charts import styles
from tradeassay.report.formatting import cell_shown
from tradeassay.report.shell import render_page, write_page
from tradeassay_bench.benchmarks.code_protocol import Ending, Shown
from tradeassay_bench.core.tables import Row, Table
from tradeassay_bench.report.paste_cells import NOT_RANKED, PasteCell, PasteTable, paste_cell
from tradeassay_bench.runs import CodeRun
from tradeassay_bench.runs.store.folder import folder_in_commands
from tradeassay_bench.runs.summary.reading import coverage_of
from tradeassay_bench.runs.verify.freedom import freedom_of

if TYPE_CHECKING:
    from tradeassay_bench.runs import VerifyReport

_LONGEST = 40_000
_ANSWERS = {"scripted": "scripted models", "replayed": "replayed answers", "live": "live models"}


class RenderCard(Protocol):
    """A function that renders one entry of :attr:`Shown.cards`.

    ``back`` links to the page of its run.
    """

    def __call__(self, card: Any, badges: BadgeTexts, *, back: str) -> str: ...


card_pages: Registry[RenderCard] = Registry("card_page")
"""The functions that render the cards of each benchmark of programs, by id.

Packages add functions as entry points ``tradeassay.card_pages``.
"""


def shown_run(run: CodeRun) -> Shown:
    """Return the tables and cards of a finished run.

    Raises :class:`RunError` if the run is not finished.
    """
    endings = {
        item.key: Ending(status=outcome.status, reason=outcome.reason, words=outcome.words)
        for item, outcome in run.outcomes()
    }
    page = run.kind.tables(run.spec, run.episodes, run.scores, run.records(), endings)
    called = {
        one.model: run.names[one.label] for one in run.episodes if run.names[one.label] != one.label
    }
    if not called:
        return page
    rows = []
    for row in page.board.rows:
        head = msgspec.structs.replace(row.head, text=called.get(row.head.text, row.head.text))
        rows.append(msgspec.structs.replace(row, head=head))
    return msgspec.structs.replace(
        page,
        board=msgspec.structs.replace(page.board, rows=tuple(rows)),
        notes=(*(f"{model} is shown as '{name}'" for model, name in called.items()), *page.notes),
    )


def run_badges(run: CodeRun, page: Shown) -> BadgeTexts:
    """Return the caveats for a run's numbers: first on data, then on answers, then all others."""
    kinds = sorted({str(outcome.answers) for _, outcome in run.outcomes()})
    said = [("bias" if kind == "scripted" else "plain", _ANSWERS[kind]) for kind in kinds]
    said += [("plain", NOT_REDERIVABLE)] if {"live", "replayed"} & set(kinds) else []
    failed = (
        [("bias", f"{counted(len(run.failed), 'item')} without a result")] if run.failed else []
    )
    return (*page.badges[:1], *said, *page.badges[1:], *failed)


def write_code_html(
    run: CodeRun, path: Path | None = None, verified: VerifyReport | None = None
) -> Path:
    """Write the page of a finished run, with a page for every scorecard in the same folder.

    Returns the path of the page, by default ``report.html`` in the run's folder.
    """
    page = shown_run(run)
    place = write_page(path or run.folder / "report.html", render_code_html(run, page, verified))
    if page.cards:
        render_card = card_pages.get(run.benchmark)
        badges = run_badges(run, page)
        for key, card in page.cards.items():
            text = render_card(card, badges, back=f"../{place.name}")
            write_page(place.parent / "cards" / f"{key}.html", text)
    return place


def render_code_html(run: CodeRun, page: Shown, verified: VerifyReport | None = None) -> str:
    """Return the page of a run of programs as HTML."""
    versions = run.manifest.versions
    drawn = [section.curves for section in page.sections if section.curves is not None]
    for one in page.paper.exhibits:
        drawn.extend(one.ours.curves)
    lines = chain.from_iterable(curves.lines for curves in drawn)
    names = list(dict.fromkeys(name for name, _ in lines))
    context = {
        "run": run,
        "page": page,
        "badges": run_badges(run, page),
        "coverage": coverage_of(run),
        "freedom": freedom_of(run.folder, run.manifest),
        "verified": verified,
        "check": f"tradeassay verify {folder_in_commands(run.folder)}",
        "look": styles(names, ""),
        "outcomes": list(run.outcomes()),
        "ids": {item.key: f"item-{place}" for place, item in enumerate(run.episodes)},
        "cut": _cut,
        "notes": (*run.manifest.notes, *page.notes),
        "hashes": (("spec", run.manifest.work_sha256), *sorted(run.manifest.facts.items())),
        "versions": (*sorted(versions.packages.items()), ("python", versions.python)),
    }
    return render_page("programs.html.j2", context)


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= _LONGEST
        else f"{text[:_LONGEST]}\n... {len(text) - _LONGEST:,} more characters"
    )


def paste_table(run: CodeRun) -> PasteTable:
    """Return the main table of a run of programs, for pasting into a document."""
    page = shown_run(run)
    rows = tuple(map(pasted_row, page.board.rows))
    words = tuple(f"{text[0].upper()}{text[1:]}." for _, text in run_badges(run, page))
    chosen = freedom_of(run.folder, run.manifest).sentence
    return PasteTable(
        run.benchmark, page.board.columns, rows, (*words, *run.manifest.notes, *page.notes, chosen)
    )


def pasted_row(row: Row) -> tuple[PasteCell, ...]:
    """Return the entries of a row. The first entry has the reason why the row is not ranked."""
    head = pasted(row.head)
    if row.unranked is not None:
        head = msgspec.structs.replace(head, reason=f"{NOT_RANKED}{row.unranked}")
    return head, *map(pasted, row.cells)


def pasted(cell: Cell) -> PasteCell:
    """Return a table's cell with its text and its digits."""
    if cell.measure is None or cell.form in ("dollars", "tokens"):
        text = cell_shown(cell)
        return PasteCell(
            text.text, text.value, reason=text.note or None if text.value is None else None
        )
    return paste_cell(cell.measure, cell.form)


def plain_rows(table: Table) -> list[tuple[str, ...]]:
    """Return the rows of a table as texts.

    If the table also contains rows from a paper, all other rows are marked as ours.
    """
    mixed = len({row.ours for row in table.rows}) > 1
    heads = [f"{'ours: ' if row.ours and mixed else ''}{row.head.text}" for row in table.rows]
    return [
        (head, *(cell_shown(one).text for one in row.cells))
        for head, row in zip(heads, table.rows, strict=True)
    ]
