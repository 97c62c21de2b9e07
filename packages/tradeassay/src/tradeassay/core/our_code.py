"""Identify tradeassay's own modules.

They have a version, while code of agents and plug-ins is hashed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("tradeassay", "tradeassay_bench", "tradeassay_programs", "tradeassay_arena")
"""The import packages of this project."""


def is_ours(module: str) -> bool:
    """Return whether a module belongs to this project. ``module`` is its full name."""
    return module.partition(".")[0] in PACKAGES


def our_folders() -> tuple[str, ...]:
    """Return the folders of this project's installed packages."""
    found = []
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(str(Path(spec.origin).parent))
    return tuple(found)
