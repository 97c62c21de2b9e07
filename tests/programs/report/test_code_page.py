"""The page and the table of a run of programs."""

import html
import re

import pytest
from code_report_sample import HOSTILE, code_run

from tradeassay.core.tables import Cell
from tradeassay.report.formatting import cell_shown
from tradeassay_bench.core.tables import Table, amount, line
from tradeassay_bench.report import print_code_board, write_code_html
from tradeassay_bench.report.code_page import render_code_html, shown_run
from tradeassay_programs.benchmarks.quantcode.scores import pooled_rates
from tradeassay_programs.benchmarks.quantcode.tables import findings


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return code_run(tmp_path_factory.mktemp("code") / "sample")


@pytest.fixture(scope="module")
def cells(run):
    return run.scores.cells


@pytest.fixture(scope="module")
def shown(run):
    return shown_run(run)


@pytest.fixture(scope="module")
def page(run, shown):
    return render_code_html(run, shown)


def part(page, id):
    """Return a section of the page as words."""
    found = page[page.index(f'id="{id}"') :]
    text = html.unescape(re.sub(r"<[^>]+>", " ", found[: found.index("</section>")]))
    return " ".join(text.split())


def test_who_is_best_by_rates_turns_groups_and_costs(shown, page):
    assert shown.headline.startswith("scripted/coder-gold solves 5 of 5 tasks")
    assert shown.headline in page
    assert "cannot be told apart" in shown.support[0]
    (copies,) = [line for line in shown.support if line.startswith("Many tasks, one program")]
    assert "coder-sma" in copies and "coder-gold" not in copies
    last = shown.board.rows[-1].cells
    assert last[2].measure.value is None
    assert part(page, "board").count("6 without an answer") == 2
    stages = part(page, "board")
    sma = stages[stages.index("scripted/coder-sma single-turn") :]
    assert re.findall(r"[\d.]+%", sma)[:12:3] == ["100.0%", "100.0%", "100.0%", "16.7%"]
    assert "16.7% 3.0% to 56.4%" in sma  # Wilson, 1 of 6
    gold = stages[stages.index("scripted/coder-gold") :]
    assert gold.split(" backtrader ")[1].startswith("6 1 not scored")
    turns = part(page, "turns")
    assert re.findall(r"T\d", turns)[:4] == ["T1", "T2", "T3", "T4"]
    rates = r"[\d.]+% to [\d.]+%"
    solved = rf"mends · formal · backtrader 0.0% {rates} 100.0% {rates} 100.0% {rates} 100.0%"
    assert re.search(solved, turns)
    (groups,) = [section for section in shown.sections if section.id == "groups"]
    assert {table.title for table in groups.tables} == {
        "By difficulty",
        "By timeframe",
        "By family",
    }
    costs = part(page, "costs")
    assert "$0.00" in costs and "no task was solved" in costs
    found = shown.reliability
    assert found.passes["scripted/coder-gold"]["window"][-1].value == 1.0
    sma = found.passes["scripted/coder-sma"]["window"]
    assert sma[0].value == pytest.approx(1 / 6) and sma[1].value == 0.0
    assert "scripted/coder-sma solves its task in 16.7% of plays" in part(page, "reliable")


def test_the_papers_tables_stand_beside_ours_and_are_marked(shown, page):
    filled = {one.exhibit.number: one.ours.tables for one in shown.paper.exhibits}
    assert [name for name, tables in filled.items() if tables][:8] == [
        f"Table {n}" for n in range(1, 9)
    ]
    first = filled["Table 3"][0].rows
    assert next(row.head.text for row in first if not row.ours) == "claude-opus-4.6"
    assert first[0].ours and cell_shown(first[0].cells[3]).text == "100.0%"
    ends = {
        row.head.text: [cell_shown(cell).text for cell in row.cells]
        for row in filled["Table 5"][0].rows
    }
    assert ends["Solved"] == ["48.2%", "20.0%"]  # 6 of 30 single-turn answers
    assert "not comparable" in page and "our data is synthetic" in page
    texts = (("17/20", "low", "", "+0.42"), ("$0.07 to $0.16", "2022-01-17", "", "n/a"))
    rows = tuple(line("a", *map(Cell, row), amount(None)) for row in texts)
    table = Table(title="t", columns=("", *"abcde"), rows=rows)
    assert [table.numeric(place) for place in range(5)] == [True, False, False, True, True]


def test_judges_tricks_collapse_and_earnings(run, cells, page):
    assert "Where they disagree" in page and "Only behaviour passes" in page
    assert any(cell.judges.disagree for cell in cells)
    assert {what for _, _, what, _, _ in findings(run.records())} >= {"printed-result"}
    collapse = part(page, "collapse")
    assert re.search(r"coder-sma \([^)]*\) \d+ \d+ [\d.]+% collapsed", collapse)
    assert not re.search(r"coder-gold \([^)]*\) \d+ \d+ [\d.]+% collapsed", collapse)
    assert "+15.0% +60.0%" in part(page, "earned")
    assert part(page, "failures").count("unreachable") == 12
    single = pooled_rates([cell for cell in cells if cell.setting == "single-turn"])
    assert single.last["timeout"].value == 0.0 and single.last["timeout"].high is not None
    assert sum(rate.value or 0.0 for rate in single.ends.values()) == pytest.approx(1.0)
    nothing = pooled_rates([])
    assert nothing.ends["solved"].value is None and nothing.counts == {}


def test_every_turn_is_there_and_nothing_of_it_is_believed(run, page):
    items = page[page.index('id="items"') :]
    mends = items[re.search(r'data-words="scripted/coder-mends \S+ [^"]* agentic', items).start() :]
    first = mends[: mends.index("Turn 2")]
    assert (
        "does not compile" in first
        and "Feedback to the model" in first
        and "<b>Program</b>" in first
    )
    assert HOSTILE not in page and "<img" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert page.count("<script>") == 2 and "{{ 7 * 7 }}" in page
    assert "script-src &#39;sha256-" in page and not re.search(r"(src|href)=\"https?:", page)


def test_written_and_printed_here_and_elsewhere(run, capsys, tmp_path):
    assert write_code_html(run) == run.folder / "report.html"
    print_code_board(run)
    shown = capsys.readouterr().out
    assert "scripted/coder-gold" in shown and "100.0% [56.6%, 100.0%]" in shown
    assert "synthetic data, scripted models" in shown and "\x1b" not in shown
    assert write_code_html(run, tmp_path / "deep" / "page.html").stat().st_size > 50_000
