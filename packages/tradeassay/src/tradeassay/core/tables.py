"""Entries of tables, and counts with their nouns."""

from __future__ import annotations

import msgspec

from tradeassay.core.measure import Measure


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a table: a text, or a measure with its display format.

    ``small`` is a text below the entry. ``tone`` displays the entry as a chip. ``item`` is the key
    of the linked item. ``bar`` is a share drawn as a bar.
    """

    text: str = ""
    measure: Measure | None = None
    form: str = "share"
    small: str = ""
    tone: str = ""
    item: str = ""
    bar: bool = False


def counted(value: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 session``, ``2 sessions``."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"
