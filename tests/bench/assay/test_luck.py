"""Random portfolios against the real exchange, what a run could show, and the size that ends an
alpha.
"""

import dataclasses
import json
import math
import re

import msgspec
import numpy as np
import pytest
import runs_world as world
import scipy
from click.testing import CliRunner
from luck_markets import VENUES, decisions_of, key_of, played, replay, scheduled, the_run

from tradeassay.cli import root
from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig, Design, power_of
from tradeassay.metrics.capacity import impact_rate
from tradeassay.metrics.measures import growth
from tradeassay.verdict import VerdictConfig
from tradeassay.verdict.diagnostics import capacity_evidence
from tradeassay.verdict.evidence import MeanTest
from tradeassay.verdict.record import CapacityEvidence, money_words
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.events import Filled, Rejected
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.data import load_dataset
from tradeassay_bench.examine import attribute_episode, luck
from tradeassay_bench.examine.power import power_of_run
from tradeassay_bench.play import Market
from tradeassay_bench.runs.summary import summary_of

FEW = BootstrapConfig(draws=50)
HUNDRED = luck.LuckConfig(portfolios=100, bootstrap=FEW)
FOUR = luck.StatedTrades(names=4, turnover=5.0)
PATHS = np.array([[1.0, 1.1], [1.0, 1.2], [1.0, 1.3], [1.0, 0.9]])


@pytest.mark.parametrize("venue", VENUES)
def test_the_exchange_takes_every_order_as_it_is(venue):
    snapshot, config, _ = played(venue)
    traded, schedule = scheduled(venue)
    for portfolio in range(6):
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
def test_turnover_cash_and_names_are_matched(venue):
    _, _, records = played(venue)
    traded, schedule = scheduled(venue)
    shape = luck.schedule_of(records, traded)[1]
    turnover, cash, names = np.median(
        luck.random_portfolios(traded, schedule, n=200).shapes, axis=0
    )
    # With eight names in all, there is sometimes none left to draw.
    assert (turnover, names) == pytest.approx((shape.turnover, shape.names), rel=0.15)
    assert cash == pytest.approx(shape.cash, abs=0.06)


def test_equal_arguments_give_equal_portfolios_and_names_are_drawn_evenly():
    traded, schedule = scheduled("us")
    one = luck.random_portfolios(traded, schedule, n=120, seed=5)
    assert np.array_equal(
        one.nav, luck.random_portfolios(traded, schedule, n=200, seed=5).nav[:120]
    )
    assert not np.array_equal(
        one.nav[:, -1], luck.random_portfolios(traded, schedule, n=120, seed=6).nav[:, -1]
    )
    assert len({round(value, 6) for value in one.nav[:, -1]}) > 100
    opened = dict.fromkeys(traded.symbols, 0)
    for portfolio in range(200):
        for order in decisions_of(traded, schedule, portfolio)[0].orders:
            opened[order.symbol] += 1
    assert opened["IDXF"] == 0
    counts = np.array([opened[f"S{k}"] for k in range(world.STOCKS)])
    expected = counts.sum() / world.STOCKS
    assert ((counts - expected) ** 2 / expected).sum() < 30.0


def test_a_hand_made_schedule_buys_and_holds():
    snapshot, config, _ = played("us")
    traded, _ = scheduled("us")
    n = len(traded.sessions)
    schedule, shape = luck.even_schedule(n, names=2, turnover=0.0)
    assert (schedule.seat.tolist(), schedule.size.tolist(), shape.names) == (
        [0, 1],
        [0.5, 0.5],
        2.0,
    )
    bought = decisions_of(traded, schedule, 0)
    assert [len(one.orders) for one in bought] == [2] + [0] * (n - 1)
    nav = replay(snapshot, config, bought)
    assert nav == pytest.approx(luck.random_portfolios(traded, schedule, n=100).nav[0], rel=1e-12)
    turning, turned = luck.even_schedule(n, names=4, turnover=0.05)
    again = luck.random_portfolios(traded, turning, n=100)
    assert np.median(again.shapes[:, 0]) == pytest.approx(turned.turnover, rel=0.1)


