"""Live seasons on a virtual clock with everything that goes wrong: accounts end as if nothing had.

The vendor, the disk, the database, the clock, the agents and strangers misbehave at drawn moments.
What the accounts must be is worked out beside the arena, in plain arithmetic: the recorded
decisions on the vendor's final prices.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError
from tests.arena.account.booking_chain import follow
from tests.arena.conftest import altered, seated, worth
from tests.arena.virtual import VirtualTime

from tradeassay_arena import clock as arena_clock
from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.api.agent_api import AgentApi, Offer, Rejected
from tradeassay_arena.api.outside import OfferWatch, PollingAgent
from tradeassay_arena.daily_target import Booking
from tradeassay_arena.rounds.feed import AssetFacts, PlannedSession, VendorBar
from tradeassay_arena.rounds.prices import Close, held_bars_of, hold_or_accept, judge_bar, revisions
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Asset, Entry, OptionalRules, Season
from tradeassay_arena.standings import read_lines
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import bookings, decisions, rounds
from tradeassay_arena.verifying import verify_arena
from tradeassay_bench.core.arena import AgentChoice, PricePoint
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    WallClock,
    iso,
    midnight,
    parse_day,
)

pytestmark = pytest.mark.journey

ASSETS = ("ONE", "TWO")
KINDS = (
    "revision, outage, wrong tick, full disk, killed database, clock jump, slow agent, dead agent, "
    "flood, "
    "duplicate bar, late bar, restart"
).split(", ")


class Whim:
    """Decides by a hash of the day, so that a season can be compared with itself."""

    def __init__(self, name: str, world: World) -> None:
        self._name, self._world = name, world

    async def decide(self, packet) -> AgentChoice:
        fault = self._world.faults.get(packet.date)
        if self._name == "anna" and fault == "slow agent":
            await asyncio.sleep(100)
        if self._name == "anna" and fault == "dead agent":
            raise RuntimeError("gone")
        return AgentChoice(
            action=self._world.action(self._name, packet.symbol, packet.date), reasoning="whim"
        )


class World:
    """True prices, what the vendor says about them and when, the faults by session, what is
    missing now.
    """

    blocking = False

    def __init__(self, season: Season, sessions: int, faults: dict[str, str], seed: int) -> None:
        self.season, self.faults = season, faults
        self.time = VirtualTime(midnight(parse_day(season.first)) + HOUR)
        first = parse_day(season.first)
        self.days = [str(first + timedelta(days=n)) for n in range(-12, sessions + 1)]
        rng = np.random.default_rng(seed)
        symbols = [asset.symbol for asset in season.assets]
        moves = rng.normal(0.001, 0.03, (len(symbols), len(self.days)))
        self.true = dict(zip(symbols, 100 * np.exp(np.cumsum(moves, axis=1)), strict=True))
        self.looks: dict[tuple[str, str], int] = {}
        self.last_trouble = ""
        self.missing: Callable[[str, str], bool] = lambda symbol, day: False

    def action(self, name: str, asset: str, day: str) -> str:
        return ("BUY", "SELL", "HOLD")[random.Random(f"{name}{asset}{day}").randrange(3)]

    def due(self, season: Season):
        found = []
        for place, asset in enumerate(season.assets):
            over = 0
            for day in self.days[12:]:
                over += day > season.days(asset)[1]
                if over < 3:
                    at, kind = (
                        midnight(parse_day(day)) + DAY + 15 * MINUTE,
                        {"closing": over > 0, "review": over > 1},
                    )
                    found.append(
                        PlannedSession(at=at, place=place, asset=asset.symbol, session=day, **kind)
                    )
        return tuple(sorted(found))

    def said(self, asset: str, day: str) -> float:
        """Return what the vendor says now that a session's close was."""
        true = float(self.true[asset][self.days.index(day)])
        fault = self.faults.get(day)
        since = self.time.now() - midnight(parse_day(day)) - DAY
        if fault == "revision" and since < 20 * 3600 * SECOND:
            return true * 1.01
        if fault == "wrong tick" and asset == "ONE" and since < 35 * MINUTE:
            return true * 95.0
        return true

    def facts(self, asset: Asset, session: str, at, news_days: int) -> AssetFacts | None:
        fault = self.faults.get(session)
        looks = self.looks[asset.symbol, session] = self.looks.get((asset.symbol, session), 0) + 1
        if fault == "outage" and asset.symbol == "TWO":
            raise SourceError("the vendor is away")  # all day: this session has no round
        if (fault == "late bar" and looks <= 5) or self.missing(asset.symbol, session):
            self.last_trouble = "no bar yet"
            return None
        place = self.days.index(session)
        now, before = (
            self.said(asset.symbol, session),
            self.said(asset.symbol, self.days[place - 1]),
        )
        volume = 1000.0 + place
        bar = VendorBar(open=now, high=now, low=now, close=now, volume=volume)
        older = VendorBar(open=before, high=before, low=before, close=before, volume=volume - 1)
        if fault == "duplicate bar" and looks <= 3:
            bar = older
        days = self.days[max(place - 10, 0) : place]
        return AssetFacts(
            price=bar.close,
            history=tuple(PricePoint(date=day, price=self.said(asset.symbol, day)) for day in days),
            momentum=None,
            news=(),
            annual_report=None,
            quarterly_report=None,
            bar=msgspec.structs.replace(bar, previous=older),
        )

    def comparable(self, asset, session, at, *, dividends):
        raise AssertionError("a feed that knows its closes is not asked for one")

    def closes(self, asset: Asset, session: str, *, dividends: bool):
        place = self.days.index(session)
        told = {
            day: self.said(asset.symbol, day) for day in self.days[max(place - 40, 0) : place + 1]
        }
        return {day: Close(close=value, adjusted=value) for day, value in told.items()}

    def forget(self, asset) -> None:
        pass


