"""Tables to paste: a run's leaderboards as Markdown, LaTeX, CSV or JSON, with intervals and footnotes.

Markdown and LaTeX are written for readers, rounded as pages round; CSV and JSON keep every digit. All four say
where the numbers come from: badges become footnotes, so that a table never travels without them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay.report import numbers
from tradeassay.report.cards import results_card
from tradeassay.report.code_page import paste_table
from tradeassay.report.formatting import PasteCell, PasteTable, paste_cell
from tradeassay.report.latex import write_bibtex, write_latex
from tradeassay.report.words import cell_badges, standing
from tradeassay.runs import CodeRun, Run
from tradeassay.runs.summary import AgentSummary, CellSummary, RunSummary, failed_too_often, summary_of

PasteFormat = Literal["md", "latex", "bibtex", "csv", "json", "card"]
_MEASURES = ("cumulative_return", "sharpe", "sortino", "max_drawdown", "turnover", "failure_rate")
_FOR_PAPERS = ("Return", "Sharpe", "Max", "against")
"""What a page of a paper holds in letters that can be read; the verdicts have a table of their own."""


def paste_tables(source: Run | CodeRun | RunSummary) -> tuple[PasteTable, ...]:
    """Return the leaderboards of a run, one for each benchmark and setting."""
    if isinstance(source, CodeRun):
        return (paste_table(source),)
    data = source if isinstance(source, RunSummary) else summary_of(source, details=False)
    return tuple(_traded(cell, data) for cell in data.cells)


def paste(source: Run | CodeRun | RunSummary, form: PasteFormat, columns: Sequence[str] = ()) -> str:
    """Return a run's leaderboards as text in one of :data:`PasteFormat`, or only some ``columns`` of them.

    Raises :class:`UserError` for a column that no table has.
    """
    if isinstance(source, RunSummary):
        names = tuple(cell.benchmark for cell in source.cells)
    else:
        names = source.spec.benchmarks if isinstance(source, Run) else (source.benchmark,)
    if form == "bibtex":
        return write_bibtex(names)
    if form == "latex" and not columns and not isinstance(source, CodeRun):
        columns = _FOR_PAPERS
    tables = _narrowed(paste_tables(source), columns)
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(tables), indent=2).decode() + "\n"
    if form == "card":
        return results_card(tables, _markdown(tables))
    return write_tables(tables, form, names)


def write_tables(
    tables: Sequence[PasteTable], form: Literal["md", "latex", "csv"], benchmarks: Iterable[str]
) -> str:
    """Return tables as text; LaTeX cites the papers of ``benchmarks``."""
    if form == "latex":
        return write_latex(tables, [_reasons(table) for table in tables], benchmarks)
    return _markdown(tables) if form == "md" else _csv(tables)


def _narrowed(tables: tuple[PasteTable, ...], wanted: Sequence[str]) -> tuple[PasteTable, ...]:
    """Return the tables with the wanted columns alone, in that order, after whose they are."""
    if not wanted:
        return tables
    made = []
    for table in tables:
        known = {title.casefold(): at for at, title in enumerate(table.columns)}
        places = [table.named]
        for name in wanted:
            near = [at for title, at in known.items() if title.startswith(name.casefold())]
            if not near:
                raise UserError(
                    f"no column '{name}' in {table.title}",
                    hint=did_you_mean(name, table.columns, str(table.columns)),
                )
            places += [near[0]] if near[0] not in places else []
        chosen = [tuple(row[at] for at in places) for row in table.rows]
        titles = tuple(table.columns[at] for at in places)
        made.append(msgspec.structs.replace(table, columns=titles, rows=tuple(chosen)))
    return tuple(made)


# What stands in the tables


def _traded(cell: CellSummary, data: RunSummary) -> PasteTable:
    against = f"against {cell.baseline_phrase}, per year"
    titles = tuple(numbers.info(name).title for name in _MEASURES)
    rows = []
    for place, agent in enumerate(cell.ranked, 1):
        placed = agent.result.value is not None and failed_too_often(agent) is None
        rank = PasteCell(str(place), float(place)) if placed else PasteCell("–")
        measures = (paste_cell(agent.measures[name].median, numbers.form_of(name)) for name in _MEASURES)
        if cell.contest is not None:
            tier = cell.contest.tier_of(agent.name)
            rank = PasteCell("–", reason=cell.contest.unranked.get(agent.name))
            rank = rank if tier is None else PasteCell(str(tier), float(tier))
        rows.append(
            (rank, PasteCell(agent.name), *measures, _difference(agent), PasteCell(standing(agent, cell).label))
        )
    notes = [
        f"Brackets hold {data.level:.0%} intervals. "
        f"{cell.benchmark} on {cell.dataset}, {len(cell.sessions)} sessions"
        + (f" from {cell.sessions[0]} to {cell.sessions[-1]}." if cell.sessions else "."),
        *(f"{text[0].upper()}{text[1:]}." for _, text in cell_badges(cell)),
        *(standing(agent, cell).sentence for agent in cell.agents if agent.result.value is None),
        *cell.limits,
        *([data.freedom.sentence] if data.freedom is not None else []),
    ]
    if cell.contest is not None:
        size = f"{cell.contest.level:.0%} for the whole table, {cell.contest.sessions:,} sessions"
        notes.insert(1, f"Agents of one tier cannot be told apart from its best one ({size}).")
    columns = ("#" if cell.contest is None else "tier", "agent", *titles, against, "told apart")
    told = tuple((agent.name, standing(agent, cell)) for agent in cell.ranked)
    return PasteTable(
        cell.title,
        columns,
        tuple(rows),
        tuple(notes),
        verdicts=tuple((name, one.label, one.sentence) for name, one in told),
        edges=tuple((agent.name, _difference(agent)) for agent in cell.ranked if agent.versus is not None),
    )


def _difference(agent: AgentSummary) -> PasteCell:
    """Return the difference from the baseline, with the interval that belongs to the corrected p-value."""
    if agent.versus is None:
        return PasteCell("–")
    return paste_cell(agent.versus.difference, "change")


# How they are written


def _reasons(table: PasteTable) -> tuple[list[list[str]], list[str]]:
    """Return the texts of all entries, those without a number marked, and the footnotes that explain the marks."""
    known: dict[str, str] = {}
    rows = []
    for row in table.rows:
        texts = []
        for entry in row:
            mark = "" if entry.reason is None else known.setdefault(entry.reason, chr(ord("a") + len(known) % 26))
            texts.append(entry.text + (f" ({mark})" if mark else ""))
        rows.append(texts)
    return rows, [f"({mark}) {reason}" for reason, mark in known.items()]


def _markdown(tables: Sequence[PasteTable]) -> str:
    blocks = []
    for table in tables:
        rows, reasons = _reasons(table)
        lines = [f"**{_md(table.title)}**", "", _md_row(table.columns), _md_row("---" for _ in table.columns)]
        lines += [_md_row(map(_md, row)) for row in rows]
        lines += ["", *(f"- {_md(note)}" for note in (*reasons, *table.notes))]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _md_row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _md(text: str) -> str:
    flat = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|" else sign for sign in flat)


def _csv(tables: Sequence[PasteTable]) -> str:
    """Return one row per entry with a number: the long form that every tool can pivot; notes have rows too."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(("table", "row", "agent", "column", "value", "low", "high", "text", "reason"))
    for table in tables:
        for place, row in enumerate(table.rows, 1):
            for column, entry in zip(table.columns, row, strict=True):
                numbers_of = ("" if one is None else repr(one) for one in (entry.value, entry.low, entry.high))
                who = _plain(row[table.named].text)
                lines.writerow(
                    (table.title, place, who, column, *numbers_of, _plain(entry.text), entry.reason or "")
                )
        for note in table.notes:
            lines.writerow((table.title, "", "", "note", "", "", "", _plain(note), ""))
    return out.getvalue()


def _plain(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula."""
    text = text.replace(numbers.MINUS, "-")
    return f"'{text}" if text[:1] in "=@\t\r" else text
