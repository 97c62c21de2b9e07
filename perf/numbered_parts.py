"""Numbered attempts in parts of any size: what was tried is kept and not tried again. For scripts beside this."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec


class Part(Protocol):
    """Attempts that follow each other."""

    @property
    def kind(self) -> str: ...

    @property
    def first(self) -> int: ...


P = TypeVar("P", bound=Part)


class Asked(argparse.Namespace):
    """Which attempts are wanted."""

    kinds: list[str]
    first: int
    count: int
    show: bool
    place: Path


def ask(about: str, kinds: Sequence[str], what: str, count: int, place: str) -> Asked:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--kinds", nargs="*", choices=tuple(kinds), default=list(kinds))
    parser.add_argument("--first", type=int, default=0, help=f"number of the first {what}")
    parser.add_argument("--count", type=int, default=count, help=f"{what}s per kind")
    parser.add_argument("--show", action="store_true", help="only print what was found so far")
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()) / place)
    asked = parser.parse_args(namespace=Asked())
    asked.place.mkdir(parents=True, exist_ok=True)
    return asked


def gather(
    asked: Asked,
    kind_of_part: type[P],
    together: int,
    open_kind: Callable[[str], Callable[[int, int], P]],
) -> Iterable[P]:
    """Return all parts, those that are kept and those tried now; ``open_kind`` gives what tries (first, count)."""
    kept = asked.place / "parts.jsonl"
    lines = kept.read_bytes().splitlines() if kept.exists() else []
    parts = [msgspec.json.decode(line, type=kind_of_part) for line in lines]
    done = {(one.kind, one.first) for one in parts}
    for kind in () if asked.show else asked.kinds:
        attempt = open_kind(kind)
        for first in range(asked.first, asked.first + asked.count, together):
            if (kind, first) in done:
                continue
            parts.append(attempt(first, min(together, asked.first + asked.count - first)))
            with kept.open("ab") as file:
                file.write(msgspec.json.encode(parts[-1]) + b"\n")
    return parts
