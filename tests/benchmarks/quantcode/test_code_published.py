"""The paper's tables as data, and the classes of failure they are compared by."""

import pytest

from tradeassay.benchmarks.exhibits import printed
from tradeassay.benchmarks.quantcode.tables import why_not_comparable
from tradeassay.code.checks import FAILURES, classify_run, failed


def test_the_tables_are_whole():
    tables = printed("quantcode")
    assert len(tables["single_turn"]) == len(tables["agentic"]) == 17
    sources = tables["sources"]
    assert sum(row[level] for row in sources for level in ("easy", "medium", "hard")) == tables["tasks"] == 400
    for stages in ("single_turn_stages", "agentic_stages"):
        assert sum(row["share"] for row in tables[stages]) == pytest.approx(100.0)
    ends = {row["stage"]: row["share"] for row in tables["single_turn_stages"]}
    failures = sum(row["share"] for row in tables["failures"])
    assert failures == pytest.approx(100.0 - ends["no_code"] - ends["solved"])


def test_rows_by_hand():
    tables = printed("quantcode")
    assert list(tables["single_turn"][0].values()) == ["claude-opus-4.6", 100, 98.2, 77.2, 75.8]
    last = tables["agentic"][-1]
    assert [last[name] for name in ("model", "mean_turns", "t1", "t10")] == ["qwen3-1.7b", 9.2, 7.8, 14.2]
    # T1 of the agentic table is the single-turn result, and T10 its judge rate.
    single = {row["model"]: row["judge"] for row in tables["single_turn"]}
    assert all(single[row["model"]] == row["t1"] and row["t10"] == row["judge"] for row in tables["agentic"])
    by_class = {row["class"]: row["share"] for row in tables["failures"]}
    assert all(by_class[row["class"]] == row["turn_1"] for row in tables["failure_turns"])


def test_every_class_of_the_paper_is_one_of_ours():
    ours = {info.id: info.paper for info in FAILURES if info.paper}
    assert {row["class"]: row["name"] for row in printed("quantcode")["failures"]} == ours
    assert {row["class"] for row in printed("quantcode")["failure_turns"]} <= ours.keys()


def test_it_is_said_why_numbers_are_not_comparable():
    reasons = why_not_comparable(public_tasks=False, tasks=120, turns=5)
    assert any("tasks" in reason for reason in reasons) and any("5 turns" in reason for reason in reasons)
    nearest = why_not_comparable(public_tasks=True, real_data=True, tasks=400, decided_by="language")
    assert len(nearest) == 2


@pytest.mark.parametrize(
    ("error", "message", "expected"),
    [
        ("TypeError", "__bool__ should return bool, returned LineOwnOperation", "line-object"),
        ("TypeError", "'<' not supported between instances of 'LineBuffer' and 'float'", "line-object"),
        (
            "TypeError",
            "Argument 'real' has incorrect type (expected numpy.ndarray, got LineBuffer)",  # TA-Lib on a line
            "line-object",
        ),
        ("AttributeError", "module 'backtrader.indicators' has no attribute 'VWAP'", "missing-attribute"),
        ("AttributeError", "'Lines_LineSeries_DataSeries' object has no attribute 'hl2'", "missing-attribute"),
        ("AttributeError", "'NoneType' object has no attribute 'price'", "type-or-none"),
        ("TypeError", "__init__() got an unexpected keyword argument 'period_fast'", "wrong-api-params"),
        ("TypeError", "next() takes 1 positional argument but 2 were given", "wrong-api-params"),
        ("TypeError", "unsupported operand type(s) for +: 'NoneType' and 'float'", "type-or-none"),
        ("IndexError", "array index out of range", "index-out-of-range"),
        ("SyntaxError", "invalid syntax", "syntax-at-runtime"),
        ("ZeroDivisionError", "float division by zero", "other-runtime"),
        ("cpu_timeout", "used 10 s", "timeout"),
        ("wall_timeout", "not done", "timeout"),
        ("oom_killed", "killed", "resources"),
        ("network_attempt", "refused", "forbidden"),
        ("forbidden_import", "requests", "forbidden"),
        ("crashed", "SIGSEGV", "other-runtime"),
    ],
)
def test_errors_are_sorted_as_the_paper_does(error, message, expected):
    assert classify_run(failed(f"{error}: {message}", error)) == expected
