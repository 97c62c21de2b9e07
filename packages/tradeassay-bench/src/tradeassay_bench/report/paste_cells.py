"""Define tables for pasting into a paper. Every entry has its text and its number."""

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
    """One entry: its text for readers, and its number.

    If there is no number, ``reason`` states why.
    """

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


def bracketed(measure: Measure, form: str) -> str:
    """Return an interval in brackets, to follow its number; empty without an interval."""
    made = shown(measure, form, between="{low}, {high}").interval
    return f" [{made}]" if made else ""


def paste_cell(measure: Measure, form: str) -> PasteCell:
    """Return a measure as an entry, with its interval in brackets."""
    if measure.value is None:
        return PasteCell(numbers.NONE, reason=measure.reason)
    text = numbers.written(measure.value, form) + bracketed(measure, form)
    return PasteCell(text, measure.value, measure.low, measure.high)


NOT_RANKED = "not ranked: "
"""The start of the reason of an entry whose row is not ranked."""


class PasteTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """One leaderboard.

    ``columns`` contains the titles of the entries in a row. ``notes`` is printed below the table.
    ``verdicts`` contains the agent, the label and the sentence of each verdict. ``excess_returns``
    contains every agent's difference from the baseline.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[PasteCell, ...], ...]
    notes: tuple[str, ...]
    verdicts: tuple[tuple[str, str, str], ...] = ()
    excess_returns: tuple[tuple[str, PasteCell], ...] = ()

    @property
    def named(self) -> int:
        """Return the index of the entry with the row's name.

        It is the first entry, or the second if the first is a place or tier.
        """
        return 1 if self.columns[0] in ("#", "tier") else 0

    def unranked(self, row: Sequence[PasteCell]) -> str | None:
        """Return why a row is not ranked; None if it is ranked or is a baseline."""
        reason = row[0].reason
        return None if reason is None else reason.removeprefix(NOT_RANKED)
