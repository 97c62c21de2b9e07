"""Habits of vendors, one asset each, through the connectors' own layout and the store, on a virtual
clock.

Every account must end at what its recorded decisions make on the vendor's final prices, and what
could not be had must be on record with its cause.
"""

import math
import random
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from sqlalchemy import select
from tests.arena.conftest import seated, worth
from tests.arena.virtual import VirtualTime

from tradeassay_arena.rounds.feed import LiveFeed, parse_renamed
from tradeassay_arena.rounds.prices import held_bars_of, revisions
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Asset, Entry, Season
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import bookings, rounds
from tradeassay_bench.core.arena import AgentChoice
from tradeassay_bench.core.time import HOUR, MINUTE, Instant, midnight, parse_day
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.data import sessions_between, write_snapshot
from tradeassay_bench.data.connectors import common
from tradeassay_bench.data.datasets import snapshot_folder

FIRST, LAST = "2026-11-17", "2026-12-01"  # Thanksgiving and the half day after it are inside
D = "2026-11-19"  # the day on which everything begins to go wrong
SECOND, NEXT, THANKSGIVING = "2026-11-18", "2026-11-20", "2026-11-26"
NAMES = ("open", "high", "low", "close", "volume")

Bars = dict[str, list[float]]
"""A vendor's bars by day, as it tells them now; ``NAMES`` are their columns."""
Change = Callable[[Bars], Bars]


@cache
def closing() -> dict[str, Instant]:
    """Return when each session closes."""
    market = sessions_between("XNYS", "2026-10-01", "2026-12-04")
    return dict(zip(map(str, market.days), market.close_time.tolist(), strict=True))


def true_bars(symbol: str) -> Bars:
    drawn = random.Random(symbol)
    price, found = 100.0, {}
    for day in closing():
        before, price = price, round(price * math.exp(drawn.gauss(0, 0.02)), 2)
        high, low = max(before, price) + 0.5, min(before, price) - 0.5
        found[day] = [before, high, low, price, float(drawn.randrange(10**5, 10**6))]
    return found


def times(factor: float, first: str = "", last: str = "9") -> Change:
    """The prices of some days in another unit, or wrong."""

    def change(bars: Bars) -> Bars:
        scaled = {
            day: [round(value * factor, 6) for value in bar[:4]] + bar[4:]
            for day, bar in bars.items()
        }
        return {day: scaled[day] if first <= day <= last else bar for day, bar in bars.items()}

    return change


def tells(day: str, *bar: float) -> Change:
    return lambda bars: {**bars, day: list(bar)}


def closes_at(value: float) -> Change:
    return lambda bars: {**bars, D: [*bars[D][:3], value, bars[D][4]]}


def without(*days: str) -> Change:
    return lambda bars: {day: bar for day, bar in bars.items() if day not in days}


def raising(error: Exception) -> Change:
    def change(bars: Bars) -> Bars:
        raise error

    return change


def lagging(bars: Bars, now: Instant) -> Bars:
    """Each close is a little off for twenty minutes."""
    young = [day for day in bars if now < closing()[day] + 20 * MINUTE]
    return times(0.995, *young[:1], "9")(bars) if young else bars


