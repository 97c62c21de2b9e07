import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

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


def test_a_code_is_read_and_gives_the_board():
    assert [parse_ashare(text) for text in ("600000", "sh.600000", "600000.sh ")] == ["600000.SH"] * 3
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
    assert merged(found) == [Distribution("2024-01-04", 0.1, 0.0), Distribution("2024-06-03", 0.5, 0.4)]


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


SESSIONS = sessions_between("24/7", "2024-01-01", "2024-03-10")
NAMES = [str(day) for day in SESSIONS.days]


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.integers(1, len(NAMES) - 1), st.frozensets(st.sampled_from("ABCDE"), min_size=1), max_size=4
    )
)
@example({})  # an index that never changes takes few questions
def test_changes_are_found_to_the_day(changes):
    # Changes within one stride may cancel out, which no vendor's index does; keep them a stride apart.
    rows = [row for row in sorted(changes) if all(abs(row - other) > STRIDE for other in changes if other < row)]
    truth, present = {}, frozenset("A")
    for row, day in enumerate(NAMES):
        truth[day] = present = changes[row] if row in rows else present
    asked: list[str] = []

    def ask(day: str) -> frozenset[str]:
        asked.append(day)
        return truth[day]

    found = dated_members("IDX", SESSIONS, ask)
    for day in NAMES:
        assert {m.symbol for m in found if m.start <= day and (m.end is None or day <= m.end)} == truth[day]
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
    assert not_applied(days, flat, flat, [VendorSplit(days[0], 4.0), VendorSplit(DAYS[9], 4.0)]) == []
