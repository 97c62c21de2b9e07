from __future__ import annotations

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay.core.view import Board
from tradeassay.data.connectors.ashare import AShare, Distribution, merged, parse_ashare, unexplained


@pytest.mark.parametrize("text", ["600000", "600000.SH", "sh.600000", "SH600000", "600000.XSHG", "600000.sh "])
def test_one_code_many_spellings(text):
    assert parse_ashare(text) == AShare("600000", "SH")


@pytest.mark.parametrize(
    ("text", "symbol", "board"),
    [
        ("000001", "000001.SZ", Board.MAIN),
        ("300750", "300750.SZ", Board.CHINEXT),
        ("688981", "688981.SH", Board.STAR),
        ("430047", "430047.BJ", Board.BSE),
        ("832000", "832000.BJ", Board.BSE),
        ("920001", "920001.BJ", Board.BSE),
        ("000300.XSHE", "000300.SZ", Board.MAIN),
    ],
)
def test_markets_and_boards(text, symbol, board):
    share = parse_ashare(text)
    assert (share.symbol, share.instrument().board) == (symbol, board)


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
