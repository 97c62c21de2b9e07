"""Nothing that one job does is seen by the next: a sender tries to leave a bit, a reader looks for
it.

The list was written from the sandbox's documentation, before its code was read. What can only be
timed (pages in memory, processors, frequency) is measured by ``perf/covert_channels.py``.
"""

import os
import py_compile
import tempfile
from pathlib import Path

import pytest

from tradeassay_programs.sandbox import Job, JobLimits, JobResult, Sandbox, SandboxConfig

LIMITS = JobLimits(
    cpu_s=5, wall_s=60.0, memory_mb=256, log_kb=64, result_mb=1, rows=1000, columns=4
)

# name: what the sender does -> an expression by which the reader would see it
CHANNELS = {
    name: tuple(words.split(" -> "))
    for name, _, words in (
        line.partition(": ")
        for line in """
status flags of descriptor 0: os.set_blocking(0, False) -> int(not os.get_blocking(0))
status flags of descriptor 1: os.set_blocking(1, False) -> int(not os.get_blocking(1))
status flags of descriptor 2: os.set_blocking(2, False) -> int(not os.get_blocking(2))
offset of descriptor 0: os.lseek(0, 7, 0) -> os.lseek(0, 0, 1)
a descriptor closed: os.close(0) -> int(not os.path.exists('/dev/null') or os.fstat(0) is None)
a descriptor left open: os.dup2(0, 40) -> int(os.fstat(40) is not None)
inheritable flag: os.set_inheritable(0, False) -> int(not os.get_inheritable(0))
files in the working folder: open('bit', 'w').write('1') -> int(os.path.exists('bit'))
folders in the working folder: os.mkdir('bit') -> int(os.path.exists('bit'))
files in /tmp: open('/tmp/bit', 'w').write('1') -> int(os.path.exists('/tmp/bit'))
files in /dev/shm: open('/dev/shm/bit', 'w').write('1') -> int(os.path.exists('/dev/shm/bit'))
files in /var/tmp: open('/var/tmp/bit', 'w').write('1') -> int(os.path.exists('/var/tmp/bit'))
files beside a library: open(json.__file__ + '.bit', 'w') -> int(os.path.exists(json.__file__ + '.bit'))
compiled files: compileall.compile_file(json.__file__) -> int(os.stat(json.__cached__).st_mtime > 4e9)
rights of a library's file: os.chmod(json.__file__, 0o600) -> int(os.stat(json.__file__).st_mode % 512 == 0o600)
times of a library's file: os.utime(json.__file__, (1, 1)) -> int(os.stat(json.__file__).st_mtime == 1)
times of a shared file: os.utime('/dev/null', (1, 1)) -> int(os.stat('/dev/null').st_mtime == 1)
attributes of a library's file: os.setxattr(json.__file__, 'user.bit', b'1') -> int('user.bit' in \
os.listxattr(json.__file__))
links to a library's file: os.link(json.__file__, 'bit') -> int(os.stat(json.__file__).st_nlink > 1)
a lock on a library's file: fcntl.flock(os.open(json.__file__, 0), fcntl.LOCK_EX) -> \
int(fcntl.flock(os.open(json.__file__, 0), fcntl.LOCK_EX | fcntl.LOCK_NB) is not None)
a watch on a folder: ctypes.CDLL(None).inotify_init() -> int(ctypes.CDLL(None).inotify_init() > 0)
creation mask: os.umask(0o077) -> int(os.umask(0) == 0o077)
working folder: os.chdir('/') -> int(os.getcwd() == '/' != HOME)
ignored signals: signal.signal(signal.SIGUSR1, signal.SIG_IGN) -> int(signal.getsignal(signal.SIGUSR1) is \
signal.SIG_IGN)
blocked signals: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}) -> int(signal.SIGUSR1 in \
signal.pthread_sigmask(signal.SIG_BLOCK, ()))
a pending signal: os.kill(os.getpid(), signal.SIGUSR1) -> len(signal.sigpending())
remaining timer: signal.setitimer(signal.ITIMER_REAL, 50) -> int(signal.getitimer(0)[0] > 0)
alarm: signal.alarm(50) -> int(signal.alarm(0) > 0)
limits: resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)) -> int(resource.getrlimit(resource.RLIMIT_NOFILE)[0] \
== 9)
priority: os.nice(7) -> int(os.getpriority(os.PRIO_PROCESS, 0) == 7)
processors: os.sched_setaffinity(0, {0}) -> int(len(os.sched_getaffinity(0)) == 1 < (os.cpu_count() or 1))
scheduler: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)) -> int(os.sched_getscheduler(0) == \
os.SCHED_BATCH)
name of the process: ctypes.CDLL(None).prctl(15, b'bit', 0, 0, 0) -> int(COMM() == b'bit')
process group: os.setpgid(0, 0) -> int(os.getpgid(0) == os.getpid())
session: os.setsid() -> int(os.getsid(0) == os.getpid())
another process: os.fork() -> int(os.path.exists(f'/proc/{os.getpid() + 1}'))
hostname: socket.sethostname('bit') -> int(os.uname().nodename == 'bit')
an abstract socket: socket.socket(socket.AF_UNIX).bind('\\0bit') -> \
int(socket.socket(socket.AF_UNIX).connect('\\0bit') is None)
shared memory: ctypes.CDLL(None).shmget(77, 4096, 0o1777) -> int(ctypes.CDLL(None).shmget(77, 4096, 0) >= 0)
a semaphore: ctypes.CDLL(None).semget(77, 1, 0o1777) -> int(ctypes.CDLL(None).semget(77, 1, 0) >= 0)
a message queue: ctypes.CDLL(None).msgget(77, 0o1777) -> int(ctypes.CDLL(None).msgget(77, 0) >= 0)
free memory: FILL() -> int(SYSINFO() > 0)
load of the machine: FILL() -> int(os.getloadavg()[0] >= 0)
free space: open('big', 'wb').write(b'x' * 9_000_000) -> int(os.statvfs('/scratch').f_bfree < 1500)
numbers of inodes: [os.pipe() for _ in range(20)] -> int(os.pipe() is not None)
environment: os.environ.update(BIT='1') -> int('BIT' in os.environ)
environment of C: ctypes.CDLL(None).setenv(b'BIT', b'1', 1) -> int(bool(ctypes.CDLL(None).getenv(b'BIT')))
time zone: [os.environ.update(TZ='EAST-5'), time.tzset()] -> int(time.timezone != 0)
locale: locale.setlocale(locale.LC_ALL, 'C') -> int(locale.setlocale(locale.LC_ALL) == 'LC')
a loaded module: setattr(json, 'BIT', 1) -> getattr(json, 'BIT', 0)
builtins: setattr(builtins, 'BIT', 1) -> getattr(builtins, 'BIT', 0)
search path: sys.path.append('bit') -> int('bit' in sys.path)
interned objects: sys.setrecursionlimit(777) -> int(sys.getrecursionlimit() == 777)
memory of the interpreter: ctypes.memset(id(257 - 1) + 24, 0, 1) -> int(eval('250 + 6') != 2 ** 8)
the collector: gc.disable() -> int(not gc.isenabled())
random state: random.seed(7) -> int(random.random() == 0.32383276483316237)
temporary folder: setattr(tempfile, 'tempdir', '/bit') -> int(tempfile.gettempdir() == '/bit')
decimal places: setattr(decimal.getcontext(), 'prec', 7) -> int(decimal.getcontext().prec == 7)
""".strip().splitlines()
    )
}
ALWAYS = """
import os, sys
for name in (
    'builtins calendar compileall ctypes decimal fcntl gc json locale random resource signal socket '
    'tempfile time'.split()
):
    try:
        globals()[name] = __import__(name)
    except ImportError:  # behind weaker walls only what is loaded can be imported
        pass
HOME = os.getcwd()
def COMM():
    name = ctypes.create_string_buffer(16)
    ctypes.CDLL(None).prctl(16, name, 0, 0, 0)
    return name.value
def SYSINFO():
    room = ctypes.create_string_buffer(256)
    return 0 if ctypes.CDLL(None).sysinfo(room) else int.from_bytes(room.raw[40:48], 'little')
def FILL():
    return len(bytes(100 << 20))
"""


