"""The tasks that ship: how many of which kind, complete in both wordings, no two references
alike.
"""

import ast
import difflib
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from tradeassay.core.errors import UserError
from tradeassay.core.syntax import syntax_tree
from tradeassay_programs.benchmarks.quantcode import load_task, load_tasks, read_task, read_tasks
from tradeassay_programs.code.bars import MARKETS
from tradeassay_programs.code.collapse import shape_lines
from tradeassay_programs.code.program_source import check_compiles
from tradeassay_programs.code.task import (
    FAMILIES,
    TIMEFRAMES,
    CodeTask,
    Decoy,
    Expectations,
    OrderKind,
    Sizing,
)

TASKS = load_tasks()
DAILY = tuple(task for task in TASKS if task.timeframe == "1d")
WORDS_IN_FULL = 30
SPELT = {
    1: "one|a single",
    2: "two",
    3: "three",
    5: "five",
    10: "ten",
    20: "twenty",
    25: "quarter",
    50: "half",
}
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
    assert len(TASKS) >= 120 and len(DAILY) >= 66
    assert [task.id for task in TASKS] == sorted(task.id for task in TASKS) and load_task(
        TASKS[0].id
    ) is TASKS[0]
    assert {task.family for task in TASKS} == set(FAMILIES)
    assert {task.timeframe for task in TASKS} == set(TIMEFRAMES) - {"30m"}  # the public file's
    assert sum(task.assets > 1 for task in DAILY) >= 10
    kinds = Counter(kind for task in TASKS for kind in task.expect.order_kinds)
    assert all(kinds[kind] >= 3 for kind in get_args(OrderKind)), kinds
    for difficulty, share in (("easy", 0.5), ("medium", 0.3), ("hard", 0.2)):
        assert abs(sum(task.difficulty == difficulty for task in TASKS) / len(TASKS) - share) < 0.06
    decoys = [decoy for task in TASKS for decoy in task.decoys]
    stages = Counter(decoy.fails_at for decoy in decoys)
    assert set(stages) == {"compile", "backtest", "trade", "judge", "lookahead", "trick"}
    assert stages["judge"] > 0.6 * len(decoys) and len({decoy.kind for decoy in decoys}) >= 12


def test_a_task_is_complete_and_both_its_wordings_stand_alone():
    for task in TASKS:
        assert task.market in MARKETS and task.has_reference and task.decoys, task.id
        assert check_compiles(task.reference).status == "passed", task.id
        assert (task.assets > 1) == (
            task.family == "multi-asset"
        ) or task.family != "multi-asset", task.id
        for decoy in task.decoys:
            assert decoy.source.strip() != task.reference.strip(), task.id
            broken = check_compiles(decoy.source).status == "failed"
            assert broken == (decoy.fails_at == "compile"), (task.id, decoy.name)
        formal, conversational = (text.split() for text in (task.formal, task.conversational))
        assert min(len(formal), len(conversational)) >= WORDS_IN_FULL, task.id
        alike = difflib.SequenceMatcher(None, formal, conversational, autojunk=False).ratio()
        assert alike < 0.6, f"{task.id}: the same text twice"
        if task.sizing.kind != "own":
            spelt = SPELT.get(int(task.sizing.value), "$^")
            named = re.compile(rf"\b({task.sizing.value:g}|{spelt})\b", re.IGNORECASE)
            assert named.search(task.formal) and named.search(task.conversational), (
                f"{task.id}: no word on size"
            )


def normalised(source: str) -> str:
    """A syntax tree without constants and without any name: not of variables, and not of
    libraries either.
    """
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
        assert Counter(shape(task.reference) for task in TASKS).most_common(1)[0][1] <= 3


BAD = (
    ('title = "Buy once"', 'titel = "Buy once"', "did you mean title"),
    ('kind = "fixed"', 'knid = "fixed"', "did you mean kind"),
    ('kind = "fixed"', 'kind = "some"', "some"),
    ('kind = "fixed"', 'kind = "fixed"\nvalue = 0', "must be positive"),
    ("bars = 50", "bars = 0", "at least 1"),
    ('id = "tiny"', 'id = "Tiny Task"', "lower-case"),
    ('"Buy on the first bar."', '" "', "formal wording is empty"),
    ("bars = 50", "bars = 50\nagreement = 2.0", "agreement"),
    ("bars = 50", "bars = 50\ncommission = 1.0", "commission"),
    ("bars = 50", "bars = = 50", "not TOML"),
    ("market = ", "# market = ", "market"),
    ("[sizing]", "[expect]\nmin_trades = 0\n[sizing]", "below 1"),
    ("[sizing]", "[expect]\nmin_trades = 9\nmax_trades = 3\n[sizing]", "max_trades"),
)


def test_a_bad_file_is_refused_in_one_line():
    for old, new, said in BAD:
        assert old in TINY
        with pytest.raises(UserError, match=said) as caught:
            read_task(TINY.replace(old, new), "tiny.toml")
        assert "tiny.toml" in str(caught.value) and "\n" not in str(caught.value)
    decoy = '[[decoys]]\nname = "a"\nkind = "crash"\nfails_at = "backtest"\nsource = ""\n'
    with pytest.raises(UserError, match="same name"):
        read_task(TINY + 2 * decoy, "tiny.toml")


def test_a_folder_of_ones_own_tasks(tmp_path):
    def refused(said: str, folder: Path = tmp_path) -> None:
        with pytest.raises(UserError, match=said):
            read_tasks(folder)

    refused("no tasks in")
    refused("not a folder", tmp_path / "nowhere")
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "notes.md").write_text("not a task")
    (task,) = read_tasks(tmp_path)
    assert task.wordings == ("formal",) and task.text("formal") == "Buy on the first bar."
    assert task.text("conversational") is None and task.text("formal", "frame") is None
    (tmp_path / "other.toml").write_text(TINY)
    refused(r"name it tiny\.toml")
    with pytest.raises(UserError, match="did you mean d-sma-cross-long"):
        load_task("d-sma-cros-long")


def test_every_key_is_on_the_page():
    page = (Path(__file__).resolve().parents[4] / "docs/reference/quantcode-tasks.md").read_text()
    keys = {
        key for part in (CodeTask, Sizing, Expectations, Decoy) for key in part.__struct_fields__
    }
    assert not [key for key in keys if f"`{key}`" not in page and f"[{key}]" not in page]
