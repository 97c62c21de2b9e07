"""With what a run was made, and which of it may change before a resume.

Policy: what computes numbers (tradeassay itself, numpy, Python's minor version, the processor family) must be the
same, because the same bytes cannot be promised otherwise. What only stores or shows them may change.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import msgspec

COMPUTING = ("tradeassay", "numpy")
BESIDE = ("msgspec", "polars", "pyarrow", "exchange-calendars", "ray")


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Package versions (only those installed), Python and the machine."""

    packages: dict[str, str]
    python: str
    platform: str
    machine: str


def present_versions() -> Versions:
    """Return the versions in use now."""
    return Versions(
        packages={name: found for name in (*COMPUTING, *BESIDE) if (found := _version(name)) is not None},
        python=platform.python_version(),
        platform=sys.platform,
        machine=platform.machine(),
    )


def version_changes(then: Versions, now: Versions) -> list[str]:
    """Return, in words, every change that forbids a resume."""
    changes = [
        f"{name} was {then.packages.get(name, 'not installed')}, is {now.packages.get(name, 'not installed')}"
        for name in COMPUTING
        if then.packages.get(name) != now.packages.get(name)
    ]
    if _minor(then.python) != _minor(now.python):
        changes.append(f"Python was {_minor(then.python)}, is {_minor(now.python)}")
    if then.machine != now.machine:
        changes.append(f"the machine was {then.machine}, is {now.machine}")
    return changes


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
