"""A season is played once, whatever happens on the way."""

import contextlib
import os
import random
import signal
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import func, select, update
from tests.arena.conftest import EchoModel, Killed, Table, TwoQuestions, altered, kill_after, seated
from tests.arena.postgres import fresh, server
from tests.arena.virtual import VirtualTime

from tradeassay.core import secrets
from tradeassay.core.errors import DataError, UserError
from tradeassay_arena.agents import ConstantAction, EntryAgent
from tradeassay_arena.clock import ReplayClock, parse_speed
from tradeassay_arena.queries.seasons import state_of
from tradeassay_arena.season import Asset, BudgetRules, Entry, OptionalRules, Season
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import calls, decisions, rounds, slots, workers
from tradeassay_arena.stream import quality
from tradeassay_bench.core.dialogue import Usage
from tradeassay_bench.core.time import DAY, parse_iso


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
            assert len(packet.history) <= 10 and all(
                point.date < packet.date for point in packet.history
            )
    told = quality(store, "small")
    assert told.kinds["price"] == finished
    assert told.news == sum(one["published"] + one["merged"] for one in told.sources)
    assert told.agreement.value is None and told.agreement.reason == "no unit has two ratings"
    store.engine.dispose()


def test_a_second_process_finds_nothing_left_to_do_and_a_changed_spec_is_refused(played):
    table, _ = played
    before, asked = table.everything(), table.model.asked
    table.play()
    assert table.everything() == before and table.model.asked == asked
    with pytest.raises(UserError, match="frozen with another spec"):
        table.play(season=msgspec.structs.replace(table.season, warmup=3))
    store = table.runner().store
    assert (
        state_of(store, table.season).status == "finished"
    )  # who is refused says nothing of what is on record
    store.engine.dispose()


@pytest.mark.journey
@pytest.mark.parametrize("shared", [False, True], ids=["an account for each asset", "one account"])
def test_killed_after_every_edition_and_every_booking_it_ends_the_same(table, tmp_path, shared):
    rules = OptionalRules(cross_asset=shared, feedback=shared)
    table.season = msgspec.structs.replace(table.season, last="2022-06-02", warmup=1, rules=rules)
    again = type(table)(str(tmp_path / "killed.db"), table.season, table.feed)
    commits, deaths = list[str](), list[str]()
    table.play(commits.append)

    def die(what: str) -> None:
        if what in ("stream", "executed", "settled"):
            deaths.append(what)
            raise Killed(what)

    while True:
        with contextlib.suppress(Killed):
            again.play(die)
            break
    assert sorted(deaths) == sorted(
        what for what in commits if what in ("stream", "executed", "settled")
    )
    assert again.everything() == table.everything()


@pytest.mark.slow
def test_killed_between_any_two_commits_it_ends_the_same(table, tmp_path):
    """For every commit of a short season: die right after it, start again, compare everything."""
    season = msgspec.structs.replace(
        table.season, assets=table.season.assets[1:], last="2022-06-03", warmup=1
    )
    table.season, commits = season, list[str]()
    table.play(commits.append)
    expected, asked = table.everything(), table.model.asked
    assert {"season", "open", "stream", "claim", "call", "decide", "executed", "settled"} <= set(
        commits
    )
    for count, what in enumerate(commits):
        again = type(table)(str(tmp_path / f"killed-{count}.db"), season, table.feed)
        with pytest.raises(Killed):
            again.play(kill_after(count))
        again.play()
        assert again.everything() == expected, what
        assert again.model.asked == asked  # nothing that was answered is asked again


def killed_so_often(table, kills: int, seed: int) -> int:
    """Fork processes that play the season, and kill them at random moments until one gets
    through; the last one is left alone. Returns how many died.
    """
    generator = random.Random(seed)
    for died in range(kills + 1):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                table.play()
                status = 0
            finally:
                os._exit(status)
        if died < kills:
            deadline = time.monotonic() + generator.expovariate(1 / 0.04)
            while time.monotonic() < deadline and not os.waitid(
                os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT
            ):
                time.sleep(0.001)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert status == 0
            return died
    raise AssertionError("somebody else killed the last one")


