"""Check the sandbox of this machine for ``tradeassay doctor``."""

from __future__ import annotations

from collections.abc import Iterator

from tradeassay.core.machine import MachineFinding
from tradeassay_programs.sandbox.namespaces import why_not_leave
from tradeassay_programs.sandbox.tier import ask_kernel, refusal


def check_level() -> Iterator[MachineFinding]:
    """Yield the isolation level of untrusted programs on this machine. No program is run."""
    kernel = ask_kernel()
    refused = refusal(kernel)
    if refused is not None:
        yield MachineFinding("sandbox", "absent", str(refused))
        return
    mechanisms = f"Landlock {kernel.landlock_abi}, seccomp"
    forbidden = why_not_leave()
    if forbidden is None:
        yield MachineFinding("sandbox", "ok", f"strong: {mechanisms} and namespaces")
    else:
        text = f"standard: {mechanisms}; no namespaces ({forbidden})"
        yield MachineFinding("sandbox", "ok", text)
