"""Every mean that a page of programs prints is the mean of what is printed beside it, or says
over how many.
"""

import math
from dataclasses import replace
from unittest import mock

import msgspec
import pytest
import systrade_sample
from code_report_sample import code_run

from tradeassay.core.measure import not_scored
from tradeassay_bench.benchmarks.exhibits import Filled
from tradeassay_bench.report import print_code_board
from tradeassay_bench.report.code_page import shown_run
from tradeassay_programs.benchmarks.quantcode.tables import quantcode_paper
from tradeassay_programs.code.scores import overall

pytestmark = pytest.mark.journey

DIMENSIONS = ("D1", "D2", "D3", "D4")


@pytest.fixture(scope="module")
def systrade(tmp_path_factory):
    """A run in which some submissions have no D1 and no year, so that means are over different
    ones.
    """
    sample = systrade_sample.examined

    def partly(submission, spec, *rest, **more):
        found = sample(submission, spec, *rest, **more)
        if spec.id != "double-ma":
            return found
        corrected = found.scorecard.corrected | {"D1": not_scored("no trace to compare with")}
        card = msgspec.structs.replace(
            found.scorecard,
            corrected=corrected,
            overall=overall(corrected),
            year=None,
            year_reason="no account",
        )
        return replace(found, scorecard=card)

    with mock.patch("systrade_sample.examined", partly):
        return systrade_sample.systrade_run(tmp_path_factory.mktemp("systrade") / "r")


@pytest.fixture(scope="module")
def quantcode(tmp_path_factory):
    return code_run(tmp_path_factory.mktemp("code") / "r")


def every_table(shown):
    found = [
        shown.board,
        *(table for section in shown.sections for table in section.tables),
        *shown.paper.tables,
    ]
    return {(table.title, table.columns): table for table in found}


def cells_of(table):
    """Return the cells of every row by the name of their column in small letters."""
    titles = [title.lower() for title in table.columns[1:]]
    return {row.head.text: dict(zip(titles, row.cells, strict=False)) for row in table.rows}


def close(one, other):
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def test_overall_is_the_mean_of_the_four_beside_it_or_says_over_how_many(systrade):
    checked = 0
    for (_, columns), table in every_table(shown_run(systrade)).items():
        titles = [title.lower() for title in columns]
        for ending in ("", " as printed"):
            wanted = [f"{name.lower()}{ending}" for name in ("overall", *DIMENSIONS)]
            if not set(wanted) <= set(titles):
                continue
            for cells in cells_of(table).values():
                whole, *parts = (cells[name] for name in wanted)
                if whole.measure is None or whole.measure.value is None:
                    continue
                counts = {cell.measure.n for cell in (whole, *parts)}
                if len(counts) == 1:
                    known = [cell.measure.value for cell in parts]
                    assert close(whole.measure.value, sum(known) / 4), (table.title, cells)
                else:
                    most = max(count for count in counts if count is not None)
                    for cell in (whole, *parts):
                        fewer = cell.measure.n is not None and cell.measure.n < most
                        assert not fewer or cell.small.startswith(f"{cell.measure.n} of "), (
                            table.title,
                            cell,
                        )
                checked += 1
    assert checked >= 4


def test_the_papers_overall_is_the_mean_of_reviewers_and_automatic_scores(systrade):
    (table,) = (
        table
        for (_, columns), table in every_table(shown_run(systrade)).items()
        if "LLM, ours" in columns
    )
    found = 0
    for cells in cells_of(table).values():
        marked, automatic, whole = (
            cells[f"{name}, ours"].measure for name in ("llm", "qr", "overall")
        )
        if whole is None or marked is None or automatic is None:
            continue
        if marked.value is None or automatic.value is None:
            assert whole.value is None and whole.reason
        else:
            assert close(whole.value, (marked.value + automatic.value) / 2)
            found += 1
    assert found == 2


