"""Asking the examiner's own parts for the future, touching the machine by locks, and hiding what was tried."""

from __future__ import annotations

from typing import Final

from tradeassay.testing._escape.attack import Attack, done, knows_secret

EXAMINER: Final[tuple[Attack, ...]] = (
    Attack(
        "market-generator",
        "future",
        """
        import importlib
        for name in ("tradeassay.code.bars", "tradeassay.data.synthetic.draws", "tradeassay.code.mutants"):
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
