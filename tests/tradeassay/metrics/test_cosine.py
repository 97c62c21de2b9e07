"""Cosine terms follow the time that a record covers, and not its rows."""

import numpy as np
import pytest

from tradeassay.metrics.cosine import (
    cosine_interval,
    cosine_terms,
    cosine_variance,
    mean_p_value,
    trading_days,
)

ROWS = {"hours": 1764, "days": 252, "weeks": 50.4, "months": 12}
"""Rows a year: seven hours a day, five days a week, twenty-one days a month."""


def aggregated(values, rows):
    return values.reshape(-1, rows).sum(axis=1)


@pytest.mark.parametrize(("years", "terms"), [(4, 40), (5, 46), (10, 74), (20, 117)])
def test_one_span_has_as_many_terms_in_hours_days_weeks_and_months(years, terms):
    assert terms == int(0.4 * (252 * years) ** (2 / 3))
    for per_year in ROWS.values():
        assert cosine_terms(round(per_year * years), per_year) == terms


def test_quarters_have_no_more_terms_than_they_can_give():
    assert cosine_terms(40, 4) == 38  # 40 quarters are ten years, which have 74 cosines
    assert cosine_terms(36, 12) == 33
    assert cosine_terms(20, 12) == 18
    assert cosine_terms(2, 252) == 1


@pytest.mark.parametrize("per_year", [242, 252, 365])
def test_rows_that_are_days_are_counted_as_they_are(per_year):
    """Venues trade on 242 to 365 days a year, and a day is a day."""
    assert trading_days(250, per_year) == 250.0
    assert cosine_terms(250, per_year) == int(0.4 * 250 ** (2 / 3))


def test_trading_days_of_other_rows():
    assert trading_days(36, 12) == 756.0
    assert trading_days(52, 52) == pytest.approx(252.0)
    assert trading_days(1638, 1638) == 252.0


@pytest.mark.parametrize("carry", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_hours_days_weeks_and_months_of_one_account_end_in_one_interval(seed, carry):
    rng = np.random.default_rng(seed)
    hourly = rng.normal(0.0004 / 7, 0.01 / np.sqrt(7), 10 * 1764)
    hourly[1:] += carry * hourly[:-1]
    found = {}
    for name, rows in (("hours", 1), ("days", 7), ("weeks", 35), ("months", 147)):
        series = aggregated(hourly, rows)
        found[name] = cosine_interval(series, "mean", periods_per_year=ROWS[name])
    daily = found.pop("days")
    for other in found.values():
        assert other.value == pytest.approx(daily.value)
        assert other.high - other.low == pytest.approx(daily.high - daily.low, rel=0.06)


def test_three_years_of_months_hold_the_level():
    """The industry's standard record: of 20,000 without alpha 5 % are significant, in each of
    three kinds.
    """
    rng = np.random.default_rng(3)
    normal = rng.standard_normal((20_000, 36))
    heavy = rng.standard_t(5, (20_000, 36))
    volatile = normal * np.exp(0.5 * rng.standard_normal((20_000, 1)))
    for series in (normal, heavy, volatile):
        share = (mean_p_value(series, 12) < 0.05).mean()
        assert 0.045 < share < 0.056


def test_the_variance_of_months_uses_all_their_terms():
    months = np.random.default_rng(2).normal(0.01, 0.04, 36)
    # 33 of 35 cosines: nearly the plain variance.
    assert cosine_variance(months, 12) == pytest.approx(months.var(ddof=1), rel=0.15)