def test_a_mean_return_stands_beside_the_number_of_submissions_it_is_over(systrade, capsys):
    tables = every_table(shown_run(systrade))
    (table,) = (
        table for (title, _), table in tables.items() if title == "Return and trades by iteration"
    )
    fewer = 0
    for cells in cells_of(table).values():
        for count, mean in (("with a return", "return, ours"), ("with a run", "trades")):
            assert (cells[mean].measure.n or 0) == cells[count].measure.value
        fewer += cells["with a return"].measure.value < cells["submissions"].measure.value
    assert fewer
    print_code_board(systrade)
    shown = capsys.readouterr().out
    assert "(1 of 2)" in shown, "the terminal says over how many submissions a mean is"


def test_marks_given_and_groups_follow_from_the_rows(systrade):
    tables = every_table(shown_run(systrade))
    (desks,) = (table for (title, columns), table in tables.items() if "Mean given" in columns)
    for reviewer, cells in cells_of(desks).items():
        others = [
            cell.measure
            for name, cell in cells.items()
            if name not in ("mean given", reviewer) and cell.measure.value is not None
        ]
        total = sum(one.value * one.n for one in others) / sum(one.n for one in others)
        assert close(cells["mean given"].measure.value, total)
    models = cells_of(shown_run(systrade).board)
    for table in (table for (title, _), table in tables.items() if title == "Groups of models"):
        for cells in cells_of(table).values():
            for name, cell in cells.items():
                if cell.measure.value is not None:
                    known = [one[name].measure.value for one in models.values()]
                    assert (
                        min(filter(None.__ne__, known))
                        <= cell.measure.value
                        <= max(filter(None.__ne__, known))
                    )


def test_tokens_of_iterations_add_up_to_what_was_paid(systrade):
    """Figure 3 times its items is every token of the writer's answers."""
    (table,) = (
        table
        for (title, columns), table in every_table(shown_run(systrade)).items()
        if title == "Tokens" and "tokens of the request" in columns
    )
    total = 0.0
    for row in table.rows:
        items, request, answer = (cell.measure.value for cell in row.cells)
        total += items * (request + answer)
    paid = [
        systrade.record(episode.key).usage
        for episode in systrade.episodes
        if systrade.record(episode.key)
    ]
    assert close(total, sum(one.input_tokens + one.output_tokens for one in paid))


def test_quantcode_shares_follow_from_the_counts_beside_them(quantcode):
    shown = shown_run(quantcode)
    tables = every_table(shown)
    (costs,) = (
        table for (title, columns), table in tables.items() if "Tokens per solved task" in columns
    )
    cells = {cell.name: cell for cell in quantcode.scores.cells}
    for row, cell in zip(costs.rows, sorted(cells.values(), key=_rank), strict=True):
        tokens, per_solved = row.cells[1].measure.value, row.cells[3].measure.value
        assert per_solved is None or close(per_solved * cell.solved, tokens)
    (failures,) = (
        table
        for (title, columns), table in tables.items()
        if columns == ("Class", "Items", "Share")
    )
    answers = sum(cell.rates.items for cell in quantcode.scores.cells)
    for row in failures.rows:
        assert close(row.cells[0].measure.value / answers, row.cells[1].measure.value)
    for (title, _), table in tables.items():
        if title == "Agreement of the judges":
            for row in table.rows:
                both_pass, both_fail, *only = (cell.measure.value for cell in row.cells[:4])
                assert close(
                    (both_pass + both_fail) / (both_pass + both_fail + sum(only)),
                    row.cells[4].measure.value,
                )
    turns = next(table for (title, _), table in tables.items() if title == "Share solved by turn")
    for row in turns.rows:
        known = [cell.measure.value for cell in row.cells[:-1]]
        assert known == sorted(known, key=lambda value: -1.0 if value is None else value)
    paper = quantcode_paper([(quantcode.spec, 6)], quantcode.scores.cells, Filled(missing="-"))
    for shelf in paper.exhibits:
        if shelf.exhibit.id in ("table-5", "table-7"):
            (table,) = shelf.ours.tables
            assert close(sum(row.cells[1].measure.value for row in table.rows), 1.0)


def _rank(cell):
    return 1.0 if cell.rates.judge.value is None else -cell.rates.judge.value
