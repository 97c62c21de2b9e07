"""Thresholds are years and effective observations: monthly, weekly and daily rows of one account
end alike.
"""

import math
from datetime import date, timedelta

import numpy as np
import pytest
from accounts import CONFIG

from tradeassay.tables.account import OwnSeries
from tradeassay.verdict.record import VerdictConfig
from tradeassay.verdict.returns import assay_series

START = date(2010, 1, 1)


def days_of(rows, apart):
    return [str(START + timedelta(days=round(apart * row))) for row in range(rows)]


def judged(account, market, year):
    """Judge rows of which ``year`` make one."""
    days = days_of(len(account), 365.25 / year)
    series = OwnSeries(
        returns=dict(zip(days, account.tolist(), strict=True)),
        benchmark=dict(zip(days, market.tolist(), strict=True)),
        cash=dict.fromkeys(days, 0.0),
        year=year,
    )
    return assay_series(series, CONFIG, agent="one")[0]


def drawn(rows, year, *, ratio=3.0, seed=0):
    """Return an account with beta 0.5 and this alpha ratio in the sample, and its market."""
    rng = np.random.default_rng(seed)
    market = rng.normal(0.07 / year, 0.16 / math.sqrt(year), rows)
    noise = rng.normal(0.0, 1.0, rows)
    noise -= np.polyval(np.polyfit(market, noise, 1), market)
    own = noise / noise.std(ddof=1) * 0.1 / math.sqrt(year)
    return 0.5 * market + own + ratio * 0.1 / year, market


@pytest.mark.parametrize(
    ("year", "rows"), [(252, 60), (242, 60), (365, 60), (52, 20), (12, 20), (4, 20), (1638, 390)]
)
def test_rows_that_a_test_needs(year, rows):
    assert CONFIG.rows_needed(year) == rows


def test_a_longer_least_is_one_of_time():
    config = VerdictConfig(least=504)  # two years
    assert config.rows_needed(252) == 504
    assert config.rows_needed(52) == 104
    assert config.rows_needed(12) == 24
    assert config.rows_needed(4) == 20


@pytest.mark.parametrize(
    ("year", "rows", "tested"),
    [
        (252, 59, False),
        (252, 60, True),
        (52, 19, False),
        (52, 20, True),
        (12, 19, False),
        (12, 36, True),
    ],
)
def test_from_which_row_on_an_alpha_is_tested(year, rows, tested):
    if rows < 20:  # a benchmark shares at least 20 rows with an account
        account, _ = drawn(rows, year)
        days = days_of(rows, 365.25 / year)
        series = OwnSeries(returns=dict(zip(days, account.tolist(), strict=True)), year=year)
        found = assay_series(series, CONFIG, agent="one")[0]
    else:
        found = judged(*drawn(rows, year), year)
    assert (found.alpha.tested.low is not None) is tested
    assert (found.alpha.likelihood is not None) is tested
    assert found.could_not or tested


def test_three_years_of_months_are_tested_as_three_years_of_days_are():
    monthly = judged(*drawn(36, 12), 12)
    daily = judged(*drawn(756, 252), 252)
    assert monthly.verdict.kind == daily.verdict.kind == "skill"
    assert monthly.years == daily.years == 3.0
    # No month is called a day, and three years are not called a short window.
    assert not any(limit.startswith("the window is short") for limit in monthly.verdict.limits)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0, 2.0, -1.5])
def test_days_weeks_and_months_of_one_account_end_in_one_statement(ratio, seed):
    """Ten years of one account, whose rows are sums of the same days."""
    account, market = drawn(2520, 252, ratio=ratio, seed=seed)
    kinds, values, halves = [], [], []
    for rows, year in ((1, 252), (5, 50), (21, 12)):
        parts = (one.reshape(-1, rows).sum(axis=1) for one in (account, market))
        found = judged(*parts, year)
        tested = found.statement("alpha")
        kinds.append(found.verdict.kind)
        values.append(tested.value)
        halves.append((tested.high - tested.low) / 2.0)
    # The beta of ten years of months is not that of days, which moves alpha a little.
    assert np.ptp(values) < 0.4 * min(halves)
    assert max(halves) < 1.25 * min(halves)
    if abs(ratio) != 0.5 and ratio != 1.0:  # far from every threshold
        assert len(set(kinds)) == 1
    assert not any("skill" in kind for kind in kinds) or ratio > 0.0


def test_a_return_of_a_few_weeks_is_not_annualised():
    twenty = judged(*drawn(20, 252), 252)
    assert twenty.statement("return-per-year").value is None
    assert twenty.statement("alpha").value is None
    assert " a year" not in twenty.verdict.sentence
    assert judged(*drawn(24, 12), 12).statement("return-per-year") is not None
