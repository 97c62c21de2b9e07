"""What only appears when a season runs for long: clocks jump, assets halt, calendars end,
operators amend.
"""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import msgspec
import pytest
from sqlalchemy import select, text
from tests.arena.conftest import altered, free_port, go, seated, small_demo, wait_for
from tests.arena.test_soak import World as Market
from tests.arena.virtual import VirtualTime

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.amending import AmendmentRequest, amend as _amend
from tradeassay_arena.clock import LiveClock
from tradeassay_arena.queries.seasons import read_season
from tradeassay_arena.rounds.feed import LiveFeed, calendars_end
from tradeassay_arena.rounds.health import Health, read_workers
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Amendment, Asset, Change, Entry, Season
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import decisions, rounds
from tradeassay_arena.verifying import verify_arena
from tradeassay_arena.web.status import arena_health
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import SECOND, FixedClock, WallClock, iso, midnight, parse_day

DAYS = [f"2026-11-{day:02d}" for day in range(2, 12)]
YEAR_S = 365 * 86_400.0


class World:
    """Two assets and two rules, played on a virtual clock that is watched by another one."""

    def __init__(self, tmp_path: Path) -> None:
        self.season = Season(
            id="long",
            assets=tuple(
                Asset(symbol=name, kind="stock", dataset="live/stub") for name in ("GOOD", "HALT")
            ),
            entries=(Entry(id="bull", architecture="rule", params={"rule": "buy"}),),
            first=DAYS[0],
            last=DAYS[-3],
        )
        self.market = Market(self.season, len(DAYS) - 1, {}, seed=5)
        self.time = self.market.time
        self.store = Store(open_engine(str(tmp_path / "long.db"), durable=False))
        self.states: list[tuple[str, tuple[tuple[str, str], ...]]] = []

    def run(self, *meanwhile: Callable[[], object]) -> None:
        """Play the season; each of ``meanwhile`` is called at noon of one of its days, from the
        second on.
        """
        runner = Runner(
            season=self.season,
            store=self.store,
            feed=self.market,  # type: ignore[arg-type]  # the test's own
            clock=LiveClock(
                self.time, asyncio.sleep, step_s=3600.0, steady=lambda: self.time.passed
            ),
            agents=seated(bull=ConstantAction("BUY")),
            real_time=lambda: self.time.passed,
            beat_s=1800.0,
            longest_s=60.0,
        )

        async def watched() -> None:
            playing = asyncio.create_task(runner.run())
            calls = dict(enumerate(meanwhile))
            while not playing.done():
                told = runner.health.told()
                self.states.append(
                    (told.state, tuple((one.part, one.level) for one in told.troubles))
                )
                here = int(self.time.passed // 86_400)
                if self.time.passed % 86_400 >= 11 * 3600 and here - 1 in calls:
                    made = calls.pop(here - 1)()
                    if asyncio.iscoroutine(made):
                        await made
                await asyncio.sleep(600)
            await playing

        self.time.run(watched())

    def amend(
        self, change: Change, what: str, by: str = "operator", **given: object
    ) -> tuple[Amendment, ...]:
        asked = AmendmentRequest(
            change=change, what=what, by=by, now=iso(self.time.now()), values=given
        )
        return _amend(self.store, read_season(self.store, "long"), asked)

    def played(self, asset: str) -> list[str]:
        query = select(rounds.c.session).filter_by(asset=asset).order_by(rounds.c.session)
        return [day for (day,) in self.store.rows(query)]


def test_a_clock_that_is_wrong_for_a_minute_loses_nothing(tmp_path):
    """A year ahead for a minute, half a day back for ten seconds; a clock that stays set is
    believed.
    """
    world = World(tmp_path)

    async def wrong(by: float, seconds: float) -> None:
        world.time.jump(by)
        await asyncio.sleep(seconds)
        world.time.jump(-by)

    world.run(
        lambda: wrong(YEAR_S, 60.0), lambda: wrong(-43_200.0, 10.0), lambda: wrong(YEAR_S, 200.0)
    )
    assert world.store.skipped("long") == ()
    assert world.played("GOOD") == world.played("HALT") == DAYS[:-2]
    assert set(world.store.rows(select(decisions.c.status))) == {("decided",)}

    time = VirtualTime(0)
    clock = LiveClock(time, steady=lambda: time.passed)
    assert not clock.certain  # nothing is known of a clock that was only just looked at
    time.passed += 301
    assert clock.certain and clock.now() == 301 * SECOND
    time.jump(YEAR_S)
    assert clock.now() == 301 * SECOND and "+31,536,000 s" in clock.jumped and not clock.certain
    time.passed += 300
    assert clock.now() == (601 + YEAR_S) * SECOND and clock.certain and not clock.jumped


def test_sessions_are_reopened_entries_withdrawn_and_halted_assets_retired(tmp_path):
    world = World(tmp_path)
    told: list[str] = []

    def missing(symbol: str, day: str) -> bool:
        return symbol == "HALT" and (day >= DAYS[4] or (day == DAYS[1] and not told))

    def reopen() -> None:
        assert [(gap.asset, gap.session) for gap in world.store.skipped("long")] == [
            ("HALT", DAYS[1])
        ]
        told.append("the vendor has it now")
        world.amend("reopen", DAYS[1])

    def retire() -> None:
        made = world.amend("retire", "HALT", by="ann")
        assert [(one.number, one.what, one.day, one.by) for one in made] == [
            (3, "HALT", DAYS[3], "ann")
        ]
        with pytest.raises(UserError, match="already"):
            world.amend("retire", "HALT", by="ann")

    world.market.missing = missing
    calm = [lambda: None] * 2
    world.run(*calm[:1], reopen, lambda: world.amend("withdraw", "bull"), *calm, retire)
    assert {state for state, _ in world.states} <= {"live", "finished"}  # never stalled
    assert any(("asset HALT", "alarm") in troubles for _, troubles in world.states)
    assert world.played("GOOD") == DAYS[:-2] and world.played("HALT") == DAYS[:4]
    assert {gap.session for gap in world.store.skipped("long")} == {
        *DAYS[4:6]
    }  # and none after it was retired
    rows = world.store.rows(select(decisions).order_by(decisions.c.session))
    assert [row.status for row in rows if row.session == DAYS[1]] == ["decided"] * 4  # HALT's, too
    mine = [row for row in rows if (row.entry, row.asset) == ("bull", "GOOD")]
    assert [row.status for row in mine] == ["decided"] * 3 + ["missed"] * 5
    assert f"withdrawn by the operator on {DAYS[2]}" in mine[-1].failures
    assert {row.status for row in rows if row.entry != "bull"} == {"decided"}
    for change, what, why in (
        ("withdraw", "buy-and-hold", "cannot be changed"),
        ("withdraw", "bull", "already"),
        ("withdraw", "nobody", "no entry"),
        ("reopen", DAYS[1], "was skipped"),
    ):
        with pytest.raises(UserError, match=why):
            world.amend(change, what)


def test_only_what_stops_the_season_makes_the_arena_unwell(store):
    """So does a database that takes no beat: a full disk can be read."""
    health, said = Health("s", "w", live=True), list[str]()
    health.say = said.append
    health.trouble("news", SourceError("a feed answers 404"), "warning")
    health.trouble("asset X", SourceError("no bar"), "alarm")
    health.beat(store)
    (told,) = read_workers(store)
    assert told.state == "live" and [one.level for one in told.troubles] == ["warning", "alarm"]
    assert arena_health(store, health).ok and len(said) == 2
    with store.change() as db:
        db.execute(text("ALTER TABLE workers RENAME TO gone"))
    health.beat(store, force=True)
    health.fine("database")  # as whoever reads it says
    assert (
        health.told().state == "stalled"
        and said[2].startswith("database writing: ")
        and len(said) == 3
    )
    with store.change() as db:
        db.execute(text("ALTER TABLE gone RENAME TO workers"))
    health.trouble("round", SourceError("?"))
    assert health.beat(store, force=True) and not arena_health(store, health).ok
    for part in ("round", "news", "asset X"):
        health.fine(part)
    assert health.told().state == "live" and said[-1] == "everything works again"


def test_a_calendar_that_ends_is_said_months_before_and_goes_on_by_weekdays():
    asset = Asset(symbol="600519.SS", kind="stock", dataset="live/yfinance")
    season = Season(id="s", assets=(asset,), entries=(), first="2026-12-28")
    now = midnight(parse_day("2027-01-04"))
    found = [
        due for due in LiveFeed(clock=FixedClock(now)).due(season) if due.session >= "2026-12-30"
    ]
    weekdays = ["2026-12-30", "2026-12-31", "2027-01-01", "2027-01-04", "2027-01-05"]
    assert [due.session for due in found[:5]] == weekdays
    assert {iso(due.at)[11:16] for due in found} == {"07:15"}
    for day, expected in (
        ("2025-11", (False, False)),
        ("2026-03", (True, False)),
        ("2026-10", (True, True)),
    ):
        words, soon = calendars_end(season, midnight(parse_day(f"{day}-01")))
        assert (bool(words), soon) == expected
    assert "XSHG after 2026-12-31" in words
    over = msgspec.structs.replace(season, last="2026-12-30")
    assert calendars_end(over, now) == ("", False)


@pytest.mark.journey
def test_an_amended_season_is_verified_with_its_amendments(tmp_path, tell):
    """Through the command line: played half way, amended, played to its end, verified, forged."""
    season = small_demo("investor-sensible", "trend", last="2022-03-22", id="tiny")
    season = msgspec.structs.replace(season, assets=season.assets[1:3])
    file, stock = tmp_path / "arena.db", season.assets[0].symbol
    go(season, file, "2022-03-17")
    db = ("--db", str(file))
    (retired,) = json.loads(tell(["arena", "amend", "retire", stock, *db, "--json"])[0])
    assert (retired["change"], retired["day"]) == ("retire", "2022-03-17")
    tell(["arena", "amend", "withdraw", "trend", "--by", "ann", *db])
    tell(["arena", "amend", "retire", stock, "--day", "2022-03-15", *db], 2)
    go(season, file)
    found = verify_arena(str(file))
    assert not found.contradicted, found.violations
    assert any("2 by the operator's word" in claim.why for claim in found.claims)
    for forged in (
        "UPDATE events SET body = replace(body, '2022-03-17', '2022-03-18') WHERE body LIKE "
        "'%retire%'",
        "DELETE FROM events WHERE body LIKE '%withdraw%'",
        "UPDATE decisions SET status = 'decided', failures = NULL WHERE status = 'missed'",
    ):
        assert verify_arena(str(altered(file, tmp_path / "forged.db", forged))).contradicted, forged


def test_an_amendment_is_late_once_a_session_that_it_changes_was_opened():
    """The one rule of whoever writes it down and of whoever verifies it."""
    opened = {"GOOD": "2026-11-06", "HALT": "2026-11-04"}
    for change, what, first in (  # and the first day for which it is in time
        ("join", "bear", "2026-11-07"),
        ("rule", "fee_bp", "2026-11-07"),
        ("withdraw", "bull", "2026-11-06"),
        ("extend", "last", "2026-11-06"),
        ("retire", "HALT", "2026-11-04"),
        ("retire", "GOOD", "2026-11-06"),
        ("add", "HALT", "2026-11-04"),
        ("reopen", "HALT", "2026-11-05"),
        ("add", "NEW", DAYS[0]),
        ("reopen", "NEW", DAYS[0]),
        ("rename", "bull", DAYS[0]),
    ):
        made = [
            Amendment(number=1, at="", by="", change=change, what=what, day=day) for day in DAYS
        ]
        assert [one.day for one in made if not one.late(opened)] == DAYS[DAYS.index(first) :], (
            change,
            what,
        )
        assert not any(one.late({}) for one in made)


@pytest.mark.slow
def test_a_roster_that_lives_is_counted_from_the_day_and_verified(tmp_path, tell):
    """Through the command line: an entry joins, is renamed, an asset comes, the fee changes, the
    season lasts.
    """
    demo = small_demo("trend", last="2022-04-06", id="alive")
    season = msgspec.structs.replace(demo, assets=demo.assets[:1])
    file, coin = tmp_path / "arena.db", demo.assets[2]

    def amend(*words: str, status: int = 0) -> str:
        return tell(["arena", "amend", *words, "--db", str(file)], status)[1]

    go(season, file, "2022-03-17")
    amend("join", "bear", "architecture=rule", "rule=sell")
    amend("rename", "trend", "label=Old Faithful")
    amend("add", coin.symbol, "kind=crypto", f"dataset={coin.dataset}", "--day", "2022-03-21")
    amend("rule", "fee_bp=100", "--day", "2022-03-24")
    amend("extend", "2022-04-19")
    for words, why in (
        (("join", "bear", "architecture=rule", "rule=sell"), "already"),
        (("join", "bull", "architecture=ruel"), "did you mean rule"),
        (
            ("join", "bull", "architecture=rule", "rule=buy", "--day", "2022-03-17"),
            "has been played",
        ),
        (("add", "NOBODY", "kind=stock", f"dataset={demo.assets[0].dataset}"), "has no 'NOBODY'"),
        (("rule", "cash=5"), "cannot be changed"),
        (("rule", "fee_bp=much"), "not a number"),
        (("rule", "fee_bp=-1"), "out of range"),
        (("rule", "fee_bp=3", "window_s=60"), "2 rules were given"),
        (
            ("rule", "fee_bp=3", "--day", "2022-03-15"),
            "has been played (name a later one: --day DAY)",
        ),
        (("extend", "2022-04-01"), "lasts until"),
        (
            ("join", "ghost", "architecture=rule", "rule=sell", "--day", "2022-12-01"),
            "ends on 2022-04-19",
        ),
        (("withdraw", "trend", "--day", "2030-01-01"), "ends on 2022-04-19"),
        (("join", "ghost", "id=trend", "architecture=rule", "rule=sell"), "its id is 'ghost'"),
        (
            ("join", "ghost", "label= Ｂuy and HOLD", "architecture=rule", "rule=sell"),
            "belongs to 'buy-and-hold'",
        ),
        (("rename", "bear", "label=old faithful"), "belongs to 'trend'"),
        (("rename", "bear", "label=abc\u202edef"), "invisible"),
        (("withdraw", "trend", "--by", "ann\u202e"), "invisible"),
        (("withdraw", "buy-and-hold"), "cannot be changed"),
        (("retire", demo.assets[0].symbol, "--day", "2022-03-15"), "has been played"),
        (("reopen", "2022-03-16"), "was skipped"),
    ):
        assert why in amend(*words, status=2), words
    # Two at once: who comes second does not write over the first.
    store = Store(open_engine(str(file), durable=False))
    found = read_season(store, "alive")
    asked = AmendmentRequest(
        change="rename", what="bear", values={"label": "The bear"}, now=iso(WallClock().now())
    )
    _amend(store, found, asked)
    with pytest.raises(UserError, match="has advanced in the meantime"):
        _amend(store, found, asked)
    with pytest.raises(UserError, match="newest amendment is of"):
        earlier = msgspec.structs.replace(asked, now="2021-01-01T00:00:00Z")
        _amend(store, read_season(store, "alive"), earlier)
    store.engine.dispose()
    go(season, file)

    with closing(sqlite3.connect(file)) as db:
        first = dict(
            db.execute("SELECT entry || asset, min(session) FROM decisions GROUP BY 1").fetchall()
        )
        booked = (
            "FROM bookings b JOIN decisions d ON d.id = b.slot WHERE b.number = 0 AND "
            "b.stage "
            "= 'live'"
        )
        paid = f"SELECT b.entry || d.session, b.fee / b.nav_before {booked} AND b.fee > 0"
        fees = dict(db.execute(paid).fetchall())
    stock = demo.assets[0].symbol
    assert first[f"trend{stock}"] == "2022-03-14" and first[f"bear{stock}"] == "2022-03-18"
    assert first[f"bear{coin.symbol}"] == first[f"trend{coin.symbol}"] == "2022-03-21"
    assert fees["bear2022-03-18"] == pytest.approx(5e-4, rel=1e-9)
    late = [fee for place, fee in fees.items() if place[-10:] >= "2022-03-24"]
    assert late and all(min(abs(fee / 0.01 - sides) for sides in (1, 2)) < 1e-9 for fee in late)

    board = json.loads(tell(["arena", "standings", "--db", str(file), "--json"])[0])
    rows = {row["entry"]: row for row in board["rows"]}
    assert rows["bear"]["since"] == "2022-03-18" and rows["trend"]["since"] is None
    assert rows["trend"]["label"] == "rule: Old Faithful"
    assert "sessions since 2022-03-18, other columns count since joining" in board["note"]
    assert {rows["bear"]["rank"], rows["trend"]["rank"]} == {1, 2}

    pages = tmp_path / "pages"
    tell(["site", str(file), "-o", str(pages)])
    rules = (pages / "seasons/alive/rules/index.html").read_text()
    told = ("bear joins on 2022-03-18.", "Old Faithful", "fee_bp is 100", "lasts until 2022-04-19")
    assert [words for words in told if words not in rules] == []
    found = verify_arena(str(file), pages=pages)
    assert not found.contradicted, found.violations
    assert any("6 by the operator's word" in claim.why for claim in found.claims)
    amended = "kind = 'amended' AND body LIKE"
    for forged in (
        f"UPDATE events SET body = replace(body, 'sell', 'buy!') WHERE {amended} '%join%'",
        f"UPDATE events SET body = replace(body, '\"100\"', '\"1\"') WHERE {amended} '%fee_bp%'",
        f"DELETE FROM events WHERE {amended} '%rename%Old Faithful%'",
        f'UPDATE events SET body = replace(body, \'"at":"20\', \'"at":"19\') WHERE {amended} '
        "'%extend%'",
        f"DELETE FROM events WHERE {amended} '%extend%'",
        "INSERT INTO events (season, kind, at, body) SELECT season, kind, at, body FROM events"
        f" WHERE {amended} '%join%'",
        "DELETE FROM decisions WHERE entry = 'bear' AND session = '2022-03-18'",
    ):
        assert verify_arena(str(altered(file, tmp_path / "forged.db", forged))).contradicted, forged


@pytest.mark.slow
def test_a_stranger_applies_is_approved_plays_and_is_revoked(tmp_path):
    """The arena is started as a user starts it; the guest has nothing but HTTP, the operator the
    command line.
    """
    port, file = free_port(), tmp_path / "arena.db"
    serve = [
        sys.executable,
        "-m",
        "tradeassay",
        "arena",
        "serve",
        "--replay",
        "synthetic",
        "--speed",
        "1d/4s",
    ]
    with subprocess.Popen([*serve, "--apply", "--port", str(port), "--db", str(file)]) as serving:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as web:
                wait_for(lambda: web.get("/healthz").status_code == 200)
                wait_for(lambda: "session" in web.get("/seasons/demo-7/standings.json").text)
                ask = {
                    "season": "demo-7",
                    "entry": "guest",
                    "label": "A guest",
                    "contact": "g@example.org",
                }
                answer = web.post("/agents/applications", json=ask)
                assert answer.status_code == 200, answer.text
                mine = {"authorization": f"Bearer {answer.json()['token']}"}
                assert (
                    web.post("/agents/applications", json=ask).status_code == 422
                )  # the name is taken
                assert web.get("/agents/me/status", headers=mine).json()["status"] == "waiting"
                assert web.get("/agents/me/packet", headers=mine).status_code == 401
                assert main(["arena", "amend", "approve", "guest", "--db", str(file)]) == 0
                assert main(["arena", "amend", "approve", "guest", "--db", str(file)]) == 2
                given = []

                def came() -> bool:
                    given.append(web.get("/agents/me/packet?wait=5", headers=mine))
                    return given[-1].status_code == 200

                wait_for(came)
                told = given[-1].json()
                offer = {"recommended_action": "BUY", "reasoning": "because", "confidence": 0.6}
                sent = {"slot": told["slot"], "packet_sha256": told["packet_sha256"], **offer}
                headers = {**mine, "idempotency-key": "guest-00001"}
                assert web.post("/agents/me/choice", json=sent, headers=headers).status_code == 200
                wait_for(
                    lambda: (
                        web.get("/agents/me/status", headers=mine).json()["counts"].get("decided")
                    )
                )
                status = web.get("/agents/me/status", headers=mine).json()
                assert (
                    status["joined"] <= status["newest"]["session"]
                    and status["newest"]["action"] == "BUY"
                )
                assert "g@example.org" not in web.get("/seasons/demo-7/rules/").text
                wait_for(lambda: "A guest" in web.get("/seasons/demo-7/rules/").text)
                assert main(["arena", "amend", "revoke", "guest", "--db", str(file)]) == 0
                assert web.get("/agents/me/packet", headers=mine).status_code == 401
                assert web.get("/agents/me/status", headers=mine).json()["status"] == "revoked"
        finally:
            serving.terminate()
            serving.wait(60)