def season_of(sessions: int, **changed) -> Season:
    made = Season(
        id="soak",
        benchmark="ama-v1",
        assets=tuple(Asset(symbol=name, kind="crypto", dataset="live/none") for name in ASSETS),
        entries=tuple(Entry(id=name, architecture="python") for name in ("anna", "bert")),
        first="2026-01-01",
        last=str(date(2026, 1, 1) + timedelta(days=sessions - 1)),
    )
    return msgspec.structs.replace(made, **changed)


def drawn_faults(sessions: int, count: int, seed: int) -> dict[str, str]:
    """Return faults by session, every kind as often as the others, never two days running."""
    generator = random.Random(seed)
    days = list(range(3, sessions - 2, 2))
    generator.shuffle(days)
    kinds = [KINDS[n % len(KINDS)] for n in range(count)]
    return {
        str(date(2026, 1, 1) + timedelta(days=day)): kind
        for day, kind in zip(days, kinds, strict=False)
    }


class Trouble:
    """Makes the database fail while it is told to."""

    def __init__(self, store: Store) -> None:
        self.words = ""
        event.listen(store.engine, "before_cursor_execute", self._fail)

    def _fail(self, connection, cursor, statement, *rest) -> None:
        writes = statement.lstrip().split(" ", 1)[0] in ("INSERT", "UPDATE", "DELETE")
        if self.words == "disk" and writes:
            raise OperationalError(statement, {}, Exception("database or disk is full"))
        if self.words == "gone":
            raise OperationalError(
                statement, {}, Exception("the server closed the connection unexpectedly")
            )


