"""Tables to paste: every number of the leaderboard is in them, none travels without what it rests on."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from report_sample import report

sys.path.insert(0, str(Path(__file__).parents[1] / "recorded"))

from golden import stored as played

from tradeassay.cli import main
from tradeassay.report import paste, paste_tables


@pytest.mark.parametrize("name", ["daily", "stockbench", "quantcode", "systrade"])
@pytest.mark.parametrize("form", ["md", "latex", "csv", "json"])
def test_every_kind_of_run_becomes_a_table(name: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(played(name)), "--format", form]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "synthetic data" in shown.out.lower()
    assert not (played(name) / "report.html").exists()


def test_numbers_keep_every_digit_where_programs_read_them() -> None:
    data = report()
    cell = data.cells[0]
    tables = json.loads(paste(data, "json"))
    rows = {row[1]["text"]: row for row in tables[0]["rows"]}
    column = tables[0]["columns"].index("Sharpe")
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


def test_an_agent_without_a_result_has_no_rank_and_a_reason() -> None:
    data = report()
    failed = [agent for agent in data.cells[0].agents if agent.result.value is None]
    assert failed, "the sample has one"
    table = paste_tables(data)[0]
    row = next(row for row in table.rows if row[1].text == failed[0].name)
    assert row[0].text == "–"
    assert row[2].text == "n/a"
    assert any(failed[0].name in note for note in table.notes)


def test_words_of_others_cannot_break_a_table() -> None:
    data = report(attack=True)
    for line in paste(data, "md").splitlines():
        if line.startswith("|"):
            assert line.replace("\\|", "").count("|") == len(paste_tables(data)[0].columns) + 1
    tex = paste(data, "latex")
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == len(data.cells)
    for line in csv.reader(io.StringIO(paste(data, "csv"))):
        assert len(line) == 9
        assert not line[2].startswith(("=", "@"))


def test_a_table_and_a_page_are_not_asked_for_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["report", str(played("daily")), "--format", "md", "--out", str(tmp_path / "page.html")]
    assert main(argv) == 2
    assert "leave -o out" in capsys.readouterr().err
