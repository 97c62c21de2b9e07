import errno
import struct

import pytest
from hypothesis import given, strategies as st

from tradeassay_programs.sandbox.kernel import (
    ALLOWED,
    ALLOWED_INT,
    AUDIT_ARCH,
    MISSING,
    QUIET,
    STAT,
    SYSCALLS,
    WATCHED,
)
from tradeassay_programs.sandbox.seccomp import (
    RET_ALLOW,
    RET_ERRNO,
    RET_KILL,
    RET_NOTIFY,
    build,
    for_process,
)

MACHINES = ("x86_64", "aarch64")
PID = 4321


def answer(
    program: bytes, machine: str, nr: int, arguments: tuple[int, ...] = (), arch: int | None = None
) -> int:
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


def program(machine: str, *, notify: bool = True) -> bytes:
    return build(machine, PID, notify=notify)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("notify", [True, False])
def test_every_known_call_gets_the_answer_its_name_says(machine, notify):
    """Without a listener refused calls fail and watched ones pass."""
    built = program(machine, notify=notify)
    silent = dict.fromkeys(WATCHED | STAT, RET_ALLOW) | {"clone": RET_ERRNO | errno.EAGAIN}
    silent |= {name: RET_ERRNO | code for name, code in MISSING.items()}
    expected = dict.fromkeys(ALLOWED, RET_ALLOW) | ({} if notify else silent)
    expected |= {name: RET_ERRNO | code for name, code in QUIET.items()}
    for name, nr in SYSCALLS[machine].items():
        refused = RET_NOTIFY if notify else RET_ERRNO | errno.EPERM
        assert answer(built, machine, nr, (99,) * 6) == expected.get(name, refused), name


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_is_for_one_machine_and_process(machine):
    built, calls = program(machine), SYSCALLS[machine]
    assert answer(built, machine, calls["read"], arch=0x40000003) == RET_KILL
    if machine == "x86_64":
        assert answer(built, machine, 0x40000000) == RET_KILL
    assert len(built) % 8 == 0 and len(built) // 8 < 4096  # the kernel's limit
    assert for_process(build(machine), PID) == built


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
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("tgkill", (PID, PID, 6), RET_ALLOW),  # it may abort itself and nobody else
        ("tgkill", (PID, PID, 9), RET_NOTIFY),
        ("tgkill", (1, 1, 6), RET_NOTIFY),
        ("prlimit64", (0, 7, 0, 1 << 40), RET_ALLOW),  # it may read its limits but not set them
        ("prlimit64", (0, 7, 1, 0), RET_NOTIFY),
        (
            "prlimit64",
            (0, 7, 1 << 32, 0),
            RET_NOTIFY,
        ),  # a pointer whose low half is zero is still a pointer
        ("prlimit64", (5, 7, 0, 0), RET_NOTIFY),
    ],
)
def test_signals_and_limits_are_its_own(machine, name, arguments, expected):
    assert answer(program(machine), machine, SYSCALLS[machine][name], arguments) == expected


@given(
    machine=st.sampled_from(MACHINES),
    nr=st.integers(0, 2**31 - 1),
    arguments=st.tuples(*[st.integers(0, 2**64 - 1)] * 6),
)
def test_what_is_not_on_the_list_is_never_allowed(machine, nr, arguments):
    names = {number: name for name, number in SYSCALLS[machine].items()}
    got = answer(program(machine), machine, nr, arguments)
    if got == RET_ALLOW:
        assert names[nr] in ALLOWED | set(ALLOWED_INT) | {"tgkill", "prlimit64"}
