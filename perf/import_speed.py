"""Import of a large folder: 5,000 files with 2,000 rows each (10 million rows) by default.

    python perf/import_speed.py [--files 5000] [--rows 2000]

Prints CPU time and peak memory of ``tradeassay data import`` in a process of its own. The bar: under 60
CPU-seconds and 2 GB for the default size. Wall time says how loaded the machine is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_files(folder: Path, files: int, rows: int) -> int:
    """Write files of daily bars on weekdays; return their bytes."""
    rng = np.random.default_rng(0)
    days = np.busday_offset(np.datetime64("2016-01-04"), np.arange(rows)).astype(str).tolist()
    folder.mkdir()
    written = 0
    # A few random walks, written many times under other names: what is measured is the reading.
    walks = []
    for _ in range(20):
        close = np.round(50.0 * np.exp(np.cumsum(rng.normal(0, 0.01, rows))), 2)
        opened = np.round(close * (1 + rng.normal(0, 0.003, rows)), 2)
        high, low = np.maximum(opened, close) + 0.05, np.minimum(opened, close) - 0.05
        volume = rng.integers(10_000, 9_000_000, rows)
        lines = [
            f"{day},{o:.2f},{h:.2f},{lo:.2f},{c:.2f},{v}"
            for day, o, h, lo, c, v in zip(days, opened, high, low, close, volume, strict=True)
        ]
        walks.append("date,open,high,low,close,volume\n" + "\n".join(lines) + "\n")
    for number in range(files):
        text = walks[number % len(walks)]
        (folder / f"N{number:04d}.csv").write_text(text)
        written += len(text)
    return written


def main() -> None:
    """Write the files, import them in a child, print what it cost."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--rows", type=int, default=2_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        size = write_files(place / "prices", asked.files, asked.rows)
        command = [sys.executable, "-m", "tradeassay", "data", "import", str(place / "prices"), "--allow-faults"]
        environment = os.environ | {"TRADEASSAY_HOME": str(place / "home")}
        start = time.monotonic()
        child = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert child.stdout is not None
        said = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        seconds = used.ru_utime + used.ru_stime
        print(f"{asked.files:,} files, {asked.files * asked.rows:,} rows, {size / 1e6:,.0f} MB of text")
        print(f"exit {os.waitstatus_to_exitcode(status)}; {said.strip().splitlines()[-1] if said.strip() else ''}")
        print(f"CPU {seconds:.1f} s, peak {used.ru_maxrss / 1e6:.2f} GB (wall {time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
