"""The four stages, and every way a day can go wrong."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from stockbench_game import (
    answer,
    day_of,
    decide,
    do,
    item,
    payload_of,
    pick,
    protocol,
    small_market,
    small_panel,
)

from tradeassay_bench.benchmarks import Daily
from tradeassay_bench.benchmarks.stockbench.answers import (
    AnswerRefused,
    Decided,
    read_decisions,
    read_picks,
)
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.data import Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.llm.prompting import fenced_blocks, parse_object


def day(market_data: Snapshot, *answers: Any, **changes: Any) -> tuple[Decision, list[AskModel]]:
    """Play the first day with these answers; ``changes`` are those of the protocol."""
    market = small_market(market_data, convention=changes.get("convention", "corrected"))
    return answer(protocol(market, **changes).dialogue(market.reset()), answers)


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The three names, with a headline about one."""
    folder = tmp_path_factory.mktemp("three") / "world"
    write_snapshot(small_panel(news=(item(1, 9, 10, "A", body="a body"),)), folder)
    return open_snapshot(folder)


NONE = pick()


def kinds(decision: Decision) -> list[str]:
    return [failure.kind for failure in decision.failures if failure.kind != "no_target_shares"]


def test_a_good_day_has_three_questions(three):
    decision, asked = day(
        three,
        pick("B", "A"),
        {"notes": {"A": "x"}},
        decide(A=do("increase", 400.0), C=do("hold", 0)),
    )
    stages = ["overview", "analysis", "decision"]
    assert [request.purpose for request in asked] == stages
    assert [payload_of(request)["kind"] for request in asked] == [
        f"stockbench.{stage}" for stage in stages
    ]
    bought = Order(
        symbol="A", amount=400.0, unit="target_value", side="BUY", confidence=0.7, reason="because"
    )
    note = Failure(kind="no_target_shares", detail="1 of 1 changes come without target_shares")
    assert decision == Decision(
        orders=(bought,), reason="changes 1 of 3 positions", failures=(note,)
    )
    overview = payload_of(asked[0])
    assert overview["cash"] == overview["nav"] == 1000.0 and overview["max_names"] == 10
    assert [row["symbol"] for row in overview["symbols"]] == ["A", "B", "C"]
    first = {
        "symbol": "A",
        "buyable": True,
        "open": 10.0,
        "closes": [10.0] * 7,
        "position": None,
        "news": [],
    }
    assert overview["symbols"][0] == first
    assert [row["symbol"] for row in payload_of(asked[1])["symbols"]] == ["B", "A"]
    roles = [message.role for message in asked[2].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    # Who picks nothing is not asked for an analysis, and any words will do for one.
    decision, asked = day(three, pick(), decide())
    assert [request.purpose for request in asked] == ["overview", "decision"]
    assert decision == Decision(reason="holds everything")
    for words in ("", "I like A.", "{broken"):
        decision, _ = day(three, pick("A"), words, decide())
        assert decision.status == "ok" and decision.failures == ()


def test_the_answer_may_stand_in_a_fence_or_in_prose(three):
    body, draft = (json.dumps(decide(A=do("increase", amount))) for amount in (100.0, 900.0))
    for text in (
        body,
        f"```json\n{body}\n```",
        f"I weigh {{this}} first. {body} That is all.",
        f"First idea:\n```json\n{draft}\n```\nBetter:\n```json\n{body}\n```",
    ):
        decision, _ = day(three, pick(), text)
        assert kinds(decision) == [] and decision.orders[0].amount == 100.0


def test_an_empty_purse_ends_the_day_and_a_model_with_a_smaller_context_is_shown_less(three):
    spent = ModelReply(error="the budget is spent", error_kind="over_budget", stop="error")
    decision, asked = day(three, spent)
    assert decision.status == "failed" and kinds(decision) == ["over_budget"] and len(asked) == 1
    decision, _ = day(three, ModelReply(error="gone", stop="error"), pick(), decide())
    assert kinds(decision) == ["unreachable"] and decision.status == "ok"
    full = ModelReply(error="too long", error_kind="context", stop="error")
    decision, asked = day(three, pick("A"), "fine", full, decide())
    assert kinds(decision) == ["context", "context_cut", "context_cut"] and decision.status == "ok"
    assert [len(request.messages) for request in asked] == [2, 4, 6, 2]
    assert payload_of(asked[3])["left_out"] == ["texts of news"]


def test_history_tells_what_was_decided_and_what_was_traded(three):
    market = small_market(three)
    made = protocol(market, history_days=2)
    seen, shown = market.reset(), []
    for answers in (
        (pick(), decide(A=do("increase", 400.0))),
        (pick(), "no", "not", "nothing"),
        (pick(), decide(A=do("decrease", 100.0, target_shares=10), B=do("increase", 200.0))),
        (pick(), decide(B=do("close"))),
        (pick(), decide()),
    ):
        decision, asked = answer(made.dialogue(seen), answers)
        shown.append(payload_of(asked[0]))
        made.remember(seen, decision)
        seen = market.step(decision).observation

    def did(symbol: str, action: str, target: float, unit: str, traded: float) -> dict[str, Any]:
        return {
            "symbol": symbol,
            "action": action,
            "target": target,
            "unit": unit,
            "traded": traded,
        }

    both = [did("A", "decrease", 10.0, "shares", -30.0), did("B", "increase", 200.0, "value", 10.0)]
    assert shown[3]["history"] == [
        {"session": day_of(11), "answered": False, "actions": []},
        {"session": day_of(12), "answered": True, "actions": both},
    ]
    assert shown[4]["history"][-1]["actions"] == [did("B", "close", 0.0, "shares", -10.0)]
    held = {row["symbol"]: row["position"] for row in shown[4]["symbols"]}
    assert held["A"] == {"shares": 10.0, "value": 100.0, "holding_days": 4} and held["B"] is None


BAD_FORMS = [
    ("", "it is empty"),
    ("buy A", "holds no JSON object that can be read: there is no { in it"),
    ('{"decisions": {"A": {"action": "increase"', "}}} is missing at its end"),
    (
        '{"decisions": {"A": {"action": "hold", "reasons": [], "confidence": 0.5}}',
        "} is missing at its end",
    ),
    (
        '{"decisions": {"A": {"action": "hold", "reasons": [],}}}',
        "a comma before a closing bracket",
    ),
    (
        '{"decisions": {"A": {"action": "increase", "target_cash_amount": <amount>}}}',
        "a < > of the form",
    ),
    ({"orders": []}, "decisions"),
    ({"decisions": []}, "decisions"),
    (decide(X=do("hold")), "X: there is no such stock today"),
    (decide(A=do("buy", 10)), "A: action must be increase, hold, decrease or close"),
    (decide(A=do("increase", -5.0)), "A: target_cash_amount must be a number, 0 or more"),
    (decide(A=do("increase", "100")), "A: target_cash_amount must be a number, 0 or more"),
    (decide(A=do("increase")), "A: increase needs a target_cash_amount"),
    (decide(A=do("decrease")), "A: decrease needs a target_cash_amount"),
    (decide(A=do("hold", confidence=1.5)), "A: confidence must be a number from 0 to 1"),
    (decide(A=do("hold", reasons=3)), "A: reasons must be"),
    (decide(A={"action": "hold", "reasons": []}), "A: the field confidence is missing"),
    (decide(A="hold"), "A: the answer must be an object, not a text"),
    (json.dumps(decide(A=do("increase", 1.0))).replace("1.0}", "1e999}"), "holds no JSON object"),
    (decide(A=do("increase", 10**400)), "A: "),
]


@pytest.mark.parametrize(("text", "said"), BAD_FORMS)
def test_what_breaks_the_form_is_a_schema_failure_and_comes_back(three, text, said):
    decision, asked = day(three, pick(), text, decide(A=do("increase", 100.0)))
    assert kinds(decision) == ["schema"] and said in decision.failures[0].detail
    assert decision.status == "ok" and len(decision.orders) == 1
    assert asked[2].attempt == 2 and "2 attempts are left" in asked[2].messages[-1].text


def test_a_choice_of_names_has_a_form_too(three):
    for wrong in ("no", {"analyse": "A"}, pick("X", "Y")):
        decision, _ = day(three, wrong, pick("A", "A"), "", decide(), max_names=2)
        assert kinds(decision) == ["schema"] and decision.status == "ok"
    for mixed in (pick("A", "X"), pick("A", "B", "C")):  # what can be analysed stands
        decision, asked = day(three, mixed, "", decide(), max_names=2)
        assert kinds(decision) == ["schema"] and len(asked) == 3


def test_refused_answers_hold_everything_and_are_counted(three):
    decision, asked = day(
        three, pick(), "no", decide(A=do("decrease", 5.0)), decide(A=do("increase", 2000.0))
    )
    assert decision.status == "failed" and decision.orders == ()
    assert kinds(decision) == ["schema", "arithmetic", "liquidity", "give_up"]
    assert [request.attempt for request in asked] == [1, 1, 2, 3]
    assert "This is the last attempt" in asked[3].messages[-1].text
    overview, _ = day(three, "no", "not", "nothing")
    assert overview.status == "failed" and kinds(overview) == ["schema"] * 3 + ["give_up"]
    many = decide(**{f"X{n}": do("hold") for n in range(500)})
    decision, asked = day(three, pick(), many, decide())
    assert (
        asked[2].messages[-1].text.count("no such stock") == 12
        and len(decision.failures[0].detail) <= 2000
    )


KEYS = ("decisions", "analyse", "A", "B", "action", "target_cash_amount", "reasons", "confidence")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.text() | json_values.map(json.dumps))
def test_whatever_is_written_is_read_or_refused(text):
    for read in (lambda: read_picks(text, ("A", "B"), 1), lambda: read_decisions(text, ("A", "B"))):
        try:
            found, _ = read()
        except AnswerRefused as refused:
            assert refused.kind == "schema" and str(refused)
        else:
            assert all(name in ("A", "B") for name in found)
            assert not isinstance(found, dict) or all(
                isinstance(value, Decided) for value in found.values()
            )


