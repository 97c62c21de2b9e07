"""Export a run's leaderboards as Markdown, LaTeX, CSV or JSON, with intervals and footnotes.

Markdown and LaTeX are for readers and rounded like pages. CSV and JSON contain every digit. All
four state the source of the numbers. Badges become footnotes, so that no table lacks them.

LaTeX has tables that fit the text width, verdicts as text, a drawing of each difference with its
interval, and BibTeX. Drawings use LaTeX's ``picture``, so that a paper needs only ``booktabs`` and
``graphicx``.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from tradeassay.core import __version__
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay.metrics import BY_ID
from tradeassay.report import numbers
from tradeassay_bench.report.cards import results_card
from tradeassay_bench.report.code_page import paste_table
from tradeassay_bench.report.paste_cells import NOT_RANKED, PasteCell, PasteTable, paste_cell
from tradeassay_bench.report.run_words import setting_badges, standing
from tradeassay_bench.runs import CodeRun, Run
from tradeassay_bench.runs.summary import RunSummary, SettingSummary, summary_of

_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
    **{
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "×": r"$\times$",
        "±": r"$\pm$",
        "·": r"$\cdot$",
    },
    **{
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "→": r"$\rightarrow$",
        "…": r"\ldots{}",
        numbers.MINUS: "$-$",
        "–": "--",
    },
    **{"\N{RIGHT SINGLE QUOTATION MARK}": "'", "“": "``", "”": "''"},
    **{"\u2009": r"\,", "\u202f": r"\,", "\xa0": "~"},
}
_QUANTCODE = (
    "QuantCode-Bench: A Benchmark for Evaluating the Ability of Large Language Models to Generate "
    "Executable "
    "Algorithmic Trading Strategies"
)
_KTDFIN = (
    "From Knowing to Doing: A Memory-Controlled Benchmark for LLM Trading Agents on Stock Markets"
)
_STOCKBENCH = "StockBench: Can LLM Agents Trade Stocks Profitably In Real-world Markets?"
_PAPERS = {
    "stockbench": (_STOCKBENCH, "2025", "2510.02209", None),
    "ktdfin": (_KTDFIN, None, None, "Zhu and others"),
    "ama": (
        "When Agents Trade: Live Multi-Market Trading Benchmark for LLM Agents",
        None,
        None,
        None,
    ),
    "quantcode": (_QUANTCODE, "2026", "2604.15151", None),
    "systrade": ("SysTradeBench", "2026", "2604.04812", "Cao and others"),
}
"""The paper's title, year, arXiv id and known authors, by the start of a benchmark's id."""


def tex(text: str) -> str:
    """Return plain text as LaTeX.

    A character that pdflatex cannot typeset is replaced by its Unicode number.
    """
    flat = re.sub(r"[ \t\r\n]+", " ", text).strip()
    return "".join(
        _SIGNS.get(sign, sign if ord(sign) < 0x180 else f"[U+{ord(sign):04X}]") for sign in flat
    )


def write_latex(
    tables: Sequence[PasteTable],
    texts: Sequence[tuple[list[list[str]], list[str]]],
    benchmarks: Iterable[str],
) -> str:
    """Return all tables as LaTeX.

    If a table compares agents with a baseline, its verdicts and a drawing are added. ``texts``
    contains, for every table, the texts of its entries with marks, and the footnotes of the marks.
    """
    cited = ",".join(["tradeassay", *_cited(benchmarks)])
    blocks = [
        rf"% needs \usepackage{{booktabs,graphicx}}; report --format bibtex has \cite{{{cited}}}"
    ]
    seen: set[str] = set()
    for table, (rows, reasons) in zip(tables, texts, strict=True):
        title, label = tex(table.title), re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")
        while label in seen:
            label += "-2"
        seen.add(label)
        numeric = (
            any(row[at].value is not None for row in table.rows) for at in range(len(table.columns))
        )
        below = [
            r"\par\smallskip\begin{minipage}{\linewidth}\footnotesize",
            " ".join(map(tex, (*reasons, *table.notes))),
            r"\end{minipage}",
        ]
        lines: list[Iterable[str]] = [
            map(_heading, table.columns),
            *(map(_stacked, row) for row in rows),
        ]
        form = "".join("r" if one else "l" for one in numeric)
        blocks.append(_float(form, lines, rf"\caption[{title}]{{{title}.}}", label, below))
        if table.verdicts:
            lines = [("agent", "verdict", "in words"), *(map(tex, row) for row in table.verdicts)]
            caption = rf"\caption[Verdicts: {title}]{{Verdicts on {title}.}}"
            blocks.append(_float(r"llp{0.6\linewidth}", lines, caption, f"{label}-verdicts"))
        if any(gap.low is not None for _, gap in table.excess_returns):
            blocks.append(_drawing(table, label))
    return "\n\n".join(blocks) + "\n"


def _float(
    form: str, rows: Sequence[Iterable[str]], caption: str, label: str, below: Sequence[str] = ()
) -> str:
    """Return a LaTeX table that is never wider than the text. The first row is its header."""
    head, *lines = [" & ".join(row) + r" \\" for row in rows]
    top = [r"\begin{table}[tbp]", r"\centering\small", caption, rf"\label{{tab:{label}}}"]
    top += [
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{form}}}",
    ]
    body = [r"\toprule", head, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}%", "}"]
    return "\n".join([*top, *body, *below, r"\end{table}"])


def _stacked(text: str) -> str:
    value, bracket, interval = text.partition(" [")
    if not bracket:
        return tex(text)
    return rf"\shortstack[r]{{{tex(value)}\\{{\scriptsize[{tex(interval)}}}}}"


def _heading(text: str) -> str:
    lines = textwrap.wrap(text, 16, break_long_words=False) or [""]
    return tex(text) if len(lines) == 1 else r"\shortstack{" + r" \\ ".join(map(tex, lines)) + "}"


_LEFT, _RIGHT, _STEP = 40.0, 96.0, 5.0


def _drawing(table: PasteTable, label: str) -> str:
    """Return a figure of every agent's excess return with its interval, against zero."""
    shown = [
        (who, gap)
        for who, gap in table.excess_returns
        if None not in (gap.value, gap.low, gap.high)
    ]
    ends = [
        float(end) for _, gap in shown for end in (gap.low, gap.value, gap.high) if end is not None
    ]
    low, high = min(0.0, *ends), max(0.0, *ends)
    scale = (_RIGHT - _LEFT) / ((high - low) or 1.0)

    def x(value: float | None) -> float:
        return _LEFT + (float(value or 0.0) - low) * scale

    height = _STEP * len(shown) + 2
    lines = [rf"\put({x(0.0):.2f},4){{\line(0,1){{{height:.1f}}}}}"]
    for at, (who, gap) in enumerate(shown):
        y = 4 + height - _STEP * (at + 0.7)
        length = max(x(gap.high) - x(gap.low), 0.1)
        lines += [
            rf"\put({_LEFT - 3:.1f},{y:.2f}){{\makebox(0,0)[r]{{\footnotesize {tex(who)}}}}}",
            rf"\put({x(gap.low):.2f},{y:.2f}){{\line(1,0){{{length:.2f}}}}}",
            rf"\put({x(gap.value):.2f},{y:.2f}){{\circle*{{1.2}}}}",
        ]
    for value in sorted({low, 0.0, high}):
        text = tex(numbers.written(value, "change"))
        lines.append(rf"\put({x(value):.2f},1){{\makebox(0,0){{\scriptsize {text}}}}}")
    title = tex(table.title)
    quantity = next(name for name in table.columns if name.startswith("Excess return"))
    caption = rf"\caption[Excess return: {title}]{{{title}: {tex(quantity)}, with its interval.}}"
    top = [r"\begin{figure}[tbp]", r"\centering\setlength{\unitlength}{0.01\linewidth}"]
    picture = [rf"\begin{{picture}}(100,{height + 5:.1f})", *lines, r"\end{picture}"]
    return "\n".join([*top, *picture, caption, rf"\label{{fig:{label}}}", r"\end{figure}"])


