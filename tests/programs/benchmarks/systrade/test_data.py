"""Splits, synthetic years, and stored bars that end where the split does."""

from pathlib import Path

import numpy as np
import pytest
from tests.bench.benchmarks.coins import coins

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.benchmarks.exhibits import load_published
from tradeassay_bench.data import write_snapshot
from tradeassay_programs.benchmarks.systrade import STRATEGIES
from tradeassay_programs.benchmarks.systrade.benchmark import SystradeProtocol
from tradeassay_programs.benchmarks.systrade.data import (
    DAYS,
    INSTRUMENTS,
    SPLITS,
    YEAR,
    DaySpan,
    covered_days,
    instrument_groups,
    recipe,
    splits_of,
    stored_minutes,
    stored_year,
    synthetic_year,
)
from tradeassay_programs.benchmarks.systrade.loading import load_reference, load_spec
from tradeassay_programs.benchmarks.systrade.spec import SystradeSpec
from tradeassay_programs.benchmarks.systrade.tables import why_not_comparable


def test_the_two_synthetic_years_are_halves_of_one_path():
    for name in STRATEGIES:
        spec = load_spec(name)
        develop, test = synthetic_year(spec, "develop"), synthetic_year(spec, "test")
        assert (
            len(test.assets) == len(spec.semantics.inputs.legs)
            and develop.times[-1] < test.times[0]
        ), name
        assert develop.rows == test.rows >= YEAR
        again, other = synthetic_year(spec, "test"), synthetic_year(spec, "test", 2)
        assert all(
            np.array_equal(test.feeds[a]["close"], again.feeds[a]["close"]) for a in test.assets
        )
        assert not np.array_equal(test.feeds["A"]["close"], other.feeds["A"]["close"])


def test_minutes_are_for_strategies_that_have_them():
    year, other = (
        synthetic_year(load_spec("double-ma"), s, minutes=3000) for s in ("test", "develop")
    )  # type: ignore[arg-type]
    assert year.timeframe == "1m" and year.rows == 3000
    assert not np.array_equal(year.feeds["A"]["close"], other.feeds["A"]["close"])
    with pytest.raises(UserError, match="no minute version"):
        synthetic_year(load_spec("pairs"), minutes=3000)


