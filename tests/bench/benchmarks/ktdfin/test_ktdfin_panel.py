"""The panel of ten from a journal, worked by hand where the conventions differ."""

from typing import Any

import numpy as np
import pytest
from ktdfin_game import DONE, Game, call, order, submit

from tradeassay_bench.benchmarks.ktdfin import (
    DIAGNOSTICS,
    PANEL,
    OrderOutcome,
    ktdfin_panel,
    order_outcomes,
)
from tradeassay_bench.benchmarks.ktdfin.panel import parse_failure_rate, tool_validity_rate
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.data import Snapshot
from tradeassay_bench.play import holdings_from_records, series_from_records

TEN = """total_return sharpe max_drawdown information_ratio turnover hhi cash_ratio abstention_rate
    parse_failure_rate ece""".split()


@pytest.fixture(scope="module")
def journal(ashares: Snapshot) -> list[StepRecord]:
    """An episode: buys, sells, abstains, fails by form on day 3, by silence on day 5, and calls
    tools.
    """
    play, records = Game(ashares), []
    silent = ModelReply(error="x", error_kind="timeout", stop="error")
    day = 0
    while play.seen is not None:
        mine = list(play.now.account.positions)
        if day == 3:
            replies = [DONE, *(call(("submit_action", "{" * n)) for n in range(1, 5))]
        elif day == 5:
            replies = [silent] * 5
        elif day % 4 == 2:
            replies = [call(("portfolio_state", {}), ("portfolio_state", "{")), DONE, submit()]
        else:
            fresh = [s for s in play.symbols(12) if s not in mine][:2]
            orders = [order(play.shown(s), target_weight=0.06, confidence=0.7) for s in fresh]
            orders += [
                order(play.shown(s), "SELL", target_weight=0.0, confidence=0.55) for s in mine[:1]
            ]
            replies = [DONE, submit(*orders)]
        play.go(play.decide(replies))
        records.append(play.record)
        day += 1
    return records


def score(journal: list[StepRecord], snapshot: Snapshot, convention: Any) -> dict[str, Any]:
    first = snapshot.rows(journal[0].session, journal[-1].session)
    levels = snapshot.at(first[-1], "close").index_levels("IDX")[first.start - 1 :]
    series = series_from_records(journal, index=levels)
    return ktdfin_panel(journal, series, order_outcomes(journal, snapshot), convention=convention)


def test_ten_measures_and_two_diagnostics(journal, ashares):
    assert [info.id for info in PANEL] == TEN
    assert tuple(info.id for info in DIAGNOSTICS) == ("tool_validity_rate", "brier")
    for convention in ("paper", "corrected"):
        found = score(journal, ashares, convention)
        assert tuple(found) == (*TEN, "tool_validity_rate", "brier")
        assert all(measure.value is not None for measure in found.values()), found
        assert all(
            measure.low is not None
            for name, measure in found.items()
            if name not in ("ece", "brier")
        )


def test_rates_by_hand(journal, ashares):
    n = len(journal)
    idle = sum(not r.decision.orders and r.decision.status == "ok" for r in journal)
    corrected, paper = (score(journal, ashares, c) for c in ("corrected", "paper"))
    assert corrected["abstention_rate"].value == pytest.approx(idle / n)
    assert paper["abstention_rate"].value == pytest.approx((idle + 2) / n), (
        "two failed days traded nothing"
    )
    assert corrected["parse_failure_rate"].value == pytest.approx(2 / n), (
        "no submission came on two days"
    )
    calls = sum(r.decision.tool_calls for r in journal)
    assert calls == 2 * sum(r.decision.tool_calls > 0 for r in journal) > 0
    assert corrected["tool_validity_rate"].value == 0.5


def test_measures_as_each_convention_defines_them(journal, ashares):
    corrected, paper = (score(journal, ashares, c) for c in ("corrected", "paper"))
    weights = holdings_from_records(journal).weights
    moved = np.abs(np.diff(weights, axis=0, prepend=0.0)).sum(axis=1)
    assert paper["turnover"].value == pytest.approx(moved.mean() * 252)
    assert corrected["turnover"].value < paper["turnover"].value
    assert paper["hhi"].value == pytest.approx((weights**2).sum(axis=1).mean())
    shares = weights / weights.sum(axis=1, keepdims=True)
    assert corrected["hhi"].value == pytest.approx((shares**2).sum(axis=1).mean())
    judged = [o for o in order_outcomes(journal, ashares) if o.next_return is not None]
    for convention, found in (("paper", paper), ("corrected", corrected)):
        want = np.mean([(o.confidence - bool(o.right(convention))) ** 2 for o in judged])
        assert found["brier"].value == pytest.approx(want)


