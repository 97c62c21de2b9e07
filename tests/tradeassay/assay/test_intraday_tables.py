"""Rows with times of day are compounded to days: the verdict is that of the same account's daily
table.
"""

import math

import numpy as np
import pandas as pd
import pytest

from tradeassay import assay
from tradeassay.core.errors import UserError

HOURS = 7
DAYS = 300


def stamps(zone=None, *, hours=HOURS, first=9):
    days = np.busday_offset("2021-01-04", np.arange(DAYS), roll="forward")
    hourly = [day + np.timedelta64(first + hour, "h") for day in days for hour in range(hours)]
    return pd.DatetimeIndex(hourly).tz_localize(zone)


def drawn(seed=0, hours=HOURS):
    rng = np.random.default_rng(seed)
    market = rng.normal(0.0003 / hours, 0.01 / math.sqrt(hours), DAYS * hours)
    own = 0.6 * market + rng.normal(0.0008 / hours, 0.004 / math.sqrt(hours), DAYS * hours)
    return own, market


def of_days(returns):
    return (1.0 + returns).reshape(DAYS, -1).prod(axis=1) - 1.0


def table(column, values, dates):
    return pd.DataFrame({"date": dates, column: values})


DATES = stamps()[::HOURS].normalize()


def numbers_of(made):
    """Return the value of every statement and the ends of alpha's interval; NaN where there is
    none.

    Other ends are drawn by a bootstrap, whose seed follows the last digit of the returns.
    """
    alpha = made.agents[0].statement("alpha")
    values = [one.value for one in made.agents[0].statements]
    return np.array([*values, alpha.low, alpha.high], dtype=float)


def alike(one, other):
    """Return whether two assays say the same."""
    same = np.allclose(numbers_of(one), numbers_of(other), rtol=1e-6, atol=1e-9, equal_nan=True)
    return same and one.verdict == other.verdict


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "Asia/Tokyo"])
def test_hourly_returns_end_in_the_statements_of_daily_ones(zone):
    own, market = drawn()
    daily = assay(
        table("return", of_days(own), DATES), benchmark=table("return", of_days(market), DATES)
    )
    dates = stamps(zone)
    hourly = assay(table("return", own, dates), benchmark=table("return", market, dates))
    assert alike(hourly, daily)
    assert hourly.agents[0].statement("return").assumptions == (
        "2,100 rows with times of day are compounded to days",
    )
    assert any(
        "2,100 rows with times of day are compounded to 300 days" in one for one in hourly.notes
    )
    # A daily benchmark does as well.
    mixed = assay(table("return", own, dates), benchmark=table("return", of_days(market), DATES))
    assert alike(mixed, daily)


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%m/%d/%Y %I:%M %p", "%Y%m%d %H:%M", "%s"])
def test_hourly_values_are_those_of_their_last_rows(form, tmp_path):
    own, market = drawn(1)
    values = 1e5 * np.cumprod(1.0 + own)
    dates = stamps("UTC")
    written = [str(int(one.timestamp())) for one in dates] if form == "%s" else dates.strftime(form)
    table("value", values, written).to_csv(tmp_path / "hours.csv", index=False)
    against = table("return", of_days(market), DATES)
    reading = {"dates": "mdy"} if "%m/" in form else None
    hourly = assay(tmp_path / "hours.csv", benchmark=against, reading=reading, title="one")
    daily = assay(table("value", values[HOURS - 1 :: HOURS], DATES), benchmark=against, title="one")
    assert alike(hourly, daily)
    assert hourly.agents[0].sessions == DAYS - 1


def test_a_day_is_that_of_the_zone_that_a_stamp_carries():
    own, _ = drawn(2)
    evening = stamps("America/New_York", first=17)  # UTC's next day from 19 or 20 o'clock on
    assert assay(table("return", own, evening)).agents[0].sessions == DAYS
    assert assay(table("return", own, evening.tz_convert("UTC"))).agents[0].sessions > DAYS


def test_coins_are_traded_around_the_clock():
    rng = np.random.default_rng(3)
    dates = pd.date_range("2021-01-01", periods=24 * 200, freq="h", tz="UTC")
    own = rng.normal(0.0, 0.04 / math.sqrt(24), dates.size)
    judged = assay(table("return", own, dates))
    assert (judged.agents[0].sessions, judged.agents[0].year) == (200, 365)
    assert judged.agents[0].total.value == pytest.approx(np.prod(1.0 + own) - 1.0)


def test_deposits_of_the_day_are_taken_out():
    own, _ = drawn(4)
    paid = np.zeros(own.size)
    paid[700] = 5e4
    values, worth = [], 1e5
    for earned, money in zip(own, paid, strict=True):
        worth = (worth + money) * (1.0 + earned)
        values.append(worth)
    hourly = assay(pd.DataFrame({"date": stamps(), "value": values, "deposits": paid}), title="one")
    assert hourly.agents[0].total.value == pytest.approx(np.prod(1.0 + own[HOURS:]) - 1.0)


def test_one_moment_given_twice_is_refused():
    own, _ = drawn(5)
    dates = stamps().tolist()
    dates[8] = dates[7]
    with pytest.raises(UserError, match="given twice"):
        assay(table("return", own, dates))