def test_prompts_are_words_and_end_with_a_form_that_trades_nothing_if_copied(noted):
    _, asked = day(noted, pick("A"), {"notes": {}}, decide(A=do("increase", 100)))
    for request, key in zip(asked, ("analyse", "notes", "decisions"), strict=True):
        text = request.messages[-1].text
        form = text.rsplit("\n", 1)[-1]
        assert form.startswith(f'{{"{key}": ') and "<" in form and "5000" not in text
        # Only the numbers are missing: whoever copies it names no stock of the day, and gives no amount.
        assert parse_object(form.replace("<amount>", "1").replace("<confidence>", "1")) is not None
        assert not fenced_blocks(text) and "stockbench." not in text and '"kind"' not in text
    assert "title 1" in asked[0].messages[-1].text and "a body" in asked[1].messages[-1].text
    assert "You hold nothing" in asked[2].messages[-1].text


def test_a_sound_decision_stands_beside_one_that_is_not(three):
    mixed = decide(A=do("increase", 100), B=do("decrease", 50), Z=do("hold"), C=do("buy", 3))
    decision, _ = day(three, NONE, mixed)
    assert decision.status == "ok" and [one.symbol for one in decision.orders] == ["A"]
    assert sorted(kinds(decision)) == ["arithmetic", "schema", "schema"]
    decision, asked = day(three, NONE, mixed, decide(A=do("increase", 100)), convention="paper")
    assert decision.status == "ok" and kinds(decision) == ["schema"] and len(asked) == 3
    greedy = decide(A=do("increase", 600), B=do("increase", 600), C=do("increase", 300))
    decision, _ = day(three, NONE, greedy)  # as far as the money goes
    assert [one.symbol for one in decision.orders] == ["A", "C"] and kinds(decision) == [
        "liquidity"
    ]


