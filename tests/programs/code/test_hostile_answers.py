"""Whatever a program sends, and whatever a model answers, is read or refused: it never breaks the
examiner.

The inputs and the doors are those of ``tests/support/fuzz_programs.py``. Orders and targets that
get as far as the account are asked about in ``backtrader/test_replay.py`` and ``test_frames.py``.
"""

import random
from typing import Any

import msgspec
import pytest
from fuzz_programs import NASTY, Doors, stirred

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_programs.benchmarks.quantcode.dialogue import QuantCodeSettings, play
from tradeassay_programs.code.backtrader import BacktestJob, read_result, tricks_in
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.evaluation import backtest_stage
from tradeassay_programs.code.program_source import parses, strategy_classes
from tradeassay_programs.sandbox import JobResult, JobUsage
from tradeassay_programs.sandbox.codec import ClaimHead
from tradeassay_programs.sandbox.failures import claim
from tradeassay_programs.sandbox.tier import IN_PROCESS


@pytest.fixture(scope="module")
def doors() -> Doors:
    return Doors()


@pytest.mark.parametrize("inputs", [120, pytest.param(15_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("door", ["codec", "orders", "logs", "answer", "submission", "card"])
def test_no_input_breaks_a_door(doors, door, inputs):
    for number in range(inputs):
        doors.kinds[door](random.Random(number))


@pytest.mark.parametrize("answers", [120, pytest.param(15_000, marks=pytest.mark.slow)])
def test_no_answer_of_a_model_breaks_the_dialogue(doors, answers):
    for number in range(answers):
        draw = random.Random(number)
        pieces = (
            *NASTY,
            "class S(bt.Strategy):",
            "import backtrader as bt\n",
            "    pass\n",
            "~~~",
            "[PYTHON]",
            "\n",
        )
        text = "".join(draw.choice(pieces)[:200] for _ in range(draw.randrange(25)))
        talk = play(doors.task, QuantCodeSettings())
        next(talk)
        try:
            text = text if number % 2 else stirred(draw, doors.answer)
            asked: Any = talk.send(ModelReply(text=text, stop=draw.choice(("stop", "length"))))
        except StopIteration as ended:
            asked = ended.value
        assert msgspec.json.encode(asked)


@pytest.mark.parametrize("digits", [1, 9, 10, 5000])
def test_what_a_child_says_of_itself_can_be_written_down(digits):
    trace = f'File "strategy.py", line {"9" * digits}\n' * 2 + "SECRET" * 400
    said = claim(ClaimHead("exception", "E" * 200, "".join(NASTY)[:4000], trace))
    assert said.line == (int("9" * digits) if digits < 10 else None)
    used = JobUsage(cpu_s=0.0, wall_s=0.0, peak_mb=1.0)
    job = BacktestJob(source="x = 1", bars=make_bars("us", "1d", 2, 40, 1), terms=BrokerTerms())
    result = JobResult(source="", tier=IN_PROCESS, usage=used, failure=said, log=b"\xff")
    found = backtest_stage(read_result(job, result))
    assert found.failed and msgspec.json.encode(found)


def test_what_a_program_nests_costs_the_examiner_little():
    """Work that grew with the square of the input, or doubled with each level, would not end."""
    chain = "import backtrader as bt\nclass C0(bt.Strategy): pass\n"
    chain += "".join(f"class C{k}(C{k - 1}): pass\n" for k in range(1, 3000))
    tree = parses(chain)
    assert tree is not None and strategy_classes(tree) == ("C2999",)
    nested = "".join(" " * k + "def once():\n" for k in range(90)) + " " * 90 + "x = [a.array]\n"
    assert tricks_in(nested, ()) == []
