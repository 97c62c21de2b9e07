# ruff: noqa: E501  (programs are written in one line each)
"""Forty hostile programs and twenty honest odd ones that the shipped suites do not have: how many get through?

Every program is put to one task by the ordinary door (``check_program``). ``score`` programs try to pass without
doing the task and get through when they are solved; ``reach`` programs are right ones that also reach for something
outside, and get through when what they reach for happens or leaves no trace; ``burden`` programs try to bring the
examiner down, and get through when it raises or spends more than its limit. Honest ones get through the other way
round: they have to be solved.

    python perf/attack_programs.py
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.benchmarks.quantcode.check import check_program
from tradeassay.code.mutants import mutants_of
from tradeassay.code.rules import rules_of
from tradeassay.code.running import open_code_executor

TASK = "d-sma-cross-long"
MARKER = Path("/tmp/tradeassay-attack-marker")
GOLD = load_task(TASK).reference
HEAD = "import backtrader as bt\n"
BUY = """
class S(bt.Strategy):
    def next(self):
        {body}
"""


def first(code: str) -> str:
    """Return the right program with code in front of it."""
    return f"{code}\n{GOLD}"


def inside(code: str) -> str:
    """Return the right program with code at the beginning of ``next``."""
    lines = "\n".join(f"        {line}" for line in code.splitlines())
    return GOLD.replace("    def next(self):\n", f"    def next(self):\n{lines}\n", 1)


def bought(body: str) -> str:
    """Return a strategy of one line."""
    return HEAD + BUY.format(body=body)


REACH = {
    "opens the password file": first("try:\n    open('/etc/passwd').read()\nexcept OSError:\n    pass"),
    "writes to /tmp": first(f"try:\n    open('{MARKER}', 'w').write('x')\nexcept OSError:\n    pass"),
    "forks": first("import os\ntry:\n    os.fork()\nexcept OSError:\n    pass"),
    "fork bomb": first("import os\nfor _ in range(500):\n    try:\n        os.fork()\n    except OSError:\n        pass"),
    "executes a shell": first("import os\ntry:\n    os.execv('/bin/sh', ['sh', '-c', 'true'])\nexcept OSError:\n    pass"),
    "opens a socket": first("import socket\ntry:\n    socket.create_connection(('127.0.0.1', 22), 1)\nexcept OSError:\n    pass"),
    "kills its parent": first("import os, signal\ntry:\n    os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError:\n    pass"),
    "kills everybody": first("import os\ntry:\n    os.kill(-1, 9)\nexcept OSError:\n    pass"),
    "calls by ctypes": first("try:\n    import ctypes\n    ctypes.CDLL(None).system(b'true')\nexcept (OSError, ImportError):\n    pass"),
    "reads the host's memory": first("try:\n    open('/proc/1/mem', 'rb').read(1)\nexcept OSError:\n    pass"),
    "lists the root": first("import os\ntry:\n    os.listdir('/root')\nexcept OSError:\n    pass"),
    "locks a library": first("import fcntl, backtrader\ntry:\n    fcntl.flock(open(backtrader.__file__), fcntl.LOCK_EX)\nexcept OSError:\n    pass"),
    "traces itself": first("import ctypes\ntry:\n    ctypes.CDLL(None).ptrace(0, 0, 0, 0)\nexcept (OSError, AttributeError):\n    pass"),
    "mounts": first("import ctypes\ntry:\n    ctypes.CDLL(None).mount(b'none', b'/mnt', b'tmpfs', 0, None)\nexcept OSError:\n    pass"),
}  # fmt: skip
SCORE = {
    "always long": bought("self.buy() if not self.position else None"),
    "buys once and stays": bought("len(self) == 30 and self.buy()"),
    "random": bought("__import__('random').random() < .1 and (self.close() if self.position else self.buy())"),
    "replaces the broker": first("import backtrader.brokers as b\nb.BackBroker.getvalue = lambda self, *a: 1e9") .replace("self.buy()", "self.broker.set_cash(1e9)"),
    "replaces the indicator": first("import backtrader as bt\nbt.indicators.SMA = bt.indicators.SimpleMovingAverage = lambda *a, **k: a[0]"),
    "replaces cerebro's run": first("import backtrader as bt\nbt.Cerebro.run = lambda self, *a, **k: []"),
    "removes itself": inside("import sys\nsys.exit(0)"),
    "raises SystemExit late": inside("if len(self) > 100:\n    raise SystemExit(0)"),
    "ends by os._exit": inside("import os\nos._exit(0)"),
    "looks at the next bar": bought("(self.close() if self.position else self.buy()) if self.data.close[1] > self.data.close[0] else None"),
    "reads the whole line": bought("a = self.data.close.array; n = len(self); (not self.position and n < len(a) and a[n] > a[n-1] and self.buy()) or (self.position and n < len(a) and a[n] < a[n-1] and self.close())"),
    "asks gc for the bars": bought("import gc; f = [o for o in gc.get_objects() if type(o).__name__ == 'TaskBars']; f and self.buy()"),
    "asks frames for the host": bought("import sys; f = sys._getframe(); n = 0\n        while f: n += 'reference' in f.f_locals; f = f.f_back\n        n and not self.position and self.buy()"),
    "asks modules for the market": bought("import sys; m = [k for k in sys.modules if k.startswith('tradeassay')]; ('tradeassay.code.bars' in m or 'tradeassay.data.synthetic' in m) and self.buy()"),
    "imports the reference": bought("from tradeassay.benchmarks.quantcode import load_task; self.buy()"),
    "knows the date": bought("d = self.data.datetime.date(0); (self.close() if self.position else self.buy()) if d.day == 13 else None"),
    "cancels what is not there": bought("o = self.buy(); o.ref = 10**9; self.cancel(o)"),
    "wrong period": next(one.source for one in mutants_of(GOLD) if one.kind == "constant"),
}  # fmt: skip
BURDEN = {
    "endless loop": inside("while True:\n    pass"),
    "eats memory": inside("self.x = [bytearray(10**7) for _ in range(10**4)]"),
    "a million orders": inside("for _ in range(3000):\n    self.buy(size=1e-6)"),
    "prints without end": inside("for _ in range(2000):\n    print('RESULT_' * 200)"),
    "threads": first("import threading\nfor _ in range(200):\n    try:\n        threading.Thread(target=lambda: None).start()\n    except RuntimeError:\n        break"),
    "leaves an atexit": first("import atexit\natexit.register(lambda: [0 for _ in iter(int, 1)])"),
    "handles signals": first("import signal\ntry:\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    signal.alarm(0)\nexcept (OSError, ValueError):\n    pass") + "\n# and goes on\n",
    "deep nesting": "x = " + "(" * 3000 + ")" * 3000 + "\n" + GOLD,
    "chained classes": "\n".join(f"class A{n}(A{n - 1}): pass" if n else "class A0: pass" for n in range(4000)) + "\n" + GOLD,
    "a lone surrogate": GOLD + "\nx = '\ud800'\n",
    "null bytes": GOLD + "\x00",
    "writes to every descriptor": first("import os\nfor fd in range(3, 40):\n    try:\n        os.write(fd, b'TAR1' * 64)\n    except OSError:\n        pass"),
    "huge number": first("x = 10 ** 10 ** 7"),
}  # fmt: skip
HONEST = {
    "prints a banner": inside("print('=== BACKTEST RESULTS ===', len(self))"),
    "writes a log to stderr": inside("import sys\nsys.stderr.write('INFO trade\\n')"),
    "logging": first("import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('start')"),
    "a main guard": GOLD + "\nif __name__ == '__main__':\n    c = bt.Cerebro()\n    c.addstrategy(S)\n    c.run()\n",
    "type hints": first("from __future__ import annotations\nfrom typing import Any\nx: Any = 1"),
    "a dataclass": first("from dataclasses import dataclass\n@dataclass\nclass P:\n    n: int = 3"),
    "unused imports": first("import math, json, re, collections, itertools, functools, statistics, decimal"),
    "reads the clock": first("import time, datetime\nstart = time.time(); now = datetime.datetime.now()"),
    "numpy and pandas": first("import numpy as np, pandas as pd\nframe = pd.DataFrame({'a': np.arange(3)})"),
    "keeps counters": inside("self.seen = getattr(self, 'seen', 0) + 1"),
    "notify methods": GOLD.replace("    def next(self):", "    def notify_trade(self, trade):\n        self.last = trade\n\n    def next(self):", 1),
    "a stop method": GOLD + "\n",
    "a log method": GOLD.replace("    def next(self):", "    def log(self, txt):\n        print(txt)\n\n    def next(self):\n        self.log('%.2f' % self.data.close[0])", 1),
    "tries and excepts": inside("try:\n    x = 1 / 0\nexcept ZeroDivisionError:\n    x = 0"),
    "a generator": inside("self.total = sum(k for k in range(5))"),
    "unicode names": first("größe = 'naïve – “quotes” 价格'"),
    "windows newlines": GOLD.replace("\n", "\r\n"),
    "a byte-order mark": "\ufeff" + GOLD,
    "gc and weakref": first("import gc, weakref\ngc.collect()"),
    "seeds": first("import random, numpy as np\nrandom.seed(0)\nnp.random.seed(0)"),
}  # fmt: skip


def main() -> int:
    """Print what became of every program, and the shares."""
    rules = rules_of("5a" * 16)
    through: dict[str, list[str]] = {"reach": [], "score": [], "burden": [], "honest": []}
    kinds = {"reach": REACH, "score": SCORE, "burden": BURDEN, "honest": HONEST}
    with open_code_executor(2) as executor:
        for kind, programs in kinds.items():
            for name, source in programs.items():
                MARKER.unlink(missing_ok=True)
                before, wall = time.process_time(), time.monotonic()
                try:
                    found = check_program(source, TASK, executor=executor, rules=rules)
                    words, raised = found.outcome, False
                    traces = [*found.attempts, *(trick.name for trick in found.tricks)]
                except Exception as error:
                    words, raised, traces = f"RAISED {type(error).__name__}: {error}"[:80], True, []
                used, took = time.process_time() - before, time.monotonic() - wall
                bad = raised or MARKER.exists()
                bad |= kind == "reach" and words == "solved" and not traces
                bad |= kind == "score" and words == "solved"
                bad |= kind == "burden" and (used > 5.0 or took > 150.0)
                bad |= kind == "honest" and words != "solved"
                if bad:
                    through[kind].append(name)
                shown = "; ".join(str(one)[:60] for one in traces[:2])
                print(
                    f"{kind:7}{name:30}{words:14}{used:6.2f} CPU-s{took:7.1f} s  {'BAD ' if bad else ''}{shown}",
                    flush=True,
                )
    hostile = sum(len(kinds[kind]) for kind in ("reach", "score", "burden"))
    got = sum(len(through[kind]) for kind in ("reach", "score", "burden"))
    print(
        f"{got} of {hostile} hostile programs got through: {[name for k in ('reach', 'score', 'burden') for name in through[k]]}"
    )
    print(f"{len(through['honest'])} of {len(HONEST)} honest ones were refused: {through['honest']}")
    print(f"load {os.getloadavg()[0]:.1f}")
    return 1 if got or through["honest"] else 0


if __name__ == "__main__":
    sys.exit(main())