def _cited(benchmarks: Iterable[str]) -> list[str]:
    return [key for key in _PAPERS if any(name.startswith(key) for name in benchmarks)]


def write_bibtex(benchmarks: Iterable[str]) -> str:
    """Return the citations for a run: this package, and the papers of its benchmarks."""
    own = {"title": "tradeassay: what is a trading model's result made of?", "version": __version__}
    entries = [
        ("software", "tradeassay", {"author": "{The tradeassay developers}", **own, "year": "2026"})
    ]
    for key in _cited(benchmarks):
        title, year, arxiv, authors = _PAPERS[key]
        known = {"author": authors, "title": title, "year": year, "eprint": arxiv, "key": key}
        fields = {name: value for name, value in known.items() if value is not None}
        entries.append(("misc", key, fields | ({"archiveprefix": "arXiv"} if arxiv else {})))
    made = []
    for kind, key, fields in entries:
        lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
        made.append(f"@{kind}{{{key},\n{lines}}}\n")
    return "\n".join(made)


PasteFormat = Literal["md", "latex", "bibtex", "csv", "json", "card"]
_MEASURES = ("cumulative_return", "sharpe", "sortino", "max_drawdown", "turnover", "failure_rate")
_FOR_PAPERS = ("Return", "Sharpe", "Max", "Excess")
"""The columns that fit a page of a paper in a readable size. Verdicts have a separate table."""


