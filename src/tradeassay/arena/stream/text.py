"""Texts and time stamps made alike, wherever they come from."""

from __future__ import annotations

import html
import re
import unicodedata
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from tradeassay.core.errors import DataError
from tradeassay.core.time import Instant, instant

LONGEST = 20_000
"""Characters that are kept of one text."""

_BLOCK = re.compile(r"<(script|style)\b.*?</\1\s*>", re.I | re.S)
_BREAK = re.compile(r"<(?:br|/p|/div|/li|/h\d)\b[^>]*>", re.I)
_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>", re.S)
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_ALIKE = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2013\u2014\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad")),
    0x2026: "...",
}
"""Quotes, dashes and invisible characters; NFKC leaves them as they are."""

# In Chinese these end sentences; NFKC would leave 。 and fold the others, which loses nothing.
_SENTENCE = re.compile(
    r"(?<=[。!?;])(?=[\u3400-\u9fff\"'A-Z0-9])|(?<=[。])|(?<=[.!?])['\")]*\s+(?=[\"'(A-Z0-9])|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Inc|Corp|Co|Ltd|vs|No|St|Jr|Sr|Gen|U\.S|U\.K|e\.g|i\.e|[A-Z])|"
    r"\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec))\.$"
)


def clean(text: str) -> str:
    """Return a text in one spelling: entities and tags gone, NFKC, one kind of quote, dash and space.

    Full-width digits and signs become plain ones, so that a number is the same number in either.
    """
    if "<" in text:
        text = _TAG.sub(" ", _BREAK.sub("\n", _BLOCK.sub(" ", text)))
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_ALIKE)
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
    return _LINES.sub("\n", _SPACE.sub(" ", kept)).strip()[:LONGEST]


@lru_cache(maxsize=4096)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, English or Chinese, in order; an abbreviation's dot ends none."""
    found: list[str] = []
    for part in (p for p in _SENTENCE.split(text) if p and p.strip()):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {part.strip()}"
        else:
            found.append(part.strip())
    return tuple(found)


def parse_stamp(text: str, zone: str | None = None) -> Instant:
    """Read a time stamp as connectors meet them: ISO 8601, or the mail form of RSS (RFC 822).

    A stamp without a zone is taken in ``zone`` (an IANA name); raises :class:`DataError` when there is neither:
    a guess would be hours wrong, and hours decide whether an item was known.
    """
    text = text.strip()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            found = parsedate_to_datetime(text)
        except ValueError as error:
            raise DataError(f"'{text[:60]}' is no time stamp that can be read") from error
        if found.tzinfo is None and text.endswith("-0000"):  # RFC 5322: UTC, of unknown origin
            return instant(found.replace(tzinfo=ZoneInfo("UTC")))
    if found.tzinfo is None:
        if zone is None:
            raise DataError(f"time stamp '{text}' has no time zone", mend="tell the connector the source's zone")
        found = found.replace(tzinfo=ZoneInfo(zone))
    return instant(found)
