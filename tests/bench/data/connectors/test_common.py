"""What connectors share: registry, options, extras, retries, the way from series to a panel,
A-shares, splits.
"""

import re
import socket
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from tradeassay.core.errors import MissingExtra, UserError
from tradeassay.core.hashing import canonical_json
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import FixedClock, parse_iso, retry_after_seconds
from tradeassay_bench.core.view import Board, Instrument
from tradeassay_bench.data import connectors
from tradeassay_bench.data.calendars import sessions_between
from tradeassay_bench.data.connectors.ashare import (
    STRIDE,
    Distribution,
    ashare_instrument,
    dated_members,
    merged,
    parse_ashare,
    unexplained,
)
from tradeassay_bench.data.connectors.common import (
    PRICES,
    Column,
    MinuteColumn,
    RetryPolicy,
    Runtime,
    Throttled,
    Unanswered,
    VendorResting,
    action_time,
    ask_with_retries,
    join_minutes,
    lay_out,
    sessions_asked,
    shorten,
)
from tradeassay_bench.data.connectors.yfinance import VendorSplit, factor_after, not_applied
from tradeassay_bench.data.datasets import fetch_dataset, make_source
from tradeassay_bench.data.source import sources

SOURCES = {
    "baostock": ("ashare", "600000"),
    "ccxt": ("crypto", "BTC/USDT"),
    "yfinance": ("us", "AAPL"),
}
"""The extra that a source needs, and a symbol of it."""


@pytest.mark.parametrize("name", SOURCES)
def test_a_registered_source_says_what_it_is_and_which_extra_it_needs(name, monkeypatch, tmp_path):
    extra, symbol = SOURCES[name]
    options = {"symbols": [symbol], "first": "2024-01-02", "last": "2024-01-05"}
    source = sources.get(name)
    assert source.extra == extra and source.summary and "\n" not in source.summary
    assert isinstance(make_source(name, options), source)
    with pytest.raises(AttributeError):
        source.Config(**options).first = "2020-01-01"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"tradeassay\[{extra}\]"):
        fetch_dataset(name, "panel", options, home=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"symbols": ["A"]}, "required field `first`"),
        ({"symbols": "A", "first": "2024-01-02"}, r"Expected `array`.*\$.symbols"),
        ({"symbols": ["A", "A"], "first": "2024-01-02"}, "repeated symbols: A"),
        ({"symbols": ["SPY"], "indices": ["SPY"], "first": "2024-01-02"}, "repeated symbols: SPY"),
        ({"symbols": ["A"], "first": "02.01.2024"}, "is not a date"),
        ({"symbols": ["A"], "first": "2024-01-02", "last": "2024-01-01"}, "is before first"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(UserError, match=message):
        make_source("yfinance", options)


def test_symbols_are_a_list_with_something_in_it():
    with pytest.raises(UserError, match=r"write \('AAPL',\)"):
        connectors.YFinanceConfig(symbols="AAPL", first="2024-01-02")
    for name in ("ccxt", "yfinance"):
        source = sources.get(name)
        with pytest.raises(UserError, match="no symbols"):
            source(source.Config(first="2024-01-02", last="2024-01-05")).load()


def test_the_query_can_be_asked_again():
    config = connectors.CcxtConfig(symbols=("BTC/USDT",), first="2024-01-02", exchange="kraken")
    assert msgspec.json.decode(canonical_json(config), type=connectors.CcxtConfig) == config


def test_the_guard_lets_nobody_out():
    with pytest.raises(AssertionError, match="connects to"):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)


def test_every_option_is_on_the_page():
    page = (Path(__file__).parents[4] / "docs" / "howto" / "fetch-live-data.md").read_text()
    for name in SOURCES:
        assert f"`{name}`" in page
        for field in msgspec.structs.fields(sources.get(name).Config):
            assert f"`{field.name}`" in page, f"{name}'s option {field.name} is not explained"


# -- retries ---------------------------------------------------------------------------------------

CLOCK = FixedClock(parse_iso("2024-02-01T12:00:00Z"))