async def live_through(world: World, store: Store) -> list[Runner]:
    """Play a season to its end while its faults happen; returns every runner that was needed."""
    season, time = world.season, world.time
    trouble, api, runners = Trouble(store), AgentApi(store), []
    agents = seated(**{name: Whim(name, world) for name in ("anna", "bert")})
    restarts = sorted(
        midnight(parse_day(day)) + DAY for day, kind in world.faults.items() if kind == "restart"
    )

    async def mischief() -> None:
        for day, kind in sorted(world.faults.items()):
            at = midnight(parse_day(day)) + DAY + 14 * MINUTE
            await asyncio.sleep(max((at - time.now()) / SECOND, 0))
            if kind in ("full disk", "killed database"):
                trouble.words = "disk" if kind == "full disk" else "gone"
                await asyncio.sleep(400)
                trouble.words = ""
            elif kind == "clock jump":
                await asyncio.sleep(3 * 3600)
                time.jump(-1800 if int(day[-2:]) % 2 else 5400)
            elif kind == "flood":
                wrong = [api.agent_of(f"ta-{n:012x}-{'x' * 43}") for n in range(200)]
                assert wrong == [None] * 200

    plotting = asyncio.create_task(mischief())
    while True:
        runner = Runner(
            season=season,
            store=store,
            feed=world,
            clock=time.clock(),
            agents=agents,
            beat_s=6 * 3600.0,
            real_time=lambda: time.now() / SECOND,
            longest_s=30.0,
        )
        runners.append(runner)
        task = asyncio.create_task(runner.run())
        if restarts:
            # In the middle of a round: half of the restarts come while agents decide.
            await asyncio.wait(
                [task], timeout=max((restarts[0] + 905 * SECOND - time.now()) / SECOND, 1.0)
            )
            restarts.pop(0)
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                continue
        await task
        break
    plotting.cancel()
    return runners


def check(store: Store, world: World) -> None:
    season = world.season
    lines = read_lines(store, season)
    assert {row.phase for row in store.rows(select(rounds))} == {"settled"}
    journal = store.rows(select(bookings).order_by(bookings.c.id))
    for key in product((entry.id for entry in season.all_entries), ASSETS):
        value = worth(store, *key, dict(zip(world.days, world.true[key[1]], strict=True)))
        made = [row for row in journal if (row.entry, row.asset) == key]
        assert made[-1].nav == pytest.approx(value, rel=1e-12)
        assert float(np.prod(1 + lines[key].earned)) == pytest.approx(value, rel=1e-12)
        names = Booking.__struct_fields__
        assert (
            follow((row.asset, Booking(**{n: getattr(row, n) for n in names})) for row in made)
            == made[-1].nav
        )


@pytest.mark.parametrize(
    ("sessions", "count", "seed"),
    [(28, len(KINDS), 1), pytest.param(250, 40, 2, marks=pytest.mark.slow)],
)
def test_a_season_survives_every_kind_of_fault(store, sessions, count, seed):
    world = World(season_of(sessions), sessions, drawn_faults(sessions, count, seed), seed)
    season, faults = world.season, world.faults
    assert len(faults) == count and set(faults.values()) == set(KINDS)
    runners = world.time.run(live_through(world, store))
    check(store, world)
    revised = [day for day, kind in faults.items() if kind == "revision"]
    told = {(one.asset, one.session) for one in revisions(store, season.id, 1000)}
    # Every revision is on record, and no wrong tick was believed.
    assert {(asset, day) for asset in ASSETS for day in revised} == told
    gone = {(one.asset, one.session) for one in store.skipped(season.id)}
    made = store.rows(select(decisions))
    missed = {(row.session, row.entry) for row in made if row.status != "decided"}
    for row in made:
        if row.entry != "buy-and-hold" and (row.session, row.entry) not in missed:
            assert row.action == world.action(
                row.entry, row.asset, row.session
            )  # decided as without any fault
    assert gone == {("TWO", day) for day, kind in faults.items() if kind == "outage"}
    # Nobody missed a session but the agent that was dead.
    assert {day for day, _ in missed} == {
        day for day, kind in faults.items() if kind == "dead agent"
    }
    assert {entry for _, entry in missed} <= {"anna"}
    total = len(world.days[12:-1]) * len(ASSETS) - len(gone)
    assert sum(runner.health.rounds for runner in runners) == total  # round counts add up
    found = verify_arena(str(store.engine.url.database))
    assert not found.contradicted, found.violations[:3]


