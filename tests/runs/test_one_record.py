"""One number, one place: terminal, page, tables and JSON show the figures of one record, and compute none."""

from __future__ import annotations

import ast
import csv
import html
import io
import json
import re
from pathlib import Path

import msgspec
import pytest
import runs_talk as talk
from click.testing import CliRunner

import tradeassay.report
from tradeassay.cli._group import root
from tradeassay.core.measure import Measure
from tradeassay.core.syntax import syntax_tree
from tradeassay.metrics import BY_ID
from tradeassay.report import numbers, paste, paste_tables, render_html, terminal
from tradeassay.runs import Run, run
from tradeassay.runs import summary as summaries
from tradeassay.runs.spec.run_spec import Window
from tradeassay.runs.summary import RunSummary, summary_of


@pytest.fixture(scope="module")
def recorded(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    spec = talk.talk_spec("tiny-good", seeds=(0,), window=Window(first="2024-01-15", last="2024-03-15"))
    return run(spec, tmp_path_factory.mktemp("one") / "r", executor="inline", home=home)


def disguised(summary: RunSummary) -> tuple[RunSummary, dict[tuple[str, str], Measure]]:
    """Give every measure of every agent a figure of its own, which nobody could have computed."""
    drawn: dict[tuple[str, str], Measure] = {}
    cells = []
    for cell in summary.cells:
        agents = []
        for place, agent in enumerate(cell.agents):
            measures = {}
            for number, (name, seeds) in enumerate(agent.measures.items()):
                value = 0.1234 + 0.01 * place + 0.0003 * number
                one = Measure(value=value, low=value / 2, high=value * 2, level=0.95, n=9)
                drawn[agent.name, name] = one
                measures[name] = msgspec.structs.replace(seeds, median=one)
            versus = agent.versus
            if versus is not None:
                one = Measure(value=0.777 + place / 100, low=0.1, high=0.9 + place / 100, level=0.95, n=9)
                drawn[agent.name, "difference"] = one
                versus = msgspec.structs.replace(versus, difference=one)
            row = msgspec.structs.replace(agent.row, measures=measures, versus_baseline=versus)
            agents.append(msgspec.structs.replace(agent, row=row))
        limits = (f"{cell.id} takes about 98,765 sessions.",)
        cells.append(msgspec.structs.replace(cell, agents=tuple(agents), limits=limits))
    return msgspec.structs.replace(summary, cells=tuple(cells)), drawn


def on_terminal(summary: RunSummary) -> str:
    from rich.console import Console

    console = Console(width=400, file=io.StringIO())
    console.print(terminal(summary))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_surface_shows_the_record_and_nothing_else(recorded: Run) -> None:
    summary, drawn = disguised(summary_of(recorded))
    texts = {
        "terminal": on_terminal(summary),
        "page": html.unescape(render_html(summary)),
        "md": paste(summary, "md"),
        "csv": paste(summary, "csv"),
        "json": paste(summary, "json"),
    }
    for name, text in texts.items():
        assert "98,765 sessions" in text, name
    (table,) = paste_tables(summary)
    titles = {BY_ID[name].title: name for _, name in drawn if name in BY_ID}
    rows = {
        (one["agent"], one["column"], *(float(one[end] or "nan") for end in ("value", "low", "high")))
        for one in csv.DictReader(io.StringIO(texts["csv"]))
    }
    for row in table.rows:
        agent = row[1].text
        for title, entry in zip(table.columns, row, strict=True):
            name = titles.get(title, "difference" if title.startswith("against") else "")
            if (agent, name) not in drawn or entry.value is None:
                continue
            wanted = drawn[agent, name]
            assert (entry.value, entry.low, entry.high) == (wanted.value, wanted.low, wanted.high), (agent, title)
            for surface in ("page", "md"):
                assert entry.text.split(" ")[0] in texts[surface], (surface, agent, title)
            assert str(wanted.value) in texts["json"], (agent, title)
            assert (agent, title, wanted.value, wanted.low, wanted.high) in rows
    for agent in (one.name for one in summary.cells[0].agents):
        shown = numbers.written(drawn[agent, "cumulative_return"].value or 0.0, "change")
        assert shown in texts["terminal"] and shown in texts["page"], agent


def test_nothing_in_report_can_compute_a_figure() -> None:
    """What is imported into ``report`` from where figures are computed: names, units, records, and one door."""
    allowed = {
        "tradeassay.metrics": {"BY_ID", "MEASURES", "MeasureInfo", "AgainstBaseline"},
        "tradeassay.metrics.reliability": {"Reliability"},
        "tradeassay.metrics.history": {"ROLLING", "AccountHistory"},
        "tradeassay.assay.papers": {"paper_pages"},
        "tradeassay.assay.verdict.record": {"WaterfallStep", "waterfall"},
    }
    for path in sorted(Path(tradeassay.report.__file__).parent.glob("*.py")):
        for node in ast.walk(syntax_tree(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("tradeassay.metrics", "scipy")):
                extra = {one.name for one in node.names} - allowed.get(str(node.module), set())
                assert not extra, f"{path.name} imports {extra}"


def test_the_commands_show_one_summary(recorded: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    def counted(run: Run, *, details: bool = True) -> RunSummary:
        made.append(details)
        return summary_of(run, details=details)

    monkeypatch.setattr(summaries, "summary_of", counted)
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))

    def say(*words: str) -> str:
        done = CliRunner().invoke(root, [*words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.split())

    folder = str(recorded.folder)
    shown = say("report", folder)
    assert made == [True], "terminal and page are written from the same record"
    page = html.unescape((recorded.folder / "report.html").read_text())
    power = json.loads(say("power", folder, "--json"))
    needed = sorted(one["power_summary"]["sessions"] for one in power)
    (limit,) = summary_of(recorded).cells[0].limits
    assert f"{needed[0]:,} sessions" in limit and (len(set(needed)) == 1 or f"{needed[-1]:,}" in limit)
    markdown, as_json = say("report", folder, "--format", "md"), json.loads(say("report", folder, "--json"))
    for text in (shown, page, markdown):
        figures = set(re.findall(r"about ([\d,]+) sessions", text))
        assert figures == {f"{needed[0]:,}"}, "one number for one question"
    contest = summary_of(recorded).cells[0].contest
    assert as_json["contests"][summary_of(recorded).cells[0].id] == json.loads(msgspec.json.encode(contest))
