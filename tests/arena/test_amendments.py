"""What only appears when a season runs for long: clocks jump, assets halt, calendars end, operators amend."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import select
from tests.arena.virtual import VirtualTime

from tradeassay.arena.agents import ConstantAction, EntryAgent
from tradeassay.arena.amending import amend
from tradeassay.arena.clock import LiveClock
from tradeassay.arena.rounds.feed import AssetFacts, Due, LiveFeed, calendars_end
from tradeassay.arena.rounds.health import Health, read_workers
from tradeassay.arena.rounds.running import RetryPatience, Runner
from tradeassay.arena.season import Asset, Entry, Season, demo_season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import decisions, rounds
from tradeassay.arena.verifying import verify_arena
from tradeassay.arena.web.serving import play
from tradeassay.arena.web.status import arena_health
from tradeassay.cli import main
from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.time import DAY, HOUR, SECOND, FixedClock, Instant, iso, midnight, parse_day

FIRST = "2026-11-02"
DAYS = [f"2026-11-{day:02d}" for day in range(2, 12)]
YEAR_S = 365 * 86_400.0


class Market:
    """A source of two assets; ``missing`` says of which sessions there is no price now."""

    blocking = False
    last_trouble = "no bar yet"

    def __init__(self) -> None:
        self.missing: Callable[[str, str], bool] = lambda symbol, day: False

    def due(self, season: Season) -> tuple[Due, ...]:
        found = []
        for place, asset in enumerate(season.assets):
            last, over = season.days(asset)[1] or DAYS[-1], 0
            for day in DAYS:
                over += day > last
                if over < 3:
                    at = midnight(parse_day(day)) + 22 * HOUR
                    kind = {"closing": over > 0, "review": over > 1}
                    found.append(Due(at=at, place=place, asset=asset.symbol, session=day, **kind))
        return tuple(sorted(found))

    def facts(self, asset: Asset, session: str, at: Instant, news_days: int) -> AssetFacts | None:
        if self.missing(asset.symbol, session):
            return None
        price = 100.0 + DAYS.index(session)
        return AssetFacts(
            price=price, history=(), momentum=None, news=(), annual_report=None, quarterly_report=None
        )

    def comparable(self, asset: Asset, session: str, at: Instant, *, dividends: bool) -> float | None:
        return 100.0 + DAYS.index(session)

    def closes(self, asset: Asset, session: str, *, dividends: bool) -> dict[str, object]:
        return {}

    def forget(self, asset: Asset, session: str) -> None:
        pass


class World:
    """Two assets and two rules, played on a virtual clock that is watched by another one."""

    def __init__(self, tmp_path: Path) -> None:
        self.time, self.market = VirtualTime(midnight(parse_day(FIRST)) + HOUR), Market()
        self.season = Season(
            id="long",
            assets=tuple(Asset(symbol=name, kind="stock", dataset="live/stub") for name in ("GOOD", "HALT")),
            entries=(Entry(id="bull", architecture="rule", params={"rule": "buy"}),),
            first=FIRST,
            last=DAYS[-3],
        )
        self.store = Store(open_engine(str(tmp_path / "long.db"), durable=False))
        self.states: list[tuple[str, tuple[tuple[str, str], ...]]] = []

    def run(self, *meanwhile: Callable[[], object]) -> None:
        """Play the season; each of ``meanwhile`` is called at noon of one of its days, from the second on."""
        clock = LiveClock(self.time, asyncio.sleep, step_s=3600.0, steady=lambda: self.time.passed)
        names = ("bull", "buy-and-hold")
        runner = Runner(
            season=self.season,
            store=self.store,
            feed=self.market,  # type: ignore[arg-type]  # closes that never change
            clock=clock,
            agents={name: EntryAgent(ConstantAction("BUY")) for name in names},
            real_time=lambda: self.time.passed,
            beat_s=600.0,
            patience=RetryPatience(longest_s=60.0),
        )

        async def watched() -> None:
            playing = asyncio.create_task(runner.run())
            calls = dict(enumerate(meanwhile))
            while not playing.done():
                told = runner.health.told()
                self.states.append((told.state, tuple((one.part, one.level) for one in told.troubles)))
                here = int(self.time.passed // 86_400)
                if self.time.passed % 86_400 >= 11 * 3600 and here - 1 in calls:
                    made = calls.pop(here - 1)()
                    if asyncio.iscoroutine(made):
                        await made
                await asyncio.sleep(600)
            await playing

        self.time.run(watched())

    @property
    def now(self) -> str:
        return iso(self.time.now())

    def played(self, asset: str) -> list[str]:
        query = select(rounds.c.session).where(rounds.c.asset == asset).order_by(rounds.c.session)
        with self.store.read() as db:
            return list(db.execute(query).scalars())


def test_a_clock_that_is_wrong_for_a_minute_loses_nothing(tmp_path: Path) -> None:
    """A year ahead for a minute, half a day back for ten seconds; a clock that stays set is believed."""
    world = World(tmp_path)

    async def wrong(by: float, seconds: float) -> None:
        world.time.jump(by)
        await asyncio.sleep(seconds)
        world.time.jump(-by)

    world.run(lambda: wrong(YEAR_S, 60.0), lambda: wrong(-43_200.0, 10.0), lambda: wrong(YEAR_S, 200.0))
    assert world.store.skipped("long") == ()
    assert world.played("GOOD") == world.played("HALT") == DAYS[:-2]
    with world.store.read() as db:
        assert set(db.execute(select(decisions.c.status)).scalars()) == {"decided"}

    time = VirtualTime(0)
    clock = LiveClock(time, steady=lambda: time.passed)
    assert not clock.certain  # nothing is known of a clock that was only just looked at
    time.passed += 301
    assert clock.certain and clock.now() == 301 * SECOND
    time.jump(YEAR_S)
    assert clock.now() == 301 * SECOND and "+31,536,000 s" in clock.jumped and not clock.certain
    time.passed += 300
    assert clock.now() == (601 + YEAR_S) * SECOND and clock.certain and not clock.jumped


def test_a_halted_asset_is_an_alarm_and_can_be_retired(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.market.missing = lambda symbol, day: symbol == "HALT" and day >= DAYS[2]

    def retire() -> None:
        made = amend(world.store, world.season, "retire", "HALT", by="ann", now=world.now)
        assert [(one.number, one.what, one.day, one.by) for one in made] == [(1, "HALT", DAYS[1], "ann")]
        with pytest.raises(UserError, match="already"):
            amend(world.store, world.season, "retire", "HALT", by="ann", now=world.now)

    world.run(*(lambda: None,) * 3, retire)
    assert {state for state, _ in world.states} <= {"live", "finished"}  # never stalled
    assert any(("asset HALT", "alarm") in troubles for _, troubles in world.states)
    assert world.played("GOOD") == DAYS[:-2] and world.played("HALT") == DAYS[:2]
    assert {gap.session for gap in world.store.skipped("long")} == {*DAYS[2:4]}  # and none after it was retired


def test_a_withdrawn_entry_is_not_asked_any_more(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(
        lambda: None, lambda: amend(world.store, world.season, "withdraw", "bull", by="operator", now=world.now)
    )
    query = select(decisions.c.session, decisions.c.status, decisions.c.failures).where(
        decisions.c.entry == "bull"
    )
    with world.store.read() as db:
        rows = db.execute(query.where(decisions.c.asset == "GOOD").order_by(decisions.c.session)).all()
        others = set(db.execute(select(decisions.c.status).where(decisions.c.entry != "bull")).scalars())
    assert [row.status for row in rows] == ["decided"] * 2 + ["missed"] * 6 and others == {"decided"}
    assert f"withdrawn by the operator on {DAYS[1]}" in rows[-1].failures
    for what, why in (("buy-and-hold", "every season"), ("bull", "already"), ("nobody", "no entry")):
        with pytest.raises(UserError, match=why):
            amend(world.store, world.season, "withdraw", what, by="x", now=world.now)


def test_a_skipped_session_is_reopened_while_nothing_later_was_played(tmp_path: Path) -> None:
    world = World(tmp_path)
    told: list[str] = []
    world.market.missing = lambda symbol, day: symbol == "HALT" and day == DAYS[1] and not told

    def reopen() -> None:
        assert [gap.asset for gap in world.store.skipped("long")] == ["HALT"]
        told.append("the vendor has it now")
        amend(world.store, world.season, "reopen", DAYS[1], by="operator", now=world.now)

    world.run(lambda: None, reopen)
    assert world.store.skipped("long") == () and world.played("HALT") == DAYS[:-2]
    with world.store.read() as db:
        late = db.execute(select(decisions.c.status).where(decisions.c.session == DAYS[1])).scalars().all()
    assert late == ["decided"] * 4
    with pytest.raises(UserError, match="was skipped"):
        amend(world.store, world.season, "reopen", DAYS[1], by="x", now=world.now)


def test_only_what_stops_the_season_makes_the_arena_unwell(tmp_path: Path) -> None:
    store = Store(open_engine(str(tmp_path / "arena.db"), durable=False))
    health = Health("s", "w", live=True)
    health.trouble("news", SourceError("a feed answers 404"), "warning")
    health.trouble("asset X", SourceError("no bar"), "alarm")
    health.beat(store)
    (told,) = read_workers(store)
    assert told.state == "live" and [one.level for one in told.troubles] == ["warning", "alarm"]
    assert arena_health(store, health).ok
    health.trouble("database", SourceError("gone"))
    assert health.told().state == "stalled" and not arena_health(store, health).ok
    health.fine("database")
    assert health.told().state == "live" and len(health.told().troubles) == 2


def test_a_calendar_that_ends_is_said_months_before_and_goes_on_by_weekdays() -> None:
    asset = Asset(symbol="600519.SS", kind="stock", dataset="live/yfinance")
    season = Season(id="s", assets=(asset,), entries=(), first="2026-12-28")
    now = midnight(parse_day("2027-01-04"))
    found = [due for due in LiveFeed(clock=FixedClock(now)).due(season) if due.session >= "2026-12-30"]
    assert [due.session for due in found[:5]] == [
        "2026-12-30",
        "2026-12-31",
        "2027-01-01",
        "2027-01-04",
        "2027-01-05",
    ]
    assert {iso(due.at)[11:16] for due in found} == {"07:15"}
    for day, said, alarm in (
        ("2025-11-01", False, False),
        ("2026-03-01", True, False),
        ("2026-10-01", True, True),
    ):
        words, soon = calendars_end(season, midnight(parse_day(day)))
        assert (bool(words), soon) == (said, alarm)
    assert "XSHG after 2026-12-31" in words
    over = msgspec.structs.replace(season, last="2026-12-30")
    assert calendars_end(over, now) == ("", False)


def test_an_amended_season_is_verified_with_its_amendments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the command line: played half way, amended, played to its end, verified, forged."""
    demo = demo_season(first="2022-03-14", last="2022-03-22", warmup=1)
    kept = tuple(entry for entry in demo.entries if entry.id in ("investor-sensible", "trend"))
    season = msgspec.structs.replace(demo, id="tiny", entries=kept, assets=demo.assets[1:3])
    file = tmp_path / "arena.db"
    stock = season.assets[0].symbol

    def go(until: Instant | None) -> None:
        store = Store(open_engine(str(file), durable=False))
        asyncio.run(play(season, store, None, until))
        store.engine.dispose()

    go(midnight(parse_day("2022-03-17")) + DAY)
    assert main(["arena", "amend", "retire", stock, "--db", str(file), "--json"]) == 0
    (retired,) = json.loads(capsys.readouterr().out)
    assert (retired["change"], retired["day"]) == ("retire", "2022-03-17")
    assert main(["arena", "amend", "withdraw", "trend", "--by", "ann", "--db", str(file)]) == 0
    assert main(["arena", "amend", "retire", stock, "--last", "2022-03-15", "--db", str(file)]) != 0
    go(None)
    found = verify_arena(str(file))
    assert not found.contradicted, found.violations
    assert any("2 of the operator" in claim.why for claim in found.claims)
    for forged in (
        "UPDATE amendments SET day = '2022-03-18' WHERE number = 1",
        "DELETE FROM amendments WHERE number = 2",
        "UPDATE decisions SET status = 'decided', failures = NULL WHERE status = 'missed'",
    ):
        copy = tmp_path / "forged.db"
        copy.write_bytes(file.read_bytes())
        with closing(sqlite3.connect(copy)) as db:
            assert db.execute(forged).rowcount
            db.commit()
        assert verify_arena(str(copy)).contradicted, forged
