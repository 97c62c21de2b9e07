"""Programs of signals from source to account: in the sandbox, and in-process for what ships."""

import pytest
from tests.code.one_program import run_program

from tradeassay.account.backtrader import BrokerTerms
from tradeassay.code import frames
from tradeassay.code.bars import make_bars
from tradeassay.code.task import Sizing
from tradeassay.sandbox import BadResult, ChildClaim

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
