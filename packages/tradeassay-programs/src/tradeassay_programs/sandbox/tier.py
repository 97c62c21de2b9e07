"""Determine the isolation that this machine supports, and refuse to run code without enough of it.

The level ``strong`` has every mechanism. The level ``standard`` has Landlock, seccomp and limits
but no namespaces, so there is no private root and no scratch folder. Untrusted code does not run
without Landlock or seccomp, or on an architecture with unknown system calls.
"""

import platform
import re
import sys
from contextlib import suppress
from typing import Literal

import msgspec

from tradeassay.core.errors import SandboxError
from tradeassay_programs.sandbox import seccomp
from tradeassay_programs.sandbox.kernel import SYSCALLS, landlock_abi

Level = Literal["strong", "standard", "trusted-in-process"]
_CONTAINER = (
    "run it in a Linux container or virtual machine, e.g. docker run --rm -it python:3.11; "
    "see docs/howto/run-untrusted-code.md"
)


class SandboxRefused(SandboxError):
    """Raised if this machine cannot contain untrusted code.

    The message names the missing mechanism, and the hint names a remedy.
    """


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """The isolation of a job's run.

    ``isolation`` lists its mechanisms. ``missing`` lists each absent mechanism with the
    consequence.
    """

    level: Level
    isolation: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    landlock_abi: int = 0
    machine: str = ""
    kernel: str = ""


IN_PROCESS = Tier(
    level="trusted-in-process",
    missing=("all isolation: the code ran inside the host's own process",),
)


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the machine's kernel that are available without starting a process.

    ``filtered`` is true if this process already runs under a call filter, as in most containers. A
    mechanism that seems to be missing may then exist and be forbidden.
    """

    system: str
    machine: str
    release: str
    landlock_abi: int
    seccomp_filter: bool
    filtered: bool = False


def ask_kernel() -> Kernel:
    """Return the isolation features of this machine's kernel, on any operating system."""
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
    "allow the calls seccomp, landlock_create_ruleset, landlock_add_rule and "
    "landlock_restrict_self in the "
    "container's profile, e.g. docker run --security-opt seccomp=unconfined; see "
    "docs/howto/run-untrusted-code.md"
)


def refusal(kernel: Kernel) -> SandboxRefused | None:
    """Return the error why untrusted code must not run on this machine, or None."""
    if kernel.system != "linux":
        name = {"darwin": "macOS", "win32": "Windows"}.get(kernel.system, kernel.system)
        return SandboxRefused(f"untrusted code runs on Linux only, this is {name}", hint=_CONTAINER)
    if kernel.machine not in SYSCALLS:
        hint = f"use one of {', '.join(SYSCALLS)}"
        return SandboxRefused(
            f"the system calls of {kernel.machine} are not known to the sandbox", hint=hint
        )
    version, name = re.match(r"(\d+)\.(\d+)", kernel.release), f"kernel {kernel.release}"
    has_landlock = version is not None and (int(version[1]), int(version[2])) >= _LANDLOCK_SINCE
    filter_blocks = "a call filter around this process blocks"
    if kernel.landlock_abi < 1 and kernel.filtered and has_landlock:
        reason = (
            f"{filter_blocks} Landlock, which {name} supports, so access to files cannot be limited"
        )
        return SandboxRefused(reason, hint=_PROFILE)
    if kernel.landlock_abi < 1:
        hint = "use Linux 5.13 or newer with 'landlock' in the boot option lsm=, or " + _CONTAINER
        reason = f"{name} has no Landlock, so access to files cannot be limited"
        return SandboxRefused(reason, hint=hint)
    if not kernel.seccomp_filter and kernel.filtered:
        reason = f"{filter_blocks} seccomp, so system calls cannot be refused"
        return SandboxRefused(reason, hint=_PROFILE)
    if not kernel.seccomp_filter:
        hint = "use a kernel with CONFIG_SECCOMP_FILTER, or " + _CONTAINER
        return SandboxRefused(
            f"{name} has no seccomp filters, so system calls cannot be refused", hint=hint
        )
    return None
