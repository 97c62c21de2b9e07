"""The page and the table of a run of programs."""

import re
from pathlib import Path

import pytest
from code_report_sample import HOSTILE, code_run

from tradeassay.report.code_board import print_code_board
from tradeassay.report.code_page import render_code_html, write_code_html
from tradeassay.report.code_view import CodeView, code_view
from tradeassay.runs import CodeRun


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> CodeRun:
    return code_run(tmp_path_factory.mktemp("code") / "sample")


@pytest.fixture(scope="module")
def view(run: CodeRun) -> CodeView:
    return code_view(run)


@pytest.fixture(scope="module")
def page(view: CodeView) -> str:
    return render_code_html(view)


def test_who_is_best_and_whether_it_can_be_told(view: CodeView) -> None:
    assert view.headline.startswith("scripted/coder-gold solves 5 of 5 tasks")
    assert "cannot be told apart" in view.support[0]
    (copies,) = [line for line in view.support if line.startswith("Many tasks, one program")]
    assert "coder-sma" in copies and "coder-gold" not in copies
    assert view.rows[-1].rates[0].text == "n/a" and view.rows[-1].left_out == "6 without an answer"


def test_rates_by_hand(view: CodeView) -> None:
    sma = next(row for row in view.rows if row.name == "scripted/coder-sma" and "single" in row.kind)
    assert [rate.text for rate in sma.rates] == ["100.0%", "100.0%", "100.0%", "16.7%"]
    assert sma.rates[3].interval == "3.0% to 56.4%"  # Wilson, 1 of 6
    gold = view.rows[0]
    assert gold.items == "6" and gold.left_out == "1 not judged"


def test_turns_groups_and_costs(view: CodeView) -> None:
    assert view.chart is not None and [tick for tick, _ in view.chart.ticks] == [1, 2, 3, 4]
    mends = next(line for line in view.chart.lines if "mends" in line.name)
    assert mends.texts == ("0.0%", "100.0%", "100.0%", "100.0%")
    assert {group.by for group in view.groups} == {"difficulty", "timeframe", "family"}
    assert view.costs[0].usd_per_solved == "$0.00" and "no task was solved" in {
        row.usd_per_solved for row in view.costs
    }


def test_the_papers_tables_stand_beside_ours_and_are_marked(view: CodeView, page: str) -> None:
    titles = [table.title.split(":")[0] for table in view.paper.tables]
    assert titles == [f"Table {n}" for n in range(3, 9)]
    first = view.paper.tables[0].rows
    assert next(who for who, ours, _ in first if not ours) == "claude-opus-4.6"
    assert first[0][1] and first[0][2][3].text == "100.0%"
    ends = {who: [cell.text for cell in cells] for who, _, cells in view.paper.tables[2].rows}
    assert ends["Solved"] == ["48.2%", "20.0%"]  # 6 of 30 single-turn answers
    assert "not comparable" in page and "our data is synthetic" in page


def test_judges_tricks_collapse_and_earnings(view: CodeView) -> None:
    assert view.judges and view.disagreements
    assert {row.trick for row in view.tricks} >= {"printed-result"}
    collapsed = {row.name.split(" ")[0] for row in view.collapse if row.flagged}
    assert "scripted/coder-sma" in collapsed and "scripted/coder-gold" not in collapsed
    assert view.earned and view.earned[0].strategy == "+15.0%" and view.earned[0].hold == "+60.0%"
    assert len(view.failed) == 12 and "unreachable" in view.failed[0][1]


def test_every_turn_is_there_and_nothing_of_it_is_believed(view: CodeView, page: str) -> None:
    mends = next(item for item in view.items if "mends" in item.model and item.way.startswith("agentic"))
    assert mends.turns[0].outcome == "does not compile"
    assert mends.turns[0].feedback and mends.turns[0].code
    assert HOSTILE not in page and "<img" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert page.count("<script>") == 2 and "{{ 7 * 7 }}" in page
    assert "script-src &#39;sha256-" in page and not re.search(r"(src|href)=\"https?:", page)


def test_written_and_printed(run: CodeRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert write_code_html(run) == run.folder / "report.html"
    print_code_board(run)
    shown = capsys.readouterr().out
    assert "scripted/coder-gold" in shown and "100.0% [57%, 100%]" in shown
    assert "synthetic data, scripted models" in shown and "\x1b" not in shown


def test_a_page_elsewhere(run: CodeRun, tmp_path: Path) -> None:
    assert write_code_html(run, tmp_path / "deep" / "page.html").stat().st_size > 50_000
