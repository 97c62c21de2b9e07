"""The panel: reasons instead of numbers, the same bytes twice, repetitions, and the baseline."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay import metrics as m
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import score

QUICK = m.BootstrapConfig(draws=200)


def path(n: int = 120, drift: float = 0.0005, seed: int = 0, scale: float = 0.01) -> np.ndarray:
    return 1e5 * m.growth(drift + scale * np.random.default_rng(seed).standard_normal(n))


PLAIN = m.series_from_nav(path(), index=path(seed=1))


def test_every_measure_is_there_in_order_with_an_interval():
    scores = score(PLAIN, bootstrap=QUICK)
    assert list(scores) == [info.id for info in m.MEASURES]
    returns = (
        "cumulative_return annualised_return excess_return volatility max_drawdown hit_rate".split()
    )
    for name in (
        *returns,
        "sharpe",
        "sortino",
        "sortino_stockbench",
        "calmar",
        "information_ratio",
    ):
        measure = scores[name]
        assert measure.value is not None and measure.low < measure.high and measure.n == 120, name
    assert scores["hhi"].reason == "nothing was ever held"
    assert scores["rejection_rate"].reason == "no order was given"
    ours, theirs = (float(nav[-1] / nav[0]) for nav in (path(), path(seed=1)))
    assert scores["excess_return"].value == pytest.approx(ours - theirs)


def test_equal_input_equal_bytes_that_survive_json_with_twelve_digits():
    salted, (one, two) = (
        m.BootstrapConfig(draws=200, salt=1),
        (score(PLAIN, bootstrap=QUICK) for _ in range(2)),
    )
    assert (
        canonical_json(one) == canonical_json(two) != canonical_json(score(PLAIN, bootstrap=salted))
    )
    assert msgspec.json.decode(msgspec.json.encode(one), type=dict[str, Measure]) == one
    for measure in one.values():
        for value in (measure.value, measure.low, measure.high):
            assert value is None or value == float(f"{value:.11e}")


def test_cash_has_a_return_of_zero_and_no_ratios():
    scores = score(m.series_from_nav(np.full(60, 1e5), index=path(59)), bootstrap=QUICK)
    assert {scores[name].value for name in ("cumulative_return", "volatility", "max_drawdown")} == {
        0.0
    }
    for name, reason in (
        ("sharpe", "the returns do not vary"),
        ("sortino", "no session lost money"),
        ("calmar", "the account never fell below a former peak"),
        ("hit_rate", "no session gained or lost money"),
    ):
        assert scores[name].reason == reason
    assert scores["information_ratio"].value is not None


def test_a_ruined_account_shows_its_loss():
    nav = np.concatenate([path(30), [-5000.0, -4000.0]])
    scores = score(m.series_from_nav(nav), bootstrap=QUICK)
    assert scores["cumulative_return"].value == pytest.approx(-1.04)
    assert scores["max_drawdown"].value < -1.0
    assert scores["sharpe"].reason == "the account was worth nothing or less on 30"
    assert scores["annualised_return"].value is None
    # No sessions, no money.
    assert score(m.series_from_nav(np.array([1e5])))["sharpe"].reason == "there are no sessions"
    assert (
        score(m.series_from_nav(np.array([0.0, 1.0])))["sharpe"].reason
        == "the account started with nothing"
    )


def test_what_must_be_known_about_the_index_goes_with_both_measures():
    series, short, other = (
        dataclasses.replace(
            m.series_from_nav(nav, index=path(nav.size - 1, seed=1)), index_note="without dividends"
        )
        for nav in (path(), path(12), path(seed=3))
    )
    scores, few, others = (score(one, bootstrap=QUICK) for one in (series, short, other))
    noted = {name for name, measure in scores.items() if "without dividends" in str(measure.note)}
    assert noted == {"excess_return", "information_ratio"}
    assert (
        few["information_ratio"].note
        == "no interval: 12 sessions, at least 20 are needed; without dividends"
    )
    both = m.across_seeds([series, other], [scores, others], bootstrap=QUICK)
    assert str(both["information_ratio"].median.note) == "over 2 repetitions; without dividends"
    same = m.across_seeds([series, series], [scores, scores], bootstrap=QUICK)
    assert all(same[name].median == scores[name] for name in scores)


def test_an_index_with_a_gap_is_none():
    holed = path(seed=1)
    holed[50] = np.nan
    scores = score(m.series_from_nav(path(), index=holed), bootstrap=QUICK)
    assert scores["information_ratio"].reason == "no index without gaps to compare with"
    assert scores["sharpe"].value is not None


@pytest.mark.slow
def test_the_processor_does_not_change_a_byte():
    """The same scores with numpy's processor-specific code switched off."""
    script = (
        "import numpy as np, sys\n"
        "from tradeassay.core.hashing import canonical_json\n"
        "from tradeassay.metrics import compare_to_baseline, growth, score, series_from_nav\n"
        "r = (np.arange(160) * 7919 % 997 / 997 - 0.49) * 0.02\n"
        "nav, base = 1e5 * growth(r), 1e5 * growth(r[::-1] * 0.9)\n"
        "found = score(series_from_nav(nav, index=base)), compare_to_baseline(nav, base)\n"
        "sys.stdout.buffer.write(canonical_json(found))\n"
    )
    core = np._core._multiarray_umath  # type: ignore[attr-defined]
    special = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    one, other = (
        subprocess.check_output([sys.executable, "-c", script], env={**os.environ, **extra})
        for extra in ({}, {"NPY_DISABLE_CPU_FEATURES": " ".join(special)})
    )
    assert one == other and len(one) > 1000


