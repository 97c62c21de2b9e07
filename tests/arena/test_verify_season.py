"""A season in its database is played again from its data and replies; whatever was changed is
contradicted.
"""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import msgspec
import pytest
from tests.arena.conftest import Killed, go, kill_after, small_demo
from tests.arena.virtual import VirtualTime

from tradeassay.cli import main
from tradeassay.core.errors import TradeassayError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_arena.agents import Trend
from tradeassay_arena.agents.ama import InvestorAgent
from tradeassay_arena.recording import pack_season, replayed_differences
from tradeassay_arena.rounds.feed import AssetFacts, SnapshotFeed
from tradeassay_arena.season import BudgetRules, Season, demo_season
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.rows import packed, unpacked
from tradeassay_arena.state.store import Store
from tradeassay_arena.verifying import verify_arena
from tradeassay_arena.web.serving import play
from tradeassay_bench.core.arena import AgentChoice
from tradeassay_bench.core.dialogue import Usage
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm.scripted.model import ScriptedProvider
from tradeassay_bench.runs.store.archive import open_recording

OPPOSITE = {"BUY": "SELL", "SELL": "BUY", "HOLD": "BUY"}


def tiny() -> Season:
    demo = small_demo("investor-sensible", "trend", last="2022-03-18", id="tiny")
    return msgspec.structs.replace(demo, assets=demo.assets[1:3])


@pytest.fixture(scope="module")
def season(tmp_path_factory):
    """A season that was played honestly; whoever has it leaves it as it is."""
    return go(tiny(), tmp_path_factory.mktemp("season") / "arena.db")


def said(path: Path, **more: object) -> str:
    """Return all that verify says about a database."""
    found = verify_arena(str(path), **more)  # type: ignore[arg-type]  # a folder of pages
    return "\n".join(map(str, (*found.claims, *found.violations)))


def test_an_honest_season_is_re_derived_whole(season, tell):
    before = season.read_bytes()
    found = verify_arena(str(season))
    assert (found.violations, found.exit_code) == ((), 0)
    assert {one.outcome for one in found.claims} == {"re-derived"}
    assert season.read_bytes() == before and not list(season.parent.glob("*-wal"))
    assert "re-derived" in tell(["verify", str(season)])[0]


@pytest.mark.parametrize("pages", [False, True])
def test_an_arena_without_a_season_is_not_verified(tmp_path, tell, pages):
    db = tmp_path / "empty.db"
    open_engine(str(db)).dispose()
    words = ["verify", str(db)]
    if pages:
        tell(["site", str(db), "-o", str(tmp_path / "pages")])
        words += ["--pages", str(tmp_path / "pages")]
    out, err = tell(words, 2)
    assert out == "" and err.count("\n") == 1
    assert "empty.db' has no season: nothing was verified" in err


def test_an_arena_whose_seasons_were_deleted_is_contradicted(season, tmp_path, tell):
    copy = tmp_path / "arena.db"
    shutil.copyfile(season, copy)
    with closing(sqlite3.connect(copy)) as db:
        db.execute("DELETE FROM seasons")
        db.commit()
    assert "of the unknown season" in tell(["verify", str(copy)], 1)[0]


# -- forgeries in the database, beside the rows that tests/forgeries edits: every hash is computed again


def rehashed(db: sqlite3.Connection) -> None:
    """Compute every hash in a database again."""
    for id, spec in db.execute("SELECT id, spec FROM seasons").fetchall():
        db.execute("UPDATE seasons SET sha256 = ? WHERE id = ?", (sha256_bytes(spec.encode()), id))
    for id, packet in db.execute("SELECT id, packet FROM rounds").fetchall():
        db.execute(
            "UPDATE rounds SET packet_sha256 = ? WHERE id = ?", (sha256_bytes(packet.encode()), id)
        )


def forged(season: Path, path: Path, change: Callable[[sqlite3.Connection], object]) -> Path:
    shutil.copyfile(season, path)
    with closing(sqlite3.connect(path)) as db:
        change(db)
        rehashed(db)
        db.commit()
    return path


def another_spec(**changed: object) -> Callable[[sqlite3.Connection], None]:
    def change(db: sqlite3.Connection) -> None:
        db.execute(
            "UPDATE seasons SET spec = ?",
            (msgspec.structs.replace(tiny(), **changed).frozen.decode(),),
        )

    return change


