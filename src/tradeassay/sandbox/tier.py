"""How strong the walls are on this machine, and the refusal where they are not strong enough.

``strong``: everything. ``standard``: no namespaces, so no private root and no scratch folder, but Landlock,
seccomp and limits. Without Landlock or seccomp, or on a machine whose calls are unknown, untrusted code is not
run at all.
"""

import platform
import re
import sys
from contextlib import suppress
from typing import Literal

import msgspec

from tradeassay.core.errors import SandboxError
from tradeassay.sandbox import seccomp
from tradeassay.sandbox.kernel import SYSCALLS, landlock_abi

Level = Literal["strong", "standard", "trusted-in-process"]
_CONTAINER = (
    "run it in a Linux container or virtual machine, e.g. docker run --rm -it python:3.11; "
    "see docs/howto/run-untrusted-code.md"
)


class SandboxRefused(SandboxError):
    """This machine cannot contain untrusted code. The message names what is missing, the mend what to do."""


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """The walls a job ran behind. ``missing`` names each that is not there, and what follows from that."""

    level: Level
    walls: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    landlock_abi: int = 0
    machine: str = ""
    kernel: str = ""


IN_PROCESS = Tier(level="trusted-in-process", missing=("every wall: the code ran inside the host's own process",))


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """What can be learned about the machine without starting anything. ``filtered``: this process already runs
    under somebody's call filter, as in most containers. What is missing then may be there and forbidden.
    """

    system: str
    machine: str
    release: str
    landlock_abi: int
    seccomp_filter: bool
    filtered: bool = False


def ask_kernel() -> Kernel:
    """Return what this machine offers. Works, with little to report, on every operating system."""
    machine, system, filtered = platform.machine(), sys.platform, False
    known = system == "linux" and machine in SYSCALLS
    with suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as status:
        filtered = any(line.split() == ["Seccomp:", "2"] for line in status)
    return Kernel(
        system=system,
        machine=machine,
        release=platform.release(),
        landlock_abi=landlock_abi() if known else 0,
        seccomp_filter=known and seccomp.has_action(seccomp.RET_ERRNO),
        filtered=known and filtered,
    )


_LANDLOCK_SINCE = (5, 13)


_PROFILE = (
    "allow the calls seccomp, landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in the "
    "container's profile, e.g. docker run --security-opt seccomp=unconfined; see docs/howto/run-untrusted-code.md"
)


def refusal(kernel: Kernel) -> SandboxRefused | None:
    """Return why untrusted code must not run here, or None when it may."""
    if kernel.system != "linux":
        name = {"darwin": "macOS", "win32": "Windows"}.get(kernel.system, kernel.system)
        return SandboxRefused(f"untrusted code runs on Linux only, this is {name}", hint=_CONTAINER)
    if kernel.machine not in SYSCALLS:
        hint = f"use one of {', '.join(SYSCALLS)}"
        return SandboxRefused(f"the system calls of {kernel.machine} are not known to the sandbox", hint=hint)
    age, name = re.match(r"(\d+)\.(\d+)", kernel.release), f"kernel {kernel.release}"
    young = age is not None and (int(age[1]), int(age[2])) >= _LANDLOCK_SINCE
    around = "a call filter around this process blocks"
    if kernel.landlock_abi < 1 and kernel.filtered and young:
        why = f"{around} Landlock, which {name} is new enough for, so files could not be held shut"
        return SandboxRefused(why, hint=_PROFILE)
    if kernel.landlock_abi < 1:
        hint = "use Linux 5.13 or newer with 'landlock' in the boot option lsm=, or " + _CONTAINER
        return SandboxRefused(f"{name} has no Landlock, so files could not be held shut", hint=hint)
    if not kernel.seccomp_filter and kernel.filtered:
        return SandboxRefused(f"{around} seccomp, so system calls could not be refused", hint=_PROFILE)
    if not kernel.seccomp_filter:
        hint = "use a kernel with CONFIG_SECCOMP_FILTER, or " + _CONTAINER
        return SandboxRefused(f"{name} has no seccomp filters, so system calls could not be refused", hint=hint)
    return None
