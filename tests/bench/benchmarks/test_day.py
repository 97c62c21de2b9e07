"""A trading day as a conversation: asked, answered, asked again, given up."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import DataError
from tradeassay_bench.benchmarks.daily import DayConfig, day, play_day
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo, Observation, Rules
from tradeassay_bench.core.events import ENCODER
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.core.view import AccountState

RULES = Rules(venue="test", currency="USD", long_only=True, lot=1.0, t_plus_1=False)


class View:
    def column(self, symbol: str) -> int:
        try:
            return ("A", "B", "FUND").index(symbol)
        except ValueError:
            raise DataError(f"unknown symbol {symbol}") from None


OBSERVATION = Observation(
    step=0,
    session="2024-01-02",
    time=0,
    universe=("A", "B"),
    columns=np.array([0, 1]),
    view=View(),
    account=AccountState(cash=1.0, nav=1.0, initial=1.0, positions={}),
    rules=RULES,
    since_last=(),
    sessions_left=1,
)
GOOD = Decision(orders=(Order(symbol="A", amount=0.5, unit="target_weight"),), reason="because")
BAD = Decision(orders=(Order(symbol="A", amount=math.nan, unit="target_weight"),))


def play(*answers: Any, **config: int) -> tuple[Decision, list[AskDecision]]:
    protocol, asked, left = day(OBSERVATION, DayConfig(**config)), [], [None, *answers]
    try:
        while True:
            asked.append(protocol.send(left.pop(0)))
    except StopIteration as done:
        return done.value, asked


def test_a_good_answer_and_a_failure_end_the_day_unchanged():
    decision, asked = play(GOOD)
    assert decision is GOOD and [(a.attempt, a.feedback) for a in asked] == [(1, None)]
    failed = Decision(status="failed", failures=(Failure(kind="unsupported", detail="no fund"),))
    assert play(failed)[0] is failed


def test_a_bad_answer_comes_back_with_the_reason_until_the_day_has_failed():
    decision, asked = play(BAD, GOOD)
    assert asked[1].attempt == 2
    assert asked[1].feedback == "A: amount nan is no finite plain number (attempt 1 of 3)"
    assert decision.status == "ok" and decision.orders == GOOD.orders
    assert [failure.kind for failure in decision.failures] == ["amount"]
    decision, asked = play(BAD, BAD, attempts=2)
    assert decision.status == "failed" and decision.orders == ()
    assert len(decision.failures) == 2 and len(asked) == 2


def order(**changes: Any) -> Decision:
    plain = {"symbol": "A", "amount": 1.0, "side": "BUY"}
    return Decision(orders=(Order(**{**plain, **changes}),))


MISTAKES = (
    (None, "schema", "NoneType, not a Decision"),
    ({"orders": []}, "schema", "dict, not a Decision"),
    (Decision(orders=[]), "schema", "orders must be a tuple"),
    (Decision(orders=("A",)), "schema", "an order is a str"),
    (Decision(status="maybe"), "schema", "status 'maybe'"),
    (Decision(reason=3), "schema", "reason must be a text"),
    (Decision(failures=("x",)), "schema", "tuple of Failure"),
    (order(symbol=""), "schema", "no symbol"),
    (order(symbol="ZZZ"), "symbol", "ZZZ: no such symbol"),
    (order(amount=math.inf), "amount", "no finite plain number"),
    (order(amount=10, unit="target_weight", side=None), "amount", "10 is more than the account"),
    (order(amount=np.float64(1.0)), "amount", "no finite plain number"),
    (order(amount=True), "amount", "no finite plain number"),
    (order(amount="1"), "amount", "no finite plain number"),
    (order(amount=10**400), "amount", "no finite plain number"),
    (order(amount=-1.0), "amount", "must be positive"),
    (order(side=None), "schema", "needs a side"),
    (order(side="HOLD"), "schema", "unknown unit, side, kind or tif"),
    (order(unit=["shares"]), "schema", "unknown unit, side, kind or tif"),
    (order(unit="lots"), "schema", "unknown unit, side, kind or tif"),
    (order(kind="limit"), "schema", "needs a limit_price"),
    (order(kind="stop", stop_price=-1.0), "amount", "stop_price -1.0"),
    (order(limit_price=3.0), "schema", "takes no limit_price"),
    (order(confidence=1.5), "amount", "confidence 1.5"),
    (order(reason=None), "schema", "reason must be a text"),
    (Decision(orders=order().orders * 2), "duplicate", "more than one order"),
)


def test_each_mistake_has_its_kind_and_sentence():
    for answer, kind, said in MISTAKES:
        decision, _ = play(answer, attempts=1)
        assert decision.status == "failed" and decision.failures[0].kind == kind, answer
        assert said in decision.failures[0].detail, answer
    decision, _ = play(Decision(orders=order().orders * 5), attempts=1, max_orders=4)
    assert "at most 4" in decision.failures[0].detail


def test_what_is_well_formed_passes_and_survives_the_journal():
    for answer in (
        Decision(),
        order(symbol="FUND"),
        order(unit="target_weight", side=None, amount=0.0),
        order(unit="target_shares", side=None, amount=-3),
        order(kind="limit", limit_price=3.0, tif="gtc"),
        order(kind="stop", stop_price=3.0, confidence=0),
    ):
        assert play(answer)[0] is answer
        assert msgspec.json.decode(ENCODER.encode(answer), type=Decision) == answer


class Scripted:
    """Answers from a list; raises what is an exception."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None: ...

    def answer(self, request: AskDecision) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


RAISES = Scripted.answer.__code__.co_firstlineno + 3
"""The line that raises: an own agent's fault is shown with its place."""


def test_drive_plays_a_day_and_an_agent_that_raises_has_failed_it():
    assert play_day(day(OBSERVATION), Scripted(BAD, GOOD)).orders == GOOD.orders
    decision = play_day(day(OBSERVATION), Scripted(ZeroDivisionError("division by zero")))
    detail = f"ZeroDivisionError: division by zero (test_day.py, line {RAISES})"
    assert decision.status == "failed" and decision.failures == (
        Failure(kind="agent", detail=detail),
    )
    decision = play_day(day(OBSERVATION), Scripted(ValueError(f"bad {object()!r}" + "x" * 900)))
    # What differs between runs is kept out of the journal.
    assert "0x..." in decision.failures[0].detail and len(decision.failures[0].detail) == 500
    with pytest.raises(KeyboardInterrupt):  # nobody's failure
        play_day(day(OBSERVATION), Scripted(KeyboardInterrupt()))
