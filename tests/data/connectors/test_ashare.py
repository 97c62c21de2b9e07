import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.core.view import Board
from tradeassay.data.calendars import sessions_between
from tradeassay.data.connectors.ashare import (
    STRIDE,
    Distribution,
    ashare_instrument,
    dated_members,
    merged,
    parse_ashare,
    unexplained,
)
from tradeassay.data.connectors.yfinance import VendorSplit, factor_after, not_applied


@pytest.mark.parametrize(
    ("text", "symbol", "board"),
    [
        *((text, "600000.SH", Board.MAIN) for text in "600000 600000.SH sh.600000 SH600000 600000.XSHG".split()),
        ("600000.sh ", "600000.SH", Board.MAIN),
        ("000001", "000001.SZ", Board.MAIN),
        ("300750", "300750.SZ", Board.CHINEXT),
        ("688981", "688981.SH", Board.STAR),
        ("430047", "430047.BJ", Board.BSE),
        ("920001", "920001.BJ", Board.BSE),
        ("832000", "832000.BJ", Board.BSE),
        ("000300.XSHE", "000300.SZ", Board.MAIN),
    ],
)
def test_markets_and_boards(text, symbol, board):
    assert (parse_ashare(text), ashare_instrument(symbol, None).board) == (symbol, board)


@pytest.mark.parametrize("text", ["", "60000", "6000000", "AAPL", "600000.HK", "hk.00700"])
def test_other_texts_are_refused(text):
    with pytest.raises(UserError, match="is not an A-share code"):
        parse_ashare(text)


def test_distributions_of_a_day_are_one():
    found = [
        Distribution("2024-06-03", 0.5, 0.0),
        Distribution("2024-01-04", 0.1, 0.0),
        Distribution("2024-06-03", 0.5, 0.0),
        Distribution("2024-06-03", 0.0, 0.4),
    ]
    assert merged(found) == [Distribution("2024-01-04", 0.1, 0.0), Distribution("2024-06-03", 0.5, 0.4)]


def test_a_reference_price_by_hand():
    # 10 shares at 20.00, 5 yuan in cash and 10 new shares: 20 shares at (200 - 5) / 20.
    assert Distribution("2024-01-04", 0.5, 1.0).reference(20.0) == pytest.approx(9.75)


def test_reference_prices_that_do_not_follow():
    days = np.array(["2024-01-02", "2024-01-03", "2024-01-08", "2024-01-09"], dtype="datetime64[D]")
    closes = np.array([20.0, 9.8, 9.8, 9.0])
    precloses = np.array([20.0, 9.75, 9.8, 8.0])
    split = Distribution("2024-01-03", 0.5, 1.0)
    assert unexplained(days, closes, precloses, [split]) == ["2024-01-09"]
    assert unexplained(days, closes, precloses, []) == ["2024-01-03", "2024-01-09"]
    # An ex-date inside a suspension works at the next bar.
    paused = Distribution("2024-01-05", 1.8, 0.0)
    assert unexplained(days[:3], closes[:3], np.array([20.0, 9.75, 8.0]), [split, paused]) == []


SESSIONS = sessions_between("24/7", "2024-01-01", "2024-04-09")
SIZE = SESSIONS.days.size


def members_at(memberships, day: str) -> set[str]:
    return {m.symbol for m in memberships if m.start <= day and (m.end is None or day <= m.end)}


@given(st.dictionaries(st.integers(1, SIZE - 1), st.frozensets(st.sampled_from("ABCDE"), min_size=1), max_size=6))
def test_changes_are_found_to_the_day(changes):
    # Changes within one stride may cancel out, which no vendor's index does; keep them a stride apart.
    rows = [row for row in sorted(changes) if all(abs(row - other) > STRIDE for other in changes if other < row)]
    truth, present = [], frozenset("A")
    for row in range(SIZE):
        present = changes[row] if row in rows else present
        truth.append(present)
    asked: list[str] = []

    def ask(day: str) -> frozenset[str]:
        asked.append(day)
        return truth[int(np.searchsorted(SESSIONS.days, np.datetime64(day)))]

    found = dated_members("IDX", SESSIONS, ask)
    for row in range(SIZE):
        assert members_at(found, str(SESSIONS.days[row])) == truth[row]
    assert len(asked) == len(set(asked)) <= SIZE


def test_an_unchanged_index_takes_few_questions():
    asked: list[str] = []

    def ask(day: str) -> frozenset[str]:
        asked.append(day)
        return frozenset({"A", "B"})

    found = dated_members("IDX", SESSIONS, ask)
    assert [(m.symbol, m.start, m.end) for m in found] == [("A", "2024-01-01", None), ("B", "2024-01-01", None)]
    assert len(asked) == 6


def test_one_session_is_enough():
    one = sessions_between("24/7", "2024-01-01", "2024-01-01")
    assert [m.symbol for m in dated_members("IDX", one, lambda day: frozenset({"A"}))] == ["A"]


DAYS = np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-03-01"))
RATIOS = st.sampled_from([0.1, 0.5, 1.5, 2.0, 3.0, 4.0, 20.0])


def test_factors_by_hand():
    days = DAYS[:4]
    splits = [VendorSplit(days[1], 4.0), VendorSplit(days[3], 0.5)]
    assert factor_after(days, splits).tolist() == [2.0, 0.5, 0.5, 1.0]
    assert factor_after(days, splits, same_day=True).tolist() == [2.0, 2.0, 0.5, 0.5]


@given(
    prices=st.lists(st.integers(100, 10_000_000), min_size=60, max_size=60),
    splits=st.dictionaries(st.integers(0, 59), RATIOS, max_size=4),
)
def test_undoing_what_a_vendor_does_gives_the_traded_prices(prices, splits):
    traded = np.array(prices) / 10_000
    events = [VendorSplit(DAYS[row], ratio) for row, ratio in splits.items()]
    adjusted = traded.copy()
    for row, ratio in splits.items():
        adjusted[:row] /= ratio
    back = np.round(adjusted * factor_after(DAYS, events), 4)
    assert back.tolist() == traded.tolist()


@pytest.mark.parametrize("ratio", [2.0, 4.0, 10.0, 0.1, 1.5])
def test_a_smooth_series_was_adjusted_and_a_jump_was_not(ratio):
    split = VendorSplit(DAYS[2], ratio)
    days, smooth = DAYS[:4], np.array([100.0, 101.0, 97.0, 99.0])
    assert not_applied(days, smooth, smooth, [split]) == []
    jump = np.array([100.0, 101.0, 97.0 / ratio, 99.0 / ratio])
    assert not_applied(days, jump, jump, [split]) == [split]


def test_small_and_unbounded_splits_are_taken_on_trust():
    days, flat = DAYS[:3], np.array([105.0, 105.0, 100.0])
    assert not_applied(days, flat, flat, [VendorSplit(days[2], 1.05)]) == []
    assert not_applied(days, flat, flat, [VendorSplit(days[0], 4.0), VendorSplit(DAYS[9], 4.0)]) == []
