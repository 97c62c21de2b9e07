"""The stationary bootstrap: right by construction, like arch's, and its intervals cover."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig, mean_block_length, resamples, sharpe, wilson_interval
from tradeassay.metrics.intervals import (
    choose_block,
    content_seed,
    longest_block,
    percentile_interval,
    seed_resamples,
    significant,
    student_reach,
)


def autoregressive(n: int, phi: float, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(n)
    out = np.zeros(n)
    for t in range(n):
        out[t] = phi * out[t - 1] * (t > 0) + noise[t]
    return out


@pytest.mark.parametrize("n", [20, 83, 250, 1000])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.8, 0.97, -0.4])
def test_block_length_is_archs(n, phi):
    from arch.bootstrap import optimal_block_length

    values = autoregressive(n, phi, n)
    expected = float(optimal_block_length(values)["stationary"].iloc[0])
    assert mean_block_length(values) == pytest.approx(max(1.0, expected), rel=1e-9)


def test_what_makes_blocks_long_and_what_cannot_be_measured():
    for still in (np.zeros(100), np.full(100, 0.1), np.arange(5.0)):
        assert mean_block_length(still) == 1.0
    assert mean_block_length(np.arange(100.0)) <= longest_block(100)
    rng = np.random.default_rng(2)
    spells = rng.standard_normal(600) * np.where((np.arange(600) // 60) % 2 == 0, 0.2, 3.0)
    assert choose_block(spells, BootstrapConfig()) > 5 * mean_block_length(spells)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 80), st.floats(1, 30), st.integers(0, 2**64))
def test_resamples_walk_forward_in_blocks(n, block, seed):
    rows = np.concatenate(list(resamples(n, 7, block, seed)))
    assert rows.shape == (7, n)
    assert rows.min() >= 0
    assert rows.max() < n


def test_blocks_have_the_asked_mean_length_and_every_session_the_same_chance():
    n, block = 200, 8.0
    rows = np.concatenate(list(resamples(n, 4000, block, 5)))
    follows = (rows[:, 1:] - rows[:, :-1]) % n == 1
    # A new block continues by chance once in n.
    assert 1.0 / (1.0 - follows.mean()) == pytest.approx(block, rel=0.06)
    share = np.bincount(rows.ravel(), minlength=n) / rows.size
    assert share == pytest.approx(np.full(n, 1 / n), rel=0.15)
    plain = np.concatenate(list(resamples(100, 500, 1.0, 1)))
    assert ((plain[:, 1:] - plain[:, :-1]) % 100 == 1).mean() == pytest.approx(0.01, abs=0.004)


def test_chunks_do_not_change_the_rows(monkeypatch):
    whole = np.concatenate(list(resamples(50, 40, 4.0, 9)))
    monkeypatch.setattr("tradeassay.metrics.intervals._CHUNK", 150)
    parts = list(resamples(50, 40, 4.0, 9))
    assert len(parts) == 14
    assert (np.concatenate(parts) == whole).all()


def test_the_stream_is_pinned() -> None:
    # numpy guarantees the raw stream of PCG64; a change here would silently change every stored interval.
    assert next(resamples(10, 1, 3.0, 2024)).tolist() == [[6, 7, 3, 4, 9, 0, 1, 2, 3, 1]]
    assert seed_resamples(3, 2, 7).tolist() == [[2, 0, 0], [0, 2, 1]]


def test_like_archs_bootstrap():
    from arch.bootstrap import StationaryBootstrap

    values = autoregressive(300, 0.5, 4) * 0.01 + 0.001
    block = mean_block_length(values)
    ours = np.concatenate([sharpe(values[rows], 252) for rows in resamples(300, 2000, block, 3)])
    drawn = StationaryBootstrap(block, values, seed=np.random.default_rng(8))
    theirs = drawn.apply(lambda x: float(sharpe(x, 252)), 2000)
    assert ours.mean() == pytest.approx(theirs.mean(), abs=4 * theirs.std() / np.sqrt(2000) * 1.5)
    assert ours.std() == pytest.approx(theirs.std(), rel=0.08)
    for tail in (0.025, 0.975):
        assert np.quantile(ours, tail) == pytest.approx(np.quantile(theirs, tail), abs=0.2 * theirs.std())


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.89), (0.3, 0.84)])
def test_intervals_cover_the_truth_about_as_often_as_they_say(phi, least):
    covered = []
    for trial in range(200):
        values = autoregressive(250, phi, 1000 + trial)
        seed = content_seed(BootstrapConfig(), values)
        block = choose_block(values, BootstrapConfig())
        means = np.concatenate([values[rows].mean(axis=1) for rows in resamples(250, 300, block, seed)])
        low, high = np.quantile(means, [0.025, 0.975])
        covered.append(low <= 0.0 <= high)
    assert least <= np.mean(covered) <= 0.99


def test_an_interval_without_blocks_would_lie():
    """With autocorrelated returns the plain bootstrap is far too sure: blocks are not decoration."""
    plain, blocks = [], []
    for trial in range(60):
        values = autoregressive(250, 0.6, 5000 + trial)
        for found, block in ((plain, 1.0), (blocks, choose_block(values, BootstrapConfig()))):
            means = np.concatenate([values[rows].mean(axis=1) for rows in resamples(250, 200, block, trial)])
            low, high = np.quantile(means, [0.025, 0.975])
            found.append(low <= 0.0 <= high)
    assert np.mean(plain) < 0.75 < np.mean(blocks)


def test_percentile_interval_needs_most_resamples():
    drawn = np.arange(1000.0)
    assert percentile_interval(drawn, 0.9) == pytest.approx((49.95, 949.05))
    drawn[:40] = np.nan
    assert percentile_interval(drawn, 0.9) is not None
    drawn[:60] = np.nan
    assert percentile_interval(drawn, 0.9) is None


def test_wilson_by_hand() -> None:
    # 0 of 10 at 95 %: high = z^2 / (n + z^2).
    low, high = wilson_interval(0, 10, 0.95)
    assert low == 0.0
    assert high == pytest.approx(3.841459 / 13.841459, rel=1e-6)
    assert wilson_interval(10, 10, 0.95)[1] == 1.0
    low, high = wilson_interval(5, 10, 0.95)
    assert low == pytest.approx(0.2366, abs=1e-4)
    assert high == pytest.approx(0.7634, abs=1e-4)


@pytest.mark.parametrize(
    ("freedom", "level", "printed"),
    [(1, 0.95, 12.706), (4, 0.95, 2.776), (10, 0.99, 3.169), (30, 0.90, 1.697), (1e9, 0.95, 1.960)],
)
def test_student_s_interval_reaches_as_far_as_printed_tables_say(freedom, level, printed):
    assert student_reach(freedom, level) == pytest.approx(printed, abs=5e-4)


def test_significant_digits():
    long = (0.1 + 0.2, -123456.7890123456, 0.0, 1.5e-300)
    assert [significant(one) for one in long] == [0.3, -123456.789012, 0.0, 1.5e-300]


@pytest.mark.parametrize(
    "settings", [{"draws": 0}, {"level": 1.0}, {"block": 0.5}, {"shortest": 0.0}, {"least": 1}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UserError, match=r"\("):
        BootstrapConfig(**settings)
