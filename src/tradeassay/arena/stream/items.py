"""What flows through the stream: a raw item as a connector found it, and what became of it.

Texts and time stamps get one form wherever they come from. The language (English, Chinese, or neither) is told
from scripts first and small words second, without a model or a table."""

from __future__ import annotations

import html
import re
import tomllib
import unicodedata
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

import msgspec

from tradeassay.core.errors import DataError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.time import Instant, instant


@lru_cache(maxsize=1)
def vocabulary() -> dict[str, Any]:
    """Return the words that have a meaning for the stream: those of languages, and those that the checks know."""
    return tomllib.loads((files(__package__) / "vocabulary.toml").read_text(encoding="utf-8"))


Kind = Literal["news", "filing", "price"]
Status = Literal["published", "merged", "rejected"]
Language = Literal["en", "zh", "other"]
CheckName = Literal["numbers", "dates", "names", "neutrality", "language", "model"]

CHECKS: tuple[CheckName, ...] = get_args(CheckName)
"""The five checks by rules, and the one by a model where a season asks for it."""


class RawItem(msgspec.Struct, frozen=True, kw_only=True):
    """A text as a connector delivered it, cleaned. Times are ISO 8601 in UTC.

    ``id`` is the connector's own name for it. ``fetched_at`` is when the stream first had it; in a replay that is
    the replayed instant at which the stored data was read."""

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
        """Title and text together: what a summary may draw on."""
        return f"{self.title}\n{self.text}" if self.text else self.title


class ItemCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check; ``issues`` say what was found, in order of the text."""

    name: CheckName
    ok: bool
    issues: tuple[str, ...] = ()


class StreamItem(RawItem, frozen=True, kw_only=True):
    """An item on record, with its provenance. Nothing is ever deleted.

    ``id`` is the record's own, ``raw_id`` the connector's. ``status``: ``published`` items may reach agents; a
    ``merged`` one repeats ``merged_into`` and adds a source to it; a ``rejected`` one is kept with its ``reason``.
    ``contradicts`` names earlier items that say otherwise. ``summary_by`` is ``extractive``, ``as it is`` (prices
    and filings) or a model's name."""

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
    contradicts: tuple[str, ...] = ()


def content_hash(raw: RawItem) -> str:
    return sha256_bytes(f"{raw.title}\n{raw.text}".encode())


LONGEST = 20_000  # characters that are kept of one text

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

    Full-width digits and signs become plain ones, so that a number is the same number in either."""
    if "<" in text:
        text = _TAG.sub(" ", _BREAK.sub("\n", _BLOCK.sub(" ", text)))
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_ALIKE)
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
    return _LINES.sub("\n", _SPACE.sub(" ", kept)).strip()[:LONGEST]


@lru_cache(maxsize=4096)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, English or Chinese, in order; an abbreviation's dot does not end one."""
    found: list[str] = []
    for part in (p for p in _SENTENCE.split(text) if p and p.strip()):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {part.strip()}"
        else:
            found.append(part.strip())
    return tuple(found)


def parse_stamp(text: str, zone: str | None = None) -> Instant:
    """Read a time stamp in the forms connectors meet: ISO 8601, or the mail form of RSS (RFC 822).

    A stamp without a zone is taken in ``zone`` (an IANA name); raises :class:`DataError` when there is neither:
    a guess would be hours wrong, and hours decide whether an item was known."""
    text = text.strip()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            found = parsedate_to_datetime(text)
        except ValueError as error:
            raise DataError(f"'{text[:60]}' is not a time stamp that can be read") from error
        if text.endswith("-0000"):  # RFC 5322: UTC, of unknown origin
            zone = "UTC"
    if found.tzinfo is None:
        if zone is None:
            raise DataError(f"time stamp '{text}' has no time zone", hint="tell the connector the source's zone")
        found = found.replace(tzinfo=ZoneInfo(zone))
    return instant(found)


HAN = re.compile(r"[\u3400-\u9fff]")
_KANA_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[a-zA-ZÀ-ɏ']+")
_OTHER_LETTER = re.compile(r"[^\W\d_a-zA-ZÀ-ɏ\u3400-\u9fff]")
_SMALL = {language: frozenset(words.split()) for language, words in vocabulary()["languages"].items()}


@lru_cache(maxsize=4096)
def detect(text: str) -> Language:
    """Return ``en``, ``zh`` or ``other``. A name or two in the other script does not change a text's language."""
    han, kana = len(HAN.findall(text)), len(_KANA_HANGUL.findall(text))
    words = _WORD.findall(text.lower())
    strange = len(_OTHER_LETTER.findall(text)) - kana
    if kana > 0.1 * (han + kana):
        return "other"
    # A Chinese character says about as much as half an English word.
    if han / 2 > len(words) and han > strange:
        return "zh"
    if strange > sum(map(len, words)) or not words:
        return "zh" if han else "other"
    counts = {name: sum(word in known for word in words) for name, known in _SMALL.items()}
    foreign = max(count for name, count in counts.items() if name != "en")
    # Languages share small words ("met", "in", "die"): one more of them decides nothing.
    if foreign >= counts["en"] + 2:
        return "other"
    return "en" if counts["en"] or all(word.isascii() for word in words) else "other"
