"""Targets become orders: worked by hand, and held against a replay of those orders."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay_bench.account.backtrader import BrokerTerms, OrderLog, Sizing, carry_targets, replay
from tradeassay_programs.code.bars import TaskBars, make_bars

Kind = Literal["fixed", "percent", "own"]


def bars_of(**closes: list[float]) -> TaskBars:
    """Bars whose open is the close before, one unit of currency lower for the first."""
    feeds = {}
    for label, values in closes.items():
        close = np.array(values)
        opened = np.concatenate([[close[0] - 1.0], close[:-1]])
        feeds[label] = {
            "time": np.arange(len(close)).astype("M8[D]").astype("M8[ns]"),
            "open": opened,
            "high": np.maximum(opened, close),
            "low": np.minimum(opened, close),
            "close": close,
            "volume": np.ones(len(close)),
        }
    return TaskBars(feeds, "1d")


def terms(kind: Kind, value: float, cash: float = 1000.0, commission: float = 0.0) -> BrokerTerms:
    return BrokerTerms(cash=cash, commission=commission, sizing=Sizing(kind=kind, value=value))


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def orders_for(targets: np.ndarray, bars: TaskBars, on: BrokerTerms) -> OrderLog:
    """The orders of targets, whose replay comes to the same account."""
    log, done = carry_targets(targets, bars, on)
    again = replay(log, bars, on)
    assert (again.fills, again.trades, again.statuses) == (done.fills, done.trades, done.statuses)
    assert again.cash == done.cash and np.array_equal(again.equity, done.equity)
    return log


def test_a_fixed_size_is_bought_at_the_next_open_and_sold_again():
    bars = bars_of(A=[10.0, 11.0, 12.0, 13.0, 14.0])
    log = orders_for(column(0, 1, 1, 0, 0), bars, terms("fixed", 5))
    assert log.row.tolist() == [1, 3]
    assert (log.side * log.size).tolist() == [5.0, -5.0]
    done = replay(log, bars, terms("fixed", 5))
    assert [(fill.bar, fill.price) for fill in done.fills] == [(2, 11.0), (4, 13.0)]
    assert done.value == 1000.0 + 5 * 2.0


def test_commission_is_paid_on_both_sides():
    bars = bars_of(A=[10.0, 10.0, 20.0, 20.0])
    on = terms("fixed", 10, commission=0.01)
    done = replay(orders_for(column(1, 1, 0, 0), bars, on), bars, on)
    assert done.value == pytest.approx(1000.0 - 1.0 + 100.0 - 2.0)


def test_a_percentage_is_of_the_account_at_the_close_that_decides():
    bars = bars_of(A=[10.0, 20.0, 20.0, 40.0, 40.0, 40.0])
    log = orders_for(column(1, 1, 0, 1, 1, 1), bars, terms("percent", 50))
    # 50 units at 10 are sold at 20, which makes 1500; half of it buys 18.75 units at 40.
    assert log.size.tolist() == [50.0, 50.0, 18.75]


def test_a_reversal_is_one_order():
    bars = bars_of(A=[10.0, 10.0, 10.0, 10.0])
    log = orders_for(column(1, -1, -1, 0), bars, terms("fixed", 3))
    assert (log.side * log.size).tolist() == [3.0, -6.0, 3.0]
    done = replay(log, bars, terms("fixed", 3))
    assert [trade.long for trade in done.trades] == [True, False]


def test_own_weights_are_whole_units():
    bars = bars_of(A=[30.0, 30.0, 30.0])
    log = orders_for(column(0.5, 0.5, 0.25), bars, terms("own", 1))
    assert (log.side * log.size).tolist() == [16.0, -7.0]  # 500 / 30, then (250 - 480) / 30


def test_what_is_sold_pays_for_what_is_bought_on_the_same_row():
    bars = bars_of(A=[10.0] * 4, B=[10.0] * 4)
    targets = np.array([[0.0, 0.9], [0.9, 0.0], [0.9, 0.0], [0.9, 0.0]])
    log = orders_for(targets, bars, terms("own", 1))
    assert log.asset.tolist() == [1, 1, 0]
    assert replay(log, bars, terms("own", 1)).statuses == ("completed",) * 3


def test_an_order_beyond_the_cash_is_refused_and_not_tried_again():
    bars = bars_of(A=[10.0] * 5)
    log = orders_for(column(1, 1, 1, 0, 0), bars, terms("fixed", 500))
    assert log.row.tolist() == [0]
    done = replay(log, bars, terms("fixed", 500))
    assert done.statuses == ("margin",)
    assert done.value == 1000.0


def test_targets_that_never_change_give_no_order():
    bars = bars_of(A=[10.0] * 3)
    assert len(orders_for(column(0, 0, 0), bars, terms("fixed", 1))) == 0


def test_a_difference_that_the_look_ahead_check_lets_pass_is_no_order():
    """Otherwise a program could say by the last digits when to rebalance, and know later bars by
    then.
    """
    bars = bars_of(A=[100.0, 101.0, 102.0, 103.0])
    log = orders_for(column(1, 1 - 9e-10, 1 + 9e-10, 1), bars, terms("percent", 90))
    assert log.turn.tolist() == [1]


@settings(max_examples=25, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["fixed", "percent", "own"]), assets=st.integers(1, 3))
def test_orders_are_sized_by_the_account_that_the_broker_keeps(data, kind, assets):
    """After every row, position and worth are those that the next order was sized by."""
    rows = 24
    bars = make_bars("volatile", "1h", assets, rows, data.draw(st.integers(1, 4)))
    level = st.sampled_from([-1.0, -0.3, 0.0, 0.0, 0.5, 1.0])
    cells = data.draw(st.lists(level, min_size=rows * assets, max_size=rows * assets))
    targets = np.array(cells).reshape(rows, assets)
    value = {"fixed": 20.0, "percent": 30.0, "own": 1.0}[kind]
    on = terms(kind, value, cash=10_000.0, commission=0.001)
    log = orders_for(targets, bars, on)
    done = replay(log, bars, on)
    labels = list(bars.assets)
    closes = [bars.feeds[label]["close"] for label in labels]
    changed = np.diff(targets, axis=0, prepend=np.zeros((1, assets))) != 0.0
    for number in range(len(log)):
        row, place = int(log.row[number]), int(log.asset[number])
        assert changed[row, place]
        held = sum(
            fill.size for fill in done.fills if fill.asset == labels[place] and fill.bar <= row
        )
        worth, price, target = done.equity[row], closes[place][row], targets[row, place]
        aim = {
            "fixed": target * value,
            "percent": target * worth * value / 100.0 / price,
            "own": target * worth / price,
        }
        ordered = float(log.side[number] * log.size[number])
        slack = 1.0 if kind == "own" and target else 1e-6
        assert abs(held + ordered - (aim[kind] if target else 0.0)) <= slack
