"""When alpha was earned: by halves, in the latest third, without its best days and without its
best month.
"""

import math

import numpy as np
import pytest

from tradeassay.metrics.cosine import cosine_interval
from tradeassay.verdict.diagnostics import stability_evidence
from tradeassay.verdict.evidence import MeanTest
from tradeassay.verdict.record import VerdictConfig

CONFIG = VerdictConfig()


def sessions_of(rows, first="2020-01-01"):
    return tuple(np.busday_offset(first, np.arange(rows), roll="forward").astype(str))


def months_of(rows):
    return tuple((np.datetime64("2010-01", "M") + np.arange(rows)).astype(str))


def stability(alpha, year=252, sessions=None):
    days = sessions_of(alpha.size) if sessions is None else sessions
    return stability_evidence(alpha, days, MeanTest(year, CONFIG))


def halves(first, second, rows=756, seed=0, year=252):
    """Return alpha whose halves have these yearly alpha ratios, exactly."""
    rng = np.random.default_rng(seed)
    made = []
    for ratio in (first, second):
        noise = rng.standard_normal(rows // 2)
        noise = (noise - noise.mean()) / noise.std(ddof=1)
        made.append(0.006 * (noise + ratio / math.sqrt(year)))
    return np.concatenate(made)


def test_each_part_is_the_mean_of_its_rows():
    alpha = halves(2.0, 1.0)
    found = stability(alpha)
    test = {"periods_per_year": 252, "level": CONFIG.level, "least": CONFIG.least}
    for measure, rows in (
        (found.first, alpha[:378]),
        (found.second, alpha[378:]),
        (found.latest, alpha[-252:]),
        (found.without_best, np.sort(alpha)[:-5]),
    ):
        assert measure.value == pytest.approx(rows.mean() * 252)
    assert found.first == cosine_interval(alpha[:378], "mean", **test)
    assert found.latest.low is not None


def test_too_few_rows_have_no_halves():
    assert stability(halves(2.0, 1.0)[:119]) is None
    assert stability(halves(2.0, 1.0)[:120]) is not None
    monthly = halves(2.0, 1.0, rows=60, year=12)
    assert stability(monthly[:39], 12, months_of(39)) is None
    assert stability(monthly[:40], 12, months_of(40)) is not None
    assert stability(np.zeros(756)) is None


@pytest.mark.parametrize(
    ("first", "second", "faded"),
    [
        (3.0, 3.0, False),
        (3.0, 1.5, False),  # half of it is left
        (3.0, -0.01, True),  # nothing is left
        (1.0, -2.0, True),
        (6.0, 0.3, True),  # a twentieth is left, and surely less than before
        (2.0, 0.3, False),  # less than a quarter, and chance may have done that
        (0.5, 3.0, False),  # it grew
        (-1.0, 3.0, False),  # it was earned in the second half
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_an_alpha_has_faded_if_the_second_half_contradicts_the_whole(first, second, faded, seed):
    assert stability(halves(first, second, seed=seed)).faded is faded
    years = halves(first, second, rows=756, seed=seed, year=252)
    assert stability(years).faded is faded


def test_a_constant_alpha_is_rarely_called_faded():
    """Of 400 accounts of three years with an alpha ratio of 2 nearly none, and of 400 that stop
    nearly all.
    """
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((400, 756))
    constant = 0.006 * (noise + 2.0 / math.sqrt(252))
    stopped = 0.006 * (noise + np.where(np.arange(756) < 378, 4.0, 0.0) / math.sqrt(252))
    share = {
        name: np.mean([stability(row).faded for row in rows])
        for name, rows in (("constant", constant), ("stopped", stopped))
    }
    assert share["constant"] < 0.03
    assert share["stopped"] > 0.6


def test_no_alpha_stands_above_what_its_second_half_supports():
    """Of 300 accounts that were skilled for two thirds of their time, and of 300 that were for
    three quarters.
    """
    rng = np.random.default_rng(8)
    called = 0
    for share in (2 / 3, 3 / 4):
        for _ in range(300):
            rows = int(rng.integers(630, 1500))
            ratio = np.where(np.arange(rows) < share * rows, rng.uniform(2.0, 5.0), 0.0)
            alpha = 0.006 * (rng.standard_t(5, rows) / math.sqrt(5 / 3) + ratio / math.sqrt(252))
            half = alpha[rows // 2 :]
            upper = half.mean() + 1.96 * half.std(ddof=1) / math.sqrt(half.size)
            faded = stability(alpha).faded
            called += faded
            assert faded or alpha.mean() <= upper + 0.01 * half.std() / math.sqrt(half.size)
    assert called > 120


def test_the_best_month_is_the_calendar_month_that_brought_most():
    days = sessions_of(504)
    quiet = halves(0.0, 0.0, rows=504) / 10.0
    march = np.array([day.startswith("2021-03") for day in days])
    alpha = quiet + np.where(march, 0.005, 0.0)
    found = stability(alpha, sessions=days)
    assert found.best_month == "2021-03"
    rest = alpha[~march]
    assert found.without_month.value == pytest.approx(rest.mean() * 252)
    assert found.without_month.low <= 0.0
    # A steady alpha does without any month.
    steady = stability(halves(3.0, 3.0, rows=504), sessions=days)
    assert steady.without_month.low > 0.0


def test_a_month_is_left_out_of_a_year_at_least_and_only_of_shorter_rows():
    alpha = halves(2.0, 2.0, rows=240)
    assert stability(alpha[:230]).best_month is None  # eleven calendar months
    assert stability(halves(2.0, 2.0, rows=300)).best_month is not None
    monthly = halves(2.0, 2.0, rows=120, year=12)
    assert stability(monthly, 12, months_of(120)).best_month is None
    assert stability(alpha, sessions=()).best_month is None  # days are not known
