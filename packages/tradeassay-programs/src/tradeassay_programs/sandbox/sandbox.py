"""Run jobs in a sandbox, one at a time or several at the same time.

:class:`Sandbox` and :class:`SandboxPool` control a zygote process, which forks one child per job.
Both may be used from several threads.
"""

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

import tradeassay
from tradeassay.core.errors import SandboxError, UserError
from tradeassay_programs.sandbox.failures import Attribution, Crashed, OomKilled, attempt_verdict
from tradeassay_programs.sandbox.job import Job, JobExecutor, JobResult
from tradeassay_programs.sandbox.namespaces import SCRATCH, warmed
from tradeassay_programs.sandbox.sandbox_config import ENVIRONMENT, SandboxConfig
from tradeassay_programs.sandbox.supervise import IsolationFailed, Supervisor, ZygoteLost
from tradeassay_programs.sandbox.tier import SandboxRefused, Tier, ask_kernel, refusal
from tradeassay_programs.sandbox.watch import Reach
from tradeassay_programs.sandbox.watchdog import run_watched
from tradeassay_programs.sandbox.zygote import Hello

# The packages are loaded from the host's folders, because another version may be installed on the
# search path. The package ``sandbox`` is set up without running its ``__init__``, which imports the
# host's side. A zygote needs only some of its modules.
_START: Final = """
import importlib.util, sys
instrument, programs = sys.argv[1:3]
sys.path += [one for one in (*sys.argv[4:], instrument, programs) if one not in sys.path]
place = programs + "/tradeassay_programs"
for name, folder in (
    ("tradeassay", instrument + "/tradeassay"),
    ("tradeassay_programs", place),
    ("tradeassay_programs.sandbox", place + "/sandbox"),
):
    within = {"submodule_search_locations": [folder]}
    spec = importlib.util.spec_from_file_location(name, folder + "/__init__.py", **within)
    sys.modules[name] = importlib.util.module_from_spec(spec)
for name in ("tradeassay", "tradeassay_programs"):
    sys.modules[name].__spec__.loader.exec_module(sys.modules[name])
from tradeassay_programs.sandbox.namespaces import leave
refused = leave(int(sys.argv[3]))
from tradeassay_programs.sandbox.zygote import main
main(int(sys.argv[3]), refused)
"""
_PARENTS: Final = (
    str(Path(tradeassay.__file__).resolve().parents[1]),
    str(Path(__file__).resolve().parents[2]),
)
"""The folders of the two packages that a zygote loads."""
_STOP_S: Final = 5.0
_HELLO_BYTES: Final = 1 << 18


def _homes(modules: tuple[str, ...]) -> list[str]:
    """Return the folders of modules. The zygote's search path does not include PYTHONPATH."""
    folders: dict[str, None] = {}
    for name in dict.fromkeys(module.partition(".")[0] for module in modules):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        if spec is None:
            continue
        path = next(iter(spec.submodule_search_locations or ()), spec.origin)
        if path is not None and os.path.isabs(path):
            folders[os.path.dirname(path)] = None
    standard = os.path.dirname(os.__file__)
    return [
        folder
        for folder in folders
        if folder != standard and not folder.startswith(f"{standard}/lib-")
    ]


def _font_list(config: SandboxConfig) -> dict[str, str]:
    """Return the variable that names matplotlib's folder, so that zygotes share one list of fonts.

    Without it every zygote would search the machine for fonts.
    """
    # A zygote imports this module too, and must not load the module with the home folder.
    from tradeassay.core.files import data_home

    if not any(name.startswith("matplotlib") for name in config.preload):
        return {}
    try:
        folder = data_home().absolute() / "matplotlib"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        # There is no space, no permission or no home folder. Each zygote builds its own list.
        return {}
    return {"MPLCONFIGDIR": str(folder)} if os.access(folder, os.W_OK) else {}


