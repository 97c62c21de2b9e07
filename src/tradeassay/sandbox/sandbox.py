"""A sandbox: the host's handle on a zygote, and the jobs it runs, one at a time or many. Safe between threads."""

import importlib.util
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from tradeassay.core.errors import SandboxError, UserError
from tradeassay.sandbox.failures import Crashed, Doubt, OomKilled, attempt_verdict
from tradeassay.sandbox.job import Job, JobExecutor, JobResult
from tradeassay.sandbox.namespaces import SCRATCH, warmed
from tradeassay.sandbox.sandbox_config import ENVIRONMENT, SandboxConfig
from tradeassay.sandbox.supervise import Supervisor, WallsDown, ZygoteLost
from tradeassay.sandbox.tier import SandboxRefused, Tier, ask_kernel, refusal
from tradeassay.sandbox.watch import Reach
from tradeassay.sandbox.watchdog import run_watched
from tradeassay.sandbox.zygote import Hello

# The package is loaded from the host's own folder: another one may be installed, and search paths would find that.
# What the sandbox's package lists is for the host, and heavy: a zygote starts twice and takes the parts it needs.
_START: Final = """
import importlib.util, sys
sys.path += [one for one in sys.argv[3:] if one not in sys.path]
sys.path.append(sys.argv[1])
place = sys.argv[1] + "/tradeassay"
for name, folder in (("tradeassay", place), ("tradeassay.sandbox", place + "/sandbox")):
    within = {"submodule_search_locations": [folder]}
    spec = importlib.util.spec_from_file_location(name, folder + "/__init__.py", **within)
    sys.modules[name] = importlib.util.module_from_spec(spec)
sys.modules["tradeassay"].__spec__.loader.exec_module(sys.modules["tradeassay"])
from tradeassay.sandbox.namespaces import leave
refused = leave(int(sys.argv[2]))
from tradeassay.sandbox.zygote import main
main(int(sys.argv[2]), refused)
"""
_PACKAGE_PARENT: Final = str(Path(__file__).resolve().parents[2])
_STOP_S: Final = 5.0
_HELLO_BYTES: Final = 1 << 18


def _homes(modules: tuple[str, ...]) -> list[str]:
    """Return the folders of promised modules: the zygote's own search path knows nothing of PYTHONPATH."""
    found: dict[str, None] = {}
    for name in dict.fromkeys(module.partition(".")[0] for module in modules):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        place = None if spec is None else next(iter(spec.submodule_search_locations or ()), spec.origin)
        if place is not None and os.path.isabs(place):
            found[os.path.dirname(place)] = None
    standard = os.path.dirname(os.__file__)
    return [folder for folder in found if folder != standard and not folder.startswith(f"{standard}/lib-")]


def _font_list(config: SandboxConfig) -> dict[str, str]:
    """Return where matplotlib keeps its list of fonts, so that not every zygote looks through the machine's."""
    from tradeassay.core.files import data_home  # a zygote loads this module too, and needs to know no home

    if not any(name.startswith("matplotlib") for name in config.preload):
        return {}
    try:
        folder = data_home().absolute() / "matplotlib"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no room, no rights, no home: each zygote makes its own
        return {}
    return {"MPLCONFIGDIR": str(folder)} if os.access(folder, os.W_OK) else {}


