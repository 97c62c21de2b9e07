"""Minutes: a year round the clock, and minutes that fit into given days."""

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.time import MINUTE, midnight, parse_day
from tradeassay_bench.core.view import FIELDS
from tradeassay_bench.data.synthetic import MinuteConfig, generate_minutes
from tradeassay_bench.data.synthetic.minutes import HOURS


@pytest.fixture(scope="module")
def year():
    return generate_minutes(MinuteConfig(seed=4))


def test_a_year_of_minutes(year):
    assert year.close_time.size == 525_600 and year.symbols == ("QUQX",)
    assert year.close_time[0] == midnight(parse_day("2021-01-01")) + MINUTE
    assert np.all(np.diff(year.close_time) == MINUTE)
    bars = {name: year.bars[name][:, 0] for name in FIELDS}
    assert all(np.isfinite(values).all() and (values > 0).all() for values in bars.values())
    assert np.all(bars["high"] >= np.maximum(bars["open"], bars["close"]))
    assert np.all(bars["low"] <= np.minimum(bars["open"], bars["close"]))
    assert np.array_equal(bars["open"][1:], bars["close"][:-1])
    assert np.array_equal(np.rint(bars["close"] * 100) / 100, bars["close"])


def test_its_returns_cluster_and_have_fat_tails(year):
    close = year.bars["close"][:, 0]
    returns = close[1:] / close[:-1] - 1
    sizes = np.abs(returns)

    def correlation(x: np.ndarray, lag: int) -> float:
        return float(np.corrcoef(x[:-lag], x[lag:])[0, 1])

    assert np.mean((returns - returns.mean()) ** 4) / returns.var() ** 2 > 6
    assert (
        correlation(sizes, 1) > 0.1
        and correlation(sizes, 60) > 0.05
        and correlation(sizes, 1440) > 0.02
    )
    assert abs(correlation(returns, 1)) < 0.02
    assert returns.std() * np.sqrt(525_600) == pytest.approx(0.60, rel=0.25)


def test_its_days_have_a_shape(year):
    close = year.bars["close"][:, 0]
    sizes = np.abs(np.diff(close) / close[:-1])
    hour = np.arange(1, close.size) % 1440 // 60
    lively = np.array([sizes[hour == h].mean() for h in range(24)])
    assert np.corrcoef(lively, HOURS)[0, 1] > 0.9
    volume = year.bars["volume"][1:, 0]
    assert np.corrcoef(sizes, np.log(volume))[0, 1] > 0.3


def test_a_short_series_and_none():
    assert generate_minutes(MinuteConfig(minutes=7)).close_time.size == 7
    with pytest.raises(UserError, match="at least one"):
        MinuteConfig(minutes=0)


@pytest.mark.parametrize(("name", "per_day"), [("us", 390), ("ashare", 240), ("crypto", 1440)])
def test_minutes_fit_into_their_days(world, name, per_day):
    assert world(name, 1, names=20, sessions=90).panel.minutes is None, "unless asked for"
    panel = world(name, 1, names=20, sessions=90, minutes=2).panel
    minutes = panel.minutes
    assert len(minutes.symbols) == 2
    row = np.searchsorted(panel.close_time, minutes.close_time)
    assert np.all(minutes.close_time > panel.open_time[row])
    counts = np.bincount(row)
    assert counts.max() == per_day and np.median(counts) == per_day
    for place, symbol in enumerate(minutes.symbols):
        column = panel.symbols.index(symbol)
        for day in range(0, 90, 7):
            inside = row == day
            bars = {f: minutes.bars[f][inside, place] for f in FIELDS}
            whole = {f: panel.bars[f][day, column] for f in FIELDS}
            if np.isnan(whole["close"]):
                assert np.isnan(bars["close"]).all()
                continue
            assert bars["open"][0] == whole["open"] and bars["close"][-1] == whole["close"]
            assert bars["high"].max() == whole["high"] and bars["low"].min() == whole["low"]
            assert bars["volume"].sum() == whole["volume"]
            assert np.array_equal(bars["open"][1:], bars["close"][:-1])
            assert np.all(bars["high"] >= np.maximum(bars["open"], bars["close"]))
            assert np.all(bars["low"] <= np.minimum(bars["open"], bars["close"]))
