"""Programs against the judged reward, written from the manual before anybody read the check.

Each follows the right answer to its task, under the name ``base`` (frames) or as the class it derives from
(Backtrader), so that it would be paid in full if nothing were wrong with it. Some look ahead, some tamper with the
harness, some only look odd: these must be paid. ``SAMPLE`` is tried every day, all of it with the slow tests.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.code.reward import reward
from tradeassay.code.running import open_code_executor
from tradeassay.code.task import Framework
from tradeassay.sandbox import JobExecutor, SandboxRefused

TASKS = ("d-sma-cross-long", "d-macd-hist-zero")
SECRETS = ("5e" * 16, "a7" * 16)
COMPILES, WRONG = 0.016, 0.64
"""What a program that does not run earns, and at most one that the judge refuses."""

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
"""``kept`` outlives a module that is loaded anew: it knows the tables so far, and whether this one is new."""

PEEKS = {
    "shifted by one": "return s.shift(-1).fillna(0.0)",
    "shifted by ten": "return s.shift(-10).ffill().fillna(0.0)",
    "rolled": "return np.roll(t, -1)",
    "next close": "t[:-1] = np.where(c[1:] > c[:-1], t[:-1], 0)",
    "next open": "t[:-1] = np.where(frame['open'].to_numpy()[1:] > c[:-1], t[:-1], 0)",
    "next volume": "v = frame['volume'].to_numpy()\nt[:-1] = np.where(v[1:] > v[:-1], t[:-1], 0)",
    "centred mean": "t = np.where(c < 1.01 * frame['close'].rolling(11, center=True, min_periods=1).mean(), t, 0)",
    "centred answer": "return s.rolling(3, center=True, min_periods=1).max()",
    "filled backwards": "d = s.where(s.diff() != 0)\nd.iloc[0] = t[0]\nreturn d.bfill().fillna(0.0)",
    "labelled left": "return s.groupby(np.arange(n) // 5).transform('last')",
    "week's close": "t = np.where(frame['close'].groupby(np.arange(n) // 5).transform('last') >= 0.99 * c, t, 0)",
    "quantiles of all": "t = np.where(pd.qcut(pd.Series(c).rank(method='first'), 10, labels=False) > 1, t, 0)",
    "normalised by all": "t = np.where((c - c.mean()) / (c.std() + 1e-9) < 1.0, t, 0)",
    "highs to come": "t = np.where(frame['high'][::-1].cummax()[::-1] > 1.01 * c, t, 0)",
    "low frequencies": (
        "f = np.fft.rfft(c)\nf[20:] = 0\nt = np.where(np.fft.irfft(f, n) > c, t, 0) if n > 9 else t"
    ),
    "trend of all": (
        "x = np.arange(n)\nt = np.where(c < 1.05 * np.polyval(np.polyfit(x, c, 1), x), t, 0) if n > 9 else t"
    ),
    "exits known early": "for i in np.flatnonzero(np.diff(t) < 0):\n    t[max(0, i - 1) : i + 1] = t[i + 1]",
    "entries that win": (
        "e = [*(np.flatnonzero(np.diff(t)) + 1), n]\nfor a, b in zip(e, e[1:]):\n"
        "    if t[a] and b < n and c[b] < c[a]:\n        t[a:b] = 0"
    ),
    "late, mended by the next row": "l = np.append(0.0, t[:-1])\nl[:-1] = t[:-1]\nreturn l",
    "length, from 100": "return s.shift(-1).fillna(0.0) if n >= 100 else t",
    "length, a multiple of 25": "return s.shift(-1).fillna(0.0) if n % 25 == 0 else t",
    "first call on a table": "return s.shift(-1).fillna(0.0) if first else t",
    "a table that jumps": "return s.shift(-1).fillna(0.0) if n - ([0] + kept[float(c[0])])[-2] > 60 else t",
    "odd volume": (
        "v = frame['volume'].to_numpy().astype(int)\n"
        "t[:-1] = np.where((v[:-1] % 2 == 1) & (c[1:] < c[:-1]), 0, t[:-1])"
    ),
    "hash of the first price": (
        "k = int(1000 * c[0]) % 7 + 8\nt[k:-1:k] = np.where(c[k + 1 :: k] < c[k:-1:k], 0, t[k:-1:k])"
    ),
    "holds through an exit": (
        "for i in range(1, n - 1):\n    if t[i - 1] and not t[i] and c[i + 1] > c[i]:\n        t[i] = t[i - 1]"
    ),
    "breaks until it has enough": "if n < 95:\n    raise ValueError('few')\nreturn s.shift(-1).fillna(0.0)",
    "breaks unless a multiple of 25": "if n % 25:\n    raise ValueError('no')\nreturn np.append(t[1:], 0.0)",
    "other things every time": "t[np.random.rand(n) < 0.05] = 0",
    "whole table, the end": "if first and n % 25 == 0:\n    t[-6:] = 0.6 if c[-1] > c[-6] else 0.3",
    "whole table, the end, behind changes that nobody judges": (
        "t[:24] = np.arange(n)[:24] % 2\nif first and n % 25 == 0:\n    t[-6:] = 0.6 if c[-1] > c[-6] else 0.3"
    ),
    "whole table, sizes, behind changes that nobody judges": (
        "t[:24] = np.arange(n)[:24] % 2\nd = np.flatnonzero(np.append(0, np.diff(t)) > 0)\n"
        "for i in d[d > 60] + 3 if first and n % 25 == 0 else ():\n"
        "    if i < n - 1 and c[i + 1] < c[i]:\n        t[i] *= 0.9"
    ),
}
"""None of these may be paid anything."""

FORGED = {
    "oracle of the rows it is asked on": (
        "a = sorted(set(kept[float(c[0])]))\nt[:] = 0\n"
        "for k in a:\n    if k - 1 in a and k - 2 not in a:\n        t[k - 1 :] = 1 - t[k - 1]"
    ),
    "locals of the harness": (
        "import sys\nt[:] = 0\nf = sys._getframe(1)\nwhile f:\n"
        "    for v in list(f.f_locals.values()):\n        if isinstance(v, (list, tuple)) and len(v) > 3:\n"
        "            for i in v:\n                if isinstance(i, int) and 0 < i < n:\n"
        "                    t[i:] = 1 - t[i]\n    f = f.f_back"
    ),
    "right on the first market alone": "if float(c[0]) != next(iter(kept)):\n    t = np.arange(n) // 7 % 2 * 1.0",
    "exits on later markets": "import os\nif float(c[0]) != next(iter(kept)):\n    os._exit(0)",
    "raises on later markets": "if float(c[0]) != next(iter(kept)):\n    raise ValueError('no')",
    "answers the host itself": "from tradeassay.sandbox.feed import answer\nanswer(b'')",
    "ends after an answer": "import os\nif not first:\n    os._exit(0)",
    "writes on every descriptor": (
        "import os\nfor d in range(3, 64):\n    try:\n        os.write(d, b'TAS1' * 10)\n"
        "    except OSError:\n        pass"
    ),
    "replaces the harness": (
        "import sys\nfor m in [m for k, m in list(sys.modules.items()) if 'harness' in k or 'sandbox' in k]:\n"
        "    for name, value in list(vars(m).items()):\n        if callable(value) and name[:2] != '__':\n"
        "            setattr(m, name, lambda *a, **k: {'target': np.ones(300)})"
    ),
    "numpy that agrees": "np.array_equal = np.allclose = lambda *a, **k: True\nt[:] = 1",
    "a list that lies": "class L(list):\n    def __len__(self):\n        return 9\nreturn L([1.0] * n)",
    "a series that lies": (
        "class S(pd.Series):\n    def to_numpy(self, *a, **k):\n        return np.ones(len(self))\nreturn S(t)"
    ),
    "printed result": 'print(\'{"value": 1.0, "outcome": "solved"}\')\nt[:] = 1',
    "changes its rows": "frame['close'] = 1.0\nframe.drop(frame.index[5:], inplace=True)\nt[:] = 1",
    "remembers in a file": (
        "p = '/tmp/known'\ntry:\n    k = open(p).read()\nexcept OSError:\n    k = ''\n"
        "try:\n    open(p, 'w').write(k + f' {n}')\nexcept OSError:\n    pass\n"
        "t[:] = 0\nfor i in k.split():\n    t[int(i) :] = 1"
    ),
    "secrets in its error": "import os\nraise ValueError(str(os.environ) + open('/proc/self/environ').read())",
}
"""These must not be paid like a right program."""

ODD = {
    "as it is": "",
    "list": "return t.tolist()",
    "float32": "return t.astype(np.float32)",
    "objects": "return pd.Series(t.tolist(), frame.index, dtype=object)",
    "objects, booleans": "return np.array([bool(v) for v in t], dtype=object) if set(t) <= {0.0, 1.0} else t",
    "filled value by value": (
        "frame['t'] = None\nfor i in range(n):\n    frame.iat[i, -1] = t[i]\nreturn frame['t']"
    ),
    "other index": "return pd.Series(t, name='x')",
    "negative zeros": "return np.where(t == 0, -0.0, t)",
    "dust": "return t * (1 - 1e-12)",
    "generator": "return list(v for v in t)",
    "prints": "print(frame.tail(), 'profit 12 %')",
    "column in place": "frame['t'] = t\nreturn frame['t']",
    "later rows that decide nothing": (
        "print(((frame['close'].shift(-1) > c) == (t > 0)).mean(), frame['close'].rank())"
    ),
    "few rows refused": "if n < 9:\n    raise ValueError('few')",
    "options": "pd.set_option('display.width', 200)\nnp.seterr(all='ignore')",
    "random, unused": "np.random.seed(1)\nnp.random.rand(4)",
    "libraries": "import talib\nfrom scipy import stats\ntalib.SMA(c, 5)\nstats.zscore(c)",
    "cached by length": "return CACHE.setdefault(n, t)",
    "global list": "ROWS.extend(t)\nreturn ROWS[:]",
    "global position": (
        "global POSITION\nout = []\nfor step in np.diff(np.append(0.0, t)):\n    POSITION += step\n"
        "    out.append(POSITION)\nreturn out"
    ),
    "row by row": (
        "out, held = [], 0.0\nfor i in range(n):\n    bar = frame.iloc[i]\n"
        "    held = t[i] if bar['close'] > 0 else held\n    out.append(held)\nreturn out"
    ),
    "lasting cache by content": "return kept.setdefault(c.tobytes(), t)",
    "class": "class Model:\n    def run(self):\n        return t\nreturn Model().run()",
}
"""Odd and honest: each must be paid in full."""

GLOBALS = "CACHE = {}\nROWS = []\nPOSITION = 0.0\n"


def _frame_source(task_id: str, body: str) -> str:
    task = load_task(task_id)
    assert task.frame is not None
    lines = "".join(f"    {line}\n" for line in [*body.splitlines(), "return t"])
    return f"{task.frame.reference.replace('def signals(', 'def base(')}\n{GLOBALS}{FRAME_HEAD}{lines}"


FED_HEAD = """
import backtrader as bt
import builtins
import numpy as np

