"""Fuzz every interface that reads a program's output: any bad input must be the program's failure.

The interfaces: the codec that reads a child's result, the log of orders that the host executes, the
two logs of a submission, the text of an answer (extraction, compile stage, a submission of two
files), and the strategy card.

Inputs are valid ones that were cut, repeated, swapped and overwritten, and a list of harmful
pieces. Some answers are long. Any exception except the documented one is a fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tradeassay.core.order_columns import FLOATS, INTEGERS
from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.benchmarks.systrade import load_reference, load_spec
from tradeassay_programs.benchmarks.systrade.dialogue import read_halves
from tradeassay_programs.code.extraction import extract
from tradeassay_programs.code.gates import audit_gate, parse_gate, schema_gate
from tradeassay_programs.code.harness.wire import ACCOUNT, NOTES
from tradeassay_programs.code.program_source import check_compiles
from tradeassay_programs.code.running import exam_settings, run_programs, task_bars
from tradeassay_programs.code.submission import (
    Submission,
    SubmissionRunner,
    closes_of,
    market_columns,
)
from tradeassay_programs.sandbox import Job, JobLimits, JobResult
from tradeassay_programs.sandbox.codec import CodecError, decode, encode
from tradeassay_programs.sandbox.job import JobUsage
from tradeassay_programs.sandbox.tier import Tier

NASTY = (
    "\ud800",
    "\x00",
    "```",
    "```python\n",
    "```json\n{",
    "</think>",
    "<think>",
    "RESULT_" * 50,
    "class A(" * 200,
    "[" * 3000,
    "{" * 3000,
    "\u202e",
    "1e999",
    "NaN",
    "-0",
    "0x" + "f" * 400,
    "def f(" + "a," * 500,
    "#" * 5000,
    "\r\n" * 300,
    "'''",
    '"""',
    "lambda:" * 300,
    "\N{FULLWIDTH DIGIT ONE}",
    "import os\n",
    "{}" * 500,
    "\t" * 200,
    "RESULT_RESULT_" * 2000,
    "=== BACKTEST RESULTS ===",
    "9" * 5000,
    "\\N{" * 100,
    "f'{" * 60,
    "x if x " * 300,
)


def stirred(chance: random.Random, text: str) -> str:
    """Return a text with a few random changes."""
    for _ in range(chance.randint(1, 4)):
        at, end = sorted(chance.randint(0, len(text)) for _ in range(2))
        what = chance.random()
        if what < 0.25:
            text = text[:at] + text[end:]
        elif what < 0.5:
            text = text[:at] + chance.choice(NASTY) + text[at:]
        elif what < 0.65:
            text = text[:end] + text[at:end] * chance.randint(1, 6) + text[end:]
        elif what < 0.8:
            text = (
                text[:at] + "".join(chr(chance.randint(0, 0x10FFFF)) for _ in range(5)) + text[at:]
            )
        else:
            text = text[:at] + text[at:end][::-1] + text[end:]
    return text[:200_000]


def stirred_bytes(chance: random.Random, body: bytes) -> bytes:
    """Return bytes with a few random changes."""
    made = bytearray(body)
    for _ in range(chance.randint(1, 5)):
        what, at = chance.random(), chance.randrange(len(made) + 1)
        if what < 0.4 and made:
            made[at % len(made)] = chance.randrange(256)
        elif what < 0.6:
            made = made[:at]
        elif what < 0.8:
            made[at:at] = chance.randbytes(chance.randint(1, 40))
        else:
            made[at : at + 8] = chance.choice(NASTY_BYTES)
    return bytes(made)


