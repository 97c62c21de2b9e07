"""Live sources, from documents written here; no network."""

import asyncio
import json
from functools import partial

import pytest

from tradeassay.arena.season import Asset, Entry, Season
from tradeassay.arena.stream.connectors import Connector, WebReader, collect, feed_items, filings
from tradeassay.arena.stream.record import StreamStore
from tradeassay.core.errors import SourceError
from tradeassay.core.time import DAY, FixedClock, WallClock, parse_iso

NOW = parse_iso("2025-04-02T12:00:00Z")
CLOCK = FixedClock(NOW)
RSS = b"""<rss version="2.0"><channel>
<item><title>Acme &amp; partners</title><link>https://x.example/1</link><guid>g1</guid>
<description>&lt;p&gt;Acme rose&lt;/p&gt;</description><pubDate>Wed, 02 Apr 2025 07:00:00 -0400</pubDate></item>
<item><title>Weather</title><link>javascript:x</link><pubDate>Wed, 02 Apr 2025 07:00:00 -0400</pubDate></item>
<item><title>Acme later</title><pubDate>Thu, 03 Apr 2025 07:00:00 +0000</pubDate></item>
<item><title>Acme sometime</title><pubDate>soon</pubDate></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>Acme files</title><id>a1</id>
<link href="https://x.example/a1"/><summary>Text</summary><updated>2025-04-02T09:00:00</updated></entry></feed>"""
EDGAR = {
    "name": "ACME INC",
    "filings": {
        "recent": {
            "accessionNumber": ["0001-25-000001", "0001-25-000002"],
            "acceptanceDateTime": ["2025-04-01T20:15:00.000Z", "2025-04-01T21:00:00.000Z"],
            "reportDate": ["2025-03-31", ""],
            "form": ["10-Q", "4"],
            "primaryDocument": ["acme10q.htm", "x.xml"],
            "primaryDocDescription": ["Quarterly report", ""],
        }
    },
}


def rss(body: bytes, url: str = "https://x.example/rss", **more) -> Connector:
    return Connector(url, lambda _: body, partial(feed_items, source="X", words={"ACME": ("acme",)}, **more))


def test_rss_items_are_cleaned_and_zoned():
    first, later = rss(RSS).read(CLOCK)
    assert (first.title, first.text, first.id) == ("Acme & partners", "Acme rose", "g1")
    assert first.published_at == "2025-04-02T11:00:00Z"
    assert later.url == "" and later.title == "Acme later"


def test_a_stamp_without_a_zone_needs_the_sources():
    assert rss(ATOM).read(CLOCK) == []
    assert rss(ATOM, zone="Asia/Shanghai").read(CLOCK)[0].published_at == "2025-04-02T01:00:00Z"


@pytest.mark.parametrize("body", [b"<!DOCTYPE x [<!ENTITY a 'b'>]><rss/>", b"no xml"])
def test_what_is_no_feed_is_refused(body):
    with pytest.raises(SourceError):
        rss(body).read(CLOCK)


def test_edgar_lists_filings_with_their_acceptance():
    (filing,) = filings(json.dumps(EDGAR).encode(), "2025-04-02T12:00:00Z", asset="ACME", cik=1)
    assert filing.published_at == "2025-04-01T20:15:00Z" and filing.kind == "filing"
    assert filing.url.endswith("/1/000125000001/acme10q.htm")
    with pytest.raises(SourceError):
        filings(b"[]", "2025-04-02T12:00:00Z", asset="ACME", cik=1)


def test_only_the_web_is_fetched():
    with pytest.raises(SourceError, match="not a web address"):
        WebReader(WallClock())("file:///etc/hosts")


def test_the_inbox_knows_when_it_got_what(store):
    asset = Asset(symbol="ACME", kind="stock", dataset="synthetic/us:7")
    season = Season(id="s", assets=(asset,), entries=(Entry(id="a", architecture="rule"),), first="2025-04-01")
    good, bad = rss(RSS), rss(b"", "https://y.example")
    clock = FixedClock(NOW)
    failed = asyncio.run(collect(store, season, [bad, good], clock))
    assert failed == {"https://y.example": "what X sends is not a feed"}
    clock.advance(NOW + 2 * DAY)
    assert asyncio.run(collect(store, season, [good], clock)) == {}  # known since the first visit
    since, inbox = NOW - 3 * DAY, StreamStore(store, "s").inbox
    assert inbox("ACME", since, NOW - 1) == ()
    assert [item.id for item in inbox("ACME", since, NOW)] == ["g1"]
    assert len(inbox("ACME", since, NOW + DAY)) == 2
