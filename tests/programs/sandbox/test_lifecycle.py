"""Starting, ending and losing zygotes; nothing may be left behind."""

import gc
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from tests.programs.sandbox.conftest import BARE, family

import tradeassay_programs
from tradeassay.core.errors import SandboxError, UserError
from tradeassay_programs.sandbox import (
    ForbiddenImport,
    Job,
    JobLimits,
    OutputLimit,
    Sandbox,
    SandboxConfig,
    SandboxPool,
    SandboxRefused,
    open_executor,
)
from tradeassay_programs.sandbox.sandbox import ZygoteProcess
from tradeassay_programs.sandbox.supervise import Supervisor

GOOD = Job(
    source="def run(columns):\n    return {'a': columns['x']}",
    columns={"x": [1.0]},
    pass_as="columns",
)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(("module", "name"), [(os, "pipe2"), (socket, "recv_fds")])
def test_a_job_that_is_interrupted_leaves_nothing_open(module, name, sandbox, monkeypatch):
    gives, before = getattr(module, name), descriptors()

    def stop(*given, **more):
        made = gives(*given, **more)
        signal.raise_signal(signal.SIGINT)  # as Ctrl-C would, before anybody holds what was made
        return made

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(module, name, stop)
            sandbox.run(GOOD)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert descriptors() == before
    assert sandbox.run(GOOD).need()["a"].tolist() == [1.0]