def test_the_manual_names_every_measure():
    page = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
    assert [info.id for info in m.MEASURES if f"`{info.id}`" not in page.read_text()] == []


def test_intervals_that_cannot_be_given():
    few = score(m.series_from_nav(path(12)), bootstrap=QUICK)["sharpe"]
    assert few.value is not None and few.low is None
    assert few.note == "no interval: 12 sessions, at least 20 are needed"
    rising = 1e5 * m.growth(
        np.concatenate([np.full(59, 0.01), [-0.02], np.full(59, 0.01), [-0.03]])
    )
    measure = score(m.series_from_nav(rising), bootstrap=QUICK)["sortino_stockbench"]
    assert measure.value is not None and measure.low is None
    assert "of the resamples have no value" in str(measure.note)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=40))
def test_whatever_happened_there_is_a_number_or_a_reason(returns):
    for measure in score(
        m.series_from_nav(1e5 * m.growth(np.array(returns))), bootstrap=QUICK
    ).values():
        assert (measure.value is None) != (measure.reason is None)
        assert measure.value is None or math.isfinite(measure.value)


def test_repetitions_by_hand():
    summary = m.summarise([Measure(value=value) for value in (1.0, 2.0, 4.0, 8.0)])
    assert summary.median.value == 3.0
    assert (summary.q1, summary.q3, summary.iqr) == (1.75, 5.0, 3.25)
    assert (summary.n, summary.missing, summary.lowest, summary.highest, summary.mean) == (
        4,
        0,
        1.0,
        8.0,
        3.75,
    )
    assert summary.std == pytest.approx(math.sqrt((2.75**2 + 1.75**2 + 0.25**2 + 4.25**2) / 3))
    assert summary.cv == pytest.approx(summary.std / 3.75)
    nothing = m.summarise([not_scored("it failed"), not_scored("it failed")])
    assert (nothing.median.reason, nothing.n, nothing.missing, nothing.cv) == (
        "it failed",
        0,
        2,
        None,
    )
    one = m.summarise([Measure(value=1.0), not_scored("it failed")])
    assert (one.n, one.missing, one.std, one.cv) == (1, 1, None, None)
    assert m.summarise([Measure(value=-1.0), Measure(value=1.0)]).cv is None


def test_across_seeds():
    episodes = [m.series_from_nav(path(seed=seed)) for seed in range(3)]
    scores = [score(episode, bootstrap=QUICK) for episode in episodes]
    summary = m.across_seeds(episodes, scores, bootstrap=QUICK)["sharpe"]
    values = sorted(score["sharpe"].value or 0.0 for score in scores)
    assert summary.median.value == pytest.approx(values[1])
    assert summary.median.low < values[1] < summary.median.high
    assert summary.n == 3
    again = m.across_seeds(episodes, scores, bootstrap=QUICK)
    assert canonical_json(again["sharpe"]) == canonical_json(summary)