def everywhere(old: str, new: str) -> Callable[[sqlite3.Connection], None]:
    """Replace a word in every text of every table."""

    def change(db: sqlite3.Connection) -> None:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in tables:
            for _, column, kind, *_ in db.execute(f"PRAGMA table_info({table})").fetchall():
                if "CHAR" in kind or kind == "TEXT":
                    db.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (old, new))

    return change


def rows_twice(db: sqlite3.Connection) -> None:
    """A table made anew without its keys, in which every booking is there twice."""
    db.executescript(
        "CREATE TABLE b AS SELECT * FROM bookings; INSERT INTO b SELECT * FROM bookings; DROP VIEW "
        "slots;"
        "DROP TABLE bookings; ALTER TABLE b RENAME TO bookings"
    )


CHANGES = {
    "no fee in the rules": another_spec(fee_bp=0.0),
    "a day less": another_spec(last="2022-03-17"),
    "another world": another_spec(
        assets=(msgspec.structs.replace(tiny().assets[0], dataset="synthetic/us:8"),)
    ),
    "an entry less": another_spec(entries=tiny().entries[:1]),
    "another model": another_spec(
        entries=(
            msgspec.structs.replace(tiny().entries[0], model="scripted/contrarian"),
            tiny().entries[1],
        )
    ),
    "a spec that nobody reads": lambda db: db.execute("UPDATE seasons SET spec = '{'"),
    "another company": everywhere(tiny().assets[0].symbol, "GOOD"),
    "another year": everywhere("2022-", "2023-"),
    "rows twice": rows_twice,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_season_is_contradicted(season, tmp_path, change):
    try:
        assert verify_arena(str(forged(season, tmp_path / "f.db", change))).exit_code == 1
    except TradeassayError:
        assert change is CHANGES["rows twice"]  # without its keys it is no arena's database


# -- forgeries by playing: journals without a contradiction in them, by a runner who cheats


def hindsight(patch: pytest.MonkeyPatch) -> None:
    feed = SnapshotFeed.open(tiny())

    def deliberate(self, packet, memory):  # type: ignore[no-untyped-def]
        yield from ()
        asset = tiny().asset(packet.symbol)
        dues = [
            due
            for due in feed.due(tiny())
            if due.asset == packet.symbol and due.session > packet.date
        ]
        later = feed.facts(asset, dues[0].session, dues[0].at, 1)
        return AgentChoice(
            action="BUY" if later.price > packet.price else "SELL", reasoning="one-month return"
        )

    patch.setattr(Trend, "deliberate", deliberate)


def contrary_to_its_reply(patch: pytest.MonkeyPatch) -> None:
    honest = InvestorAgent.deliberate

    def deliberate(self, packet, memory):  # type: ignore[no-untyped-def]
        choice = yield from honest(self, packet, memory)
        return msgspec.structs.replace(choice, action=OPPOSITE[choice.action])

    patch.setattr(InvestorAgent, "deliberate", deliberate)


def free_of_charge(patch: pytest.MonkeyPatch) -> None:
    honest = ScriptedProvider.attempt

    async def attempt(self, *args):  # type: ignore[no-untyped-def]
        return msgspec.structs.replace(await honest(self, *args), usage=Usage(usd=0.0))

    patch.setattr(ScriptedProvider, "attempt", attempt)


def with_facts(
    change: Callable[[AssetFacts], dict[str, object]],
) -> Callable[[pytest.MonkeyPatch], None]:
    def cheat(patch: pytest.MonkeyPatch) -> None:
        def facts(*asked):  # type: ignore[no-untyped-def]
            found = honest(*asked)
            return msgspec.structs.replace(found, **change(found))

        honest = SnapshotFeed.facts
        patch.setattr(SnapshotFeed, "facts", facts)

    return cheat


def bad_days_left_out(patch: pytest.MonkeyPatch) -> None:
    honest = SnapshotFeed.due
    patch.setattr(
        SnapshotFeed,
        "due",
        lambda *asked: tuple(due for due in honest(*asked) if due.session[-1] != "6"),
    )


def somebody_else(patch: pytest.MonkeyPatch) -> Season:
    """Plays with an entry more than the spec that is written down says."""
    told = tiny().frozen
    patch.setattr(Season, "frozen", property(lambda self: told))
    more = msgspec.structs.replace(tiny().entries[1], id="oracle")
    return msgspec.structs.replace(tiny(), entries=(*tiny().entries, more))


CHEATS = {
    "hindsight": hindsight,
    "contrary to its reply": contrary_to_its_reply,
    "free of charge": free_of_charge,
    "dearer prices": with_facts(lambda found: {"price": found.price * 1.02}),
    "withheld news": with_facts(lambda found: {"news": (), "annual_report": None}),
    "bad days left out": bad_days_left_out,
    "somebody else": somebody_else,
}


@pytest.mark.journey
@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS)
def test_a_season_played_by_a_cheat_is_contradicted(tmp_path, cheat):
    with pytest.MonkeyPatch.context() as patch:
        go(cheat(patch) or tiny(), tmp_path / "f.db")
    assert verify_arena(str(tmp_path / "f.db")).exit_code == 1


