"""The tasks that ship: how many of which kind, complete in both wordings, no two references alike."""

import ast
import difflib
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from tradeassay.benchmarks.quantcode import load_task, load_tasks, read_task, read_tasks
from tradeassay.code.bars import MARKETS
from tradeassay.code.collapse import shape_lines
from tradeassay.code.program_source import check_compiles
from tradeassay.code.task import FAMILIES, TIMEFRAMES, CodeTask, Decoy, Expectations, OrderKind, Sizing
from tradeassay.core.errors import UserError
from tradeassay.core.syntax import syntax_tree

TASKS = load_tasks()
DAILY = tuple(task for task in TASKS if task.timeframe == "1d")
WORDS_IN_FULL = 30
SPELT = {1: "one|a single", 2: "two", 3: "three", 5: "five", 10: "ten", 20: "twenty", 25: "quarter", 50: "half"}
TINY = """
id = "tiny"
title = "Buy once"
difficulty = "easy"
timeframe = "1d"
family = "trend"
market = "us"
bars = 50
formal = "Buy on the first bar."
reference = "import backtrader"
[sizing]
kind = "fixed"
"""


def test_there_are_enough_tasks_of_every_kind():
    assert len(TASKS) >= 120
    assert len(DAILY) >= 66
    assert {task.family for task in TASKS} == set(FAMILIES)
    assert {task.timeframe for task in TASKS} == set(TIMEFRAMES) - {"30m"}  # the public file's
    assert sum(task.assets > 1 for task in DAILY) >= 10
    kinds = Counter(kind for task in TASKS for kind in task.expect.order_kinds)
    assert all(kinds[kind] >= 3 for kind in get_args(OrderKind)), kinds


@pytest.mark.parametrize(("difficulty", "share"), [("easy", 0.5), ("medium", 0.3), ("hard", 0.2)])
def test_difficulties_are_spread_as_the_benchmark_says(difficulty, share):
    found = sum(task.difficulty == difficulty for task in TASKS) / len(TASKS)
    assert abs(found - share) < 0.06


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_a_task_is_complete_and_both_its_wordings_stand_alone(task):
    assert task.market in MARKETS
    assert task.has_reference
    assert task.decoys
    assert check_compiles(task.reference).status == "passed"
    assert (task.assets > 1) == (task.family == "multi-asset") or task.family != "multi-asset"
    for decoy in task.decoys:
        assert decoy.source.strip() != task.reference.strip()
        assert (check_compiles(decoy.source).status == "failed") == (decoy.fails_at == "compile"), decoy.name
    formal, conversational = (text.split() for text in (task.formal, task.conversational))
    assert min(len(formal), len(conversational)) >= WORDS_IN_FULL
    alike = difflib.SequenceMatcher(None, formal, conversational, autojunk=False).ratio()
    assert alike < 0.6, "the same text twice"
    if task.sizing.kind != "own":
        spelt = SPELT.get(int(task.sizing.value), "$^")
        named = re.compile(rf"\b({task.sizing.value:g}|{spelt})\b", re.IGNORECASE)
        assert named.search(task.formal) and named.search(task.conversational), "no word about the size"


def normalised(source: str) -> str:
    """A syntax tree without constants and without any name: not of variables, and not of libraries either."""
    tree = syntax_tree(source)
    for node in ast.walk(tree):
        for field in ("id", "name", "asname", "attr", "arg", "module"):
            if hasattr(node, field):
                setattr(node, field, "_")
        if isinstance(node, ast.Constant):
            node.value = 0
    return ast.dump(tree)


def test_at_most_three_references_share_a_syntax_tree():
    for shape in (normalised, shape_lines):
        most = Counter(shape(task.reference) for task in TASKS).most_common(1)[0][1]
        assert most <= 3


def test_normalising_sees_through_names_and_numbers():
    first = "import backtrader as bt\nx = bt.SMA(period=10)\n"
    assert normalised(first) == normalised("import other as o\nlonger = o.EMA(days=99)\n")
    assert normalised(first) != normalised("import backtrader as bt\nx = bt.SMA(10, period=10)\n")


def test_decoys_are_of_many_kinds_and_most_are_for_the_judge():
    decoys = [decoy for task in TASKS for decoy in task.decoys]
    stages = Counter(decoy.fails_at for decoy in decoys)
    assert set(stages) == {"compile", "backtest", "trade", "judge", "lookahead", "trick"}
    assert stages["judge"] > 0.6 * len(decoys)
    assert len({decoy.kind for decoy in decoys}) >= 12


def test_tasks_come_in_the_order_of_their_ids():
    assert [task.id for task in TASKS] == sorted(task.id for task in TASKS)
    assert load_task(TASKS[0].id) is TASKS[0]


def test_an_unknown_task_is_met_with_near_names():
    with pytest.raises(UserError, match="did you mean d-sma-cross-long"):
        load_task("d-sma-cros-long")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "Buy once"', 'titel = "Buy once"', "did you mean title"),
        ('kind = "fixed"', 'knid = "fixed"', "did you mean kind"),
        ('kind = "fixed"', 'kind = "some"', "some"),
        ('kind = "fixed"', 'kind = "fixed"\nvalue = 0', "not above zero"),
        ("bars = 50", "bars = 0", "at least 1"),
        ('id = "tiny"', 'id = "Tiny Task"', "lower-case"),
        ('"Buy on the first bar."', '" "', "formal wording is empty"),
        ("bars = 50", "bars = 50\nagreement = 2.0", "agreement"),
        ("bars = 50", "bars = 50\ncommission = 1.0", "commission"),
        ("bars = 50", "bars = = 50", "not TOML"),
        ("market = ", "# market = ", "market"),
        ("[sizing]", "[expect]\nmin_trades = 0\n[sizing]", "below 1"),
        ("[sizing]", "[expect]\nmin_trades = 9\nmax_trades = 3\n[sizing]", "max_trades"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(old, new, said):
    assert old in TINY
    with pytest.raises(UserError, match=said) as caught:
        read_task(TINY.replace(old, new), "tiny.toml")
    assert "tiny.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_decoys_of_one_name_are_refused():
    decoy = '[[decoys]]\nname = "a"\nkind = "crash"\nfails_at = "backtest"\nsource = ""\n'
    with pytest.raises(UserError, match="same name"):
        read_task(TINY + 2 * decoy, "tiny.toml")


def test_a_folder_of_ones_own_tasks(tmp_path):
    with pytest.raises(UserError, match="no tasks in"):
        read_tasks(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "notes.md").write_text("not a task")
    (task,) = read_tasks(tmp_path)
    assert task.wordings == ("formal",)
    assert task.text("formal") == "Buy on the first bar."
    assert task.text("conversational") is None
    assert task.text("formal", "frame") is None
    (tmp_path / "other.toml").write_text(TINY)
    with pytest.raises(UserError, match=r"name it tiny\.toml"):
        read_tasks(tmp_path)
    with pytest.raises(UserError, match="not a folder"):
        read_tasks(tmp_path / "nowhere")


ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "quantcode-tasks.md").read_text()


def test_every_key_is_on_the_page():
    missing = [
        field.name
        for part in (CodeTask, Sizing, Expectations, Decoy)
        for field in msgspec.structs.fields(part)
        if f"`{field.name}`" not in PAGE and f"[{field.name}]" not in PAGE
    ]
    assert missing == []
