"""Which modules are tradeassay's own: they have a version, while an agent's or a plug-in's code is hashed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("tradeassay", "tradeassay_bench", "tradeassay_programs", "tradeassay_arena")
"""The import packages of this project."""


def is_ours(module: str) -> bool:
    """Return whether a module, by its full name, belongs to this project."""
    return module.partition(".")[0] in PACKAGES


def our_folders() -> tuple[str, ...]:
    """Return the folders of the project's packages that are installed here."""
    found = []
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(str(Path(spec.origin).parent))
    return tuple(found)
