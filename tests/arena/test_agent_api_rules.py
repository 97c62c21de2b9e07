"""The optional rules: one account over all assets, messages between agents, and the reward log."""

import asyncio
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st
from sqlalchemy import select
from tests.arena.conftest import seated

from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.clock import ReplayClock
from tradeassay_arena.daily_target import SharedTarget
from tradeassay_arena.queries.decisions import experiences
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Asset, Entry, OptionalRules, Season
from tradeassay_arena.standings.board import combined_returns
from tradeassay_arena.standings.series import read_lines
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import bookings, rewards, rounds, slots
from tradeassay_bench.core.arena import Action, AgentChoice, Packet

US = Asset(symbol="AAJX", kind="stock", dataset="synthetic/us:7")
COIN = Asset(symbol="AHVQ", kind="crypto", dataset="synthetic/crypto:7")
SEASON = Season(
    id="rules",
    assets=(US, COIN),
    entries=(Entry(id="anna", architecture="python"), Entry(id="bert", architecture="python")),
    first="2022-06-01",
    last="2022-06-08",
)


class Plan:
    """Does what it was told for each symbol and day, and keeps what it was shown."""

    def __init__(
        self, plan: dict[str, list[tuple[Action, float | None]]], say: str | None = None
    ) -> None:
        self.plan = {symbol: list(steps) for symbol, steps in plan.items()}
        self.say = say
        self.seen: list[Packet] = []

    async def decide(self, packet: Packet) -> AgentChoice:
        self.seen.append(packet)
        steps = self.plan.get(packet.symbol, [])
        action, share = steps.pop(0) if steps else ("HOLD", None)
        said = None if self.say is None else f"{self.say} {packet.date}"
        return AgentChoice(action=action, reasoning="", allocation=share, message=said)


@cache
def feed_of(assets: tuple[Asset, ...]) -> SnapshotFeed:
    return SnapshotFeed.open(msgspec.structs.replace(SEASON, assets=assets))


def play(path: Path, season: Season, players: dict[str, object]) -> Store:
    store = Store(open_engine(str(path), durable=False))
    agents, feed = seated(**players), feed_of(season.assets)
    asyncio.run(
        Runner(season=season, store=store, feed=feed, clock=ReplayClock(), agents=agents).run()
    )
    return store


SHARED = msgspec.structs.replace(
    SEASON, id="shared", rules=OptionalRules(cross_asset=True, feedback=True)
)


@pytest.mark.parametrize(
    ("action", "share", "state", "expected"),
    [
        # 100 bp of the 0.4 that is bought; what is left scales the position: 0.4 x 0.996
        ("BUY", 0.4, {"value": 1.0, "before": 0.0, "others": 0.0}, (0.4 * 0.996, 0.004)),
        # others bind 0.7: only 0.3 is left
        ("BUY", 0.5, {"value": 1.0, "before": 0.0, "others": 0.7}, (0.3 * 0.997, 0.003)),
        # from 0.5 long to 0.5 short is 1.0 traded
        ("SELL", 0.5, {"value": 1.0, "before": 0.5, "others": 0.0}, (-0.5 * 0.99, 0.01)),
        ("HOLD", 0.9, {"value": 1.0, "before": -0.2, "others": 0.0}, (-0.2, 0.0)),
        ("BUY", 1.0, {"value": 0.0, "before": 0.2, "others": 0.0}, (0.0, 0.0)),
        ("BUY", 0.0, {"value": 2.0, "before": 0.5, "others": 0.0}, (0.0, 0.005)),
        (
            "close",
            1.0,
            {"value": 1.0, "before": 0.5, "others": 0.0},
            (0.0, 0.005),
        ),  # HOLD, where it closes
    ],
)
def test_sizes_by_hand(action, share, state, expected):
    hold, action = ("flat", "HOLD") if action == "close" else ("keep", action)
    made = SharedTarget(hold=hold, fee_bp=100.0).execute(action, share, **state)
    assert (made.exposure, made.fee) == pytest.approx(expected)
    assert made.nav == state["value"] - made.fee


@given(
    st.sampled_from(["BUY", "SELL", "HOLD"]),
    st.floats(0, 1),
    st.floats(1e-6, 1e6),
    st.floats(-1, 1),
    st.floats(0, 1),
    st.sampled_from(["keep", "flat"]),
    st.floats(0, 500),
)
def test_no_decision_binds_more_than_the_account(
    action, share, value, before, others, hold, fee_bp
):
    before, others = before * value, others * value * (1 - abs(before))
    policy = SharedTarget(hold=hold, fee_bp=fee_bp)  # type: ignore[arg-type]  # drawn by hypothesis
    made = policy.execute(action, share, value=value, before=before, others=others)
    assert abs(made.exposure) + others <= value * (1 + 1e-9)
    assert 0 <= made.fee <= 2 * value * fee_bp / 10_000 + 1e-12