NASTY_BYTES = (b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", (2**63 - 1).to_bytes(8, "little"))
NUMBERS = (
    0.0,
    1.0,
    -1.0,
    10.0,
    100.0,
    1e15,
    1e16,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
    719_163.5,
)
WHOLE = (0, 1, -1, 2, 3, 5, 31, 64, 2**31, 2**62, -(2**63), 2**63 - 1)
USED = JobUsage(cpu_s=0.0, wall_s=0.0, peak_mb=0.0)


class Sender:
    """An executor whose children return prepared columns."""

    def __init__(self, tier: Tier) -> None:
        self.tier, self.columns = tier, {}

    def run(self, job: Job) -> JobResult:
        """Return the columns after decoding."""
        try:
            read = decode(b"".join(encode(self.columns)), JobLimits().caps())
        except (
            TypeError,
            ValueError,
        ):  # our own encoder refuses such columns, but a child's encoder may not
            read = self.columns
        assert isinstance(read, dict)
        return JobResult(source="", tier=self.tier, usage=USED, columns=read)

    def map(self, jobs):
        """Return the columns for every job."""
        return (self.run(job) for job in jobs)

    def close(self) -> None:
        """Do nothing."""


class Doors:
    """The interfaces, with valid inputs as starting points."""

    def __init__(self) -> None:
        self.task = load_task("d-sma-cross-long")
        self.reference, self.spec = load_reference("bollinger"), load_spec("bollinger")
        columns = {
            "a": np.arange(50.0),
            "t": np.arange(50).astype("M8[ns]"),
            "n": np.arange(50),
            "b": np.arange(50) > 3,
            "s": np.array(["x", "y"] * 25, dtype=object),
        }
        self.body = b"".join(encode(columns))
        self.answer = f"Here it is.\n```python\n{self.task.reference}\n```\nDone."
        self.hand_in = (
            f"```json\n{self.reference.card}\n```\n\n```python\n{self.reference.source}\n```"
        )
        self.caps = JobLimits().caps()
        self.sender = Sender(Tier(level="strong", missing=()))
        self.rules, self.bars = exam_settings("ab" * 16), task_bars(self.task)
        legs = self.spec.semantics.inputs.legs
        self.market = market_columns(self.spec.scenarios[0].bars, legs)
        self.closes = closes_of(self.market, legs)
        self.runner = SubmissionRunner(
            executor=self.sender, source="x = 1", semantics=self.spec.semantics
        )
        self.kinds: dict[str, Callable[[random.Random], None]] = {
            "codec": self.codec,
            "orders": self.orders,
            "logs": self.logs,
            "answer": self.program,
            "submission": self.two_files,
            "card": self.card,
        }

    def codec(self, chance: random.Random) -> None:
        """Read a corrupted result."""
        try:
            decode(stirred_bytes(chance, self.body), self.caps)
        except CodecError:
            return

    def orders(self, chance: random.Random) -> None:
        """Execute a log of orders: in order and with few wrong values, or with arbitrary values."""
        rows, count = self.bars.rows, chance.randint(0, 40)
        turns = sorted(chance.randint(1, rows) for _ in range(count))
        made: dict[str, np.ndarray] = {name: np.zeros(count, dtype=np.int64) for name in INTEGERS}
        made |= {name: np.zeros(count) for name in FLOATS}
        for at, turn in enumerate(turns):
            cancel = at > 0 and chance.random() < 0.15
            kind = {
                "action": int(cancel),
                "turn": turn,
                "row": turn - 1,
                "ref": chance.randint(1, at) if cancel else at + 1,
            }
            if not cancel:
                kind |= {
                    "side": chance.choice((-1, 1)),
                    "kind": chance.randint(0, 6),
                    "given": chance.randint(0, 31),
                    "transmit": 1,
                    "parent": chance.choice((0, 0, 0, at)),
                    "oco": chance.choice((0, 0, at)),
                    "size": chance.choice((1.0, 5.0, 1e6, 0.5)),
                }
                for name in FLOATS[1:]:
                    kind[name] = chance.choice((*NUMBERS, 100.0, 101.0, 99.0))
            for name, value in kind.items():
                made[name][at] = value
        for _ in range(chance.choice((0, 0, 1, 3))):
            name = chance.choice((*INTEGERS, *FLOATS))
            if count:
                pool = WHOLE if name in INTEGERS else NUMBERS
                made[name][chance.randrange(count)] = chance.choice(pool)
            if chance.random() < 0.1:
                made[name] = np.array(
                    [chance.choice(("a", "b", "")) for _ in range(count)], dtype=object
                )
        account = [
            chance.choice((*NUMBERS, 1e4)),
            1e4,
            0.0,
            float(rows if chance.random() < 0.8 else chance.choice(NUMBERS)),
        ]
        made[ACCOUNT] = np.array(account if chance.random() < 0.95 else account[:2])
        made[NOTES] = np.array(
            [chance.choice(NASTY[1:])[:900] for _ in range(chance.randint(0, 3))], dtype=object
        )
        self.sender.columns = made
        list(
            run_programs(
                self.sender, self.task, [(self.task.reference, self.bars)], rules=self.rules
            )
        )

    def logs(self, chance: random.Random) -> None:
        """Read the two logs of a submission, compute their account, and audit them."""
        count, rows = chance.randint(0, 30), self.closes.shape[1]
        times = self.market["X/time"].astype("M8[ns]")
        words = (
            "X",
            "BUY",
            "SELL",
            "Y",
            "",
            "order",
            "signal",
            "pnl",
            "position",
            "risk_check",
            *NASTY[1:4],
        )

        def text(*usual: str) -> np.ndarray:
            pool = usual if chance.random() < 0.9 else words
            return np.array([chance.choice(pool) for _ in range(count)], dtype=object)

        def number() -> np.ndarray:
            return np.array([chance.choice((1.0, 100.0, 3.0, *NUMBERS)) for _ in range(count)])

        stamps = (
            np.sort(times[[chance.randrange(rows) for _ in range(count)]]) if count else times[:0]
        )
        if count and chance.random() < 0.1:
            stamps[chance.randrange(count)] = (
                np.datetime64("NaT") if chance.random() < 0.5 else np.datetime64(2**62, "ns")
            )
        sizes = (
            np.abs(number())
            if chance.random() < 0.5
            else np.full(count, chance.choice((1.0, 1e15, 1e300)))
        )
        made = {
            "trade/time": stamps,
            "trade/symbol": text("X"),
            "trade/side": text("BUY", "SELL"),
            "trade/quantity": sizes,
        }
        made |= {f"trade/{name}": number() for name in ("price", "pnl", "equity")}
        made |= {f"trade/{name}": text("a", "b", "c") for name in ("signal", "order_id")}
        made |= {
            "audit/time": stamps,
            "audit/kind": text("signal", "risk_check", "order", "position", "pnl"),
        }
        made |= {f"audit/{name}": text("a", "b", "c", "X") for name in ("id", "parent", "symbol")}
        made["audit/value"] = number()
        if chance.random() < 0.05:
            del made[chance.choice(list(made))]
        self.sender.columns = made
        (run,) = self.runner.logs([(self.market, 1)])
        if run.ok and run.audit is not None:
            audit_gate(run, self.closes, 0.95, 1e-6)

    def program(self, chance: random.Random) -> None:
        """Extract a program from an answer and compile it."""
        found = extract(stirred(chance, self.answer))
        if found.code is not None:
            check_compiles(found.code, chance.choice(("backtrader", "frame")))

    def two_files(self, chance: random.Random) -> None:
        """Extract a submission from an answer, and run the gates that execute no code."""
        found = read_halves(stirred(chance, self.hand_in))
        if found.program is not None and found.card is not None:
            self._static(Submission(source=found.program, card=found.card, name="fuzz"))

    def card(self, chance: random.Random) -> None:
        """Read a card."""
        self._static(
            Submission(source="x = 1", card=stirred(chance, self.reference.card), name="fuzz")
        )

    def _static(self, submission: Submission) -> None:
        _ = submission.sha256
        parse_gate(submission)
        schema_gate(submission, self.spec.semantics)
