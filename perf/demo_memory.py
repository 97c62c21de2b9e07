"""How much memory does the demo take, all its processes together?

Runs a command (default: the demo in a fresh folder and a fresh data home, so that worlds are generated and
caches are cold) and samples the proportional set size of the whole process tree: memory shared between
processes is counted once. Linux only. The bar is 600 MB.

    python perf/demo_memory.py [--bar MB] [-- COMMAND ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BAR_MB = 600
EVERY = 0.05


def tree(root: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def pss_kb(pid: int) -> int:
    """Return a process's proportional set size, 0 when it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def measure(command: list[str], env: dict[str, str], folder: Path) -> tuple[dict[int, int], float, int]:
    """Run a command; return the sizes by process at the peak, the seconds it took, and its exit status."""
    peak: dict[int, int] = {}
    began = time.perf_counter()
    with subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            sizes = {pid: size for pid in tree(process.pid) if (size := pss_kb(pid))}
            if sum(sizes.values()) > sum(peak.values()):
                peak = sizes
            time.sleep(EVERY)
    return peak, time.perf_counter() - began, process.returncode


def main() -> int:
    """Measure, print, and return 1 when the bar is missed or the command fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bar", type=float, default=BAR_MB, help="megabytes not to exceed")
    parser.add_argument("command", nargs="*", help="what to run (default: the demo)")
    given = parser.parse_args()
    command = given.command or [sys.executable, "-m", "tradeassay", "demo"]
    with tempfile.TemporaryDirectory() as folder:
        cold = {"TRADEASSAY_HOME": f"{folder}/home", "NUMBA_CACHE_DIR": f"{folder}/numba"}
        peak, seconds, status = measure(command, {**os.environ, **cold}, Path(folder))
    total = sum(peak.values()) / 1024
    parts = ", ".join(f"{size / 1024:.0f}" for size in peak.values())
    print(f"peak {total:.0f} MB in {len(peak)} processes: {parts}")
    print(f"{seconds:.1f} s, exit status {status}; the bar is {given.bar:.0f} MB")
    return int(status != 0 or total > given.bar)


if __name__ == "__main__":
    sys.exit(main())
