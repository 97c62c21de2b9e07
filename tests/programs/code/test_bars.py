"""Bars that strategies are run on: the same for ever, whole, and of the kind that the market's
name says.
"""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay_bench.data import open_snapshot, synthetic, write_snapshot
from tradeassay_programs.code.bars import (
    FIELDS,
    MARKETS,
    MINUTES,
    TaskBars,
    bars_from_snapshot,
    bars_per_session,
    make_bars,
)


@given(
    market=st.sampled_from(sorted(MARKETS)),
    timeframe=st.sampled_from(sorted(MINUTES)),
    assets=st.integers(1, 4),
    bars=st.integers(1, 700),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_every_market_is_whole(market, timeframe, assets, bars, seed):
    made = make_bars(market, timeframe, assets, bars, seed)  # type: ignore[arg-type]
    assert made.rows == bars
    assert len(made.assets) == assets
    assert (np.diff(made.times) > np.timedelta64(0)).all()
    for feed in made.feeds.values():
        assert all(np.isfinite(feed[name]).all() for name in FIELDS[1:])
        assert (feed["low"] > 0).all()
        assert (feed["low"] <= np.minimum(feed["open"], feed["close"])).all()
        assert (feed["high"] >= np.maximum(feed["open"], feed["close"])).all()
        assert (feed["volume"] >= 1).all()
        assert not feed["close"].flags.writeable


def test_the_same_arguments_give_the_same_bars_for_ever():
    digest = hashlib.sha256()
    for market in sorted(MARKETS):
        for values in make_bars(market, "1h", 2, 120, 7).columns().values():
            digest.update(values.tobytes())
    assert digest.hexdigest() == "b7a5c86c6b2f4bbd428c8f1f1e5b12d326cb79ab10f4bbc5c44299923623cfc1"
    assert make_bars("us", seed=1) is make_bars("us", seed=1)
    assert not np.array_equal(
        make_bars("us", seed=1).feeds["A"]["close"], make_bars("us", seed=2).feeds["A"]["close"]
    )


def test_fewer_assets_or_bars_are_the_start_of_more():
    small, large = make_bars("crypto", "5m", 1, 100, 4), make_bars("crypto", "5m", 3, 100, 4)
    assert np.array_equal(small.feeds["A"]["close"], large.feeds["A"]["close"])
    assert np.array_equal(large.first(40).times, large.times[:40])


def test_sessions_of_an_exchange():
    bars = make_bars("us", "5m", 1, 78 * 4)
    clock = (bars.times - bars.times.astype("M8[D]")).astype("m8[m]").astype(int)
    assert set(clock.tolist()) == set(range(570, 960, 5))
    days, counts = np.unique(bars.sessions, return_counts=True)
    assert counts.tolist() == [78] * 4
    assert (
        days.tolist()
        == np.array(["2023-01-03", "2023-01-04", "2023-01-05", "2023-01-06"], "M8[D]").tolist()
    )
    assert bars_per_session("exchange", "1h") == 7


def test_a_futures_evening_belongs_to_the_next_days_session():
    bars = make_bars("futures", "1h", 1, 46)
    assert str(bars.times[0]) == "2023-01-02T18:00:00.000000000"
    assert np.unique(bars.sessions).astype(str).tolist() == ["2023-01-03", "2023-01-04"]
    clock = (bars.times - bars.times.astype("M8[D]")).astype("m8[h]").astype(int)
    assert 17 not in clock


def test_days_are_weekdays_without_holidays_and_crypto_never_rests():
    days = make_bars("us", "1d", 1, 1500).times.astype("M8[D]")
    assert np.is_busday(days).all()
    assert not np.isin(
        np.array(["2016-07-04", "2016-11-24", "2017-01-02", "2018-12-25"], "M8[D]"), days
    ).any()
    assert (np.diff(make_bars("crypto", "1m", 1, 3000).times) == np.timedelta64(1, "m")).all()


def test_markets_are_what_they_are_called():
    def moves(market: str) -> np.ndarray:
        closes = [
            make_bars(market, "1d", 1, 1481, seed).feeds["A"]["close"] for seed in range(1, 6)
        ]
        return np.diff(np.log(np.stack(closes)))

    assert moves("volatile").std() > 2 * moves("us").std()
    long_run = {}
    for name in ("trend", "us", "range"):
        found = moves(name)
        long_run[name] = np.abs(found.reshape(5, -1, 40).sum(axis=2)).mean() / found.std()
    assert long_run["trend"] > 1.2 * long_run["us"] > 1.2 * long_run["range"]
    pair = make_bars("pairs", "1d", 2, 1500)
    spread = pair.feeds["B"]["close"] / pair.feeds["A"]["close"]
    assert spread.std() / spread.mean() < 0.08
    many = make_bars("crypto", "1d", 3, 1500)
    related = np.corrcoef([np.diff(np.log(feed["close"])) for feed in many.feeds.values()])
    assert (related[np.triu_indices(3, 1)] > 0.4).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"market": "moon"}, "unknown market 'moon'"),
        ({"timeframe": "2d"}, "unknown timeframe '2d'"),
        ({"assets": 27}, "27 assets"),
        ({"bars": 0}, "0 bars"),
    ],
)
def test_wrong_arguments_are_named(changed, words):
    with pytest.raises(UserError, match=words):
        make_bars(**{"market": "us", **changed})  # type: ignore[arg-type]


def test_feeds_must_share_their_times():
    one, other = make_bars("us", "1d", 1, 5), make_bars("crypto", "1d", 1, 5)
    with pytest.raises(UserError, match="other times"):
        TaskBars({"A": one.feeds["A"], "B": other.feeds["A"]}, "1d")
    with pytest.raises(UserError, match="no column 'close'"):
        TaskBars({"A": {name: one.feeds["A"][name] for name in FIELDS if name != "close"}}, "1d")
    with pytest.raises(UserError, match="at least one asset"):
        TaskBars({}, "1d")


def test_stored_days_become_bars(tmp_path):
    config = synthetic.preset(
        "us", seed=3, names=8, sessions=60, new_listings=1, delistings=1, fundamentals=False
    )
    write_snapshot(synthetic.generate(config).panel, tmp_path / "small")
    stored = open_snapshot(tmp_path / "small")
    view = stored.at(stored.rows()[-1], "close")
    traded = np.isfinite(view.bars("close")).sum(axis=0)
    full, part = (view.symbols[int(place)] for place in (np.argmax(traded), np.argmin(traded)))
    bars = bars_from_snapshot(stored, (full, part))
    assert bars.assets == ("A", "B")
    assert 0 < bars.rows <= traded.min() < 60
    assert bars.timeframe == "1d"
    close = view.bars("close")[:, view.column(full)]
    assert np.isin(bars.feeds["A"]["close"], close).all()
    assert bars_from_snapshot(stored, (full,), first="2021-02-01").times[0] >= np.datetime64(
        "2021-02-01"
    )
    with pytest.raises(UserError, match="0 symbols"):
        bars_from_snapshot(stored, ())
