"""News from RSS (0.9x, 1.0, 2.0) and Atom feeds as they are found: wrong dates, stray signs, old encodings."""

from __future__ import annotations

import html.entities
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import msgspec

from tradeassay.arena.stream.connectors.collecting import Fetch
from tradeassay.arena.stream.items import RawItem, clean, parse_stamp
from tradeassay.core.errors import DataError, SourceError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.time import Instant, iso

MOST = 100
"""How many items of a feed are looked at; the newest stand first."""

_SPACES = ("", "{http://www.w3.org/2005/Atom}", "{http://purl.org/rss/1.0/}", "{http://purl.org/dc/elements/1.1/}")
_DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.I)
_ENCODING = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"'][^>]*\?>")
_DECLARED = re.compile(r"^\s*<\?xml[^>]*\?>")
_AMPERSAND = re.compile(r"&(#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[A-Za-z][A-Za-z0-9]{0,31};)?")
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML = frozenset(("amp;", "lt;", "gt;", "quot;", "apos;"))
_LONGEST_ID = 200


class RssNews(msgspec.Struct, frozen=True, kw_only=True):
    """A feed about one asset. ``words``: an item must have one of them (none: all items count).

    ``zone`` is the zone of stamps that have none; without it such items are left out, because hours matter.
    """

    asset: str
    url: str
    source: str
    fetch: Fetch
    words: tuple[str, ...] = ()
    zone: str | None = None

    def read(self, now: Instant) -> tuple[RawItem, ...]:
        """Return the feed's items; raises :class:`SourceError` when it cannot be fetched or is not a feed."""
        body = self.fetch(self.url)
        # A document type can hold entities that grow without end; no feed needs one.
        if _DOCTYPE.search(body):
            raise SourceError(f"the feed {self.source} declares a document type")
        try:
            root = _tree(body)
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise SourceError(f"the feed {self.source} is not XML: {error}") from error
        if root.tag.rpartition("}")[2] not in ("rss", "feed", "RDF"):
            raise SourceError(f"what {self.source} sends is not a feed but a <{root.tag[:40]}>")
        return tuple(self._items(root, now))

    def _items(self, root: ElementTree.Element, now: Instant) -> Iterator[RawItem]:
        found = [one for space in _SPACES[:3] for name in ("item", "entry") for one in root.iter(space + name)]
        for entry in found[:MOST]:
            title = clean(_text(entry, "title"))
            text = clean(_text(entry, "description", "summary", "content"))
            if not title or (self.words and not any(_holds(f"{title} {text}", word) for word in self.words)):
                continue
            try:
                published = iso(parse_stamp(_text(entry, "pubDate", "published", "updated", "date"), self.zone))
            except (DataError, ValueError, OverflowError):
                continue  # nobody knows when it came out, so nobody may read it
            link = _link(entry)
            yield RawItem(
                id=_id(_text(entry, "guid", "id") or link or title),
                kind="news",
                asset=self.asset,
                source=self.source,
                url=link,
                published_at=published,
                fetched_at=iso(now),
                title=title,
                text=text,
            )


def _tree(body: bytes) -> ElementTree.Element:
    """Return a document's tree; one that is not well-formed gets its stray signs mended, and one more chance."""
    try:
        return ElementTree.fromstring(body)  # entities are refused by the caller
    except (ElementTree.ParseError, ValueError):
        told = _ENCODING.search(body[:400])
        text = body.decode("utf-8-sig" if told is None else told[1].decode(), errors="replace")
        text = _FORBIDDEN.sub("", _DECLARED.sub("", text))
        return ElementTree.fromstring(_AMPERSAND.sub(_mended, text))


def _mended(found: re.Match[str]) -> str:
    """Return what an ampersand in a feed must have meant: a character, or itself."""
    named = found[1]
    if named is None:
        return "&amp;"
    if named in _XML or named.startswith("#"):
        return found[0]
    character = html.entities.html5.get(named)
    return f"&amp;{named}" if character is None else "".join(f"&#{ord(one)};" for one in character)


def _id(text: str) -> str:
    return text if len(text) <= _LONGEST_ID else sha256_bytes(text.encode())


def _holds(text: str, word: str) -> bool:
    """Return whether a text holds a name: as a whole word where words have ends, anywhere in Chinese."""
    if not word.isascii():
        return word in text
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", text, re.I) is not None


def _text(entry: ElementTree.Element, *names: str) -> str:
    """Return the first of some elements that says something."""
    for name in names:
        for space in _SPACES:
            found = entry.find(space + name)
            if found is not None and (text := "".join(found.itertext()).strip()):
                return text
    return ""


def _link(entry: ElementTree.Element) -> str:
    given = [one for one in entry.iter(f"{_SPACES[1]}link") if one.get("rel", "alternate") == "alternate"]
    link = given[0].get("href", "") if given else _text(entry, "link")
    return link[:2000] if link.startswith(("https://", "http://")) else ""