def _run(sandbox: Sandbox, body: str) -> JobResult:
    source = (
        f"{ALWAYS}def run(columns):\n"
        f"    try:\n        seen = {body}\n"
        "    except (OSError, ValueError, AttributeError, NameError):\n        seen = 0\n"
        "    return {'seen': [int(seen or 0) if isinstance(seen, (int, bool)) else 0]}"
    )
    job = Job(
        source=source,
        pass_as="columns",
        columns={"close": [1.0]},
        limits=LIMITS,
        guard_imports=False,
        fail_on=frozenset(),
    )
    return sandbox.run(job)


@pytest.mark.journey
@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("walls", ["sandbox", pytest.param("standard", marks=pytest.mark.slow)])
def test_nothing_is_left_for_the_next_job(name, walls, request):
    opened: Sandbox = request.getfixturevalue(walls)
    send, look = CHANNELS[name]
    _run(opened, send)  # it may be refused; what counts is what the next one sees
    assert _run(opened, look).need()["seen"].tolist() == [0]


@pytest.fixture
def library(monkeypatch):
    """A module that every user can read and no other program knows: common ones may be read at
    any time.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "read_by_jobs.py"
        file.write_text("x = 1")
        py_compile.compile(str(file))  # so that its source is not read when it is imported
        monkeypatch.syspath_prepend(folder)
        yield file


@pytest.mark.parametrize("namespaces", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_no_job_leaves_the_time_at_which_it_read_a_library(namespaces, machine, library):
    long_ago = (
        0,
        library.stat().st_mtime,
    )  # where readings are noted once a day, the next one would be
    os.utime(library, long_ago)
    with Sandbox(SandboxConfig(preload=("read_by_jobs",), namespaces=namespaces)) as opened:
        if namespaces:  # what a child sees is read-only, so that nothing is noted at all
            os.utime(library, long_ago)
        before = int(library.stat().st_atime)
        sent = _run(opened, "len(open(__import__('read_by_jobs').__file__).read())")
        assert sent.need()["seen"].tolist() == [5]
        look = _run(opened, "int(os.stat(__import__('read_by_jobs').__file__).st_atime)")
        assert look.need()["seen"].tolist() == [before] == [int(library.stat().st_atime)]


def test_no_job_can_throw_a_shared_file_out_of_memory(sandbox):
    # Eviction is what makes the page cache a channel that can be written again and again.
    source = (
        "import ctypes, mmap, os\n"
        "def run(columns):\n"
        "    f = os.open(os.__file__, os.O_RDONLY)\n"
        "    try:\n        os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)\n"
        "    except OSError:\n        pass\n"
        "    else:\n        return {'refused': [False]}\n"
        "    there = mmap.mmap(f, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)\n"
        "    refused = []\n"
        "    for advice in (20, 21):  # cold, page out\n"
        "        try:\n            there.madvise(advice)\n            refused.append(False)\n"
        "        except OSError:\n            refused.append(True)\n"
        "    return {'refused': refused}"
    )
    job = Job(
        source=source,
        pass_as="columns",
        columns={},
        limits=LIMITS,
        guard_imports=False,
        fail_on=frozenset(),
    )
    assert sandbox.run(job).need()["refused"].tolist() == [True, True]
