# ruff: noqa: E501  (programs are written in one line each)
"""Hostile programs and honest odd ones that the shipped suites do not have: how many get through?

Every program is put to one task by the ordinary door (``check_program``). ``score`` programs try to pass without
doing the task and get through when they are solved; ``reach`` programs are right ones that also reach for something
outside, and get through when what they reach for happens or leaves no trace; ``burden`` programs try to bring the
examiner down, and get through when it raises or spends more than its limit. Honest ones get through the other way
round: they have to be solved.

    python perf/attack_programs.py              all of them
    python perf/attack_programs.py --first 46 --many 20    a part of them
    python perf/attack_programs.py --only "reads,cash"     those with a word of these in their name
"""

from __future__ import annotations

import argparse
import codecs
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from machine import conditions
from tradeassay.benchmarks.quantcode import load_task
from tradeassay.benchmarks.quantcode.check import check_program
from tradeassay.code.judges.markets import mutants_of
from tradeassay.code.running import open_code_executor, rules_of
from tradeassay.code.task import Framework

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


def by_c(code: str) -> str:
    """Return the right program with calls of the C library in front of it, which no import list keeps away."""
    return first(f"import struct, sys\nc = sys.modules['ctypes']\nlibc = c.CDLL(None)\n{code}")


REACH = {
    "opens the password file": first("try:\n    open('/etc/passwd').read()\nexcept OSError:\n    pass"),
    "writes to /tmp": first(f"try:\n    open('{MARKER}', 'w').write('x')\nexcept OSError:\n    pass"),
    "forks": first("import os\ntry:\n    os.fork()\nexcept OSError:\n    pass"),
    "fork bomb": first(
        "import os\nfor _ in range(500):\n    try:\n        os.fork()\n    except OSError:\n        pass"
    ),
    "executes a shell": first(
        "import os\ntry:\n    os.execv('/bin/sh', ['sh', '-c', 'true'])\nexcept OSError:\n    pass"
    ),
    "opens a socket": first(
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 22), 1)\nexcept OSError:\n    pass"
    ),
    "kills its parent": first(
        "import os, signal\ntry:\n    os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError:\n    pass"
    ),
    "kills everybody": first("import os\ntry:\n    os.kill(-1, 9)\nexcept OSError:\n    pass"),
    "calls by ctypes": first(
        "try:\n    import ctypes\n    ctypes.CDLL(None).system(b'true')\nexcept (OSError, ImportError):\n    pass"
    ),
    "reads the host's memory": first("try:\n    open('/proc/1/mem', 'rb').read(1)\nexcept OSError:\n    pass"),
    "lists the root": first("import os\ntry:\n    os.listdir('/root')\nexcept OSError:\n    pass"),
    "locks a library": first(
        "import fcntl, backtrader\ntry:\n    fcntl.flock(open(backtrader.__file__), fcntl.LOCK_EX)\nexcept OSError:\n    pass"
    ),
    "traces itself": first(
        "import ctypes\ntry:\n    ctypes.CDLL(None).ptrace(0, 0, 0, 0)\nexcept (OSError, AttributeError):\n    pass"
    ),
    "mounts": first(
        "import ctypes\ntry:\n    ctypes.CDLL(None).mount(b'none', b'/mnt', b'tmpfs', 0, None)\nexcept OSError:\n    pass"
    ),
    "lowers its own time": by_c("libc.setrlimit(0, struct.pack('QQ', 0, 0))"),
    "a timer that kills": by_c(
        "t = c.c_int()\nlibc.syscall(222, 1, struct.pack('QiI48x', 0, 9, 0), c.byref(t))\nlibc.syscall(223, t, 0, struct.pack('4Q', 0, 0, 0, 10**6), None)"
    ),
    "a deadly signal for input": by_c("libc.syscall(72, 0, 10, 9)\nlibc.syscall(72, 0, 8, 0)"),
    "queues itself a signal": by_c(
        "import os\nlibc.syscall(129, os.getpid(), 9, struct.pack('iii116x', 9, 0, -1))"
    ),
    "signals by descriptor": by_c(
        "import os\nfd = libc.syscall(434, os.getpid(), 0)\nlibc.syscall(424, fd, 9, None, 0)"
    ),
    "io_uring": by_c("libc.syscall(425, 8, bytes(120))"),
    "a file in memory": by_c("libc.syscall(319, b'x', 0)"),
    "user faults": by_c("libc.syscall(323, 0)"),
    "clone by number": by_c("libc.syscall(56, 17, 0, 0, 0, 0)"),
    "spawns": first("import os\ntry:\n    os.posix_spawn('/bin/true', ['true'], {})\nexcept OSError:\n    pass"),
    "a link to a file of the host": first(
        "import os, tempfile\ntry:\n    os.symlink('/etc/passwd', os.path.join(tempfile.gettempdir(), 'x'))\nexcept OSError:\n    pass"
    ),
    "appends to a library": first(
        "import backtrader\ntry:\n    open(backtrader.__file__, 'a').write('x')\nexcept OSError:\n    pass"
    ),
    "a broker without commission": inside("self.broker.setcommission(commission=0.0)"),
    "a broker that fills on the close": inside("self.broker.set_coc(True)"),
    "hides what it changed": first(
        "import sys\nimport backtrader as bt\nbt.brokers.BackBroker.getvalue = lambda self, *a, **k: 1e9\nsys.modules['tradeassay.code.harness.watch'].changes = lambda prints: []"
    ),
    "asks its own map of memory": first("try:\n    open('/proc/self/maps').read()\nexcept OSError:\n    pass"),
    "asks for keys of the kernel": by_c("libc.syscall(250, 0, -3, 0, 0)"),
    "a namespace of its own": by_c("libc.unshare(0x10000000)"),
    "another root": first("import os\ntry:\n    os.chroot('/tmp')\nexcept OSError:\n    pass"),
    "writes to its own memory": first(
        "try:\n    open('/proc/self/mem', 'r+b').close()\nexcept OSError:\n    pass"
    ),
    "makes memory run": by_c("import mmap\nlibc.mmap.restype = c.c_void_p\nlibc.mmap(None, 4096, 7, 34, -1, 0)"),
    "looks for neighbours": first("import os\ntry:\n    os.listdir('/proc')\nexcept OSError:\n    pass"),
}
SCORE = {
    "always long": bought("self.buy() if not self.position else None"),
    "buys once and stays": bought("len(self) == 30 and self.buy()"),
    "random": bought("__import__('random').random() < .1 and (self.close() if self.position else self.buy())"),
    "replaces the broker": first(
        "import backtrader.brokers as b\nb.BackBroker.getvalue = lambda self, *a: 1e9"
    ).replace("self.buy()", "self.broker.set_cash(1e9)"),
    "replaces the indicator": first(
        "import backtrader as bt\nbt.indicators.SMA = bt.indicators.SimpleMovingAverage = lambda *a, **k: a[0]"
    ),
    "replaces cerebro's run": first("import backtrader as bt\nbt.Cerebro.run = lambda self, *a, **k: []"),
    "removes itself": inside("import sys\nsys.exit(0)"),
    "raises SystemExit late": inside("if len(self) > 100:\n    raise SystemExit(0)"),
    "ends by os._exit": inside("import os\nos._exit(0)"),
    "looks at the next bar": bought(
        "(self.close() if self.position else self.buy()) if self.data.close[1] > self.data.close[0] else None"
    ),
    "reads the whole line": bought(
        "a = self.data.close.array; n = len(self); (not self.position and n < len(a) and a[n] > a[n-1] and self.buy()) or (self.position and n < len(a) and a[n] < a[n-1] and self.close())"
    ),
    "asks gc for the bars": bought(
        "import gc; f = [o for o in gc.get_objects() if type(o).__name__ == 'TaskBars']; f and self.buy()"
    ),
    "asks frames for the host": bought(
        "import sys; f = sys._getframe(); n = 0\n        while f: n += 'reference' in f.f_locals; f = f.f_back\n        n and not self.position and self.buy()"
    ),
    "asks modules for the market": bought(
        "import sys; m = [k for k in sys.modules if k.startswith('tradeassay')]; ('tradeassay.code.bars' in m or 'tradeassay.data.synthetic' in m) and self.buy()"
    ),
    "imports the reference": bought("from tradeassay.benchmarks.quantcode import load_task; self.buy()"),
    "knows the date": bought(
        "d = self.data.datetime.date(0); (self.close() if self.position else self.buy()) if d.day == 13 else None"
    ),
    "cancels what is not there": bought("o = self.buy(); o.ref = 10**9; self.cancel(o)"),
    "wrong period": next(one.source for one in mutants_of(GOLD) if one.kind == "constant"),
    "kills itself": inside("import os\nos.kill(os.getpid(), 9)"),
    "ends by an alarm": inside("import sys\nsys.modules['signal'].setitimer(0, 0.001)\nwhile True:\n    pass"),
    "claims want of memory": inside("if len(self) > 50:\n    raise MemoryError('no room')"),
    "claims want of files": inside("raise OSError(24, 'Too many open files')"),
    "claims a broken disk": inside("raise OSError(5, 'Input/output error')"),
    "aborts": inside("import os\nos.abort()"),
    "reads address zero": inside("import sys\nsys.modules['ctypes'].string_at(0)"),
    "ends as a failed start does": inside("import os\nos._exit(70)"),
    "falls over its stack": inside(
        "import sys\nsys.setrecursionlimit(10**8)\ndef f():\n    return f() + [0]\nf()"
    ),
    "closes the result": inside("import os\nos.close(6)"),
    "answers for itself": inside(
        "import os\nfor fd in (7, 8):\n    try:\n        os.write(fd, b'\\0' * 64)\n    except OSError:\n        pass"
    ),
    "an error that cannot be shown": inside(
        "class E(Exception):\n    def __str__(self):\n        raise SystemExit(0)\nraise E"
    ),
    "an error with a lone surrogate": inside("raise type('E\\ud800', (Exception,), {})('\\udfff' * 9)"),
    "an error that causes itself": inside("e = ValueError('x')\ne.__cause__ = e\nraise e"),
    "is interrupted": inside("raise KeyboardInterrupt"),
    "ends its generator": inside("raise GeneratorExit"),
    "orders of size NaN": bought("self.buy(size=float('nan'))"),
    "orders without end": bought("self.buy(size=float('inf'))"),
    "orders at price NaN": bought("self.buy(size=1, exectype=bt.Order.Limit, price=float('nan'))"),
    "an order of no kind": bought("self.buy(size=1, exectype=99)"),
    "orders what is no data": bought("self.buy(data=object(), size=1)"),
    "a number that is none": bought("self.buy(size=type('N', (float,), {'__float__': lambda s: 1 / 0})(1))"),
    "becomes another class": bought("self.__class__ = type('T', (bt.Strategy,), {})"),
    "finds the broker by gc": bought(
        "import gc; [o.set_cash(1e12) for o in gc.get_objects() if type(o).__name__.endswith('Broker')]; self.buy()"
    ),
    "watches by a profile function": HEAD
    + "import sys\nseen = []\nsys.setprofile(lambda f, e, a: seen.append(f.f_locals.get('reference') or f.f_locals.get('secret')))\n"
    + BUY.format(body="any(seen) and not self.position and self.buy()"),
    "acts when it is deleted": HEAD
    + "class D:\n    def __del__(self):\n        raise SystemExit(0)\n"
    + BUY.format(body="D(); self.buy() if not self.position else None"),
    "another alphabet": "# -*- coding: rot13 -*-\n" + codecs.encode(GOLD, "rot13"),
    "reduces to a call": first(
        "import os\nclass P:\n    def __reduce__(self):\n        return os.system, ('true',)\n"
    ).replace("self.buy()", "self.buy(tradeid=P())"),
    "reads the next frame unasked": bought(
        "import os; os.set_blocking(7, False)\n        try: late = os.read(7, 48)\n        except OSError: late = b''\n        os.set_blocking(7, True)\n        late and self.buy()"
    ),
    "answers in advance": bought(
        "import os; os.write(8, bytes(4)); late = os.read(7, 48); (self.close() if self.position else self.buy()) if late else None"
    ),
    "moves its orders back": bought(
        "r = self.broker.record; (self.close() if self.position else self.buy()); r['row'][-1] = max(0, r['row'][-1] - 3)"
    ),
    "gives itself cash": bought("self.broker.setcash(1e12); self.close() if self.position else self.buy()"),
    "adds to its cash": bought("self.broker.add_cash(1e9); self.close() if self.position else self.buy()"),
    "decides before the open": HEAD
    + "class S(bt.Strategy):\n    def __init__(self):\n        self.cerebro.p.cheat_on_open = True\n        self.env._broker.set_coo(True)\n    def next_open(self):\n        up = self.data.close[0] > self.data.open[0]\n        (self.buy() if not self.position else None) if up else (self.close() if self.position else None)\n",
    "a timer that cheats": HEAD
    + "class S(bt.Strategy):\n    def __init__(self):\n        self.add_timer(when=bt.Timer.SESSION_START, cheat=True)\n    def notify_timer(self, timer, when, *a, **k):\n        self.close() if self.position else self.buy()\n",
    "another class when it is made": HEAD
    + "class T:\n    pass\nclass S(bt.Strategy):\n    def __new__(cls, *a, **k):\n        return T()\n",
    "claims that there is no entry": inside(
        "import sys\nraise sys.modules['tradeassay.sandbox.strategy'].NoEntry('no strategy')"
    ),
    "encodes for itself": inside(
        "import sys\nsys.modules['tradeassay.sandbox.child'].encode = lambda r: [b'x' * 100]"
    ),
    "asks the feed for what is left": bought(
        "f = self.data.p.line; (self.close() if self.position else self.buy()) if f.values and f.values[4] > f.values[1] else None"
    ),
    "changes the bars": inside("self.data.close[0] = self.data.close[0] * 2\nself.data.open[0] = 1.0"),
    "runs the strategy twice": inside("if len(self) == 40:\n    self.env.run()"),
    "sells what nobody has": bought("self.sell(size=1e9)"),
    "an unknown sizer": inside("self.setsizer(bt.sizers.AllInSizer())"),
}
BURDEN = {
    "sleeps": inside("import time\ntime.sleep(10**6)"),
    "never answers": inside(
        "import sys\nsys.modules['tradeassay.sandbox.feed'].answer = lambda *a: None\nself.buy(size=0)"
    ),
    "minus signs": "x = " + "-" * 50_000 + "1\n" + GOLD,
    "a chain of dots": "x = a" + ".a" * 25_000 + "\n" + GOLD,
    "nested lambdas": "x = " + "lambda: " * 7_000 + "0\n" + GOLD,
    "a file as large as it may be": first(
        "import tempfile, os\nf = tempfile.TemporaryFile()\ntry:\n    os.ftruncate(f.fileno(), 1 << 40)\nexcept OSError:\n    pass"
    ),
    "endless loop": inside("while True:\n    pass"),
    "eats memory": inside("self.x = [bytearray(10**7) for _ in range(10**4)]"),
    "a million orders": inside("for _ in range(3000):\n    self.buy(size=1e-6)"),
    "prints without end": inside("for _ in range(2000):\n    print('RESULT_' * 200)"),
    "threads": first(
        "import threading\nfor _ in range(200):\n    try:\n        threading.Thread(target=lambda: None).start()\n    except RuntimeError:\n        break"
    ),
    "leaves an atexit": first("import atexit\natexit.register(lambda: [0 for _ in iter(int, 1)])"),
    "handles signals": first(
        "import signal\ntry:\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    signal.alarm(0)\nexcept (OSError, ValueError):\n    pass"
    )
    + "\n# and goes on\n",
    "deep nesting": "x = " + "(" * 3000 + ")" * 3000 + "\n" + GOLD,
    "chained classes": "\n".join(f"class A{n}(A{n - 1}): pass" if n else "class A0: pass" for n in range(4000))
    + "\n"
    + GOLD,
    "a lone surrogate": GOLD + "\nx = '\ud800'\n",
    "null bytes": GOLD + "\x00",
    "writes to every descriptor": first(
        "import os\nfor fd in range(3, 40):\n    try:\n        os.write(fd, b'TAR1' * 64)\n    except OSError:\n        pass"
    ),
    "huge number": first("x = 10 ** 10 ** 7"),
    "orders that wait for ever": bought(
        "[self.buy(size=1, exectype=bt.Order.Limit, price=1e-6) for _ in range(4)]"
    ),
    "a chain of sums": "x = 1" + "+a" * 25_000 + "\n" + GOLD,
    "a ladder of elif": "x = 1\nif x: pass\n" + "elif x: pass\n" * 4_000 + GOLD,
    "decorators": "def f(g): return g\n" + "@f\n" * 15_000 + "def h(): pass\n" + GOLD,
    "brackets in brackets": "x = " + "a[" * 9_000 + "0" + "]" * 9_000 + "\n" + GOLD,
    "comparisons": "x = a" + "<a" * 25_000 + "\n" + GOLD,
    "functions in functions": "".join("  " * n + f"def f{n}():\n" for n in range(90))
    + "  " * 90
    + "pass\n"
    + GOLD,
    "a class made of classes": first("C = object\nfor n in range(20_000):\n    C = type('C', (C,), {})"),
    "many strings": "x = (" + "'a' " * 14_000 + ")\n" + GOLD,
    "an answer of 60 kB": inside("import os\nos.write(8, b'\\xff' * 65_536)"),
}
HONEST = {
    "prints a banner": inside("print('=== BACKTEST RESULTS ===', len(self))"),
    "writes a log to stderr": inside("import sys\nsys.stderr.write('INFO trade\\n')"),
    "logging": first("import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('start')"),
    "a main guard": GOLD
    + "\nif __name__ == '__main__':\n    c = bt.Cerebro()\n    c.addstrategy(S)\n    c.run()\n",
    "type hints": first("from __future__ import annotations\nfrom typing import Any\nx: Any = 1"),
    "a dataclass": first("from dataclasses import dataclass\n@dataclass\nclass P:\n    n: int = 3"),
    "unused imports": first("import math, json, re, collections, itertools, functools, statistics, decimal"),
    "reads the clock": first("import time, datetime\nstart = time.time(); now = datetime.datetime.now()"),
    "numpy and pandas": first("import numpy as np, pandas as pd\nframe = pd.DataFrame({'a': np.arange(3)})"),
    "keeps counters": inside("self.seen = getattr(self, 'seen', 0) + 1"),
    "notify methods": GOLD.replace(
        "    def next(self):",
        "    def notify_trade(self, trade):\n        self.last = trade\n\n    def next(self):",
        1,
    ),
    "a stop method": GOLD + "\n",
    "a log method": GOLD.replace(
        "    def next(self):",
        "    def log(self, txt):\n        print(txt)\n\n    def next(self):\n        self.log('%.2f' % self.data.close[0])",
        1,
    ),
    "tries and excepts": inside("try:\n    x = 1 / 0\nexcept ZeroDivisionError:\n    x = 0"),
    "a generator": inside("self.total = sum(k for k in range(5))"),
    "unicode names": first("größe = 'naïve – “quotes” 价格'"),
    "windows newlines": GOLD.replace("\n", "\r\n"),
    "a byte-order mark": "\ufeff" + GOLD,
    "gc and weakref": first("import gc, weakref\ngc.collect()"),
    "seeds": first("import random, numpy as np\nrandom.seed(0)\nnp.random.seed(0)"),
    "a decorated next": first(
        "import functools\ndef kept(f):\n    @functools.wraps(f)\n    def g(self):\n        return f(self)\n    return g"
    ).replace("    def next(self):", "    @kept\n    def next(self):", 1),
    "a base class of its own": GOLD.replace("(bt.Strategy)", "(Base)", 1).replace(
        "import backtrader as bt\n",
        "import backtrader as bt\nclass Base(bt.Strategy):\n    def log(self, text):\n        pass\n",
        1,
    ),
    "everything imported": GOLD.replace(
        "import backtrader as bt", "from backtrader import *\nimport backtrader as bt", 1
    ),
    "another name for indicators": first("import backtrader.indicators as btind"),
    "match and walrus": inside(
        "match len(self):\n    case 1:\n        pass\nif (n := len(self)) < 0:\n    return"
    ),
    "a context manager": inside("import contextlib\nwith contextlib.suppress(KeyError):\n    {}['x']"),
    "warnings": first("import warnings\nwarnings.filterwarnings('ignore')\nwarnings.warn('careful')"),
    "assertions": inside("assert self.data.close[0] > 0, 'prices are positive'"),
    "an enum": first("import enum\nclass Side(enum.Enum):\n    LONG = 1"),
    "an abstract base": first(
        "import abc\nclass Rule(abc.ABC):\n    @abc.abstractmethod\n    def said(self): ..."
    ),
    "an unused coroutine": first("async def fetch():\n    return 1"),
    "asks for TA-Lib": first("try:\n    import talib\nexcept ImportError:\n    talib = None"),
    "asks for a plot": first("try:\n    import matplotlib.pyplot as plt\nexcept ImportError:\n    plt = None"),
    "asks for threads": first("try:\n    import threading\nexcept ImportError:\n    threading = None"),
    "asks for a download": first("try:\n    import yfinance as yf\nexcept Exception:\n    yf = None"),
    "type checking imports": first(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from collections.abc import Sequence"
    ),
    "tabs": GOLD.replace("    ", "\t"),
    "a form feed": GOLD.replace("\nclass ", "\n\x0c\nclass ", 1),
    "a very long line": GOLD + "\n# " + "x" * 20_000,
    "no last newline": GOLD.rstrip("\n"),
    "a remembered window": inside(
        "import collections\nself.window = getattr(self, 'window', None) or collections.deque(maxlen=50)\nself.window.append(self.data.close[0])"
    ),
    "an array of closes": inside(
        "import numpy as np\nself.seen = np.append(getattr(self, 'seen', []), self.data.close[0])"
    ),
    "a short sleep": first("import time\ntime.sleep(0.01)"),
    "a log in its folder": first(
        "import logging\nlogging.basicConfig(filename='strategy.log')\nlogging.warning('start')"
    ),
    "a table in its folder": first(
        "import csv, tempfile, os\nwith open(os.path.join(tempfile.gettempdir(), 'trades.csv'), 'w') as f:\n    csv.writer(f).writerow([1, 2])"
    ),
    "looks for a configuration": first(
        "import os, json\nconfig = json.load(open('config.json')) if os.path.exists('config.json') else {}"
    ),
    "looks at the surroundings": first(
        "import os, sys, platform\nplace = (os.getcwd(), os.environ.get('HOME'), sys.version, platform.python_version())"
    ),
    "closes its output": first("import sys\nsys.stdout.close()"),
    "puts its output elsewhere": first("import io, sys\nsys.stdout = io.StringIO()\nsys.stderr = None"),
    "a deeper recursion": first("import sys\nsys.setrecursionlimit(5000)"),
    "an exit handler": first("import atexit\natexit.register(lambda: None)"),
    "a finalizer": first("import weakref\nclass Box: ...\nbox = Box()\nweakref.finalize(box, lambda: None)"),
    "pickles itself": first("import copy\nsettings = copy.deepcopy({'fast': 10, 'slow': [1, 2]})"),
}


