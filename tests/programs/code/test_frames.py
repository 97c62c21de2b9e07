"""Programs of signals from source to account, and what they may return as targets."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from tests.programs.code.one_program import adds_up, run_program, sent

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.code import frames
from tradeassay_programs.code.backtrader import BacktestJob
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.frames import BadTargets, read_result, read_targets
from tradeassay_programs.code.task import Sizing
from tradeassay_programs.sandbox import BadResult, ChildClaim

TERMS = BrokerTerms(sizing=Sizing(kind="percent", value=90.0))
AVERAGES = """
def signals(frame):
    close = frame["close"]
    return (close.rolling(5).mean() > close.rolling(20).mean()).astype(float)
"""


BARS = make_bars("us", "1h", 1, 300, 1)


def test_a_program_trades_and_the_host_keeps_the_account(pool):
    done = run_program(pool, AVERAGES, BARS, TERMS, frames)
    assert done.ok and done.trades and not done.tricks
    assert done.orders.kinds() == {"market"}
    assert len(done.equity) == BARS.rows
    for fill in done.fills:
        assert fill.price == BARS.feeds["A"]["open"][fill.bar]
    paid = sum(-fill.size * fill.price - fill.commission for fill in done.fills)
    held = sum(fill.size for fill in done.fills)
    assert done.final_value == pytest.approx(10_000.0 + paid + held * BARS.feeds["A"]["close"][-1])


def test_targets_of_a_row_are_dealt_on_the_next(pool):
    source = "def signals(frame):\n    return [0] * 10 + [1] * 5 + [0] * (len(frame) - 15)\n"
    (trade,) = run_program(pool, source, BARS, TERMS, frames).trades
    assert (trade.entry_bar, trade.exit_bar) == (11, 16)


def test_several_assets_come_as_a_dict_of_frames(pool):
    source = """
import pandas as pd


def signals(frames):
    assert sorted(frames) == ["A", "B"]
    assert list(frames["A"].columns) == ["open", "high", "low", "close", "volume"]
    first = frames["A"]["close"] > frames["B"]["close"].mean() * 0
    return pd.DataFrame({"B": 0.4 * first, "A": -0.4 * first})
"""
    two = make_bars("pairs", "15m", 2, 60, 2)
    done = run_program(pool, source, two, BrokerTerms(sizing=Sizing(kind="own")), frames)
    assert {(trade.asset, trade.long) for trade in done.trades} == {("A", False), ("B", True)}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return ['buy'] * len(frame)", "texts"),
        ("return frame[['open', 'close']] * 0", "2 columns"),
        ("return 1.0", "1 targets for 300 rows"),
    ],
)
def test_malformed_targets_are_the_hosts_verdict(pool, body, said):
    done = run_program(pool, f"def signals(frame):\n    {body}\n", BARS, TERMS, frames)
    assert isinstance(done.failure, BadResult)
    assert said in done.failure.text
    assert not done.trades and done.final_value is None


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def other(frame):\n    return 0\n", "no_entry"),
        ("def signals(frame):\n    return frame['bid']\n", "exception"),
        ("def signals(frame):\n    return None\n", "unreturnable"),
        ("def signals(frame):\n    return frame[['close']].to_numpy()\n", "unreturnable"),
        ("def signals(frame):\n    return [object()] * len(frame)\n", "unreturnable"),
    ],
)
def test_what_breaks_inside_is_the_programs_own_word(pool, source, kind):
    failure = run_program(pool, source, BARS, TERMS, frames).failure
    assert isinstance(failure, ChildClaim)
    assert failure.kind == kind


def test_a_whole_column_is_no_trick(pool):
    arrays = "def signals(frame):\n    return (frame['close'].array > 0).astype(float)\n"
    assert run_program(pool, arrays, BARS, TERMS, frames).tricks == ()


@pytest.mark.parametrize(
    "column",
    [
        np.array([0.0, 1.0 + 1e-12, -1.0, 0.5]),
        np.array([0, 1, -1, 0]),
        np.array([False, True, True, False]),
    ],
)
def test_numbers_and_flags_are_targets_and_a_hair_beyond_one_counts_as_one(column):
    found = read_targets({"whatever": column}, 4, ["A"])
    assert found.shape == (4, 1)
    assert found[:, 0].tolist() == np.clip(column.astype(float), -1, 1).tolist()


def test_several_assets_are_told_apart_by_name():
    columns = {"B": np.array([0.0, -0.5]), "A": np.array([0.25, 0.25])}
    assert read_targets(columns, 2, ["A", "B"]).tolist() == [[0.25, 0.0], [0.25, -0.5]]


@pytest.mark.parametrize(
    ("columns", "assets", "said"),
    [
        ({"value": np.array([0.0, 1.0])}, "A", "2 targets for 3 rows"),
        ({"value": np.array([1.0])}, "A", "1 targets for 3 rows"),
        ({"value": np.array([0.0, np.nan, np.nan])}, "A", "2 targets are NaN, the first in row 1"),
        ({"value": np.array(["buy", "sell", None], dtype=object)}, "A", "texts or missing values"),
        ({"value": np.array(["2024-01-01"] * 3, dtype="M8[ns]")}, "A", "times"),
        ({"value": np.array([0.0, 1.5, 0.0])}, "A", "outside -1 .. 1, the first in row 1: 1.5"),
        ({"value": np.array([0.0, -np.inf, 0.0])}, "A", "outside -1 .. 1"),
        ({"value": np.array([0, 0, 100])}, "A", "row 2: 100"),
        ({}, "A", "0 columns"),
        ({"side": np.zeros(3), "size": np.zeros(3)}, "A", "2 columns"),
        ({"value": np.zeros(3)}, "AB", "no column for asset A"),
        (
            {"A": np.zeros(3), "B": np.zeros(3), "cash": np.zeros(3)},
            "AB",
            "'cash', which is no asset",
        ),
        ({"A": np.zeros(3), "B": np.full(3, np.nan)}, "AB", "3 targets for asset B are NaN"),
    ],
)
def test_anything_else_is_refused_with_the_reason(columns, assets, said):
    with pytest.raises(BadTargets) as caught:
        read_targets(columns, 3, list(assets))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


COLUMNS = hnp.arrays(
    st.sampled_from([np.float64, np.int64, np.bool_, np.dtype("M8[ns]")]), st.integers(0, 12)
)
TARGETS = hnp.arrays(np.float64, 6, elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 0.001]))
SIX_DAYS = make_bars("us", "1d", 2, 6, 1)
JOB = BacktestJob(source="x = 1", bars=SIX_DAYS, terms=BrokerTerms())


@given(
    COLUMNS,
    st.integers(1, 12),
    st.dictionaries(st.sampled_from(["A", "B", "\x1b[2J"]), COLUMNS | TARGETS),
)
def test_whatever_comes_back_is_targets_or_a_clear_refusal(column, rows, columns):
    adds_up(
        read_result(JOB, sent({"A": np.zeros(6), "B": np.zeros(6)} | columns)), SIX_DAYS, JOB.terms
    )
    try:
        found = read_targets({"value": column}, rows, ["A"])
    except BadTargets as error:
        assert str(error)
        return
    assert found.shape == (rows, 1)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1.0).all()