def test_one_seed_keeps_its_own_interval_and_one_that_failed_takes_it():
    good = m.series_from_nav(path())
    own = score(good, bootstrap=QUICK)
    summary = m.across_seeds([good], [own], bootstrap=QUICK)
    assert summary["sharpe"].median == own["sharpe"]
    assert summary["hhi"].median.reason == "nothing was ever held"
    bad = dataclasses.replace(m.series_from_nav(np.full(121, 1e5)), failure="it raised")
    scores = [own, score(bad, bootstrap=QUICK)]
    summary = m.across_seeds([good, bad], scores, bootstrap=QUICK)["cumulative_return"]
    assert (summary.n, summary.missing) == (1, 1)
    assert summary.median.low is None
    assert summary.median.note == "no interval: 1 of 2 repetitions have no value"


def test_luck_cannot_be_told_apart_and_skill_can():
    same = m.compare_to_baseline(path() * 2, path())
    assert (same.distinguishable, same.p_value) == (False, 1.0)
    assert same.sentence == "is the same as buy and hold, session by session"
    base, luck = path(250, seed=3), 0.002 * np.random.default_rng(5).standard_normal(250)
    lucky, skilled = base * m.growth(luck), base * m.growth(0.001 + luck)
    for one, other, name, apart, sentence in (
        (lucky, base, "buy and hold", False, "cannot be told apart from buy and hold"),
        (skilled, base, "buy and hold", True, "beats buy and hold by more than chance explains"),
        (base, skilled, "the index", True, "falls behind the index by more than chance explains"),
    ):
        verdict = m.compare_to_baseline(one, other, bootstrap=QUICK, baseline=name)
        assert (verdict.distinguishable, verdict.p_value < 0.05, verdict.sentence) == (
            apart,
            apart,
            sentence,
        )


def test_pairing_cancels_the_market():
    """The same edge is invisible beside another market's noise and plain beside its own."""
    base = path(250, seed=3, scale=0.02)
    better = base * m.growth(
        np.full(250, 0.0004) + 0.001 * np.random.default_rng(1).standard_normal(250)
    )
    assert m.compare_to_baseline(better, base, bootstrap=QUICK).distinguishable is True
    assert (
        m.compare_to_baseline(
            better, path(250, seed=8, scale=0.02), bootstrap=QUICK
        ).distinguishable
        is False
    )


def test_repetitions_are_compared_together():
    base = path(250, seed=3)
    rng = np.random.default_rng(9)
    several = np.stack(
        [base * m.growth(0.001 + 0.002 * rng.standard_normal(250)) for _ in range(3)]
    )
    verdict = m.compare_to_baseline(several, base, bootstrap=QUICK)
    assert verdict.distinguishable is True
    centre = np.diff(np.log(several), axis=1).mean() - np.diff(np.log(base)).mean()
    assert verdict.difference.value == pytest.approx(math.expm1(centre * 252))


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_promised():
    alarms = 0
    for trial in range(150):
        base, other = path(120, 0.0, 2 * trial), path(120, 0.0, 2 * trial + 1)
        alarms += bool(m.compare_to_baseline(other, base, bootstrap=QUICK).distinguishable)
    assert alarms / 150 < 0.12


def test_what_cannot_be_compared():
    with pytest.raises(UserError, match="same sessions"):
        m.compare_to_baseline(path(30), path(31))
    short = m.compare_to_baseline(path(10), path(10, seed=1))
    assert short.distinguishable is None
    assert (
        short.sentence == "was not compared with buy and hold: 10 sessions, at least 20 are needed"
    )
    ruined = m.compare_to_baseline(np.concatenate([path(29), [0.0]]), path(30))
    assert ruined.difference.reason == "an account was worth nothing or less"


def test_holm_by_hand():
    for raw, adjusted in (
        ([0.01, None, 0.04, 0.03], [0.03, None, 0.06, 0.06]),
        ([0.9, 0.8], [1.0, 1.0]),
        ([], []),
    ):
        assert m.holm(raw) == adjusted