@pytest.mark.slow
def test_one_account_over_all_assets_is_corrected_too(tmp_path):
    season = season_of(12, rules=OptionalRules(cross_asset=True, feedback=True))
    days = {"2026-01-04": "revision", "2026-01-07": "revision", "2026-01-08": "revision"}
    worth = []
    for name, faults in (("calm", {}), ("revised", days)):
        world = World(season, 12, faults, seed=3)
        store = Store(open_engine(str(tmp_path / f"{name}.db"), durable=False))
        world.time.run(live_through(world, store))
        worth.append(
            {row.entry: row.nav for row in store.rows(select(bookings).order_by(bookings.c.id))}
        )
        lines = read_lines(store, season)
        for entry, value in worth[-1].items():
            mine = [line for key, line in lines.items() if key[0] == entry]
            gained = sum(float((line.earned * line.account).sum()) for line in mine)
            assert 1.0 + gained == pytest.approx(value, rel=1e-12)
        store.engine.dispose()
    assert worth[1] == pytest.approx(worth[0], rel=1e-12)
    refuses_forged_revisions(tmp_path / "revised.db")


def refuses_forged_revisions(db: Path) -> None:
    """A revised season is not contradicted; whoever hides a forgery behind a revision is."""
    honest = verify_arena(str(db))
    assert not honest.contradicted, honest.violations[:3]
    assert any("before a revision" in one for one in honest.unchecked)
    newest = "id = (SELECT max(id) FROM bookings WHERE kind = 'corrected')"
    for change in (
        f"restated_before = restated_before * 0.5 WHERE {newest}",
        f"earned = earned + 0.01 WHERE {newest}",
        f"nav = nav * 1.1 WHERE {newest}",
        f"position = 1 - position WHERE {newest}",
        f"exposure = exposure + 1 WHERE {newest}",
        "nav_before = nav_before * 1.5 WHERE id = (SELECT max(id) FROM bookings WHERE kind = "
        "'executed')",
        "nav_before = nav_before * 1.5 WHERE id = (SELECT max(id) FROM bookings WHERE kind = "
        "'settled')",
    ):
        forged = altered(db, db.with_name("forged.db"), f"UPDATE bookings SET {change}")
        assert verify_arena(str(forged)).exit_code == 1, change


def test_a_word_is_about_one_price_and_of_an_adjusted_one_about_its_roundings_too(store):
    season, at = season_of(6), midnight(parse_day("2026-01-03"))
    place = ("ONE", "2026-01-03")
    nearly = math.nextafter(100.0, 200.0)

    def seen(price: float, **how: bool) -> bool:
        return hold_or_accept(store, season, *place, price, "a jump", iso(at), **how)

    assert not seen(100.0)
    judge_bar(store, season.id, *place, "accept", "ann", iso(at))
    assert seen(100.0) and seen(nearly, adjusted=True) and not seen(100.1, adjusted=True)
    assert not seen(100.0)
    judge_bar(store, season.id, *place, "accept", "ann", iso(at))
    assert seen(100.0) and not seen(nearly)  # another one, which begins to wait anew
    (held,) = held_bars_of(store, season.id)
    assert (held.price, held.word) == (nearly, None)
    at += season.prices.look_again_s * SECOND
    assert not seen(nearly, alone=False) and seen(nearly)


