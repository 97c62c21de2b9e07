"""How a folder of price files is to be read, and what was understood of it."""

from __future__ import annotations

from math import inf
from typing import Literal

import msgspec

from tradeassay.core.arguments import check_fields
from tradeassay.core.errors import UserError
from tradeassay.core.view import Adjustment, Frequency
from tradeassay.data.source import CalendarName, SourceConfig
from tradeassay.data.tables.columns import ColumnMap

InstrumentKind = Literal["stock", "index", "crypto", "future"]


class FilesConfig(SourceConfig, frozen=True, kw_only=True):
    """A folder (or one file) with OHLCV data. None means "guess, and show the guess".

    ``columns`` maps roles to column names, ``header`` names all columns of files that have no header line.
    ``beside`` is another folder with side files (memberships and the like). ``timezone`` says where time stamps
    without a zone were taken; ``stamps`` whether an intraday stamp is the start or the end of its bar.
    ``prices="adjusted"`` scales bars by ``adj close / close``. ``volume_unit`` multiplies volumes (100 where a
    vendor counts lots), ``amount_unit`` amounts (1000 where it counts thousands); where neither is given, amounts
    that fit only another unit are a fault. A name whose bars end more than ``delist_after`` sessions before the
    panel does counts as delisted after its last bar (None = never). ``drop`` names rows that may be left out:
    ``bad-actions``, ``undated``, ``bad-figures``."""

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
                    f"{name} cannot be {unit!r}", hint="give a positive number, e.g. 100 for lots of 100"
                )


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was understood, for a person to check. ``str()`` gives one line per fact."""

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
            f"files      {self.files}, {self.rows} rows, {self.symbols} symbols, {self.first} to {self.last}",
            *(f"columns    {files}: {columns}" for files, columns in self.columns.items()),
            f"dates      {self.dates}",
            f"frequency  {self.frequency}",
            f"calendar   {self.calendar} ({self.timezone})",
        ]
        if self.side_files:
            lines.append(f"also read  {', '.join(self.side_files)}")
        return "\n".join([*lines, *(f"note       {note}" for note in self.notes)])