# -- what cannot be made again is named


def test_a_model_that_did_not_answer_is_named_with_its_count(season, tmp_path):
    """A runner who drops a reply and says that none came cannot be contradicted, and does not
    pass in silence.
    """
    live = tuple(
        msgspec.structs.replace(one, model="openai/gpt-x" if one.model else "")
        for one in tiny().entries
    )
    path = forged(season, tmp_path / "live.db", another_spec(entries=live))
    whole = verify_arena(str(path))
    assert whole.exit_code == 3 and not whole.violations, whole.violations[:3]
    assert [one for one in whole.unchecked if "a claim of the runner" in one]

    def silent(db: sqlite3.Connection) -> None:
        last = db.execute("SELECT max(slot) FROM calls").fetchone()[0]
        db.execute("DELETE FROM calls WHERE slot = ?", (last,))

    assert "the replies on record end before its decision" in said(
        forged(path, tmp_path / "f.db", silent)
    )
    assert not [one for one in whole.unchecked if "tokens" in one]

    def free(db: sqlite3.Connection) -> None:
        for slot, number, reply in db.execute("SELECT slot, number, reply FROM calls").fetchall():
            without = {**msgspec.json.decode(unpacked(reply)), "usage": {"usd": 0.0}}
            row = (packed(msgspec.json.encode(without)), slot, number)
            db.execute("UPDATE calls SET reply = ? WHERE slot = ? AND number = ?", row)
        db.execute(
            "UPDATE decisions SET input_tokens = 0, output_tokens = 0, usd = 0.0 WHERE calls > 0"
        )

    assert "tokens: cannot be checked: openai/gpt-x counts" in said(
        forged(path, tmp_path / "g.db", free)
    )


