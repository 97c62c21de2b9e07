import errno
import os
import weakref
from pathlib import Path

import msgspec
import pytest

from tradeassay.sandbox import seccomp
from tradeassay.sandbox.kernel import number
from tradeassay.sandbox.seccomp import Notice
from tradeassay.sandbox.watch import ChildWatch, Reach

CWD = 0xFFFFFF9C
REACH = Reach(
    readable=frozenset({"/usr/lib/python3", "/dev/null"}),
    listable=frozenset({"/opt/lib"}),
    searched=frozenset({"/opt/site-packages"}),
)


class Desk:
    """A watch whose child is a file: texts lie at addresses, answers are noted instead of sent."""

    def __init__(self, memory: Path, monkeypatch: pytest.MonkeyPatch, reach: Reach = REACH) -> None:
        self.watch = ChildWatch("x86_64", reach)
        self.watch.memory = self._file = os.open(memory, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        weakref.finalize(self, os.close, self._file)
        self._notice: Notice | None = None
        self.answer: int | None = None
        monkeypatch.setattr(seccomp, "receive", lambda _listener: self._notice)
        monkeypatch.setattr(seccomp, "refuse", lambda _listener, _notice, code: setattr(self, "answer", code))
        monkeypatch.setattr(seccomp, "let_go_on", lambda _listener, _notice: setattr(self, "answer", 0))

    def call(self, name: str, *arguments: int | str) -> int | None:
        words = []
        for position, argument in enumerate(arguments):
            if isinstance(argument, str):
                address = 4096 * (position + 1)
                os.pwrite(self._file, argument.encode() + b"\0", address)
                words.append(address)
            else:
                words.append(argument)
        self._notice = Notice(1, number("x86_64", name), (*words, *[0] * (6 - len(words))))
        self.answer = None
        self.watch.answer(0)
        return self.answer


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path / "memory", monkeypatch)


def test_reading_inside_goes_on_and_outside_it_is_refused_and_recorded(desk):
    inside = "/usr/lib/python3/json/__init__.py /usr/lib/python3 /dev/null /opt/lib log.txt /scratch/a/b .".split()
    for path in inside:
        assert desk.call("openat", CWD, path, os.O_RDONLY) == 0, path
    assert desk.watch.attempts == () and desk.watch.file_calls == len(inside)
    outside = """/etc/passwd /usr/lib/python3x/a /usr/lib/python3/../../../etc/group ../etc/shadow
        /opt/lib/site-packages/data.csv /proc/self/environ /""".split()
    for place, path in enumerate(outside):
        assert desk.call("openat", CWD, path, os.O_RDONLY) == errno.EACCES, path
        assert len(desk.watch.attempts) == place + 1, path
    for attempt in desk.watch.attempts:
        assert (attempt.family, attempt.call, attempt.detail[:6]) == ("file", "openat", "read /")


def test_what_libraries_ask_by_themselves_is_refused_without_a_record(desk):
    own = "/etc/localtime /lib/x86_64-linux-gnu/libfoo.so.1 /opt/site-packages /usr/lib64/libx.so".split()
    assert {desk.call("openat", CWD, path, os.O_RDONLY) for path in own} == {errno.EACCES}
    assert desk.watch.attempts == ()
    assert {desk.call("openat", CWD, path, os.O_WRONLY) for path in own} == {errno.EACCES}
    assert len(desk.watch.attempts) == len(own)


def test_writing_is_for_the_scratch_folder(desk):
    assert desk.call("openat", CWD, "/scratch/x", os.O_WRONLY | os.O_CREAT) == 0
    assert desk.call("openat", CWD, "/dev/null", os.O_WRONLY) == 0
    assert desk.call("openat", CWD, "/usr/lib/python3/x", os.O_WRONLY) == errno.EACCES
    assert desk.call("creat", "/usr/lib/python3/x", 0o600) == errno.EACCES
    assert desk.call("mkdir", "/usr/lib/python3/x", 0o700) == errno.EACCES
    assert desk.call("unlink", "x") == 0
    assert [attempt.call for attempt in desk.watch.attempts] == ["openat", "creat", "mkdir"]


def test_both_ends_of_a_rename_count(desk):
    assert desk.call("rename", "a", "b") == 0
    assert desk.call("rename", "a", "/etc/b") == errno.EACCES
    assert desk.call("renameat2", CWD, "/etc/a", CWD, "b", 0) == errno.EACCES


