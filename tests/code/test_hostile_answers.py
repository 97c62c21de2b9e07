"""Whatever a program sends, and whatever a model answers, is read or refused: it never breaks the examiner."""

import random
import struct
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from tradeassay.account.backtrader import BrokerTerms
from tradeassay.benchmarks.quantcode.dialogue import QuantCodeSettings, play
from tradeassay.code.backtrader import BacktestJob, read_fed, read_result
from tradeassay.code.bars import make_bars
from tradeassay.code.evaluation import backtest_stage, compile_failure, trade_stage
from tradeassay.code.frames import read_result as read_frame
from tradeassay.code.harness.wire import ACCOUNT, ACTION, NOTES
from tradeassay.code.judges.decisions import compare_decisions, decision_events
from tradeassay.code.submission import Submission
from tradeassay.code.task import CodeTask, Sizing
from tradeassay.core.dialogue import ModelReply
from tradeassay.core.errors import UserError
from tradeassay.core.order_columns import FLOATS, INTEGERS
from tradeassay.sandbox import JobResult, JobUsage
from tradeassay.sandbox.codec import Caps, ClaimHead, CodecError, decode, encode
from tradeassay.sandbox.failures import claim
from tradeassay.sandbox.tier import IN_PROCESS

BARS = make_bars("us", "1d", 2, 40, 1)
JOB = BacktestJob(source="x = 1", bars=BARS, terms=BrokerTerms())
TASK = CodeTask(
    id="t",
    title="t",
    difficulty="easy",
    timeframe="1d",
    family="trend",
    formal="Buy.",
    market="us",
    bars=40,
    sizing=Sizing(kind="fixed"),
)
ODD_INTS = (0, 1, -1, 2, 3, 7, 39, 40, 41, 2**31, 2**62, -(2**63), 2**63 - 1)
ODD_FLOATS = (0.0, 1.0, -1.0, 0.5, 1e15, 1.1e15, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, 100.0)
TEXT = (
    "```python\n",
    "```",
    "~~~",
    "<think>",
    "</think>",
    "[PYTHON]",
    "[/PYTHON]",
    "class S(bt.Strategy):",
    "\n",
    "import backtrader as bt\n",
    "def signals(frame):\n",
    "    pass\n",
    "{",
    '"code": "',
    "\ud800",
    "\udfff",
    "é",
    "\x00",
    "\x1b[2J",
    "RESULT_",
    "0x" + "f" * 40,
    "(" * 30,
    "\u2028",
    "class ",
    "```json\n{}\n```\n",
)
CARD = (
    b'{"strategy":"bollinger","version":1,"strategy_family":"a","entry_rule":"b","exit_rule":"c",'
    b'"position_sizing_rule":"d","parameters":{"n":20},"constraints":{"max_exposure":1,"max_trades_per_bar":1},'
    b'"legs":["A"],"execution":"signal-bar-close"}'
)


def result(columns: dict[str, Any] | None, answers: tuple[bytes, ...] = (), log: bytes = b"") -> JobResult:
    usage = JobUsage(cpu_s=0.0, wall_s=0.0, peak_mb=1.0)
    return JobResult(source="", tier=IN_PROCESS, usage=usage, columns=columns or {}, answers=answers, log=log)


def orders(draw: random.Random, count: int) -> dict[str, Any]:
    """A record of orders that a broker could have taken, most of the time."""
    turns = sorted(draw.randint(1, 39) for _ in range(count))
    rows = {name: np.zeros(count, np.int64) for name in INTEGERS} | {name: np.zeros(count) for name in FLOATS}
    known: list[int] = []
    for place, turn in enumerate(turns):
        cancels = known and draw.random() < 0.2
        given = {"turn": turn, "row": turn - 1, "ref": draw.choice(known) if cancels else place + 1}
        if cancels:
            given["action"] = 1
        else:
            given |= {"side": draw.choice((-1, 1)), "kind": draw.randrange(7), "asset": draw.randrange(2)}
            given |= {"transmit": draw.randrange(2), "given": draw.randrange(32), "tradeid": draw.randrange(3)}
            if known and draw.random() < 0.3:
                given[draw.choice(("parent", "oco"))] = draw.choice(known)
            known.append(place + 1)
        for name, value in given.items():
            rows[name][place] = value
        if not cancels:
            rows["size"][place] = draw.choice((1.0, 0.5, 1e-9, 1e6))
            for name in FLOATS[1:]:
                rows[name][place] = draw.choice((1.0, 60.0, 100.0, 0.05, 736000.0))
    return rows


