"""Markets with spells, and what of a reference is asked of the markets at all."""

import msgspec
import numpy as np

from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.code.judges.markets import is_stated, mutants_of, spelled_bars
from tradeassay_programs.code.task import CannotMatter

SECRET = "ab" * 16


def test_markets_with_spells_are_bars_and_follow_from_the_secret():
    task = load_task("d-nr7-oco")
    for draw in range(4):
        feed = spelled_bars(task, SECRET, draw).feeds["A"]
        assert (feed["high"] >= np.maximum(feed["open"], feed["close"])).all()
        assert (feed["low"] <= np.minimum(feed["open"], feed["close"])).all() and (
            feed["low"] > 0
        ).all()
    again, other = (
        spelled_bars(task, secret, 1).feeds["A"]["close"] for secret in (SECRET, "cd" * 16)
    )
    feed = spelled_bars(task, SECRET, 1).feeds["A"]
    assert (feed["close"] == again).all() and not (feed["close"] == other).all()
    assert (feed["high"] == feed["low"]).mean() > 0.05, "every other one has frequent halts"


def test_stated_constants_and_branches_with_orders_are_asked_for():
    task = load_task("d-nr7-oco")
    asked = {
        (one.line, one.change)
        for one in mutants_of(task.reference)
        if is_stated(one, task, "backtrader")
    }
    assert (5, "3 -> 4") in asked
    branches = [one for one in mutants_of(task.reference) if one.kind == "condition" and one.orders]
    assert branches and all((one.line, one.change) in asked for one in branches)
    known = CannotMatter(change="3 -> 4", line=5, why="for the test")
    told = msgspec.structs.replace(task, cannot_matter=(known,))
    left = {
        (one.line, one.change)
        for one in mutants_of(task.reference)
        if is_stated(one, told, "backtrader")
    }
    assert asked - left == {(5, "3 -> 4")}


def test_doubled_constants_stand_at_the_same_places():
    source = load_task("d-nr7-oco").reference
    moved, doubled = (
        {one.place: one for one in mutants_of(source, doubled=flag) if one.kind == "constant"}
        for flag in (False, True)
    )
    assert moved.keys() == doubled.keys()
    assert all(moved[place].line == doubled[place].line for place in moved)
    assert "3 -> 6" in {one.change for one in doubled.values()}