FRAMES = {
    "looks at the next row": "def signals(frame):\n    return (frame['close'].shift(-1) > frame['close']).astype(float)\n",
    "fills backwards": "def signals(frame):\n    low = frame['close'].where(frame['close'].diff() < 0)\n    return (low.bfill() > frame['close']).astype(float)\n",
    "ranks the whole table": "def signals(frame):\n    return (frame['close'].rank(pct=True) < 0.5).astype(float)\n",
    "nothing where it will fall": "import numpy as np\ndef signals(frame):\n    c = frame['close'].to_numpy()\n    return np.where(np.append(c[1:], c[-1]) > c, 1.0, np.nan)\n",
    "keeps what it saw": "kept = {}\ndef signals(frame):\n    kept.update(frame['close'].to_dict())\n    late = list(kept.values())\n    return [float(late[-1] > one) for one in frame['close']]\n",
    "careful until the table is long": "def signals(frame):\n    c = frame['close']\n    ahead = c.shift(-1) if len(c) > 400 else c.shift(1)\n    return (ahead > c).astype(float).fillna(0.0)\n",
    "one row of a hundred": "import numpy as np\ndef signals(frame):\n    c = frame['close'].to_numpy()\n    up = np.append(c[1:], c[-1]) > c\n    own = c > np.concatenate([[c[0]], c[:-1]])\n    pick = np.arange(c.size) % 97 == 5\n    return np.where(pick, up, own).astype(float)\n",
    "reads behind its view": "import numpy as np\ndef signals(frame):\n    a = frame['close'].to_numpy()\n    b = np.lib.stride_tricks.as_strided(a, (a.size + 1,), (8,))\n    return (b[1:] > a).astype(float)\n",
    "a table of its own length": "import numpy as np\ndef signals(frame):\n    return np.ones(len(frame) + 1)\n",
    "infinite targets": "import numpy as np\ndef signals(frame):\n    return np.full(len(frame), np.inf)\n",
    "changes the frame": "def signals(frame):\n    frame.loc[:, 'close'] = 1.0\n    frame.loc[:, 'open'] = frame['close']\n    return (frame['close'] > 0).astype(float)\n",
}
"""Programs on frames that try to pass without doing the task."""


