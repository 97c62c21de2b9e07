import os
import random
import secrets
import sys
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tradeassay_programs.sandbox.codec import ClaimHead
from tradeassay_programs.sandbox.strategy import (
    NoEntry,
    StrategyCall,
    Unreturnable,
    claim_of,
    fix_seeds,
    parse,
    run_code,
    shape,
)

CLOSE = {"close": np.array([1.0, 2.0, 4.0]), "time": np.array([0, 1, 2], "M8[D]").astype("M8[ns]")}


@pytest.fixture(autouse=True)
def no_strategy_left() -> Iterator[None]:
    yield
    sys.modules.pop("strategy", None)


def run(
    source: str, call: StrategyCall | None = None, columns: dict[str, Any] | None = None
) -> dict[str, Any]:
    code, parsed = parse(source, None)
    assert code is not None, parsed
    return run_code(code, call or StrategyCall(), columns if columns is not None else CLOSE, None)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def run(:", 1),
        ("x = 1\n  y = 2", 2),
        ("return 1", 1),
        ("a\0b", None),
        ("(" * 10_000, 1),
        ("x = '\ud800'", None),
        ("x = " + "-" * 100_000 + "1", None),
    ],
)
def test_broken_source_is_a_verdict_and_never_raises(source, line):
    code, parsed = parse(source, None)
    assert code is None and parsed.syntax and line in (None, parsed.line)


@pytest.mark.parametrize("levels", [850, 1_400, 5_000])
def test_a_program_nested_too_deeply_has_one_verdict_on_every_interpreter(levels):
    code, parsed = parse("x = 1" + " + 1" * levels, None)
    assert code is None and parsed.syntax == "RecursionError: the parser gave up on it"


def test_imports_are_checked_before_anything_runs_and_while_it_runs():
    code, parsed = parse("import sys\nimport socket", frozenset({"sys"}))
    assert code is None and parsed.forbidden is not None
    assert (parsed.forbidden.module, parsed.line) == ("socket", 2)
    code, _ = parse("def run(frame):\n    __import__('socket')", frozenset())
    assert code is not None
    with pytest.raises(ImportError, match="'socket' is not on the list"):
        run_code(code, StrategyCall(pass_as="columns"), CLOSE, frozenset())


def test_a_frame_is_indexed_by_time_and_columns_can_be_grouped_into_frames():
    frame = shape(CLOSE, "frame")
    assert list(frame.columns) == ["close"] and frame.index.name == "time"
    assert frame.index[1] == pd.Timestamp("1970-01-02")
    frame.loc[frame.index[0], "close"] = 9.0  # its own copy: writable
    frames = shape({"A/close": [1.0], "A/open": [2.0], "B/close": [3.0]}, "frames")
    assert {name: list(one.columns) for name, one in frames.items()} == {
        "A": ["close", "open"],
        "B": ["close"],
    }


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("return {'a': [1], 2: [3]}", ["a", "2"]),
        ("return frame['close']", ["value"]),
        ("return frame.assign(x=1)", ["close", "x"]),
        ("return [1, 2]", ["value"]),
        ("return 5.0", ["value"]),
    ],
)
def test_what_may_be_returned(body, names):
    assert list(run(f"def run(frame):\n    {body}")) == names


def test_params_are_keywords_and_what_is_missing_is_named():
    source = "def go(columns, n, word='x'):\n    return {'a': [n], 'b': [word]}"
    assert run(source, StrategyCall(entry="go", pass_as="columns", params={"n": 3})) == {
        "a": [3],
        "b": ["x"],
    }
    with pytest.raises(Unreturnable, match="None"):
        run("def run(frame):\n    pass")
    with pytest.raises(NoEntry, match="'run'"):
        run("run = 3")


def test_a_harness_gets_the_module(monkeypatch):
    harness = ModuleType("my_harness")

    def go(module: ModuleType, columns: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
        return {"a": [module.FACTOR * float(columns["close"][-1]) * params["k"]]}

    harness.__dict__["go"] = go
    monkeypatch.setitem(sys.modules, "my_harness", harness)
    assert run("FACTOR = 2", StrategyCall(harness="my_harness:go", params={"k": 3})) == {
        "a": [24.0]
    }


def caught(source: str) -> ClaimHead:
    with pytest.raises(BaseException) as error:
        run(source)
    return claim_of(error.value)


def test_a_trace_shows_the_code_and_no_folder_of_this_machine():
    trace = caught("import json\ndef run(frame):\n    return json.loads('{')").trace
    assert 'File "strategy.py", line 3, in run' in trace and "return json.loads('{')" in trace
    assert not any(word in trace for word in (sys.prefix, sys.base_prefix, "run_code"))


def test_messages_that_are_long_or_odd_or_cannot_be_shown():
    unshown = "class Bad(Exception):\n    def __str__(self):\n        raise RuntimeError\n"
    claim = caught(unshown + "def run(frame):\n    raise Bad")
    assert (claim.error, claim.message) == ("Bad", "its error cannot be shown")
    message = claim_of(ValueError("\ud800" + "x" * 10_000)).message
    assert len(message) == 4000 and message[0] == "?"


def test_every_source_of_randomness_is_fixed(monkeypatch):
    monkeypatch.setattr(os, "urandom", os.urandom)
    monkeypatch.setattr(os, "getrandom", os.getrandom)
    monkeypatch.setattr(random, "_urandom", random._urandom)  # type: ignore[attr-defined]
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002

    def draw() -> tuple[Any, ...]:
        fix_seeds(7)
        legacy = np.random.rand()  # noqa: NPY002
        return (
            random.random(),
            legacy,
            np.random.default_rng().random(),
            secrets.token_hex(4),
            uuid.uuid4(),
        )

    try:
        assert draw() == draw()
        first = draw()
        fix_seeds(8)
        assert random.random() != first[0]
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)  # noqa: NPY002