def paste_tables(source: Run | CodeRun | RunSummary) -> tuple[PasteTable, ...]:
    """Return a run's leaderboards as tables for pasting into a document."""
    if isinstance(source, CodeRun):
        return (paste_table(source),)
    data = source if isinstance(source, RunSummary) else summary_of(source, details=False)
    return tuple(_traded(setting, data) for setting in data.settings)


def paste(
    source: Run | CodeRun | RunSummary, form: PasteFormat, columns: Sequence[str] = ()
) -> str:
    """Return a run's leaderboards as text in one of :data:`PasteFormat`.

    ``columns`` selects columns. Raises :class:`UserError` for a column that no table has.
    """
    if isinstance(source, RunSummary):
        names = tuple(setting.benchmark for setting in source.settings)
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
    """Return tables as text. LaTeX cites the papers of ``benchmarks``."""
    if form == "latex":
        return write_latex(tables, [_reasons(table) for table in tables], benchmarks)
    return _markdown(tables) if form == "md" else _csv(tables)


def _narrowed(tables: tuple[PasteTable, ...], wanted: Sequence[str]) -> tuple[PasteTable, ...]:
    """Return the tables with the agent's column and the requested columns, in the requested
    order.
    """
    if not wanted:
        return tables
    made = []
    for table in tables:
        known = {title.casefold(): at for at, title in enumerate(table.columns)}
        places = [table.named]
        for name in wanted:
            near = [at for title, at in known.items() if title.startswith(name.casefold())]
            if not near:
                hint = did_you_mean(name, table.columns, f"it has {', '.join(table.columns)}")
                raise UserError(f"no column '{name}' in {table.title}", hint=hint)
            places += [near[0]] if near[0] not in places else []
        chosen = []
        for row in table.rows:
            head, *others = (row[at] for at in places)
            why = table.unranked(row)
            if (
                why is not None
            ):  # The column of the place, which contains the reason, was not requested.
                head = msgspec.structs.replace(head, reason=f"{NOT_RANKED}{why}")
            chosen.append((head, *others))
        titles = tuple(table.columns[at] for at in places)
        made.append(msgspec.structs.replace(table, columns=titles, rows=tuple(chosen)))
    return tuple(made)


# The content of the tables