KINDS = {"reach": REACH, "score": SCORE, "burden": BURDEN, "frame": FRAMES, "honest": HONEST}


def main() -> int:
    """Print what became of every program, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--first", type=int, default=0, help="The number of the first program.")
    parser.add_argument("--many", type=int, default=1_000)
    parser.add_argument("--only", default="", help="Words of names, between commas.")
    given = parser.parse_args()
    every = [(kind, name, source) for kind, programs in KINDS.items() for name, source in programs.items()]
    words = given.only.split(",")
    every = [one for one in every if any(word in one[1] for word in words)]
    rules = rules_of("5a" * 16)
    tried: Counter[str] = Counter()
    through: dict[str, list[str]] = {"hostile": [], "honest": []}
    with open_code_executor(2) as executor:
        for number, (kind, name, source) in islice(enumerate(every), given.first, given.first + given.many):
            MARKER.unlink(missing_ok=True)
            before, wall = time.process_time(), time.monotonic()
            try:
                framework: Framework = "frame" if kind == "frame" else "backtrader"
                found = check_program(source, TASK, framework=framework, executor=executor, rules=rules)
                outcome, raised = str(found.outcome), False
                traces = [*found.attempts, *(trick.name for trick in found.tricks)]
            except Exception as error:
                outcome, raised, traces = f"RAISED {type(error).__name__}: {error}"[:80], True, []
            used, took = time.process_time() - before, time.monotonic() - wall
            bad = raised or MARKER.exists()
            bad |= kind == "reach" and outcome == "solved" and not traces
            bad |= kind in ("score", "frame") and outcome == "solved"
            bad |= kind == "burden" and (used > 5.0 or took > 150.0)
            bad |= kind == "honest" and outcome != "solved"
            side = "honest" if kind == "honest" else "hostile"
            tried[side] += 1
            if bad:
                through[side].append(name)
            shown = "; ".join(str(one)[:60] for one in traces[:2])
            told = f"{number:4} {kind:7}{name:32}{outcome:14}{used:6.2f} CPU-s{took:7.1f} s"
            print(f"{told}  {'BAD ' if bad else ''}{shown}", flush=True)
    print(f"{len(through['hostile'])} of {tried['hostile']} hostile programs got through: {through['hostile']}")
    print(f"{len(through['honest'])} of {tried['honest']} honest ones were refused: {through['honest']}")
    print(conditions())
    return 1 if any(through.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
