"""The two phases: research within a budget, a forced submission, retries with feedback, and what is counted."""

from __future__ import annotations

import json
from typing import Any

import ktdfin_game as game
import pytest
from ktdfin_game import DONE, REASON, Game, call, order, submit

from tradeassay.benchmarks.ktdfin import KtdfinConfig
from tradeassay.core.dialogue import ModelReply
from tradeassay.data import Snapshot


def kinds(decision: Any) -> list[str]:
    return [failure.kind for failure in decision.failures]


def test_a_good_day(ashares: Snapshot) -> None:
    play = Game(ashares)
    symbol = play.symbols(1)[0]
    decision = play.decide(
        [call(("get_market_context", {}), ("portfolio_state", {})), DONE, submit(order(play.shown(symbol)))]
    )
    assert decision.status == "ok" and decision.tool_calls == 2 and decision.failures == ()
    (only,) = decision.orders
    assert (only.symbol, only.amount, only.unit, only.side) == (symbol, 0.05, "target_weight", "BUY")
    assert only.confidence == 0.6 and only.reason == REASON and decision.reason == REASON
    research, after, last = play.asked
    assert [request.purpose for request in play.asked] == ["research", "research", "submit"]
    assert len(research.tools) == 6 and research.must_call is None
    assert [tool.name for tool in last.tools] == ["submit_action"] and last.must_call == "submit_action"
    assert [message.role for message in after.messages] == ["system", "user", "assistant", "tool", "tool"]


def test_every_day_starts_a_fresh_conversation(ashares: Snapshot) -> None:
    play = Game(ashares)
    play.go(play.decide([call(("portfolio_state", {})), DONE, submit()]))
    play.asked.clear()
    play.decide([DONE, submit()])
    assert [message.role for message in play.asked[0].messages] == ["system", "user"]


def test_shares_become_shares(ashares: Snapshot) -> None:
    play = Game(ashares)
    symbol = play.symbols(1)[0]
    decision = play.decide([DONE, submit(order(play.shown(symbol), shares=300))])
    assert (decision.orders[0].unit, decision.orders[0].amount) == ("shares", 300.0)


def test_no_orders_is_an_abstention_not_a_failure(ashares: Snapshot) -> None:
    decision = Game(ashares).decide([DONE, submit()])
    assert decision.status == "ok" and decision.orders == ()


def test_the_budget_of_calls_ends_the_research(ashares: Snapshot) -> None:
    play = Game(ashares, KtdfinConfig(tool_calls=3))
    decision = play.decide([call(*[("portfolio_state", {})] * 5), submit()])
    assert decision.tool_calls == 3 and kinds(decision) == ["tool_budget"] * 2
    results = [json.loads(m.text) for m in play.asked[-1].messages if m.role == "tool"]
    assert len(results) == 5 and all("cash" in result for result in results[:3])
    assert all(result["kind"] == "tool_budget" for result in results[3:])
    assert [request.purpose for request in play.asked] == ["research", "submit"]


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "said"),
    [
        ("portfolio_state", "{broken", "parse", "no JSON"),
        ("portfolio_state", "[]", "parse", "Expected `object`"),
        ("screen_candidates", {"top_k": 3}, "parse", "missing required field `factors`"),
        ("screen_candidates", {"factors": ["SKEW"], "top_k": "three"}, "parse", "$.top_k"),
        ("screen_candidates", {"factors": ["SKEW"], "secret_600519": 1}, "parse", "unknown field"),
        ("screen_candidates", {"factors": ["TOMORROW"]}, "tool", "no such factor"),
        ("screen_candidates", {"factors": ["SKEW"], "top_k": 51}, "tool", "at most 50"),
        ("get_stock_snapshot", {"alias": "asset_0000x", "lookback": 5}, "tool", "no asset"),
        ("get_stock_snapshot", {"alias": 7, "lookback": 5}, "parse", "Expected `str`"),
        ("get_market_context", {"as_of": "day_+0"}, "tool", "not over yet"),
        ("get_market_context", {"as_of": "day_+9999"}, "tool", "not over yet"),
        ("get_market_context", {"as_of": "2099-12-31"}, "tool", "no day"),
        ("get_market_context", {"as_of": "day_-5"}, "tool", "only knows"),
        ("compare_candidates", {"aliases": [], "dims": ["SKEW"]}, "parse", "$.aliases"),
        ("risk_check", {"target_weights": {}}, "parse", "$.target_weights"),
        ("no_such_tool", {}, "tool", "no such tool"),
    ],
)
def test_a_bad_call_is_answered_counted_and_survived(
    ashares: Snapshot, name: str, arguments: Any, kind: str, said: str
) -> None:
    play = Game(ashares)
    decision = play.decide([call((name, arguments)), DONE, submit()])
    assert decision.status == "ok" and kinds(decision) == [kind] and decision.tool_calls == 1
    answer = json.loads(next(m.text for m in play.asked[-1].messages if m.role == "tool"))
    assert answer["kind"] == kind and said in answer["error"]
    assert "600519" not in answer["error"] and "TOMORROW" not in answer["error"]


