"""Supervise one child: start it, read its pipes within limits, and answer the kernel."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from tradeassay.core.errors import UNDECODABLE, SandboxError, UserError
from tradeassay_programs.sandbox.child import ORDER_LENGTH
from tradeassay_programs.sandbox.codec import encode
from tradeassay_programs.sandbox.failures import (
    Attribution,
    ChildFacts,
    Failure,
    OutputLimit,
    Stopped,
    SupervisorFault,
    WallTimeout,
    attribute_outcome,
    classify_outcome,
)
from tradeassay_programs.sandbox.feed import FeedLine
from tradeassay_programs.sandbox.job import ChildOrder, Job, JobResult, JobUsage
from tradeassay_programs.sandbox.strategy import Parsed
from tradeassay_programs.sandbox.tier import Tier
from tradeassay_programs.sandbox.watch import ChildWatch, Reach
from tradeassay_programs.sandbox.zygote import Exit

_START_S: Final = 60.0
_DEATH_S: Final = 30.0
_BEAT_S: Final = 1.0
"""The interval between two wake-ups of a waiting host, in seconds.

A wake-up after more than twice the interval means that the whole machine was suspended.
"""
_MOST_WAITING: Final = 9.0
"""Maximum wait for a processor that is not charged to the child, in multiples of its time limit."""
_CHUNK: Final = 1 << 20
_PIPE_BYTES: Final = 1 << 20


class ZygoteLost(SandboxError):
    """Raised if the zygote ended or stopped answering during a job. The job is not the cause."""


class IsolationFailed(SandboxError):
    """Raised if a child could not be isolated. Its code did not run and is not the cause."""


class SupervisorStuck(BaseException):
    """Raised by the watchdog in the thread of a supervisor that makes no progress."""


class Supervisor:
    """Runs one job in a child, and owns every descriptor of the job.

    Use it as a context manager and call :meth:`run` once. It works in a separate thread under a
    watchdog, which reads :attr:`steps` and :attr:`busy_with`. Only :meth:`give_up` and
    :meth:`failed` may be called from another thread.
    """

    def __init__(self, job: Job, tier: Tier, reach: Reach) -> None:
        self._job = job
        self._tier = tier
        self._watch = ChildWatch(tier.machine, reach)
        self._owned: list[int] = []
        self._poll = select.poll()
        self._buffers: dict[int, bytearray] = {}
        self._open_pipes: set[int] = set()
        self._result = -1
        self._log = -1
        self._listener = -1
        self._process = -1
        self._folder = -1
        self._control: socket.socket | None = None
        self._line: FeedLine | None = None
        self._parsed: Parsed | None = None
        self._exit: Exit | None = None
        self._stopped: Stopped | None = None
        self._closing = threading.Lock()
        self._given_up = False
        self._started = time.monotonic()
        self.steps = 0
        self.busy_with = ""
        self._waited = 0.0
        self._no_processor = 0.0
        self._stopped_at = 0.0
        self._woke = time.monotonic()

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        # If the child's handle has not been read yet, its zygote kills the child when the control
        # line closes.
        with self._closing:
            if self._exit is None:
                self._kill()
            for descriptor in self._owned:
                os.close(descriptor)
            self._owned = []
            self._process = -1
            if self._line is not None:
                self._line.close()
            if self._control is not None:
                self._control.close()

    def give_up(self) -> None:
        """End the job from another thread: kill the child and wake the supervisor, which then ends
        too.
        """
        self._given_up = True
        if not self._closing.acquire(timeout=_BEAT_S):
            return  # The supervisor is already closing everything.
        try:
            self._kill()
            if self._control is not None:
                with suppress(OSError):  # closed already
                    self._control.shutdown(socket.SHUT_RDWR)
        finally:
            self._closing.release()

    def failed(self, failure: Failure) -> JobResult:
        """Return the result, from the facts known so far, of a job without an exit status."""
        if self._exit is not None:
            cpu_s, peak_mb = self._exit.cpu_s, self._exit.peak_mb
        else:
            cpu_s, peak_mb = _used_by(self._process)
        return JobResult(
            source=self._job.sha256,
            tier=self._tier,
            usage=JobUsage(cpu_s=cpu_s, wall_s=time.monotonic() - self._started, peak_mb=peak_mb),
            failure=failure,
            attempts=self._watch.attempts,
            answers=() if self._line is None else tuple(self._line.answers),
        )

    @property
    def stopped(self) -> Stopped | None:
        """The host's reason for ending the child, or None if the host did not end it."""
        return self._stopped

    @property
    def began(self) -> bool:
        """Whether any of the code may have run."""
        return self._parsed is not None

    def run(self, zygote: socket.socket) -> tuple[JobResult, Attribution]:
        """Run the job, and return its result and the cause to which it is attributed."""
        killed_before = _oom_kills()
        started = self._started
        self._step("sending the job")
        self._send_to(zygote)
        while (
            self._exit is None or self._open_pipes or (self._line is not None and self._line.open)
        ):
            if self._given_up:
                raise ZygoteLost("the job was given up")
            self._step("waiting for the child")
            for descriptor, event in self._next_events(self._seconds_left(started)):
                try:
                    self._take(descriptor, event)
                except SupervisorStuck:
                    self._stop(SupervisorFault(reason=f"it was stuck while {self.busy_with}"))
                    if self._line is not None:
                        self._line.close()
        assert self._exit is not None
        self._step("reading the result")
        limits = self._job.limits
        facts = ChildFacts(
            status=self._exit.status,
            cpu_s=self._exit.cpu_s,
            peak_mb=self._exit.peak_mb,
            cpu_limit_s=limits.cpu_s,
            caps=limits.caps(),
            parsed=self._parsed,
            stopped=self._stopped,
            out_of_memory=_oom_kills() > killed_before,
            base_mb=self._exit.base_mb,
            memory_mb=limits.memory_mb,
            attempts=self._watch.attempts,
            fail_on=self._job.fail_on,
            result=self._buffers[self._result],
        )
        outcome = classify_outcome(facts)
        columns = outcome if isinstance(outcome, dict) else None
        result = JobResult(
            source=self._job.sha256,
            tier=self._tier,
            usage=JobUsage(
                cpu_s=facts.cpu_s, wall_s=time.monotonic() - started, peak_mb=facts.peak_mb
            ),
            columns=columns,
            failure=None if isinstance(outcome, dict) else outcome,
            attempts=tuple(facts.attempts),
            answers=() if self._line is None else tuple(self._line.answers),
            log=bytes(self._buffers[self._log]),
            files=collect(self._folder, limits.scratch_mb << 20) if self._folder >= 0 else {},
        )
        return result, attribute_outcome(facts, outcome)

    def _step(self, busy_with: str) -> None:
        """Report progress and the next step to the watchdog."""
        self.busy_with = busy_with
        self.steps += 1

    def _take(self, descriptor: int, event: int) -> None:
        """Handle one event."""
        assert self._control is not None
        if descriptor == self._control.fileno():
            self._step("reading a message of the zygote")
            self._take_message()
        elif descriptor == self._listener:
            self._step("deciding a system call")
            self._take_report(event)
        elif self._line is not None and self._line.owns(descriptor):
            self._step("reading an answer")
            limit = self._job.limits.result_mb << 20
            if not self._line.turn(limit):
                self._stop(OutputLimit(stream="answers", limit=limit))
                self._line.close()
        else:
            self._step("reading output")
            self._take_output(descriptor)

    def _send_to(self, zygote: socket.socket) -> None:
        job = self._job
        source = job.source.encode("utf-8", "surrogatepass")
        order = msgspec.json.encode(
            ChildOrder(
                call=job.call, limits=job.limits, seed=job.seed, guard_imports=job.guard_imports
            )
        )
        try:
            rows = encode(job.columns)
        except (TypeError, ValueError) as error:
            raise UserError(f"these columns cannot be given to a job: {error}") from error
        theirs: list[int] = []
        try:
            theirs.append(seal([ORDER_LENGTH.pack(len(order)), order, source], "order"))
            theirs.append(seal(rows, "rows"))
            self._result, result = self._pipe()
            theirs.append(result)
            self._log, log = self._pipe()
            theirs.append(log)
            if job.feed is not None:
                self._line = FeedLine(job.feed, self._poll)
                theirs += self._line.theirs
            self._control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with control:
                self._poll.register(self._control, select.POLLIN)
                socket.send_fds(zygote, [b"J"], [*theirs, control.fileno()])
        except (BrokenPipeError, ConnectionError) as error:
            raise ZygoteLost(f"the sandbox's zygote is gone: {error}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def _pipe(self) -> tuple[int, int]:
        mine, theirs = os.pipe2(os.O_CLOEXEC)
        self._owned.append(mine)
        fcntl.fcntl(mine, fcntl.F_SETFL, os.O_NONBLOCK)
        try:
            fcntl.fcntl(mine, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            pass  # The user's quota of pipe memory is used up. Smaller pipes only need more turns.
        self._poll.register(mine, select.POLLIN)
        self._buffers[mine] = bytearray()
        self._open_pipes.add(mine)
        return mine, theirs

    def _next_events(self, seconds: float) -> list[tuple[int, int]]:
        """Wait for events, and add the elapsed time to the child's time.

        Time during which the whole machine was suspended does not count.
        """
        events = self._poll.poll((seconds if seconds < _BEAT_S else _BEAT_S) * 1000 + 1)
        before, self._woke = self._woke, time.monotonic()
        if self._process >= 0:
            slept = self._woke - before
            self._waited += slept if slept < 2 * _BEAT_S else 2 * _BEAT_S
        return events

    def _seconds_left(self, started: float) -> float:
        """Return the time left to wait, in seconds. Stop the child if its time is up.

        Time during which the child waited for a processor does not count.
        """
        if self._stopped is not None:
            left = self._stopped_at + _DEATH_S - time.monotonic()
        elif self._process < 0:
            left = started + _START_S - time.monotonic()
        else:
            limit = self._job.limits.wall_s
            left = limit + self._no_processor - self._waited
            if left <= 0:
                self._no_processor = min(
                    _waited_for_processor(self._process), _MOST_WAITING * limit
                )
                left = limit + self._no_processor - self._waited
            if left <= 0:
                self._stop(WallTimeout(limit_s=limit))
                left = _DEATH_S
        if left <= 0:
            raise ZygoteLost("the sandbox's zygote does not answer")
        return left

    def _take_message(self) -> None:
        """Read one message on the control line: a descriptor, the parser's verdict, or the exit."""
        assert self._control is not None
        message, fds, _, _ = socket.recv_fds(self._control, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
        self._owned += fds
        kind, body = message[:1], message[1:]
        if kind in (b"P", b"M", b"D", b"N") and not fds:
            raise SandboxError(
                "this process has no free file descriptor", hint="raise it with `ulimit -n`"
            )
        if kind == b"P":
            self._process = fds[0]
            self._watch.process = self._process
            # The output may have exceeded its limit before this handle was read.
            if self._stopped is not None:
                self._kill()
        elif kind == b"M":
            self._watch.memory = fds[0]
        elif kind == b"D":
            self._folder = fds[0]
            self._watch.folder = self._folder
        elif kind == b"N":
            self._listener = fds[0]
            self._poll.register(self._listener, select.POLLIN)
        elif kind == b"S":
            self._parsed = _read(body, Parsed)
        elif kind == b"X":
            self._exit = _read(body, Exit)
            self._poll.unregister(self._control)
        elif kind == b"E":
            raise IsolationFailed(
                f"a job could not be isolated: {body.decode('utf-8', 'replace')}",
                hint="run `tradeassay doctor`, or set namespaces=False in SandboxConfig",
            )
        else:
            raise ZygoteLost("the sandbox's zygote ended while a job was under way")

    def _take_report(self, event: int) -> None:
        if not event & select.POLLIN:
            self._poll.unregister(self._listener)  # The child has ended.
            return
        limits = self._job.limits
        try:
            self._watch.answer(self._listener)
        except Exception as error:  # The call is still waiting, so the child must be killed here.
            self._stop(
                SupervisorFault(reason=f"a system call brought {type(error).__name__}: {error}")
            )
            return
        if self._watch.refused > limits.attempts:
            self._stop(OutputLimit(stream="refused calls", limit=limits.attempts))
        elif self._watch.file_calls > limits.file_calls:
            self._stop(OutputLimit(stream="file calls", limit=limits.file_calls))

    def _take_output(self, descriptor: int) -> None:
        data = os.read(descriptor, _CHUNK)
        if not data:
            self._poll.unregister(descriptor)
            self._open_pipes.discard(descriptor)
            return
        limits = self._job.limits
        is_result = descriptor == self._result
        limit = limits.result_mb << 20 if is_result else limits.log_kb << 10
        buffer = self._buffers[descriptor]
        if len(buffer) + len(data) > limit:
            self._stop(OutputLimit(stream="result" if is_result else "log", limit=limit))
            data = data[: limit - len(buffer)]
        buffer += data

    def _stop(self, why: Stopped) -> None:
        """Kill the child. The first reason is kept."""
        if self._stopped is None:
            self._stopped, self._stopped_at = why, time.monotonic()
        self._kill()

    def _kill(self) -> None:
        if self._process >= 0:
            try:
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            except ProcessLookupError:
                return  # The child ended on its own in the meantime.


_Message = TypeVar("_Message")


def _read(body: bytes, kind: type[_Message]) -> _Message:
    try:
        return msgspec.json.decode(body, type=kind)
    except UNDECODABLE as error:
        raise ZygoteLost(
            f"the sandbox's zygote sent a message that cannot be read: {error}"
        ) from error


def _pid_of(process: int) -> str:
    """Return the process id of a pidfd. Raises OSError or StopIteration if there is none."""
    with open(f"/proc/self/fdinfo/{process}", encoding="ascii") as file:
        return next(line.split()[1] for line in file if line.startswith("Pid:"))


def _used_by(process: int) -> tuple[float, float]:
    """Return a live child's processor seconds and peak memory in MB. Both are 0 for an ended child.

    ``process`` is a pidfd.
    """
    try:
        pid = _pid_of(process)
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            peak_kb = next((int(line.split()[1]) for line in file if line.startswith("VmHWM:")), 0)
    except (OSError, StopIteration, IndexError, ValueError):
        return 0.0, 0.0
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), peak_kb / 1024


def _waited_for_processor(process: int) -> float:
    """Return the seconds during which a child was ready to run but waited for a processor.

    ``process`` is a pidfd. Returns 0 if the kernel does not count this time.
    """
    try:
        pid = _pid_of(process)
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, StopIteration, IndexError, ValueError):
        return 0.0


def _oom_kills() -> int:
    with open("/proc/vmstat", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)


_F_ADD_SEALS: Final = 1033
_SEAL_SEAL_SHRINK_GROW_WRITE: Final = 0x1 | 0x2 | 0x4 | 0x8


def seal(parts: Iterable[bytes], name: str) -> int:
    """Return a descriptor of sealed memory with the given bytes. Nobody can change the content."""
    descriptor = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    try:
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[os.write(descriptor, view) :]
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEAL_SEAL_SHRINK_GROW_WRITE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_MAX_FILES: Final = 64


def collect(folder: int, cap: int) -> dict[str, bytes]:
    """Return the plain files at the top of ``folder`` by name.

    At most ``cap`` bytes and 64 files are returned.
    """
    found: dict[str, bytes] = {}
    for name in sorted(os.listdir(folder))[:_MAX_FILES]:
        try:
            file = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
            )
        except OSError:
            continue
        try:
            facts = os.fstat(file)
            if stat.S_ISREG(facts.st_mode) and facts.st_size <= cap and name.isprintable():
                found[name] = os.pread(file, facts.st_size, 0)
                cap -= len(found[name])
        finally:
            os.close(file)
    return found
