"""Run the zygote: a clean process that loads the libraries and forks one child per job.

The zygote runs no strategy code and never sees a job. Source, rows and orders bypass it in sealed
memory that only the child maps, so a child's inherited memory reveals nothing about another job.
"""

import fcntl
import gc
import importlib
import importlib.util
import os
import platform
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tradeassay_programs.sandbox import child, kernel, seccomp
from tradeassay_programs.sandbox.namespaces import (
    DEVICES,
    SCRATCH,
    can_become_nobody,
    enter_private_root,
    find_roots,
    module_names,
    why_not,
)
from tradeassay_programs.sandbox.sandbox_config import HIDDEN, SandboxConfig, not_for_children
from tradeassay_programs.sandbox.strategy import allowed_modules
from tradeassay_programs.sandbox.tier import Tier

FDS_PER_JOB: Final = 7
"""Maximum number of descriptors of a job: order, rows, result, log, feed and answers of a fed job,
and control.
"""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The zygote's greeting to the host.

    The first message has ``view``, the zygote's names for the host's folders. The second message
    reports its isolation and a child's readable paths, or the error. ``listable`` folders can be
    listed but not read. ``searched`` folders are searched by the importer.
    """

    view: tuple[tuple[str, str], ...] = ()
    tier: Tier | None = None
    readable: tuple[str, ...] = ()
    listable: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    error: str = ""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """A child's exit as reported by the kernel.

    ``base_mb`` is the zygote's memory, with which the child started.
    """

    status: int
    cpu_s: float
    peak_mb: float
    base_mb: float


def main(descriptor: int, refused: str | None) -> None:
    """Serve the host at ``descriptor`` until it closes the connection.

    ``refused`` is the reason why there are no namespaces, or None.
    """
    host = socket.socket(fileno=descriptor)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    try:
        config = msgspec.json.decode(host.recv(1 << 16), type=SandboxConfig)
        stage, hello = _prepare(config, refused)
    except BaseException:
        host.send(msgspec.json.encode(Hello(error=traceback.format_exc()[-4000:])))
        os._exit(1)
    host.send(msgspec.json.encode(hello))
    _serve(host, stage)


def _prepare(config: SandboxConfig, refused: str | None) -> tuple[child.Stage, Hello]:
    """Load the libraries and isolate the zygote.

    Returns the state for its children, and the greeting to the host. ``refused`` is the reason why
    there are no namespaces, or None.
    """
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")  # If memory runs out, the kernel kills the sandbox first.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    proc = _open_high("/proc")
    absent = _load(config)
    child.warm_up()
    loaded = not_for_children(sys.modules)
    if loaded:
        raise RuntimeError(
            f"{', '.join(loaded[:5])} must not be loaded where untrusted code runs; a harness did"
        )
    _assert_one_thread()
    roots = find_roots()
    isolation = ["landlock", "seccomp", "rlimits", "no capabilities", "empty environment"]
    missing = (
        []
        if refused is None
        else [f"namespaces ({refused}): no private file system, no scratch folder"]
    )
    private = refused is None
    if private:
        try:
            enter_private_root(roots)
        except OSError as error:
            private = False
            missing.append(f"a private file system ({error}): no scratch folder")
    readable = (*(roots.readable() if private else roots.readable_one_by_one()), *DEVICES)
    listable = () if private else roots.stdlib
    size, resident = _memory(proc)
    nobody = can_become_nobody()
    above: set[Path] = set()
    for folder in roots.stdlib:
        above |= {Path(folder), *Path(folder).parents}
    if (
        nobody
        and not private
        and not all(folder.stat().st_mode & 0o005 == 0o005 for folder in above)
    ):
        missing.append(
            "libraries that user nobody can read: only modules loaded at the start can be imported"
        )
    notify = seccomp.has_action(seccomp.RET_NOTIFY) and why_not(_listen) is None
    if notify:
        isolation.append("seccomp notification")
    else:
        missing.append("seccomp notification: refused calls are not recorded")
    isolation += (["namespaces"] if refused is None else []) + (["private root"] if private else [])
    if nobody:
        isolation.append("user nobody")
    elif refused is None:
        isolation.append("user namespace")
    if not nobody and refused is not None:
        missing.append("a user of its own: the code runs under the caller's id")
    machine, abi = platform.machine(), kernel.landlock_abi()
    stage = child.Stage(
        machine=machine,
        program=seccomp.build(machine, notify=notify),
        landlock_abi=abi,
        rules=(
            *((_open_high(path), kernel.READ) for path in readable if os.path.exists(path)),
            *((_open_high(path), kernel.LIST) for path in listable),
            (_open_high(DEVICES[0]), kernel.READ_WRITE),
        ),
        allowed=allowed_modules(module_names(roots.packages)),
        proc=proc,
        base_bytes=size,
        base_mb=resident / 2**20,
        private_root=private,
        nobody=nobody,
        notify=notify,
        parent=os.getpid(),
    )
    gc.collect()
    gc.freeze()
    _take_large_pages(proc)
    tier = Tier(
        level="strong" if notify and private else "standard",
        isolation=tuple(isolation),
        missing=tuple(missing),
        landlock_abi=abi,
        machine=machine,
        kernel=platform.release(),
    )
    hello = Hello(
        tier=tier,
        readable=readable,
        listable=listable,
        searched=tuple(sys.path),
        modules=tuple(sorted(stage.allowed)),
        absent=absent,
    )
    return stage, hello


def _listen() -> None:
    kernel.no_new_privileges()
    seccomp.install(b"\x06\x00\x00\x00" + seccomp.RET_ALLOW.to_bytes(4, "little"), listener=True)


def _load(config: SandboxConfig) -> tuple[str, ...]:
    """Import the libraries, and return the names that are not installed."""
    for name in HIDDEN:
        sys.modules[name] = None  # type: ignore[assignment]  # the documented way to make an import fail
    absent = []
    settings = None
    if "MPLCONFIGDIR" not in os.environ:  # matplotlib writes a list of fonts while it is imported.
        settings = tempfile.mkdtemp(prefix="zygote-")
        os.environ["MPLCONFIGDIR"] = settings
    try:
        for name in (*config.preload, *config.harnesses):
            if name in config.preload and importlib.util.find_spec(name.partition(".")[0]) is None:
                absent.append(name)
            else:
                loaded = importlib.import_module(name)
                getattr(loaded, "warm_up", lambda: None)()
    finally:
        if settings is not None:
            shutil.rmtree(settings, ignore_errors=True)
        os.environ["MPLCONFIGDIR"] = SCRATCH
        tempfile.tempdir = None  # Choices of this process do not exist in a child.
    return tuple(absent)


def _open_high(path: str) -> int:
    """Open a path at a high descriptor number, because a child assigns the low numbers."""
    low = os.open(path, os.O_PATH | os.O_CLOEXEC)
    high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, child.PARK_ABOVE)
    os.close(low)
    return high


def _assert_one_thread() -> None:
    """Raise RuntimeError unless this is the only thread. A cancelled timer gets a moment to end."""
    until = time.monotonic() + 2.0
    while (count := len(os.listdir("/proc/self/task"))) != 1:
        if time.monotonic() > until:
            raise RuntimeError(
                f"the zygote has {count} threads and cannot fork safely; a preloaded module "
                "started them"
            )
        time.sleep(0.01)


def _memory(proc: int) -> tuple[int, int]:
    """Return this process's address space and a fork's initial memory, both in bytes."""
    descriptor = os.open("self/statm", os.O_RDONLY, dir_fd=proc)
    reserved, resident, of_files = (int(pages) for pages in os.read(descriptor, 256).split()[:3])
    os.close(descriptor)
    page = os.sysconf("SC_PAGE_SIZE")
    return reserved * page, (resident - of_files) * page


_LARGE: Final = 2 << 20


def _take_large_pages(proc: int) -> None:
    """Move the libraries' data into large pages.

    Every fork copies the page table, its largest cost.
    """
    with open(
        os.open("self/maps", os.O_RDONLY, dir_fd=proc), encoding="utf-8", errors="replace"
    ) as file:
        spans = [line.split() for line in file]
    for span, rights, _, _, file_number, *name in spans:
        ours = not name or name[0].startswith(("[heap]", "[anon"))
        if file_number == "0" and rights.startswith("rw") and ours:
            low, high = (int(end, 16) for end in span.split("-"))
            low, high = -(-low // _LARGE) * _LARGE, high // _LARGE * _LARGE
            with suppress(OSError):  # The kernel has no large pages to offer. This only costs time.
                if low < high:
                    kernel.collapse(low, high - low)


def _serve(host: socket.socket, stage: child.Stage) -> None:
    """Serve the host until it closes the connection.

    Serving means to fork on request, report exits, and kill abandoned children.
    """
    poll = select.poll()
    poll.register(host, select.POLLIN)
    living: dict[int, tuple[int, socket.socket]] = {}
    controlled: dict[int, int] = {}  # Maps the number of a control line to the handle of its child.
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        given_up = [descriptor for descriptor in ready if descriptor in controlled]
        for control in given_up:
            poll.unregister(control)
            signal.pidfd_send_signal(controlled.pop(control), signal.SIGKILL)
        for descriptor in ready:
            if descriptor == host.fileno():
                message, fds, _, _ = socket.recv_fds(host, 16, FDS_PER_JOB, socket.MSG_CMSG_CLOEXEC)
                if not message:
                    os._exit(0)
                handle, pid, line = _fork(fds, stage)
                living[handle] = pid, line
                controlled[line.fileno()] = handle
                poll.register(handle, select.POLLIN)
                poll.register(line, 0)  # A closed connection is reported without a request.
            elif descriptor not in given_up:
                poll.unregister(descriptor)
                pid, line = living.pop(descriptor)
                if controlled.pop(line.fileno(), None) is not None:
                    poll.unregister(line)
                _report_exit(descriptor, pid, line, stage.base_mb)


def _fork(fds: list[int], stage: child.Stage) -> tuple[int, int, socket.socket]:
    pid = os.fork()
    if pid == 0:
        child.main(fds, stage)
    control = socket.socket(fileno=fds[-1])
    for descriptor in fds[:-1]:
        os.close(descriptor)
    handle = os.pidfd_open(pid)
    with suppress(OSError):  # The host has already abandoned the job.
        socket.send_fds(control, [b"P"], [handle])
    return handle, pid, control


def _report_exit(handle: int, pid: int, control: socket.socket, base_mb: float) -> None:
    os.close(handle)
    _, status, used = os.wait4(pid, 0)
    cpu_s = used.ru_utime + used.ru_stime
    report = Exit(status=status, cpu_s=cpu_s, peak_mb=used.ru_maxrss / 1024, base_mb=base_mb)
    with suppress(OSError), control:  # The host abandoned this job.
        control.send(b"X" + msgspec.json.encode(report))