@pytest.mark.journey
@pytest.mark.slow_for("busy machine")
@pytest.mark.parametrize("busy", [False, True], ids=["hangs", "busy machine"])
def test_a_scripted_model_that_ran_out_of_time_is_named_and_not_accused(
    tmp_path, monkeypatch, busy
):
    """Whoever says so where the replies are there is contradicted, and whoever takes them away
    is counted.
    """
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    desk = tuple(
        entry for entry in demo_season().entries if entry.id in ("trade-sensible", "trend")
    )
    changed = {"last": "2022-03-16", "entries": desk, "assets": tiny().assets[:1], "timeout_s": 1}
    season = msgspec.structs.replace(tiny(), **changed)
    honest, asked, time = ScriptedProvider.attempt, count(1), VirtualTime(0)

    async def attempt(self, *args):  # type: ignore[no-untyped-def]
        if next(asked) == 4:  # the last of four questions that are asked together
            await (asyncio.sleep(0.5) if busy else asyncio.Event().wait())
            time.passed += 0.6
            await asyncio.sleep(0)  # all four are answered, and the desk is not told any more
        return await honest(self, *args)

    db, late = (
        tmp_path / "arena.db",
        "cannot be checked: {} decisions ran out of time, by the operator's word",
    )
    with monkeypatch.context() as patch:
        patch.setattr(ScriptedProvider, "attempt", attempt)
        store = Store(open_engine(str(db), durable=False))
        time.run(play(season, store, None))
        store.engine.dispose()
    with closing(sqlite3.connect(db)) as read:
        row = read.execute(
            "SELECT id, calls FROM decisions WHERE failures LIKE '%timeout%'"
        ).fetchall()
        assert row == [(1, 4)]
        assert read.execute("SELECT count(*) FROM calls WHERE slot = 1").fetchone() == (
            4 if busy else 3,
        )

    recording, again = tmp_path / "season.tar.xz", tmp_path / "again.db"
    pack_season(db, recording, engine="", precision="")
    assert replayed_differences(open_recording(recording)) == []
    assert main(["arena", "run", "--recordings", str(recording), "--db", str(again)]) == 0
    live = (msgspec.structs.replace(season.assets[0], dataset="live/yfinance"),)
    unproven = another_spec(**{**msgspec.structs.asdict(season), "assets": live})
    for one in (db, again, forged(db, tmp_path / "live.db", unproven)):
        assert main(["verify", str(one)]) == 3 and late.format(1) in said(one)

    def ran_out(db: sqlite3.Connection) -> None:
        db.execute(
            "UPDATE decisions SET status = 'failed', action = 'HOLD', confidence = NULL, "
            "allocation = NULL,"
            " reasoning = '', talk = '[]', failures = (SELECT failures FROM decisions WHERE id = 1)"
            " WHERE entry = 'trade-sensible' AND session = '2022-03-16'"
        )

    def without_replies(db: sqlite3.Connection) -> None:
        ran_out(db)
        db.execute("DELETE FROM calls WHERE slot = (SELECT max(slot) FROM calls)")

    said_so = said(forged(db, tmp_path / "f.db", ran_out))
    assert "trade-sensible: its status is 'failed', in the replay 'decided'" in said_so
    assert late.format(1) in said_so
    assert late.format(2) in said(forged(db, tmp_path / "g.db", without_replies))


def test_decisions_over_the_budget_are_named_and_not_accused(tmp_path):
    path = go(msgspec.structs.replace(tiny(), budget=BudgetRules(tokens=9000)), tmp_path / "f.db")
    found = verify_arena(str(path))
    assert found.exit_code == 3 and not found.violations
    assert any("decisions were over the budget" in one for one in found.unchecked)


def test_a_season_that_is_cut_short_says_so(season, tmp_path):
    def cut(db: sqlite3.Connection) -> None:
        ids = "SELECT id FROM rounds WHERE session > '2022-03-15'"
        for table in ("bookings", "calls"):
            db.execute(
                f"DELETE FROM {table} WHERE slot IN (SELECT id FROM decisions WHERE round IN "
                f"({ids}))"
            )
        db.execute(f"DELETE FROM decisions WHERE round IN ({ids})")
        db.execute(f"DELETE FROM rounds WHERE id IN ({ids})")

    assert "played yet" in said(forged(season, tmp_path / "f.db", cut))


@pytest.mark.journey
def test_a_season_under_way_is_not_accused(tmp_path):
    """A replay that is killed after any transaction leaves a journal that verifies, and says
    what is missing.
    """

    for after in (9, 30, 41):
        store = Store(open_engine(str(tmp_path / f"{after}.db"), durable=False), kill_after(after))
        with pytest.raises(Killed):
            asyncio.run(play(tiny(), store, None))
        store.engine.dispose()
        found = verify_arena(str(tmp_path / f"{after}.db"))
        assert not found.violations, (after, found.violations[:3])
        assert found.exit_code == 3 and any("not played yet" in one for one in found.unchecked)


# -- pages


@pytest.mark.journey
def test_written_pages_are_those_of_the_journal(season, tmp_path):
    shutil.copyfile(season, tmp_path / "arena.db")
    site = tmp_path / "site"
    assert main(["site", str(tmp_path / "arena.db"), "-o", str(site)]) == 0
    assert main(["verify", str(season), "--pages", str(site)]) == 0
    shown = ("seasons/tiny/index.html", "seasons/tiny/standings.json")
    for name in shown:
        (site / name).write_bytes((site / name).read_bytes().replace(b"tiny", b"+999.0 %"))
    (site / "zh/seasons/tiny/feed/index.html").unlink()
    (site / "seasons/tiny/winner.html").write_text("we won")
    words = said(season, pages=site)
    assert all(f"{name} is not what the journal gives" in words for name in shown)
    assert "zh/seasons/tiny/feed/index.html is missing" in words
    assert "seasons/tiny/winner.html is no page of this arena" in words
    # The arena's own server writes no Chinese pages.
    assert main(["site", str(tmp_path / "arena.db"), "-o", str(tmp_path / "english")]) == 0
    shutil.rmtree(tmp_path / "english" / "zh")
    assert main(["verify", str(season), "--pages", str(tmp_path / "english")]) == 0


