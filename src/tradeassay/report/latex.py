"""A run as LaTeX to include: tables that fit the text, verdicts in words, the edge as a drawing, and BibTeX.

Drawings use LaTeX's own ``picture``, so that a paper needs no more than ``booktabs`` and ``graphicx``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from tradeassay.core import __version__
from tradeassay.report import numbers
from tradeassay.report.formatting import PasteTable

_SIGNS = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    numbers.MINUS: "$-$",
    "–": "--",
    "·": r"$\cdot$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "×": r"$\times$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "…": r"\ldots{}",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "“": "``",
    "”": "''",
    "\u2009": r"\,",
    "\u202f": r"\,",
    "\xa0": "~",
}
_PAPERS = {
    "stockbench": (
        "StockBench: Can LLM Agents Trade Stocks Profitably In Real-world Markets?",
        "2025",
        "2510.02209",
        None,
    ),
    "ktdfin": (
        "From Knowing to Doing: A Memory-Controlled Benchmark for LLM Trading Agents on Stock Markets",
        None,
        None,
        "Zhu and others",
    ),
    "ama": ("When Agents Trade: Live Multi-Market Trading Benchmark for LLM Agents", None, None, None),
    "quantcode": (
        "QuantCode-Bench: A Benchmark for Evaluating the Ability of Large Language Models to Generate Executable "
        "Algorithmic Trading Strategies",
        "2026",
        "2604.15151",
        None,
    ),
    "systrade": ("SysTradeBench", "2026", "2604.04812", "Cao and others"),
}
"""By the beginning of a benchmark's id: the paper's title, year, arXiv id and authors as far as they are known."""


def tex(text: str) -> str:
    """Return plain text as LaTeX; a sign that pdflatex cannot set is written by its number."""
    flat = re.sub(r"[ \t\r\n]+", " ", text).strip()
    return "".join(_SIGNS.get(sign, sign if ord(sign) < 0x180 else f"[U+{ord(sign):04X}]") for sign in flat)


def write_latex(
    tables: Sequence[PasteTable], texts: Sequence[tuple[list[list[str]], list[str]]], benchmarks: Iterable[str]
) -> str:
    """Return all tables, each with its verdicts and its drawing where it compares agents with a baseline.

    ``texts`` are the entries of every table with their marks, and the footnotes to these.
    """
    cited = ",".join(["tradeassay", *_cited(benchmarks)])
    blocks = [rf"% needs \usepackage{{booktabs,graphicx}}; report --format bibtex has \cite{{{cited}}}"]
    seen: set[str] = set()
    for table, (rows, reasons) in zip(tables, texts, strict=True):
        label = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")
        while label in seen:
            label += "-2"
        seen.add(label)
        blocks.append(_table(table, rows, (*reasons, *table.notes), label))
        if table.verdicts:
            blocks.append(_verdicts(table, label))
        if any(edge.low is not None for _, edge in table.edges):
            blocks.append(_drawing(table, label))
    return "\n\n".join(blocks) + "\n"


def _fitted(tabular: Sequence[str]) -> list[str]:
    """Return a tabular in a box that is never wider than the text."""
    return [r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%", *tabular, "}"]


def _table(table: PasteTable, rows: Sequence[Sequence[str]], notes: Sequence[str], label: str) -> str:
    numeric = [any(row[at].value is not None for row in table.rows) for at in range(len(table.columns))]
    lines = [" & ".join(map(_stacked, row)) + r" \\" for row in rows]
    tabular = [
        rf"\begin{{tabular}}{{{''.join('r' if one else 'l' for one in numeric)}}}",
        r"\toprule",
        " & ".join(map(_heading, table.columns)) + r" \\",
        r"\midrule",
        *lines,
        r"\bottomrule",
        r"\end{tabular}%",
    ]
    return "\n".join(
        [
            r"\begin{table}[tbp]",
            r"\centering\small",
            rf"\caption[{tex(table.title)}]{{{tex(table.title)}.}}",
            rf"\label{{tab:{label}}}",
            *_fitted(tabular),
            r"\par\smallskip\begin{minipage}{\linewidth}\footnotesize",
            " ".join(map(tex, notes)),
            r"\end{minipage}",
            r"\end{table}",
        ]
    )


def _stacked(text: str) -> str:
    """Return an entry, its interval below it."""
    value, bracket, interval = text.partition(" [")
    if not bracket:
        return tex(text)
    return rf"\shortstack[r]{{{tex(value)}\\{{\scriptsize[{tex(interval)}}}}}"


def _heading(text: str) -> str:
    lines = textwrap.wrap(text, 16, break_long_words=False) or [""]
    return tex(text) if len(lines) == 1 else r"\shortstack{" + r" \\ ".join(map(tex, lines)) + "}"


def _verdicts(table: PasteTable, label: str) -> str:
    tabular = [
        r"\begin{tabular}{llp{0.6\linewidth}}",
        r"\toprule",
        r"agent & verdict & in words \\",
        r"\midrule",
        *(f"{tex(who)} & {tex(short)} & {tex(sentence)}" + r" \\" for who, short, sentence in table.verdicts),
        r"\bottomrule",
        r"\end{tabular}%",
    ]
    return "\n".join(
        [
            r"\begin{table}[tbp]",
            r"\centering\small",
            rf"\caption[Verdicts: {tex(table.title)}]{{Verdicts on {tex(table.title)}.}}",
            rf"\label{{tab:{label}-verdicts}}",
            *_fitted(tabular),
            r"\end{table}",
        ]
    )


_LEFT, _RIGHT, _STEP = 40.0, 96.0, 5.0


def _drawing(table: PasteTable, label: str) -> str:
    """Return every agent's difference from the baseline with its interval against zero, as a figure."""
    shown = [(who, edge) for who, edge in table.edges if None not in (edge.value, edge.low, edge.high)]
    ends = [
        0.0,
        *(float(end) for _, edge in shown for end in (edge.low, edge.value, edge.high) if end is not None),
    ]
    low, high = min(ends), max(ends)
    scale = (_RIGHT - _LEFT) / ((high - low) or 1.0)

    def x(value: float | None) -> float:
        return _LEFT + (float(value or 0.0) - low) * scale

    height = _STEP * len(shown) + 2
    lines = [rf"\put({x(0.0):.2f},4){{\line(0,1){{{height:.1f}}}}}"]
    for at, (who, edge) in enumerate(shown):
        y = 4 + height - _STEP * (at + 0.7)
        length = max(x(edge.high) - x(edge.low), 0.1)
        lines += [
            rf"\put({_LEFT - 3:.1f},{y:.2f}){{\makebox(0,0)[r]{{\footnotesize {tex(who)}}}}}",
            rf"\put({x(edge.low):.2f},{y:.2f}){{\line(1,0){{{length:.2f}}}}}",
            rf"\put({x(edge.value):.2f},{y:.2f}){{\circle*{{1.2}}}}",
        ]
    for value in sorted({low, 0.0, high}):
        text = tex(numbers.written(value, "change"))
        lines.append(rf"\put({x(value):.2f},1){{\makebox(0,0){{\scriptsize {text}}}}}")
    title = tex(table.title)
    return "\n".join(
        [
            r"\begin{figure}[tbp]",
            r"\centering\setlength{\unitlength}{0.01\linewidth}",
            rf"\begin{{picture}}(100,{height + 5:.1f})",
            *lines,
            r"\end{picture}",
            rf"\caption[Edge: {title}]{{{title}: difference from the baseline per year, with its interval.}}",
            rf"\label{{fig:{label}}}",
            r"\end{figure}",
        ]
    )


def _cited(benchmarks: Iterable[str]) -> list[str]:
    return [key for key in _PAPERS if any(name.startswith(key) for name in benchmarks)]


def write_bibtex(benchmarks: Iterable[str]) -> str:
    """Return what to cite for a run: this package, and the papers behind its benchmarks."""
    own = {"title": "tradeassay: what is a trading model's result made of?", "version": __version__}
    entries = [("software", "tradeassay", {"author": "{The tradeassay developers}", **own, "year": "2026"})]
    for key in _cited(benchmarks):
        title, year, arxiv, authors = _PAPERS[key]
        known = {"author": authors, "title": title, "year": year, "eprint": arxiv, "key": key}
        fields = {name: value for name, value in known.items() if value is not None}
        entries.append(("misc", key, fields | ({"archiveprefix": "arXiv"} if arxiv else {})))
    return "\n".join(
        f"@{kind}{{{key},\n" + "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items()) + "}\n"
        for kind, key, fields in entries
    )