def spoil(draw: random.Random, rows: dict[str, Any]) -> dict[str, Any]:
    for _ in range(draw.choice((0, 0, 1, 1, 2, 5))):
        name = draw.choice((*INTEGERS, *FLOATS))
        if name not in rows or not len(rows[name]):
            continue
        place = draw.randrange(len(rows[name]))
        kind = draw.random()
        if kind < 0.8:
            odd = ODD_INTS if rows[name].dtype.kind == "i" else ODD_FLOATS
            rows[name] = rows[name].copy()
            rows[name][place] = draw.choice(odd) if rows[name].dtype.kind == "i" else draw.choice(ODD_FLOATS)
        elif kind < 0.86:
            del rows[name]
        elif kind < 0.92:
            rows[name] = rows[name][:place]
        else:
            rows[name] = rows[name].astype(draw.choice(("f8", "i8", "?", object)))
    return rows


def carried_out(done: Any) -> None:
    """Do everything that an evaluation does with a run."""
    compile_failure(done)
    backtest_stage(done)
    if done.failure is not None:
        assert "cannot be carried out" not in done.failure.text, "a rule has to name it"
        return
    trade_stage(done)
    done.trace()
    # No order makes money: cash, what was paid and what is held add up to the account's value.
    assert np.isfinite(done.equity).all() and all(fill.price > 0 for fill in done.fills)
    assert done.equity.size == 40 and len(done.statuses) == done.orders.orders
    gained = sum(fill.size * (float(BARS.feeds[fill.asset]["close"][-1]) - fill.price) for fill in done.fills)
    paid = sum(fill.commission for fill in done.fills)
    assert done.final_value == pytest.approx(JOB.terms.cash + gained - paid, rel=1e-9, abs=1e-6)
    events = decision_events(done, BARS, 10_000.0)
    assert compare_decisions(events, events, BARS.rows).stray == 0
    msgspec.json.encode([done.trades, done.fills, done.tricks])


def hostile_orders(draw: random.Random) -> None:
    rows = spoil(draw, orders(draw, draw.choice((0, 1, 3, 12))))
    figures = np.array([draw.choice(ODD_FLOATS) for _ in range(draw.choice((4, 4, 4, 3)))])
    if draw.random() < 0.8 and len(figures) == 4:
        figures[3] = 40.0
    rows[ACCOUNT] = figures
    rows[NOTES] = np.array(
        draw.choice(((), ("patched: x",), (None, "future: \ud800"), ("a" * 5000,))), dtype=object
    )
    carried_out(read_result(JOB, result(rows)))


def hostile_answers(draw: random.Random) -> None:
    rows = spoil(draw, orders(draw, draw.choice((1, 4, 9))))
    answers = [b""] * 40
    names = (*INTEGERS, *FLOATS)
    if all(name in rows and rows[name].dtype != object for name in names):
        for place in range(min(len(rows[name]) for name in names)):
            try:
                packed = ACTION.pack(
                    *(int(rows[n][place]) for n in INTEGERS), *(float(rows[n][place]) for n in FLOATS)
                )
            except (ValueError, OverflowError, struct.error):
                continue
            bar = int(rows["turn"][place]) - 1 if draw.random() < 0.9 else draw.randrange(40)
            answers[min(max(bar, 0), 39)] += packed
    if draw.random() < 0.2:
        answers[draw.randrange(40)] += bytes(draw.randrange(256) for _ in range(draw.randrange(200)))
    sent = tuple(answers[: draw.choice((0, 20, 40))])
    figures = {ACCOUNT: np.array([1.0, 1.0, 0.0, 40.0]), NOTES: np.array([], dtype=object)}
    carried_out(read_fed(JOB, result(figures, sent)))


def hostile_targets(draw: random.Random) -> None:
    columns: dict[str, Any] = {}
    for name in draw.choice((("A", "B"), ("A",), ("A", "B", "\x1b[2J"), ())):
        values = np.array([draw.choice(ODD_FLOATS[:4]) for _ in range(draw.choice((40, 40, 40, 39, 0)))])
        if draw.random() < 0.3 and len(values):
            values[draw.randrange(len(values))] = draw.choice(ODD_FLOATS)
        columns[name] = values.astype(draw.choice(("f8", "f8", "f8", object, "?")))
    carried_out(read_frame(JOB, result(columns)))


