"""Tables to paste: every number of the leaderboard is in them, none travels without what it rests on."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from report_sample import report

sys.path.insert(0, str(Path(__file__).parents[1] / "recorded"))

from golden import stored as played

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.report import paste, paste_tables


@pytest.mark.slow_for("md-quantcode-frame", "latex-quantcode-frame", "csv-quantcode-frame", "json-quantcode-frame")
@pytest.mark.parametrize("name", ["daily", "stockbench", "quantcode-frame", "systrade-peeps"])
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
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == 2 * len(data.cells)
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
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="TeX is not installed: see scripts/system-packages")
@pytest.mark.parametrize(("name", "columns"), [("sample", None), ("daily", "Sharpe"), ("quantcode-frame", None)])
def test_a_paper_with_the_tables_compiles_and_nothing_is_wider_than_its_text(
    name: str, columns: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = {}
    for form in ("latex", "bibtex"):
        if name == "sample":
            printed[form] = paste(report(), form)
            continue
        some = [] if columns is None or form == "bibtex" else ["--columns", columns]
        assert main(["report", str(played(name)), "--format", form, *some]) == 0
        printed[form] = capsys.readouterr().out
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


def test_columns_are_chosen_by_how_they_begin(capsys: pytest.CaptureFixture[str]) -> None:
    data = report()
    tables = json.loads(paste(data, "json", ("sharpe", "return")))
    assert tables[0]["columns"][0] == "agent" and tables[0]["columns"][1] == "Sharpe"
    assert len(tables[0]["columns"]) == len(tables[0]["rows"][0]) == 3
    with pytest.raises(UserError, match="no column 'sharp ratio'"):
        paste(data, "md", ("sharp ratio",))
    assert main(["report", str(played("daily")), "--columns", "Sharpe"]) == 2
    assert "give --format too" in capsys.readouterr().err


def test_what_to_cite_is_this_package_and_the_papers_played() -> None:
    cited = paste(report(), "bibtex")
    assert cited.startswith("@software{tradeassay,") and cited.count("@misc") <= 5


def test_a_table_and_a_page_are_not_asked_for_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["report", str(played("daily")), "--format", "md", "--out", str(tmp_path / "page.html")]
    assert main(argv) == 2
    assert "leave -o out" in capsys.readouterr().err
