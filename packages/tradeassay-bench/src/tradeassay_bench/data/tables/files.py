"""Configure an import of price files, and report how they were read."""

from __future__ import annotations

from math import inf
from typing import Literal

import msgspec

from tradeassay.core.arguments import check_fields
from tradeassay.core.errors import UserError
from tradeassay_bench.core.view import Adjustment, Frequency
from tradeassay_bench.data.source import CalendarName, SourceConfig
from tradeassay_bench.data.tables.columns import ColumnMap

InstrumentKind = Literal["stock", "index", "crypto", "future"]


class FilesConfig(SourceConfig, frozen=True, kw_only=True):
    """The configuration of an import. Options that are None are guessed, and the guess is reported.

    - ``path``: a folder, or a single file, with OHLCV bars.
    - ``beside``: another folder with side files, such as memberships.
    - ``columns``: column names by role.
    - ``header``: the names of all columns, for files without a header line.
    - ``timezone``: the zone of timestamps that have no zone.
    - ``stamps``: whether an intraday timestamp is the start or the end of its bar.
    - ``prices``: ``"adjusted"`` scales bars by ``adj close / close``.
    - ``volume_unit``: a factor for volumes, for example 100 if the vendor counts lots.
    - ``amount_unit``: a factor for amounts, for example 1000 if the vendor counts thousands. If
      neither factor is given, amounts that match only a different unit are a fault.
    - ``delist_after``: an instrument is delisted after its last bar if its bars end more than this
      many sessions before the data. None: never.
    - ``drop``: kinds of faulty rows to skip: ``bad-actions``, ``undated``, ``bad-figures``.
    """

    path: str
    name: str | None = None
    beside: str | None = None
    columns: dict[str, str] = {}  # noqa: RUF012 - msgspec copies the default of every struct
    header: tuple[str, ...] = ()
    calendar: CalendarName | None = None
    timezone: str | None = None
    frequency: Frequency | None = None
    stamps: Literal["start", "end"] | None = None
    kind: InstrumentKind | None = None
    currency: str | None = None
    adjusted: Adjustment = "none"
    prices: Literal["as_is", "adjusted"] = "as_is"
    volume_unit: float | None = None
    amount_unit: float | None = None
    delist_after: int | None = 20
    biases: tuple[str, ...] = ()
    licence: str = ""
    allow_faults: bool = False
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("volume_unit", "amount_unit"):
            unit = getattr(self, name)
            if unit is not None and not 0.0 < unit < inf:
                raise UserError(
                    f"{name} must be a positive number, got {unit!r}",
                    hint="for example 100 for lots of 100",
                )


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report on how an import read its files. ``str()`` returns one line per fact."""

    files: int
    rows: int
    symbols: int
    first: str
    last: str
    columns: dict[str, ColumnMap]
    dates: str
    frequency: str
    calendar: str
    timezone: str
    side_files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"files      {self.files}, {self.rows} rows, {self.symbols} symbols, {self.first} to "
            f"{self.last}",
            *(f"columns    {files}: {columns}" for files, columns in self.columns.items()),
            f"dates      {self.dates}",
            f"frequency  {self.frequency}",
            f"calendar   {self.calendar} ({self.timezone})",
        ]
        if self.side_files:
            lines.append(f"also read  {', '.join(self.side_files)}")
        return "\n".join([*lines, *(f"note       {note}" for note in self.notes)])
