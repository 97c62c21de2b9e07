"""A program fed bar by bar: the same orders prove that none looks ahead; others show where to look."""

from __future__ import annotations

import textwrap

import msgspec
import pytest

from tradeassay.benchmarks.quantcode.loading import load_task
from tradeassay.code.backtrader import BrokerTerms, run_backtrader, terms_of
from tradeassay.code.backtrader.fed import compare_fed, run_fed
from tradeassay.code.bars import make_bars
from tradeassay.code.leak import LeakConfig
from tradeassay.code.lookahead import BRIEF, program_lookahead
from tradeassay.code.task import Sizing
from tradeassay.sandbox import SandboxPool

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


def fed(pool: SandboxPool, source: str) -> tuple[bool, int | None]:
    run = run_backtrader(pool, source, BARS, TERMS)
    assert run.ok
    assert len(run.orders)
    said = compare_fed(run, run_fed(pool, source, BARS, TERMS), BARS.rows, 1e-9)
    assert bool(said.reason) is not said.proven
    return said.proven, said.suspect


def test_honest_orders_are_proven(pool: SandboxPool) -> None:
    assert fed(pool, program()) == (True, None)


PEEPS = {
    "an index on one bar": ("if len(self) == 77: up = self.data1.close[1] > self.data1.close[0]", 76),
    "a hidden array on one bar": (
        f"if len(self) == 77: a = {AHEAD}; self.buy(size=1 + (len(a) > 1) + (len(a) > 1 and a[1] > a[0]))",
        76,
    ),
    "the length": ("if self.data.buflen() == 150 and len(self) == 31: self.buy(size=3)", 30),
    "the transmit flag": (
        f"a = {AHEAD}; self.buy(size=1, exectype=bt.Order.Limit, price=1.0, transmit=len(a) > 1 and a[1] > a[0])",
        None,
    ),
    "the end of the run": (
        "a = getattr(self.data1.close, 'arr' + 'ay'); i = self.data1.close.idx\n"
        "        if len(self) > 30 and i + 1 < len(a) and a[i + 1] < a[i] * 0.99: self.env.runstop()",
        None,
    ),
}


@pytest.mark.parametrize("name", PEEPS)
def test_a_peep_on_a_single_bar_is_not_proven(pool: SandboxPool, name: str) -> None:
    peep, where = PEEPS[name]
    proven, suspect = fed(pool, program(peep))
    assert not proven
    assert where is None or suspect == where


def test_the_first_bar_on_which_the_runs_part_convicts(pool: SandboxPool) -> None:
    """A leak on one bar of a hundred and fifty, which cuts at random would miss."""
    task = msgspec.structs.replace(load_task("d-donchian-20-10"), sizing=TERMS.sizing)
    source = program(PEEPS["a hidden array on one bar"][0])
    run = run_backtrader(pool, source, BARS, TERMS)
    stage, record = program_lookahead(pool, task, source, BARS, run, "backtrader", LeakConfig(splice_runs=0))
    assert stage.failed
    assert record.fed == "differs"
    assert [found.row for found in record.evidence][:1] == [76]


def test_a_proof_needs_one_run(pool: SandboxPool) -> None:
    task = load_task("d-donchian-20-10")
    bars = make_bars("us", "1d", 1, 150)
    run = run_backtrader(pool, task.reference, bars, terms_of(task))
    stage, record = program_lookahead(pool, task, task.reference, bars, run, "backtrader", BRIEF)
    assert stage.passed
    assert (record.fed, record.runs) == ("same", 1)
    assert "no decision can depend on a later one" in record.reason


def test_orders_that_come_too_late_are_none(pool: SandboxPool) -> None:
    """Code that answers for the harness to get later bars first can only send its orders with a later bar."""
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
    run = run_backtrader(
        pool, source.replace("os.write", "pass  # ").replace("os.read(7, 8 * 11)", "0"), BARS, TERMS
    )
    made = run_fed(pool, source, BARS, TERMS)
    assert made.failure
    assert not compare_fed(run, made, BARS.rows, 1e-9).proven
