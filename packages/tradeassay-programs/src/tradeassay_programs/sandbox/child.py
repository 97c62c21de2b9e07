"""Run one job in one child process: isolate it, parse the code, run it, send the columns and exit.

All code up to :func:`_run` belongs to this project and is trusted. After the strategy starts,
nothing in the process is trusted. The parser's verdict is therefore sent first, over a socket that
is closed before the strategy runs.
"""

import fcntl
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType
from typing import Final, NoReturn

import msgspec

from tradeassay_programs.sandbox import kernel, seccomp
from tradeassay_programs.sandbox.codec import Array, Caps, decode, encode, encode_claim
from tradeassay_programs.sandbox.feed import ANSWER_FD, FEED_FD
from tradeassay_programs.sandbox.job import ChildOrder, JobLimits
from tradeassay_programs.sandbox.kernel import CONTROL_FD
from tradeassay_programs.sandbox.namespaces import NOBODY, SCRATCH, become_nobody, enter_scratch
from tradeassay_programs.sandbox.strategy import (
    Parsed,
    StrategyCall,
    claim_of,
    fix_seeds,
    parse,
    run_encoded,
)

ORDER_LENGTH: Final = struct.Struct("<I")
SETUP_FAILED: Final = 70
_ORDER_FD, _ROWS_FD, _RESULT_FD = 3, 4, 6
PARK_ABOVE: Final = 100
"""Lowest number for descriptors that must survive while low numbers are assigned."""

_OPEN_FILES: Final = 64
_NO_CAPS: Final = Caps(columns=1 << 16, rows=1 << 40, words=1 << 40, total=1 << 40)


@dataclass(frozen=True, slots=True)
class Stage:
    """State prepared by the zygote for its children.

    Its descriptors are closed before strategy code runs.
    """

    machine: str
    program: bytes
    landlock_abi: int
    rules: tuple[tuple[int, int], ...]
    allowed: frozenset[str]
    proc: int
    base_bytes: int
    base_mb: float
    private_root: bool
    nobody: bool
    notify: bool
    parent: int


def warm_up() -> None:
    """Do the slow first-time work of a child once in the zygote, including imports."""
    fix_seeds(0)
    order = ChildOrder(call=StrategyCall(), limits=JobLimits(), seed=0, guard_imports=True)
    msgspec.json.decode(msgspec.json.encode(order), type=ChildOrder)
    msgspec.json.encode(Parsed())
    text = "def run(columns):\n    return {'a': columns['close'][columns['no']]}"
    columns = decode(
        b"".join(encode({"close": [1.0, 2.0, 3.0], "no": [0, 2, 7], "name": ["a", None, "b"]})),
        _NO_CAPS,
    )
    assert isinstance(columns, dict)
    code, _ = parse(text, frozenset())
    assert code is not None
    try:
        run_encoded(code, StrategyCall(pass_as="columns"), columns, frozenset())
    except IndexError as error:
        encode_claim(claim_of(error))
    if "pandas" in sys.modules:
        code, _ = parse(
            "def run(frame):\n    return frame['close'].rolling(2).mean().diff() > 0", frozenset()
        )
        assert code is not None
        run_encoded(code, StrategyCall(), columns, frozenset())