@pytest.mark.journey
@pytest.mark.timeout(1500)  # two hundred processes are started, killed and waited for
@pytest.mark.slow_for("sqlite", "postgres")
@pytest.mark.parametrize(
    ("last", "kills", "least"),
    [("2022-06-14", 12, 3), ("2022-12-30", 200, 100), ("2022-12-30", 200, 100)],
    ids=["a dozen", "sqlite", "postgres"],
)
def test_processes_are_killed_and_nothing_is_lost(table, tmp_path, request, last, kills, least):
    table.season = msgspec.structs.replace(table.season, last=last)
    with ExitStack() as stack:
        postgres = request.node.callspec.id == "postgres"
        place = fresh(stack.enter_context(server())) if postgres else str(tmp_path / "killed.db")
        again = type(table)(place, table.season, table.feed)
        assert killed_so_often(again, kills, seed=2) >= least
        table.play()
        assert again.everything() == table.everything()


def test_live_a_session_whose_time_is_over_is_missed_and_never_decided(table):
    due = table.feed.due(table.season)
    middle = due[len(due) // 2]
    table.play(time=VirtualTime(middle.at + 60 * 10**9))
    early = [d for d in due if d.at < middle.at - DAY]
    missed = table.rows(
        select(slots.c.asset, slots.c.session).where(slots.c.status == "missed").distinct()
    )
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
    found = table.rows(
        select(slots.c.entry, slots.c.status, slots.c.action, slots.c.failures).distinct()
    )
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
        plan = {
            "id": "s",
            "assets": (asset,),
            "entries": (entry,),
            "first": "2022-01-01",
            **changed,
        }
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
    assert (
        state_of(store, table.season).unsettled == 2
    )  # its worker said that it is over: no price ever came
    with store.write("test") as change:
        change.execute(update(workers).values(state="stopped"))
    assert state_of(store, table.season).status == "stopped"
    with store.write("test") as change:
        change.execute(
            update(workers).values(state="live", beat=4e9, next_at="2022-06-01T00:00:00Z")
        )
    assert state_of(store, table.season).next_at is None
    store.engine.dispose()


def test_a_format_of_another_version_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "a.db"
    open_engine(str(path)).dispose()
    other = altered(path, tmp_path / "other.db", "UPDATE arena_schema SET version = 0")
    with pytest.raises(DataError, match="has version 0"):
        open_engine(str(other))
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT version FROM arena_schema").fetchone() == (0,)


class Lying(EchoModel):
    """Costs a dollar a question and says something else."""

    def __init__(self, usage: Usage) -> None:
        super().__init__()
        self._usage = usage

    async def ask(self, request, place):
        reply = await super().ask(request, place)
        return msgspec.structs.replace(reply, usage=self._usage)


def spend(table: Table, model: EchoModel, budget: BudgetRules) -> tuple[int, int]:
    """Play a season and return how many decisions asked a model, and how many were refused for
    the budget.
    """
    season = msgspec.structs.replace(table.season, budget=budget, warmup=0, last="2022-06-06")
    agents = {"thinker": EntryAgent(TwoQuestions(), model), **seated(trend=ConstantAction("HOLD"))}
    table.play(season=season, agents=agents)
    ((asked,),) = table.rows(select(func.count(func.distinct(calls.c.slot))))
    refused = table.rows(select(decisions.c.id).where(decisions.c.failures.contains("over_budget")))
    return asked, len(refused)


@pytest.mark.parametrize(
    ("usage", "budget", "most"),
    [
        (Usage(input_tokens=10, output_tokens=1, usd=1.0), BudgetRules(usd=6.0), 4),
        (Usage(input_tokens=10, output_tokens=1, usd=None), BudgetRules(usd=6.0), 2),
        (Usage(input_tokens=10, output_tokens=1, usd=-1.0), BudgetRules(tokens=66), 4),
        (Usage(input_tokens=-99, output_tokens=100, usd=0.0), BudgetRules(tokens=6), 4),
    ],
)
def test_a_budget_is_kept_whatever_a_model_says_about_its_price(table, usage, budget, most):
    asked, refused = spend(table, Lying(usage), budget)
    assert (
        1 <= asked <= most
    )  # of those under way when it ran out none is cut off: two assets, one more each
    assert refused >= 4


def test_a_budget_of_a_day_begins_anew_and_a_restart_does_not(table):
    table.model = Lying(Usage(input_tokens=10, output_tokens=1, usd=1.0))
    for _ in range(2):  # the same season, continued
        asked, _ = spend(table, table.model, BudgetRules(usd_per_day=1.0))
    assert 6 <= asked <= 2 * 6  # six days; those of a stock and a coin are decided side by side
