"""The worlds look like markets where a market's look matters, and nowhere break its rules."""

import numpy as np
import pytest

from tradeassay_bench.core.view import FIELDS
from tradeassay_bench.data.calendars import sessions_between
from tradeassay_bench.data.doctor import diagnose_panel
from tradeassay_bench.data.store.write import check_form

ALL = ("us", "ashare", "crypto")
other_seeds = pytest.mark.slow_for(*(f"{seed}-{name}" for seed in (1, 2) for name in ALL))


def autocorrelation(x: np.ndarray, lag: int) -> float:
    """The mean over names of each name's autocorrelation."""
    found = []
    for column in x.T:
        both = np.isfinite(column[lag:]) & np.isfinite(column[:-lag])
        if both.sum() > 200:
            found.append(np.corrcoef(column[lag:][both], column[:-lag][both])[0, 1])
    return float(np.mean(found))


def kurtosis(x: np.ndarray) -> float:
    x = x[np.isfinite(x)]
    return float(np.mean((x - x.mean()) ** 4) / x.var() ** 2)


@other_seeds
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_doctor_finds_nothing_and_sessions_are_the_calendars(world, name, seed):
    panel = world(name, seed).panel
    check_form(panel)
    assert diagnose_panel(panel) == ()
    expected = sessions_between(
        panel.facts.calendar, str(panel.sessions[0]), str(panel.sessions[-1])
    )
    assert np.array_equal(panel.sessions, expected.days)
    assert np.array_equal(panel.open_time, expected.open_time)
    assert panel.sessions.size == 750 and panel.facts.kind == "synthetic"


@pytest.mark.parametrize("name", ALL)
def test_bars_are_ordered_positive_and_on_the_tick(world, name):
    panel = world(name).panel
    bars = {f: panel.bars[f] for f in FIELDS}
    there = np.isfinite(bars["close"])
    for values in bars.values():
        assert np.array_equal(np.isfinite(values), there)
        assert np.all(values[there] > 0)
    top, bottom = np.fmax(bars["open"], bars["close"]), np.fmin(bars["open"], bars["close"])
    assert np.all(bars["high"][there] >= top[there]) and np.all(bars["low"][there] <= bottom[there])
    assert np.all(bars["volume"][there] == np.rint(bars["volume"][there]))
    unit = np.rint(1.0 / np.array([entry.instrument.tick for entry in panel.listings]))
    for f in ("open", "high", "low", "close"):
        ticks = np.rint(bars[f] * unit)
        assert np.array_equal(ticks / unit, bars[f], equal_nan=True)
    mean = (bars["open"] + bars["high"] + bars["low"] + bars["close"]) / 4
    multiplier = np.array([entry.instrument.multiplier for entry in panel.listings])
    np.testing.assert_allclose(
        bars["amount"][there], (mean * bars["volume"] * multiplier)[there], rtol=1e-6, atol=0.01
    )


@other_seeds
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [0, 1])
def test_returns_have_fat_tails_and_clusters_but_no_memory(world, market, name, seed):
    seen = market(world(name, seed).panel)
    returns = seen.returns[:, seen.stocks]
    assert kurtosis(returns) > 4.5
    assert abs(autocorrelation(returns, 1)) < 0.07 and abs(autocorrelation(returns, 2)) < 0.05
    sizes = np.abs(returns)
    assert autocorrelation(sizes, 1) > 0.06 and autocorrelation(sizes, 5) > 0.04


@pytest.mark.parametrize(("name", "share"), [("us", 0.28), ("ashare", 0.22), ("crypto", 0.01)])
def test_the_night_has_its_share_of_the_move(world, market, name, share):
    seen = market(world(name).panel)
    night = np.nanvar((seen.open[1:] / seen.close[:-1] - 1)[:, seen.stocks])
    day = np.nanvar((seen.close / seen.open - 1)[:, seen.stocks])
    assert night / (night + day) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("name", ALL)
def test_volume_follows_the_size_of_moves(world, market, name):
    seen = market(world(name).panel)
    sizes = np.abs(seen.returns[:, seen.stocks])
    volume = np.log(seen.volume[1:, seen.stocks])
    volume = volume - np.nanmean(volume, axis=0)
    both = np.isfinite(sizes) & np.isfinite(volume)
    assert np.corrcoef(sizes[both], volume[both])[0, 1] > 0.25


@other_seeds
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_regimes_are_what_they_are_called(world, name, seed):
    made = world(name, seed)
    regimes = np.array(made.key.facts.regimes)
    assert {"bull", "bear", "v", "flat"} == set(regimes.tolist())
    total = {kind: float(made.key.market[regimes == kind].sum()) for kind in set(regimes.tolist())}
    assert total["bull"] > 0.1 and total["bear"] < -0.15
    assert abs(total["flat"]) < 1e-9 and abs(total["v"]) < 1e-9
    rows = np.flatnonzero(regimes == "v")
    fall = made.key.market[rows[: rows.size // 2]].sum()
    assert fall < -0.2
    levels = made.panel.indices["IDX"]
    moves = np.diff(levels) / levels[:-1]
    assert np.corrcoef(moves, made.key.market[1:])[0, 1] > 0.7
    assert moves[regimes[1:] == "bull"].sum() > moves[regimes[1:] == "bear"].sum()


@pytest.mark.parametrize("name", ALL)
def test_names_come_and_go(world, name):
    panel = world(name).panel
    first = str(panel.sessions[0])
    assert any(entry.listed > first for entry in panel.listings)
    assert any(entry.delisted is not None for entry in panel.listings)
    assert name != "ashare" or panel.suspended.sum() > 100
    for column, entry in enumerate(panel.listings):
        days = panel.sessions.astype(str)
        listed = (days >= entry.listed) & (days <= (entry.delisted or "9999"))
        there = np.isfinite(panel.bars["close"][:, column])
        assert np.array_equal(there, listed & ~panel.suspended[:, column])
        assert not panel.suspended[~listed, column].any()
        assert there[np.flatnonzero(listed)[0]] and there[np.flatnonzero(listed)[-1]]


def test_names_and_codes_are_made_up(world):
    for name in ("us", "crypto"):
        for entry in world(name).panel.listings:
            symbol = entry.instrument.symbol
            assert symbol == "IDXF" or (
                len(symbol) == 4 and symbol.isalpha() and set(symbol[2:]) & set("QXZJ")
            )
    prefixes = ("609", "009", "309", "6895", "929")
    for entry in world("ashare").panel.listings:
        symbol = entry.instrument.symbol
        assert symbol == "IDXF" or (len(symbol) == 6 and symbol.startswith(prefixes))
