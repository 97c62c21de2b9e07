"""Nothing that one job does is seen by the next: a sender tries to leave a bit, a reader looks for it."""

from __future__ import annotations

import pytest

from tradeassay.sandbox import Job, JobLimits, JobResult, Sandbox

LIMITS = JobLimits(cpu_s=5, wall_s=60.0, memory_mb=256, log_kb=64, result_mb=1, rows=1000, columns=4)

# name -> (what the sender does, an expression by which the reader would see it)
CHANNELS = {
    "status flags of descriptor 0": ("os.set_blocking(0, False)", "int(not os.get_blocking(0))"),
    "offset of descriptor 0": ("os.lseek(0, 7, 0)", "os.lseek(0, 0, 1)"),
    "files in the working folder": ("open('bit', 'w').write('1')", "int(os.path.exists('bit'))"),
    "creation mask": ("os.umask(0o077)", "int(os.umask(0) == 0o077)"),
    "ignored signals": (
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "int(signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN)",
    ),
    "environment": ("os.environ.update(BIT='1')", "int('BIT' in os.environ)"),
    "a loaded module": ("setattr(json, 'BIT', 1)", "getattr(json, 'BIT', 0)"),
    "random state": ("random.seed(7)", "int(random.random() == 0.32383276483316237)"),
    "remaining timer": ("signal.setitimer(signal.ITIMER_REAL, 50)", "int(signal.getitimer(0)[0] > 0)"),
    "times of a shared file": ("os.utime('/dev/null', (1, 1))", "int(os.stat('/dev/null').st_mtime == 1)"),
}


def _run(sandbox: Sandbox, body: str) -> JobResult:
    source = (
        "import json, os, random, signal\n"
        "def run(columns):\n"
        f"    try:\n        seen = {body}\n    except OSError:\n        seen = 0\n"
        "    return {'seen': [int(seen or 0) if isinstance(seen, (int, bool)) else 0]}"
    )
    job = Job(source=source, pass_as="columns", columns={"close": [1.0]}, limits=LIMITS, guard_imports=False)
    return sandbox.run(job)


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("walls", ["sandbox", "standard"])
def test_nothing_is_left_for_the_next_job(name: str, walls: str, request: pytest.FixtureRequest) -> None:
    opened: Sandbox = request.getfixturevalue(walls)
    send, look = CHANNELS[name]
    before = _run(opened, look).need()["seen"].tolist()
    _run(opened, send)  # it may be refused; what counts is what the next one sees
    assert _run(opened, look).need()["seen"].tolist() == before == [0]


def test_no_job_can_throw_a_shared_file_out_of_memory(sandbox: Sandbox) -> None:
    # Eviction is what makes the page cache a channel that can be written again and again.
    source = (
        "import os\n"
        "def run(columns):\n"
        "    f = os.open(os.__file__, os.O_RDONLY)\n"
        "    try:\n        os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)\n"
        "    except OSError:\n        return {'refused': [True]}\n"
        "    return {'refused': [False]}"
    )
    result = sandbox.run(Job(source=source, pass_as="columns", columns={"close": [1.0]}, limits=LIMITS))
    assert result.need()["refused"].tolist() == [True]
