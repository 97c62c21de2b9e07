"""The paper's tables as data, and the classes of failure they are compared by."""

import pytest

from tradeassay_bench.benchmarks.exhibits import load_published
from tradeassay_programs.benchmarks.quantcode.tables import why_not_comparable
from tradeassay_programs.code.checks import FAILURES, classify_run, failed


def test_the_tables_are_whole_and_name_our_classes():
    tables = load_published("quantcode")
    assert len(tables["single_turn"]) == len(tables["agentic"]) == 17
    assert list(tables["single_turn"][0].values()) == ["claude-opus-4.6", 100, 98.2, 77.2, 75.8]
    last = tables["agentic"][-1]
    assert [last[name] for name in ("model", "mean_turns", "t1", "t10")] == [
        "qwen3-1.7b",
        9.2,
        7.8,
        14.2,
    ]
    # T1 of the agentic table is the single-turn result, and T10 its judge rate.
    single = {row["model"]: row["judge"] for row in tables["single_turn"]}
    assert all(
        single[row["model"]] == row["t1"] and row["t10"] == row["judge"]
        for row in tables["agentic"]
    )
    levels = ("easy", "medium", "hard")
    assert (
        sum(row[level] for row in tables["sources"] for level in levels) == tables["tasks"] == 400
    )
    for stages in ("single_turn_stages", "agentic_stages"):
        assert sum(row["share"] for row in tables[stages]) == pytest.approx(100.0)
    ends = {row["stage"]: row["share"] for row in tables["single_turn_stages"]}
    shares = {row["class"]: row["share"] for row in tables["failures"]}
    assert sum(shares.values()) == pytest.approx(100.0 - ends["no_code"] - ends["solved"])
    assert all(shares[row["class"]] == row["turn_1"] for row in tables["failure_turns"])
    ours = {info.id: info.paper for info in FAILURES if info.paper}
    assert {row["class"]: row["name"] for row in tables["failures"]} == ours


def test_it_is_said_why_numbers_are_not_comparable():
    reasons = why_not_comparable(public_tasks=False, tasks=120, turns=5)
    assert any("tasks" in reason for reason in reasons) and any(
        "5 turns" in reason for reason in reasons
    )
    assert (
        len(why_not_comparable(public_tasks=True, real_data=True, tasks=400, decided_by="language"))
        == 2
    )


ERRORS = """
line-object: TypeError: __bool__ should return bool, returned LineOwnOperation
line-object: TypeError: '<' not supported between instances of 'LineBuffer' and 'float'
line-object: TypeError: Argument 'real' has incorrect type (expected numpy.ndarray, got LineBuffer)
missing-attribute: AttributeError: module 'backtrader.indicators' has no attribute 'VWAP'
missing-attribute: AttributeError: 'Lines_LineSeries_DataSeries' object has no attribute 'hl2'
type-or-none: AttributeError: 'NoneType' object has no attribute 'price'
wrong-api-params: TypeError: __init__() got an unexpected keyword argument 'period_fast'
wrong-api-params: TypeError: next() takes 1 positional argument but 2 were given
type-or-none: TypeError: unsupported operand type(s) for +: 'NoneType' and 'float'
index-out-of-range: IndexError: array index out of range
syntax-at-runtime: SyntaxError: invalid syntax
other-runtime: ZeroDivisionError: float division by zero
timeout: cpu_timeout: used 10 s
timeout: wall_timeout: not done
resources: oom_killed: killed
forbidden: network_attempt: refused
forbidden: forbidden_import: requests
other-runtime: crashed: SIGSEGV
"""


def test_errors_are_sorted_as_the_paper_does():
    for line in ERRORS.strip().splitlines():
        expected, error, message = line.split(": ", 2)
        assert classify_run(failed(f"{error}: {message}", error)) == expected, line
