"""Live rounds with a vendor that is late, fails, and comes back.

The wall clock is the test's own.
"""

import shutil
import time

import msgspec
import pytest
from sqlalchemy import select
from tests.arena.virtual import VirtualTime

from tradeassay.core.errors import UserError
from tradeassay_arena.rounds.feed import LiveFeed, check_data, is_live
from tradeassay_arena.season import Asset, Entry, Season
from tradeassay_arena.state.tables import events, rounds, skipped, slots
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import MINUTE, FixedClock, iso, midnight, parse_day
from tradeassay_bench.data import load_dataset
from tradeassay_bench.data.connectors.common import VendorResting, sessions_asked
from tradeassay_bench.data.datasets import snapshot_folder


class Vendor:
    """Gives the synthetic market's days, unless it is told to fail at a session so often."""

    def __init__(self, home, failing: dict[str, int]) -> None:
        self.home, self.failing, self.asked = home, dict(failing), []

    def fetch(self, source: str, name: str, options: dict) -> None:
        self.asked.append((source, options["symbols"], options["last"]))
        if self.failing.get(options["last"], 0) > 0:
            self.failing[options["last"]] -= 1
            raise SourceError("no bar yet")
        folder = snapshot_folder(name, self.home)
        shutil.copytree(load_dataset("synthetic/crypto:7").folder, folder, dirs_exist_ok=True)


def test_a_vendor_may_be_late_and_come_back_and_costs_no_session_but_its_own(table, tmp_path):
    """Late for three minutes, away for a day, late again when the last decision is to be
    settled.
    """
    asset = Asset(symbol="AHVQ", kind="crypto", dataset="live/ccxt")
    season = msgspec.structs.replace(table.season, assets=(asset,), last="2022-06-05", warmup=0)
    first = LiveFeed(clock=FixedClock(midnight(parse_day(season.first)))).due(season)[0].at
    wall = VirtualTime(first - 5 * MINUTE)
    vendor = Vendor(tmp_path / "home", {"2022-06-02": 3, "2022-06-03": 10_000, "2022-06-06": 4})
    table.season = season
    table.play(feed=LiveFeed(home=tmp_path / "home", clock=wall, fetch=vendor.fetch), time=wall)
    found = table.rows(select(rounds).order_by(rounds.c.session))
    assert [row.session[-1] for row in found] == ["1", "2", "4", "5"] and found[
        -1
    ].next_session == "2022-06-06"
    assert [row.phase for row in found] == [
        "settled"
    ] * 4  # the session after the last one settles it
    assert found[1].opened_at == "2022-06-03T00:18:00Z"  # three minutes after the decision time
    assert found[1].next_price > 0 and found[1].next_session == "2022-06-04"  # settled over the gap
    assert {row.status for row in table.rows(select(slots.c.status).distinct())} == {"decided"}
    (told,) = table.rows(select(events.c.body).where(events.c.kind == "missed"))
    assert "2022-06-03" in told.body and "no bar yet" in told.body
    assert [row.session for row in table.rows(select(skipped))] == ["2022-06-03"]
    assert vendor.asked[0] == ("ccxt", ("AHVQ",), "2022-06-01")
    # What vendors answered about earlier sessions does not pile up.
    assert len(list(snapshot_folder("arena-live/any", vendor.home).parent.iterdir())) == 1


def test_stocks_follow_their_exchange():
    asset = Asset(symbol="TSLA", kind="stock", dataset="live/yfinance")
    rule = Entry(id="a", architecture="rule")
    season = Season(id="s", assets=(asset,), entries=(rule,), first="2025-11-26", last="2025-12-01")
    found = LiveFeed(clock=FixedClock(1_764_000_000 * 10**9)).due(season)
    assert [due.session for due in found] == [
        "2025-11-26",
        "2025-11-28",
        "2025-12-01",
        "2025-12-02",
        "2025-12-03",
    ]
    assert (
        found[1].at // (60 * 10**9)
    ) % 1440 == 18 * 60 + 15  # the day after Thanksgiving closes at one
    assert [due.closing for due in found] == [False, False, False, True, True]
    assert [due.review for due in found] == [False, False, False, False, True]
    assert is_live(season)
    mixed = msgspec.structs.replace(
        season, assets=(asset, Asset(symbol="A", kind="crypto", dataset="synthetic/crypto:7"))
    )
    with pytest.raises(UserError, match="mixes"):
        is_live(mixed)


def test_daylight_saving_is_the_exchanges_and_not_the_machines(monkeypatch):
    """New York changes on 8 March 2026, Europe on the 29th, China never."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        found = {}
        for symbol in ("TSLA", "600519.SS"):
            asset = Asset(symbol=symbol, kind="stock", dataset="live/yfinance")
            season = Season(
                id="s", assets=(asset,), entries=(), first="2026-03-05", last="2026-04-02"
            )
            feed = LiveFeed(clock=FixedClock(midnight(parse_day("2026-03-05"))))
            found[symbol] = {due.session: iso(due.at)[11:16] for due in feed.due(season)}
    finally:
        monkeypatch.undo()
        time.tzset()
    new_york = found["TSLA"]
    assert {at for day, at in new_york.items() if day < "2026-03-08"} == {"21:15"}
    assert {at for day, at in new_york.items() if day > "2026-03-08"} == {"20:15"}
    assert set(found["600519.SS"].values()) == {"07:15"}


def test_a_clock_that_is_set_back_and_a_resting_vendor_are_only_troubles():
    asked_: list[dict] = []

    def fetch(source: str, name: str, options: dict) -> None:
        asked_.append(options)
        if len(asked_) == 1:
            sessions_asked("XNYS", options["first"], options["last"], clock)
        error = VendorResting("busy")
        error.seconds = 3600.0
        raise error

    asset = Asset(symbol="TSLA", kind="stock", dataset="live/yfinance")
    clock = VirtualTime(midnight(parse_day("2026-03-10")))  # the session is not over yet
    feed = LiveFeed(clock=clock, fetch=fetch, first="2025-03-10")
    ask = (asset, "2026-03-10", clock.now(), 3)
    assert feed.facts(*ask) is None and "is not over" in feed.last_trouble
    assert feed.facts(*ask) is None and feed.last_trouble == "busy"
    assert feed.facts(*ask) is None and "left alone until 2026-03-10T01:00:00Z" in feed.last_trouble
    assert len(asked_) == 2
    assert asked_[0]["first"] == "2025-03-10"  # every close of the season is looked at again
    clock.jump(3601)
    assert feed.facts(*ask) is None and len(asked_) == 3


def test_a_season_is_refused_at_the_start_for_a_source_that_is_not_there():
    for source, why in (("yfinanse", "yfinance"), ("csv", "cannot be asked")):
        asset = Asset(symbol="TSLA", kind="stock", dataset=f"live/{source}")
        with pytest.raises(UserError, match=why):
            check_data(Season(id="s", assets=(asset,), entries=(), first="2026-03-05"))