RESTS = common.VendorResting("Stub refused: HTTP 429")
RESTS.seconds = 3600.0
EVER = math.inf
HABITS: dict[str, list[tuple[str, float, float, Change]]] = {
    "HONEST": [],
    "TWICE": [(D, 0, 20, times(1.01, D, D)), (D, 20, 80, times(0.98, D, D))],
    "BACK": [(D, 20, 80, times(1.02, D, D))],
    "TEMPORARY-95": [(D, 20, 30, times(95.0, D, D))],
    "TICK-DAY": [(D, 0, 9, times(95.0, D, D))],
    "LAGGING": [],
    "PHANTOM": [("2026-11-25", 24, EVER, tells(THANKSGIVING, 1.0, 2.0, 0.5, 1.5, 9.0))],
    "PHANTOM-OLD": [(D, -EVER, EVER, tells("2026-10-17", 1.0, 2.0, 0.5, 1.5, 9.0))],
    "UNIT": [
        (D, 0, EVER, lambda bars: {day: [*bar[:4], bar[4] / 1000] for day, bar in bars.items()})
    ],
    "STALE-OTHER-UNIT": [(D, 0, 0.5, lambda bars: {**bars, D: [*bars[SECOND][:4], 7.0]})],
    "SPLIT-RESTATED": [(D, -EVER, -2, times(0.5, D)), (D, -2, EVER, times(0.5))],
    # All of the past in another unit between the asset's first round and its second.
    "RESTATED-FIRST": [(SECOND, 0, EVER, times(0.25))],
    "RESTATED-UP": [(SECOND, -2, EVER, times(20.0))],
    "SPLIT-LATE": [(NEXT, -EVER, 10, times(0.5, D)), (NEXT, 10, EVER, times(0.5))],
    "LATE-ROW": [(D, 0, 0.4, without(D))],
    "LATE-ROW-DAY": [(D, 0, 9, without(D))],
    "LOST-ROW": [(NEXT, 0, 9, without(D))],
    "LOST-THEN-OTHER": [(D, 0, 20, times(1.02, D, D)), (NEXT, 0, 9, without(D))],
    "LOST-AND-TICK": [(NEXT, 0, 0.4, without(D)), (NEXT, 0, 0.4, times(10.0, NEXT, NEXT))],
    "NAN": [(D, 0, 0.4, closes_at(math.nan))],
    "NAN-DAY": [(D, 0, 9, closes_at(math.nan))],
    "ZERO": [(D, 0, 0.4, closes_at(0.0))],
    "ZERO-DAY": [(D, 0, 9, closes_at(0.0))],
    "MINUS": [(D, 0, 9, closes_at(-5.0))],
    "INFINITE": [(D, 0, 9, closes_at(math.inf))],
    "LOCAL": [
        (
            D,
            0,
            EVER,
            lambda bars: {str(parse_day(day) + timedelta(days=1)): bars[day] for day in bars},
        )
    ],
    "AWAY-KEY": [(D, 0, 9, raising(KeyError("close")))],
    "AWAY-ATTR": [
        (D, 0, 0.4, raising(AttributeError("'NoneType' object has no attribute 'split'")))
    ],
    "DELISTED": [(D, 0, EVER, lambda bars: {day: bar for day, bar in bars.items() if day <= D})],
    "META": [],
    "DOUBLED": [],
    "DOUBLED-OTHER": [],
    "REST": [(D, 0, 1, raising(RESTS))],
}
"""What a vendor does to its bars from some hours after a session's close to others."""


def between(now: Instant, day: str, hours: float, until: float) -> bool:
    """Whether it is so many hours after a session's close."""
    return closing()[day] + hours * HOUR <= now < closing()[day] + until * HOUR


class Whims:
    async def decide(self, packet) -> AgentChoice:
        action = ("BUY", "SELL", "HOLD")[
            random.Random(f"{packet.symbol}{packet.date}").randrange(3)
        ]
        return AgentChoice(action=action, reasoning="whim")


class Feeding:
    """A vendor, seen from a connector: its bars at this moment become a panel and a stored
    snapshot.
    """

    def __init__(self, home: Path, wall: VirtualTime) -> None:
        self.home, self.wall = home, wall
        self.asked: dict[str, list[Instant]] = {}
        self.told: dict[tuple[str, str], set[float]] = {}

    def bars(self, symbol: str, now: Instant) -> Bars:
        bars = {day: bar for day, bar in true_bars(symbol).items() if closing()[day] <= now}
        for day, hours, until, change in HABITS[symbol]:
            bars = change(bars) if between(now, day, hours, until) else bars
        return lagging(bars, now) if symbol == "LAGGING" else bars

    def fetch(self, source: str, name: str, options: dict) -> None:
        (symbol,) = options["symbols"]
        now = self.wall.now()
        self.asked.setdefault(symbol, []).append(now)
        config = common.ConnectorConfig(**options)
        sessions = common.sessions_asked("XNYS", config.first, config.last, self.wall)
        told = self.bars(symbol, now)
        days = [day for day in sorted(told) if config.first <= day <= config.last]
        for day in days:
            self.told.setdefault((symbol, day), set()).add(told[day][3])
        other = symbol == "DOUBLED-OTHER" and between(now, D, 0, 9)
        if symbol == "DOUBLED" or other:
            days += days[-1:]
        column = common.Column(
            instrument=Instrument(symbol=symbol),
            days=np.array(days, dtype="datetime64[D]"),
            fields={n: np.array([told[day][i] for day in days]) for i, n in enumerate(NAMES)},
        )
        if other:
            column.fields["close"][-1] += 0.01
        config = msgspec.structs.replace(config, allow_partial=True, forgive=True)
        vendor = common.Vendor("Stub", "stub", "XNYS", "USD", "ours")
        panel = common.ConnectorSource(config, runtime=common.Runtime(clock=self.wall)).panel(
            vendor, [column], sessions
        )
        write_snapshot(
            panel, snapshot_folder(name, self.home), allow_faults=True, replace_existing=True
        )


