"""A run of programs as its benchmark shows it: one page for every benchmark, and one table for a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tradeassay.benchmarks.code_protocol import Ending, Shown
from tradeassay.core.measure import NOT_REDERIVABLE
from tradeassay.core.registry import Registry
from tradeassay.core.tables import Cell, Row, Table, counted
from tradeassay.report.charts import styles
from tradeassay.report.formatting import NOT_RANKED, PasteCell, PasteTable, cell_shown, paste_cell
from tradeassay.report.run_page import write_run_page
from tradeassay.report.shell import render_page, write_page
from tradeassay.runs import CodeRun
from tradeassay.runs.store.folder import folder_in_commands
from tradeassay.runs.summary.reading import coverage_of
from tradeassay.runs.verify.freedom import freedom_of

if TYPE_CHECKING:
    from tradeassay.runs import VerifyReport

_LONGEST = 40_000
_ANSWERS = {"scripted": "scripted models", "replayed": "replayed answers", "live": "live models"}
Badges = tuple[tuple[str, str], ...]


class RenderCard(Protocol):
    """Return the page of one entry of :attr:`Shown.cards`; ``back`` links to the page of its run."""

    def __call__(self, card: Any, badges: Badges, *, back: str) -> str: ...


card_pages: Registry[RenderCard] = Registry("card_page")
"""How each benchmark of programs draws its cards, by id (entry points ``tradeassay.card_pages``)."""


def shown_run(run: CodeRun) -> Shown:
    """Return what a finished run's benchmark shows of it; raises :class:`RunError` when it is not finished."""
    endings = {
        item.key: Ending(status=outcome.status, reason=outcome.reason, words=outcome.words)
        for item, outcome in run.outcomes()
    }
    page = run.kind.tables(run.spec, run.episodes, run.scores, run.records(), endings)
    called = {one.model: run.names[one.label] for one in run.episodes if run.names[one.label] != one.label}
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


def run_badges(run: CodeRun, page: Shown) -> Badges:
    """Return what a reader must know before believing a number: the data, who answered, then the rest."""
    kinds = sorted({str(outcome.answers) for _, outcome in run.outcomes()})
    said = [("bias" if kind == "scripted" else "plain", _ANSWERS[kind]) for kind in kinds]
    said += [("plain", NOT_REDERIVABLE)] if {"live", "replayed"} & set(kinds) else []
    failed = [("bias", f"{counted(len(run.failed), 'item')} without a result")] if run.failed else []
    return (*page.badges[:1], *said, *page.badges[1:], *failed)


def write_code_html(run: CodeRun, path: Path | None = None, verified: VerifyReport | None = None) -> Path:
    """Write the page of a finished run, with a page for every scorecard beside it, and return its path (default:
    ``report.html`` in its folder; see :func:`write_run_page`)."""
    page = shown_run(run)
    place = write_run_page(run.folder, path, render_code_html(run, page, verified))
    if page.cards:
        render_card = card_pages.get(run.benchmark)
        badges = run_badges(run, page)
        for key, card in page.cards.items():
            text = render_card(card, badges, back=f"../{place.name}")
            write_page(place.parent / "cards" / f"{key}.html", text)
    return place


def render_code_html(run: CodeRun, page: Shown, verified: VerifyReport | None = None) -> str:
    versions = run.manifest.versions
    drawn = [section.curves for section in page.sections if section.curves is not None]
    drawn += [curves for one in page.paper.exhibits for curves in one.ours.curves]
    names = list(dict.fromkeys(name for curves in drawn for name, _ in curves.lines))
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
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n... {len(text) - _LONGEST:,} more characters"


def paste_table(run: CodeRun) -> PasteTable:
    page = shown_run(run)
    rows = tuple(map(pasted_row, page.board.rows))
    words = tuple(f"{text[0].upper()}{text[1:]}." for _, text in run_badges(run, page))
    chosen = freedom_of(run.folder, run.manifest).sentence
    return PasteTable(run.benchmark, page.board.columns, rows, (*words, *run.manifest.notes, *page.notes, chosen))


def pasted_row(row: Row) -> tuple[PasteCell, ...]:
    """Return a row's entries; the first says why the row is not ranked."""
    head = pasted(row.head)
    if row.unranked is not None:
        head = msgspec.structs.replace(head, reason=f"{NOT_RANKED}{row.unranked}")
    return head, *map(pasted, row.cells)


def pasted(cell: Cell) -> PasteCell:
    if cell.measure is None or cell.form in ("dollars", "tokens"):
        found = cell_shown(cell)
        return PasteCell(found.text, found.value, reason=found.note or None if found.value is None else None)
    return paste_cell(cell.measure, cell.form)


def plain_rows(table: Table) -> list[tuple[str, ...]]:
    """Return a table's rows as texts; where some are a paper's, the others say that they are ours."""
    mixed = len({row.ours for row in table.rows}) > 1
    heads = [f"{'ours: ' if row.ours and mixed else ''}{row.head.text}" for row in table.rows]
    return [
        (head, *(cell_shown(one).text for one in row.cells)) for head, row in zip(heads, table.rows, strict=True)
    ]
