"""The four stages, and every way a day can go wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stockbench_game import answer, day_of, decide, do, payload_of, pick, protocol, small_market

from tradeassay.benchmarks.stockbench.answers import AnswerRefused, Decided, read_decisions, read_picks
from tradeassay.core.dialogue import ModelReply
from tradeassay.core.orders import Decision, Order


def one_day(three: Any, *answers: Any, **changes: Any) -> tuple[Decision, Any]:
    market = small_market(three)
    return answer(protocol(market, **changes).dialogue(market.reset()), answers)


def kinds(decision: Decision) -> list[str]:
    return [failure.kind for failure in decision.failures]


def test_a_good_day_has_three_questions(three: Any) -> None:
    decision, asked = one_day(
        three, pick("B", "A"), {"notes": {"A": "x"}}, decide(A=do("increase", 400.0), C=do("hold", 0))
    )
    assert [request.purpose for request in asked] == ["overview", "analysis", "decision"]
    assert [payload_of(request)["kind"] for request in asked] == [
        "stockbench.overview", "stockbench.analysis", "stockbench.decision",
    ]  # fmt: skip
    assert decision == Decision(
        orders=(
            Order(symbol="A", amount=400.0, unit="target_value", side="BUY", confidence=0.7, reason="because"),
        ),
        reason="changes 1 of 3 positions",
    )
    overview = payload_of(asked[0])
    assert overview["cash"] == overview["nav"] == 1000.0 and overview["max_names"] == 10
    assert [row["symbol"] for row in overview["symbols"]] == ["A", "B", "C"]
    assert overview["symbols"][0] == {
        "symbol": "A", "buyable": True, "open": 10.0, "closes": [10.0] * 7, "position": None, "news": [],
    }  # fmt: skip
    assert [row["symbol"] for row in payload_of(asked[1])["symbols"]] == ["B", "A"]
    roles = [message.role for message in asked[2].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


def test_who_picks_nothing_is_not_asked_for_an_analysis(three: Any) -> None:
    decision, asked = one_day(three, pick(), decide())
    assert [request.purpose for request in asked] == ["overview", "decision"]
    assert decision == Decision(reason="holds everything")


def test_any_words_will_do_for_the_analysis(three: Any) -> None:
    for words in ("", "I like A.", "{broken"):
        decision, _ = one_day(three, pick("A"), words, decide())
        assert decision.status == "ok" and decision.failures == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the answer is empty"),
        ("buy A", "holds no JSON object"),
        ('{"decisions": {"A": {"action": "increase"', "holds no JSON object"),
        ({"orders": []}, "decisions"),
        ({"decisions": []}, "decisions"),
        (decide(X=do("hold")), "X: no such name today"),
        (decide(A=do("buy", 10)), "A: Invalid enum value 'buy'"),
        (decide(A=do("increase", -5.0)), "A: Expected `float` >= 0"),
        (decide(A=do("increase", "100")), "A: Expected `float | null`, got `str`"),
        (decide(A=do("increase")), "A: increase needs a target_cash_amount"),
        (decide(A=do("decrease")), "A: decrease needs a target_cash_amount"),
        (decide(A=do("hold", confidence=1.5)), "A: Expected `float` <= 1.0"),
        (decide(A=do("hold", reasons="none")), "A: Expected `array`, got `str`"),
        (decide(A={"action": "hold", "reasons": []}), "missing required field `confidence`"),
        (decide(A="hold"), "A: Expected `object`, got `str`"),
        (json.dumps(decide(A=do("increase", 1.0))).replace("1.0}", "1e999}"), "holds no JSON object"),
        (decide(A=do("increase", 10**400)), "A: Number out of range"),
    ],
)
def test_what_breaks_the_form_is_a_schema_failure_and_comes_back(three: Any, text: Any, said: str) -> None:
    decision, asked = one_day(three, pick(), text, decide(A=do("increase", 100.0)))
    assert kinds(decision) == ["schema"] and said in decision.failures[0].detail
    assert decision.status == "ok" and len(decision.orders) == 1
    feedback = payload_of(asked[2])
    assert asked[2].attempt == 2 and feedback["kind"] == "feedback" and feedback["failures"][0]["kind"] == "schema"
    assert "2 attempts left" in asked[2].messages[-1].text


def test_the_answer_may_stand_in_a_fence_or_in_prose(three: Any) -> None:
    body = json.dumps(decide(A=do("increase", 100.0)))
    draft = json.dumps(decide(A=do("increase", 900.0)))
    for text in (
        body,
        f"```json\n{body}\n```",
        f"I weigh {{this}} first. {body} That is all.",
        f"First idea:\n```json\n{draft}\n```\nBetter:\n```json\n{body}\n```",
    ):
        decision, _ = one_day(three, pick(), text)
        assert decision.failures == () and decision.orders[0].amount == 100.0


def test_a_choice_of_names_has_a_form_too(three: Any) -> None:
    for wrong in ("no", {"analyse": "A"}, pick("A", "X"), pick("A", "B", "C")):
        decision, _ = one_day(three, wrong, pick("A", "A"), "", decide(), max_names=2)
        assert kinds(decision) == ["schema"] and decision.status == "ok"


def test_three_refused_answers_hold_everything_and_are_counted(three: Any) -> None:
    decision, asked = one_day(three, pick(), "no", decide(A=do("decrease", 5.0)), decide(A=do("increase", 2000.0)))
    assert decision.status == "failed" and decision.orders == ()
    assert kinds(decision) == ["schema", "arithmetic", "liquidity", "give_up"]
    assert [request.attempt for request in asked] == [1, 1, 2, 3]
    assert "1 attempt left" in asked[3].messages[-1].text
    overview, _ = one_day(three, "no", "no", "no")
    assert overview.status == "failed" and kinds(overview) == ["schema"] * 3 + ["give_up"]


def test_no_answer_is_no_mistake_of_the_models(three: Any) -> None:
    error = ModelReply(error="too slow", error_kind="timeout", stop="error")
    decision, _ = one_day(three, pick(), error, error, error)
    assert decision.status == "failed" and kinds(decision) == ["timeout"] * 3
    decision, _ = one_day(three, pick(), error, decide())
    assert decision.status == "ok" and kinds(decision) == ["timeout"]
    decision, _ = one_day(three, ModelReply(error="gone", stop="error"), pick(), decide())
    assert kinds(decision) == ["unreachable"]


def test_an_empty_purse_ends_the_day_at_once(three: Any) -> None:
    spent = ModelReply(error="the budget is spent", error_kind="over_budget", stop="error")
    decision, asked = one_day(three, spent)
    assert decision.status == "failed" and kinds(decision) == ["over_budget"] and len(asked) == 1


def test_an_answer_cut_off_is_said_to_be(three: Any) -> None:
    cut = ModelReply(text='{"decisions": {', stop="length")
    decision, asked = one_day(three, pick(), cut, decide())
    assert "cut off at the token limit" in decision.failures[0].detail
    assert "too long" in payload_of(asked[2])["failures"][1]["detail"]


def test_a_model_with_a_smaller_context_is_shown_less(three: Any) -> None:
    full = ModelReply(error="too long", error_kind="context", stop="error")
    decision, asked = one_day(three, pick("A"), "fine", full, decide())
    assert kinds(decision) == ["context", "context_cut", "context_cut"] and decision.status == "ok"
    assert [len(request.messages) for request in asked] == [2, 4, 6, 2]
    assert payload_of(asked[3])["left_out"] == ["texts of news"]


def test_history_tells_what_was_decided_and_what_was_traded(three: Any) -> None:
    market = small_market(three)
    made = protocol(market, history_days=2)
    seen = market.reset()
    for answers in (
        (pick(), decide(A=do("increase", 400.0))),
        (pick(), "no", "no", "no"),
        (pick(), decide(A=do("decrease", 100.0, target_shares=10), B=do("increase", 200.0))),
        (pick(), decide(B=do("close"))),
    ):
        decision, asked = answer(made.dialogue(seen), answers)
        made.remember(seen, decision)
        seen = market.step(decision).observation
    history = payload_of(asked[0])["history"]
    assert history == [
        {"session": day_of(11), "answered": False, "actions": []},
        {
            "session": day_of(12),
            "answered": True,
            "actions": [
                {"symbol": "A", "action": "decrease", "target": 10.0, "unit": "shares", "traded": -30.0},
                {"symbol": "B", "action": "increase", "target": 200.0, "unit": "value", "traded": 10.0},
            ],
        },
    ]
    _, asked = answer(made.dialogue(seen), (pick(), decide()))
    last = payload_of(asked[0])["history"][-1]["actions"]
    assert last == [{"symbol": "B", "action": "close", "target": 0.0, "unit": "shares", "traded": -10.0}]
    rows = {row["symbol"]: row for row in payload_of(asked[0])["symbols"]}
    assert (
        rows["A"]["position"] == {"shares": 10.0, "value": 100.0, "holding_days": 4}
        and rows["B"]["position"] is None
    )


def test_the_model_is_told_some_of_very_many_mistakes(three: Any) -> None:
    many = decide(**{f"X{n}": do("hold") for n in range(500)})
    decision, asked = one_day(three, pick(), many, decide())
    assert len(payload_of(asked[2])["failures"]) == 20 and len(decision.failures[0].detail) <= 2000


KEYS = ("decisions", "analyse", "A", "B", "action", "target_cash_amount", "reasons", "confidence")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.text() | json_values.map(json.dumps))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    for read in (lambda: read_picks(text, ("A", "B"), 1), lambda: read_decisions(text, ("A", "B"))):
        try:
            found = read()
        except AnswerRefused as refused:
            assert refused.kind == "schema" and str(refused)
        else:
            assert all(name in ("A", "B") for name in found)
            assert not isinstance(found, dict) or all(isinstance(value, Decided) for value in found.values())
