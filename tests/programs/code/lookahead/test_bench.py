"""The benches are what they say, and the check finds all of them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradeassay_programs.code.lookahead.bench import (
    BenchCase,
    bench_columns,
    load_bench,
    measure_bench,
)
from tradeassay_programs.code.lookahead.futures import PRICES, TIME
from tradeassay_programs.code.lookahead.trace import Array, Columns, same
from tradeassay_programs.code.program_source import source_advice

sys.path.insert(0, str(Path(__file__).parents[4] / "perf"))
import leak_cases

pytestmark = pytest.mark.journey

CASES = load_bench()
LONG = {case.name: case for case in leak_cases.load_long_bench()}
QUICK = (
    "rare-one-in-a-thousand",
    "size-late",
    "volume-rarely",
    "length-even",
    "raises-off-the-grid",
    "honest-on-gaps",
)
HONEST = ("end-of-data-liquidation", "loop-with-stop")
RARE = {"one-bar-in-a-thousand": [135]}


def replay(
    decide: Callable[[Columns], dict[str, Any]], columns: Columns, rows: list[int]
) -> dict[str, Array]:
    """What the code decides on each of ``rows`` when it knows only that row and those before it.

    One flat bar follows, at the time of the true next one: closing out at the end of the data
    happens there, and it reveals nothing new.
    """
    decided: dict[str, list[Any]] = {}
    for row in rows:
        grown = {name: values[: row + 2].copy() for name, values in columns.items()}
        for name in grown:
            if name != TIME:
                grown[name][-1] = grown["close" if name in PRICES else name][-2]
        for name, values in decide(grown).items():
            decided.setdefault(name, []).append(values[row])
    return {name: np.asarray(values) for name, values in decided.items()}


def differing(case: BenchCase, rows: list[int]) -> int:
    columns = bench_columns(case.data)
    decide = case.decide()
    whole = decide(columns)
    alone = replay(decide, columns, rows)
    return sum(
        int((~same(np.asarray(whole[name])[rows], values, 1e-9)).sum())
        for name, values in alone.items()
    )


def some_rows(case: BenchCase, changes: int, others: int) -> list[int]:
    columns = bench_columns(case.data)
    rng = np.random.default_rng(0)
    last = len(columns["close"]) - 1
    decided = np.asarray(next(iter(case.decide()(columns).values())), dtype=np.float64)
    changed = np.flatnonzero(np.diff(decided))
    chosen = {
        *rng.permutation(changed[(changed < last - 1) & (changed > 30)] + 1)[:changes].tolist()
    }
    return RARE.get(case.name) or sorted(chosen | {*rng.integers(30, last, others).tolist()})


def test_leaky_cases_decide_otherwise_bar_by_bar_and_honest_ones_do_not():
    for case in CASES:
        rows = some_rows(case, 30, 60) if case.leaky else some_rows(case, 6, 3)
        for start in range(0, len(rows), 10):
            found = differing(case, rows[start : start + 10])
            if found:
                break
        assert bool(found) == case.leaky, case.name


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_on_every_bar(case):
    rows = list(range(60, len(bench_columns(case.data)["close"]) - 1))
    assert bool(differing(case, rows)) == case.leaky


SOME = [
    *[case for case in CASES if case.leaky][::6],
    *(case for case in CASES if case.name in HONEST),
]


@pytest.mark.parametrize(
    ("seed", "cases"),
    [
        (5, SOME),
        *(pytest.param(seed, CASES, marks=pytest.mark.slow) for seed in (5, 100, 101, 102)),
    ],
)
def test_leaks_are_found_and_no_honest_strategy_is_flagged(seed, cases):
    assert [line.name for line in measure_bench(seed, cases) if line.check != line.leaky] == []


def test_the_papers_checks_find_less():
    leaky = [case for case in CASES if case.leaky]
    ours = [bool(source_advice(case.source)) for case in leaky]
    papers = [bool(leak_cases.paper_rules(case.source)) for case in leaky]
    assert not any(
        leak_cases.guard_objects(case.source, bench_columns(case.data)) for case in leaky
    )
    assert sum(papers) < sum(ours) < len(leaky)
    assert any(source_advice(case.source) for case in CASES if not case.leaky)


def test_advice_names_the_line():
    source = (
        "def run(f):\n  a = f['close'].shift(-2)\n  for i in range(9):\n    b = a[i + 1]\n  "
        "return a[::-1]\n"
    )
    assert [(one.line, one.text) for one in source_advice(source)] == [
        (2, "shift with a negative step takes later rows"),
        (4, "an index ahead of the loop's own bar"),
        (5, "a slice that runs backwards"),
    ]
    assert source_advice("def broken(") == ()
    assert source_advice("x = frame.shift(1).rolling(5, center=False).mean()") == ()


def test_the_benches_are_large_enough():
    cases = (*CASES, *leak_cases.load_long_bench())
    assert sum(case.leaky for case in CASES) >= 20 and sum(not case.leaky for case in CASES) >= 8
    assert sum(case.leaky for case in cases) >= 60 and sum(not case.leaky for case in cases) >= 30
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize("name", [*QUICK, "latch", "closes-at-the-end", "half-of-the-table"])
def test_every_bar_of_a_short_series(name):
    (line,) = leak_cases.measure_long(252, 3, [LONG[name]])
    assert line.right, line
    assert line.leaky == (line.verdict == "leaky") or line.length


@pytest.mark.parametrize("name", ["rare-one-in-a-hundred", "late-last-percent", "expanding-mean"])
def test_changes_in_place_find_what_is_rare_or_late(name):
    case, bars = LONG[name], 20_000
    (line,) = leak_cases.measure_long(bars, 3, [case])
    assert (line.verdict == "leaky") == case.leaky and (line.verdict == "clean") != case.leaky, line


@pytest.mark.slow
@pytest.mark.parametrize("bars", [252, 2_500])
@pytest.mark.parametrize("case", LONG.values(), ids=lambda case: case.name)
def test_the_long_bench(case, bars):
    (line,) = leak_cases.measure_long(bars, 5, [case])
    assert line.right, line