def test_one_account_over_two_assets_by_hand(tmp_path):
    """Anna puts 0.6 into the coin, asks for 0.8 of the stock and gets what is left; then all by
    arithmetic.
    """
    plan = {"AHVQ": [("BUY", 0.6), ("HOLD", None), ("SELL", 0.25)], "AAJX": [("BUY", 0.8)]}
    anna = Plan(plan)
    store = play(tmp_path / "a.db", SHARED, {"anna": anna, "bert": ConstantAction("HOLD")})
    days = store.rows(select(rounds).order_by(rounds.c.decision_time, rounds.c.id))
    mine = {(s.asset, s.session): s for s in store.rows(select(slots).filter_by(entry="anna"))}
    end = dict(
        map(tuple, store.rows(select(bookings.c.entry, bookings.c.nav).order_by(bookings.c.id)))
    )
    told = store.rows(select(rewards).filter_by(entry="anna").order_by(rewards.c.slot))
    logged = [row.reward for row in told]
    # The same once more, on paper: money behind each asset, fee 5 bp, revalued when its next round opens.
    value, money, open_moves = 1.0, {"AHVQ": 0.0, "AAJX": 0.0}, {}
    for day in days:
        if day.asset in open_moves:
            moved = open_moves.pop(day.asset)
            value += money[day.asset] * moved
            money[day.asset] *= 1 + moved
        action, share = plan[day.asset].pop(0) if plan[day.asset] else ("HOLD", None)
        slot = mine[day.asset, day.session]
        told = next(p for p in anna.seen if (p.symbol, p.date) == (day.asset, day.session))
        assert told.account == pytest.approx(value, rel=1e-12)
        assert told.exposures == pytest.approx({a: m for a, m in money.items() if m}, rel=1e-12)
        assert slot.nav_before == pytest.approx(value, rel=1e-12)
        if action != "HOLD":
            free = value - abs(money["AAJX" if day.asset == "AHVQ" else "AHVQ"])
            target = min(share * value, free) * (1 if action == "BUY" else -1)
            fee = abs(target - money[day.asset]) * 5e-4
            money[day.asset] = target * (value - fee) / value
            value -= fee
            assert slot.fee == pytest.approx(fee, rel=1e-12)
        assert slot.position == np.sign(money[day.asset])
        if day.next_price is not None:
            open_moves[day.asset] = day.next_price / day.base_price - 1
    value += sum(
        money[asset] * moved for asset, moved in open_moves.items()
    )  # the session after the last
    assert end["anna"] == pytest.approx(value, rel=1e-12) and end["bert"] == 1.0
    assert value != pytest.approx(1.0, abs=1e-4)
    assert len(logged) == len(mine)
    known = experiences(store, "shared", "anna")
    assert [one.reward for one in known] == logged and experiences(store, "rules", "anna") == ()
    assert known[0].packet.symbol == days[0].asset and (known[0].action, known[0].position) == (
        "BUY",
        1,
    )
    # The standings' path ends at the account, but for the fees of the two sessions that are not settled.
    lines = read_lines(store, SHARED)
    found = [line for (entry, _), line in lines.items() if entry == "anna"]
    path = combined_returns(found, sorted({day for line in found for day in line.sessions}))
    assert np.prod(1 + path) == pytest.approx(value, rel=1e-12)
    store.engine.dispose()


@pytest.mark.parametrize("convention", ["corrected", "paper"])
def test_with_one_asset_and_long_only_it_is_the_ordinary_account(tmp_path, convention):
    plan = {"AHVQ": [("BUY", 1.0), ("BUY", 1.0), ("HOLD", None), ("BUY", 1.0)]}
    ends = []
    for shared in (False, True):
        rules = OptionalRules(cross_asset=shared)
        season = msgspec.structs.replace(
            SEASON,
            assets=(COIN,),
            rules=rules,
            convention=convention,
            last="2022-06-05",
            fee_bp=5.0,
        )
        store = play(
            tmp_path / f"{shared}.db", season, {"anna": Plan(plan), "bert": ConstantAction("HOLD")}
        )
        mine = store.rows(select(slots.c.nav).filter_by(entry="anna").order_by(slots.c.session))
        ends.append([row.nav for row in mine])
        store.engine.dispose()
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_messages_are_read_from_the_next_session_on_and_only_where_allowed(tmp_path):
    season = msgspec.structs.replace(
        SEASON, assets=(COIN,), rules=OptionalRules(messages=True), last="2022-06-04"
    )
    anna, bert = Plan({}, say="anna"), Plan({}, say="bert")
    store = play(tmp_path / "a.db", season, {"anna": anna, "bert": bert})
    assert anna.seen[0].others == ()
    for before, packet in zip(anna.seen[:-1], anna.seen[1:], strict=True):
        (heard,) = packet.others  # never its own words
        assert (heard.entry, heard.date, heard.text) == ("bert", before.date, f"bert {before.date}")
    settled = dict(map(tuple, store.rows(select(rounds.c.session, rounds.c.phase))))
    assert all(settled[heard.date] == "settled" for packet in anna.seen for heard in packet.others)
    store.engine.dispose()
    silent = Plan({}, say="anna")
    off = msgspec.structs.replace(season, rules=OptionalRules())
    play(tmp_path / "b.db", off, {"anna": silent, "bert": Plan({}, say="bert")}).engine.dispose()
    assert all(packet.others == () for packet in silent.seen)