def test_the_luck_of_a_recorded_run():
    run = the_run()
    found = {one.episode: one for one in luck.luck_of_run(run, config=HUNDRED)}
    assert list(found) == [episode.key for episode in run.episodes]
    silent = found[key_of("us", "test-never-answers")]
    assert silent.place is None and silent.reason and "no luck baseline" in silent.sentence
    fund = found[
        key_of("us", "index-hold")
    ]  # is not left to chance: a place among equals says nothing
    assert fund.place is None and "hardly differ" in str(fund.reason)
    one = found[key_of("ashare")]
    assert one.matched is not None
    nav = run.series(one.episode).nav
    assert one.place.value == pytest.approx(nav[-1] / nav[0] - 1.0)
    assert (
        0.0
        <= one.place.percentile.low
        <= one.place.percentile.value
        <= one.place.percentile.high
        <= 1.0
    )
    assert one.place.quantiles[5] == one.place.low <= one.place.median <= one.place.high
    assert "of 100 random portfolios" in one.sentence
    assert one == luck.luck_of_episode(run, one.episode, HUNDRED)
    with pytest.raises(UserError, match="no agent"):
        luck.luck_of_run(run, agents=("nobody",))


def test_a_clear_place_needs_no_more_portfolios():
    run, key = the_run(), key_of("ashare")
    many = luck.LuckConfig(portfolios=4100, bootstrap=FEW)
    whole, early = (
        luck.luck_of_episode(run, key, many),
        luck.luck_of_episode(run, key, many, stop_early=True),
    )
    as_well, as_badly = whole.place.by_luck.value or 0.0, whole.place.as_badly.value or 0.0
    if min(as_well, as_badly) > 0.1:
        assert early.place.portfolios == 2000
        assert abs((early.place.by_luck.value or 0.0) - as_well) < 0.05
    else:
        assert early == whole
    alike = luck.luck_of_episode(run, key_of("us", "index-hold"), many, stop_early=True)
    assert alike.place is None and "hardly differ" in str(alike.reason)


def test_places_by_hand_and_skill_stands_out_and_luck_does_not():
    found = luck.place_among(np.array([1.0, 1.2]), PATHS)
    assert found.percentile.value == (2 + 0.5) / 4 and found.by_luck.value == 0.5
    assert found.value == pytest.approx(0.2) and "no interval" in str(found.percentile.note)
    rng = np.random.default_rng(0)
    market = rng.normal(0.0003, 0.01, 200)
    crowd = growth(market + rng.normal(0, 0.004, (500, 200)))
    best = growth(market + rng.normal(0.002, 0.004, 200))
    for by in ("return", "sharpe"):
        skilled, lucky = (
            luck.place_among(path, crowd, by=by, bootstrap=FEW) for path in (best, crowd[7])
        )
        assert skilled.percentile.low > 0.9 and skilled.by_luck.high < 0.05
        assert lucky.percentile.low < 0.6 or lucky.percentile.high < 0.95


@pytest.mark.slow
def test_who_picks_by_chance_is_placed_evenly():
    """Agents that trade through the exchange, by target weights, in names drawn anew every
    month.
    """
    snapshot = load_dataset("synthetic/us:7")
    first, last = str(snapshot.sessions[300]), str(snapshot.sessions[380])
    config = msgspec.structs.replace(benchmarks.get("daily-us-v1").market, first=first, last=last)
    traded, rng, places = luck.luck_market(snapshot, config), np.random.default_rng(77), []
    for agent in range(60):
        market, records, path, held = Market(snapshot, config), [], [config.cash], []
        seen = market.reset()
        while seen is not None:
            chosen = (
                [str(name) for name in rng.permutation(seen.universe)[:8]]
                if seen.step % 20 == 0
                else held
            )
            wanted = (
                {**dict.fromkeys(held, 0.0), **dict.fromkeys(chosen, 0.11)}
                if chosen != held
                else {}
            )
            orders = tuple(
                Order(symbol=one, amount=w, unit="target_weight") for one, w in wanted.items()
            )
            record, seen = market.step(Decision(orders=orders))
            records.append(record)
            path.append(market.ledger.nav())
            held = chosen
        schedule, _ = luck.schedule_of(records, traded)
        made = luck.random_portfolios(traded, schedule, n=200, seed=agent)
        places.append(float((made.nav[:, -1] < path[-1]).mean()))
    assert scipy.stats.kstest(places, "uniform").pvalue > 0.01


def test_own_returns_are_placed_too():
    snapshot, config, _ = played("us")
    benchmark, (traded, _) = benchmarks.get("tiny-us-v1"), scheduled("us")
    returns = dict.fromkeys(traded.sessions, 0.01)
    assert (
        luck.luck_of_returns(
            returns, benchmark, snapshot, FOUR, config=HUNDRED
        ).place.percentile.value
        == 1.0
    )
    assert config.first == traded.sessions[0]
    gap = {day: value for day, value in returns.items() if day != traded.sessions[5]}
    many = luck.StatedTrades(names=500, turnover=5.0)
    for given, stated, words in (
        (gap, FOUR, traded.sessions[5]),
        (returns, many, "500 names cannot be held"),
    ):
        with pytest.raises(UserError, match=words):
            luck.luck_of_returns(given, benchmark, snapshot, stated, config=HUNDRED)


