"""The host's broker by hand, and whatever a child may send it."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from tests.programs.code.one_program import adds_up, sent

from tradeassay.core.order_columns import FLOATS, INTEGERS
from tradeassay_bench.account.backtrader import BrokerReplay, BrokerTerms, broker, replay
from tradeassay_bench.account.backtrader.orders import MAX_ACTIONS, BadOrders, OrderLog, read_orders
from tradeassay_programs.code.backtrader import Backtest, BacktestJob, read_fed, read_result
from tradeassay_programs.code.bars import TaskBars, make_bars
from tradeassay_programs.code.harness.wire import ACTION
from tradeassay_programs.sandbox import BadResult

ROWS = 12
BARS = make_bars("volatile", "1d", 2, ROWS, 5)
TERMS = BrokerTerms(cash=10_000.0, commission=0.001)
JOB = BacktestJob(source="", bars=BARS, terms=TERMS)
DEFAULTS: dict[str, float] = {"side": 1, "size": 1.0, "transmit": 1}


def columns(*actions: dict[str, float]) -> dict[str, NDArray[Any]]:
    filled = [DEFAULTS | {"row": action["turn"] - 1} | action for action in actions]
    table: dict[str, NDArray[Any]] = {
        name: np.array([action.get(name, 0) for action in filled], dtype=np.int64)
        for name in INTEGERS
    }
    return table | {
        name: np.array([action.get(name, 0.0) for action in filled], dtype=np.float64)
        for name in FLOATS
    }


def log(*actions: dict[str, float]) -> OrderLog:
    return read_orders(columns(*actions), ROWS, 2)


def flat(price: float) -> TaskBars:
    """Bars that all stand at one price but for the close of the last."""
    feed = {name: np.full(4, price) for name in ("open", "high", "low", "close")}
    feed["close"] = np.array([price, price, price, price + 1])
    times = np.arange("2020-01-06", "2020-01-10", dtype="M8[D]").astype("M8[ns]")
    return TaskBars({"A": {"time": times, "volume": np.ones(4), **feed}}, "1d")


def replayed(*actions: dict[str, float]) -> BrokerReplay:
    return replay(read_orders(columns(*actions), 4, 1), flat(100.0), TERMS)


def test_purchases_and_sales_worked_by_hand():
    done = replayed({"turn": 1, "ref": 1, "size": 10})
    assert [(fill.bar, fill.price, fill.size, fill.commission) for fill in done.fills] == [
        (1, 100.0, 10.0, 1.0)
    ]
    assert done.cash == 10_000 - 1_000 - 1
    assert done.equity.tolist() == [10_000, 9_999, 9_999, 10_009]
    assert done.trades[0].exit_bar is None
    # A short sale brings cash and costs when it is bought back.
    done = replayed(
        {"turn": 1, "ref": 1, "side": -1, "size": 10}, {"turn": 2, "ref": 2, "size": 10}
    )
    assert done.cash == 10_000 - 2
    trade = done.trades[0]
    assert (trade.size, trade.entry_bar, trade.exit_bar, trade.pnl, trade.net) == (-10, 1, 2, 0, -2)
    # Cash decides when the order is checked; orders of the last bar stay with the broker.
    done = replayed({"turn": 1, "ref": 1, "size": 100}, {"turn": 1, "ref": 2, "size": 1})
    assert done.statuses == ("margin", "margin") and not done.fills
    done = replayed({"turn": 4, "ref": 1})
    assert done.statuses == ("submitted",) and done.value == 10_000


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"turn": ROWS + 1}, "beyond the last bar"),
        ({"turn": 3, "row": 7}, "not the current one"),
        ({"turn": 3, "asset": 2}, "'asset'"),
        ({"turn": 3, "asset": -1}, "'asset'"),
        ({"turn": 3, "kind": 7}, "'kind'"),
        ({"turn": 3, "size": float("nan")}, "size"),
        ({"turn": 3, "size": float("inf")}, "size"),
        ({"turn": 3, "size": 0.0}, "size"),
        ({"turn": 3, "side": 0}, "neither buys nor sells"),
        ({"turn": 3, "ref": 0}, "ref"),
        ({"turn": 3, "parent": 9}, "does not exist"),
        ({"turn": 3, "oco": 9}, "does not exist"),
        (
            {"turn": 3, "action": 1, "ref": 9, "size": 0.0, "side": 0, "transmit": 0},
            "does not exist",
        ),
        ({"turn": 3, "action": 1, "parent": 9}, "says more than which order"),
        ({"turn": 3, "action": 2}, "neither an order"),
        ({"turn": 3, "transmit": 5}, "'transmit'"),
    ],
)
def test_impossible_orders_are_named(action, words):
    with pytest.raises(BadOrders, match=words):
        log({"ref": 1, **action})


def test_refs_are_used_once_and_turns_never_go_back():
    with pytest.raises(BadOrders, match="twice"):
        log({"turn": 1, "ref": 1}, {"turn": 2, "ref": 1})
    with pytest.raises(BadOrders, match="run back"):
        log({"turn": 2, "ref": 1}, {"turn": 1, "ref": 2})


def test_too_many_orders_are_not_read():
    table = {name: np.zeros(MAX_ACTIONS + 1, dtype=np.int64) for name in INTEGERS}
    table |= {name: np.zeros(MAX_ACTIONS + 1) for name in FLOATS}  # type: ignore[misc]
    with pytest.raises(BadOrders, match="at most"):
        read_orders(table, ROWS, 1)


def test_orders_that_would_keep_the_host_busy_for_ever_are_refused():
    waiting = [{"turn": 1, "ref": k + 1, "kind": 2, "given": 1, "price": 0.01} for k in range(60)]
    with pytest.raises(BadOrders, match="more open orders"):
        replay(log(*waiting), BARS, TERMS, steps=300)


def test_a_huge_group_of_orders_does_not_keep_the_host_busy(monkeypatch):
    """The first fill ends all others at once: the orders that wait are walked through once, not
    once for each.
    """
    walked = 0

    class Walked(deque[Any]):
        def __iter__(self) -> Iterator[Any]:
            nonlocal walked
            walked += len(self)
            return super().__iter__()

        def remove(self, value: Any) -> None:
            nonlocal walked
            walked += len(self)
            super().remove(value)

    monkeypatch.setattr(broker, "deque", Walked)
    count = 20_000
    common = {"turn": 1, "kind": 2, "given": 1, "size": 0.001}
    waiting = [common | {"ref": k + 1, "price": 0.01, "oco": int(k > 0)} for k in range(count)]
    waiting[-1]["price"] = 1e6
    done = replay(log(*waiting), BARS, TERMS)
    assert (len(done.fills), done.statuses.count("cancelled")) == (1, count - 1)
    assert walked < 10 * count


def outcome(table: dict[str, NDArray[Any]]) -> Backtest:
    return read_result(JOB, sent(table))


ACCOUNT = {"account": np.array([10_000.0, 10_000.0, 0.0, float(ROWS)])}


@pytest.mark.parametrize(
    "change",
    [
        {"size": np.zeros(1, dtype=np.int64)},
        {"turn": np.zeros(1)},
        {"ref": np.zeros(2, dtype=np.int64)},
        {"account": np.zeros(2)},
        {"account": np.array([1.0, 1.0, 0.0, np.nan])},
        {"account": np.array([1.0, 1.0, 0.0, 99.0])},
        {"account": np.array([1.0, 1.0, 0.0, 0.0])},
        {"price": np.array(["x"], dtype=object)},
    ],
)
def test_malformed_results_are_bad_results(change):
    done = outcome(columns({"turn": 1, "ref": 1}) | ACCOUNT | change)
    assert isinstance(done.failure, BadResult)
    assert done.final_value is None
    missing = columns({"turn": 1, "ref": 1}) | ACCOUNT
    del missing[next(iter(change))]
    assert isinstance(outcome(missing).failure, BadResult)


small = st.integers(-2, ROWS + 1)
sometimes = st.sampled_from([0, 0, 0, 1, 2, 3])
prices = st.one_of(st.floats(50, 150), st.floats(allow_nan=True, allow_infinity=True))


@st.composite
def records(draw: st.DrawFn) -> dict[str, NDArray[Any]]:
    """Records that are often well-formed in most places, so that the broker behind the checks is
    reached too.
    """
    turns = sorted(draw(st.lists(st.integers(0, ROWS), max_size=25)))
    wild = draw(st.booleans())
    actions = []
    for number, turn in enumerate(turns):
        action: dict[str, float] = {
            "turn": turn,
            "row": turn - 1 if not wild else draw(small),
            "ref": number + 1,
            "asset": draw(st.integers(0, 1) if not wild else small),
            "side": draw(st.sampled_from([-1, 1])),
            "kind": draw(st.integers(0, 6)),
            "given": draw(st.integers(0, 31)),
            "transmit": draw(st.integers(0, 1)),
            "tradeid": draw(st.integers(0, 1)),
            "parent": min(draw(sometimes), number),
            "oco": min(draw(sometimes), number),
            "size": draw(st.floats(0.5, 300) if not wild else st.floats()),
        }
        for name in ("price", "pricelimit", "trailamount", "trailpercent", "valid"):
            action[name] = draw(prices)
        if number and draw(st.integers(0, 4)) == 0:
            action = {
                "turn": turn,
                "row": turn - 1,
                "action": 1,
                "ref": draw(st.integers(1, number)),
            }
        actions.append(action)
    return columns(*actions) | ACCOUNT


@pytest.mark.journey
@given(records(), st.binary(max_size=60))
@settings(max_examples=80, deadline=None)
def test_no_record_can_break_the_host(table, noise):
    adds_up(outcome(table), BARS, TERMS)
    # The same orders, each in answer to its bar, as of a program that is fed; and bytes that are none.
    answers = [b""] * ROWS
    for action in zip(*(table[name].tolist() for name in (*INTEGERS, *FLOATS)), strict=True):
        turn = action[INTEGERS.index("turn")]
        answers[min(max(turn - 1, 0), ROWS - 1)] += ACTION.pack(*action)
    adds_up(read_fed(JOB, sent(ACCOUNT, tuple(answers))), BARS, TERMS)
    answers[len(noise) % ROWS] += noise
    adds_up(read_fed(JOB, sent(ACCOUNT, tuple(answers))), BARS, TERMS)


@given(
    st.dictionaries(
        st.sampled_from([*INTEGERS, *FLOATS, "account", "notes"]), st.lists(st.floats(), max_size=4)
    )
)
@settings(max_examples=60, deadline=None)
def test_no_table_can_break_the_host(table):
    assert not adds_up(
        outcome({name: np.array(values) for name, values in table.items()}), BARS, TERMS
    )
