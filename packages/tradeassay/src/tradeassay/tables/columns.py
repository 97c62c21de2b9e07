"""Titles of columns in several kinds of tables and several languages."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import chain

import msgspec

TITLES = msgspec.json.decode(
    (files(__package__) / "titles.json").read_bytes(), type=dict[str, dict[str, tuple[str, ...]]]
)
"""Titles of columns in several kinds of tables and languages, the most certain first."""
DATE_TITLES = TITLES["account"]["dates"]
"""Plain titles of an account's date column."""
_ALL_TITLES = {title for roles in TITLES.values() for title in chain(*roles.values())}
FOREIGN_TITLES = frozenset(title for title in _ALL_TITLES if not title.isascii())
"""Titles that reveal the encoding of their file."""


def plain_title(title: str) -> str:
    """Return a title in small letters with single blanks.

    Return an empty text for a generated title.
    """
    words = re.sub(r"[_\-]+", " ", title.strip().strip("\ufeff").lower())
    return "" if re.match(r"unnamed|column\d+$", words) else re.sub(r"\s+", " ", words)


def bare_title(title: str) -> str:
    """Return a plain title without its unit: ``Return (%)`` becomes ``return``."""
    return re.sub(r"\(.*?\)|\[.*?\]|[%,]|\b(bps|pct|percent)\b", "", plain_title(title)).strip()