def test_a_doubted_bar_waits_for_a_word(store):
    world = World(season_of(6), 6, {"2026-01-03": "wrong tick"}, seed=4)
    time = world.time

    async def both() -> None:
        playing = asyncio.create_task(live_through(world, store))
        at = midnight(parse_day("2026-01-03")) + DAY + 17 * MINUTE
        await asyncio.sleep((at - time.now()) / SECOND)
        (held,) = held_bars_of(store, "soak")
        assert (held.asset, held.session, held.word) == ("ONE", "2026-01-03", None)
        assert "is the limit" in held.reason
        judge_bar(store, "soak", "ONE", "2026-01-03", "refuse", "ann", iso(time.now()))
        await playing

    time.run(both())
    opened = store.scalar(select(rounds.c.opened_at).filter_by(asset="ONE", session="2026-01-03"))
    assert opened >= "2026-01-04T00:35"  # when the vendor had mended it
    check(store, world)


class PollingSeason:
    """A season of three sessions with one agent, anna, who answers at a polling."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.season = (
            store,
            season_of(3, entries=(Entry(id="anna", architecture="mcp"),)),
        )
        self.world = World(self.season, 3, {}, seed=1)
        self.time = self.world.time
        store.create_season(self.season, self.season.first)
        monkeypatch.setattr(WallClock, "now", lambda _: self.time.now())
        monkeypatch.setattr(arena_clock, "since_boot", lambda: self.time.passed)
        self.api = AgentApi(store)
        self.anna = self.api.agent_of(self.api.register("soak", "anna", now=self.season.first))

    async def play(self, deciding: object) -> None:
        how = {"clock": self.time.clock(), "agents": seated(anna=deciding), "beat_s": 6 * 3600.0}
        await Runner(season=self.season, store=self.store, feed=self.world, **how).run()

    def sell(self, nonce: str) -> int:
        """Answer whatever waits, and return its slot."""
        told = self.api.waiting(self.anna)
        said = {"recommended_action": "SELL", "reasoning": "I am sure"}
        offer = Offer(slot=told.slot, packet_sha256=told.packet_sha256, **said)
        self.api.submit(self.anna, nonce, offer)
        return told.slot

    def check(self, taken: int, others: set[str]) -> None:
        """The answer was taken, no other decision was; the journal holds."""
        made = {row.id: row for row in self.store.rows(select(decisions).filter_by(entry="anna"))}
        assert (made[taken].status, made[taken].action, made[taken].reasoning) == (
            "decided",
            "SELL",
            "I am sure",
        )
        assert {row.status for id, row in made.items() if id != taken} <= others
        found = verify_arena(str(self.store.engine.url.database))
        assert not found.violations, found.violations[:3]


@pytest.fixture
def polling(store, monkeypatch):
    return PollingSeason(store, monkeypatch)


def test_an_acknowledged_answer_counts_though_nobody_was_there_to_take_it(polling):
    """The worker dies, the agent answers in time, the worker comes back after the time to decide
    is over.
    """
    waiting = PollingAgent(OfferWatch(polling.api, poll_s=60.0), "anna")

    async def live() -> int:
        first = asyncio.create_task(polling.play(waiting))
        while polling.api.waiting(polling.anna) is None:
            await asyncio.sleep(20)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        polling.time.jump(3600)  # and the machine's clock is wrong, for a moment
        taken = polling.sell("in-time-1")
        polling.time.jump(-3600)
        await asyncio.sleep(polling.season.window_s + 60)
        with pytest.raises(
            Rejected, match="time to decide is over"
        ):  # its price may be known by now
            polling.sell("too-late-1")
        await polling.play(waiting)
        return taken

    polling.check(polling.time.run(live()), {"missed", "failed"})


def test_an_acknowledged_answer_counts_though_whoever_waited_had_just_given_up(polling):
    taken = []

    class GivesUp(ConstantAction):
        async def decide(self, *asked, **more):
            if polling.api.waiting(polling.anna) is not None and not taken:
                taken.append(polling.sell("just-in-time"))
            raise TimeoutError("nobody answered")

    polling.time.run(polling.play(GivesUp("BUY")))
    polling.check(taken[0], {"failed"})
