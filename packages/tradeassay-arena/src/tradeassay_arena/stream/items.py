"""Items of the stream: the raw item from a connector, and the recorded item.

Texts and time stamps are normalised. The language is derived from the script.
"""

from __future__ import annotations

import html
import re
import unicodedata
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from tradeassay.core.errors import DataError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_bench.core.time import Instant, instant

Kind = Literal["news", "filing", "price"]
Status = Literal["published", "merged"]
Language = Literal["en", "zh", "other"]


class RawItem(msgspec.Struct, frozen=True, kw_only=True):
    """A cleaned text from a connector. Times are ISO 8601 in UTC.

    ``id`` is the connector's id of the item. ``fetched_at`` is the time at which the stream first
    had the item. In a replay it is the replayed instant at which the stored data was read.
    """

    id: str
    kind: Kind
    asset: str
    source: str
    url: str
    published_at: str
    fetched_at: str
    title: str
    text: str

    @property
    def words(self) -> str:
        """Title and text together, the input of a summary."""
        return f"{self.title}\n{self.text}" if self.text else self.title


class ItemCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A checker's verdict on an item. It is recorded and hides nothing.

    ``issues`` contains the checker's objection, or the reason for a missing verdict.
    """

    name: Literal["model"]
    ok: bool
    issues: tuple[str, ...] = ()


class StreamItem(RawItem, frozen=True, kw_only=True):
    """A recorded item with its provenance. Items are never deleted.

    ``id`` is the record's id, ``raw_id`` the connector's. An item with the ``status`` ``published``
    may reach agents. A ``merged`` item repeats ``merged_into`` and adds a source to it. ``reason``
    is a note on the item. ``summary_by`` is ``extractive``, ``as it is`` (prices and filings) or a
    model's name.
    """

    season: str
    session: str
    raw_id: str
    content_sha256: str
    language: Language
    status: Status
    reason: str = ""
    merged_into: str | None = None
    shown_title: str = ""
    shown_text: str = ""
    summary_by: str = ""
    checks: tuple[ItemCheck, ...] = ()


def content_hash(raw: RawItem) -> str:
    return sha256_bytes(f"{raw.title}\n{raw.text}".encode())


LONGEST = 20_000  # the most characters stored of one text

_BLOCK = re.compile(r"<(script|style)\b.*?</\1\s*>", re.I | re.S)
_BREAK = re.compile(r"<(?:br|/p|/div|/li|/h\d)\b[^>]*>", re.I)
_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>", re.S)
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_ALIKE = str.maketrans(
    "\u2018\u2019\u201b\u201c\u201d\u201e\u2010\u2011\u2013\u2014\u2212",
    "'''\"\"\"-----",
    "\u200b\u200c\u200d\u2060\ufeff\u00ad",
) | {0x2026: "..."}
"""Quotes, dashes and invisible characters, which NFKC does not change."""

# These end sentences in Chinese. NFKC keeps 。 and folds the others, which loses nothing.
_SENTENCE = re.compile(
    r"(?<=[。!?;])(?=[\u3400-\u9fff\"'A-Z0-9])|(?<=[。])|(?<=[.!?])['\")]*\s+(?=[\"'(A-Z0-9])|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Inc|Corp|Co|Ltd|vs|No|St|Jr|Sr|Gen|U\.S|U\.K|e\.g|i\.e|[A-Z])|"
    r"\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec))\.$"
)


def clean(text: str) -> str:
    """Return a text in one spelling.

    Entities and tags are removed. The text is in NFKC, with one kind of quotation mark, dash and
    space. Full-width digits and signs become ASCII, so that numbers can be compared.
    """
    if "<" in text:
        text = _TAG.sub(" ", _BREAK.sub("\n", _BLOCK.sub(" ", text)))
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_ALIKE)
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
    return _LINES.sub("\n", _SPACE.sub(" ", kept)).strip()[:LONGEST]


@lru_cache(maxsize=4096)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of an English or Chinese text in order.

    The dot of an abbreviation does not end a sentence.
    """
    found: list[str] = []
    for part in (p for p in _SENTENCE.split(text) if p and p.strip()):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {part.strip()}"
        else:
            found.append(part.strip())
    return tuple(found)


def parse_stamp(text: str, zone: str | None = None) -> Instant:
    """Parse a time stamp in ISO 8601 or in the mail form of RSS (RFC 822).

    A stamp without a zone is read in ``zone`` (an IANA name). If both are missing, raises
    :class:`DataError`: a guess could be hours wrong, and hours decide whether an item was known.
    """
    text = text.strip()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            found = parsedate_to_datetime(text)
        except ValueError as error:
            raise DataError(f"'{text[:60]}' is not a time stamp that can be read") from error
        if text.endswith("-0000"):  # RFC 5322: UTC of unknown origin
            zone = "UTC"
    if found.tzinfo is None:
        if zone is None:
            raise DataError(
                f"time stamp '{text}' has no time zone", hint="set the zone of the source"
            )
        found = found.replace(tzinfo=ZoneInfo(zone))
    return instant(found)


_HAN = re.compile(r"[\u3400-\u9fff]")
_KANA_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LATIN_WORD = re.compile(r"[a-zA-ZÀ-ɏ']+")
_OTHER_LETTER = re.compile(r"[^\W\d_a-zA-ZÀ-ɏ\u3400-\u9fff]")


@lru_cache(maxsize=4096)
def detect(text: str) -> Language:
    """Return the language of a text by its script: Chinese characters, Latin letters (``en``), or
    ``other``.

    A name or two in another script does not change the language. Any language in Latin letters is
    treated as English.
    """
    han, kana = len(_HAN.findall(text)), len(_KANA_HANGUL.findall(text))
    words = _LATIN_WORD.findall(text)
    strange = len(_OTHER_LETTER.findall(text)) - kana
    if kana > 0.1 * (han + kana):
        return "other"
    # A Chinese character carries about as much as half an English word.
    if han / 2 > len(words) and han > strange:
        return "zh"
    if strange > sum(map(len, words)) or not words:
        return "zh" if han else "other"
    return "en"
