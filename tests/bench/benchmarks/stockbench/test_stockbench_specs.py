"""The registered benchmarks, their windows, and the scripted models that play them."""

from pathlib import Path

import pytest
import scripted_misfits  # noqa: F401  # adds models
from exchange_checker import check_exchange
from stockbench_game import play, protocol

from tradeassay.core.errors import UserError
from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks import benchmarks, find_window, protocols
from tradeassay_bench.benchmarks.rules_text import rules_text
from tradeassay_bench.benchmarks.stockbench import (
    DJIA_20,
    SIZES,
    STOCKBENCH,
    STOCKBENCH_PAPER,
    Stockbench,
    error_profile,
    windows,
)
from tradeassay_bench.benchmarks.stockbench.specs import regime_rows
from tradeassay_bench.core.events import Marked
from tradeassay_bench.data import Snapshot, load_dataset, synthetic
from tradeassay_bench.data.store.manifest import MANIFEST_FILE
from tradeassay_bench.llm.scripted import scripted_models
from tradeassay_bench.play import Market


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home: Path = tmp_path_factory.mktemp("home")
    return load_dataset(STOCKBENCH.dataset, home)


def test_they_are_registered_and_say_their_rules():
    names = {name for name in benchmarks.names() if name.startswith("stockbench")}
    variants = ("", "-paper", "-5", "-10", "-30", "-down", "-up", "-djia", "-djia-paper")
    assert names == {f"stockbench{variant}-v1" for variant in variants}
    assert protocols.get("stockbench") is Stockbench and set(SIZES) == {5, 10, 20, 30}
    for name in names:
        benchmark = benchmarks.get(name)
        market, venue = benchmark.market, venues.get(benchmark.market.venue)
        warmer, mark, lot, slippage = {}, "close", 0.0001, 2.0
        if benchmark.convention == "paper":
            warmer, mark, lot, slippage = {"temperature": 0.7}, "open", 0.01, 0.0
        assert benchmark.protocol_params == {"convention": benchmark.convention, **warmer}
        assert (market.cash, market.decide, market.mark) == (100_000.0, "at_open", mark)
        fees = (venue.fees.buy_bps, venue.fees.sell_bps, venue.slippage.bps, venue.lots.lot)
        assert fees == (1.0, 1.0, slippage, lot)
    text = rules_text(STOCKBENCH)
    said = (
        "when the session opens",
        "only the 20 that were traded most",
        "100,000 USD",
        "multiples of 0.0001",
    )
    assert all(words in text for words in said) and len(set(DJIA_20)) == 20


def test_windows_are_the_middle_of_the_planted_regimes(world):
    found = {window.code: window for window in windows(world, "corrected")}
    for code, name in (
        ("main", "stockbench-v1"),
        ("down", "stockbench-down-v1"),
        ("up", "stockbench-up-v1"),
    ):
        market = benchmarks.get(name).market
        assert (found[code].first, found[code].last) == (market.first, market.last)
        assert found[code].sessions == 83 and found[code].structural
    levels = world.at(len(world.sessions) - 1, "close").index_levels("IDX")

    def change(code: str) -> float:
        rows = world.rows(found[code].first, found[code].last)
        return float(levels[rows.stop - 1] / levels[rows.start] - 1)

    assert change("down") < -0.05 and change("up") > 0.05
    assert find_window("stockbench", "DOWN", world, "paper") == found["down"]
    with pytest.raises(UserError, match="has no window 'sideways'"):
        find_window("stockbench", "sideways", world, "corrected")


@pytest.mark.parametrize("preset", ["us", "ashare"])
def test_regimes_are_where_the_answer_key_says(preset):
    config = synthetic.preset(preset, seed=1, names=12, new_listings=0, delistings=0)
    key = synthetic.generate(config).key
    said = [kind for kind, rows in regime_rows(config) for _ in rows]
    assert said == list(key.facts.regimes)


def test_other_data_has_its_worst_and_best_stretch(us):
    found = {window.code: window for window in windows(us, "corrected")}
    assert set(found) == {"down", "up"} and all(
        w.sessions == 83 and w.structural for w in found.values()
    )
    assert us.rows(found["down"].first, found["down"].last).start >= 252


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in scripted_models.names()
        if name != "away" and "coder" not in name and not name.startswith("tiny-")
    ],
)
@pytest.mark.parametrize("benchmark_", [STOCKBENCH, STOCKBENCH_PAPER], ids=lambda b: b.convention)
def test_scripted_models_play_and_their_faults_show(world, name, benchmark_):
    market = Market(world, benchmark_.market)
    model = scripted_models.get(name)()
    records, _ = play(market, protocol(market, **benchmark_.protocol_params), model.answer, days=15)
    profile = error_profile(records)
    rates = {
        kind: getattr(profile, kind).value
        for kind in ("schema", "arithmetic", "liquidity", "give_up")
    }
    clean = dict.fromkeys(rates, 0.0)
    match name:
        case "broken-json":
            assert rates["schema"] == 1.0 and 0 < rates["give_up"] < 1
        case "never-submits":
            assert rates == clean | {"schema": 1.0, "give_up": 1.0}
            assert all(record.decision.status == "failed" for record in records)
        case "overspender":
            assert rates["liquidity"] == 1.0 and rates["schema"] == rates["arithmetic"] == 0.0
        case _ if (
            benchmark_.convention == "paper"
        ):  # which does not count what sales of the same day bring
            assert rates | {"liquidity": 0.0} == clean
        case _:
            assert rates == clean
    last = records[-1].events[-1]
    assert isinstance(last, Marked) and last.cash >= 0


def test_nothing_is_made_where_nothing_was_asked_for(tmp_path):
    with pytest.raises(UserError, match="djia-2025"):
        load_dataset(benchmarks.get("stockbench-djia-v1").dataset, tmp_path)
    assert not list(tmp_path.rglob(MANIFEST_FILE))


def test_the_paper_s_venue_is_an_exchange():
    check_exchange("us-stockbench-v1", seeds=(0, 1))