def test_splits_and_instruments_are_the_papers_or_ones_own():
    assert SPLITS["develop"].last == SPLITS["test"].first and splits_of() == SPLITS
    own = splits_of(("2020-01-01", "2021-01-01", "2022-01-01"))
    assert own["develop"].last == own["test"].first == "2021-01-01"
    for bad in (("2021-01-01", "2020-01-01", "2022-01-01"), ("2020-01-01",), ("2020-01-01",) * 3):
        with pytest.raises(UserError, match="are not splits"):
            splits_of(bad)
    every = [symbol for symbols in INSTRUMENTS.values() for symbol in symbols]
    assert len(every) == 14 == len(set(every)) and set(INSTRUMENTS) == {"us", "crypto", "ashare"}
    us, crypto, ashare = recipe()
    assert (
        "data get yfinance --name systrade-us --symbols AAPL,MSFT" in us
        and "--last 2025-12-31" in us
    )
    assert crypto.endswith("-p minutes=true") and "BNB/USDT" in crypto and "510300.SH" in ashare


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored market of two coins: four days round a new year, five minutes of each."""
    price = np.column_stack((np.arange(1.0, 21.0), np.arange(101.0, 121.0)))
    prices = {name: price.copy() for name in ("open", "high", "low", "close", "volume", "amount")}
    for values in prices.values():
        values[11, 1] = np.nan  # a minute of 2025 that ETH does not have
    place = tmp_path_factory.mktemp("store") / "coins"
    close = np.arange(1.0, 9.0).reshape(4, 2) * 10.0
    write_snapshot(coins("2024-12-30", close, prices, ("BTC", "ETH")), place, allow_faults=True)
    return place


def test_stored_days_end_with_their_split(home):
    develop, test = (stored_year(str(home), ("BTC",), SPLITS[name]) for name in ("develop", "test"))  # type: ignore[index]
    assert [str(t)[:10] for t in develop.times] == ["2024-12-30", "2024-12-31"]
    assert [str(t)[:10] for t in test.times] == ["2025-01-01", "2025-01-02"]
    both = stored_year(
        str(home), ("BTC", "ETH"), DaySpan(name="test", first="2024-01-01", last="2026-01-01")
    )
    assert both.rows == 4 and list(both.feeds) == ["A", "B"]


def test_stored_minutes_are_those_that_all_legs_have(home):
    test = stored_minutes(str(home), ("BTC", "ETH"), SPLITS["test"])
    assert (
        test.timeframe == "1m"
        and test.rows == 9
        and str(test.times[0]) == "2025-01-01T00:00:00.000000000"
    )
    assert test.feeds["A"]["close"].tolist() == [11.0, *np.arange(13.0, 21.0).tolist()]
    assert test.feeds["B"]["close"][0] == 111.0
    develop = stored_minutes(str(home), ("ETH",), SPLITS["develop"])
    assert develop.rows == 10 and develop.times[-1] < test.times[0]
    assert stored_minutes(str(home), ("ETH",), SPLITS["develop"], most=3).rows == 3
    later = DaySpan(name="test", first="2030-01-01", last="2031-01-01")
    for stored in (stored_year, stored_minutes):
        with pytest.raises(UserError, match="no session in 2030"):
            stored(str(home), ("BTC",), later)
    with pytest.raises(DataError, match="no instrument 'SOL'"):
        stored_minutes(str(home), ("SOL",), SPLITS["test"])


def test_the_papers_figures_are_whole():
    figures = load_published("systrade")
    rows = figures["by_strategy"]
    assert len(figures["gates"]) == figures["models"] == 17
    assert {row["strategy"] for row in rows} == set(STRATEGIES)
    assert round(float(np.mean([row["overall"] for row in rows])), 1) == 6.4
    assert round(float(np.mean([row["valid"] for row in rows])), 1) == 11.5, "11.6 is printed"
    assert all(
        row["overall"] == pytest.approx((row["llm"] + row["qr"]) / 2, abs=0.011) for row in rows
    )
    assert len(why_not_comparable(strategies=12, iterations=1, real_data=True, reviewed=True)) == 3
    other = why_not_comparable(
        strategies=1, iterations=4, real_data=False, reviewed=False, systb=True
    )
    assert len(other) == 7 and "public repository" in other[0]


def test_every_symbol_leads_once_beside_its_own_kind(home):
    both = f"{home},synthetic/us:7"
    single = instrument_groups(both, ("BTC", "ETH", "AAJX"), 1)
    assert [symbols for _, symbols in single] == [("BTC",), ("ETH",), ("AAJX",)]
    pairs = instrument_groups(both, ("BTC", "AAJX", "ETH", "ACXJ"), 2)
    names = [" ".join(symbols) for _, symbols in pairs]
    assert names == ["BTC ETH", "ETH BTC", "AAJX ACXJ", "ACXJ AAJX"]
    assert {name for name, _ in instrument_groups(both, ("BTC", "AAJX"), 1, minutes=True)} == {
        str(home)
    }
    assert instrument_groups(both, ("BTC", "AAJX"), 2) == (), (
        "legs of one strategy lie in one data set"
    )
    with pytest.raises(UserError, match="has no 'SOL'"):
        instrument_groups(both, ("SOL",), 1)


def test_days_are_the_papers_where_the_data_has_them(home):
    assert covered_days([str(home)]) == DAYS
    first, middle, last = covered_days(["synthetic/us:7", "synthetic/ashare:7"])
    assert first < middle < last and not first.startswith("2024")
    with pytest.raises(UserError, match="no days in common"):
        covered_days([str(home), "synthetic/us:7"])


def test_the_year_is_that_of_the_bars():
    daily, minutes = load_spec("vol-target"), load_spec("vol-target", minutes=True)
    assert daily.semantics.parameters["year"].value == 252
    assert minutes.semantics.parameters["year"].value == 525_600
    assert "| `year` | 525600 |" in minutes.doc and "| `year` | 252 |" not in minutes.doc
    for one, other in zip(daily.scenarios, minutes.scenarios, strict=True):
        assert one.expected.row.tolist() == other.expected.row.tolist(), (
            "the same path, only calmer"
        )
        assert one.expected.fraction == pytest.approx(other.expected.fraction, rel=1e-9)
    reference = load_reference("vol-target", minutes=True)
    assert (
        reference.read_card().parameters["year"] == 525_600 and "YEAR = 525600" in reference.source
    )
    assert load_spec("bollinger", minutes=True) is load_spec("bollinger")


def test_on_minutes_it_aims_at_its_goal():
    bars = synthetic_year(load_spec("vol-target"), minutes=4_000)
    daily, minutes = (
        load_spec("vol-target", minutes=m).frozen_decisions(bars).fraction for m in (False, True)
    )
    assert np.all(daily == 1.0), "by the year of days every minute is calm"
    assert minutes.size > 5 and minutes.min() < 0.5
    spec = SystradeSpec(models=("scripted/builder-gold",), strategies=("vol-target",), minutes=600)
    protocol = SystradeProtocol(spec)
    assert protocol.strategies["vol-target"].semantics.parameters["year"].value == 525_600
    assert "strategy vol-target on minutes" in protocol.facts()
