"""Sessions of the three markets, checked against days anybody can look up."""

from datetime import UTC, date, datetime

import numpy as np
import pytest

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.time import DAY, instant
from tradeassay_bench.data.calendars import known_range, sessions_between


def at(*parts: int) -> int:
    return instant(datetime(*parts, tzinfo=UTC))


def test_new_york_with_a_holiday_an_early_close_and_summer_time():
    week = sessions_between("XNYS", "2024-11-25", "2024-12-02")
    assert week.days.astype(str).tolist() == [
        "2024-11-25",
        "2024-11-26",
        "2024-11-27",
        "2024-11-29",
        "2024-12-02",
    ]
    assert week.early.tolist() == [False, False, False, True, False]
    assert week.open_time[0] == at(2024, 11, 25, 14, 30) and week.close_time[0] == at(
        2024, 11, 25, 21
    )
    assert week.close_time[3] == at(2024, 11, 29, 18), "the day after Thanksgiving closes at 13:00"
    assert sessions_between("XNYS", "2024-07-01", "2024-07-01").open_time[0] == at(
        2024, 7, 1, 13, 30
    )


def test_shanghai_at_national_day():
    days = sessions_between("XSHG", date(2024, 9, 27), date(2024, 10, 9))
    assert days.days.astype(str).tolist() == [
        "2024-09-27",
        "2024-09-30",
        "2024-10-08",
        "2024-10-09",
    ]
    assert days.open_time[0] == at(2024, 9, 27, 1, 30) and days.close_time[0] == at(2024, 9, 27, 7)


def test_crypto_never_sleeps_and_its_days_touch():
    days = sessions_between("24/7", "2024-02-28", "2024-03-01")
    assert days.days.size == 3 and np.all(days.close_time[:-1] == days.open_time[1:])
    assert days.open_time[0] == at(2024, 2, 28) and days.close_time[0] - days.open_time[0] == DAY


def test_old_days_do_not_depend_on_todays_date():
    assert sessions_between("XNYS", "1987-10-19", "1987-10-19").days.size == 1
    days = sessions_between("XNYS", "2001-09-10", "2001-09-18").days.astype(str).tolist()
    assert days == ["2001-09-10", "2001-09-17", "2001-09-18"]


def test_days_beyond_the_known_holidays_are_refused():
    latest = known_range("XSHG")[1]
    assert latest is not None
    beyond = str(np.datetime64(latest) + 10)
    with pytest.raises(DataError, match="the holidays of XSHG are known from 1990"):
        sessions_between("XSHG", "2024-01-01", beyond)
    with pytest.raises(DataError, match="known from"):
        sessions_between("XSHG", "1980-01-01", "1995-01-01")


def test_wrong_questions():
    for asked, said in (
        (("XLON", "2024-01-01", "2024-01-02"), "unknown calendar 'XLON'"),
        (("XNYS", "2024-01-02", "2024-01-01"), "swap the two"),
        (("XNYS", "yesterday", "2024-01-01"), "is not a date"),
    ):
        with pytest.raises(UserError, match=said):
            sessions_between(*asked)
