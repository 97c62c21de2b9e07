"""Strategies in the sandbox: what comes back, what is refused, and which tricks are named."""

from pathlib import Path

import pytest
from tests.programs.code.backtrader.plain_cerebro import run_trusted
from tests.programs.code.one_program import run_program

from tradeassay.core.errors import UserError
from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.code.backtrader import (
    BacktestJob,
    Trick,
    in_order,
    read_result,
    sandbox_job,
    scrub,
    tricks_in,
)
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.sandbox import ChildClaim

BARS = make_bars("us", "1d", 1, 200)
TERMS = BrokerTerms()
CROSS = (Path(__file__).parent / "strategies" / "cross.py").read_text()
HEAD = "import backtrader as bt\nclass S(bt.Strategy):\n"


def body(text: str) -> str:
    return HEAD + "\n".join(f"    {line}" for line in text.splitlines())


def names(tricks: tuple[Trick, ...] | list[Trick]) -> set[str]:
    return {trick.name for trick in tricks}


def test_a_strategy_runs_and_the_host_keeps_the_account(pool):
    done = run_program(pool, CROSS, BARS, TERMS)
    assert done.ok and done.tricks == () and done.orders.kinds() == {"market"}
    assert done.final_value == pytest.approx(run_trusted(CROSS, BARS, TERMS).value, rel=1e-12)
    assert set(done.statuses) <= {"completed", "submitted"}
    trace = done.trace()
    assert (trace.rows == done.orders.row).all()
    assert {fill.bar for fill in done.fills} <= {row + 1 for row in trace.rows.tolist()}


def test_many_runs_come_back_in_their_order(pool):
    jobs = [
        BacktestJob(source=CROSS, bars=make_bars("us", "1d", 1, rows), terms=TERMS)
        for rows in (60, 90, 120)
    ]
    assert [done.equity.size for done in in_order(pool, jobs, sandbox_job, read_result)] == [
        60,
        90,
        120,
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [("x = 1", "it has none"), (HEAD + "    pass\nclass T(bt.Strategy):\n    pass", "it has 2")],
)
def test_no_strategy_is_a_claim_of_its_own(pool, source, words):
    done = run_program(pool, source, BARS, TERMS)
    assert isinstance(done.failure, ChildClaim)
    assert (done.failure.kind, done.failure.error) == ("no_entry", "NoStrategy")
    assert words in done.failure.message and done.equity.size == 0
    with pytest.raises(UserError, match="no decisions"):
        done.trace()
    base = (
        HEAD + "    pass\nclass T(S):\n    pass"
    )  # a base class of one's own is no second strategy
    assert run_program(pool, base, BARS, TERMS).ok


PATCHES = {
    "cerebro": "import backtrader as bt\nbt.Cerebro.run = lambda self: [None]\n" + CROSS,
    "broker": CROSS + "\nbt.brokers.BackBroker.getvalue = lambda self, *a, **k: 99_999.0\n",
    "analyser": CROSS + "\nbt.analyzers.TradeAnalyzer.get_analysis = lambda self: {'total': 5}\n",
    "code": CROSS + "\nbt.Order.alive.__code__ = (lambda self: True).__code__\n",
    "instance": body(
        "def start(self):\n    self.broker.getvalue = lambda *a, **k: 5.0\ndef next(self): pass"
    ),
    "lines": body(
        "def next(self):\n    bt.linebuffer.LineBuffer.__getitem__ = lambda self, ago: 1.0"
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_patched_framework_is_named(pool, name):
    done = run_program(pool, PATCHES[name], BARS, TERMS)
    assert "patched-framework" in names(done.grave)


def test_a_forged_account_changes_nothing_and_an_environment_in_an_error_is_removed(pool):
    forged = (
        "def next(self):\n    if len(self) == 5:\n        self.broker.add_cash(1e6)\n        "
        "self.buy(size=50)"
    )
    done = run_program(pool, body(forged), BARS, TERMS)
    assert "account-mismatch" in names(done.tricks)
    assert done.final_value is not None and done.final_value < 50_000
    told = run_program(
        pool,
        body("def next(self):\n    import os\n    raise RuntimeError(str(os.environ))"),
        BARS,
        TERMS,
    )
    assert isinstance(told.failure, ChildClaim) and names(told.grave) == {"secrets-in-error"}
    assert "PYTHONHASHSEED" not in told.failure.message + told.failure.trace


def test_secrets_of_the_host_are_scrubbed():
    said = ChildClaim(
        kind="exception",
        error="E",
        message="got hunter2hunter2 and sk-abcdefghijklmnopqrstu",
        trace="",
    )
    clean, found = scrub(said, {"MY_PASSWORD": "hunter2hunter2", "HOME": "exception"})
    assert isinstance(clean, ChildClaim)
    assert clean.message == "got [removed] and [removed]"
    assert names(found) == {"secrets-in-error"}
    for words in ("'close'", "no TOKEN_LIMIT: 123456"):
        honest = ChildClaim(kind="exception", error="KeyError", message=words, trace="")
        assert scrub(honest, {"MY_PASSWORD": "hunter2hunter2"}) == (honest, [])


PEEPS = {
    "index": body(
        "def next(self):\n    if self.data.close[1] > self.data.close[0]: self.buy()\n    else: "
        "self.sell()"
    ),
    "indicator": body(
        "def __init__(self): self.m = bt.ind.SMA(period=3)\n"
        "def next(self):\n    if len(self) < 190 and self.m[1] > self.m[0]: self.buy()"
    ),
    "get": body(
        "def next(self):\n    ahead = self.data.close.get(ago=1, size=1)\n"
        "    if ahead and ahead[0] > 90: self.buy()"
    ),
    "line": body(
        "def __init__(self): self.ahead = self.data.close(1)\ndef next(self):\n    self.ahead[0]"
    ),
}


@pytest.mark.parametrize("name", PEEPS)
def test_later_bars_leave_a_note(pool, name):
    done = run_program(
        pool, PEEPS[name].replace("close[1]", "close[1 if len(self) < 200 else 0]"), BARS, TERMS
    )
    assert names(done.tricks) == {"future-index"}
    assert done.grave == ()


def test_whole_arrays_leave_a_note():
    source = body("def next(self):\n    best = max(self.data.close.array)")
    assert names(tricks_in(source, ())) == {"preloaded-array"}
    own = "import numpy as np\n" + body(
        "def once(self, start, end):\n    x = self.data.close.array\n    np.array([1])"
    )
    assert tricks_in(own, ()) == []


def test_a_timer_that_cheats_leaves_a_note(pool):
    source = (Path(__file__).parent / "strategies" / "timers.py").read_text()
    done = run_program(pool, source, BARS, TERMS)
    assert names(done.tricks) == {"cheat-timer"}
    assert (done.orders.decided <= done.orders.row).all()


def test_terms_that_cannot_be_are_refused():
    with pytest.raises(UserError, match="cash"):
        BrokerTerms(cash=-1)
    with pytest.raises(UserError, match="commission"):
        BrokerTerms(commission=2)
