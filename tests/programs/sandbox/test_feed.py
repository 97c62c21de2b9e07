"""Rows fed from outside: the child has none before its turn, and what it does in between is its
own.
"""

import os
from collections.abc import Iterator

import pytest

from tradeassay.core.errors import SandboxError, UserError
from tradeassay_programs.sandbox import (
    FrameFeed,
    Job,
    JobLimits,
    OutputLimit,
    Sandbox,
    TrustedCodeInProcess,
    WallTimeout,
)

from .fed_programs import CONFIG, fed_job, fed_program

ROWS = [float(number) for number in range(300)]
COUNTING = fed_program("tell(struct.pack('<I', number))")


def counted(answers: tuple[bytes, ...] | list[bytes]) -> list[int]:
    return [int.from_bytes(answer, "little") for answer in answers]


@pytest.fixture(scope="module")
def fed(machine: None) -> Iterator[Sandbox]:
    with Sandbox(CONFIG) as opened:
        yield opened


def test_every_row_arrives_once_and_in_order(fed):
    told = fed.run(fed_job(fed_program("tell(frame)"), ROWS))
    assert told.ok and b"".join(told.answers) == fed_job("", ROWS).feed.frames
    assert counted(fed.run(fed_job(COUNTING, ROWS)).answers) == list(range(1, 301))


def test_nothing_is_fed_once_an_answer_is_enough(fed):
    asked: list[int] = []

    def until(number: int, answer: bytes) -> bool:
        asked.append(number)
        return number == 6

    result = fed.run(fed_job(COUNTING, ROWS, until=until))
    assert result.ok and len(result.answers) == 7 and asked == list(range(7))


def test_a_child_that_reads_on_waits_for_a_row_that_does_not_come(fed):
    """It goes to the pipe for the next row: there is nothing in it until this row is answered."""
    greedy = fed_program("if number == 7:\n    os.read(7, 1)\ntell(struct.pack('<I', number))")
    result = fed.run(fed_job(greedy, ROWS, limits=JobLimits(wall_s=1.0)))
    assert counted(result.answers) == [1, 2, 3, 4, 5, 6]
    assert isinstance(result.failure, WallTimeout)


def test_answers_given_in_advance_are_given_in_ignorance(fed):
    """A child that answers everything at once gets all rows, after it has committed itself on
    each.
    """
    hasty = fed_program(
        "os.write(8, bytes(4) * 300)\nwhile os.read(7, 65536):\n    pass\nraise SystemExit(0)"
    )
    result = fed.run(fed_job(hasty, ROWS))
    assert result.failure is not None and list(result.answers) == [b""] * 300
    stopped = fed.run(fed_job(hasty.replace("300", "5000"), ROWS))
    assert isinstance(stopped.failure, OutputLimit) and "answers" in stopped.failure.text


def test_bad_code_is_a_failure_with_what_was_answered_before(fed):
    result = fed.run(
        fed_job(fed_program("if number > 5:\n    1 / 0\ntell(struct.pack('<I', number))"), ROWS)
    )
    assert result.failure is not None and "ZeroDivisionError" in result.failure.text
    assert counted(result.answers) == [1, 2, 3, 4, 5]
    assert (
        fed.run(fed_job(fed_program("os._exit(0)"), ROWS)).failure is not None
    )  # an end without a word


def test_nothing_is_left_behind(fed):
    fed.run(fed_job(COUNTING, ROWS))
    before = len(os.listdir("/proc/self/fd"))
    for source in (COUNTING, "x = 1", "def broken("):
        fed.run(fed_job(source, ROWS))
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_fed():
    with pytest.raises(UserError, match="needs a harness"):
        Job(source="", feed=FrameFeed(frames=b"1234", size=4))
    with pytest.raises(UserError, match="whole number"):
        FrameFeed(frames=b"12345", size=4)
    with pytest.raises(SandboxError, match="separate child"):
        job = Job(
            source="", harness="a:b", feed=FrameFeed(frames=b"1234", size=4), trust="reference"
        )
        TrustedCodeInProcess().run(job)
