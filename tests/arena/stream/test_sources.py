"""Feeds, filings and summaries from a season's file to a packet, against servers that behave
like real ones.
"""

import asyncio
import json
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from tests.arena.conftest import seated
from tests.arena.stream.stand_ins import DATES, FILINGS, GOOD, LAUGHS, STRAY, item, rss, sources
from tests.arena.virtual import VirtualTime

from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.clock import LiveClock
from tradeassay_arena.rounds.feed import LiveFeed
from tradeassay_arena.rounds.health import Health
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Season, load_season
from tradeassay_arena.stream import stream_publisher
from tradeassay_arena.stream.connectors import (
    Connector,
    WebReader,
    collect,
    connectors_of,
    feed_items,
    filings,
)
from tradeassay_arena.stream.record import StreamStore
from tradeassay_arena.web.serving import collect_news
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import DAY, SECOND, FixedClock, parse_iso
from tradeassay_bench.data import load_dataset
from tradeassay_bench.data.datasets import snapshot_folder
from tradeassay_bench.llm import ModelParams, open_model

SIGHT = "2022-06-01T20:00:00Z"
EASTERN = "Wed, 01 Jun 2022 07:00:00 -0400"
FILE = """id = "sources"
benchmark = "ama-v1"
first = "2022-06-01"
last = "2022-06-01"

[[assets]]
symbol = "AHVQ"
kind = "crypto"
dataset = "live/ccxt"
names = ["Ahava"]
cik = 9

[[entries]]
id = "calm"
architecture = "rule"

[news]
rss = [{feeds}]

[filings]
edgar = true
contact = "reader@example.org"
address = "{base}"

[summary]
model = "scripted/sensible"
"""
FEEDS = (
    *("good moved dates stray chinese rdf many laughs html empty page huge".split()),
    *("bomb round out cut missing busy".split()),
)
REFUSED = {
    "document type": ("laughs", "html"),
    "not a feed": ("empty", "page"),
    "larger": ("huge", "bomb"),
    "cannot be read": ("out", "cut"),
    "429": ("busy",),
    "redirect": ("round",),
    "404": ("missing",),
}


def season_of(folder: Path, base: str, feeds=FEEDS) -> Season:
    file = folder / "sources.toml"
    listed = ", ".join(f'"{base}/{name}.xml"' for name in feeds)
    file.write_text(FILE.format(feeds=listed, base=base))
    return load_season(file)


@pytest.mark.journey
def test_what_feeds_and_edgar_say_reaches_the_packet_once_and_nothing_else_does(tmp_path, store):
    wall = VirtualTime(parse_iso(SIGHT))

    def vendor(source: str, name: str, options: dict) -> None:
        folder = snapshot_folder(name, tmp_path / "home")
        shutil.copytree(load_dataset("synthetic/crypto:7").folder, folder, dirs_exist_ok=True)

    with sources() as (base, _):
        season = season_of(tmp_path, base, [name for name in FEEDS if name != "many"])
        store.create_season(season, SIGHT)
        clock = FixedClock(wall.now())
        asyncio.run(collect(store, season, connectors_of(season, clock), clock))

    async def play() -> None:
        async with open_model(
            season.summary.model, ModelParams(temperature=0.0, max_tokens=800)
        ) as model:
            feed = LiveFeed(home=tmp_path / "home", clock=wall, fetch=vendor)
            how = {
                "clock": wall.clock(),
                "beat_s": 6 * 3600.0,
                "publish": stream_publisher(store, model),
            }
            agents = seated(calm=ConstantAction("HOLD"))
            await Runner(season=season, store=store, feed=feed, agents=agents, **how).run()

    wall.run(play())
    round = store.round("sources", "AHVQ", "2022-06-01")
    assert round is not None
    news = store.packet(round.id).news
    told = "\n".join(f"{one.title} {one.text}" for one in news)
    assert len([one for one in news if "4 percent" in one.text]) == 1  # in two feeds, twice in each
    for words in ("Lena Ott", "20 million", "Oslo", "百分之四", "form 10-Q", "form 8-K"):
        assert words in told, words
    for words in "Weather,tomorrow,long ago,no zone,year one,no day,without a date,10-K,&".split(
        ","
    ):
        assert words not in told.replace("Ahava & Sons", "").replace("R&D", ""), words
    assert all(one.published_at <= "2022-06-02T00:15:00Z" for one in news)


def test_each_source_that_cannot_be_read_is_named_and_stops_no_other(tmp_path, store):
    with sources() as (base, asked):
        season, clock = season_of(tmp_path, base), FixedClock(parse_iso(SIGHT))
        failed = asyncio.run(collect(store, season, connectors_of(season, clock), clock))
        assert asked["/submissions/CIK0000000009.json"] == 1
    said = list(failed.values())
    assert len(said) == sum(map(len, REFUSED.values()))
    for words, names in REFUSED.items():
        assert sum(words in why for why in said) >= len(names), (names, said)
    at = parse_iso(SIGHT)
    kept = StreamStore(store, "sources").inbox("AHVQ", at - 3 * DAY, at)
    assert Counter(one.source for one in kept) == {
        "127.0.0.1": 100,
        "SEC EDGAR": 2,
    }  # one feed had 300