def play(tmp_path: Path, store: Store, symbols: list[str], last: str) -> tuple[Season, Feeding]:
    season = Season(
        id="habits",
        benchmark="ama-v1",
        assets=tuple(
            Asset(
                symbol=name, kind="stock", dataset="live/rests" if name == "REST" else "live/stub"
            )
            for name in symbols
        ),
        entries=(Entry(id="whims", architecture="python"),),
        first=FIRST,
        window_s=900,
        last=last,
    )
    wall = VirtualTime(midnight(parse_day(FIRST)) + HOUR)
    vendor = Feeding(tmp_path / "home", wall)
    renamed = parse_renamed(
        season, [f"{old}={new}" for old, new in RENAMED.items() if old in symbols]
    )
    feed = LiveFeed(
        home=tmp_path / "home", clock=wall, fetch=vendor.fetch, first=FIRST, renamed=renamed
    )
    agents, clock = (
        seated(whims=Whims()),
        {"clock": wall.clock(), "beat_s": 6 * 3600.0, "longest_s": 60.0},
    )
    wall.run(Runner(season=season, store=store, feed=feed, agents=agents, **clock).run())
    return season, vendor


def check(tmp_path: Path, store: Store, symbols: list[str], last: str) -> None:
    season, vendor = play(tmp_path, store, symbols, last)
    gone = {(skip.asset, skip.session): skip.cause for skip in store.skipped(season.id)}
    held = {(bar.asset, bar.session): bar for bar in held_bars_of(store, season.id)}
    journal = store.rows(select(bookings).order_by(bookings.c.id))
    unsettled = {row.asset for row in store.rows(select(rounds).where(rounds.c.phase != "settled"))}
    for name in symbols:
        told = vendor.bars(RENAMED.get(name, name), closing()["2026-12-04"])
        prices = {day: bar[3] for day, bar in told.items()}
        for entry in ("whims", "buy-and-hold"):
            navs = [row.nav for row in journal if (row.asset, row.entry) == (name, entry)]
            assert navs[-1] == pytest.approx(worth(store, entry, name, prices), rel=1e-12), name
            # Nobody's account ever shows a tick that was mended; a split that was told late looks like a crash.
            assert (0.4 if name == "SPLIT-LATE" else 0.8) < min(navs) <= max(navs) < 1.25, name
        skipped = {session: cause for (asset, session), cause in gone.items() if asset == name}
        assert list(skipped) == [day for day in GONE.get(name, ("",))[1:] if day <= last], name
        assert all(GONE[name][0] in cause for cause in skipped.values()), (name, skipped)
        ends = {bar.session: bar.word for (asset, _), bar in held.items() if asset == name}
        assert ends == {day: end for day, end in HELD.get(name, {}).items() if day <= last}, name
    assert unsettled == {name for name in symbols if name in ("DELISTED",)}
    made = revisions(store, season.id)
    assert {one.asset for one in made} == set(symbols) & CORRECTED
    assert all(one.old != one.new for one in made)  # no session whose price has stayed
    for one in made:  # and none that the vendor never told
        assert {one.old, one.new} <= vendor.told[RENAMED.get(one.asset, one.asset), one.session], (
            one
        )
    assert len(vendor.asked.get("REST", ())) < 20  # it is left alone as long as it wants


RENAMED = {"FB": "META"}
AFTER = (
    "2026-11-20",
    "2026-11-23",
    "2026-11-24",
    "2026-11-25",
    "2026-11-27",
    "2026-11-30",
    "2026-12-01",
)
GONE = {
    **dict.fromkeys(
        ("LATE-ROW-DAY", "NAN-DAY", "ZERO-DAY", "MINUS", "INFINITE"), ("no price of", D)
    ),
    "AWAY-KEY": ("KeyError", D),
    "TICK-DAY": ("the bar was doubted", D),
    "DELISTED": ("no price of", *AFTER),
    "DOUBLED-OTHER": ("repeated", D),
    "REST": ("left alone until", D),
}
"""Why sessions have no round, and which."""
HELD = {
    "TEMPORARY-95": {D: "replaced"},
    "TICK-DAY": {D: "missed"},
    "STALE-OTHER-UNIT": {D: "believed"},
    "SPLIT-LATE": {"2026-11-18": "believed", D: "believed"},
    "LOST-AND-TICK": {NEXT: "replaced"},
}
"""Which bars and revisions were held, and what became of them."""
CORRECTED = {"TWICE", "BACK", "LAGGING", "STALE-OTHER-UNIT", "SPLIT-LATE", "LOST-THEN-OTHER"}


@pytest.mark.journey
def test_a_few_habits(tmp_path, store):
    some = "TWICE LATE-ROW ZERO-DAY PHANTOM-OLD DOUBLED LOST-AND-TICK RESTATED-FIRST RESTATED-UP"
    check(tmp_path, store, some.split(), NEXT)


@pytest.mark.slow
def test_all_habits(tmp_path, store):
    check(
        tmp_path, store, [*(name for name in HABITS if name not in ("LOCAL", "META")), "FB"], LAST
    )


def test_days_told_in_another_zone_are_refused_until_they_are_right(tmp_path, store):
    season, _ = play(tmp_path, store, ["LOCAL"], NEXT)
    assert [skip.session for skip in store.skipped(season.id)] == [D, NEXT]
    assert all("when XNYS has no session" in skip.cause for skip in store.skipped(season.id))
