"""Documents over HTTP, fetched as a polite reader does: limited in time, size and number of visits."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx
import msgspec

from tradeassay.core.errors import SourceError
from tradeassay.core.secrets import clean_foreign, clean_text, remember_address, scrub

LARGEST = 8 * 1024 * 1024
SECONDS = 20.0
SHARED_S = 30.0
"""So long a document counts as read by the same visit: a feed is asked once, however many assets it is about."""

LEAVE_ALONE_S = (60.0, 86_400.0)
"""A source that has enough of us is left alone at least and at most so long, whatever it says."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    body: bytes
    etag: str
    modified: str
    at: float


class WebReader:
    """Fetches documents. ``agent`` names the reader; some offices (EDGAR, say) ask for a mail address in it.

    A document that was read before is asked for with its ETag and date, so that most visits cost its server
    nothing. A host that answers 429, or 503 with a Retry-After, is not asked again before its time.
    """

    def __init__(
        self,
        agent: str = "tradeassay",
        *,
        seconds: float = SECONDS,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._agent, self._seconds, self._now, self._wall = agent, seconds, now, wall
        self._kept: dict[str, _Kept] = {}
        self._closed: dict[str, float] = {}

    def __call__(self, url: str) -> bytes:
        """Return a document of at most 8 MiB; raises :class:`SourceError` for anything but a full answer."""
        remember_address(url)
        host = urlsplit(url).hostname
        if not url.startswith(("https://", "http://")) or not host:
            raise SourceError(f"'{url[:80]}' is not a web address", hint="give one that begins with https://")
        known, now = self._kept.get(url), self._now()
        if known is not None and now - known.at < SHARED_S:
            return known.body
        if now < self._closed.get(host, now):
            raise SourceError(f"{host} asked not to be visited for another {self._closed[host] - now:.0f} s")
        try:
            found = self._ask(url, host, known)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            scrub(error)
            why = str(error) or type(error).__name__
            raise SourceError(f"{clean_text(url)[:80]} cannot be read: {why}") from error
        self._kept[url] = found
        return found.body

    def _ask(self, url: str, host: str, known: _Kept | None) -> _Kept:
        headers = {"User-Agent": self._agent}
        if known is not None and known.etag:
            headers["If-None-Match"] = known.etag
        if known is not None and known.modified:
            headers["If-Modified-Since"] = known.modified
        with (
            httpx.Client(timeout=self._seconds, follow_redirects=True, max_redirects=5) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            if answer.status_code == 304 and known is not None:
                return msgspec.structs.replace(known, at=self._now())
            if answer.status_code == 429 or (answer.status_code == 503 and "retry-after" in answer.headers):
                self._closed[host] = self._now() + self._wait_s(answer.headers.get("retry-after", ""))
            if answer.status_code != 200:
                raise SourceError(f"{clean_text(url)[:80]} answers {answer.status_code} {answer.reason_phrase}")
            return _Kept(
                body=clean_foreign(self._read(url, answer)),
                etag=answer.headers.get("etag", "")[:500],
                modified=answer.headers.get("last-modified", "")[:100],
                at=self._now(),
            )

    def _read(self, url: str, answer: httpx.Response) -> bytes:
        end, body = self._now() + self._seconds, bytearray()
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > LARGEST:
                raise SourceError(f"{clean_text(url)[:80]} is larger than {LARGEST} bytes")
            if self._now() > end:
                raise SourceError(f"{clean_text(url)[:80]} takes longer than {self._seconds:g} s")
        return bytes(body)

    def _wait_s(self, told: str) -> float:
        """Return how long to stay away: what Retry-After says in seconds or as a date, within reason."""
        least, most = LEAVE_ALONE_S
        try:
            wait = float(told) if told.strip().isdigit() else self._until(told)
        except ValueError:
            wait = 10 * least
        return min(max(wait, least), most)

    def _until(self, told: str) -> float:
        found = parsedate_to_datetime(told)
        return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - self._wall()).total_seconds()
