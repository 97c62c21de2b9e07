"""What this machine offers, what a child may read of it, and what passes between the two."""

import mmap
import os
import signal
import struct
import sys
from pathlib import Path

import msgspec
import pytest

from tradeassay.core.errors import SandboxError
from tradeassay_programs.sandbox import Kernel, SandboxRefused, ask_kernel, kernel, refusal
from tradeassay_programs.sandbox.namespaces import (
    can_become_nobody,
    find_roots,
    module_names,
    package_roots,
    why_not,
    why_not_leave,
)
from tradeassay_programs.sandbox.supervise import collect, seal

GOOD = Kernel(system="linux", machine="x86_64", release="6.1", landlock_abi=3, seccomp_filter=True)


@pytest.mark.parametrize(
    ("change", "reason", "hint"),
    [
        ({"system": "darwin"}, "macOS", "container"),
        ({"system": "win32"}, "Windows", "container"),
        ({"machine": "riscv64"}, "riscv64", "aarch64"),
        ({"landlock_abi": 0}, "no Landlock", "5.13"),
        ({"seccomp_filter": False}, "no seccomp", "CONFIG_SECCOMP_FILTER"),
    ],
)
def test_a_refusal_names_the_reason_and_the_mend(change, reason, hint):
    refused = refusal(msgspec.structs.replace(GOOD, **change))
    assert isinstance(refused, SandboxRefused) and isinstance(refused, SandboxError)
    assert reason in refused.message and hint in (refused.hint or "")


def test_a_good_machine_is_not_refused():
    assert refusal(GOOD) is None
    assert refusal(msgspec.structs.replace(GOOD, machine="aarch64", landlock_abi=1)) is None


def test_other_systems_are_asked_nothing(monkeypatch):
    assert ask_kernel().release
    monkeypatch.setattr("sys.platform", "darwin")
    asked = ask_kernel()
    assert not asked.landlock_abi and not asked.seccomp_filter and refusal(asked) is not None


def test_finding_out_changes_nothing(machine):
    before = {
        name: os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "net", "pid", "user", "uts")
    }
    who = os.getresuid()
    reason = why_not_leave()
    assert reason is None or reason
    can_become_nobody()
    assert os.getresuid() == who
    assert {name: os.readlink(f"/proc/self/ns/{name}") for name in before} == before


def test_why_something_does_not_work_is_found_out_even_when_it_ends_without_a_word():
    def refused() -> None:
        raise PermissionError("not allowed")

    assert why_not(os.getpid) is None and why_not(refused) == "not allowed"
    assert why_not(lambda: os.kill(os.getpid(), signal.SIGKILL)) == "it was killed"
    assert why_not(lambda: [][0]) == "it failed"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may become nobody")
def test_an_ordinary_user_cannot_become_another():
    assert not can_become_nobody()


def test_the_topmost_part_below_a_site_folder():
    files = [
        "/v/site-packages/numpy/core/x.so",
        "/v/site-packages/six.py",
        "/v/site-packages/numpy.libs/libopenblas.so",
        "/v/site-packages/tradeassay/sandbox/child.py",
        "/usr/lib/python3/os.py",
        "/v/site-packages/",
    ]
    assert package_roots({"/v/site-packages"}, files) == {
        "/v/site-packages/numpy",
        "/v/site-packages/six.py",
        "/v/site-packages/numpy.libs",
    }


def test_names_behind_roots():
    roots = [
        "/s/six.py",
        "/s/numpy",
        "/s/numpy.libs",
        "/s/_x.cpython-311-x86_64-linux-gnu.so",
        "/s/81d__mypyc.so",
    ]
    assert module_names(roots) == {"six", "numpy", "_x"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_this_interpreters_roots():
    roots = find_roots()
    assert os.path.dirname(os.__file__) in roots.stdlib
    assert any(path.endswith("/numpy") for path in roots.packages)
    assert not any(Path(path).name.startswith("tradeassay") for path in roots.packages)
    assert not any(
        os.path.basename(path) in ("site-packages", "dist-packages") for path in roots.readable()
    )
    one_by_one = roots.readable_one_by_one()
    assert os.path.join(roots.stdlib[0], "json") in one_by_one
    assert not set(roots.covered) & set(one_by_one)


@pytest.mark.parametrize(
    ("version", "rights", "size"),
    [
        (1, 0x1FFF, 8),
        (2, 0x3FFF, 8),
        (3, 0x7FFF, 8),
        (4, 0x7FFF, 16),
        (5, 0xFFFF, 16),
        (6, 0xFFFF, 24),
        (9, 0xFFFF, 24),
    ],
)
def test_each_version_takes_away_all_it_can(version, rights, size):
    attributes = kernel.ruleset_attributes(version)
    assert len(attributes) == size
    assert struct.unpack_from("=Q", attributes)[0] == rights
    assert kernel.handled_rights(version) == rights


def test_only_what_is_granted_can_be_opened(machine, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "file").write_text("x")
    (tmp_path / "shut").write_text("x")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            folder = os.open(tmp_path / "open", os.O_PATH)
            kernel.no_new_privileges()
            kernel.restrict(kernel.landlock_abi(), [(folder, kernel.READ)])
            code = _what_is_open(tmp_path)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _what_is_open(folder: Path) -> int:
    if (folder / "open" / "file").read_text() != "x":
        return 2
    for attempt in (
        lambda: (folder / "shut").read_text(),
        lambda: (folder / "open" / "file").write_text("y"),
        lambda: (folder / "open" / "new").write_text("y"),
        lambda: os.listdir(folder),
    ):
        try:
            attempt()
            return 3
        except PermissionError:
            continue
    return 0


def test_sealed_memory_cannot_be_changed():
    descriptor = seal([b"abc", b"", b"def"], "test")
    try:
        assert os.pread(descriptor, 100, 0) == b"abcdef"
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
        with pytest.raises(PermissionError):
            mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        with mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ) as view:
            assert view[:3] == b"abc"
    finally:
        os.close(descriptor)


def test_only_plain_files_are_collected_and_their_bytes_have_a_cap_in_sum(tmp_path):
    for name in ("bad\x1bname", "log.txt", "mate", "more"):
        (tmp_path / name).write_bytes(bytes(400))
    (tmp_path / "big").write_bytes(bytes(2_000))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert sorted(collect(folder, 1_000)) == ["log.txt", "mate"]
    finally:
        os.close(folder)
