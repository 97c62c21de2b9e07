"""Getting a document over HTTPS: a limit of time and of size, and nothing but the web."""

from __future__ import annotations

from collections.abc import Callable
from urllib.error import URLError
from urllib.request import Request, urlopen

from tradeassay.core.errors import SourceError
from tradeassay.core.secrets import clean_foreign, clean_text, remember_address, scrub

Fetch = Callable[[str], bytes]
"""Return the document at an address; raises :class:`SourceError`. Injected, so that tests need no network."""

LARGEST = 8 * 1024 * 1024
SECONDS = 20.0


def fetch_url(url: str, agent: str = "tradeassay") -> bytes:
    """Return a document of at most 8 MiB; raises :class:`SourceError` for anything else than a full answer.

    ``agent`` names the reader; some offices (EDGAR, say) ask for a name and an address in it.
    """
    remember_address(url)
    if not url.startswith(("https://", "http://")):
        raise SourceError(f"'{url[:80]}' is no web address", mend="give one that begins with https://")
    try:
        with urlopen(
            Request(url, headers={"User-Agent": agent}), timeout=SECONDS
        ) as answer:  # http(s) only, checked above
            body = bytes(answer.read(LARGEST + 1))
    except (URLError, OSError, ValueError) as error:
        scrub(error)
        raise SourceError(f"{clean_text(url)[:80]} cannot be read: {error}") from error
    if len(body) > LARGEST:
        raise SourceError(f"{clean_text(url)[:80]} is larger than {LARGEST} bytes")
    return clean_foreign(body)
