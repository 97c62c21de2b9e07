"""Programs against the judged reward, written from the manual before anybody read the check.

Each follows the right answer to its task, under the name ``base`` (frames) or as the class it
derives from (Backtrader), so that it would be paid in full if nothing were wrong with it. Some look
ahead, some tamper with the harness, some only look odd: these must be paid. ``SAMPLE`` is tried
every day, all of it with the slow tests.
"""

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.code.reward import reward
from tradeassay_programs.code.task import Framework

TASKS = ("d-sma-cross-long", "d-macd-hist-zero")
SECRETS = ("5e" * 16, "a7" * 16)
COMPILES, WRONG = 0.016, 0.64
"""What a program that does not run earns, and at most one that the judge refuses."""
CASES = tomllib.loads(Path(__file__).with_name("reward_attacks.toml").read_text())

FRAME_HEAD = """
import builtins
import numpy as np
import pandas as pd

def signals(frame):
    t = np.array(base(frame), float)
    c = frame["close"].to_numpy()
    n = len(t)
    s = pd.Series(t, frame.index)
    kept = vars(builtins).setdefault("_kept", {})
    first = float(c[0]) not in kept
    kept.setdefault(float(c[0]), []).append(n)
"""
"""``kept`` outlives a module that is loaded anew: it knows the tables so far, and whether this
one is new.
"""

GLOBALS = "CACHE = {}\nROWS = []\nPOSITION = 0.0\n"


def _frame_source(task_id: str, body: str) -> str:
    task = load_task(task_id)
    assert task.frame is not None
    lines = "".join(f"    {line}\n" for line in [*body.splitlines(), "return t"])
    return (
        f"{task.frame.reference.replace('def signals(', 'def base(')}\n{GLOBALS}{FRAME_HEAD}{lines}"
    )


FED_HEAD = """
import backtrader as bt
import builtins
import numpy as np

KEPT = vars(builtins).setdefault("_kept", [])

class Mine({base}):
"""


def _fed_source(task_id: str, body: str) -> str:
    reference = load_task(task_id).reference
    base = re.findall(r"class (\w+)\(bt\.Strategy\)", reference)[-1]
    every = ["up = True", *body.splitlines(), "if up:", f"    {base}.next(self)"]
    lines = "".join(f"        {line}\n" for line in every)
    head = FED_HEAD.format(base=base)
    return f"{reference}\nBARS = 0\n{head}    seen = []\n\n    def next(self):\n{lines}"


SAMPLE = (
    "first call on a table",
    "right on the first market alone",
    "objects",
    "global list",
    "array",
)
PAID: dict[str, tuple[float, float]] = {
    "peeks": (0.0, COMPILES),
    "forged": (0.0, WRONG - 1e-9),
    "odd": (1.0, 1.0),
    "fed_peeks": (0.0, WRONG - 1e-9),
    "fed_forged": (0.0, WRONG - 1e-9),
    "fed_odd": (1.0, 1.0),
}
"""What the programs of each table are paid, at least and at most."""


@pytest.mark.parametrize(
    ("task", "secret", "table", "name"),
    [
        pytest.param(
            *on, table, name, marks=() if name in SAMPLE and on == first else pytest.mark.slow
        )
        for first in [(TASKS[0], SECRETS[0])]
        for on in itertools.product(TASKS, SECRETS)
        for table in PAID
        for name in CASES[table]
    ],
)
def test_what_a_program_is_paid(pool, task, secret, table, name):
    fed = table.startswith("fed")
    source = (_fed_source if fed else _frame_source)(task, CASES[table][name])
    framework: Framework = "backtrader" if fed else "frame"
    found = reward(
        load_task(task), source, "behaviour", executor=pool, framework=framework, secret=secret
    )
    least, most = PAID[table]
    assert found.value is not None and least <= found.value <= most, found.reason
