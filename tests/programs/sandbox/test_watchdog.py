"""A job or a supervisor that is stuck costs its own job: the failure is recorded, and the pool goes
on.

The host is made to hang through a public seam: ``FrameFeed.until`` is the host's own function,
which the supervisor calls on every answer. How long the watchdog waits decides no test here: what
is stuck stays stuck, and jobs that must pass run under the usual limits.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tradeassay.core.errors import SandboxError
from tradeassay_programs.sandbox import (
    FileAttempt,
    Job,
    JobLimits,
    JobResult,
    OutputLimit,
    SandboxPool,
    SupervisorFault,
    WallTimeout,
    kind_of,
    seccomp,
    supervise,
    watchdog,
)
from tradeassay_programs.sandbox.supervise import Supervisor
from tradeassay_programs.sandbox.watch import ChildWatch

from .fed_programs import CONFIG, fed_job, fed_program

GOOD = Job(
    source="def run(columns):\n    return {'a': columns['x']}",
    columns={"x": [1.0]},
    pass_as="columns",
)
ROOMY = JobLimits(wall_s=120.0)


@pytest.fixture(scope="module")
def pool(machine: None) -> Iterator[SandboxPool]:
    """One worker: a job that keeps it would keep all."""
    with SandboxPool(CONFIG, workers=1) as opened:
        yield opened


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "STUCK_S", 3.0)
    monkeypatch.setattr(watchdog, "LEAVE_S", 2.0)


def opens(path: str) -> Job:
    return Job(source=f"def run(columns):\n    open({path!r})", pass_as="columns", limits=ROOMY)


def fed(until: Callable[[int, bytes], bool]) -> Job:
    return fed_job(fed_program(), until=until, limits=ROOMY)


def works(pool: SandboxPool) -> bool:
    return pool.run(GOOD).need()["a"].tolist() == [1.0]


@pytest.mark.parametrize(
    "path", ["//data/x.csv", "//", "///data/x.csv", "//../etc/passwd", "/" * 4000, "/a" * 2000]
)
def test_a_path_of_any_form_is_refused_and_recorded(pool, path):
    result = pool.run(opens(path))
    assert isinstance(result.failure, FileAttempt), result.failure
    assert works(pool)


def test_ten_thousand_awkward_paths_cost_their_job_and_no_other(pool):
    source = (
        "def run(columns):\n    for n in range(10_000):\n        try:\n"
        "            open('/lib/' * 700 + '.so.' + str(n))\n        except OSError:\n            "
        "pass\n"
        "    return {'a': [1]}"
    )
    result = pool.run(Job(source=source, pass_as="columns", limits=ROOMY))
    assert result.ok or isinstance(result.failure, OutputLimit)
    assert works(pool)


def spin(row: int, answer: bytes) -> bool:
    while True:
        row += 1


def test_a_supervisor_that_loops_is_ended_and_the_next_job_works(pool, impatient):
    result = pool.run(fed(spin))
    assert isinstance(result.failure, SupervisorFault)
    assert "stuck while reading an answer" in result.failure.text
    assert kind_of(result.failure) == "supervisor_fault" and len(result.answers) == 1
    assert works(pool)


def test_a_supervisor_that_waits_in_the_operating_system_is_left_behind(pool, impatient):
    free = threading.Event()

    def wait(row: int, answer: bytes) -> bool:
        return free.wait()

    before = len(os.listdir("/proc/self/fd"))
    try:
        result = pool.run(fed(wait))
        assert isinstance(result.failure, SupervisorFault)
        assert "took no step" in result.failure.text
        assert works(pool)
    finally:
        free.set()
    until = time.monotonic() + 60
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) == before, "it closes what it holds once it can go on"


def test_a_decision_that_does_not_end_costs_one_job(pool, impatient, monkeypatch):
    """As ``open("//data/x.csv")`` did."""

    def loops(self: ChildWatch, path: str, *, writes: bool) -> bool:
        while path:
            path += ""
        return True

    with monkeypatch.context() as patched:
        patched.setattr(ChildWatch, "_inside", loops)
        result = pool.run(opens("/data/x.csv"))
    assert (
        isinstance(result.failure, SupervisorFault)
        and "deciding a system call" in result.failure.text
    )
    assert result.usage.cpu_s > 0.0, "its child was killed, and the kernel told what it had used"
    assert works(pool)


def test_a_decision_that_raises_costs_one_job(pool, monkeypatch):
    def breaks(self: ChildWatch, path: str, *, writes: bool) -> bool:
        raise RecursionError("deep")

    with monkeypatch.context() as patched:
        patched.setattr(ChildWatch, "_inside", breaks)
        result = pool.run(opens("/data/x.csv"))
    assert (
        isinstance(result.failure, SupervisorFault)
        and "RecursionError: deep" in result.failure.text
    )
    assert works(pool)


@pytest.mark.parametrize(
    "message",
    [
        b"S",
        b"S{",
        b'S{"line": []}',
        b"S\xff\xfe",
        b"X{}",
        b"X[[[[",
        b"X" + b"[" * 60_000,
        b"?",
        b"Z" * 60_000,
        b"P",
        b"N",
    ],
)
def test_a_malformed_message_of_the_zygote_is_no_judgement_and_leaves_the_pool_working(
    pool, monkeypatch, message
):
    """A job that had not begun gets another child; one that had cannot be judged.

    Nothing else is raised.
    """
    receive, left = socket.recv_fds, [message]

    def garbled(line: socket.socket, *more: int) -> tuple[bytes, list[int], int, object]:
        received = receive(line, *more)
        instead_of = message[:1] if message[:1] in b"SXPN" else received[0][:1]
        if left and received[0][:1] == instead_of:
            for descriptor in received[1]:
                os.close(descriptor)
            return left.pop(), [], 0, None
        return received

    with monkeypatch.context() as patched:
        patched.setattr(socket, "recv_fds", garbled)
        try:
            result: JobResult | None = pool.run(GOOD)
        except SandboxError:
            result = None
    assert not left and (result is None or (result.ok and result.retried))
    assert works(pool)


def test_a_report_that_is_gone_is_no_decision(monkeypatch):
    """The child may die between the kernel's report and the host's answer."""
    reader, writer = os.pipe()
    try:
        assert seccomp.receive(reader) is None
    finally:
        os.close(reader)
        os.close(writer)


def test_a_child_that_does_not_die_keeps_the_verdict_that_ended_it(pool, monkeypatch):
    """The kernel may take its time to end a child that waits for a device."""
    job = Job(
        source="import time\ndef run(columns):\n    time.sleep(600)",
        pass_as="columns",
        limits=JobLimits(wall_s=0.5),
    )
    with monkeypatch.context() as patched:
        patched.setattr(supervise, "_DEATH_S", 0.5)
        patched.setattr(Supervisor, "_kill", lambda self: None)
        result = pool.run(job)
    assert isinstance(result.failure, WallTimeout)
    assert works(pool)