class ZygoteProcess:
    """A running zygote. Raises SandboxError when it does not start, SandboxRefused when its walls are too weak."""

    def __init__(self, config: SandboxConfig) -> None:
        self._owner, self._view = os.getpid(), Hello().view
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryFile() as complaints:
            # A new session keeps the terminal's Ctrl-C from reaching it; it ends when our end of the socket
            # closes.
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-s", "-P", "-B", "-c", _START, _PACKAGE_PARENT, str(theirs.fileno())),
                    *_homes(config.preload),
                ],
                env={**ENVIRONMENT, **_font_list(config), "PYTHONHASHSEED": str(config.hash_seed)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            theirs.close()
            try:
                self.hello = self._greet(config)
            except BaseException as error:
                self.close()
                complaints.seek(0)
                words = complaints.read()[-2000:].decode("utf-8", "replace").strip()
                if isinstance(error, SandboxError) and words:
                    raise type(error)(f"{error.message}: {words}", hint=error.hint) from None
                raise
        self.modules = frozenset(self.hello.modules)
        self.reach = Reach(
            readable=frozenset(self.hello.readable),
            listable=frozenset(self.hello.listable),
            searched=frozenset(self.hello.searched),
            home=SCRATCH if "private root" in self.tier.walls else "/",
            known=warmed((*self.hello.readable, *self.hello.listable), self._view),
        )

    @property
    def tier(self) -> Tier:
        assert self.hello.tier is not None
        return self.hello.tier

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.socket.close()
        if os.getpid() != self._owner:
            return
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _greet(self, config: SandboxConfig) -> Hello:
        """Send the configuration; hear by which names the zygote knows folders, then what it is."""
        try:
            self.socket.send(msgspec.json.encode(config))
        except OSError:
            raise SandboxError("the sandbox's zygote did not start") from None
        hello, waiting = Hello(), select.poll()
        waiting.register(self.socket, select.POLLIN)
        for turn in (1, 2):
            if hello.error:
                break
            if not waiting.poll(config.start_s * 1000):
                hint = "raise SandboxConfig.start_s"
                raise SandboxError(f"the sandbox's zygote was not ready after {config.start_s:g} s", hint=hint)
            message = b""
            with suppress(OSError):  # it ended before it had read what it was sent
                message = self.socket.recv(_HELLO_BYTES)
            if not message:
                raise SandboxError("the sandbox's zygote ended while it loaded its libraries")
            hello = msgspec.json.decode(message, type=Hello)
            self._view = hello.view if turn == 1 else self._view
        if hello.tier is None:
            raise SandboxError(f"the sandbox's zygote could not be prepared: {hello.error}")
        if config.require == "strong" and hello.tier.level != "strong":
            raise SandboxRefused(
                f"strong isolation was asked for, and this machine lacks {'; '.join(hello.tier.missing)}",
                hint="run as root or allow unprivileged user namespaces (sysctl user.max_user_namespaces, and "
                "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or ask for 'standard'",
            )
        return hello


class Sandbox(JobExecutor):
    """Runs untrusted code, one fresh child per job. Starting costs a second or two, a job some milliseconds.
    Raises :class:`SandboxRefused` when this machine cannot contain untrusted code, or not at the level that the
    config asks for. Close it, or use it as a context manager; a forgotten one is closed with the interpreter.
    """

    def __init__(self, config: SandboxConfig | None = None) -> None:
        self.config = config or SandboxConfig()
        refused = refusal(ask_kernel())
        if refused is not None:
            raise refused
        self._line = _ZygoteLine(self.config)
        self._end = weakref.finalize(self, self._line.close)

    @property
    def tier(self) -> Tier:
        return self._line.current().tier

    def walls(self) -> Tier:
        """Return :attr:`tier`; for callers that can only call methods."""
        return self.tier

    @property
    def absent(self) -> tuple[str, ...]:
        return self._line.current().hello.absent

    @property
    def modules(self) -> frozenset[str]:
        return self._line.current().modules

    def run(self, job: Job) -> JobResult:
        """Run one job in its own child. A bad job is a result, not an error. A child that ended before any of the
        code ran is followed by another; code that has begun never gets a second child: it could be told there
        what the first one saw. Raises SandboxError where the machine ended it.
        """
        zygote = self._line.current()
        try:
            first, doubted = _run_on(zygote, job)
        except ZygoteLost as error:
            zygote, said = self._line.replace(zygote), error.message
        except WallsDown as error:
            said = error.message
        else:
            if not doubted or first.failure is None:
                return first
            said = first.failure.text
        second, doubted = _run_on(zygote, job)
        if second.failure is not None and doubted == "machine":
            raise _not_judged(f"{second.failure.text}, and before that: {said}")
        return replace(second, retried=said)

    def close(self) -> None:
        self._end()


def _run_on(zygote: ZygoteProcess, job: Job) -> tuple[JobResult, Doubt]:
    if job.pass_as != "columns" and not job.harness and "pandas" not in zygote.modules:
        hint = "pip install 'tradeassay[code]', keep pandas in SandboxConfig.preload, or use pass_as='columns'"
        raise UserError("this sandbox has no pandas, so rows cannot be passed as a frame", hint=hint)
    supervisor = Supervisor(job, zygote.tier, zygote.reach)
    try:
        result, doubted = run_watched(supervisor, zygote.socket)
    except ZygoteLost as error:
        if supervisor.stopped is not None:  # judged already: only its exit was not told any more
            return supervisor.failed(supervisor.stopped), ""
        if supervisor.began:
            raise _not_judged(error.message) from error
        raise
    grave = next((call for call in result.attempts if call.family in job.fail_on), None)
    # What the kernel refused stays refused, however the child ended.
    if isinstance(result.failure, Crashed | OomKilled) and grave is not None:
        return replace(result, failure=attempt_verdict(grave)), ""
    if doubted == "machine" and supervisor.began:
        assert result.failure is not None
        raise _not_judged(f"{result.failure.text}, and code that has begun is never run again on the same rows")
    return result, doubted


def _not_judged(why: str) -> SandboxError:
    hint = "the machine lacks memory, or something kills processes: use fewer workers, then resume"
    return SandboxError(f"a program could not be judged: {why}", hint=hint)


class _ZygoteLine:
    """One zygote after another: a lost one is followed by a new one."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._zygote: ZygoteProcess | None = ZygoteProcess(config)

    def current(self) -> ZygoteProcess:
        zygote = self._zygote
        if zygote is None:
            raise SandboxError("the sandbox is closed", hint="open a new one")
        if os.getpid() != self._owner:
            raise SandboxError("a sandbox cannot be used in a forked process", hint="open one in each process")
        return zygote

    def replace(self, lost: ZygoteProcess) -> ZygoteProcess:
        """Start a successor of ``lost``, unless another thread has done so already."""
        with self._lock:
            if self.current() is lost:
                lost.close()
                self._zygote = ZygoteProcess(self._config)
            return self.current()

    def close(self) -> None:
        with self._lock:
            zygote, self._zygote = self._zygote, None
            if zygote is not None:
                zygote.close()


class SandboxPool(JobExecutor):
    """Runs up to ``workers`` children at once. Raises :class:`SandboxRefused` like :class:`Sandbox`. Memory adds
    up: ``workers`` times ``Limits.memory_mb`` should fit the machine.
    """

    def __init__(self, config: SandboxConfig | None = None, *, workers: int = 1) -> None:
        if workers < 1:
            raise UserError(f"{workers} workers cannot run anything", hint="give 1 or more")
        self.workers = workers
        self._sandbox = Sandbox(config)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")

    @property
    def tier(self) -> Tier:
        return self._sandbox.tier

    @property
    def modules(self) -> frozenset[str]:
        return self._sandbox.modules

    def run(self, job: Job) -> JobResult:
        return self.submit(job).result()

    def submit(self, job: Job) -> Future[JobResult]:
        """Run one job as soon as a worker is free; raises SandboxError after :meth:`close`."""
        try:
            return self._threads.submit(self._sandbox.run, job)
        except RuntimeError as error:
            if "shutdown" in str(error):
                raise SandboxError("the sandbox is closed", hint="open a new one") from error
            raise SandboxError(str(error), hint="use fewer workers") from error

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        waiting: deque[Future[JobResult]] = deque()
        try:
            for job in jobs:
                waiting.append(self.submit(job))
                if len(waiting) > 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._sandbox.close()
