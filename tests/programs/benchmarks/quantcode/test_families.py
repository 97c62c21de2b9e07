"""Drawn tasks: the same for the same seed, different for another, and their programs do what
their words say.
"""

import ast
import re
from collections import Counter

import msgspec
import pytest
from click.testing import CliRunner

from tradeassay.core.errors import UserError
from tradeassay_programs.benchmarks.quantcode import draw_tasks, families, load_task, load_tasks
from tradeassay_programs.cli.code import code
from tradeassay_programs.code.backtrader import BacktestJob, fed_backtests, terms_of
from tradeassay_programs.code.judges.markets import DrawConfig, draw_markets, drawn_bars
from tradeassay_programs.code.running import exam_settings, open_code_executor, run_programs
from tradeassay_programs.code.task import CodeTask
from tradeassay_programs.code.validation import ValidateConfig, validate

SECRET = "5e" * 16
NAMES = list(families())
EACH = len(NAMES)


def test_families_are_many_and_split():
    splits = Counter(one.split for one in families().values())
    assert EACH >= 40 and min(splits.values()) >= 4 and splits["train"] > EACH / 2
    assert not {task.id for task in load_tasks()} & {task.id for task in draw_tasks("all", EACH, 1)}
    # Found by the whole judge: on a market that never closes the reference gave no order.
    assert all(task.market != "crypto" for task in draw_tasks("gap-go", 300, 31))


def test_variants_are_drawn_once_and_for_all():
    for name in NAMES:
        tasks = draw_tasks(name, 100, 4)
        assert tasks[:5] == draw_tasks(name, 5, 4) and tasks[7:9] == draw_tasks(name, 2, 4, start=7)
        assert load_task(tasks[5].id) == tasks[5]
        assert len({(task.formal, task.reference) for task in tasks}) > 98, name
        assert {task.expect.direction for task in tasks} == {"long", "short"}, name
        assert (
            len({task.sizing for task in tasks}) > 10 and len({task.market for task in tasks}) > 3
        ), name
        for task in tasks[:12]:
            sources = [task.reference, *(decoy.source for decoy in task.decoys)]
            assert all(ast.parse(source) for source in sources)
            assert len(set(sources)) == len(sources), f"{task.id}: a decoy is the reference"
            for words in (task.formal, task.conversational):
                assert "{" not in words and "  " not in words, task.id


@pytest.mark.slow
def test_thousands_of_variants_differ():
    # The family with the fewest numbers of its own still has thousands.
    assert len({task.formal for task in draw_tasks("weekday", 3000, 1)}) > 2000


def test_words_name_every_number_of_the_reference():
    known = {
        0.0,
        1.0,
        2.0,
        3.0,
        4.0,
        10.0,
        100.0,
    }  # indices, halves, percentages, and what a bar needs before it
    days = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}
    for task in draw_tasks("all", 2 * EACH, 8):
        said = {
            float(number)
            for number in re.findall(r"-?\d+(?:\.\d+)?", f"{task.formal} {task.conversational}")
        }
        said |= {abs(number) for number in said}
        for node in ast.walk(ast.parse(task.reference)):
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                number = float(node.value)
                assert (
                    number in known
                    or number in said
                    or any(abs(100 * number - one) < 1e-9 for one in said)
                    or any(day in task.formal for day in days)
                ), (task.id, number, task.formal)


def test_bad_requests_are_told():
    for family, count, said in (
        ("sma-corss", 1, "no family 'sma-corss' .*sma-cross"),
        ("sma-cross", -1, "count cannot be -1"),
    ):
        with pytest.raises(UserError, match=said):
            draw_tasks(family, count)
    with pytest.raises(UserError, match="no family 'nothing'"):
        load_task("gen-nothing-1-1")


def test_tasks_are_drawn_from_the_command_line():
    asked = ["tasks", "--family", "test", "--draw", "3", "--seed", "9", "--json"]
    done = CliRunner().invoke(code, asked)
    assert done.exit_code == 0
    assert msgspec.json.decode(done.stdout, type=list[CodeTask]) == list(draw_tasks("test", 3, 9))
    shown = CliRunner().invoke(code, ["tasks", "gen-rsi-low-1-2", "--reference"])
    assert shown.exit_code == 0 and load_task("gen-rsi-low-1-2").reference.strip() in shown.stdout
    refused = CliRunner().invoke(
        code, ["tasks", "--family", "test", "--draw", "3", "--sample", "2"]
    )
    assert refused.exit_code != 0


@pytest.mark.parametrize("name", ["percent-rank", pytest.param("all", marks=pytest.mark.slow)])
def test_a_reference_fed_bar_by_bar_decides_as_with_all_bars_at_hand(name):
    # A trained model's answer was the reference word by word, and refused: ``addminperiod`` does nothing in a
    # strategy, and a place before the first bar is one at the end of what is at hand.
    rules = exam_settings(SECRET)
    with open_code_executor() as executor:
        for task in draw_tasks(name, EACH if name == "all" else 1, 101):
            bars = drawn_bars(task, task.market, SECRET, 0, 0)
            (whole,) = run_programs(executor, task, [(task.reference, bars)], rules=rules)
            job = BacktestJob(
                source=task.reference, bars=bars, terms=terms_of(task), steps=rules.steps
            )
            (fed,) = fed_backtests(executor, [job])
            assert fed.ok and fed.fills == whole.fills, task.id


@pytest.mark.slow
def test_references_of_every_family_trade_on_drawn_markets():
    rules, quick = exam_settings(SECRET), DrawConfig(markets=2, redraws=0, extra_markets=0)
    with open_code_executor(2) as executor:
        for task in draw_tasks("all", 2 * EACH, 21):
            drawn = draw_markets(executor, task, "backtrader", rules, quick)
            assert len(drawn.markets) == 2, task.id
            assert not any("not run" in one.reason for one in drawn.again), task.id


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, EACH, 11))
def test_gold_passes_and_decoys_fail(start):
    with open_code_executor(2) as executor:
        config = ValidateConfig(rules=exam_settings(SECRET), threads=2)
        report = validate(draw_tasks("all", 3, 31, start=start), executor, config=config)
    gold = [line for line in report.lines if line.kind == "gold"]
    assert all(line.outcome == "solved" for line in gold), [line.reason for line in gold]
    passed = [
        line.name for line in report.lines if line.kind != "gold" and line.outcome == "solved"
    ]
    assert not passed
