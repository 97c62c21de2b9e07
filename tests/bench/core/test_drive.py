"""Dialogues and whoever answers them: results, exceptions on either side, and what is recorded
of a fault.
"""

import asyncio
from collections.abc import Generator

import pytest

from tradeassay_bench.core.drive import Ended, adrive, advance, drive, fault_of


def adding(log: list[str]) -> Generator[str, int, int]:
    try:
        first = yield "one?"
        second = yield "two?"
        return first + second
    finally:
        log.append("closed")


def test_a_dialogue_is_answered_to_its_result_and_closed():
    log: list[str] = []
    assert drive(adding(log), {"one?": 1, "two?": 2}.__getitem__) == 3
    assert log == ["closed"]


async def test_waiting_gives_the_same_result():
    async def answer(ask: str) -> int:
        await asyncio.sleep(0)
        return {"one?": 1, "two?": 2}[ask]

    assert await adrive(adding([]), answer) == 3


def test_what_the_answerer_raises_ends_the_dialogue():
    log: list[str] = []
    with pytest.raises(KeyError):
        drive(adding(log), {"one?": 1}.__getitem__)
    assert log == ["closed"]


def test_a_stop_iteration_of_the_answerer_is_not_taken_for_the_end():
    with pytest.raises(StopIteration):
        drive(adding([]), lambda ask: next(iter(())))


def test_a_dialogue_without_questions_has_its_result_at_once():
    def silent() -> Generator[str, int, str]:
        yield from ()
        return "done"

    assert drive(silent(), lambda ask: 0) == "done"


def test_a_host_may_give_control_back_between_question_and_answer():
    dialogue = adding([])
    assert advance(dialogue) == "one?"
    assert advance(dialogue, 1) == "two?"
    assert advance(dialogue, 2) == Ended(3)


def test_a_fault_is_one_line_without_addresses():
    fault = fault_of(ValueError("bad\nthing at 0x7f00deadbeef"))
    assert str(fault) == "ValueError: bad thing at 0x..."
    assert str(fault_of(KeyError())) == "KeyError"
    assert len(fault_of(ValueError("x" * 9999)).detail) == 500
