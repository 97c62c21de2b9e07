"""The prompts: versioned text files. A change of one word is a new version of the file and of the benchmark."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

VERSION = "v1"
NAMES: tuple[str, ...] = (
    "system.open-research",
    "system.fixed-candidate",
    "system.memory-only",
    "control",
    "user",
    "research",
    "submit",
    "feedback",
)
FILES: tuple[str, ...] = tuple(f"benchmarks/ktdfin/prompts/{name}.{VERSION}.txt" for name in NAMES)
"""Where the files are inside the package ``tradeassay``."""


@cache
def _template(name: str) -> Template:
    return Template((files(__name__) / f"{name}.{VERSION}.txt").read_text(encoding="utf-8"))


def prompt(name: str, **values: object) -> str:
    """Return a prompt with its blanks filled in; a blank without a value is an error."""
    return _template(name).substitute({key: str(value) for key, value in values.items()})
