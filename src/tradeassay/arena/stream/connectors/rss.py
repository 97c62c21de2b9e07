"""News from RSS 2.0 and Atom feeds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

import msgspec

from tradeassay.arena.stream.connectors.collecting import Fetch, fetch_url
from tradeassay.arena.stream.items import RawItem, clean, parse_stamp
from tradeassay.core.errors import DataError, SourceError
from tradeassay.core.time import Instant, iso

_ATOM = "{http://www.w3.org/2005/Atom}"
_DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.I)


class RssNews(msgspec.Struct, frozen=True, kw_only=True):
    """A feed about one asset. ``words``: an item must have one of them (none: all items count).

    ``zone`` is the zone of stamps that have none; without it such items are left out, because hours matter.
    """

    asset: str
    url: str
    source: str
    words: tuple[str, ...] = ()
    zone: str | None = None
    fetch: Fetch = fetch_url

    def read(self, now: Instant) -> tuple[RawItem, ...]:
        """Return the feed's items; raises :class:`SourceError` when it cannot be fetched or is not a feed."""
        body = self.fetch(self.url)
        # A document type can hold entities that grow without end; no feed needs one.
        if _DOCTYPE.search(body):
            raise SourceError(f"the feed {self.source} declares a document type")
        try:
            root = ElementTree.fromstring(body)  # entities are refused above
        except ElementTree.ParseError as error:
            raise SourceError(f"the feed {self.source} is not XML: {error}") from error
        return tuple(self._items(root, now))

    def _items(self, root: ElementTree.Element, now: Instant) -> Iterator[RawItem]:
        for entry in (*root.iter("item"), *root.iter(f"{_ATOM}entry")):
            title = clean(_text(entry, "title"))
            text = clean(_text(entry, "description") or _text(entry, "summary") or _text(entry, "content"))
            stamp = _text(entry, "pubDate") or _text(entry, "published") or _text(entry, "updated")
            if not title or (self.words and not any(_holds(f"{title} {text}", word) for word in self.words)):
                continue
            try:
                published = parse_stamp(stamp, self.zone)
            except DataError:
                continue  # nobody knows when it came out, so nobody may read it
            link = _link(entry)
            yield RawItem(
                id=_text(entry, "guid") or _text(entry, "id") or link or title,
                kind="news",
                asset=self.asset,
                source=self.source,
                url=link,
                published_at=iso(published),
                fetched_at=iso(now),
                title=title,
                text=text,
            )


def _holds(text: str, word: str) -> bool:
    """Return whether a text holds a name: as a whole word where words have ends, anywhere in Chinese."""
    if not word.isascii():
        return word in text
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", text, re.I) is not None


def _text(entry: ElementTree.Element, name: str) -> str:
    found = entry.find(name)
    if found is None:
        found = entry.find(_ATOM + name)
    return "" if found is None else "".join(found.itertext()).strip()


def _link(entry: ElementTree.Element) -> str:
    found = entry.find(f"{_ATOM}link")
    link = found.get("href", "") if found is not None else _text(entry, "link")
    return link if link.startswith(("https://", "http://")) else ""
