import os
import platform
import sys

import pytest

from tradeassay_programs.sandbox import kernel
from tradeassay_programs.sandbox.kernel import (
    ALLOWED,
    ALLOWED_INT,
    AUDIT_ARCH,
    FAMILY_OF,
    QUIET,
    STAT,
    SYSCALLS,
    WATCHED,
    family_of,
    name_of,
    number,
)

HAND_CHECKED = {  # name: its number on x86_64 and aarch64
    name: (int(one), int(other))
    for name, one, other in (
        line.split()
        for line in """read 0 63 | openat 257 56 | clone 56 220 | execve 59 221 | ptrace 101 117 |
        seccomp 317 277 | memfd_create 319 279 | rseq 334 293 | pidfd_open 434 434 |
        landlock_create_ruleset 444 444 | mseal 462 462""".split("|")
    )
}


@pytest.mark.parametrize("place", [0, 1])
def test_numbers_that_were_looked_up_by_hand(place):
    machine = ("x86_64", "aarch64")[place]
    for name, numbers in HAND_CHECKED.items():
        assert number(machine, name) == numbers[place] and name_of(machine, numbers[place]) == name
    table = SYSCALLS[machine]
    assert len(set(table.values())) == len(table)
    assert machine in AUDIT_ARCH


def test_legacy_calls_exist_on_one_machine_only():
    assert "open" in SYSCALLS["x86_64"]
    assert "open" not in SYSCALLS["aarch64"]
    with pytest.raises(KeyError):
        number("aarch64", "fork")


def test_every_name_in_the_policy_is_a_real_call():
    known = {name for table in SYSCALLS.values() for name in table}
    for names in (ALLOWED, STAT, WATCHED, QUIET, ALLOWED_INT, FAMILY_OF):
        assert set(names) <= known


def test_a_call_has_one_answer():
    groups = [ALLOWED, STAT, WATCHED, frozenset(QUIET), frozenset(ALLOWED_INT)]
    assert sum(len(group) for group in groups) == len(frozenset().union(*groups))


def test_families():
    for family, names in {
        "network": "socket",
        "process": "vfork ptrace",
        "file": "chmod",
        "memory": "memfd_create shmget",
        "privileged": "mount io_uring_setup bpf",
        "other": "epoll_create1",
    }.items():
        assert {family_of(name) for name in names.split()} == {family}
    assert {family_of(name) for name in ALLOWED} == {"other"} and name_of(
        "x86_64", 999
    ) == "syscall 999"


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in SYSCALLS,
    reason="needs a known Linux machine",
)
def test_the_table_is_this_machines():
    assert kernel.syscall("getpid") == os.getpid()
    assert kernel.syscall("getppid") == os.getppid()
    with pytest.raises(OSError, match="close"):
        kernel.syscall("close", 10_000)
