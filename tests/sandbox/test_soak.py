"""Many jobs; opt in with ``-m slow``."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tradeassay.sandbox import Job, SandboxConfig, SandboxPool

GOOD = "def run(columns):\n    return {'a': columns['close'].cumsum()}"
BAD = (
    "def run(columns):\n    1 / 0",
    "def run(",
    "import socket",
    "import os\ndef run(columns):\n    os.fork()",
    "import os\ndef run(columns):\n    os.abort()",
    "def run(columns):\n    open('x', 'w').write('y' * 1000)\n    open('/etc/passwd')",
)


def resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


def family(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("namespaces", [True, False])
def test_two_thousand_jobs_leak_nothing(machine: None, namespaces: bool) -> None:
    columns = {"close": np.arange(2_500.0)}
    jobs = [
        Job(source=GOOD if n % 4 else BAD[n // 4 % len(BAD)], columns=columns, pass_as="columns")
        for n in range(2_000)
    ]
    with SandboxPool(SandboxConfig(preload=("numpy",), namespaces=namespaces), workers=2) as pool:
        for _ in pool.map(jobs[:100]):
            pass
        zygote = pool._sandbox._line.current().pid
        pids = family(zygote)
        descriptors = [len(os.listdir(f"/proc/{pid}/fd")) for pid in (os.getpid(), *pids)]
        memory = [resident_kb(pid) for pid in (os.getpid(), *pids)]
        good = sum(result.ok for result in pool.map(jobs))
        assert good == 1_500
        assert family(zygote) == pids
        assert [len(os.listdir(f"/proc/{pid}/fd")) for pid in (os.getpid(), *pids)] == descriptors
        grown = [resident_kb(pid) - before for pid, before in zip((os.getpid(), *pids), memory, strict=True)]
        assert max(grown) < 8_000, grown