class Vendor:
    """Raises the errors it was given, one per call, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "bars"


def ask(*errors: Exception, **policy) -> tuple[str, int, list[float]]:
    """Return what came, how many calls were made, and the pauses."""
    vendor, slept = Vendor(*errors), []
    runtime = Runtime(clock=CLOCK, sleep=slept.append, retry=RetryPolicy(**policy))
    try:
        found = ask_with_retries(vendor, vendor="V", what="the bars of X", runtime=runtime)
    except SourceError as error:
        found = str(error)
    return found, vendor.calls, slept


LATE, FULL = Unanswered("late"), Throttled()


@pytest.mark.parametrize(
    ("errors", "policy", "said", "slept"),
    [
        ([], {}, "bars", []),
        (
            [LATE, Throttled(retry_after=5.0), LATE],
            {"first_wait": 1.0},
            "bars",
            [1.0, 5.0, 4.0],
        ),  # a wish goes first
        ([LATE] * 2, {"first_wait": 9.0, "longest_wait": 10.0}, "bars", [9.0, 10.0]),
        (
            [LATE] * 3 + [FULL],
            {},
            "V refused the bars of X: HTTP 429, .*4 attempts, 14 s",
            [2.0, 4.0, 8.0],
        ),
        (
            [LATE],
            {"attempts": 1},
            r"V returned no usable answer for the bars of X: late \(1 attempt, 0 s",
            [],
        ),
        ([Throttled(retry_after=121.0)], {}, "HTTP 429.*a pause of 121 s", []),
    ],
)
def test_waits_double_a_wish_goes_first_and_the_last_failure_is_the_reason(
    errors, policy, said, slept
):
    found, calls, pauses = ask(*errors, **policy)
    assert re.search(said, found)
    assert pauses == slept and calls == len(slept) + 1


def test_another_error_is_final_and_so_is_too_long_a_wish():
    vendor = Vendor(KeyError("x"), Throttled(retry_after=121.0), Throttled(retry_after=1e9))
    runtime = Runtime(clock=CLOCK, sleep=lambda seconds: None)
    with pytest.raises(KeyError):
        ask_with_retries(vendor, vendor="V", what="it", runtime=runtime)
    for seconds in (121.0, 86_400.0):  # no vendor is left alone for good
        with pytest.raises(VendorResting) as refused:
            ask_with_retries(vendor, vendor="V", what="it", runtime=runtime)
        assert refused.value.seconds == seconds
    assert vendor.calls == 3


@settings(max_examples=40)
@given(
    wishes=st.lists(st.none() | st.floats(0, 200), max_size=8),
    attempts=st.integers(1, 6),
    longest=st.floats(0, 150),
)
def test_waiting_is_bounded(wishes, attempts, longest):
    errors = [Throttled(retry_after=wish) for wish in wishes]
    _, calls, slept = ask(*errors, attempts=attempts, first_wait=1.0, longest_wait=longest)
    assert calls <= attempts and len(slept) == calls - 1
    assert all(0 <= pause <= longest for pause in slept)


def test_retry_after_is_seconds_or_a_date():
    headers = {
        None: None,
        "30": 30.0,
        " 0 ": 0.0,
        "Thu, 01 Feb 2024 12:01:30 GMT": 90.0,
        "Thu, 01 Feb 2024 11:00:00 GMT": 0.0,
        "soon": None,
        "-5": None,
        "Thu, 01 Feb 2024 12:01:30 -0000": None,
    }
    assert {header: retry_after_seconds(header, CLOCK) for header in headers} == headers


def test_an_impossible_policy_is_refused():
    for bad in ({"attempts": 0}, {"timeout": 0.0}, {"first_wait": -1.0}, {"longest_wait": -1.0}):
        with pytest.raises(UserError):
            RetryPolicy(**bad)


# -- from series to a panel ------------------------------------------------------------------------

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
        column("C", range(20)),
        column("B", range(5, 20), listed="2024-01-06"),
        column("A", range(20)),
    )
    assert [entry.instrument.symbol for entry in listings] == ["A", "C", "B"]
    assert bars["close"][5, 2] == 15.0 and np.isnan(bars["close"][4, 2])
    assert np.isnan(bars["amount"]).all()
    assert notes == []
    rows = [row for row in range(20) if row not in (0, 7, 19)]
    listings, _, suspended, notes = laid_out(column("A", rows, halted=SESSIONS.days[[0, 7, 19]]))
    assert np.flatnonzero(suspended[:, 0]).tolist() == [0, 7, 19]
    assert listings[0].delisted is None and notes == [], (
        "halted days are suspensions that need no note"
    )
    for rows in ([0, 0, 1], [1, 0]):
        one = Column(
            Instrument(symbol="A"),
            SESSIONS.days[rows],
            {name: np.ones(len(rows)) for name in PRICES},
        )
        with pytest.raises(SourceError, match="A are repeated or out of order at"):
            laid_out(one, partial=True)


@pytest.mark.parametrize(
    ("rows", "sessions", "told", "listing"),
    [
        (
            20,
            SESSIONS,
            {"listed": "2024-01-05"},
            ("2024-01-01", None),
        ),  # a bar before the listing moves it
        (
            20,
            SESSIONS,
            {"delisted": "2024-01-10"},
            ("2024-01-01", None),
        ),  # bars after a delisting count
        (
            75,
            LONG,
            {"delisted": "2024-04-05"},
            ("2024-01-01", "2024-03-15"),
        ),  # the formal act may trail a little
        (60, LONG, {"delisted": "2024-04-05"}, "end on 2024-02-29"),
        (
            90,
            LONG,
            {"delisted": "2029-01-01"},
            "end on 2024-03-30",
        ),  # long after the range explains nothing
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
    assert np.array_equal(
        joined.bars["close"], [[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]], equal_nan=True
    )
    twice = MinuteColumn("A", np.array([60, 60]), {})
    with pytest.raises(SourceError, match="minutes of A are repeated"):
        join_minutes([twice], daily, vendor="V", allow_partial=False)


@pytest.mark.parametrize(
    ("first", "last", "now", "found"),
    [
        ("2024-01-01", None, "2024-01-03T21:00:00Z", ["2024-01-02", "2024-01-03"]),
        ("2024-01-01", None, "2024-01-03T20:59:59Z", ["2024-01-02"]),
        (
            "2024-07-03",
            "2024-07-03",
            "2024-07-03T17:00:00Z",
            ["2024-07-03"],
        ),  # an early close is a close
        ("2024-01-06", "2024-01-07", "2024-01-08T12:00:00Z", "no completed session"),
        ("2024-01-08", None, "2024-01-08T12:00:00Z", "no completed session"),
        ("2025-01-01", None, "2024-01-08T12:00:00Z", "no completed session"),
        (
            "2024-01-02",
            "2024-06-01",
            "2024-01-08T12:00:00Z",
            "2024-01-08 of XNYS is not over.*request days up to 2024-01-05",
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


# -- A-shares, and splits that a vendor worked in --------------------------------------------------


def test_a_code_is_read_and_gives_the_board():
    assert [parse_ashare(text) for text in ("600000", "sh.600000", "600000.sh ")] == [
        "600000.SH"
    ] * 3
    assert ashare_instrument("688981.SH", None).board is Board.STAR
    for text in ("", "6000000", "600000.HK", "hk.00700"):
        with pytest.raises(UserError, match="is not an A-share code"):
            parse_ashare(text)


def test_distributions_of_a_day_are_one():
    found = [
        Distribution("2024-06-03", 0.5, 0.0),
        Distribution("2024-01-04", 0.1, 0.0),
        Distribution("2024-06-03", 0.5, 0.0),
        Distribution("2024-06-03", 0.0, 0.4),
    ]
    assert merged(found) == [
        Distribution("2024-01-04", 0.1, 0.0),
        Distribution("2024-06-03", 0.5, 0.4),
    ]


def test_reference_prices_that_do_not_follow():
    # 10 shares at 20.00, 5 yuan in cash and 10 new shares: 20 shares at (200 - 5) / 20.
    assert Distribution("2024-01-04", 0.5, 1.0).reference(20.0) == pytest.approx(9.75)
    days = np.array(["2024-01-02", "2024-01-03", "2024-01-08", "2024-01-09"], dtype="datetime64[D]")
    closes = np.array([20.0, 9.8, 9.8, 9.0])
    precloses = np.array([20.0, 9.75, 9.8, 8.0])
    split = Distribution("2024-01-03", 0.5, 1.0)
    assert unexplained(days, closes, precloses, [split]) == ["2024-01-09"]
    assert unexplained(days, closes, precloses, []) == ["2024-01-03", "2024-01-09"]
    # An ex-date inside a suspension works at the next bar.
    paused = Distribution("2024-01-05", 1.8, 0.0)
    assert unexplained(days[:3], closes[:3], np.array([20.0, 9.75, 8.0]), [split, paused]) == []


SPRING = sessions_between("24/7", "2024-01-01", "2024-03-10")
NAMES = [str(day) for day in SPRING.days]


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.integers(1, len(NAMES) - 1),
        st.frozensets(st.sampled_from("ABCDE"), min_size=1),
        max_size=4,
    )
)
@example({})  # an index that never changes takes few questions
def test_changes_are_found_to_the_day(changes):
    # Changes within one stride may cancel out, which no vendor's index does; keep them a stride apart.
    rows = [
        row
        for row in sorted(changes)
        if all(abs(row - other) > STRIDE for other in changes if other < row)
    ]
    truth, present = {}, frozenset("A")
    for row, day in enumerate(NAMES):
        truth[day] = present = changes[row] if row in rows else present
    asked: list[str] = []

    def ask(day: str) -> frozenset[str]:
        asked.append(day)
        return truth[day]

    found = dated_members("IDX", SPRING, ask)
    for day in NAMES:
        assert {
            m.symbol for m in found if m.start <= day and (m.end is None or day <= m.end)
        } == truth[day]
    assert len(asked) == len(set(asked)) <= (len(NAMES) if rows else 5)


def test_one_session_is_enough():
    one = sessions_between("24/7", "2024-01-01", "2024-01-01")
    assert [m.symbol for m in dated_members("IDX", one, lambda day: frozenset({"A"}))] == ["A"]


DAYS = np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-01-13"))
RATIOS = st.sampled_from([0.1, 0.5, 1.5, 2.0, 3.0, 4.0, 20.0])


def test_factors_by_hand():
    days = DAYS[:4]
    splits = [VendorSplit(days[1], 4.0), VendorSplit(days[3], 0.5)]
    assert factor_after(days, splits).tolist() == [2.0, 0.5, 0.5, 1.0]
    assert factor_after(days, splits, same_day=True).tolist() == [2.0, 2.0, 0.5, 0.5]


@settings(max_examples=40)
@given(
    prices=st.lists(st.integers(100, 10_000_000), min_size=12, max_size=12),
    splits=st.dictionaries(st.integers(0, 11), RATIOS, max_size=4),
)
def test_undoing_what_a_vendor_does_gives_the_traded_prices(prices, splits):
    traded = np.array(prices) / 10_000
    events = [VendorSplit(DAYS[row], ratio) for row, ratio in splits.items()]
    adjusted = traded.copy()
    for row, ratio in splits.items():
        adjusted[:row] /= ratio
    back = np.round(adjusted * factor_after(DAYS, events), 4)
    assert back.tolist() == traded.tolist()


def test_a_smooth_series_was_adjusted_and_a_jump_was_not():
    days, smooth = DAYS[:4], np.array([100.0, 101.0, 97.0, 99.0])
    for ratio in (2.0, 4.0, 10.0, 0.1, 1.5):
        split = VendorSplit(DAYS[2], ratio)
        assert not_applied(days, smooth, smooth, [split]) == []
        jump = np.array([100.0, 101.0, 97.0 / ratio, 99.0 / ratio])
        assert not_applied(days, jump, jump, [split]) == [split]
    # Small splits, and those without a bar on both sides, are taken on trust.
    days, flat = DAYS[:3], np.array([105.0, 105.0, 100.0])
    assert not_applied(days, flat, flat, [VendorSplit(days[2], 1.05)]) == []
    assert (
        not_applied(days, flat, flat, [VendorSplit(days[0], 4.0), VendorSplit(DAYS[9], 4.0)]) == []
    )
