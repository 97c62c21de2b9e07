"""The shipped table of past sessions is the library's, and later years are asked of the library."""

from datetime import date

import numpy as np
import pytest

from tradeassay.data import calendars
from tradeassay.data.calendars import FIRST, LAST, sessions_between, sessions_from


@pytest.mark.parametrize("calendar", ["XNYS", "XSHG"])
def test_the_table_equals_the_library(calendar: str) -> None:
    table, library = calendars._past(calendar, FIRST, LAST), sessions_between(calendar, FIRST, LAST)
    for field in ("days", "open_time", "close_time", "early"):
        assert np.array_equal(getattr(table, field), getattr(library, field)), field


@pytest.mark.parametrize("calendar", ["XNYS", "XSHG", "24/7"])
@pytest.mark.parametrize("first", [date(2021, 1, 4), date(2022, 10, 1), date(2016, 5, 5), date(2024, 9, 1)])
def test_as_many_sessions_as_asked_for(calendar: str, first: date) -> None:
    found = sessions_from(calendar, first, 200)
    assert found.days.size == found.open_time.size == found.close_time.size == found.early.size == 200
    assert found.days[0] >= np.datetime64(first)
    assert np.array_equal(found.days, sessions_between(calendar, first, str(found.days[-1])).days)


@pytest.mark.parametrize("calendar", ["XNYS", "XSHG"])
@pytest.mark.parametrize(
    "year",
    [
        # Years at the table's edges and with days that nobody had planned to close; the others take as long.
        pytest.param(year, marks=() if year in (1995, 2001, 2012, 2020, 2021, 2023, 2024) else pytest.mark.slow)
        for year in range(1995, 2025)
    ],
)
def test_a_year_of_any_decade_is_long_enough(calendar: str, year: int) -> None:
    assert sessions_from(calendar, date(year, 1, 1), 380 if year < 2024 else 100).days.size >= 100
