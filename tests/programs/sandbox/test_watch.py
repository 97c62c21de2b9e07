import errno
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from tradeassay_programs.sandbox import kernel, seccomp, watch
from tradeassay_programs.sandbox.kernel import STAT, SYSCALLS, WATCHED, number
from tradeassay_programs.sandbox.seccomp import Notice
from tradeassay_programs.sandbox.watch import ChildWatch, Reach

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
        monkeypatch.setattr(
            seccomp, "refuse", lambda _listener, _notice, code: setattr(self, "answer", code)
        )
        monkeypatch.setattr(
            seccomp, "let_go_on", lambda _listener, _notice: setattr(self, "answer", 0)
        )

    def call(self, name: str | int, *arguments: int | str | bytes) -> int | None:
        words = []
        for position, argument in enumerate(arguments):
            if isinstance(argument, int):
                words.append(argument)
                continue
            text = argument.encode() if isinstance(argument, str) else argument
            address = 8192 * (position + 1)
            os.pwrite(self._file, text + b"\0", address)
            words.append(address)
        nr = name if isinstance(name, int) else number("x86_64", name)
        self._notice = Notice(1, nr, (*words, *[0] * (6 - len(words))))
        self.answer = None
        self.watch.answer(0)
        return self.answer


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path / "memory", monkeypatch)


def test_reading_inside_goes_on_and_outside_it_is_refused_and_recorded(desk):
    inside = (
        "/usr/lib/python3/json/__init__.py /usr/lib/python3 /dev/null /opt/lib log.txt "
        "/scratch/a/b ."
    ).split()
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
    for call, arguments in (
        ("openat", (CWD,)),
        ("stat", ()),
        ("statfs", ()),
        ("faccessat", (CWD,)),
    ):
        assert desk.call(call, *arguments, "/usr/lib/python3/os.py") == 0
        assert desk.call(call, *arguments, "/usr/lib/python3/bit-17") == errno.ENOENT
        assert desk.call(call, *arguments, "/scratch/bit-17") == 0
    assert (
        desk.call("chdir", "/usr/lib/python3") == errno.EACCES
        and desk.call("chdir", "/scratch/a") == 0
    )
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
    assert (
        desk.call("newfstatat", CWD, "/etc/passwd", 0, 0) == errno.ENOENT
    )  # only asked whether it exists
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


MOST_STEPS = 2_000
"""Lines of the watch that one decision may take; the longest path that the kernel takes needs
far fewer.
"""


class TooManySteps(BaseException):
    """A decision that does not end."""


def counted(decide: Callable[[], int | None]) -> int | None:
    """Make a decision and count the lines it takes: a loop without end becomes a failure, by no
    clock.
    """
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        steps += event == "line" and frame.f_code.co_filename in (watch.__file__, kernel.__file__)
        if steps > MOST_STEPS:
            raise TooManySteps
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return decide()
    finally:
        sys.settrace(before)


def as_the_kernel_walks(path: bytes) -> str:
    """Return where an absolute path leads, or a relative one from the own folder; no links are
    followed.
    """
    text = path.partition(b"\0")[0].decode("utf-8", "replace")
    parts = [] if text.startswith("/") else ["scratch"]
    for part in text.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


PIECES = st.sampled_from(
    b"/|//|///|.|..||usr|/usr/lib/python3|/dev/null|/scratch|/opt/lib|a|/proc/self/environ|/proc/self/fd/3|/lib/"
    b"|.so|.so.1.1|\xff\xfe|\xed\xa0\x80|\0|\xf0\x9f\x98\x80|\n|\x1b[2J|%s{0}".split(b"|")
)
PATHS = st.one_of(
    st.lists(PIECES, max_size=12).map(b"".join),
    st.lists(PIECES, max_size=12).map(b"/".join),
    st.tuples(PIECES, st.integers(1, 4200)).map(lambda drawn: (drawn[0] * drawn[1])[:4200]),
    st.binary(max_size=64),
)
WORDS = st.one_of(
    st.sampled_from([0, 1, CWD, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 0xFFFFFFFFFFFFFF9C]),
    st.integers(0, 2**64 - 1),
)
AWKWARD = (
    "//data/x.csv",
    "//",
    "///",
    "//../..//etc/passwd",
    "",
    ".",
    "..",
    "/" * 4200,
    "/a" * 2100,
    "/lib/" * 800,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(SYSCALLS["x86_64"])),
    words=st.lists(st.one_of(WORDS, PATHS), max_size=6),
)
@example(name="openat", words=[CWD, b"//data/x.csv", 0])
def test_every_call_with_whatever_arguments_is_decided_in_few_steps(desk, name, words):
    answer = counted(lambda: desk.call(name, *words))
    assert answer in (0, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EAGAIN, errno.ENOSYS)
    if name not in WATCHED | STAT:
        assert answer != 0, "only calls that name a path may go on"
    for attempt in desk.watch.attempts:
        assert attempt.detail.isprintable() and len(attempt.detail) <= 200


@pytest.mark.parametrize("number_of_no_call", [-1, 9999, 2**31 - 1])
def test_a_call_without_a_name_is_refused(desk, number_of_no_call):
    assert counted(lambda: desk.call(number_of_no_call)) == errno.EPERM


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS, writes=st.booleans())
def test_only_what_lies_within_reach_goes_on_however_the_path_is_written(desk, path, writes):
    place = as_the_kernel_walks(path)
    reached = place == "/scratch" or place.startswith("/scratch/") or place == "/dev/null"
    if not writes:
        # Below a file there is nothing: the kernel says so itself.
        reached = reached or place.startswith("/dev/null/")
        reached = reached or place == "/opt/lib" or f"{place}/".startswith("/usr/lib/python3/")
    flags = os.O_WRONLY if writes else os.O_RDONLY
    answer = counted(lambda: desk.call("openat", CWD, path, flags))
    too_long = len(path.partition(b"\0")[0]) >= 4096  # the kernel refuses these by itself
    if not reached and not too_long and path.partition(b"\0")[0]:
        assert answer == errno.EACCES
    if reached and not too_long:
        assert answer in (0, errno.EACCES), "a refusal is always safe"


@pytest.mark.parametrize("path", AWKWARD)
@pytest.mark.parametrize("name", sorted(WATCHED | STAT))
def test_awkward_paths_are_decided_for_every_call_that_names_one(desk, name, path):
    at = (CWD,) if name in watch._RELATIVE_TO_DESCRIPTOR else ()
    second = (*at, path) if name in watch._SECOND_PATH else (0, 0)
    assert counted(lambda: desk.call(name, *at, path, *second)) in (0, errno.ENOENT, errno.EACCES)


def test_two_slashes_at_the_start_are_one(desk):
    for path in (
        "//usr/lib/python3/os.py",
        "///usr/lib/python3/os.py",
        "//scratch//a",
        "//dev/./null",
    ):
        assert desk.call("openat", CWD, path, os.O_RDONLY) == 0, path
    assert desk.call("openat", CWD, "//data/x.csv", os.O_RDONLY) == errno.EACCES
    (attempt,) = desk.watch.attempts
    assert attempt.detail == "read /data/x.csv"