def main(fds: list[int], stage: Stage) -> NoReturn:
    """Run one job as the child process, and exit.

    ``fds`` are the descriptors of the order, rows, result, log, optional feed and answers, and
    control line.
    """
    control: socket.socket | None = None
    try:
        # Put the job's descriptors at the numbers that the filter and the code expect. All children
        # share the zygote's descriptor 0, so flags that one job sets on it would be visible to the
        # next job.
        fresh = os.open(os.devnull, os.O_RDONLY)
        os.dup2(fresh, 0)
        os.close(fresh)
        order_fd, rows_fd, result, log, *fed, line = (
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, PARK_ABOVE) for fd in fds
        )
        places = {
            _ORDER_FD: order_fd,
            _ROWS_FD: rows_fd,
            CONTROL_FD: line,
            _RESULT_FD: result,
            1: log,
            2: log,
        }
        for target, source_fd in (
            places | dict(zip((FEED_FD, ANSWER_FD), fed, strict=False))
        ).items():
            os.dup2(source_fd, target)
        control = socket.socket(fileno=CONTROL_FD)
        content = os.pread(_ORDER_FD, os.fstat(_ORDER_FD).st_size, 0)
        (length,) = ORDER_LENGTH.unpack_from(content)
        end = ORDER_LENGTH.size + length
        order = msgspec.json.decode(content[ORDER_LENGTH.size : end], type=ChildOrder)
        source = content[end:].decode("utf-8", "surrogatepass")
        rows = mmap.mmap(_ROWS_FD, 0, mmap.MAP_SHARED, mmap.PROT_READ)
        _raise_walls(order.limits, stage, control, len(rows))
        os.closerange(_RESULT_FD + 1 + len(fed), 1 << 20)
        columns = decode(memoryview(rows), _NO_CAPS)
        assert isinstance(columns, dict)
        fix_seeds(order.seed)
        listener = seccomp.install(
            seccomp.for_process(stage.program, os.getpid()), listener=stage.notify
        )
        if stage.notify:
            socket.send_fds(control, [b"N"], [listener])
            os.close(listener)
    except BaseException as error:
        if control is not None:
            control.sendmsg(
                [b"E" + f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:4000]]
            )
        os._exit(SETUP_FAILED)
    allowed = stage.allowed if order.guard_imports else None
    code, verdict = parse(source, allowed)
    control.sendmsg([b"S" + msgspec.json.encode(verdict)])
    control.close()
    if code is not None:
        try:
            _run(code, order.call, columns, allowed)
        except BaseException:
            os._exit(
                1
            )  # The result is closed. A traceback would need files that the child may not open.
    os._exit(0)


def _raise_walls(limits: JobLimits, stage: Stage, control: socket.socket, rows_bytes: int) -> None:
    """Isolate the process with every mechanism except the call filter.

    The host receives descriptors of this process's memory, for reading paths, and of its scratch
    folder.
    """
    kernel.die_with_parent()
    if os.getppid() != stage.parent:
        os._exit(SETUP_FAILED)  # The zygote ended before this process could watch it.
    memory = os.open("self/mem", os.O_RDONLY | os.O_CLOEXEC, dir_fd=stage.proc)
    socket.send_fds(control, [b"M"], [memory])
    rules = list(stage.rules)
    if stage.private_root:
        owner = NOBODY if stage.nobody else os.geteuid()
        scratch = enter_scratch(limits.scratch_mb, limits.scratch_files, owner)
        socket.send_fds(control, [b"D"], [scratch])
        rules.append((scratch, kernel.READ_WRITE))
        os.environ.update(HOME=SCRATCH, TMPDIR=SCRATCH)
        tempfile.tempdir = SCRATCH
    space = stage.base_bytes + rows_bytes + (limits.memory_mb << 20)
    exact = dict.fromkeys((resource.RLIMIT_AS, resource.RLIMIT_DATA), space) | {
        resource.RLIMIT_FSIZE: limits.scratch_mb << 20,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 16,
    }
    for kind, value in exact.items():
        resource.setrlimit(kind, (value, value))
    # The signal at the soft limit distinguishes a time-out from a crash. Code that catches the
    # signal is killed one second later.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    if stage.nobody:
        become_nobody()
    kernel.drop_capabilities()
    kernel.die_with_parent()
    kernel.no_new_privileges()
    kernel.restrict(stage.landlock_abi, rules)


def _run(
    code: CodeType, call: StrategyCall, columns: dict[str, Array], allowed: frozenset[str] | None
) -> None:
    """Run the code, and send its columns or the child's claim. Nothing from here on is trusted."""
    os.close(_ORDER_FD)
    os.close(_ROWS_FD)
    try:
        parts = run_encoded(code, call, columns, allowed)
    except BaseException as error:
        parts = [encode_claim(claim_of(error))]
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # The code may have closed or replaced its streams.
            stream.flush()
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(_RESULT_FD, view) :]
