"""A fault in data, as found by readers and reported by imports."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning"]
"""``error``: loading stops unless allowed. ``warning``: recorded, and loading continues."""


class DataFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault in data.

    ``check`` is its category. ``file`` is the file (or the array of a panel). ``row`` is the line
    in it: for CSV the line of the file, with the header as line 1, and for Parquet the data row
    from 1. It is None if the fault is not on one line.
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
