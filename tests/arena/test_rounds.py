"""A season is played once, whatever happens on the way."""

import sqlite3
from contextlib import closing
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np
import pytest
from sqlalchemy import func, select, update
from tests.arena.conftest import Killed, altered, kill_after, seated
from tests.arena.virtual import VirtualTime

from tradeassay.account.daily_target import next_position, target_growth
from tradeassay.arena.clock import ReplayClock, parse_speed
from tradeassay.arena.queries.seasons import state_of
from tradeassay.arena.season import Asset, Entry, Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import calls, rounds, slots, workers
from tradeassay.core import secrets
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.time import DAY, parse_iso


def test_a_season_is_decided_once_and_settled_by_the_next_price(played):
    table, finished = played
    dues = table.feed.due(table.season)
    assert finished == sum(not due.closing for due in dues)
    by_status = dict(table.rows(select(slots.c.status, func.count()).group_by(slots.c.status)))
    assert by_status == {"decided": 3 * finished} and table.model.asked == 2 * finished
    assert table.rows(select(rounds.c.id).where(rounds.c.phase != "settled")) == []
    store = table.runner().store
    # The memory is written with the decision.
    count = len([due for due in dues if due.asset == "AAJX" and not due.closing])
    assert store.memory("small", "thinker", "AAJX") == str(count).encode()
    for due in dues:  # and agents are told only what was known
        found = store.round("small", due.asset, due.session)
        assert (found is None) == due.closing
        if found is not None:
            packet = store.packet(found.id)
            assert parse_iso(packet.decided_at) == due.at
            assert all(parse_iso(item.published_at) <= due.at for item in packet.news)
            assert len(packet.history) <= 10 and all(point.date < packet.date for point in packet.history)
    store.engine.dispose()


def test_earnings_are_those_of_the_rules(played):
    table, _ = played
    live = (slots.c.entry == "thinker", slots.c.asset == "AHVQ", slots.c.stage == "live")
    query = select(slots.c.action, slots.c.earned, slots.c.nav, rounds.c.price).where(*live)
    found = table.rows(query.join(rounds, rounds.c.id == slots.c.round).order_by(slots.c.session))
    prices = np.array([row.price for row in found])
    actions = [row.action for row in found][:-1]
    held = np.array(
        [*accumulate(actions, lambda before, action: next_position(action, before, "keep"), initial=0)][1:]
    )
    expected = target_growth(held, prices[1:] / prices[:-1] - 1, 5.0) - 1
    assert [row.earned for row in found][:-1] == pytest.approx(list(expected), abs=1e-12)
    assert found[-2].nav == pytest.approx(float(np.prod(1 + expected)), rel=1e-12)


def test_a_second_process_finds_nothing_left_to_do_and_a_changed_spec_is_refused(played):
    table, _ = played
    before, asked = table.everything(), table.model.asked
    table.play()
    assert table.everything() == before and table.model.asked == asked
    with pytest.raises(UserError, match="frozen with another spec"):
        table.play(season=msgspec.structs.replace(table.season, warmup=3))
    store = table.runner().store
    assert state_of(store, table.season).status == "finished"  # who is refused says nothing of what is on record
    store.engine.dispose()


@pytest.mark.slow
def test_killed_between_any_two_commits_it_ends_the_same(table, tmp_path):
    """For every commit of a short season: die right after it, start again, compare everything."""
    short = msgspec.structs.replace(table.season, assets=table.season.assets[1:], last="2022-06-03", warmup=1)
    whole = type(table)(str(tmp_path / "whole.db"), short, table.feed)
    commits = []
    whole.play(commits.append)
    expected, asked = whole.everything(), whole.model.asked
    assert {"season", "open", "claim", "call", "decide", "executed", "settled"} <= set(commits)
    for count in range(len(commits)):
        again = type(table)(str(tmp_path / f"killed-{count}.db"), short, table.feed)
        with pytest.raises(Killed):
            again.play(kill_after(count))
        again.play()
        assert again.everything() == expected, commits[count]
        assert again.model.asked == asked  # nothing that was answered is asked again