def test_a_submission_in_the_research_phase_only_ends_it(ashares: Snapshot) -> None:
    play = Game(ashares)
    decision = play.decide([submit(), submit()])
    assert decision.status == "ok" and kinds(decision) == [] and decision.tool_calls == 0
    assert [request.purpose for request in play.asked] == ["research", "submit"]


BAD_FORMS = [
    ("{broken", "no JSON"),
    ({"orders": []}, "missing required field `overall_reason`"),
    ({"orders": [], "overall_reason": "short"}, "at least 10 characters"),
    ({"orders": [], "overall_reason": "         \n   a"}, "at least 10 characters"),
    ({"orders": {}, "overall_reason": REASON}, "Expected `array`"),
    ({"orders": [order("?", target_weight=0.05, shares=100)], "overall_reason": REASON}, "exactly one"),
    ({"orders": [order("?", side="HOLD")], "overall_reason": REASON}, "$.orders[0].side"),
    ({"orders": [order("?", confidence=1.2)], "overall_reason": REASON}, "$.orders[0].confidence"),
    ({"orders": [order("?", reason="no")], "overall_reason": REASON}, "$.orders[0].reason"),
    ({"orders": [order("?", shares=-100)], "overall_reason": REASON}, "$.orders[0].shares"),
    ({"orders": [order("?", target_weight=1.5)], "overall_reason": REASON}, "$.orders[0].target_weight"),
    ({"orders": [order("?", leverage=3)], "overall_reason": REASON}, "unknown field"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD_FORMS)
def test_a_bad_form_comes_back_with_the_reason(ashares: Snapshot, arguments: Any, said: str) -> None:
    play = Game(ashares, KtdfinConfig(mode="fixed-candidate"))
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    raw = raw.replace('"?"', json.dumps(play.shown(play.symbols(1)[0])))
    decision = play.decide([call(("submit_action", raw)), submit()])
    assert decision.status == "ok" and kinds(decision) == ["schema"]
    feedback = play.asked[1].messages[-1]
    assert feedback.role == "user" and said in feedback.text and '"kind":"feedback"' in feedback.text
    assert "3 attempts left" in feedback.text and play.asked[1].attempt == 2


def test_one_order_without_an_amount_is_a_bad_form(ashares: Snapshot) -> None:
    play = Game(ashares, KtdfinConfig(mode="memory-only"))
    bare = order(play.shown(play.symbols(1)[0]))
    del bare["target_weight"]
    assert kinds(play.decide([submit(bare), submit()])) == ["schema"]


def test_after_three_retries_nothing_is_traded_and_it_is_counted(ashares: Snapshot) -> None:
    play = Game(ashares, KtdfinConfig(mode="memory-only"))
    decision = play.decide([call(("submit_action", "{broken"))] * 4)
    assert decision.status == "failed" and decision.orders == ()
    assert kinds(decision) == ["schema"] * 4 + ["give_up"]
    assert [request.attempt for request in play.asked] == [1, 2, 3, 4]
    assert [("attempts" in r.messages[-1].text, "1 attempt " in r.messages[-1].text) for r in play.asked[1:]] == [
        (True, False), (True, False), (False, True)
    ]  # fmt: skip


def test_words_instead_of_a_submission(ashares: Snapshot) -> None:
    play = Game(ashares, KtdfinConfig(mode="memory-only", retries=1))
    decision = play.decide([ModelReply(text="I would buy."), ModelReply(stop="length")])
    assert decision.status == "failed" and kinds(decision) == ["no_submit", "no_submit", "give_up"]
    assert "token limit" in decision.failures[1].detail


def test_another_tool_is_no_submission(ashares: Snapshot) -> None:
    play = Game(ashares, KtdfinConfig(mode="memory-only"))
    decision = play.decide([call(("portfolio_state", {})), submit()])
    assert decision.status == "ok" and kinds(decision) == ["no_submit"] and decision.tool_calls == 0
    answered = [m for m in play.asked[1].messages if m.role == "tool"]
    assert len(answered) == 1 and "only submit_action" in answered[0].text


@pytest.mark.parametrize("kind", ["refused", "timeout", "unreachable", "rate_limited"])
def test_silence_is_counted_by_its_kind_and_costs_an_attempt(ashares: Snapshot, kind: str) -> None:
    silence = ModelReply(error="nothing came", error_kind=kind, stop="error")
    play = Game(ashares)
    decision = play.decide([silence, silence, submit()])
    assert decision.status == "ok" and kinds(decision) == [kind, kind]
    assert [request.purpose for request in play.asked] == ["research", "submit", "submit"]
    never = Game(ashares, KtdfinConfig(mode="memory-only")).decide([silence] * 4)
    assert never.status == "failed" and kinds(never) == [kind] * 4, "no answer is no give-up of the model's"


def test_an_empty_purse_ends_the_day_at_once(ashares: Snapshot) -> None:
    broke = ModelReply(error="no money", error_kind="over_budget", stop="error")
    for mode, purpose in (("open-research", "research"), ("memory-only", "submit")):
        play = Game(ashares, KtdfinConfig(mode=mode))
        decision = play.decide([broke])
        assert decision.status == "failed" and kinds(decision) == ["over_budget"]
        assert [request.purpose for request in play.asked] == [purpose]


def test_a_full_context_drops_the_research(ashares: Snapshot) -> None:
    full = ModelReply(error="too long", error_kind="context", stop="error")
    play = Game(ashares)
    decision = play.decide([call(("get_market_context", {})), DONE, full, submit()])
    assert decision.status == "ok" and kinds(decision) == ["context"] and decision.tool_calls == 1
    assert len(play.asked[-2].messages) == 6 and len(play.asked[-1].messages) == 3


def test_an_empty_reply_leaves_no_empty_message(ashares: Snapshot) -> None:
    play = Game(ashares)
    play.decide([ModelReply(), submit()])
    assert all(message.text or message.calls for message in play.asked[-1].messages)


def test_a_call_found_in_the_text_is_as_good(ashares: Snapshot) -> None:
    play = Game(ashares, KtdfinConfig(mode="memory-only"))
    found = submit(order(play.shown(play.symbols(1)[0])))
    import msgspec

    found = msgspec.structs.replace(
        found, calls=tuple(msgspec.structs.replace(c, found_in="fenced") for c in found.calls)
    )
    assert len(play.decide([found]).orders) == 1


def test_the_control_arm_is_bright_and_told_not_to_remember(ashares: Snapshot) -> None:
    plain, control = (Game(ashares, KtdfinConfig(mask="bright", control=c)) for c in (False, True))
    for play in (plain, control):
        play.decide([DONE, submit()])
    said = [play.asked[0].messages[0].text for play in (plain, control)]
    assert said[1].startswith(said[0]) and "anything you remember" in said[1] and "remember" not in said[0]
    assert plain.asked[0].messages[1] == control.asked[0].messages[1]


def test_a_mask_that_makes_no_sense_is_refused_before_the_first_day() -> None:
    from tradeassay.benchmarks.ktdfin import Ktdfin
    from tradeassay.core.errors import UserError

    with pytest.raises(UserError, match="control arm"):
        Ktdfin(KtdfinConfig(control=True))


def test_a_resumed_episode_speaks_as_if_it_had_never_stopped(ashares: Snapshot) -> None:
    whole, resumed = Game(ashares), Game(ashares)
    decisions = []
    for _ in range(4):
        stock = next(symbol for symbol in whole.symbols(9) if symbol not in whole.now.account.positions)
        decisions.append(whole.decide([DONE, submit(order(whole.shown(stock), target_weight=0.03))]))
        whole.go(decisions[-1])
    for decision in decisions:
        resumed.go(decision)
    for play in (whole, resumed):
        play.asked.clear()
        play.decide([call(("get_market_context", {}), ("portfolio_state", {})), DONE, submit()])
    assert game.texts(whole.asked) == game.texts(resumed.asked)