def test_outcomes_run_from_the_filling_open_to_the_next(journal, ashares):
    outcomes = order_outcomes(journal, ashares)
    assert len(outcomes) == sum(len(r.decision.orders) for r in journal)
    first = outcomes[0]
    row = ashares.rows(journal[first.step].session, journal[first.step].session).start
    opens = ashares.at(row + 1, "close").bars("open", 2, adjust="total")
    column = ashares.at(row, "close").column(first.symbol)
    assert first.next_return == pytest.approx(opens[1, column] / opens[0, column] - 1)
    assert all(o.next_return is None for o in outcomes if o.step == len(journal) - 1), (
        "there is no next open"
    )


@pytest.mark.parametrize(
    ("side", "change", "paper", "corrected"),
    [
        ("BUY", 0.01, True, True),
        ("BUY", -0.01, False, False),
        ("SELL", 0.01, True, False),
        ("SELL", -0.01, False, True),
        ("SELL", 0.0, False, False),
        ("BUY", None, None, None),
    ],
)
def test_right_is_another_thing_in_each_convention(side, change, paper, corrected):
    outcome = OrderOutcome(step=0, symbol="A", side=side, confidence=0.6, next_return=change)
    assert (outcome.right("paper"), outcome.right("corrected")) == (paper, corrected)


def test_an_episode_without_any_answer_has_rates_and_no_result(ashares):
    play = Game(ashares)
    records = []
    for _ in range(12):
        play.go(play.decide([DONE, *(ModelReply(text="hm" * n) for n in range(1, 5))]))
        records.append(play.record)
    found = ktdfin_panel(records, series_from_records(records), ())
    assert found["total_return"].value is None and found["sharpe"].value is None
    assert found["parse_failure_rate"].value == 1.0 and found["ece"].value is None
    assert found["tool_validity_rate"].reason == "no tool was called"


def record(*kinds: str, session: str = "2024-01-02", **decision: Any) -> StepRecord:
    failures = tuple(Failure(kind=kind, detail="") for kind in kinds)
    made = Decision(failures=failures, **decision)
    return StepRecord(step=0, session=session, decided_at=0, opening=(), decision=made, events=())


def test_a_failed_day_is_a_parse_failure_unless_a_submission_had_the_right_form():
    failed: dict[str, Any] = {"status": "failed"}
    without_a_form = [
        record("schema", "give_up", **failed),
        record("no_submit", "no_submit", "repeated", "give_up", **failed),
        record("cut_off", "cut_off", "cut_off", "cut_off", **failed),
        record("parse", "no_submit", "cut_off", "cut_off", "cut_off", **failed),
        record("schema", "schema", "timeout", "unreachable", **failed),
        record("timeout", **failed),
    ]
    # A constraint is only checked where the form was right, whatever came before or after it.
    with_a_form = [
        record("schema", "constraint", "give_up", **failed),
        record("constraint", "no_submit", "give_up", **failed),
        record("constraint", "constraint", "repeated", "give_up", **failed),
    ]
    mended = [record("schema"), record("cut_off"), record("dropped"), record()]
    assert parse_failure_rate(without_a_form).value == 1.0
    assert parse_failure_rate(with_a_form).value == 0.0
    assert parse_failure_rate(mended).value == 0.0
    assert parse_failure_rate([*without_a_form, *with_a_form, *mended]).value == pytest.approx(
        6 / 13
    )
    assert parse_failure_rate([]).value is None


def test_which_research_calls_are_valid():
    # Calls beyond the budget do not count.
    assert (
        tool_validity_rate([record("parse", "tool", "tool_budget", "schema", tool_calls=8)]).value
        == 0.75
    )


def test_an_order_without_a_confidence_is_not_judged(ashares):
    day = str(ashares.sessions[260])
    for confidence, judged in (
        (None, []),
        (0.5, [None]),
    ):  # there is no A, whose next return nobody knows
        order = Order(symbol="A", amount=1.0, side="BUY", confidence=confidence)
        found = order_outcomes([record(session=day, orders=(order,))], ashares)
        assert [one.next_return for one in found] == judged