def test_what_cannot_be_asked():
    traded, schedule = scheduled("us")
    records = played("us")[2]
    elsewhere = dataclasses.replace(traded, sessions=("2000-01-03",) * len(records))
    for said, wrong in (
        ("same sessions", lambda: luck.place_among(np.ones(3), PATHS)),
        ("too few for a distribution", lambda: luck.random_portfolios(traded, schedule, n=10)),
        (
            "sessions",
            lambda: luck.random_portfolios(traded, luck.even_schedule(3, names=1, turnover=0.0)[0]),
        ),
        ("finish the run", lambda: luck.schedule_of(records[:5], traded)),
        ("not a session of the market", lambda: luck.schedule_of(records, elsewhere)),
        ("no schedule", lambda: luck.even_schedule(10, names=0, turnover=0.1)),
    ):
        with pytest.raises(UserError, match=said):
            wrong()


def ask(*words):
    done = CliRunner().invoke(root, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_comparison_is_an_experiment():
    run = the_run()
    found = power_of_run(run)
    assert {(one.setting, one.agent) for one in found} == {
        (row.setting, run.names[row.agent]) for row in run.scores.agents if not row.baseline
    }
    silent = [one for one in found if one.agent.endswith(": test-never-answers")]
    assert all(one.design is None and "no result" in str(one.reason) for one in silent)
    seen = next(
        one for one in found if one.agent.endswith(": test-provoker") and one.design is not None
    )
    assert seen.design.sessions == 50 and seen.power_summary.hopeless
    assert seen.power_summary.chance == pytest.approx(power_of(1.0, seen.design))
    assert "can hardly show skill" in seen.sentence
    (sentence,) = next(
        one for one in summary_of(run).settings if one.benchmark == "tiny-us-v1"
    ).limits
    assert "can hardly show skill" in sentence and sentence.endswith(".")


def test_the_power_and_luck_commands(monkeypatch, tmp_path):
    assert "7,912" in ask("power", "--ratio", "0.5")
    told = json.loads(ask("power", "--ratio", "2", "--sessions", "500", "--seeds", "3", "--json"))
    assert told["power_summary"]["chance"] == pytest.approx(
        power_of(2.0, Design(sessions=500, seeds=3))
    )
    run = the_run()
    monkeypatch.setenv("TRADEASSAY_HOME", str(run.folder.parent))
    assert "test-provoker" in ask("power", str(run.folder))
    asked = ["luck", str(run.folder), "--portfolios", "100"]
    lucky = json.loads(ask(*asked, "--agent", "test-provoker", "--json"))
    assert [one["agent"] for one in lucky] == ["rule of runs_agents: test-provoker"] * 7
    assert "hardly differ" in " ".join(
        ask(*asked, "--agent", "index-hold", "--by", "sharpe").split()
    )
    table = tmp_path / "mine.csv"
    table.write_text("date,return\n2024-01-15,0.01\n2024-01-16,0.01\n")
    wrong = CliRunner().invoke(root, ["luck", str(table)])
    assert wrong.exit_code != 0 and "--names" in str(wrong.output or wrong.exception)


def test_impact_by_hand():
    """Half of the account is bought in the first session, a fifth of it sold in the second, of
    which amounts are a million a day; a second name has no amounts and pays what the first does.
    """
    weights = np.array([[0.0, 0.0], [0.5, 0.0], [0.4, 0.0]])
    returns = np.array([[0.02, 0.0], [0.00, 0.0], [-0.02, 0.0]])
    rate, known = impact_rate(weights, returns, np.zeros(3), np.full((3, 2), 1e6))
    assert known == 1.0
    # Two thirds of the deviation of 0.02 times the root of 0.5 / 1e6, on half of the account; then on a tenth.
    assert rate == pytest.approx(
        [2 / 3 * 0.02 * math.sqrt(5e-7) * 0.5, 2 / 3 * 0.02 * math.sqrt(1e-7) * 0.1]
    )
    mixed = np.array([[0.0, 0.0], [0.5, 0.5], [0.4, 0.5]])
    half = np.array([[1e6, np.nan]] * 3)
    scaled, known = impact_rate(mixed, returns, np.zeros(3), half)
    assert known == pytest.approx(0.6 / 1.1)
    assert scaled == pytest.approx(rate / known)
    held = np.array([[0.5], [0.5 * 1.1 / 1.05]])  # what has merely grown was not traded
    rate, _ = impact_rate(held, np.array([[0.1], [0.0]]), np.array([0.05, 0.0]), np.ones((2, 1)))
    assert rate.tolist() == [0.0]


def test_the_size_at_which_alpha_is_gone():
    """0.1 % a day against 1e-7 times the root of the size: ten thousand squared."""
    noise = np.random.default_rng(5).normal(0.0, 0.002, 500)
    alpha, test = 0.001 + noise - noise[:-1].mean(), MeanTest(252, VerdictConfig())
    one = attribute_episode(the_run(), key_of("us", "index-hold"))
    account = msgspec.structs.replace(one, impact=(1e-7,) * 499, impact_known=1.0)
    found = capacity_evidence(alpha, [account], test)
    assert found.dies == pytest.approx(1e8)
    assert 0.0 < found.low < found.dies < (found.high or math.inf)
    assert found.sizes == pytest.approx([1e5, 1e6, 1e7, 3e7, 1e8, 3e8])
    assert [one.value for one in found.alphas] == pytest.approx(
        [252 * (0.001 - 1e-7 * math.sqrt(size)) for size in found.sizes], abs=1e-9
    )
    # At its ends the interval of alpha touches zero.
    below, beyond = (
        capacity_evidence(alpha - 1e-7 * math.sqrt(size), [account], test)
        for size in (found.low * 0.99, found.low * 1.01)
    )
    assert below.low > 0.0 and (beyond is None or beyond.low == 0.0)
    assert found.sentence.startswith("its alpha would be gone at a size of 100 million (")
    assert capacity_evidence(-alpha, [account], test) is None
    assert (
        capacity_evidence(alpha, [msgspec.structs.replace(account, impact_known=0.5)], test) is None
    )
    traded = attribute_episode(the_run(), key_of("us"))
    assert len(traded.impact) == len(traded.daily.sessions) - 1
    assert traded.impact_known == 1.0 and max(traded.impact) > 0.0
    words = ["1,200", "1 million", "2.3 million", "4.6 billion", "70 trillion"]
    assert [money_words(one) for one in (1234.0, 999_999.0, 2.34e6, 4.56e9, 7e13)] == words
    unsure = CapacityEvidence(sizes=(), alphas=(), dies=5e5, low=0.0, high=None, traded=1.0)
    assert unsure.sentence.startswith(
        "what alpha there may be would be gone at a size of 500,000 (none to any)"
    )


def test_the_command_shows_what_larger_accounts_would_have_left(tmp_path, tell):
    from exchange_calendars import get_calendar

    rng = np.random.default_rng(8)
    days = (
        get_calendar("XNYS", start="2022-01-03", end="2022-12-30")
        .sessions[:160]
        .strftime("%Y-%m-%d")
    )
    close = np.round(50.0 * np.cumprod(1.0 + rng.normal(0.0, 0.018, (160, 6)), axis=0), 4)
    bars, trades = ["date,symbol,open,high,low,close,volume"], []
    for day, prices in zip(days, close.tolist(), strict=True):
        for name, price in zip("ABCDEF", prices, strict=True):
            bars.append(
                f"{day},ZZ{name},{price},{price},{price},{price},{int(rng.integers(200_000, 400_000))}"
            )
    for day in range(5, 150, 5):
        best = int(np.argmax(close[day + 5] / close[day]))
        # Bought at the close of one session, sold five later at that one's.
        for at, side in ((day, "buy"), (day + 5, "sell")):
            trades.append(
                (
                    at,
                    side != "sell",
                    f"{days[at]} 15:59:00,ZZ{'ABCDEF'[best]},{side},10,{close[at, best]},0",
                )
            )
    log = tmp_path / "trades.csv"
    log.write_text(
        "\n".join(["time,symbol,side,quantity,price,fees", *(row for *_, row in sorted(trades))])
    )
    said = {}
    for volumes in (True, False):
        prices = tmp_path / f"bars-{volumes}.csv"
        prices.write_text("\n".join(row if volumes else row.rpartition(",")[0] for row in bars))
        for given in ((), ("--cash-at-start", "1e9")):
            words = ["assay", "file", str(log), "--prices", str(prices), "--capacity", *given]
            said[volumes, bool(given)] = "".join(tell(words))
    assert "capacity: alpha per year of larger accounts" in said[True, False]
    assert re.search(r"its alpha would be gone at a size of [\d.,]+ million", said[True, False])
    # Neither amounts that nobody knows nor an account that is nearly all cash has a size at which alpha is gone.
    for one in ((True, True), (False, False), (False, True)):
        assert "no size is known" in said[one] and "gone at" not in said[one], (one, said[one])
