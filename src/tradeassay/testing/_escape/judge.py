"""Attacks on whoever judges a program: forged results, rows that were not given, the examiner's own parts."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.harness import Attack, done, forged, knows_future, knows_secret, touched

# Forging results, and looking at rows that were not given.

FORGING: Final[tuple[Attack, ...]] = (
    Attack(
        "printed-result",
        "result",
        """
        import os
        os.write(1, b'\\n{"evidence": [], "pnl": 2e9}\\n')
        os._exit(0)
        """,
        forged,
        short=True,
    ),
    Attack(
        "patched-score",
        "result",
        """
        import sys
        sys.modules["__main__"].score = lambda *arguments: 2e9
        """,
        forged,
        short=True,
    ),
    Attack(
        "patched-writer",
        "result",
        """
        import json, sys
        real = json.dumps
        json.dumps = lambda value, *a, **k: real({**value, "pnl": 2e9} if isinstance(value, dict) else value)
        codec = sys.modules.get("tradeassay.sandbox.codec")
        child = sys.modules.get("tradeassay.sandbox.child")
        if codec is not None:
            encode = codec.encode
            codec.encode = child.encode = lambda columns: encode({**columns, "pnl": [2e9]})
        """,
        forged,
    ),
    Attack(
        "infinite-result",
        "result",
        """
        import os, struct
        head = b'{"columns":[{"name":"pnl","kind":"f8","rows":1099511627776}]}'
        head += b" " * (-len(head) % 8)
        for descriptor in (1, 6):
            try:
                os.write(descriptor, b"TAS1" + struct.pack("<I", len(head)) + head if descriptor == 6 else
                         b'\\n{"evidence": [], "pnl": 1e999}\\n')
            except OSError:
                pass
        os._exit(0)
        """,
        forged,
    ),
    Attack(
        "pickle-result",
        "result",
        """
        import os, pickle
        class Touch:
            def __reduce__(self):
                return open, (p["folder"] + "/new", "w")
        for descriptor in (1, 6):
            try:
                os.write(descriptor, pickle.dumps(Touch()))
            except OSError:
                pass
        os._exit(0)
        """,
        touched,
    ),
    Attack(
        "overwrite-prices",
        "result",
        """
        import numpy
        close = columns["close"]
        class Shape:
            __array_interface__ = {
                "version": 3, "shape": (2,), "typestr": "<f8",
                "data": (close.__array_interface__["data"][0], False),
            }
        prices = numpy.asarray(Shape())
        prices[1] = 1e12
        decisions[0] = 1.0
        """,
        forged,
        numpy=True,
    ),
)

FUTURE: Final[tuple[Attack, ...]] = (
    Attack(
        "base-of-a-view",
        "future",
        "found.append(f\"{columns['close'].base[-1]:.4f}\")",
        knows_future,
        numpy=True,
        short=True,
    ),
    Attack(
        "beyond-the-end",
        "future",
        """
        import numpy
        close = columns["close"]
        class Shape:
            __array_interface__ = {
                "version": 3, "shape": (2048,), "typestr": "<f8",
                "data": (close.__array_interface__["data"][0], True),
            }
        found.extend({f"{value:.4f}" for value in numpy.asarray(Shape()) if 5000 <= value <= 6100})
        """,
        knows_future,
        numpy=True,
    ),
    Attack(
        "beyond-the-end-by-ctypes",
        "future",
        """
        import ctypes, struct
        raw = ctypes.string_at(columns["close"].ctypes.data, 16384)
        values = struct.unpack("<2048d", raw)
        found.extend({f"{value:.4f}" for value in values if 5000 <= value <= 6100})
        """,
        knows_future,
        numpy=True,
    ),
    Attack(
        "garbage-collector",
        "future",
        """
        import gc
        for thing in gc.get_objects():
            for value in list(thing.values()) if type(thing) is dict else [thing]:
                try:
                    if len(value) > 1000 and 5000 <= float(value[-1]) <= 6100:
                        found.append(f"{float(value[-1]):.4f}")
                        break
                except Exception:
                    pass
        """,
        knows_future,
    ),
    Attack(
        "callers-frames",
        "future",
        """
        import sys
        frame = sys._getframe()
        while frame is not None:
            for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
                try:
                    if len(value) > 64 and 5000 <= float(value[-1]) <= 6100:
                        found.append(f"{float(value[-1]):.4f}")
                        break
                except Exception:
                    pass
            frame = frame.f_back
        """,
        knows_future,
    ),
    Attack(
        "open-descriptors",
        "future",
        """
        import os, struct
        for descriptor in range(3, 64):
            try:
                raw = os.pread(descriptor, 1 << 20, 0)
            except OSError:
                continue
            values = struct.unpack(f"<{len(raw) // 8}d", raw[: len(raw) // 8 * 8])
            found.extend({f"{value:.4f}" for value in values if 5000 <= value <= 6100})
        """,
        knows_future,
        short=True,
    ),
    Attack(
        "descriptors-by-proc",
        "future",
        """
        import os, struct
        for name in os.listdir("/proc/self/fd"):
            try:
                if not os.path.isfile("/proc/self/fd/" + name):
                    continue
                raw = open("/proc/self/fd/" + name, "rb").read(1 << 20)
            except OSError:
                continue
            values = struct.unpack(f"<{len(raw) // 8}d", raw[: len(raw) // 8 * 8])
            found.extend({f"{value:.4f}" for value in values if 5000 <= value <= 6100})
        """,
        knows_future,
    ),
    Attack(
        "own-memory-file",
        "future",
        """
        import struct
        memory = open("/proc/self/mem", "rb")
        memory.seek(columns["close"].ctypes.data)
        values = struct.unpack("<2048d", memory.read(16384))
        found.extend({f"{value:.4f}" for value in values if 5000 <= value <= 6100})
        """,
        knows_future,
        numpy=True,
    ),
    Attack(
        "data-file-by-name",
        "future",
        """
        import struct
        raw = open("prices.bin", "rb").read()
        found.append(f"{struct.unpack('<d', raw[-8:])[0]:.4f}")
        """,
        knows_future,
    ),
)

# Asking the examiner's own parts for the future, touching the machine by locks, and hiding what was tried.

EXAMINER: Final[tuple[Attack, ...]] = (
    Attack(
        "market-generator",
        "future",
        """
        import importlib
        for name in ("tradeassay.code.bars", "tradeassay.data.synthetic.drivers", "tradeassay.code.mutants"):
            if importlib.import_module(name):
                found.append("done")
        """,
        done,
        short=True,
    ),
    Attack(
        "generator-in-memory",
        "future",
        """
        import gc, sys, types
        for name in ("tradeassay.code.bars", "tradeassay.code.judges.markets", "tradeassay.benchmarks.quantcode"):
            try:
                __import__(name)
            except ImportError:
                pass
        knows = ("synthetic", "bars", "judges", "quantcode", "evaluation", "mutants", "drawn")
        for name, module in list(sys.modules.items()):
            if name.startswith("tradeassay") and any(word in name for word in knows):
                found.append("done")
        makers = ("make_bars", "make_paths", "seed_from")
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and thing.__name__ in makers:
                found.append("done")
        """,
        done,
    ),
    Attack(
        "generator-by-its-file",
        "future",
        """
        import os, sys
        for folder in sys.path:
            for path in ("tradeassay/code/bars.py", "tradeassay/benchmarks/quantcode/loading.py"):
                if os.path.exists(os.path.join(folder, path)):
                    open(os.path.join(folder, path)).read()
                    found.append("done")
        """,
        done,
    ),
    Attack(
        "lock-a-library",
        "file",
        """
        import fcntl, os
        for lock in (fcntl.flock, fcntl.lockf):
            with open(os.__file__) as shared:
                lock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB)
                found.append("done")
        """,
        done,
    ),
    Attack(
        "true-randomness",
        "file",
        """
        raw = open("/dev/urandom", "rb").read(8)
        found.append("done" if len(raw) == 8 else "short")
        """,
        done,
    ),
    Attack(
        "clone-by-the-new-call",
        "process",
        """
        import ctypes, os
        wanted = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17)
        pid = ctypes.CDLL(None).syscall(435, wanted, 64)
        if pid == 0:
            os._exit(0)
        if pid > 0:
            os.waitpid(pid, 0)
            found.append("done")
        """,
        done,
    ),
    Attack(
        "open-by-the-new-call",
        "file",
        """
        import ctypes, os
        how = (ctypes.c_uint64 * 3)()
        descriptor = ctypes.CDLL(None).syscall(437, -100, p["secret"].encode(), how, 24)
        if descriptor >= 0:
            found.append(os.read(descriptor, 100).decode())
        """,
        knows_secret,
    ),
    Attack(
        "network-behind-many-files",
        "network",
        """
        import socket
        for number in range(80):
            try:
                open(f"/etc/nothing-{number}")
            except OSError:
                pass
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
        found.append("done")
        """,
        done,
    ),
)
