"""Repair or drift: distances, cards and lines worked by hand."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from tests.programs.code import hold
from tests.programs.code.hold import semantics

from tradeassay_bench.account.shares import DecisionList, decision_list
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.drift import (
    DriftReport,
    Traced,
    changed_lines,
    check_drift,
    trace_distance,
)
from tradeassay_programs.code.submission import Scenario, StrategySpec, Submission, SubmissionRun

SEMANTICS = semantics()


def trace(*rows: int, share: float = 1.0) -> DecisionList:
    return decision_list([(row, 0, share, 0) for row in rows])


FROZEN = trace(*range(0, 40, 2))
SPEC = StrategySpec(SEMANTICS, "", (Scenario("one", "", make_bars("us", "1d", 1, 40), FROZEN),))


def submission(**card: object) -> Submission:
    return hold.submission("a\nb\n", **card)


def drift(
    first: DecisionList | None, patched: DecisionList | None, card: dict | None = None, **more
) -> DriftReport:
    was, became = submission(**more.pop("first_card", {})), submission(**(card or {}))
    return check_drift(SPEC, traced(first, was), traced(patched, became), **more)


def traced(decisions: DecisionList | None, made: Submission) -> Traced:
    return Traced(made, {"one": SubmissionRun(cpu_s=0.0, decisions=decisions)})


def test_distance_by_hand():
    assert trace_distance(trace(), trace()) == 0.0
    assert trace_distance(trace(1, 2, 3), trace(1, 3)) == pytest.approx(1 / 3)
    assert trace_distance(trace(1, 2), trace(5, 6)) == 1.0
    assert trace_distance(trace(1), trace(1, share=0.9)) == 1.0
    assert trace_distance(trace(1), trace(1, share=1.0 + 1e-9)) == 0.0
    assert trace_distance(trace(), trace(4)) == 1.0


@given(st.sets(st.integers(0, 30), max_size=8), st.sets(st.integers(0, 30), max_size=8))
def test_distance_is_symmetric_and_between_nothing_and_all(left, right):
    a, b = trace(*sorted(left)), trace(*sorted(right))
    found = trace_distance(a, b)
    assert 0.0 <= found <= 1.0 and found == trace_distance(b, a)
    assert (found == 0.0) == (left == right)


def test_nearer_is_a_repair_and_farther_is_drift_whatever_is_said():
    wrong, worse = trace(*range(0, 38, 2)), trace(*range(0, 30, 2))
    assert drift(FROZEN, FROZEN).kind == "unchanged"
    assert drift(wrong, FROZEN).kind == "repair"
    assert drift(worse, wrong).kind == "repair"
    said = drift(FROZEN, wrong, justification="fixed the handling of missing values")
    assert said.kind == "drift" and not said.accepted and said.justification
    assert drift(wrong, worse).reasons[0].startswith("scenario one: 0.050")


def test_a_program_that_runs_at_last_is_a_repair_however_far_it_is():
    far = trace(*range(1, 40, 2))
    assert trace_distance(far, FROZEN) == 1.0
    report = drift(None, far)
    assert report.kind == "repair" and report.accepted
    assert report.reasons == ("it runs on 1 of 1 scenarios where it did not",)
    assert drift(None, None).kind == "unknown" and drift(None, FROZEN).kind == "repair"
    lost = drift(far, None)
    assert (
        lost.kind == "unknown"
        and "no trace on scenario one" in lost.reasons[0]
        and not lost.accepted
    )
    two = StrategySpec(SEMANTICS, "", (SPEC.scenarios[0], replace(SPEC.scenarios[0], name="two")))

    def run(one: DecisionList | None, other: DecisionList | None) -> Traced:
        runs = {
            "one": SubmissionRun(cpu_s=0.0, decisions=one),
            "two": SubmissionRun(cpu_s=0.0, decisions=other),
        }
        return Traced(submission(), runs)

    assert check_drift(two, run(FROZEN, None), run(FROZEN, far)).kind == "repair"
    moved = check_drift(two, run(FROZEN, None), run(far, far))
    assert moved.kind == "drift", "where it ran before, it moved away from the frozen rules"


def test_sideways_goes_by_the_thresholds():
    def without(*rows: int) -> DecisionList:
        return trace(*(row for row in range(0, 400, 2) if row not in rows))

    whole = StrategySpec(SEMANTICS, "", (Scenario("one", "", SPEC.scenarios[0].bars, without()),))

    def judged(count: int) -> str:
        first, patched = without(*range(0, 2 * count, 2)), without(*range(200, 200 + 2 * count, 2))
        return check_drift(whole, traced(first, submission()), traced(patched, submission())).kind

    assert [judged(count) for count in (2, 8, 30)] == ["allowed", "review", "drift"]


def test_a_changed_card_is_drift_and_a_mended_one_is_not():
    assert drift(FROZEN, FROZEN, {"entry_rule": "in it goes"}).kind == "unchanged", (
        "blanks mean nothing"
    )
    assert drift(FROZEN, FROZEN, {"notes": "more words"}).kind == "unchanged"
    for changed in (
        {"entry_rule": "in it goes when RSI < 30"},
        {"parameters": {"n": 4, "k": 2.0}},
        {"parameters": {"n": 3}},
        {"constraints": {"max_exposure": 2.0, "max_trades_per_bar": 1}},
        {"legs": ["X", "Y"]},
    ):
        report = drift(FROZEN, FROZEN, changed)
        assert report.kind == "drift" and len(report.card_changes) == 1
    assert drift(FROZEN, FROZEN, {"parameters": {"n": 3, "k": 2.0 + 1e-7}}).kind == "unchanged"
    assert (
        drift(FROZEN, FROZEN, first_card={"parameters": {"n": 9, "k": 2.0, "z": 1}}).kind
        == "unchanged"
    )


def test_lines_by_hand():
    assert changed_lines("a\nb\nc\n", "a\nb\nc") == 0
    assert changed_lines("a\nb\nc\n", "a\n\nb  \nc\n") == 0
    assert changed_lines("a\nb\nc\n", "a\nX\nc\n") == 1
    assert changed_lines("a\nb\nc\n", "a\n") == 2
    assert changed_lines("a\n", "a\nb\nc\n") == 2
    patched = hold.submission("\n".join(f"line {n}" for n in range(60)))
    first, last = traced(FROZEN, submission()), traced(FROZEN, patched)
    report = check_drift(SPEC, first, last)
    assert report.changed_lines == 60 and not report.within_budget and not report.accepted
    assert check_drift(SPEC, first, last, previous=patched).changed_lines == 0
