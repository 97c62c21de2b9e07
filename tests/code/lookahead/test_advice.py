"""What reading a source suggests, and rewards for programs on frames where nobody judges."""

from __future__ import annotations

import pytest

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.code.lookahead.advice import forgets
from tradeassay.code.reward import reward
from tradeassay.sandbox import SandboxPool

pytest.importorskip("pandas")
SECRET = "5e" * 16
TASK = load_task("d-donchian-20-10")
PLAIN = """import numpy as np
import pandas as pd

DAYS = (5, 20)


def _average(close, days=20):
    return close.rolling(days).mean()


def signals(frame):
    own = (_average(frame["close"], DAYS[0]) > _average(frame["close"])).astype(float)
    return pd.Series(np.where(own > 0.5, 1.0, 0.0), index=frame.index)
"""
NEXT = PLAIN.replace("np.where(own > 0.5, 1.0, 0.0)", "np.append(own.to_numpy()[1:], 0.0)")
KEEPS = PLAIN.replace("DAYS = (5, 20)", "DAYS = [5, 20]")


def test_a_plain_program_forgets() -> None:
    assert forgets(PLAIN) and forgets(NEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DAYS = (5, 20)", "DAYS = {}"),
        ("DAYS = (5, 20)", "DAYS = np.zeros(3)"),
        ("DAYS = (5, 20)", "from scipy.constants import physical_constants as DAYS"),
        ("DAYS = (5, 20)", "import sys"),
        ("DAYS = (5, 20)", "class Kept:\n    pass"),
        ("days=20", "days=[]"),
        ("days=20", "days=lambda kept={}: kept"),
        ("def _average", "@staticmethod\ndef _average"),
        ("def _average", "def _average(close, days=1):\n    global DAYS\n\n\ndef _other"),
        ("own = (", "signals.kept = own = ("),
        ("own = (", "kept = np.sctypeDict\n    own = ("),
        ("own = (", "np.seterrcall(print)\n    own = ("),
        ("own = (", "np.random.seed(3)\n    own = ("),
        ("own = (", "kept = vars(np)\n    own = ("),
        ("own = (", "kept = (lambda: 0).__globals__\n    own = ("),
        ("own = (", "kept = np.lib.stride_tricks.as_strided(frame['close'].to_numpy(), (9999,))\n    own = ("),
        ("own = (", "kept = np.frombuffer(frame.index.to_numpy().base)\n    own = ("),
        ("own = (", "np.save('kept', frame['close'])\n    own = ("),
        ("own = (", "frame.to_csv('kept')\n    own = ("),
        ("own = (", "frame['close'].agg('to_pickle', 0, 'kept')\n    own = ("),
        ("own = (", "frame.query('@signals.__setattr__(1, 2)')\n    own = ("),
        ("own = (", "np.typecodes.update(kept=frame)\n    own = ("),
        ("own = (", "pd.io.common.os.environ.update(kept='1')\n    own = ("),
        ("own = (", "kept = np.empty(len(frame))\n    own = ("),
        ("own = (", "kept = '{0.__globals__}'.format(signals)\n    own = ("),
        ("own = (", "breakpoint()\n    own = ("),
        ("own = (", "match signals:\n        case object(__globals__=kept): pass\n    own = ("),
        ("DAYS = (5, 20)", f"DAYS = {'+'.join(['1'] * 2000)}"),
        ("frame.index", "frame.index.shift(-1)"),
        ("return pd", "return pd pd"),
    ],
)
def test_what_could_keep_something_or_points_to_later_rows_is_not_plain(old: str, new: str) -> None:
    assert old in PLAIN and not forgets(PLAIN.replace(old, new, 1))


def test_a_leak_that_no_rule_names_is_not_paid_whether_it_looks_plain_or_not(pool: SandboxPool) -> None:
    def paid(source: str) -> tuple[float | None, str, int]:
        found = reward(TASK, source, executor=pool, framework="frame", secret=SECRET)
        assert found.evaluation.leak is not None
        return found.value, found.outcome, found.evaluation.usage.runs

    assert paid(PLAIN) == (1.0, "not_scored", 2)
    assert paid(KEEPS) == (1.0, "not_scored", 3)
    assert paid(NEXT)[:2] == (0.0, "lookahead")