async def test_every_feed_has_its_own_alarm_and_is_well_again_by_itself(tmp_path, store):
    """One part for all of them let a second feed die unheard."""
    said: list[str] = []

    with sources() as (base, asked):
        season = season_of(tmp_path, base, ("good", "missing", "page"))
        health = Health("sources", "main", live=True)
        health.say = said.append
        clock = LiveClock(FixedClock(parse_iso(SIGHT)))
        runner = SimpleNamespace(season=season, store=store, clock=clock, health=health)
        store.create_season(season, SIGHT)
        visiting = asyncio.create_task(collect_news(runner))  # type: ignore[arg-type]  # all that it asks for
        while len(said) < 2 and not visiting.done():
            await asyncio.sleep(0.02)
        visiting.cancel()
        assert asked["/missing.xml"] == 1  # once, though the season has several assets
        parts = {one.part: one.level for one in health.told().troubles}
        assert parts == {f"feed {base}/missing.xml": "warning", f"feed {base}/page.xml": "warning"}
    assert len(said) == 2 and "404" in "".join(said) and "not a feed" in "".join(said)


def test_items_of_feeds_and_filings_are_cleaned_and_zoned_and_anything_else_is_refused():
    def read(body: bytes, zone: str | None = None):
        return feed_items(body, SIGHT, source="X", words={"AHVQ": ("ahava",)}, zone=zone)

    (stray,) = read(STRAY)
    assert stray.title.startswith("Ahava & Sons buys R&D") and stray.text.endswith(
        "for 20 million dollars."
    )
    assert (stray.id, stray.url) == ("s1", "https://x.example/?a=1&b=2")
    (odd,) = read(
        rss(
            item(
                "Ahava &lt;b&gt;rose&lt;/b&gt;</title><link>javascript:x</link><title>", at=EASTERN
            )
        )
    )
    assert (odd.title, odd.url, odd.published_at) == ("Ahava rose", "", "2022-06-01T11:00:00Z")
    assert "d4" not in {one.id for one in read(DATES)}  # a stamp without a zone needs the source's
    assert {one.id: one.published_at for one in read(DATES, "Asia/Shanghai")}[
        "d4"
    ] == "2022-06-01T01:00:00Z"
    found = filings(json.dumps(FILINGS).encode(), SIGHT, asset="AHVQ", cik=1)
    assert [(one.published_at, one.kind) for one in found] == [
        ("2022-06-01T10:00:00Z", "filing"),
        ("2022-06-01T09:00:00Z", "filing"),
    ]
    assert found[0].url.endswith("/1/000122000009/q.htm")
    for body in (LAUGHS, b"no xml"):
        with pytest.raises(SourceError):
            read(body)
    for body in (b"[]", b'{"name": "A", "filings": {"recent": [1]}}'):
        with pytest.raises(SourceError, match="CIK 1 cannot be read"):
            filings(body, SIGHT, asset="AHVQ", cik=1)
    with pytest.raises(SourceError, match="not a web address"):
        WebReader(FixedClock(0))("file:///etc/hosts")


def test_the_inbox_knows_when_it_got_what(store):
    at = parse_iso(SIGHT)
    season, clock = SimpleNamespace(id="s"), FixedClock(at)
    later = rss(item("Ahava later", guid="l1", at="Thu, 02 Jun 2022 07:00:00 GMT"))

    def visit(*bodies: bytes) -> dict[str, str]:
        items = partial(feed_items, source="X", words={"AHVQ": ("ahava",)})
        found = [
            Connector(f"https://{len(body)}.example", lambda _, body=body: body, items)
            for body in bodies
        ]
        return asyncio.run(collect(store, season, found, clock))

    assert visit(b"", GOOD, later) == {"https://0.example": "what X sends is not a feed"}
    clock.advance(at + 2 * DAY)
    assert visit(GOOD, later) == {}  # known since the first visit
    since, inbox = at - 3 * DAY, StreamStore(store, "s").inbox
    assert inbox("AHVQ", since, at - 1) == ()
    assert [one.id for one in inbox("AHVQ", since, at)] == ["g1"]
    assert [one.id for one in inbox("AHVQ", since, at + DAY)] == ["g1", "l1"]


def test_a_feed_is_asked_once_for_all_assets_and_then_whether_it_changed():
    words = {"AHVQ": ("Ahava",), "SALES": ("sales", "dry")}
    with sources() as (base, asked):
        clock = FixedClock(0)
        feed = Connector(
            f"{base}/good.xml", WebReader(clock), partial(feed_items, source="X", words=words)
        )
        first = feed.read(clock)
        assert (
            Counter(item.asset for item in first) == {"AHVQ": 2, "SALES": 3}
            and asked["/good.xml"] == 1
        )
        assert feed.read(clock) == first
        assert (asked["/good.xml"], asked["/good.xml unchanged"]) == (2, 1)


def test_a_host_that_had_enough_is_left_alone_for_a_minute_to_a_day_whatever_it_says():
    clock = FixedClock(0)
    with sources() as (base, asked):
        reader = WebReader(clock)
        for later, visits in ((0, 1), (60, 1), (119, 1), (121, 2)):
            clock.advance(later * SECOND)
            with pytest.raises(SourceError):
                reader(f"{base}/busy.xml")
            assert asked["/busy.xml"] == visits
        for says, rests in (
            ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400),
            ("-5", 600),
            ("0", 60),
            ("3600", 3600),
        ):
            reader = WebReader(FixedClock(parse_iso(SIGHT)))
            with pytest.raises(SourceError, match="429"):
                reader(f"{base}/busy.xml?{quote(says)}")
            with pytest.raises(SourceError, match=f"for another {rests} s"):
                reader(f"{base}/good.xml")
