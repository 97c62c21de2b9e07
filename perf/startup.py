"""Measure the cold start of `tradeassay --help`, next to a bare interpreter, and list imported
modules.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

from machine import conditions

BAR = 0.4
REPEATS = 9


def seconds(*words: str, cold: bool) -> float:
    """Return wall seconds of a fresh interpreter.

    ``cold`` empties the byte-code cache every time.
    """
    with tempfile.TemporaryDirectory() as cache:
        prefix = ["-X", f"pycache_prefix={cache}"] if cold else []
        begin = time.perf_counter()
        subprocess.run([sys.executable, *prefix, *words], check=True, capture_output=True)
        return time.perf_counter() - begin


def main() -> int:
    rows = {
        "bare interpreter": ("-c", "pass"),
        "import tradeassay": ("-c", "import tradeassay"),
        "tradeassay --help": ("-m", "tradeassay", "--help"),
    }
    print("| command | warm, median | no byte code cached, median |")
    print("|---|---|---|")
    worst = 0.0
    for name, words in rows.items():
        warm, cold = (
            statistics.median(seconds(*words, cold=c) for _ in range(REPEATS))
            for c in (False, True)
        )
        print(f"| {name} | {warm:.3f} s | {cold:.3f} s |")
        worst = warm
    code = (
        "import sys, tradeassay; print([m for m in ('pandas', 'inspect_ai') if m in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
    print(f"\nimporting tradeassay loads of pandas and inspect_ai: {loaded}")
    print(f"bar for --help {BAR} s, python {sys.version.split()[0]}, {conditions()}")
    return 0 if worst < BAR and loaded == "[]" else 1


if __name__ == "__main__":
    sys.exit(main())