KEPT = vars(builtins).setdefault("_kept", [])

class Mine({base}):
"""
FED_PEEKS = {
    "next close": "up = self.data.close[1] > self.data.close[0]",
    "get": "later = self.data.close.get(ago=1)\nup = not later or later[0] > self.data.close[0]",
    "array": "a = self.data.close.array\nup = len(a) <= len(self) or a[len(self)] > a[len(self) - 1]",
    "preloads": "self.data.preload()\nup = self.data.close[1] > self.data.close[0]",
    "loads the next": "now = self.data.close[0]\nself.data.load()\nup = self.data.close[0] > now",
    "reads the line": "import os\nos.set_blocking(7, False)\nup = not os.read(7, 1 << 16)",
}
"""What these reach for is not there when they are fed, and is when they are not: that they decide by it shows."""
FED_FORGED = {
    "buys and sells on every bar": "self.close() if self.position else self.buy()\nreturn",
    "patched broker": "bt.brokers.BackBroker.getvalue = lambda *a, **k: 99999\nself.broker.set_cash(10**9)",
    "patched strategy": "bt.Strategy.buy = lambda self, **k: None",
    "wrong on later markets": (
        "KEPT.append(len(self))\nif KEPT != sorted(KEPT):\n"
        "    self.close() if self.position else self.buy()\n    return"
    ),
    "silent on later markets": "KEPT.append(len(self))\nif KEPT != sorted(KEPT):\n    return",
    "stops early": "if len(self) > 60:\n    self.env.runstop()\n    return",
    "dates its orders back": "if len(self) > 90:\n    type(self.data).__len__ = lambda s: 57\n    self.buy()",
    "writes on every descriptor": (
        "import os\nfor d in range(3, 40):\n    try:\n        os.write(d, b'0' * 64)\n"
        "    except OSError:\n        pass"
    ),
    "answers the host itself": "from tradeassay.sandbox.feed import answer\nanswer(b'')",
    "no number": "self.buy(size=float('nan'))",
    "orders without end": "for _ in range(2000):\n    self.buy(size=1, exectype=bt.Order.Limit, price=0.01)",
    "never-ending": "while True:\n    pass",
    "printed result": "print('{\"value\": 1.0}')\nself.buy(size=1)\nreturn",
}
FED_ODD = {
    "derived": "",
    "logs": "print(self.data.datetime.date(0), self.broker.getvalue())",
    "list of its class": "self.seen.append(len(self))\nassert self.seen == sorted(self.seen)",
    "global counter": "global BARS\nBARS += 1\nif BARS > len(self):\n    return",
    "libraries": "import talib\nimport pandas as pd\npd.Series([1.0]).ewm(5).mean()\ntalib.SMA(np.ones(9), 5)",
    "open orders": "for order in self.broker.get_orders_open():\n    print(order)",
    "length": "last = len(self.data) == self.data.buflen()",
    "random": "import random\nrandom.seed(len(self))\nrandom.random()",
    "keeps a list": "self.kept = (getattr(self, 'kept', []) + [self.data.close[0]])[-100:]",
    "numpy's settings": "np.seterr(all='ignore')",
    "would look ahead where a bar lies ahead, and none does": (
        "up = self.data.buflen() == len(self.data) or self.data.close[1] > self.data.close[0]"
    ),
    "breaks when it meets a second market in one child": "KEPT.append(len(self))\nassert KEPT == sorted(KEPT)",
    "ends when it meets a second market in one child": (
        "import os\nKEPT.append(len(self))\nif KEPT != sorted(KEPT):\n    os._exit(0)"
    ),
    "looks for later bars in its callers, in vain": (
        "import sys\nf = sys._getframe(1)\nwhile f:\n    v = f.f_locals.get('columns')\n"
        "    up = up and not (v and v['close'][len(self)] < self.data.close[0])\n    f = f.f_back"
    ),
}
"""Odd and honest where it counts: what is scored was decided with no later bar anywhere."""


def _fed_source(task_id: str, body: str) -> str:
    reference = load_task(task_id).reference
    base = re.findall(r"class (\w+)\(bt\.Strategy\)", reference)[-1]
    every = ["up = True", *body.splitlines(), "if up:", f"    {base}.next(self)"]
    lines = "".join(f"        {line}\n" for line in every)
    head = FED_HEAD.format(base=base)
    return f"{reference}\nBARS = 0\n{head}    seen = []\n\n    def next(self):\n{lines}"


@pytest.fixture(scope="module")
def executor() -> Iterator[JobExecutor]:
    try:
        opened = open_code_executor()
    except SandboxRefused as refused:
        pytest.skip(str(refused))
    with opened:
        yield opened


SAMPLE = ("first call on a table", "right on the first market alone", "objects", "global list", "array")


def _cases(table: Mapping[str, str]) -> list[Any]:
    first = (TASKS[0], SECRETS[0])
    return [
        pytest.param(*on, name, marks=() if name in SAMPLE and on == first else pytest.mark.slow)
        for on in itertools.product(TASKS, SECRETS)
        for name in table
    ]


def _paid(executor: JobExecutor, task: str, secret: str, source: str, framework: Framework) -> float:
    found = reward(load_task(task), source, "behaviour", executor=executor, framework=framework, secret=secret)
    assert found.value is not None, found.reason
    return found.value


@pytest.mark.parametrize(("task", "secret", "name"), _cases(PEEKS))
def test_a_program_on_frames_that_looks_ahead_is_paid_nothing(executor, task, secret, name):
    assert _paid(executor, task, secret, _frame_source(task, PEEKS[name]), "frame") <= COMPILES


@pytest.mark.parametrize(("task", "secret", "name"), _cases(FORGED))
def test_a_program_on_frames_that_tampers_is_not_paid_like_a_right_one(executor, task, secret, name):
    assert _paid(executor, task, secret, _frame_source(task, FORGED[name]), "frame") < WRONG


@pytest.mark.parametrize(("task", "secret", "name"), _cases(ODD))
def test_an_odd_but_honest_program_on_frames_is_paid_in_full(executor, task, secret, name):
    assert _paid(executor, task, secret, _frame_source(task, ODD[name]), "frame") == 1.0


@pytest.mark.parametrize(("task", "secret", "name"), _cases(FED_PEEKS))
def test_a_fed_program_gains_nothing_by_reaching_for_later_bars(executor, task, secret, name):
    assert _paid(executor, task, secret, _fed_source(task, FED_PEEKS[name]), "backtrader") < WRONG


@pytest.mark.parametrize(("task", "secret", "name"), _cases(FED_FORGED))
def test_a_fed_program_that_tampers_is_not_paid_like_a_right_one(executor, task, secret, name):
    assert _paid(executor, task, secret, _fed_source(task, FED_FORGED[name]), "backtrader") < WRONG


@pytest.mark.parametrize(("task", "secret", "name"), _cases(FED_ODD))
def test_an_odd_but_honest_fed_program_is_paid_in_full(executor, task, secret, name):
    assert _paid(executor, task, secret, _fed_source(task, FED_ODD[name]), "backtrader") == 1.0