class ZygoteProcess:
    """A running zygote.

    Raises SandboxError if it does not start, and SandboxRefused if its isolation is too weak for
    the config.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self._owner, self._view = os.getpid(), Hello().view
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryFile() as complaints:
            # A separate session protects the zygote from the terminal's Ctrl-C. The zygote ends
            # when the host closes its end of the socket.
            self._process = subprocess.Popen(
                [
                    *(
                        sys.executable,
                        "-s",
                        "-P",
                        "-B",
                        "-c",
                        _START,
                        *_PARENTS,
                        str(theirs.fileno()),
                    ),
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
            home=SCRATCH if "private root" in self.tier.isolation else "/",
            known=warmed((*self.hello.readable, *self.hello.listable), self._view),
        )

    @property
    def tier(self) -> Tier:
        """The isolation of the zygote's children."""
        assert self.hello.tier is not None
        return self.hello.tier

    @property
    def pid(self) -> int:
        """The process id of the zygote."""
        return self._process.pid

    def alive(self) -> bool:
        """Return whether the zygote is still running."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the zygote. In a forked process, only close the socket."""
        self.socket.close()
        if os.getpid() != self._owner:
            return
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _greet(self, config: SandboxConfig) -> Hello:
        """Send the configuration, and read the zygote's two messages: its view of folders, then its
        state.
        """
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
                raise SandboxError(
                    f"the sandbox's zygote was not ready after {config.start_s:g} s", hint=hint
                )
            message = b""
            with suppress(OSError):  # The zygote ended before it read the configuration.
                message = self.socket.recv(_HELLO_BYTES)
            if not message:
                raise SandboxError("the sandbox's zygote ended while it loaded its libraries")
            hello = msgspec.json.decode(message, type=Hello)
            self._view = hello.view if turn == 1 else self._view
        if hello.tier is None:
            raise SandboxError(f"the sandbox's zygote could not be prepared: {hello.error}")
        if config.require == "strong" and hello.tier.level != "strong":
            raise SandboxRefused(
                "strong isolation is required, and this machine lacks "
                f"{'; '.join(hello.tier.missing)}",
                hint="run as root or allow unprivileged user namespaces (sysctl "
                "user.max_user_namespaces, and "
                "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or ask for 'standard'",
            )
        return hello