def test_the_reference_pays_with_the_cash_that_is_there(three):
    greedy = decide(A=do("increase", 600), B=do("increase", 600))
    decision, asked = day(three, NONE, greedy, convention="paper")
    assert kinds(decision) == [] and len(decision.orders) == 2, (
        "each fits alone; the venue leaves the second out"
    )
    assert "what sales of the same day bring does not count" in asked[1].messages[-1].text
    too_much = decide(A=do("increase", 1200))
    decision, _ = day(three, NONE, too_much, decide(A=do("increase", 700)), convention="paper")
    assert kinds(decision) == ["liquidity"] and len(decision.orders) == 1


def test_met_targets_and_harmless_forms_are_no_mistakes(three):
    market = small_market(three)
    made, seen = protocol(market), market.reset()
    first, _ = answer(made.dialogue(seen), [NONE, decide(A=do("increase", 500))])
    made.remember(seen, first)
    seen = market.step(first).observation
    assert seen is not None
    value = seen.account.positions["A"].quantity * 10.0
    for wanted, orders in (
        (do("increase", value), 0),
        (do("decrease", value * 0.995), 0),
        (do("decrease", 0), 1),
        (do("close"), 1),
        (do("increase", 700, reasons="one reason as a text"), 1),
    ):
        decision, _ = answer(made.dialogue(seen), [NONE, decide(A=wanted)])
        assert (
            decision.status == "ok" and kinds(decision) == [] and len(decision.orders) == orders
        ), wanted


