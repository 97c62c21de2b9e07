"""Fetch news feeds and lists of filings as they appear, for the decisions of live seasons."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice, zip_longest
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec

from tradeassay.core.errors import UNDECODABLE, DataError, UserError, require
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.secrets import clean_foreign, remember_address, scrub, without_secrets
from tradeassay_arena.season import Season
from tradeassay_arena.state.store import Store
from tradeassay_arena.stream.items import RawItem, clean, parse_stamp
from tradeassay_arena.stream.record import StreamStore
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import SECOND, Clock, iso, retry_after_seconds
from tradeassay_bench.data.connectors import common

LARGEST, SECONDS = 8 * 1024 * 1024, 20.0
FORMS = ("10-K", "10-Q", "8-K", "20-F", "6-K")
_IF_CHANGED = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
_DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.I)
_COLUMNS = (
    "accessionNumber acceptanceDateTime reportDate form primaryDocument primaryDocDescription"
).split()


class WebReader:
    """Fetches documents. ``agent`` names the reader. Some servers (EDGAR) require a mail address in
    it.

    A document that was read before is requested with its ETag and date, so most requests cost the
    server nothing. A host that answers 429, or 503 with Retry-After, is not queried again before
    that time.
    """

    def __init__(self, clock: Clock, agent: str = "tradeassay") -> None:
        self._agent = agent
        # One retry for a broken connection. The next visit is minutes away.
        policy = common.RetryPolicy(attempts=2, timeout=SECONDS, first_wait=0.5, longest_wait=1.0)
        self._runtime = common.Runtime(clock=clock, retry=policy)
        # By address: the document, and the headers of a conditional request.
        self._kept: dict[str, tuple[bytes, dict[str, str]]] = {}
        self._closed: dict[str, float] = {}

    def __call__(self, url: str) -> bytes:
        """Return a document of at most 8 MiB. Raises :class:`SourceError` for an incomplete or
        failed answer.
        """
        remember_address(url)
        host = _web_host(url)
        if host is None:
            raise SourceError(
                f"'{url[:80]}' is not a web address", hint="give one that begins with https://"
            )
        now = self._runtime.clock.now() / SECOND
        # A clock that was set back must not extend the pause beyond the longest allowed pause.
        if 0 < (rest := self._closed.get(host, now) - now) <= common.LONGEST_REST_S:
            raise SourceError(f"{host} asked not to be visited for another {rest:.0f} s")
        shown = without_secrets(url)[:80]
        try:
            self._kept[url] = common.ask_with_retries(
                lambda: self._ask(url, shown), vendor=host, what=shown, runtime=self._runtime
            )
        except common.VendorResting as error:
            self._closed[host] = self._runtime.clock.now() / SECOND + error.seconds
            raise
        return self._kept[url][0]

    def _ask(self, url: str, shown: str) -> tuple[bytes, dict[str, str]]:
        known = self._kept.get(url, (b"", {}))
        headers = {"User-Agent": self._agent, **known[1]}
        end, body = time.monotonic() + SECONDS, bytearray()
        try:
            with (
                httpx.Client(timeout=SECONDS, follow_redirects=True, max_redirects=5) as client,
                client.stream("GET", url, headers=headers) as answer,
            ):
                if answer.status_code == 304 and known[1]:
                    return known
                told = answer.headers.get("retry-after")
                if answer.status_code == 429 or (answer.status_code == 503 and told is not None):
                    wanted = retry_after_seconds(told, self._runtime.clock)
                    rest = max(600.0 if wanted is None else wanted, 60.0)
                    raise common.Throttled(
                        f"HTTP {answer.status_code} {answer.reason_phrase}", rest
                    )
                if answer.status_code != 200:
                    raise SourceError(
                        f"{shown} answers {answer.status_code} {answer.reason_phrase}"
                    )
                for piece in answer.iter_bytes():
                    body += piece
                    if len(body) > LARGEST:
                        raise SourceError(f"{shown} is larger than {LARGEST} bytes")
                    if time.monotonic() > end:
                        raise SourceError(f"{shown} takes longer than {SECONDS:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            scrub(error)
            reason = f"cannot be read: {str(error) or type(error).__name__}"
            if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
                raise common.Unanswered(reason) from error
            raise SourceError(f"{shown} {reason}") from error
        if_changed = {
            ask: answer.headers[name] for name, ask in _IF_CHANGED.items() if name in answer.headers
        }
        return clean_foreign(bytes(body)), if_changed


def _web_host(url: str) -> str | None:
    """Return the host of a web address, or None for anything else."""
    parts = urlsplit(url)
    return parts.hostname if parts.scheme in ("http", "https") else None


def feed_items(
    body: bytes,
    fetched_at: str,
    *,
    source: str,
    words: Mapping[str, Sequence[str]],
    zone: str | None = None,
) -> list[RawItem]:
    """Return the items of an RSS or Atom feed. Raises :class:`SourceError` for any other document.

    An item belongs to an asset if it contains one of the asset's ``words``. Words in Latin script
    must match as whole words. ``zone`` is the time zone of stamps without a zone. If it is None,
    such items are left out, because a few hours decide whether an item was known.
    """
    # A document type can define entities that expand without end. No feed needs one.
    if _DOCTYPE.search(body):
        raise SourceError(f"the feed {source} declares a document type")
    feedparser: Any = require("feedparser", "arena")
    feed = feedparser.parse(body, sanitize_html=False, resolve_relative_uris=False)
    if not feed.get("version"):
        raise SourceError(f"what {source} sends is not a feed")
    named = {}
    for asset, names in words.items():
        whole = "|".join(re.escape(name) for name in names if name.isascii())
        parts = [re.escape(name) for name in names if not name.isascii()]
        parts += [rf"(?<![A-Za-z0-9])(?i:{whole})(?![A-Za-z0-9])"] if whole else []
        named[asset] = re.compile("|".join(parts))
    found = []
    for entry in feed.entries[:100]:  # The newest items come first.
        title, link = clean(entry.get("title", "")), entry.get("link", "")
        text = clean(
            entry.get("summary", "") or "".join(part.value for part in entry.get("content", ()))
        )
        if not title:
            continue
        try:
            stamp = dict.get(entry, "published") or dict.get(entry, "updated") or ""
            told = {"published_at": iso(parse_stamp(stamp, zone)), "title": title, "text": text}
        except (DataError, ValueError, OverflowError):
            continue  # An item without a known time cannot be used.
        link = link[:2000] if link.startswith(("https://", "http://")) else ""
        id = entry.get("id") or link or title
        id = id if len(id) <= 200 else sha256_bytes(id.encode())
        item = partial(
            RawItem, id=id, kind="news", source=source, url=link, fetched_at=fetched_at, **told
        )
        found += [
            item(asset=asset) for asset, name in named.items() if name.search(f"{title} {text}")
        ]
    return found


class _Company(msgspec.Struct, frozen=True):
    name: str
    filings: dict[str, Any]


def filings(body: bytes, fetched_at: str, *, asset: str, cik: int) -> list[RawItem]:
    """Return a company's newest filings from EDGAR's list. ``cik`` is the company's EDGAR number.

    Raises :class:`SourceError` for a list that cannot be read.
    """
    try:
        company = msgspec.json.decode(body, type=_Company)
        recent = msgspec.convert(company.filings.get("recent", {}), dict[str, list[Any]])
    except UNDECODABLE as error:
        raise SourceError(f"the list of filings of CIK {cik} cannot be read: {error}") from error
    found = []
    rows = zip_longest(*(recent.get(column, ()) for column in _COLUMNS))
    for row in islice(rows, 40):  # The newest filings come first.
        number, accepted, period, form, document, about = (str(cell or "") for cell in row)
        if form not in FORMS or not number:
            continue
        try:
            stamps = {"published_at": iso(parse_stamp(accepted)), "fetched_at": fetched_at}
        except DataError:
            continue
        folder = f"https://www.sec.gov/Archives/edgar/data/{cik}/{number.replace('-', '')}"
        url = f"{folder}/{clean(document)}"
        told = f"{clean(company.name)} filed form {form}" + (
            f" for the period to {period}" if period else ""
        )
        said = {"title": f"Form {form}", "text": f"{told}. {clean(about)}".strip()}
        named = {"id": number[:100], "asset": asset, "source": "SEC EDGAR", "url": url}
        found.append(RawItem(kind="filing", **named, **stamps, **said))
    return found


class Connector(NamedTuple):
    """A live source.

    ``fetch`` returns its document or raises :class:`SourceError`. ``items`` parses the document.
    """

    url: str
    fetch: Callable[[str], bytes]
    items: Callable[[bytes, str], list[RawItem]]

    @property
    def address(self) -> str:
        """The source's name in messages: its address without parts that may contain a key."""
        return without_secrets(self.url.partition("?")[0])[:80]

    def read(self, clock: Clock) -> list[RawItem]:
        body = self.fetch(self.url)
        return self.items(
            body, iso(clock.now())
        )  # its fetch time at the earliest, so no item looks older than its first appearance here