def _traded(setting: SettingSummary, data: RunSummary) -> PasteTable:
    """Return the leaderboard of one setting."""
    rows, verdicts, excess = [], [], []
    for rank, agent in enumerate(setting.ranked, 1):
        number, told = setting.place_of(agent, rank), standing(agent, setting)
        place = PasteCell(
            "–", reason=None if agent.unranked is None else f"{NOT_RANKED}{agent.unranked}"
        )
        if number is not None:
            place = PasteCell(str(number), float(number))
        measures = (
            paste_cell(agent.measures[name].median, numbers.form_of(name)) for name in _MEASURES
        )
        # The interval of the difference from the baseline matches the corrected p-value.
        gap = PasteCell("–") if agent.excess is None else paste_cell(agent.excess, "change")
        rows.append((place, PasteCell(agent.name), *measures, gap, PasteCell(told.label)))
        verdicts.append((agent.name, told.label, told.sentence))
        drawn = agent.name if agent.unranked is None else f"{agent.name} (not ranked)"
        excess += [(drawn, gap)] if agent.versus is not None else []
    days = f" from {setting.sessions[0]} to {setting.sessions[-1]}" if setting.sessions else ""
    where = f"{setting.benchmark} on {setting.dataset}, {len(setting.sessions)} sessions{days}."
    notes = [f"Brackets contain {data.level:.0%} intervals. {where}"]
    if setting.contest is not None:
        size = (
            f"{setting.contest.level:.0%} for the whole table, {setting.contest.sessions:,} "
            "sessions"
        )
        notes.append(f"Agents of one tier cannot be told apart from its best one ({size}).")
    notes += [f"{text[0].upper()}{text[1:]}." for _, text in setting_badges(setting)]
    notes += [
        standing(agent, setting).sentence for agent in setting.agents if agent.result.value is None
    ]
    notes += [*setting.limits, *([data.freedom.sentence] if data.freedom is not None else [])]
    titles = (
        *(BY_ID[name].title for name in _MEASURES),
        setting.excess_title,
        "told apart",
    )
    columns = ("#" if setting.contest is None else "tier", "agent", *titles)
    return PasteTable(
        setting.title, columns, tuple(rows), tuple(notes), tuple(verdicts), tuple(excess)
    )


# The formats of the tables


def _reasons(table: PasteTable) -> tuple[list[list[str]], list[str]]:
    """Return the texts of all entries, with marks on missing numbers, and the footnotes."""
    known: dict[str, str] = {}
    rows = []
    for row in table.rows:
        texts = []
        for entry in row:
            mark = (
                ""
                if entry.reason is None
                else known.setdefault(entry.reason, chr(ord("a") + len(known) % 26))
            )
            texts.append(entry.text + (f" ({mark})" if mark else ""))
        rows.append(texts)
    return rows, [f"({mark}) {reason}" for reason, mark in known.items()]


def _markdown(tables: Sequence[PasteTable]) -> str:
    blocks = []
    for table in tables:
        rows, reasons = _reasons(table)
        lines = [
            f"**{_md(table.title)}**",
            "",
            _md_row(table.columns),
            _md_row("---" for _ in table.columns),
        ]
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
    """Return one row per entry with a number: the long form that every tool can pivot.

    Notes also have rows.
    """
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(("table", "row", "agent", "column", "value", "low", "high", "text", "reason"))
    for table in tables:
        for place, row in enumerate(table.rows, 1):
            for column, entry in zip(table.columns, row, strict=True):
                numbers_of = (
                    "" if one is None else repr(one) for one in (entry.value, entry.low, entry.high)
                )
                who = _plain(row[table.named].text)
                lines.writerow(
                    (
                        table.title,
                        place,
                        who,
                        column,
                        *numbers_of,
                        _plain(entry.text),
                        entry.reason or "",
                    )
                )
        for note in table.notes:
            lines.writerow((table.title, "", "", "note", "", "", "", _plain(note), ""))
    return out.getvalue()


def _plain(text: str) -> str:
    """Return a text that a spreadsheet does not interpret as a formula."""
    text = text.replace(numbers.MINUS, "-")
    return f"'{text}" if text[:1] in "=@\t\r" else text
