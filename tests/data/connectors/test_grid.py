import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.time import FixedClock, parse_iso
from tradeassay.core.view import Instrument
from tradeassay.data.calendars import sessions_between
from tradeassay.data.connectors.common import (
    PRICES,
    Column,
    MinuteColumn,
    action_time,
    check_minutes,
    join_minutes,
    lay_out,
    sessions_asked,
    shorten,
)

SESSIONS = sessions_between("24/7", "2024-01-01", "2024-01-20")
LONG = sessions_between("24/7", "2024-01-01", "2024-04-09")


def column(symbol: str, rows, sessions=SESSIONS, **facts) -> Column:
    rows = np.array(sorted(rows), dtype=np.int64)
    fields = {name: 10.0 + rows for name in (*PRICES, "volume")}
    return Column(Instrument(symbol=symbol), sessions.days[rows], fields, **facts)


def test_columns_are_sorted_by_listing_then_symbol():
    columns = [column("C", range(20)), column("B", range(5, 20), listed="2024-01-06"), column("A", range(20))]
    grid = lay_out(columns, SESSIONS, vendor="V", allow_partial=False)
    assert [entry.instrument.symbol for entry in grid.listings] == ["A", "C", "B"]
    assert grid.bars["close"][5, 2] == 15.0 and np.isnan(grid.bars["close"][4, 2])
    assert np.isnan(grid.bars["amount"]).all()
    assert grid.notes == ()


def test_halted_days_are_suspensions_that_need_no_note():
    rows = [row for row in range(20) if row not in (0, 7, 19)]
    told = column("A", rows, halted=SESSIONS.days[[0, 7, 19]])
    grid = lay_out([told], SESSIONS, vendor="V", allow_partial=False)
    assert np.flatnonzero(grid.suspended[:, 0]).tolist() == [0, 7, 19]
    assert grid.listings[0].delisted is None
    assert grid.notes == ()


def test_a_bar_before_the_listing_date_moves_the_listing():
    grid = lay_out([column("A", range(20), listed="2024-01-05")], SESSIONS, vendor="V", allow_partial=False)
    assert grid.listings[0].listed == "2024-01-01"


@pytest.mark.parametrize(("last", "refused"), [(75, False), (60, True)])
def test_a_delisting_may_trail_the_last_bar_a_little(last, refused):
    one = column("A", range(last), LONG, delisted="2024-04-05")
    if refused:
        with pytest.raises(SourceError, match="end on 2024-02-29"):
            lay_out([one], LONG, vendor="V", allow_partial=False)
    else:
        assert lay_out([one], LONG, vendor="V", allow_partial=False).listings[0].delisted == "2024-03-15"


def test_a_delisting_long_after_the_range_explains_nothing():
    one = column("A", range(90), LONG, delisted="2029-01-01")
    with pytest.raises(SourceError, match="end on 2024-03-30"):
        lay_out([one], LONG, vendor="V", allow_partial=False)
    soon = column("A", range(90), LONG, delisted="2024-04-20")
    assert lay_out([soon], LONG, vendor="V", allow_partial=False).listings[0].delisted == "2024-03-30"


def test_bars_after_the_delisting_date_count():
    grid = lay_out([column("A", range(20), delisted="2024-01-10")], SESSIONS, vendor="V", allow_partial=False)
    assert grid.listings[0].delisted is None


@pytest.mark.parametrize("rows", [[0, 0, 1], [1, 0]])
def test_doubled_and_unsorted_days_are_refused(rows):
    days = SESSIONS.days[rows]
    one = Column(Instrument(symbol="A"), days, {name: np.ones(len(rows)) for name in PRICES})
    with pytest.raises(SourceError, match="A are doubled or out of order at"):
        lay_out([one], SESSIONS, vendor="V", allow_partial=True)


@given(st.data())
def test_every_bar_arrives_and_the_rest_is_accounted_for(data):
    columns = []
    for symbol in "ABC"[: data.draw(st.integers(1, 3))]:
        rows = data.draw(st.sets(st.integers(0, 19), min_size=1))
        columns.append(column(symbol, rows))
    grid = lay_out(columns, SESSIONS, vendor="V", allow_partial=True)
    keys = [(entry.listed, entry.instrument.symbol) for entry in grid.listings]
    assert keys == sorted(keys)
    for index, entry in enumerate(grid.listings):
        one = next(c for c in columns if c.instrument.symbol == entry.instrument.symbol)
        present = np.isfinite(grid.bars["close"][:, index])
        assert SESSIONS.days[present].tolist() == one.days.tolist()
        assert grid.bars["close"][present, index].tolist() == one.fields["close"].tolist()
        listed = (SESSIONS.days >= np.datetime64(entry.listed)) & (
            SESSIONS.days <= np.datetime64(entry.delisted or "2024-01-20")
        )
        assert (present <= listed).all()
        assert (grid.suspended[:, index] == (listed & ~present)).all()


def test_long_lists_are_shortened_with_a_count():
    assert shorten(["a", "b"]) == "a, b"
    assert shorten([str(i) for i in range(12)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"


def test_minutes_are_joined_on_their_closing_times():
    a = MinuteColumn("A", np.array([60, 120], dtype=np.int64), {"close": np.array([1.0, 2.0])})
    b = MinuteColumn("B", np.array([120, 180], dtype=np.int64), {"close": np.array([3.0, 4.0])})
    joined = join_minutes([a, b], vendor="V")
    assert joined.close_time.tolist() == [60, 120, 180]
    assert np.array_equal(joined.bars["close"], [[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]], equal_nan=True)
    with pytest.raises(SourceError, match="minutes of A are doubled"):
        join_minutes([MinuteColumn("A", np.array([60, 60], dtype=np.int64), {})], vendor="V")


def test_a_minute_that_ends_at_midnight_belongs_to_the_day_before():
    midnight = SESSIONS.close_time[:2]
    minutes = [MinuteColumn("A", midnight, {"close": np.ones(2)})]
    assert check_minutes(minutes, [column("A", [0, 1])], vendor="V", allow_partial=False) == ()


def clock(text: str) -> FixedClock:
    return FixedClock(parse_iso(text))


def test_sessions_are_those_that_are_over():
    found = sessions_asked("XNYS", "2024-01-01", None, clock("2024-01-03T21:00:00Z"))
    assert [str(day) for day in found.days] == ["2024-01-02", "2024-01-03"]
    found = sessions_asked("XNYS", "2024-01-01", None, clock("2024-01-03T20:59:59Z"))
    assert [str(day) for day in found.days] == ["2024-01-02"]
    # An early close is a close.
    found = sessions_asked("XNYS", "2024-07-03", "2024-07-03", clock("2024-07-03T17:00:00Z"))
    assert found.days.size == 1


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        ("2024-01-06", "2024-01-07", "no finished session"),
        ("2024-01-08", None, "no finished session"),
        ("2025-01-01", None, "no finished session"),
        ("2024-01-02", "2024-06-01", "2024-01-08 of XNYS is not over.*ask up to 2024-01-05"),
    ],
)
def test_no_session_is_an_error(first, last, message):
    with pytest.raises(UserError, match=message):
        sessions_asked("XNYS", first, last, clock("2024-01-08T12:00:00Z"))


def test_an_action_between_sessions_is_known_before_the_next_one():
    sessions = sessions_between("XNYS", "2024-01-02", "2024-01-08")
    assert action_time(sessions, "2024-01-06") == parse_iso("2024-01-08T13:30:00Z")
    assert action_time(sessions, "2024-01-01") is None
    assert action_time(sessions, "2024-01-09") is None