async def collect(
    store: Store, season: Season, connectors: Sequence[Connector], clock: Clock
) -> dict[str, str]:
    """Read every source once, and return the errors of failed sources by address.

    A failed source does not stop the other sources.
    """
    failed: dict[str, str] = {}
    for connector in connectors:
        try:
            found = await asyncio.to_thread(connector.read, clock)
        except SourceError as error:
            failed[connector.address] = str(error)
        else:
            StreamStore(store, season.id).put(found)
    return failed


def connectors_of(season: Season, clock: Clock) -> tuple[Connector, ...]:
    """Return a season's live sources: every feed, and EDGAR for the assets with a ``cik``.

    Raises :class:`UserError` for an invalid address, and for EDGAR if no asset has a ``cik``.
    """
    found, reader = [], WebReader(clock)
    # An item about an asset contains its symbol (for a pair only the coin) or one of its names.
    words = {
        asset.symbol: (asset.symbol.partition("/")[0], *asset.names) for asset in season.assets
    }
    for url in season.news.rss:
        host = _web_host(url)
        if host is None:
            raise UserError(
                f"[news] rss: '{url[:80]}' is not a web address", hint="write https://host/feed.xml"
            )
        items = partial(feed_items, source=host, words=words, zone=season.news.zone)
        found.append(Connector(url, reader, items))
    if season.filings.edgar:
        numbers = {asset.symbol: asset.cik for asset in season.assets if asset.cik is not None}
        if not numbers:
            raise UserError(
                "[filings] edgar: no asset has a cik", hint="for example: cik = 1318605 for TSLA"
            )
        # The SEC asks readers to identify themselves.
        reader = WebReader(clock, f"tradeassay {season.filings.contact}")
        for symbol, cik in numbers.items():
            url = f"{season.filings.address.rstrip('/')}/submissions/CIK{cik:010d}.json"
            found.append(Connector(url, reader, partial(filings, asset=symbol, cik=cik)))
    return tuple(found)
