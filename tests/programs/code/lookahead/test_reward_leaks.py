"""Programs on frames that look ahead, written before the check was read: a reward without a judge
pays none.

One with a judge asks on some rows only: it pays none but some of those that peek on a row of their
choice.
"""

import tomllib
from pathlib import Path

import pytest

from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.code.reward import reward
from tradeassay_programs.sandbox import JobExecutor

TASK = load_task("d-donchian-20-10")
OWN = "own = (close > close.rolling(10).mean()).astype(float)"
UP = """
def UP(close, at, ahead=1):
    if at + ahead >= len(close):
        return 0.5
    return 0.75 if close.iloc[at + ahead] > close.iloc[at] else 0.25
"""
"""A peek at a single later close."""
CASES = tomllib.loads(Path(__file__).with_name("reward_leaks.toml").read_text())
LEAKS, HONEST, AT_DECISIONS = CASES["leaks"], CASES["honest"], CASES["at_decisions"]


def _source(line: str) -> str:
    body = f"    close = frame['close']\n    {OWN}\n    {line}\n    return own.fillna(0.0)\n"
    return f"import numpy as np\nimport pandas as pd\n\n\n{UP}\n\ndef signals(frame):\n{body}"


def _paid(pool: JobExecutor, line: str, secret: str) -> float | None:
    return reward(TASK, _source(line), executor=pool, framework="frame", secret=secret).value


SAMPLE = ("length, whole table", "one row by number", "one exit")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SAMPLE else pytest.mark.slow) for n in LEAKS]
)
def test_a_leak_is_not_paid(pool, name):
    assert _paid(pool, LEAKS[name], "5e" * 16) == 0.0


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "averages" else pytest.mark.slow) for n in HONEST]
)
def test_an_honest_program_is_paid(pool, name):
    assert _paid(pool, HONEST[name], "5e" * 16) == 1.0


FEW = frozenset(
    {"one row by number", "one row by volume", "one row by price", "one row, size alone"}
)
"""Peeks on one row: a judged reward meets them with a part of the secrets."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in SAMPLE else pytest.mark.slow) for n in LEAKS if n not in FEW],
)
def test_a_leak_is_not_paid_by_a_judged_reward(pool, name):
    source = _source(LEAKS[name])
    assert (
        reward(TASK, source, "behaviour", executor=pool, framework="frame", secret="5e" * 16).value
        == 0.0
    )


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "on one exit" else pytest.mark.slow) for n in AT_DECISIONS],
)
@pytest.mark.parametrize("secret", ["5e", "77"])
def test_a_peek_where_the_task_decides_is_met_whatever_the_secret(pool, name, secret):
    """The reference itself, which decides by the next close on rows that matter."""
    assert TASK.frame is not None
    honest = TASK.frame.reference.replace("def signals(", "def _own(")
    body = (
        "    close = frame['close']\n    own = pd.Series(_own(frame), frame.index).astype(float)\n"
        f"    {AT_DECISIONS[name]}\n    for row in at:\n        own.iloc[row] = UP(close, row)\n"
    )
    source = (
        f"import numpy as np\nimport pandas as pd\n{honest}\n\n{UP}\n\ndef "
        f"signals(frame):\n{body}    return own\n"
    )
    assert (
        reward(
            TASK, source, "behaviour", executor=pool, framework="frame", secret=secret * 16
        ).value
        == 0.0
    )
