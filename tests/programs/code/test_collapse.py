"""Many tasks, one program: the detector groups by shape, not by wording."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from tradeassay.core.errors import UserError
from tradeassay_programs.code.collapse import (
    CollapseConfig,
    EarlyStop,
    collapse,
    forgetting,
    shape_lines,
)
from tradeassay_programs.code.extraction import extract

SMA = '''
import backtrader as bt

class Crossing(bt.Strategy):
    """Buys crossings."""
    params = (("fast", 10), ("slow", 30))

    def __init__(self):
        self.up = bt.indicators.SMA(period=self.p.fast)
        self.down = bt.indicators.SMA(period=self.p.slow)

    def next(self):
        # decide
        if self.up[0] > self.down[0] and not self.position:
            self.buy()
        elif self.up[0] < self.down[0]:
            self.close()
'''
RENAMED = """
import backtrader as bt
class TotallyDifferentRsiIdea(bt.Strategy):
    params = (("rsi_period", 14), ("limit", -70))
    def __init__(self):
        self.rsi = bt.indicators.SMA(period=self.p.rsi_period)
        self.atr = bt.indicators.SMA(period=self.p.limit)
    def next(self):
        if self.rsi[0] > self.atr[0] and not self.position:
            self.buy()
        elif self.rsi[0] < self.atr[0]:
            self.close()
"""
RSI = SMA.replace("bt.indicators.SMA(period=self.p.fast)", "bt.indicators.RSI(period=self.p.fast)")
SHORT = SMA.replace("self.buy()", "self.sell()")


def test_names_numbers_texts_and_comments_are_no_part_of_a_shape():
    assert shape_lines(SMA) == shape_lines(RENAMED)
    assert shape_lines("def (:") is None
    assert shape_lines("x = '\0'") is None


@pytest.mark.parametrize(
    "other",
    [
        RSI,
        SHORT,
        SMA.replace(">", ">=", 1),
        SMA.replace("not self.position", "True"),
        SMA.replace("def next", "def stop"),  # hooks of the framework keep their names
    ],
)
def test_another_indicator_side_or_condition_is_another_shape(other):
    assert shape_lines(SMA) != shape_lines(other)


def test_one_program_for_many_tasks_is_a_collapse():
    programs = {f"t{n}": SMA.replace("10", str(n + 5)) for n in range(6)} | {
        "own": RSI,
        "bad": "def (",
    }
    report = collapse(programs)
    assert report.collapsed and report.tasks == 7 and report.unreadable == ("bad",)
    assert report.clusters[0].tasks == tuple(f"t{n}" for n in range(6))
    assert report.largest_share == pytest.approx(6 / 7)
    assert [len(cluster.tasks) for cluster in report.clusters] == [6, 1]


def test_few_tasks_or_a_small_share_are_none():
    assert not collapse({"a": SMA, "b": RENAMED}).collapsed
    lone = {
        f"v{n}": SMA.replace("self.buy()", f"self.buy()\n            self.log{n}()")
        for n in range(4)
    }
    assert not collapse(lone, CollapseConfig(similarity=1.0, least=2, share=0.5)).collapsed


def test_a_template_with_a_line_more_is_still_the_template():
    lines = "\n".join(f"        self.a{n} = bt.indicators.EMA(period={n})" for n in range(40))
    long = SMA.replace("    def next", lines + "\n\n    def next", 1)
    more = long.replace("self.close()", "self.close()\n            self.log('sold')")
    assert len(collapse({"a": long, "b": more}).clusters) == 1
    assert len(collapse({"a": long, "b": more}, CollapseConfig(similarity=1.0)).clusters) == 2


def test_nothing_to_look_at_is_said():
    report = collapse({"a": "class ("})
    assert report.largest_share is None and report.reason and not report.collapsed
    assert collapse({}).largest_share is None


RECORDED = Path(__file__).parents[3] / "examples" / "training" / "recorded" / "samples.jsonl.xz"
SAFE = "few references, safe loop, seed 3"


@pytest.fixture(scope="module")
def examined() -> dict[tuple[str, str, str], dict[str, dict[str, Any]]]:
    found: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    with lzma.open(RECORDED, "rt") as file:
        for line in map(json.loads, file):
            found.setdefault((line["arm"], line["when"], line["set"]), {})[line["task"]] = line
    return found


@pytest.mark.parametrize(
    "which", ["seen families", pytest.param("unseen families", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("arm", "when", "forgets"),
    [
        ("judge", "after", False),
        ("no judge", "after", True),
        pytest.param(SAFE, "after", False, marks=pytest.mark.slow),
        pytest.param("few references, safe loop, seed 4", "after", False, marks=pytest.mark.slow),
        pytest.param("few references, safe loop, seed 5", "after", False, marks=pytest.mark.slow),
        pytest.param("few references, seed 1", "step 46", True, marks=pytest.mark.slow),
        pytest.param("few references, seed 1", "after", True, marks=pytest.mark.slow),
        pytest.param("few references, seed 2", "step 25", True, marks=pytest.mark.slow),
    ],
)
def test_recorded_training_that_forgot_its_tasks_is_told(examined, which, arm, when, forgets):
    def near(at: str) -> dict[str, float]:
        lines = examined[arm, at, which]
        stages = ("compile", "backtest", "trade")
        return {
            task: sum(v for k, v in one["parts"].items() if k not in stages)
            for task, one in lines.items()
        }

    found = forgetting(near("after the warm start"), near(when))
    assert found.high is not None and (found.high < 0.0) == forgets, found
    programs = {
        task: extract(line["answer"]).code or ""
        for task, line in examined[arm, when, which].items()
    }
    report = collapse(programs)
    gone = arm == "few references, seed 2"
    assert report.collapsed == gone and ("cannot be read" in report.reason) == gone
    assert forgetting({}, {}).reason == "fewer than two tasks were examined both times"


def test_early_stop_keeps_the_best_goes_back_when_it_falls_and_ends_the_third_time(examined):
    early = EarlyStop()
    start = {f"task-{n}": 0.5 + 0.01 * (n % 5) for n in range(40)}
    noise = {
        task: value + (0.2 if n % 2 else -0.2) for n, (task, value) in enumerate(start.items())
    }
    better, worse = ({task: value + by for task, value in start.items()} for by in (0.1, -0.1))
    said = [early.advise(one) for one in (start, noise, better, start, better, worse, worse)]
    assert said == ["best", "go on", "best", "back", "go on", "back", "stop"]
    with pytest.raises(UserError, match="the same tasks"):
        early.advise({"task-1": 1.0})
    # The run that forgot its tasks would have been sent back at its second examination.
    arm, which = "few references, seed 1", "seen families"
    states = [
        {task: one["value"] for task, one in examined[arm, when, which].items()}
        for when in ("after the warm start", "step 46")
    ]
    tasks = set.intersection(*map(set, states))
    early = EarlyStop()
    assert [early.advise({task: state[task] for task in tasks}) for state in states] == [
        "best",
        "back",
    ]
    # The run that learned was told to go on by every look at its held-out tasks.
    early = EarlyStop()
    for when in ("step 0", "step 18", "step 36", "step 55", "step 68"):
        lines = examined[SAFE, when, "validation"]
        assert (
            len(lines) == 84
            and early.advise({task: one["value"] for task, one in lines.items()}) == "best"
        )