def test_live_a_session_whose_time_is_over_is_missed_and_never_decided(table):
    due = table.feed.due(table.season)
    middle = due[len(due) // 2]
    table.play(time=VirtualTime(middle.at + 60 * 10**9))
    early = [d for d in due if d.at < middle.at - DAY]
    missed = table.rows(select(slots.c.asset, slots.c.session).where(slots.c.status == "missed").distinct())
    assert {(d.asset, d.session) for d in early} <= set(map(tuple, missed))
    missed = select(slots.c.id).where(slots.c.status == "missed")
    assert not table.rows(select(calls.c.slot).where(calls.c.slot.in_(missed)))
    later = table.rows(select(slots.c.status).where(slots.c.session > middle.session).distinct())
    assert [row.status for row in later] == ["decided"]
    held = table.rows(select(slots.c.position).where(slots.c.status == "missed").distinct())
    assert [row.position for row in held] == [0]


def test_a_broken_agent_is_a_counted_failure_that_holds(table):
    class Broken:
        def deliberate(self, packet, memory):
            raise ValueError("no idea")
            yield

    table.play(agents=seated(thinker=Broken()))
    found = table.rows(select(slots.c.entry, slots.c.status, slots.c.action, slots.c.failures).distinct())
    by_entry = {row.entry: row for row in found}
    assert (by_entry["thinker"].status, by_entry["thinker"].action) == ("failed", "HOLD")
    assert "no idea" in by_entry["thinker"].failures
    assert "has no agent" in by_entry["trend"].failures


async def test_a_replay_sleeps_as_its_speed_says():
    assert (parse_speed("1d/2s"), parse_speed("6h/s"), parse_speed("max")) == (43_200, 21_600, None)
    for text in ("fast", "1d", "0d/1s", "1d/0s"):
        with pytest.raises(UserError):
            parse_speed(text)
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    clock = ReplayClock(speed=43_200, sleep=sleep)
    for at in (DAY, 2 * DAY, DAY):
        await clock.wait_until(at)
    assert clock.now() == 2 * DAY and slept == [2.0]


def test_bad_seasons_are_refused():
    asset = Asset(symbol="A", kind="stock", dataset="synthetic/us:7")
    entry = Entry(id="a", architecture="rule")
    for changed, words in (
        ({"id": "Not ok"}, "season id"),
        ({"entries": (entry, entry)}, "twice"),
        ({"assets": ()}, "no assets"),
        ({"last": "2021-01-01"}, "ends before"),
        ({"warmup": -1}, "warmup"),
    ):
        plan = {"id": "s", "assets": (asset,), "entries": (entry,), "first": "2022-01-01", **changed}
        with pytest.raises(UserError, match=words):
            Season(**plan)


def test_no_secret_is_written_to_the_database(tmp_path):
    key = "gsk_Zb1Nm7Qw4Er9Ty2Ui6Op8As3"
    secrets.remember(key)
    engine = open_engine(str(tmp_path / "arena.db"), durable=False)
    with engine.begin() as db:
        db.exec_driver_sql("CREATE TABLE told (text TEXT, raw BLOB)")
        db.exec_driver_sql("INSERT INTO told VALUES (?, ?)", (f"it is {key}", key.encode()))
        told = (f"it is {secrets.REMOVED}", secrets.REMOVED.encode())
        assert db.exec_driver_sql("SELECT text, raw FROM told").one() == told
    engine.dispose()
    assert all(key.encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_what_is_said_of_a_season_is_true(played, tmp_path):
    """Not "final" while decisions wait for their price, and no next decision in the past."""
    table, _ = played
    late = f"UPDATE rounds SET phase = 'executed' WHERE session = '{table.season.last}'"
    db = altered(Path(table.url), tmp_path / "said.db", late)
    store = Store(open_engine(str(db), durable=False))
    assert state_of(store, table.season).unsettled == 2  # its worker said that it is over: no price ever came
    with store.write("test") as change:
        change.execute(update(workers).values(state="stopped"))
    assert state_of(store, table.season).status == "stopped"
    with store.write("test") as change:
        change.execute(update(workers).values(state="live", beat=4e9, next_at="2022-06-01T00:00:00Z"))
    assert state_of(store, table.season).next_at is None
    store.engine.dispose()


def test_a_format_of_another_version_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "a.db"
    open_engine(str(path)).dispose()
    other = altered(path, tmp_path / "other.db", "UPDATE arena_schema SET version = 0")
    with pytest.raises(DataError, match="has form 0"):
        open_engine(str(other))
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT version FROM arena_schema").fetchone() == (0,)
