"""Random portfolios on recorded schedules, held against the real exchange."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.stats import kstest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))

import runs_world as world
from luck_markets import VENUES, decisions_of, key_of, played, replay, scheduled, the_run

from tradeassay.assay.luck import (
    LuckConfig,
    StatedTrades,
    even_schedule,
    luck_market,
    luck_of_episode,
    luck_of_returns,
    luck_of_run,
    place_among,
    random_portfolios,
    schedule_of,
)
from tradeassay.benchmarks import benchmarks
from tradeassay.core.errors import UserError
from tradeassay.core.events import Filled, Rejected
from tradeassay.core.orders import Decision, Order
from tradeassay.data import load_dataset
from tradeassay.metrics import BootstrapConfig
from tradeassay.metrics.measures import growth
from tradeassay.play import Market

FEW = BootstrapConfig(draws=50)
HUNDRED = LuckConfig(portfolios=100, bootstrap=FEW)
FOUR = StatedTrades(names=4, turnover=5.0)


@pytest.mark.parametrize("venue", VENUES)
def test_the_exchange_takes_every_order_as_it_is(venue: str) -> None:
    snapshot, config, _ = played(venue)
    traded, schedule = scheduled(venue)
    for portfolio in range(10):
        market = Market(snapshot, config)
        market.reset()
        for decision in decisions_of(traded, schedule, portfolio):
            events = market.step(decision).record.events
            fills = [event for event in events if isinstance(event, Filled) and not event.forced]
            assert not [event for event in events if isinstance(event, Rejected)]
            assert [(one.symbol, abs(one.quantity)) for one in fills] == [
                (o.symbol, o.amount) for o in decision.orders
            ]


@pytest.mark.parametrize("venue", ["us", "us-fractional", "ashare", "us-margin"])
def test_turnover_cash_and_names_are_matched(venue: str) -> None:
    _, _, records = played(venue)
    traded, schedule = scheduled(venue)
    shape = schedule_of(records, traded.market)[1]
    turnover, cash, names = np.median(random_portfolios(traded, schedule, n=200).shapes, axis=0)
    assert turnover == pytest.approx(shape.turnover, rel=0.15)
    assert cash == pytest.approx(shape.cash, abs=0.06)
    # With eight names in all, there is sometimes none left to draw.
    assert names == pytest.approx(shape.names, rel=0.15)


def test_equal_arguments_give_equal_portfolios_and_other_seeds_others() -> None:
    traded, schedule = scheduled("us")
    one = random_portfolios(traded, schedule, n=120, seed=5)
    assert np.array_equal(one.nav, random_portfolios(traded, schedule, n=200, seed=5).nav[:120])
    assert not np.array_equal(one.nav[:, -1], random_portfolios(traded, schedule, n=120, seed=6).nav[:, -1])
    assert len({round(value, 6) for value in one.nav[:, -1]}) > 100


def test_names_are_drawn_evenly() -> None:
    traded, schedule = scheduled("us")
    opened = dict.fromkeys(traded.market.symbols, 0)
    for portfolio in range(200):
        orders = decisions_of(traded, schedule, portfolio)[0].orders
        for order in orders:
            opened[order.symbol] += 1
    assert opened["IDXF"] == 0
    counts = np.array([opened[f"S{k}"] for k in range(world.STOCKS)])
    expected = counts.sum() / world.STOCKS
    assert ((counts - expected) ** 2 / expected).sum() < 30.0


def test_a_hand_made_schedule_buys_and_holds() -> None:
    snapshot, config, _ = played("us")
    traded, _ = scheduled("us")
    n = len(traded.market.sessions)
    schedule, shape = even_schedule(n, names=2, turnover=0.0, invested=0.8)
    assert (schedule.seat.tolist(), schedule.size.tolist()) == ([0, 1], [0.4, 0.4])
    assert shape.names == 2.0
    bought = decisions_of(traded, schedule, 0)
    assert [len(one.orders) for one in bought] == [2] + [0] * (n - 1)
    nav = replay(snapshot, config, bought)
    assert nav == pytest.approx(random_portfolios(traded, schedule, n=100).nav[0], rel=1e-12)
    turning, turned = even_schedule(n, names=4, turnover=0.05)
    again = random_portfolios(traded, turning, n=100)
    assert np.median(again.shapes[:, 0]) == pytest.approx(turned.turnover, rel=0.1)


def test_an_index_fund_is_not_left_to_chance() -> None:
    found = luck_of_episode(the_run(), key_of("us", "index-hold"), HUNDRED)
    assert found.place is None, "a percentile among portfolios that do not differ says nothing"
    assert "hardly differ" in str(found.reason)


def test_the_luck_of_a_recorded_run() -> None:
    run = the_run()
    found = {one.episode: one for one in luck_of_run(run, config=HUNDRED)}
    assert list(found) == [episode.key for episode in run.episodes]
    silent = found[key_of("us", "test-never-answers")]
    assert silent.place is None and silent.reason and "no luck baseline" in silent.sentence
    assert "futures" in str(found[key_of("futures")].reason)
    one = found[key_of("ashare")]
    assert one.place is not None and one.matched is not None
    assert one.place.value == pytest.approx(run.series(one.episode).nav[-1] / run.series(one.episode).nav[0] - 1.0)
    assert 0.0 <= one.place.percentile.low <= one.place.percentile.value <= one.place.percentile.high <= 1.0
    assert one.place.quantiles[5] == one.place.low <= one.place.median <= one.place.high
    assert "of 100 random portfolios" in one.sentence
    assert one == luck_of_episode(run, one.episode, HUNDRED)
    with pytest.raises(UserError, match="no agent"):
        luck_of_run(run, agents=("nobody",))


def test_a_clear_place_needs_no_more_portfolios() -> None:
    run, key = the_run(), key_of("ashare")
    many = LuckConfig(portfolios=4100, bootstrap=FEW)
    whole, early = luck_of_episode(run, key, many), luck_of_episode(run, key, many, stop_early=True)
    assert whole.place is not None and early.place is not None
    as_well, as_badly = whole.place.by_luck.value or 0.0, whole.place.as_badly.value or 0.0
    if min(as_well, as_badly) > 0.1:
        assert early.place.portfolios == 2000
        assert abs((early.place.by_luck.value or 0.0) - as_well) < 0.05
    else:
        assert early == whole
    alike = luck_of_episode(run, key_of("us", "index-hold"), many, stop_early=True)
    assert alike.place is None and "hardly differ" in str(alike.reason)


def test_places_by_hand() -> None:
    random_nav = np.array([[1.0, 1.1], [1.0, 1.2], [1.0, 1.3], [1.0, 0.9]])
    found = place_among(np.array([1.0, 1.2]), random_nav)
    assert found.percentile.value == (2 + 0.5) / 4 and found.by_luck.value == 0.5
    assert found.value == pytest.approx(0.2) and "no interval" in str(found.percentile.note)
    with pytest.raises(UserError, match="same sessions"):
        place_among(np.ones(3), random_nav)


@pytest.mark.parametrize("by", ["return", "sharpe"])
def test_skill_stands_out_and_luck_does_not(by: str) -> None:
    rng = np.random.default_rng(0)
    market = rng.normal(0.0003, 0.01, 200)
    crowd = growth(market + rng.normal(0, 0.004, (500, 200)))
    skilled = place_among(growth(market + rng.normal(0.002, 0.004, 200)), crowd, by=by, bootstrap=FEW)  # type: ignore[arg-type]
    lucky = place_among(crowd[7], crowd, by=by, bootstrap=FEW)  # type: ignore[arg-type]
    assert skilled.percentile.low > 0.9 and skilled.by_luck.high < 0.05
    assert lucky.percentile.low < 0.6 or lucky.percentile.high < 0.95


@pytest.mark.slow
def test_who_picks_by_chance_is_placed_evenly() -> None:
    """Agents that trade through the exchange, by target weights, in names drawn anew every month."""
    snapshot = load_dataset("synthetic/us:7")
    first, last = str(snapshot.sessions[300]), str(snapshot.sessions[380])
    config = msgspec.structs.replace(benchmarks.get("daily-us-v1").market, first=first, last=last)
    traded, rng, places = luck_market(snapshot, config), np.random.default_rng(77), []
    for agent in range(60):
        market, records, path, held = Market(snapshot, config), [], [config.cash], []
        seen = market.reset()
        while seen is not None:
            chosen = [str(name) for name in rng.permutation(seen.universe)[:8]] if seen.step % 20 == 0 else held
            wanted = {**dict.fromkeys(held, 0.0), **dict.fromkeys(chosen, 0.11)} if chosen != held else {}
            orders = tuple(Order(symbol=one, amount=w, unit="target_weight") for one, w in wanted.items())
            record, seen = market.step(Decision(orders=orders))
            records.append(record)
            path.append(market.ledger.nav())
            held = chosen
        schedule, _ = schedule_of(records, traded.market)
        made = random_portfolios(traded, schedule, n=200, seed=agent)
        places.append(float((made.nav[:, -1] < path[-1]).mean()))
    assert kstest(places, "uniform").pvalue > 0.01


def test_own_returns_are_placed_too() -> None:
    snapshot, config, _ = played("us")
    benchmark = benchmarks.get("tiny-us-v1")
    traded, _ = scheduled("us")
    returns = dict.fromkeys(traded.market.sessions, 0.01)
    found = luck_of_returns(returns, benchmark, snapshot, FOUR, config=HUNDRED)
    assert found.place is not None and found.place.percentile.value == 1.0
    assert config.first == traded.market.sessions[0]
    gap = {day: value for day, value in returns.items() if day != traded.market.sessions[5]}
    with pytest.raises(UserError, match=traded.market.sessions[5]):
        luck_of_returns(gap, benchmark, snapshot, FOUR)
    with pytest.raises(UserError, match="500 names cannot be held in this market"):
        luck_of_returns(returns, benchmark, snapshot, StatedTrades(names=500, turnover=5.0), config=HUNDRED)


def test_what_cannot_be_asked() -> None:
    traded, schedule = scheduled("us")
    records = played("us")[2]
    with pytest.raises(UserError, match="no distribution"):
        random_portfolios(traded, schedule, n=10)
    with pytest.raises(UserError, match="sessions"):
        random_portfolios(traded, even_schedule(3, names=1, turnover=0.0)[0])
    with pytest.raises(UserError, match="finish the run"):
        schedule_of(records[:5], traded.market)
    with pytest.raises(UserError, match="not the market's"):
        schedule_of(records, traded.market._replace(sessions=("2000-01-03",) * len(records)))
    with pytest.raises(UserError, match="no schedule"):
        even_schedule(10, names=0, turnover=0.1)
