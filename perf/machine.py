"""Report the load of the machine, printed with every measured time.

Load alone is not sufficient. On a virtual machine the host may give the processors to other guests.
The kernel counts this time as *steal*. A process is charged for part of it, so even CPU time grows.
A fixed loop measures the effect: its nanoseconds per turn can be compared between two runs on one
machine.
"""

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")


def fixed_loop(turns: int = 60_000) -> float:
    """Return the CPU seconds of a fixed loop."""
    began = time.process_time()
    total = 0
    for number in range(turns):
        total += number & 7
    assert total
    return time.process_time() - began


def conditions() -> str:
    """Return load, the host's share of time since this module was imported, and the fixed loop's
    pace.
    """
    told = [f"{os.cpu_count()} cores", f"load {os.getloadavg()[0]:.1f}"]
    now = _ticks()
    if _BEGAN and now and sum(now) > sum(_BEGAN):
        told.append(f"{(now[7] - _BEGAN[7]) / (sum(now) - sum(_BEGAN)):.0%} taken by the host")
    turns = 60_000
    paces = sorted(1e9 * fixed_loop(turns) / turns for _ in range(15))
    told.append(f"a fixed loop {paces[7]:.0f} ns a turn (best {paces[0]:.0f})")
    return ", ".join(told)


def _ticks() -> list[int]:
    """Return the kernel's counters of time by kind (user to steal), empty if it has none."""
    try:
        return [int(part) for part in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return []


_BEGAN = _ticks()