@pytest.mark.journey
def test_what_people_do_with_pages_and_databases_accuses_nobody(season, tmp_path, tell):
    """A desktop looks at the pages, git changes their line ends, another processor rounds
    otherwise.
    """
    copy, pages = tmp_path / "arena.db", tmp_path / "site"
    shutil.copyfile(season, copy)
    tell(["site", str(copy), "-o", str(pages)])
    for folder in [pages, *(place for place in pages.rglob("*") if place.is_dir())]:
        for name in (".DS_Store", "._index.html", "desktop.ini"):
            (folder / name).write_bytes(b"\0\0\0\1Bud1")
    assert "re-derived" in tell(["verify", str(copy), "--pages", str(pages)])[0]
    for page in pages.rglob("[!.]*.html"):
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    assert "re-derived" in tell(["verify", str(copy), "--pages", str(pages)])[0]

    def rounded(share: float) -> Callable[[sqlite3.Connection], object]:
        columns = (("bookings", "nav"), ("bookings", "nav_before"), ("rounds", "base_price"))
        return lambda db: [
            db.execute(f"UPDATE {table} SET {name} = {name} * {1 + share}")
            for table, name in columns
        ]

    tell(["verify", str(forged(season, copy, rounded(1e-11)))])
    tell(["verify", str(forged(season, copy, rounded(1e-7)))], 1)


def test_standings_come_from_the_journal_alone(season, tmp_path, tell):
    """No table but those that verify plays again moves a figure."""
    honest = tell(["arena", "standings", "--db", str(season), "--json"])[0]
    with closing(sqlite3.connect(season)) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
    sources = {"seasons", "rounds", "decisions", "bookings", "arena_schema"}
    for table in sorted(set(tables) - sources - {"sqlite_sequence"}):
        path = forged(
            season,
            tmp_path / f"{table}.db",
            lambda db, table=table: db.execute(f"DELETE FROM {table}"),
        )
        assert tell(["arena", "standings", "--db", str(path), "--json"])[0] == honest, table


# -- how a database is read

WRITER = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute(f"PRAGMA journal_mode={sys.argv[2]}")
db.execute("PRAGMA cache_size=1")
db.execute("BEGIN")
db.execute("UPDATE bookings SET nav = nav * 2")
db.execute("UPDATE calls SET reply = request")
if sys.argv[3] == "commit":
    db.execute("COMMIT")
os._exit(0)
"""


@pytest.mark.journey
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("end", ["commit", "crash"])
def test_a_writer_that_died_is_undone_or_kept_as_everybody_reads_it(season, tmp_path, mode, end):
    path = Path(shutil.copyfile(season, tmp_path / "arena.db"))
    subprocess.run(
        [sys.executable, "-c", WRITER, str(path), mode, end], check=True, env={**os.environ}
    )

    def sizes() -> dict[str, int]:
        return {one.name: one.stat().st_size for one in tmp_path.iterdir() if "shm" not in one.name}

    beside = sizes()
    if mode == "DELETE" and end == "crash":
        assert beside["arena.db-journal"] > 0 and path.read_bytes() != season.read_bytes()
    assert verify_arena(str(path)).exit_code == (1 if end == "commit" else 0)
    assert sizes() == beside


@pytest.mark.parametrize(
    "program",
    [
        "CREATE VIEW rewards2 AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT x FROM n",
        "CREATE TRIGGER t AFTER INSERT ON seasons BEGIN DELETE FROM rewards; END",
    ],
)
def test_a_database_that_computes_is_not_read(season, tmp_path, program):
    """A view in a table's place could keep a reader busy for ever."""
    with pytest.raises(RunError, match="which no arena has"):
        verify_arena(str(forged(season, tmp_path / "arena.db", lambda db: db.execute(program))))