def hostile_bytes(draw: random.Random) -> None:
    raw = bytearray(b"".join(encode({"a": [1.0, 2.0], "b": ["x", None, "é"], "c": [True]})))
    for _ in range(draw.randrange(6)):
        place = draw.randrange(len(raw))
        raw[place : place + draw.randrange(3)] = bytes(draw.randrange(256) for _ in range(draw.randrange(3)))
    try:
        message = decode(bytes(raw[: draw.choice((len(raw), draw.randrange(len(raw) + 1)))]), Caps(rows=100))
    except CodecError:
        return
    if isinstance(message, ClaimHead):
        claim(message)


def hostile_claims(draw: random.Random) -> None:
    digits = "9" * draw.choice((1, 9, 10, 5000))
    trace = f'File "strategy.py", line {digits}\n' * draw.randrange(3) + "SECRET" * draw.randrange(400)
    said = claim(ClaimHead("exception", "E" * 200, "".join(draw.choice(TEXT[:14]) for _ in range(9)), trace))
    usage = JobUsage(cpu_s=0.0, wall_s=0.0, peak_mb=1.0)
    spoiled = JobResult(source="", tier=IN_PROCESS, usage=usage, failure=said, log=b"\xff")
    found = backtest_stage(read_result(JOB, spoiled))
    assert found.failed and msgspec.json.encode(found)


def hostile_text(draw: random.Random) -> None:
    text = "".join(draw.choice(TEXT) for _ in range(draw.randrange(25)))
    settings = QuantCodeSettings()
    talk = play(TASK, settings)
    next(talk)
    try:
        asked: Any = talk.send(ModelReply(text=text, stop=draw.choice(("stop", "length"))))
        msgspec.json.encode(asked)
    except StopIteration as ended:
        msgspec.json.encode(ended.value)


def hostile_card(draw: random.Random) -> None:
    raw = bytearray(CARD)
    for _ in range(draw.randrange(5)):
        place = draw.randrange(len(raw))
        odd = (b"1e999", b"\\ud800", b"{", b'"', b"null", b"-", bytes([draw.randrange(256)]))
        raw[place : place + draw.randrange(4)] = draw.choice(odd)
    text = bytes(raw).decode("utf-8", draw.choice(("replace", "surrogateescape")))
    handed_in = Submission(source="", card=text)
    assert len(handed_in.sha256) == 64
    try:
        card = handed_in.read_card()
    except UserError:
        return
    assert len(card.core_sha256) == 64


HOSTILE: tuple[Callable[[random.Random], None], ...] = (
    hostile_orders,
    hostile_answers,
    hostile_targets,
    hostile_bytes,
    hostile_claims,
    hostile_text,
    hostile_card,
)


@pytest.mark.parametrize("kind", HOSTILE, ids=lambda kind: kind.__name__)
def test_a_sample_of_hostile_inputs(kind):
    for number in range(120):
        kind(random.Random(number))


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE, ids=lambda kind: kind.__name__)
def test_many_hostile_inputs(kind):
    """100,000 in all. None breaks the examiner, and none keeps it busy for long."""
    slowest = 0.0
    for number in range(1_000, 1_000 + 100_000 // len(HOSTILE) + 1):
        before = time.process_time()
        kind(random.Random(number))
        slowest = max(slowest, time.process_time() - before)
    print(f"{kind.__name__}: slowest {slowest * 1000:.0f} ms")


def test_what_a_program_nests_costs_the_examiner_little():
    """Counted in passes over the text, not in seconds: doubling the input may not quadruple what is done."""
    from tradeassay.code.backtrader import tricks_in
    from tradeassay.code.program_source import parses, strategy_classes

    chain = "import backtrader as bt\nclass C0(bt.Strategy): pass\n"
    chain += "".join(f"class C{k}(C{k - 1}): pass\n" for k in range(1, 3000))
    tree = parses(chain)
    assert tree is not None and strategy_classes(tree) == ("C2999",)
    nested = "".join(" " * k + "def once():\n" for k in range(90)) + " " * 90 + "x = [a.array]\n"
    assert tricks_in(nested, ()) == []
