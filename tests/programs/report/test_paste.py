"""Tables, cards and trackers: every number of the leaderboard is in them, and nothing leaves by
itself.
"""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from golden import stored as played
from report_sample import report

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.report import paste, paste_tables, tracking
from tradeassay_bench.report.cards import BenchmarkCard, croissant, results_card, write_cards
from tradeassay_bench.report.export_tables import PasteCell, PasteTable


@pytest.mark.slow_for(
    "md-quantcode-frame", "latex-quantcode-frame", "csv-quantcode-frame", "json-quantcode-frame"
)
@pytest.mark.parametrize("name", ["daily", "stockbench", "quantcode-frame", "systrade-peeps"])
@pytest.mark.parametrize("form", ["md", "latex", "csv", "json"])
def test_every_kind_of_run_becomes_a_table(name, form, tell):
    shown = tell(["report", str(played(name)), "--format", form])
    assert shown.err == ""
    assert "synthetic data" in shown.out.lower()
    assert not (played(name) / "report.html").exists()


def test_numbers_keep_every_digit_where_programs_read_them():
    data = report()
    cell = data.settings[0]
    tables = json.loads(paste(data, "json"))
    rows = {row[1]["text"]: row for row in tables[0]["rows"]}
    column = tables[0]["columns"].index("Sharpe ratio")
    for agent in cell.agents:
        wanted = agent.measures["sharpe"].median
        found = rows[agent.name][column]
        assert found.get("value") == wanted.value
        assert found.get("low") == wanted.low
        if wanted.value is None:
            assert found["reason"] == wanted.reason
    lines = list(csv.DictReader(io.StringIO(paste(data, "csv"))))
    here = [line for line in lines if line["table"] == tables[0]["title"] and line["value"]]
    numbers = {(line["agent"], line["column"]): line["value"] for line in here}
    for agent in cell.agents:
        if (value := agent.result.value) is not None:
            assert float(numbers[agent.name, tables[0]["columns"][2]]) == value
    failed = [agent for agent in data.settings[0].agents if agent.result.value is None]
    assert failed, "the sample has one"
    table = paste_tables(data)[0]
    row = next(row for row in table.rows if row[1].text == failed[0].name)
    assert (row[0].text, row[2].text) == ("–", "n/a")
    assert any(failed[0].name in note for note in table.notes)
    ranked = [
        (cell, table)
        for cell, table in zip(data.settings, paste_tables(data), strict=True)
        if cell.contest
    ]
    assert ranked, "the sample has a contest"
    for cell, table in ranked:
        assert cell.contest is not None
        assert table.columns[:2] == ("tier", "agent") and "#" not in table.columns
        for row in table.rows:
            assert row[0].value == cell.contest.tier_of(row[1].text)
        assert any("Agents of one tier cannot be told apart" in note for note in table.notes)


def test_words_of_others_cannot_break_a_table():
    data = report(attack=True)
    for line in paste(data, "md").splitlines():
        if line.startswith("|"):
            assert line.replace("\\|", "").count("|") == len(paste_tables(data)[0].columns) + 1
    tex = paste(data, "latex")
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == 2 * len(data.settings)
    for line in csv.reader(io.StringIO(paste(data, "csv"))):
        assert len(line) == 9
        assert not line[2].startswith(("=", "@"))


