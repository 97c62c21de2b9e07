"""Many jobs; opt in with ``-m slow``."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from tests.programs.sandbox.conftest import family

from tradeassay_programs.sandbox import Job, SandboxConfig, SandboxPool

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


def descriptors_at_rest(pids: list[int]) -> list[int]:
    """Open descriptors of each process.

    The zygote closes a job's socket just after it reports its end.
    """
    time.sleep(0.3)
    return [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids]


@pytest.mark.slow
@pytest.mark.parametrize("namespaces", [True, False])
def test_two_thousand_jobs_leak_nothing(machine, namespaces):
    columns = {"close": np.arange(2_500.0)}
    jobs = [
        Job(source=GOOD if n % 4 else BAD[n // 4 % len(BAD)], columns=columns, pass_as="columns")
        for n in range(2_000)
    ]
    with SandboxPool(SandboxConfig(preload=("numpy",), namespaces=namespaces), workers=2) as pool:
        for _ in pool.map(jobs[:100]):
            pass
        zygote = pool._sandbox._line.current().pid
        pids = [os.getpid(), *family(zygote)]
        descriptors = descriptors_at_rest(pids)
        memory = [resident_kb(pid) for pid in pids]
        good = sum(result.ok for result in pool.map(jobs))
        assert good == 1_500
        assert descriptors_at_rest(pids) == descriptors
        assert [os.getpid(), *family(zygote)] == pids
        grown = [resident_kb(pid) - before for pid, before in zip(pids, memory, strict=True)]
        assert max(grown) < 8_000, grown
