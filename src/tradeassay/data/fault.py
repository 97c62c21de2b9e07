"""One thing that is wrong with the data, described so that a person can go and look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

Severity = Literal["error", "warning"]
"""``error`` = loading refuses unless told otherwise; ``warning`` = recorded, loading goes on."""

LISTED_FAULTS = 1000
"""How many faults a manifest lists one by one; the counts are always complete."""


class DataFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault. ``check`` is its counted category.

    ``file`` names the file (or the array of a panel), ``row`` the line in it: for CSV the line of the file,
    the header being line 1; for Parquet the data row counted from 1; None when the fault is not on one line.
    """

    check: str
    file: str
    row: int | None
    reason: str
    severity: Severity = "error"
    symbol: str = ""
    session: str = ""

    def __str__(self) -> str:
        where = self.file if self.row is None else f"{self.file}:{self.row}"
        return f"{where}: {self.reason}"


class AcceptedFaults(msgspec.Struct, frozen=True, kw_only=True):
    """Faults that the user chose to live with: counts by check, and the first few one by one."""

    counts: dict[str, int]
    listed: tuple[DataFault, ...]

    def __bool__(self) -> bool:
        return bool(self.counts)


def accept(faults: Iterable[DataFault]) -> AcceptedFaults:
    every = tuple(faults)
    counts = Counter(fault.check for fault in every)
    return AcceptedFaults(counts=dict(sorted(counts.items())), listed=every[:LISTED_FAULTS])


def grouped(faults: Iterable[DataFault], *, limit: int | None = 3) -> list[str]:
    """Return faults by severity and check, each with its count, its files and the first few (None: all)."""
    groups: dict[tuple[str, str], list[DataFault]] = {}
    for fault in faults:
        groups.setdefault((fault.severity, fault.check), []).append(fault)
    lines = []
    for (severity, check), found in groups.items():
        files = len({fault.file for fault in found})
        rows = f"{len(found):,} {'row' if len(found) == 1 else 'rows'}"
        lines.append(f"{severity}: {check}: {rows} in {files:,} {'file' if files == 1 else 'files'}")
        shown = found if limit is None else found[:limit]
        lines += [f"  {fault}" for fault in shown]
        if len(shown) < len(found):
            lines.append(f"  and {len(found) - len(shown):,} more (--all shows them)")
    return lines


def told_once(faults: Iterable[DataFault]) -> list[str]:
    groups: dict[tuple[str, str], list[DataFault]] = {}
    for fault in faults:
        groups.setdefault((fault.check, fault.file), []).append(fault)
    return [
        f"{check}: {len(found):,} {'row' if len(found) == 1 else 'rows'} of {file}, e.g. {found[0]}"
        for (check, file), found in groups.items()
    ]


DROPS = {"bad-actions": "bad action", "undated": "undated record", "bad-figures": "bad figure"}
"""Rows that an import leaves out when it is told to by name, and the check that finds them."""


def describe(faults: Iterable[DataFault], *, limit: int = 3) -> str:
    """Return one line: how many faults of which kind, and the first few in full."""
    every = tuple(faults)
    counts = Counter(fault.check for fault in every)
    kinds = ", ".join(f"{count} {check}" for check, count in counts.most_common())
    shown = "; ".join(str(fault) for fault in every[:limit])
    more = f"; and {len(every) - limit} more" if len(every) > limit else ""
    return f"{kinds}: {shown}{more}"
