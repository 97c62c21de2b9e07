"""One measure as the page shows it."""

from __future__ import annotations

import msgspec

from tradeassay.report.interval_bar import IntervalBar


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measure, written out. ``sort`` orders a column (None last), ``note`` explains a missing number."""

    id: str
    title: str
    defined: str
    text: str
    interval: str
    sort: float | None
    note: str
    bar: IntervalBar | None = None
    spread: str = ""
