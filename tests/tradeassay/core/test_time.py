from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import UserError
from tradeassay_bench.core.time import (
    DAY,
    FixedClock,
    instant,
    iso,
    midnight,
    moment,
    parse_day,
    parse_iso,
)


def test_the_open_of_new_york_by_hand() -> None:
    # 2025-03-03 09:30 in New York (UTC-5) is 14:30 UTC, 20,150 days after the epoch.
    local = datetime(2025, 3, 3, 9, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert instant(local) == (20_150 * 24 * 60 + 14 * 60 + 30) * 60 * 1_000_000_000
    assert iso(instant(local)) == "2025-03-03T14:30:00Z"


def test_a_naive_time_is_refused_with_the_mend():
    with pytest.raises(UserError, match="no time zone") as caught:
        instant(datetime(2025, 3, 3, 9, 30))  # noqa: DTZ001 - the point of the test
    assert caught.value.hint


EARLY, LATE = (datetime(year, 1, 1) for year in (1900, 2200))  # noqa: DTZ001 - hypothesis wants naive bounds


@given(st.datetimes(timezones=st.just(UTC), min_value=EARLY, max_value=LATE))
def test_a_moment_survives_the_round_trip(at):
    assert moment(instant(at)) == at
    assert parse_iso(iso(instant(at))) == instant(at)


def test_midnight_and_days():
    assert midnight(date(1970, 1, 2)) == DAY
    assert parse_day("2024-02-29") == date(2024, 2, 29)
    with pytest.raises(UserError, match="2023-02-29"):
        parse_day("2023-02-29")
    with pytest.raises(UserError, match="yesterday"):
        parse_iso("yesterday")


def test_a_clock_cannot_go_back():
    clock = FixedClock(10)
    clock.advance(11)
    assert clock.now() == 11
    with pytest.raises(UserError, match="cannot move back"):
        clock.advance(10)
