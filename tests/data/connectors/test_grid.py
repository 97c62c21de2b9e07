import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.time import FixedClock, parse_iso
from tradeassay.core.view import Instrument
from tradeassay.data.calendars import sessions_between
from tradeassay.data.connectors.common import (
    PRICES,
    Column,
    MinuteColumn,
    action_time,
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


def laid_out(*columns, sessions=SESSIONS, partial=False):
    return lay_out(columns, sessions, vendor="V", allow_partial=partial)


def test_columns_are_sorted_by_listing_then_symbol():
    listings, bars, _, notes = laid_out(
        column("C", range(20)), column("B", range(5, 20), listed="2024-01-06"), column("A", range(20))
    )
    assert [entry.instrument.symbol for entry in listings] == ["A", "C", "B"]
    assert bars["close"][5, 2] == 15.0 and np.isnan(bars["close"][4, 2])
    assert np.isnan(bars["amount"]).all()
    assert notes == []
    rows = [row for row in range(20) if row not in (0, 7, 19)]
    listings, _, suspended, notes = laid_out(column("A", rows, halted=SESSIONS.days[[0, 7, 19]]))
    assert np.flatnonzero(suspended[:, 0]).tolist() == [0, 7, 19]
    assert listings[0].delisted is None and notes == [], "halted days are suspensions that need no note"
    for rows in ([0, 0, 1], [1, 0]):
        one = Column(Instrument(symbol="A"), SESSIONS.days[rows], {name: np.ones(len(rows)) for name in PRICES})
        with pytest.raises(SourceError, match="A are doubled or out of order at"):
            laid_out(one, partial=True)


@pytest.mark.parametrize(
    ("rows", "sessions", "told", "listing"),
    [
        (20, SESSIONS, {"listed": "2024-01-05"}, ("2024-01-01", None)),  # a bar before the listing moves it
        (20, SESSIONS, {"delisted": "2024-01-10"}, ("2024-01-01", None)),  # bars after a delisting count
        (75, LONG, {"delisted": "2024-04-05"}, ("2024-01-01", "2024-03-15")),  # the formal act may trail a little
        (60, LONG, {"delisted": "2024-04-05"}, "end on 2024-02-29"),
        (90, LONG, {"delisted": "2029-01-01"}, "end on 2024-03-30"),  # long after the range explains nothing
        (90, LONG, {"delisted": "2024-04-20"}, ("2024-01-01", "2024-03-30")),
    ],
)
def test_a_vendor_s_listing_dates_and_its_bars(rows, sessions, told, listing):
    one = column("A", range(rows), sessions, **told)
    if isinstance(listing, str):
        with pytest.raises(SourceError, match=listing):
            laid_out(one, sessions=sessions)
    else:
        found = laid_out(one, sessions=sessions)[0][0]
        assert (found.listed, found.delisted) == listing


@settings(max_examples=30)
@given(st.data())
def test_every_bar_arrives_and_the_rest_is_accounted_for(data):
    columns = {}
    for symbol in "ABC"[: data.draw(st.integers(1, 3))]:
        columns[symbol] = column(symbol, data.draw(st.sets(st.integers(0, 19), min_size=1)))
    listings, bars, suspended, notes = laid_out(*columns.values(), partial=True)
    gaps = [
        f"{entry.instrument.symbol} {many}"
        for entry, many in zip(listings, suspended.sum(axis=0), strict=True)
        if many
    ]
    assert [f"sessions without a bar, taken as suspensions: {', '.join(gaps)}"] * bool(gaps) == [
        note for note in notes if note.startswith("sessions")
    ]
    keys = [(entry.listed, entry.instrument.symbol) for entry in listings]
    assert keys == sorted(keys)
    for index, entry in enumerate(listings):
        one = columns[entry.instrument.symbol]
        present = np.isfinite(bars["close"][:, index])
        assert SESSIONS.days[present].tolist() == one.days.tolist()
        assert bars["close"][present, index].tolist() == one.fields["close"].tolist()
        last = np.datetime64(entry.delisted or "2024-01-20")
        listed = (SESSIONS.days >= np.datetime64(entry.listed)) & (SESSIONS.days <= last)
        assert (present <= listed).all()
        assert (suspended[:, index] == (listed & ~present)).all()


def test_minutes_are_joined_on_their_closing_times():
    # A minute that ends at midnight belongs to the day before.
    first, second = SESSIONS.close_time[:2].tolist()
    a = MinuteColumn("A", np.array([first - 60, first]), {"close": np.array([1.0, 2.0])})
    b = MinuteColumn("B", np.array([first, second]), {"close": np.array([3.0, 4.0])})
    daily = [column("A", [0]), column("B", [0, 1])]
    joined, notes = join_minutes([a, b], daily, vendor="V", allow_partial=False)
    assert joined.close_time.tolist() == [first - 60, first, second] and notes == []
    assert np.array_equal(joined.bars["close"], [[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]], equal_nan=True)
    twice = MinuteColumn("A", np.array([60, 60]), {})
    with pytest.raises(SourceError, match="minutes of A are doubled"):
        join_minutes([twice], daily, vendor="V", allow_partial=False)


@pytest.mark.parametrize(
    ("first", "last", "now", "found"),
    [
        ("2024-01-01", None, "2024-01-03T21:00:00Z", ["2024-01-02", "2024-01-03"]),
        ("2024-01-01", None, "2024-01-03T20:59:59Z", ["2024-01-02"]),
        ("2024-07-03", "2024-07-03", "2024-07-03T17:00:00Z", ["2024-07-03"]),  # an early close is a close
        ("2024-01-06", "2024-01-07", "2024-01-08T12:00:00Z", "no finished session"),
        ("2024-01-08", None, "2024-01-08T12:00:00Z", "no finished session"),
        ("2025-01-01", None, "2024-01-08T12:00:00Z", "no finished session"),
        (
            "2024-01-02",
            "2024-06-01",
            "2024-01-08T12:00:00Z",
            "2024-01-08 of XNYS is not over.*ask up to 2024-01-05",
        ),
    ],
)
def test_sessions_are_those_that_are_over(first, last, now, found):
    clock = FixedClock(parse_iso(now))
    if isinstance(found, list):
        assert [str(day) for day in sessions_asked("XNYS", first, last, clock).days] == found
    else:
        with pytest.raises(UserError, match=found):
            sessions_asked("XNYS", first, last, clock)


def test_an_action_between_sessions_is_known_before_the_next_one():
    sessions = sessions_between("XNYS", "2024-01-02", "2024-01-08")
    days = {"2024-01-06": parse_iso("2024-01-08T13:30:00Z"), "2024-01-01": None, "2024-01-09": None}
    assert {day: action_time(sessions, day) for day in days} == days
    assert shorten([str(i) for i in range(12)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
