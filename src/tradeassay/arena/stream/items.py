"""What flows through the stream: a raw item as a connector found it, and what became of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.hashing import sha256_bytes

Kind = Literal["news", "filing", "price"]
Status = Literal["published", "merged", "rejected"]
Language = Literal["en", "zh", "other"]
CheckName = Literal["numbers", "dates", "names", "neutrality", "language"]

CHECKS: tuple[CheckName, ...] = ("numbers", "dates", "names", "neutrality", "language")


class RawItem(msgspec.Struct, frozen=True, kw_only=True):
    """A text as a connector delivered it, cleaned. Times are ISO 8601 in UTC.

    ``id`` is the connector's own name for it. ``fetched_at`` is when the stream first had it; in a replay that is
    the replayed instant at which the stored data was read.
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
    def content_sha256(self) -> str:
        """The hash of title and text."""
        return sha256_bytes(f"{self.title}\n{self.text}".encode())

    @property
    def words(self) -> str:
        """Title and text together: what a summary may draw on."""
        return f"{self.title}\n{self.text}" if self.text else self.title


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check; ``issues`` say what was found, in order of the text."""

    name: CheckName
    ok: bool
    issues: tuple[str, ...] = ()


class StreamItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item on record, with its provenance. Nothing is ever deleted.

    ``status``: ``published`` items may reach agents; a ``merged`` one repeats ``merged_into`` and adds a source to
    it; a ``rejected`` one is kept with its ``reason``. ``contradicts`` names earlier items that say otherwise.
    ``summary_by`` is ``extractive``, ``as it is`` (prices and filings) or a model's name.
    """

    id: str
    season: str
    asset: str
    session: str
    kind: Kind
    raw_id: str
    source: str
    url: str
    published_at: str
    fetched_at: str
    content_sha256: str
    language: Language
    title: str
    text: str
    status: Status
    reason: str = ""
    merged_into: str | None = None
    shown_title: str = ""
    shown_text: str = ""
    summary_by: str = ""
    checks: tuple[Check, ...] = ()
    contradicts: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Title and text of the source."""
        return f"{self.title}\n{self.text}" if self.text else self.title


def item_id(season: str, asset: str, raw: RawItem) -> str:
    """Return the id under which an item is on record: the same item, the same id, in every process."""
    named = f"{season}\n{asset}\n{raw.kind}\n{raw.source}\n{raw.id}\n{raw.content_sha256}"
    return sha256_bytes(named.encode())[:20]
