"""Tables to paste into a paper: every entry with its text, and the number behind it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.formatting import shown


def in_line(measure: Measure, form: str) -> str:
    made = shown(measure, form)
    return f"{made.text} ({made.interval})" if made.interval else made.text


class PasteCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry: its text for readers, and the number behind it where there is one; ``reason`` says why not."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


def bracketed(measure: Measure, form: str) -> str:
    """Return an interval in brackets, to stand behind its number; nothing where there is none."""
    made = shown(measure, form, between="{low}, {high}").interval
    return f" [{made}]" if made else ""


def paste_cell(measure: Measure, form: str) -> PasteCell:
    """Return a measure as an entry, its interval in brackets."""
    if measure.value is None:
        return PasteCell(numbers.NONE, reason=measure.reason)
    text = numbers.written(measure.value, form) + bracketed(measure, form)
    return PasteCell(text, measure.value, measure.low, measure.high)


NOT_RANKED = "not ranked: "
"""How the reason of an entry begins where its row has no place among the others."""


class PasteTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """One leaderboard. ``columns`` name the entries of every row; ``notes`` belong under the table.

    ``verdicts`` are agent, label and sentence; ``excess_returns`` every agent's difference from the baseline."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[PasteCell, ...], ...]
    notes: tuple[str, ...]
    verdicts: tuple[tuple[str, str, str], ...] = ()
    excess_returns: tuple[tuple[str, PasteCell], ...] = ()

    @property
    def named(self) -> int:
        """Which entry of a row says whose it is: the first, or the one after its place or tier."""
        return 1 if self.columns[0] in ("#", "tier") else 0

    def unranked(self, row: Sequence[PasteCell]) -> str | None:
        """Return why a row has no place among the others; None where it has one, or is a baseline."""
        reason = row[0].reason
        return None if reason is None else reason.removeprefix(NOT_RANKED)
