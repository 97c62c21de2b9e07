"""A program fed bar by bar: the same orders prove that none looks ahead; others show where to
look.
"""

import textwrap

import pytest
from tests.programs.code.one_program import run_program

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.code.backtrader import Backtest, BacktestJob, fed_backtests
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.lookahead.trace import first_difference
from tradeassay_programs.code.task import Sizing
from tradeassay_programs.sandbox import SandboxPool

BARS = make_bars("us", "1d", 2, 150)
TERMS = BrokerTerms(sizing=Sizing(kind="fixed", value=10))

RULE = """
    def __init__(self): self.m = bt.ind.SMA(self.data1, period=9)
    def next(self):
        up = self.data1.close[0] > self.m[0]
        PEEP
        if up and not self.position:
            self.buy_bracket(limitprice=self.data.close[0] * 1.04, stopprice=self.data.close[0] * 0.97)
        elif not up and len(self) % 3 == 0:
            self.sell(self.data1, exectype=bt.Order.StopTrail, trailpercent=0.02)
"""
AHEAD = "getattr(self.data1.close, 'arr' + 'ay')[self.data1.close.idx:][:2]"


def program(peep: str = "pass") -> str:
    return "import backtrader as bt\nclass S(bt.Strategy):" + RULE.replace("PEEP", peep)


def fed(pool: SandboxPool, source: str) -> Backtest:
    (done,) = fed_backtests(pool, [BacktestJob(source=source, bars=BARS, terms=TERMS)])
    return done


def parts(pool: SandboxPool, source: str) -> int | None:
    """The first bar on which a program decides otherwise when it is fed; None where it never
    does.
    """
    whole, bar_by_bar = run_program(pool, source, BARS, TERMS), fed(pool, source)
    assert whole.ok and len(whole.orders)
    if not bar_by_bar.ok:
        return -1
    found = first_difference(whole.trace(), bar_by_bar.trace(), BARS.rows, 1e-9)
    return None if found is None else found[0]


def test_honest_orders_are_the_same(pool):
    assert parts(pool, program()) is None


PEEPS = {
    "an index on one bar": (
        "if len(self) == 77: up = self.data1.close[1] > self.data1.close[0]",
        76,
    ),
    "a hidden array on one bar": (
        f"if len(self) == 77: a = {AHEAD}; self.buy(size=1 + (len(a) > 1) + (len(a) > 1 and a[1] > "
        "a[0]))",
        76,
    ),
    "the length": ("if self.data.buflen() == 150 and len(self) == 31: self.buy(size=3)", 30),
    "the transmit flag": (
        f"a = {AHEAD}; self.buy(size=1, exectype=bt.Order.Limit, price=1.0, transmit=len(a) > 1 "
        "and a[1] > a[0])",
        None,
    ),
    "the end of the run": (
        "a = getattr(self.data1.close, 'arr' + 'ay'); i = self.data1.close.idx\n"
        "        if len(self) > 30 and i + 1 < len(a) and a[i + 1] < a[i] * 0.99: "
        "self.env.runstop()",
        None,
    ),
}


@pytest.mark.parametrize("name", PEEPS)
def test_a_peep_on_a_single_bar_does_not_work_when_it_is_fed(pool, name):
    peep, where = PEEPS[name]
    found = parts(pool, program(peep))
    assert found is not None and found in ((where, -1) if where is not None else (found,))


def test_orders_that_come_too_late_are_none(pool):
    """Code that answers for the harness to get later bars first can only send its orders with a
    later bar.
    """
    source = textwrap.dedent(
        """
        import os, struct
        import backtrader as bt
        class S(bt.Strategy):
            def next(self):
                if len(self) == 20:
                    os.write(8, struct.pack("<I", 0))
                    ahead = os.read(7, 8 * 11)
                    self.buy()
        """
    )
    assert not fed(pool, source).ok
