"""Count the files of the package that a reader must open to follow one feature from start to end.

    python perf/walks.py            the three counts
    python perf/walks.py --files    and the files themselves

The interpreter's profiling hook counts a file when one of its functions is called. Everything runs
once before, so imports and cached results (a synthetic market, compiled code) do not count. Limits:
a rule's run to its scores 50 files, a model's run 60, verifying that run 60.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import tradeassay_bench
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.runs import run
from tradeassay_bench.runs.verify.report import verify

PACKAGES = str(Path(__file__).resolve().parents[1] / "packages")
BENCHMARK = max(name for name, _ in benchmarks.items() if re.fullmatch(r"daily-us-v\d", name))
FIRST, LAST = "2022-03-01", "2022-03-04"


def entered(work: Callable[[], object]) -> list[str]:
    """Return the files of the package whose functions were called, in any thread."""
    found: set[str] = set()

    def hook(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename)

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # the way to take it away
    return sorted(name.partition("/src/")[2] for name in found if name.startswith(PACKAGES))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    asked.add_argument("--files", action="store_true", help="name the files")
    shown = asked.parse_args().files
    rule = tradeassay_bench.make_spec(
        BENCHMARK, agents=["momentum-12-1"], name="rule", first=FIRST, last=LAST
    )
    model = tradeassay_bench.make_spec(
        BENCHMARK, models=["scripted/sensible"], name="model", first=FIRST, last=LAST
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        walks: dict[str, Callable[[int], object]] = {
            "a rule's run to its scores (bar 50)": lambda n: run(
                rule, place / f"rule{n}", executor="inline"
            ),
            "a model's run to its scores (bar 60)": lambda n: run(
                model, place / f"model{n}", executor="inline"
            ),
            "verify of the model's run (bar 60)": lambda n: verify(place / "model0", workers=1),
        }
        for walk in walks.values():
            walk(0)
        for what, walk in walks.items():
            files = entered(partial(walk, 1))
            print(f"{what}: {len(files)} files")
            if shown:
                print("    " + "\n    ".join(files))


if __name__ == "__main__":
    main()