def test_paths_below_a_descriptor_are_those_of_the_own_folder(desk, tmp_path):
    desk.watch.process = os.pidfd_open(os.getpid())
    desk.watch.folder, other = (os.open(path, os.O_RDONLY) for path in (tmp_path, "/proc"))
    assert desk.call("openat", desk.watch.folder, "file", os.O_RDONLY) == 0
    assert desk.call("newfstatat", other, "file", 0) == errno.ENOENT
    assert desk.call("newfstatat", 99, "file", 0) == errno.ENOENT
    assert desk.call("openat", desk.watch.folder, "../../etc/passwd", os.O_RDONLY) == errno.EACCES
    for descriptor in (desk.watch.process, desk.watch.folder, other):
        os.close(descriptor)


def test_a_name_that_does_not_exist_gets_no_farther_than_the_host(tmp_path, monkeypatch):
    known = frozenset({"/usr/lib/python3", "/usr/lib/python3/os.py"})
    desk = Desk(tmp_path / "memory", monkeypatch, msgspec.structs.replace(REACH, known=known))
    for call, arguments in (("openat", (CWD,)), ("stat", ()), ("statfs", ()), ("faccessat", (CWD,))):
        assert desk.call(call, *arguments, "/usr/lib/python3/os.py") == 0
        assert desk.call(call, *arguments, "/usr/lib/python3/bit-17") == errno.ENOENT
        assert desk.call(call, *arguments, "/scratch/bit-17") == 0
    assert desk.call("chdir", "/usr/lib/python3") == errno.EACCES and desk.call("chdir", "/scratch/a") == 0
    # Without a scratch folder relative paths start at the root.
    desk = Desk(tmp_path / "memory", monkeypatch, Reach(readable=frozenset({"/usr"}), home="/"))
    assert desk.call("openat", CWD, "etc/passwd", os.O_RDONLY) == errno.EACCES
    assert desk.call("openat", CWD, "usr/x", os.O_RDONLY) == 0


@pytest.mark.parametrize(
    ("name", "arguments", "family", "detail"),
    [
        ("socket", (2, 1, 0), "network", "AF_INET, SOCK_STREAM"),
        ("socket", (2, 2 | 0o2000000, 0), "network", "AF_INET, SOCK_DGRAM"),
        ("socket", (999, 9, 0), "network", "family 999, kind 9"),
        ("execve", ("/bin/sh", 0, 0), "process", "/bin/sh"),
        ("kill", (2**32 - 1, 9), "process", "pid -1, signal 9"),
        ("tgkill", (1, 1, 9), "process", "pid 1, signal 9"),
        ("memfd_create", ("x", 0), "memory", "x"),
        ("chmod", ("/etc/shadow", 0o777), "file", "/etc/shadow"),
        ("symlinkat", ("/etc", CWD, "link"), "file", "/etc"),
        ("unshare", (0x10000000,), "privileged", ""),
    ],
)
def test_refused_calls_say_what_they_were_after(desk, name, arguments, family, detail):
    assert desk.call(name, *arguments) == errno.EPERM
    (attempt,) = desk.watch.attempts
    assert (attempt.family, attempt.call, attempt.detail) == (family, name, detail)


def test_a_refused_thread_looks_like_a_full_machine_repeats_add_up_and_kinds_are_bounded(desk):
    assert desk.call("clone", 0x10000) == desk.call("clone", 17) == errno.EAGAIN
    assert [attempt.detail for attempt in desk.watch.attempts] == ["a thread", "a process"]
    for _ in range(3):
        desk.call("socket", 2, 1, 0)
    assert desk.watch.attempts[2].count == 3
    assert desk.watch.attempts[2].text == "network: socket(AF_INET, SOCK_STREAM) x3"
    for port in range(200):
        desk.call("kill", port, 9)
    assert len(desk.watch.attempts) == 65, "the rest are added up by call"
    assert desk.watch.attempts[-1].detail == "others" and desk.watch.attempts[-1].call == "kill"
    assert desk.watch.refused == 205


def test_odd_paths_and_callers(desk):
    assert desk.call("newfstatat", CWD, "/etc/passwd", 0, 0) == errno.ENOENT  # only asked whether it exists
    assert desk.call("stat", "/usr/lib/python3/a", 0) == 0
    assert desk.call("newfstatat", 5, "", 0, 0x1000) == 0 and desk.watch.attempts == ()
    desk.call("openat", CWD, "/etc/\x1b[2Jx\n" + "y" * 1000, os.O_RDONLY)
    detail = desk.watch.attempts[0].detail
    assert detail.isprintable() and len(detail) <= 200
    # An address that cannot be read is left to the kernel; a caller that died needs no answer.
    assert desk.call("openat", CWD, 2**63 + 5, os.O_RDONLY) == 0
    desk.watch.memory = None
    assert desk.call("openat", CWD, 4096, os.O_RDONLY) == 0
    desk._notice = desk.answer = None
    desk.watch.answer(0)
    assert desk.answer is None
