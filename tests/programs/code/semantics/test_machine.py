"""The rule language and the machine that runs it, against cases worked by hand."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay_programs.code.semantics.interpreter import (
    calendar_of,
    check_semantics,
    evaluate,
    interpret,
    is_pointwise,
    names_in,
    read_semantics,
    semantics_schema,
)


def rule(id, given, when, to, target, **more):
    target = {"X": target}
    return {
        "id": id,
        "from": [given],
        "when": when,
        "to": to,
        "signal": id.upper(),
        "target": target,
        **more,
    }


CROSS = {
    "id": "cross",
    "version": 1,
    "title": "Two means",
    "inputs": {"legs": ["X"], "timeframes": ["1d"]},
    "parameters": {"fast": {"value": 2, "kind": "int"}, "slow": {"value": 3, "kind": "int"}},
    "indicators": {
        "gap": "quick - calm",
        "quick": "mean(X.close, fast)",
        "calm": "mean(X.close, slow)",
    },
    "states": ["flat", "long"],
    "registers": {"entry": 0.0},
    "rules": [
        rule("stop", "long", "X.close < 0.9 * entry", "flat", "0"),
        rule("out", "long", "gap < 0", "flat", "0"),
        rule("in", "flat", "gap > 0", "long", "1", set={"entry": "X.close"}),
    ],
    "constraints": {"max_exposure": 1.0, "max_trades_per_bar": 1},
    "conventions": {},
}


def cross(**changed):
    return read_semantics(json.dumps({**CROSS, **changed}).encode())


def days(n: int) -> np.ndarray:
    return np.datetime64("2022-01-03") + np.arange(n)


def bars(close) -> dict:
    close = np.asarray(close, dtype=float)
    return {
        "X": {
            "open": close,
            "high": close + 1,
            "low": close - 1,
            "close": close,
            "volume": np.ones(close.size),
        }
    }


@pytest.mark.parametrize(
    ("close", "parameters", "rows", "shares", "signals"),
    [
        # fast - slow: -   -   0  .17 .33 .33 -.17 -.5 0
        ([10, 10, 10, 11, 12, 12, 11, 10, 12], {}, [3, 6], [1.0, 0.0], [2, 1]),
        (
            [10, 10, 10, 11, 9.8],
            {},
            [3, 4],
            [1.0, 0.0],
            [2, 0],
        ),  # the stop comes first and knows its entry
        ([10, 10, 11, 12, 13, 14], {}, [2], [1.0], [2]),
        ([10, 10, 11, 12, 13, 14], {"slow": 5}, [4], [1.0], [2]),
        ([1.0, 2.0], {}, [], [], []),  # nothing fires while an indicator is undefined
    ],
)
def test_a_cross_by_hand(close, parameters, rows, shares, signals):
    numbers = CROSS["parameters"] | {
        name: {"value": value, "kind": "int"} for name, value in parameters.items()
    }
    found = interpret(cross(parameters=numbers), bars(close), days(len(close)))
    assert found.row.tolist() == rows
    assert (found.fraction.tolist(), found.signal.tolist()) == (shares, signals)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(1, 100), min_size=8, max_size=40), st.integers(4, 39))
def test_the_machine_never_looks_ahead(close, cut):
    cut = min(cut, len(close))
    whole = interpret(cross(), bars(close), days(len(close)))
    part = interpret(cross(), bars(close[:cut]), days(cut))
    assert whole.row[whole.row < cut].tolist() == part.row.tolist()


@given(
    st.lists(st.floats(1.0, 100.0), min_size=5, max_size=40),
    st.sampled_from(["gap > 0", "isnan(gap)", "row > 7"]),
)
def test_a_rule_of_the_bars_alone_fires_as_one_that_is_asked_bar_by_bar(close, when):
    made = [
        interpret(
            cross(rules=[CROSS["rules"][1], rule("in", "flat", text, "long", "1")]),
            bars(close),
            days(len(close)),
        )
        for text in (when, f"({when}) and entry == entry")
    ]
    assert made[0].row.tolist() == made[1].row.tolist()
    assert made[0].fraction.tolist() == made[1].fraction.tolist()


def test_functions_by_hand():
    x = np.array([1.0, 2.0, 3.0, 6.0])

    def made(text: str, values: np.ndarray = x) -> np.ndarray:
        return evaluate(text, {"x": values})

    assert made("mean(x, 2)")[1:].tolist() == [1.5, 2.5, 4.5]
    assert made("std(x, 2, 0)")[1:].tolist() == [0.5, 0.5, 1.5]
    assert made("std(x, 3, 1)", np.full(3, 0.1))[2] == 0.0
    assert made("prev(x, 1)")[1:].tolist() == [1.0, 2.0, 3.0]
    assert made("ema(x, 2)")[1:].tolist() == pytest.approx([1.5, 2.5, 2.5 + 2 / 3 * 3.5])
    assert made("wilder(x, 2)")[1:].tolist() == pytest.approx([1.5, 2.25, 4.125])
    assert np.isnan(made("mean(x, 2)", np.array([1.0, np.nan, 2.0]))[1:]).all()


def test_sessions_by_hand():
    times = np.array(
        ["2022-01-03T10", "2022-01-03T11", "2022-01-04T10", "2022-01-04T11", "2022-01-05T10"],
        "M8[h]",
    )
    calendar = calendar_of(times)
    assert calendar.session.tolist() == [0, 0, 1, 1, 2]
    assert calendar.last.tolist() == [0, 1, 0, 1, 1]

    def made(text: str) -> np.ndarray:
        return evaluate(text, {"x": np.array([5.0, 7.0, 6.0, 4.0, 9.0])}, calendar)

    assert made("day_open(x)").tolist() == [5, 5, 6, 6, 9]
    assert made("day_high(x, 1)")[2:].tolist() == [7, 7, 6]
    assert made("day_close(x)")[2:].tolist() == [7, 7, 4]
    assert made("day_low(x, 2)")[4] == 4
    assert made("high_so_far(x)").tolist() == [5, 7, 6, 6, 9]


def test_expressions():
    values = {"a": np.array([1.0, np.nan, 3.0]), "k": 2.0, "X.close": np.array([1.0, 2.0, 3.0])}
    assert evaluate("a < k", values).tolist() == [1, 0, 0]
    assert evaluate("a != k", values).tolist() == [1, 0, 1]
    assert evaluate("not a < k", values).tolist() == [0, 1, 1]
    tie = {"x": np.array([0.1 + 0.2, 0.3 + 1e-6]), "y": 0.3}
    assert evaluate("x > y", tie).tolist() == [0, 1]
    assert evaluate("x <= y", tie).tolist() == evaluate("x == y", tie).tolist() == [1, 0]
    assert evaluate("where(X.close >= k, -X.close, 0) + max(a, 2)", values)[2] == 0.0
    assert evaluate("1 < X.close <= 3 and isnan(a)", values).tolist() == [0, 1, 0]
    assert names_in("where(a > k, X.close, mean(X.high, 3))") == {"a", "k", "X.close", "X.high"}
    assert is_pointwise("abs(a) + 1") and not is_pointwise("prev(a, 1)")


@pytest.mark.parametrize(
    "text",
    """__import__('os') | X.close.__class__ | (lambda: 1)() | [1, 2] | a if b else c | X.secret | mean(a)
    | mean(a, n=3) | 'text' | True | a ** 2 | a @ b | f(a) | a :=1 | 1e999 | a[0] |""".split("|"),
)
def test_anything_else_is_refused(text):
    with pytest.raises(UserError):
        names_in(text.strip())


def test_bad_documents_are_refused_by_name():
    def rules(**changed):
        return [{**CROSS["rules"][0], **changed}]

    for changed, words in (
        ({"states": ["flat"]}, "state"),
        ({"rules": rules(target={"Y": "1"})}, "leg"),
        ({"rules": rules(set={"peak": "1"})}, "register"),
        ({"registers": {"fast": 0.0, "entry": 0.0}}, "used twice"),
        ({"colour": 1}, "colour"),
    ):
        with pytest.raises(UserError, match=words):
            cross(**changed)
    for changed, words in (
        ({"indicators": {"gap": "quick + 1", "quick": "gap"}}, "cycle"),
        ({"indicators": {"gap": "nowhere"}}, "nowhere"),
        ({"rules": rules(when="mean(X.close, 3) > 1")}, "window"),
    ):
        with pytest.raises(UserError, match=words):
            check_semantics(cross(**changed))


def test_the_hash_is_of_the_meaning_and_not_of_the_blanks():
    spaced = read_semantics(json.dumps(CROSS, indent=4).encode())
    assert spaced.sha256 == cross().sha256
    assert cross(title="Other").sha256 != cross().sha256
    assert b'"rules"' in semantics_schema()