PAPER = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,graphicx}
\begin{document}
\listoftables
%s
\nocite{*}
\bibliographystyle{plain}
\bibliography{cited}
\end{document}
"""


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="TeX is not installed: see scripts/system-packages"
)
@pytest.mark.parametrize(
    ("name", "columns"), [("sample", None), ("daily", "Sharpe ratio"), ("quantcode-frame", None)]
)
def test_a_paper_with_the_tables_compiles_and_nothing_is_wider_than_its_text(
    name, columns, tmp_path, tell
):
    printed = {}
    for form in ("latex", "bibtex"):
        if name == "sample":
            printed[form] = paste(report(), form)
            continue
        some = [] if columns is None or form == "bibtex" else ["--columns", columns]
        printed[form] = tell(["report", str(played(name)), "--format", form, *some]).out
    (tmp_path / "paper.tex").write_text(PAPER % printed["latex"])
    (tmp_path / "cited.bib").write_text(printed["bibtex"])
    tex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for command in (tex, ["bibtex", "paper"], tex, tex):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "paper.log").read_text(errors="replace")
    wide = [line for line in log.splitlines() if line.startswith("Overfull \\hbox")]
    assert not wide, wide
    assert "undefined" not in log
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
    assert r"\label{tab:" in printed["latex"] and r"\caption[" in printed["latex"]
    if name == "sample":
        assert r"\begin{picture}" in printed["latex"] and "-verdicts}" in printed["latex"]


def test_columns_and_forms_are_chosen(tell, tmp_path):
    data = report()
    tables = json.loads(paste(data, "json", ("sharpe", "return")))
    assert tables[0]["columns"][0] == "agent" and tables[0]["columns"][1] == "Sharpe ratio"
    assert len(tables[0]["columns"]) == len(tables[0]["rows"][0]) == 3
    with pytest.raises(UserError, match="no column 'sharp ratio'"):
        paste(data, "md", ("sharp ratio",))
    assert (
        "is only valid with --format"
        in tell(["report", str(played("daily")), "--columns", "Sharpe ratio"], 2).err
    )
    cited = paste(report(), "bibtex")
    assert cited.startswith("@software{tradeassay,") and cited.count("@misc") <= 5
    argv = ["report", str(played("daily")), "--format", "md", "--out", str(tmp_path / "page.html")]
    assert "-o is not valid with --format" in tell(argv, 2).err


def test_the_results_card_holds_every_number_of_the_table():
    yaml = pytest.importorskip("yaml")
    data = report()
    card = paste(data, "card")
    _, head, body = card.split("---\n", 2)
    found = {model["name"]: model["results"] for model in yaml.safe_load(head)["model-index"]}
    for table in paste_tables(data):
        for row in table.rows:
            wanted = {
                t: c.value for t, c in zip(table.columns, row, strict=True) if c.value is not None
            }
            if set(wanted) - {"#", "tier"}:
                mine = next(r for r in found[row[1].text] if r["dataset"]["name"] == table.title)
                assert {m["type"]: m["value"] for m in mine["metrics"]} == {
                    title: value for title, value in wanted.items() if title not in ("#", "tier")
                }
    assert body.strip() == paste(data, "md").strip()
    evil = 'x"}\n---\nmodel-index: []\n# : !!python/object'
    table = PasteTable(evil, ("model", "rate"), ((PasteCell(evil), PasteCell("1", 1.0)),), ())
    _, head, _ = results_card([table], "").split("---\n", 2)
    (model,) = yaml.safe_load(head)["model-index"]
    assert model["name"] == " ".join(evil.split())


def test_every_benchmark_version_has_both_cards(tmp_path):
    written = write_cards(tmp_path)
    assert {f"{name}.md" for name in benchmarks.names()} | {
        "quantcode-v1.md",
        "systrade-v1.md",
    } <= {path.name for path in written}
    for path in tmp_path.glob("*.json"):
        made = json.loads(path.read_text())
        assert made["@type"] == "sc:Dataset" and made["conformsTo"].endswith("croissant/1.0")
        assert made["license"] and made["version"].endswith(".0.0")
        # A field without a source is no valid record: where no file is stored there are none.
        files = {file["@id"] for file in made.get("distribution", ())}
        fields = [field for records in made.get("recordSet", ()) for field in records["field"]]
        assert bool(files) == bool(fields) == ("variableMeasured" not in made)
        assert all(field["source"]["fileSet"]["@id"] in files for field in fields)


def test_a_stored_data_set_is_named_as_the_source_of_every_field():
    said = {
        "title": "A",
        "description": "B",
        "dataset": "c",
        "kind": "real",
        "licence": "d",
        "get": "e",
    }
    about = BenchmarkCard(
        id="a-v3", sha256="ab" * 32, fields=(("close", "sc:Float", "last price"),), **said
    )
    made = croissant(about)
    (file,), (records,) = made["distribution"], made["recordSet"]
    assert "ab" * 32 in file["description"] and made["version"] == "3.0.0"
    assert [field["source"]["fileSet"] for field in records["field"]] == [{"@id": file["@id"]}]


@pytest.fixture
def mlflow(monkeypatch):
    """A stand-in for the tracker."""
    stand_in = mock.MagicMock()
    stand_in.start_run.return_value.__enter__.return_value.info.run_id = "abc"
    monkeypatch.setitem(sys.modules, "mlflow", stand_in)
    return stand_in


@pytest.fixture
def run(tmp_path):
    shutil.copytree(played("stockbench"), tmp_path / "run")
    return str(tmp_path / "run")


def test_a_tracker_gets_the_numbers(run, mlflow, tell):
    told = json.loads(tell(["report", run, "--to", "mlflow", "--project", "mine", "--json"]).out)
    mlflow.log_metrics.assert_called_once_with(told["numbers"])
    mlflow.set_experiment.assert_called_once_with("mine")
    assert told["id"] == "abc"
    assert [Path(call.args[0]).name for call in mlflow.log_artifact.mock_calls] == [
        "report.html",
        "scores.json",
    ]
    assert all(re.fullmatch(r"[A-Za-z0-9_. /-]+", name) for name in told["numbers"])


def test_nothing_is_sent_unless_it_is_asked_for(run, mlflow, monkeypatch, tell):
    assert main(["report", run, "--to", "nowhere"]) == 0 and not mlflow.mock_calls
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "tradeassay[tracking]" in tell(["report", run, "--to", "wandb"], 2).err
    mlflow.set_experiment.side_effect = ZeroDivisionError
    assert (
        "mlflow did not accept the run: ZeroDivisionError"
        in tell(["report", run, "--to", "mlflow"], 2).err
    )


def test_names_that_a_tracker_cannot_tell_apart_are_numbered(monkeypatch):
    rows = tuple(
        (PasteCell(name), PasteCell("1", value)) for name, value in (("a/b", 1.0), ("a:b", 2.0))
    )
    monkeypatch.setattr(
        tracking, "paste_tables", lambda run: [PasteTable("t", ("agent", "return"), rows, ())]
    )
    run = SimpleNamespace(
        complete=True, episodes=(), name="r", manifest=SimpleNamespace(work_sha256="0")
    )
    assert tracking.tracked(run)[1] == {"a-b/return": 1.0, "a-b/return-2": 2.0}
