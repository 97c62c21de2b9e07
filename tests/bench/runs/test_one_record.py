"""One number, one place: commands write every surface from one record, and reports compute none."""

import ast
import html
import json
import re
from pathlib import Path

import msgspec
import pytest
import runs_talk as talk
from click.testing import CliRunner

import tradeassay_bench.report
from tradeassay.cli import root
from tradeassay.core.syntax import syntax_tree
from tradeassay_bench.runs import run, summary as summaries
from tradeassay_bench.runs.spec.run_spec import Window
from tradeassay_bench.runs.summary import summary_of


@pytest.fixture(scope="module")
def recorded(home, tmp_path_factory):
    spec = talk.talk_spec(
        "tiny-good", seeds=(0,), window=Window(first="2024-01-15", last="2024-03-15")
    )
    return run(spec, tmp_path_factory.mktemp("one") / "r", executor="inline", home=home)


def test_nothing_in_report_can_compute_a_figure():
    """What is imported into ``report`` from where figures are computed: names, units, records,
    and one door.
    """
    allowed = {
        "tradeassay.metrics": {"BY_ID", "MEASURES", "MeasureInfo", "AgainstBaseline"},
        "tradeassay.metrics.reliability": {"Reliability"},
        "tradeassay.metrics.history": {"ROLLING", "AccountHistory"},
        "tradeassay.metrics.horizon": {"TOO_SHORT"},
        "tradeassay_bench.papers": {"paper_pages"},
        "tradeassay.verdict.record": {"WaterfallStep", "waterfall"},
    }
    for path in sorted(Path(tradeassay_bench.report.__file__).parent.glob("*.py")):
        for node in ast.walk(syntax_tree(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
                ("tradeassay.metrics", "scipy")
            ):
                extra = {one.name for one in node.names} - allowed.get(str(node.module), set())
                assert not extra, f"{path.name} imports {extra}"


def test_the_commands_show_one_summary(recorded, home, monkeypatch):
    made = []

    def counted(run, *, details=True):
        made.append(details)
        return summary_of(run, details=details)

    monkeypatch.setattr(summaries, "summary_of", counted)
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))

    def say(*words):
        done = CliRunner().invoke(root, [*words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.split())

    folder = str(recorded.folder)
    shown = say("report", folder)
    assert made == [True], "terminal and page are written from the same record"
    page = html.unescape((recorded.folder / "report.html").read_text())
    power = json.loads(say("power", folder, "--json"))
    needed = sorted(one["power_summary"]["sessions"] for one in power)
    (limit,) = summary_of(recorded).settings[0].limits
    assert f"{needed[0]:,} sessions" in limit and (
        len(set(needed)) == 1 or f"{needed[-1]:,}" in limit
    )
    markdown, as_json = (
        say("report", folder, "--format", "md"),
        json.loads(say("report", folder, "--json")),
    )
    for text in (shown, page, markdown):
        figures = set(re.findall(r"about ([\d,]+) sessions", text))
        assert figures == {f"{needed[0]:,}"}, "one number for one question"
    contest = summary_of(recorded).settings[0].contest
    assert as_json["contests"][summary_of(recorded).settings[0].id] == json.loads(
        msgspec.json.encode(contest)
    )
