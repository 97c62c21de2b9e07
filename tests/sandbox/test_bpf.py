import errno
import struct

import pytest
from hypothesis import given, strategies as st

from tradeassay.sandbox.kernel import ALLOWED, ALLOWED_INT, AUDIT_ARCH, MISSING, QUIET, STAT, SYSCALLS, WATCHED
from tradeassay.sandbox.seccomp import RET_ALLOW, RET_ERRNO, RET_KILL, RET_NOTIFY, FilterSpec, build, for_process

MACHINES = ("x86_64", "aarch64")
PID = 4321


def answer(program: bytes, machine: str, nr: int, arguments: tuple[int, ...] = (), arch: int | None = None) -> int:
    """Run a classic BPF program over one call, as the kernel does."""
    padded = (*arguments, *([0] * (6 - len(arguments))))
    data = struct.pack("<iIQ6Q", nr, AUDIT_ARCH[machine] if arch is None else arch, 0, *padded)
    code = [struct.unpack_from("<HBBI", program, offset) for offset in range(0, len(program), 8)]
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x15:
            at += if_true if accumulator == value else if_false
        elif operation == 0x35:
            at += if_true if accumulator >= value else if_false
        elif operation == 0x06:
            return value
        else:
            raise AssertionError(f"unknown instruction {operation:#x}")


def program(machine: str, *, notify: bool = True, watch_stat: bool = False) -> bytes:
    return build(FilterSpec(machine=machine, pid=PID, notify=notify, watch_stat=watch_stat))


@pytest.mark.parametrize("machine", MACHINES)
def test_every_known_call_gets_the_answer_its_name_says(machine):
    built = program(machine)
    for name, nr in SYSCALLS[machine].items():
        got = answer(built, machine, nr, (99,) * 6)
        if name in ALLOWED or name in STAT:
            assert got == RET_ALLOW, name
        elif name in QUIET:
            assert got == RET_ERRNO | QUIET[name], name
        else:
            assert got == RET_NOTIFY, name


@pytest.mark.parametrize("machine", MACHINES)
def test_without_a_listener_refused_calls_fail_and_watched_ones_pass(machine):
    built = program(machine, notify=False)
    for name, nr in SYSCALLS[machine].items():
        got = answer(built, machine, nr, (99,) * 6)
        if name in ALLOWED | STAT | WATCHED:
            assert got == RET_ALLOW, name
        elif name == "clone":
            assert got == RET_ERRNO | errno.EAGAIN
        elif name in MISSING:
            assert got == RET_ERRNO | MISSING[name], name
        elif name not in QUIET:
            assert got == RET_ERRNO | errno.EPERM, name


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_is_for_one_machine_and_process(machine):
    built, calls = program(machine), SYSCALLS[machine]
    assert answer(built, machine, calls["read"], arch=0x40000003) == RET_KILL
    if machine == "x86_64":
        assert answer(built, machine, 0x40000000) == RET_KILL
    assert len(built) % 8 == 0 and len(built) // 8 < 4096  # the kernel's limit
    assert for_process(build(FilterSpec(machine=machine)), PID) == built
    watching = program(machine, watch_stat=True)
    assert {answer(watching, machine, calls[name]) for name in STAT & calls.keys()} == {RET_NOTIFY}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", sorted(ALLOWED_INT))
def test_calls_allowed_for_some_values_only(machine, name):
    position, values = ALLOWED_INT[name]
    nr = SYSCALLS[machine][name]
    for value in values:
        arguments = [77] * 6
        arguments[position] = value
        assert answer(program(machine), machine, nr, tuple(arguments)) == RET_ALLOW
    arguments[position] = max(values) + 1_000
    assert answer(program(machine), machine, nr, tuple(arguments)) == RET_NOTIFY


@pytest.mark.parametrize("machine", MACHINES)
def test_it_may_abort_itself_and_nobody_else(machine):
    nr = SYSCALLS[machine]["tgkill"]
    assert answer(program(machine), machine, nr, (PID, PID, 6)) == RET_ALLOW
    assert answer(program(machine), machine, nr, (PID, PID, 9)) == RET_NOTIFY
    assert answer(program(machine), machine, nr, (1, 1, 6)) == RET_NOTIFY


@pytest.mark.parametrize("machine", MACHINES)
def test_it_may_read_its_limits_but_not_set_them(machine):
    nr = SYSCALLS[machine]["prlimit64"]
    assert answer(program(machine), machine, nr, (0, 7, 0, 1 << 40)) == RET_ALLOW
    assert answer(program(machine), machine, nr, (0, 7, 1, 0)) == RET_NOTIFY
    # A pointer whose low half is zero is still a pointer.
    assert answer(program(machine), machine, nr, (0, 7, 1 << 32, 0)) == RET_NOTIFY
    assert answer(program(machine), machine, nr, (5, 7, 0, 0)) == RET_NOTIFY


@given(
    machine=st.sampled_from(MACHINES),
    nr=st.integers(0, 2**31 - 1),
    arguments=st.tuples(*[st.integers(0, 2**64 - 1)] * 6),
)
def test_what_is_not_on_the_list_is_never_allowed(machine, nr, arguments):
    names = {number: name for name, number in SYSCALLS[machine].items()}
    got = answer(program(machine), machine, nr, arguments)
    if got == RET_ALLOW:
        assert names[nr] in ALLOWED | STAT | set(ALLOWED_INT) | {"tgkill", "prlimit64"}