class Sandbox(JobExecutor):
    """Runs untrusted code in a fresh child for each job.

    A sandbox starts in one or two seconds, and a job in some milliseconds. Close the sandbox or use
    it as a context manager. An open sandbox is closed when the interpreter exits.

    Raises :class:`SandboxRefused` if this machine cannot contain untrusted code at the level that
    the config requires.
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
        """The isolation of the jobs."""
        return self._line.current().tier

    def isolation_tier(self) -> Tier:
        """Return :attr:`tier`, for remote callers that can only call methods."""
        return self.tier

    @property
    def absent(self) -> tuple[str, ...]:
        """The modules of ``preload`` that are not installed."""
        return self._line.current().hello.absent

    @property
    def modules(self) -> frozenset[str]:
        """The modules that code may import."""
        return self._line.current().modules

    def run(self, job: Job) -> JobResult:
        """Run one job in a new child. A failing job returns a result and raises no error.

        If a child ends before any of the code ran, the job is run in a second child. Code that has
        started is never run again, because the first child could pass information to the second.
        Raises SandboxError if the machine ended the job.
        """
        zygote = self._line.current()
        try:
            first, attribution = _run_on(zygote, job)
        except ZygoteLost as error:
            zygote = self._line.replace(zygote)
            reason = error.message
        except IsolationFailed as error:
            reason = error.message
        else:
            if not attribution or first.failure is None:
                return first
            reason = first.failure.text
        second, attribution = _run_on(zygote, job)
        if second.failure is not None and attribution == "machine":
            raise _not_judged(f"{second.failure.text}, and before that: {reason}")
        return replace(second, retried=reason)

    def close(self) -> None:
        """End the zygote."""
        self._end()


def _run_on(zygote: ZygoteProcess, job: Job) -> tuple[JobResult, Attribution]:
    """Run a job in a child process of a zygote.

    Returns the result, and the cause to which it is attributed. Raises SandboxError if the machine
    caused the failure after the code had started.
    """
    if job.pass_as != "columns" and not job.harness and "pandas" not in zygote.modules:
        hint = (
            "pip install 'tradeassay[code]', keep pandas in SandboxConfig.preload, or use "
            "pass_as='columns'"
        )
        raise UserError(
            "this sandbox has no pandas, so rows cannot be passed as a frame", hint=hint
        )
    supervisor = Supervisor(job, zygote.tier, zygote.reach)
    try:
        result, attribution = run_watched(supervisor, zygote.socket)
    except ZygoteLost as error:
        if supervisor.stopped is not None:
            # The host has already ended the child. Only the report of its exit is missing.
            return supervisor.failed(supervisor.stopped), ""
        if supervisor.began:
            raise _not_judged(error.message) from error
        raise
    grave = next((call for call in result.attempts if call.family in job.fail_on), None)
    # A grave refused call decides the verdict, however the child ended.
    if isinstance(result.failure, Crashed | OomKilled) and grave is not None:
        return replace(result, failure=attempt_verdict(grave)), ""
    if attribution == "machine" and supervisor.began:
        assert result.failure is not None
        raise _not_judged(
            f"{result.failure.text}, and code that has begun is never run again on the same rows"
        )
    return result, attribution


def _not_judged(why: str) -> SandboxError:
    hint = "the machine lacks memory, or something kills processes: use fewer workers, then resume"
    return SandboxError(f"a program could not be judged: {why}", hint=hint)


class _ZygoteLine:
    """The current zygote of a sandbox. A lost zygote is replaced by a new zygote."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._zygote: ZygoteProcess | None = ZygoteProcess(config)

    def current(self) -> ZygoteProcess:
        """Return the zygote. Raises SandboxError if the sandbox is closed or this process was
        forked.
        """
        zygote = self._zygote
        if zygote is None:
            raise SandboxError("the sandbox is closed", hint="open a new one")
        if os.getpid() != self._owner:
            raise SandboxError(
                "a sandbox cannot be used in a forked process", hint="open one in each process"
            )
        return zygote

    def replace(self, lost: ZygoteProcess) -> ZygoteProcess:
        """Replace ``lost`` by a new zygote, and return the new zygote.

        If another thread has already replaced it, that zygote is returned.
        """
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
    """Runs jobs in up to ``workers`` children at the same time.

    The machine needs memory for ``workers`` times ``JobLimits.memory_mb``. Raises
    :class:`SandboxRefused` like :class:`Sandbox`.
    """

    def __init__(self, config: SandboxConfig | None = None, *, workers: int = 1) -> None:
        if workers < 1:
            raise UserError(f"workers must be 1 or more, got {workers}", hint="leave it out for 1")
        self.workers = workers
        self._sandbox = Sandbox(config)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")

    @property
    def tier(self) -> Tier:
        """The isolation of the jobs."""
        return self._sandbox.tier

    @property
    def modules(self) -> frozenset[str]:
        """The modules that code may import."""
        return self._sandbox.modules

    def run(self, job: Job) -> JobResult:
        """Run one job when a worker is free."""
        return self.submit(job).result()

    def submit(self, job: Job) -> Future[JobResult]:
        """Run one job as soon as a worker is free. Raises SandboxError after :meth:`close`."""
        try:
            return self._threads.submit(self._sandbox.run, job)
        except RuntimeError as error:
            if "shutdown" in str(error):
                raise SandboxError("the sandbox is closed", hint="open a new one") from error
            raise SandboxError(str(error), hint="use fewer workers") from error

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Run jobs on all workers and yield their results in order.

        Only a few jobs wait at a time.
        """
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
        """Cancel the waiting jobs, wait for the running jobs, and end the zygote."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._sandbox.close()
