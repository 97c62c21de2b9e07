"""A fault in data, as readers find it and imports report it."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning"]
"""``error`` = loading refuses unless told otherwise; ``warning`` = recorded, loading goes on."""


class DataFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault. ``check`` is its counted category. ``file`` names the file (or the array of a panel), ``row`` the
    line in it: for CSV the line of the file, the header being line 1; for Parquet the data row counted from 1;
    None when the fault is not on one line."""

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