def test_refusals_are_prose_that_says_what_to_change(three):
    wrong = {"decisions": {"A": {"Action": "increase", "target_cash_amount": 10}}}
    form, rule = (
        day(three, NONE, one, decide())[1][-1].messages[-1].text
        for one in (wrong, decide(A=do("decrease", 50)))
    )
    assert "A: the field action is missing; unknown: Action; the fields are action" in form
    assert (
        "`" not in form
        and "failures" not in form
        and form.endswith('"confidence": <confidence>}}}')
    )
    assert "Change what is named above" in rule and "<symbol>" not in rule, "the form was kept"


def test_repeats_end_the_attempts_and_context_stays_bounded(three):
    decision, asked = day(three, NONE, "no json", "no json")
    assert decision.status == "failed" and kinds(decision) == [
        "schema",
        "schema",
        "repeated",
        "give_up",
    ]
    _, asked = day(three, NONE, *(f"{n} " + "x" * 20_000 for n in range(5)), attempts=5)
    sizes = [sum(len(message.text) for message in request.messages) for request in asked[2:]]
    assert max(sizes) - min(sizes) < 50


def test_silence_and_cut_offs_are_no_attempts(three):
    silence = ModelReply(error="late", error_kind="timeout", stop="error")
    cut = ModelReply(text='{"decisions": {"A"', stop="length")
    decision, asked = day(three, NONE, silence, cut, decide(A=do("increase", 10)))
    assert decision.status == "ok" and kinds(decision) == ["timeout", "cut_off"]
    assert [request.attempt for request in asked] == [1, 1, 1, 1]
    assert day(three, NONE, cut, cut, cut)[0].status == "failed"
    never, _ = day(three, NONE, silence, silence, silence)
    assert never.status == "failed" and kinds(never) == ["timeout"] * 3, (
        "it is no give-up of the model's"
    )


def test_the_daily_protocol_keeps_what_can_stand(three):
    seen = small_market(three).reset()
    good = {"symbol": "A", "unit": "target_weight", "amount": 0.1, "reason": "x"}
    reply = {
        "orders": [good, {"symbol": "NOPE", "unit": "target_weight", "amount": 1}, {"symbol": "B"}]
    }
    decision, asked = answer(Daily().dialogue(seen), [reply])
    assert [one.symbol for one in decision.orders] == ["A"] and kinds(decision) == [
        "dropped",
        "dropped",
    ]
    assert not fenced_blocks(asked[0].messages[-1].text)
    decision, asked = answer(Daily().dialogue(seen), ["?", {"orders": 1}, {"orders": []}])
    assert decision.status == "ok" and kinds(decision) == ["schema", "schema"]
    assert "orders must be a list" in asked[-1].messages[-1].text
    decision, _ = answer(Daily().dialogue(seen), ["?", "?"])
    assert decision.status == "failed" and kinds(decision)[-2:] == ["repeated", "give_up"]