def children() -> set[int]:
    tasks = Path("/proc/self/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


def zygote(sandbox: Sandbox) -> int:
    return sandbox._line.current().pid


def gone(pid: int, seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("namespaces", [True, False])
def test_nothing_is_left_behind(machine, namespaces):
    gc.collect()
    before, processes = descriptors(), children()
    broken = (
        "def run(c):\n    1/0",
        "def run(",
        "import os\nos.abort()",
        "def run(c):\n    open('/etc/x')",
    )
    with Sandbox(msgspec.structs.replace(BARE, namespaces=namespaces)) as sandbox:
        assert sandbox.run(GOOD).ok
        pids = family(zygote(sandbox))
        assert not any(sandbox.run(Job(source=source, pass_as="columns")).ok for source in broken)
        assert descriptors() == before + 1 and len(family(zygote(sandbox))) == len(pids)
    assert descriptors() == before and children() == processes
    assert all(gone(pid) for pid in pids)


@pytest.mark.parametrize("namespaces", [True, False])
def test_closing_ends_a_running_child(machine, namespaces):
    sandbox = Sandbox(msgspec.structs.replace(BARE, namespaces=namespaces))
    slow = Job(
        source="import time\ndef run(c):\n    time.sleep(30)",
        pass_as="columns",
        limits=JobLimits(wall_s=60.0),
    )
    worker = ThreadPoolExecutor()
    ended = worker.submit(sandbox.run, slow)
    pids: list[int] = []
    base = 2 if namespaces and sandbox.tier.level == "strong" else 1
    until = time.monotonic() + 60
    while len(pids) <= base and time.monotonic() < until:
        pids = family(zygote(sandbox))
        time.sleep(0.01)
    sandbox.close()
    with pytest.raises(SandboxError):
        ended.result(60)
    assert len(pids) > base
    assert all(gone(pid) for pid in pids)


def test_a_closed_sandbox_says_so_and_a_lost_zygote_is_replaced(machine):
    sandbox = Sandbox(BARE)
    first = zygote(sandbox)
    whole = family(first)
    os.kill(first, signal.SIGKILL)
    assert all(gone(pid) for pid in whole)
    nothing = Job(source="def run(c):\n    return {'n': [len(c)]}", pass_as="columns")
    assert sandbox.run(nothing).need()["n"].tolist() == [0] and zygote(sandbox) != first
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(GOOD)


def test_a_forgotten_sandbox_is_closed(machine):
    sandbox = Sandbox(BARE)
    pid = zygote(sandbox)
    del sandbox
    gc.collect()
    assert gone(pid)


def test_a_host_that_dies_takes_everything_with_it(machine):
    script = (
        "import time\nfrom tradeassay_programs.sandbox import Sandbox, SandboxConfig\n"
        "s = Sandbox(SandboxConfig(preload=()))\nprint(s._line.current().pid, "
        "flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        pids = family(int(host.stdout.readline()))
        host.kill()
    assert all(gone(pid) for pid in pids)


def test_a_forked_copy_of_the_host_is_refused(machine):
    with Sandbox(BARE) as sandbox:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                sandbox.run(GOOD)
            except SandboxError as error:
                code = 0 if "forked" in error.message else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sandbox.run(GOOD).ok


def test_an_interrupted_host_kills_the_child(machine, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_before_any_message(supervisor: Supervisor, _: float) -> None:
        # The code runs; its handle was sent, or is about to be.
        assert select.select([supervisor._log], [], [], 60)[0]
        raise KeyboardInterrupt

    def interrupt_while_the_handle_is_read(supervisor: Supervisor) -> None:
        assert supervisor._control is not None
        message, (handle,), _, _ = socket.recv_fds(supervisor._control, 1 << 16, 1)
        assert message == b"P"
        os.close(handle)  # nobody has it any more
        raise KeyboardInterrupt

    slow = Job(
        source="import time\ndef run(c):\n    print('x', flush=True)\n    time.sleep(600)",
        pass_as="columns",
    )
    moments = {
        "_take_output": interrupt,
        "_next_events": interrupt_before_any_message,
        "_take_message": interrupt_while_the_handle_is_read,
    }
    with Sandbox(BARE) as sandbox:
        quiet = len(family(zygote(sandbox)))
        for name, stop in moments.items():
            before = descriptors()
            with monkeypatch.context() as patched:
                patched.setattr(Supervisor, name, stop)
                with pytest.raises(KeyboardInterrupt):
                    sandbox.run(slow)
            until = time.monotonic() + 60
            while len(family(zygote(sandbox))) > quiet and time.monotonic() < until:
                time.sleep(0.01)
            assert len(family(zygote(sandbox))) == quiet
            assert descriptors() == before
        assert sandbox.run(GOOD).ok


def test_output_over_its_limit_before_the_handle_is_read_ends_the_child(machine, monkeypatch):
    take = Supervisor._next_events
    flood = "import time\ndef run(c):\n    print('x' * 100_000, flush=True)\n    time.sleep(600)"

    def output_first(supervisor: Supervisor, seconds: float) -> list[tuple[int, int]]:
        if supervisor._stopped is None:
            assert select.select([supervisor._log], [], [], 60)[0]
            return [(supervisor._log, select.POLLIN)]
        return take(supervisor, seconds)

    monkeypatch.setattr(Supervisor, "_next_events", output_first)
    with Sandbox(BARE) as sandbox:
        result = sandbox.run(Job(source=flood, pass_as="columns", limits=JobLimits(log_kb=16)))
    assert isinstance(result.failure, OutputLimit)


def test_the_zygote_is_alone_and_shares_no_memory(sandbox):
    inner = family(zygote(sandbox))[-1]
    assert len(list(Path(f"/proc/{inner}/task").iterdir())) == 1
    environment = Path(f"/proc/{inner}/environ").read_bytes().split(b"\0")
    names = {entry.partition(b"=")[0] for entry in environment if entry}
    if sandbox.tier.level == "strong":
        assert {b"HOME=/scratch", b"LD_LIBRARY_PATH=/tmp/base/lib"} <= set(environment)
        names -= {b"HOME", b"LD_LIBRARY_PATH"}
    threads = (name + b"_NUM_THREADS" for name in (b"OMP", b"OPENBLAS", b"MKL", b"NUMEXPR"))
    assert names == {*threads, b"PYTHONHASHSEED", b"TZ", b"LC_ALL", b"MPLBACKEND"}
    shared = [
        line
        for line in Path(f"/proc/{inner}/maps").read_text().splitlines()
        if line.split()[1][1::2] == "ws"
    ]
    assert shared == []


def test_modules_that_are_not_installed_are_named_and_frames_need_pandas(machine):
    with Sandbox(SandboxConfig(preload=("math", "not_a_module_at_all"))) as sandbox:
        assert sandbox.absent == ("not_a_module_at_all",)
        assert "math" in sandbox.modules and "socket" not in sandbox.modules
        with pytest.raises(UserError, match=r"no pandas.*tradeassay\[code\]"):
            sandbox.run(Job(source=GOOD.source))


@pytest.mark.slow
def test_a_second_zygote_finds_the_list_of_fonts(machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRADEASSAY_HOME", "home")
    written = []
    for _ in range(2):
        ZygoteProcess(SandboxConfig(preload=("matplotlib.font_manager",))).close()
        (found,) = (tmp_path / "home" / "matplotlib").glob("fontlist*.json")
        written.append(found.stat().st_mtime_ns)
    assert written[0] == written[1]
    (tmp_path / "home" / "matplotlib").chmod(0o500)
    ZygoteProcess(SandboxConfig(preload=("matplotlib.font_manager",))).close()


def test_a_harness_that_does_not_import_stops_the_start(machine):
    before = descriptors()
    with pytest.raises(SandboxError, match="not_a_harness"):
        Sandbox(SandboxConfig(preload=(), harnesses=("not_a_harness",)))
    assert descriptors() == before


def test_a_second_thread_stops_the_start(machine):
    script = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), "
        "daemon=True).start()\n"
        "from tradeassay_programs.sandbox import zygote\ntry:\n    zygote._assert_one_thread()\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "threads and cannot fork safely" in done.stdout


def test_strong_walls_can_be_required_and_a_refused_machine_starts_nothing(machine, monkeypatch):
    with pytest.raises(SandboxRefused, match="strong isolation") as refused:
        Sandbox(msgspec.structs.replace(BARE, namespaces=False, require="strong"))
    assert refused.value.hint is not None
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SandboxRefused, match="macOS"):
        Sandbox(BARE)


def test_a_pool_keeps_the_order_and_can_be_left_early(pool):
    source = "import time\ndef run(c, n):\n    time.sleep(0.05 * (n % 3))\n    return {'n': [n]}"
    jobs = [Job(source=source, params={"n": n}, pass_as="columns") for n in range(12)]
    assert [int(result.need()["n"][0]) for result in pool.map(jobs)] == list(range(12))
    results = pool.map(jobs)
    assert next(iter(results)).ok
    del results
    assert pool.run(GOOD).ok


def test_a_pool_runs_children_at_the_same_time(pool, monkeypatch):
    """Neither child hears from the host before both are in the middle of their code."""
    both, answer = threading.Barrier(2, timeout=60), Supervisor._take_report

    def wait(supervisor: Supervisor, event: int) -> None:
        if not supervisor._watch.refused and event & select.POLLIN:
            both.wait()
        answer(supervisor, event)

    monkeypatch.setattr(Supervisor, "_take_report", wait)
    job = Job(source="import os\ndef run(c):\n    os.kill(1, 9)", pass_as="columns")
    assert [len(result.attempts) for result in pool.map([job] * 2)] == [1, 1]


def test_a_closed_pool_says_so(machine):
    made = SandboxPool(BARE)
    made.close()
    made.close()
    with pytest.raises(SandboxError, match="closed"):
        made.run(GOOD)
    with pytest.raises(UserError, match="workers must be 1 or more"):
        SandboxPool(BARE, workers=0)


def test_executors_by_name(machine):
    with open_executor("sandbox", config=BARE, workers=2) as made:
        assert made.run(GOOD).ok
        assert isinstance(
            made.run(Job(source="import socket", pass_as="columns")).failure, ForbiddenImport
        )
        assert made.tier.level in ("strong", "standard")
    with open_executor("trusted-in-process") as made:
        assert made.tier.level == "trusted-in-process"
    with pytest.raises(UserError, match="known executors: sandbox"):
        open_executor("threads")  # type: ignore[arg-type]
    for kind in ("sandbox", "trusted-in-process"):
        with pytest.raises(UserError, match="workers must be 1 or more"):
            open_executor(kind, workers=0)


LISTENED_TO = """
from tradeassay_programs.sandbox import Job, Sandbox, SandboxConfig, kernel, seccomp
from tradeassay_programs.sandbox.seccomp import RET_ALLOW
kernel.no_new_privileges()
seccomp.install(b"\\x06\\0\\0\\0" + RET_ALLOW.to_bytes(4, "little"), listener=True)
with Sandbox(SandboxConfig(preload=())) as sandbox:
    assert sandbox.tier.level == "standard", sandbox.tier
    print(sandbox.tier.missing)
    texts = "return {'a': [1]}", "import os; os.fork()", "open('/etc/passwd')", "import os; os.memfd_create('x')"
    for text in texts:
        result = sandbox.run(Job(source="def run(c):\\n    " + text, pass_as="columns"))
        assert result.attempts == ()
        print(result.failure.text if result.failure else "fine")
"""


def test_where_refused_calls_cannot_be_reported_they_are_still_refused(machine):
    # Only one listener may exist along a line of processes; some container managers have taken it already.
    done = subprocess.run(
        [sys.executable, "-c", LISTENED_TO], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    missing, fine, *refused = done.stdout.splitlines()
    assert "not recorded" in missing
    assert fine == "fine"
    fork, read, memory = (line.split(":")[1].strip() for line in refused)
    assert fork == "BlockingIOError"
    assert read in ("FileNotFoundError", "PermissionError")
    assert memory == "PermissionError"


def test_the_zygote_is_of_the_hosts_own_sources_whatever_is_installed(tmp_path):
    """Two copies of the package: the one on PYTHONPATH, which the host runs, and the installed
    one.
    """
    package = Path(tradeassay_programs.__file__).parent
    copy = shutil.copytree(
        package, tmp_path / "tradeassay_programs", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (copy / "sandbox" / "zygote.py").open("a") as file:
        file.write(
            '\nif sys.argv[0] == "-c" and len(sys.argv) > 2:\n    raise SystemExit("this copy")\n'
        )
    program = (
        "from tradeassay.core.errors import SandboxError\n"
        "from tradeassay_programs.sandbox import SandboxConfig\n"
        "from tradeassay_programs.sandbox.sandbox import ZygoteProcess\n"
        "try:\n    ZygoteProcess(SandboxConfig(preload=()))\n"
        "except SandboxError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert "ended while it loaded its libraries: this copy" in done.stdout, (
        done.stdout,
        done.stderr,
    )
