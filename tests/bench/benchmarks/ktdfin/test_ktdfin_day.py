"""The two phases: research within a budget, a forced submission, retries with feedback, and what
is counted.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import scripted_misfits  # noqa: F401  # adds models
from ktdfin_game import DONE, REASON, REMINDER, Game, call, order, submit, texts

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.ktdfin import MODES, Ktdfin, KtdfinConfig
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.data import Snapshot
from tradeassay_bench.llm.prompting import fenced_blocks, parse_object
from tradeassay_bench.llm.scripted import scripted_models


@pytest.fixture
def game(ashares: Snapshot) -> Callable[..., Game]:
    """Return what opens an episode; candidates are shown where no mode is named."""

    def make(cash: float = 1_000_000.0, **changes: Any) -> Game:
        return Game(ashares, KtdfinConfig(**{"mode": "fixed-candidate", **changes}), cash=cash)

    return make


def action(**given: Any) -> ModelReply:
    """Return a submission with these arguments."""
    return call(("submit_action", given))


def cured(play: Game, *replies: ModelReply) -> tuple[Decision, str]:
    """Return the decision after replies of which the last is sound, and what was said before
    that one.
    """
    play.asked.clear()
    return play.decide(replies), play.asked[-1].messages[-1].text


def kinds(decision: Any) -> list[str]:
    return [failure.kind for failure in decision.failures]


def test_a_good_day(game):
    play = game(mode="open-research")
    symbol = play.symbols(1)[0]
    decision = play.decide(
        [
            call(("get_market_context", {}), ("portfolio_state", {})),
            DONE,
            submit(order(play.shown(symbol))),
        ]
    )
    assert decision.status == "ok" and decision.tool_calls == 2 and decision.failures == ()
    (only,) = decision.orders
    assert (only.symbol, only.amount, only.unit, only.side) == (
        symbol,
        0.05,
        "target_weight",
        "BUY",
    )
    assert only.confidence == 0.6 and only.reason == REASON and decision.reason == REASON
    research, after, last = play.asked
    assert [request.purpose for request in play.asked] == ["research", "research", "submit"]
    assert len(research.tools) == 6 and research.must_call is None
    assert [tool.name for tool in last.tools] == [
        "submit_action"
    ] and last.must_call == "submit_action"
    assert [message.role for message in after.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    play.go(decision)
    play.asked.clear()
    play.decide([DONE, submit()])
    assert [message.role for message in play.asked[0].messages] == ["system", "user"], (
        "every day starts afresh"
    )


def test_what_is_an_action_and_what_is_none(game):
    play = game(mode="memory-only")
    shown = play.shown(play.symbols(1)[0])
    (bought,) = play.decide([submit(order(shown, shares=300))]).orders
    assert (bought.unit, bought.amount) == ("shares", 300.0)
    nothing = play.decide([submit()])
    assert nothing.status == "ok" and nothing.orders == (), "an abstention is no failure"
    found = submit(order(shown))
    calls = tuple(msgspec.structs.replace(one, found_in="fenced") for one in found.calls)
    assert len(play.decide([msgspec.structs.replace(found, calls=calls)]).orders) == 1, (
        "found in the text"
    )
    bare = {name: value for name, value in order(shown).items() if name != "target_weight"}
    shares = {name: value for name, value in order(shown, shares=100).items() if name != "side"}
    for wrong in (submit(bare), submit(shares), submit(order("asset_99999"))):
        assert kinds(play.decide([wrong, submit()])) == ["schema"]
    play.asked.clear()
    decision = play.decide([call(("portfolio_state", {})), submit()])
    assert decision.status == "ok" and kinds(decision) == ["no_submit"] and decision.tool_calls == 0
    (answered,) = (message for message in play.asked[1].messages if message.role == "tool")
    assert "Only submit_action can be called now" in answered.text


def test_the_budget_of_calls_ends_the_research(game):
    play = game(mode="open-research", tool_calls=3)
    decision = play.decide([call(*[("portfolio_state", {})] * 5), submit()])
    assert decision.tool_calls == 3 and kinds(decision) == ["tool_budget"] * 2
    results = [json.loads(m.text) for m in play.asked[-1].messages if m.role == "tool"]
    assert len(results) == 5 and all("cash" in result for result in results[:3])
    assert all(result["kind"] == "tool_budget" for result in results[3:])
    assert [request.purpose for request in play.asked] == ["research", "submit"]


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "said"),
    [
        ("portfolio_state", "{broken", "parse", "not one JSON object"),
        ("portfolio_state", "[]", "parse", "must be an object, not a list"),
        ("screen_candidates", {"top_k": 3}, "parse", "the field factors is missing"),
        (
            "screen_candidates",
            {"factors": ["SKEW"], "top_k": "three"},
            "parse",
            "top_k must be a whole number",
        ),
        (
            "screen_candidates",
            {"factors": ["SKEW"], "secret_600519": 1},
            "parse",
            "no field with that name",
        ),
        ("screen_candidates", {"factors": ["TOMORROW"]}, "tool", "no such factor"),
        ("screen_candidates", {"factors": ["SKEW"], "top_k": 51}, "tool", "at most 50"),
        ("get_stock_snapshot", {"stock_id": "asset_0000x", "lookback": 5}, "tool", "no asset"),
        ("get_stock_snapshot", {"stock_id": 7, "lookback": 5}, "parse", "stock_id"),
        ("get_market_context", {"as_of": "day_+0"}, "tool", "not over yet"),
        ("get_market_context", {"as_of": "day_+9999"}, "tool", "not over yet"),
        ("get_market_context", {"as_of": "2099-12-31"}, "tool", "no day"),
        ("get_market_context", {"as_of": "day_-5"}, "tool", "only knows"),
        (
            "compare_candidates",
            {"stock_ids": [], "dims": ["SKEW"]},
            "parse",
            "stock_ids must have at least 1",
        ),
        ("risk_check", {"target_weights": {}}, "parse", "target_weights must have at least 1"),
        ("no_such_tool", {}, "tool", "no such tool"),
    ],
)
def test_a_bad_call_is_answered_counted_and_survived(game, name, arguments, kind, said):
    play = game(mode="open-research")
    decision = play.decide([call((name, arguments)), DONE, submit()])
    assert decision.status == "ok" and kinds(decision) == [kind] and decision.tool_calls == 1
    answer = json.loads(next(m.text for m in play.asked[-1].messages if m.role == "tool"))
    assert answer["kind"] == kind and said in answer["error"]
    assert "600519" not in answer["error"] and "TOMORROW" not in answer["error"]


def test_an_empty_purse_ends_the_day_and_a_full_context_the_research(game):
    broke = ModelReply(error="no money", error_kind="over_budget", stop="error")
    for mode, purpose in (("open-research", "research"), ("memory-only", "submit")):
        play = game(mode=mode)
        decision = play.decide([broke])
        assert decision.status == "failed" and kinds(decision) == ["over_budget"]
        assert [request.purpose for request in play.asked] == [purpose]
    full = ModelReply(error="too long", error_kind="context", stop="error")
    play = game(mode="open-research")
    decision = play.decide([call(("get_market_context", {})), DONE, full, submit()])
    assert decision.status == "ok" and kinds(decision) == ["context"] and decision.tool_calls == 1
    assert len(play.asked[-2].messages) == 6 and len(play.asked[-1].messages) == 3
    play.decide([ModelReply(), submit()])
    assert all(message.text or message.calls for message in play.asked[-1].messages), (
        "no message is empty"
    )


def test_the_control_arm_is_bright_and_told_not_to_remember(game):
    plain, control = (game(mode="open-research", mask="bright", control=c) for c in (False, True))
    for play in (plain, control):
        play.decide([DONE, submit()])
    said = [play.asked[0].messages[0].text for play in (plain, control)]
    assert (
        said[1].startswith(said[0])
        and "anything you remember" in said[1]
        and "remember" not in said[0]
    )
    assert plain.asked[0].messages[1] == control.asked[0].messages[1]
    with pytest.raises(UserError, match="control arm"):  # before the first day
        Ktdfin(KtdfinConfig(control=True))


def test_a_resumed_episode_speaks_as_if_it_had_never_stopped(game):
    whole, resumed = game(mode="open-research"), game(mode="open-research")
    for _ in range(4):
        stock = next(
            symbol for symbol in whole.symbols(9) if symbol not in whole.now.account.positions
        )
        decision = whole.decide([DONE, submit(order(whole.shown(stock), target_weight=0.03))])
        for play in (whole, resumed):
            play.go(decision)
    for play in (whole, resumed):
        play.asked.clear()
        play.decide([call(("get_market_context", {}), ("portfolio_state", {})), DONE, submit()])
    assert texts(whole.asked) == texts(resumed.asked)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_in_the_text_is_for_scripted_models(game, mode):
    play = game(mode=mode)
    play.buy(3)
    play.asked.clear()
    play.decide(
        [call(("get_market_context", {})), DONE, submit()]
        if mode == "open-research"
        else [submit()]
    )
    for request in play.asked:
        assert "ktdfin.observation" in request.given.observation  # type: ignore[union-attr]
        for message in request.messages:
            if message.role in ("system", "user"):
                assert "ktdfin." not in message.text and '"kind"' not in message.text
                assert not fenced_blocks(message.text)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_asked_comes_last_with_a_form_that_trades_nothing_if_copied(game, mode):
    play = game(mode=mode)
    research = [DONE] if mode == "open-research" else []
    _, asked = cured(play, *research, submit())
    form = asked.rsplit("\n", 1)[-1]
    assert "or do you buy none?" in asked and parse_object(form) is None
    decision, told = cured(play, *research, call(("submit_action", form)), submit())
    assert (
        not decision.orders
        and kinds(decision) == ["schema"]
        and "a < > of the form stands in it" in told
    )
    filled = form.replace("<weight>", "0.05").replace("<confidence>", "0.6")
    meant = (
        filled.replace("<stock_id>", play.shown(play.symbols(1)[0]))
        .replace("<", "")
        .replace(">", "")
    )
    decision = play.decide([*research, call(("submit_action", meant))])
    assert [(one.side, one.amount) for one in decision.orders] == [("BUY", 0.05)], (
        "it is the exact form"
    )
    play.buy(2)
    assert "which of those you hold" in cured(play, *research, submit())[1]


def test_no_reason_is_too_short_for_a_day_whatever_names_are_called(game):
    for mask in ("bright", "blinded"):
        play = game(mask=mask)
        shown = play.shown(play.symbols(1)[0])
        for overall in ({}, {"overall_reason": ""}, {"overall_reason": f"buy {shown[:3]}"}):
            decision = play.decide([action(orders=[order(shown, reason="up")], **overall)])
            assert decision.orders and not decision.failures, (mask, overall)


def test_a_target_is_a_target_and_nobody_is_told_to_do_the_opposite(game):
    """A weight that is met or drifted past its target is there; a contradiction is said, not
    turned round.
    """
    play = game(mask="bright")
    (symbol,) = play.buy(1, 0.05)
    weight = play.now.account.weight(symbol)
    met = [("BUY", weight), ("SELL", weight), ("BUY", weight - 4e-4), ("SELL", weight + 4e-4)]
    for side, target in (*met, ("BUY", weight * 0.95), ("SELL", weight * 1.05)):
        decision = play.decide([submit(order(symbol, side, target_weight=round(target, 4)))])
        assert not decision.orders and not decision.failures and decision.status == "ok", (
            side,
            target,
        )
    for target, side in ((0.09, "BUY"), (0.01, "SELL")):
        unstated = {
            name: value
            for name, value in order(symbol, target_weight=target).items()
            if name != "side"
        }
        assert [one.side for one in play.decide([submit(unstated)]).orders] == [side]
    decision, told = cured(play, submit(order(symbol, "BUY", target_weight=0.01)), submit())
    assert kinds(decision) == ["constraint"] and "contradicts itself" in told and "SELL" not in told


def test_one_name_can_be_compared_and_help_is_the_same_under_every_mask(game):
    told = set()
    for mask in ("bright", "blinded"):
        play = game(mode="open-research", mask=mask)
        shown = play.shown(play.symbols(1)[0])
        one = call(("compare_candidates", {"stock_ids": [shown], "dims": ["SKEW"]}))
        assert kinds(
            play.decide([one, call(("get_market_context", {"zzz": 1})), DONE, submit()])
        ) == ["parse"]
        told.add(play.asked[2].messages[-1].text)
    assert len(told) == 1


def test_words_in_place_of_a_first_call_are_answered_once_with_how_to_call(game):
    announced = ModelReply(text="I will call the tools to gather information.")
    play = game(mode="open-research")
    replies = iter([announced, call(("get_market_context", {})), DONE, submit()])
    decision = play.decide(lambda request: next(replies))
    assert decision.status == "ok" and decision.tool_calls == 1 and not kinds(decision)
    assert [one.purpose for one in play.asked] == ["research"] * 3 + ["submit"]
    told = play.asked[1].messages[-1].text
    assert told.startswith(REMINDER) and '"factors"' in told
    play.asked.clear()
    replies = iter([announced, announced, submit()])
    assert play.decide(lambda request: next(replies)).tool_calls == 0
    assert [one.purpose for one in play.asked] == ["research", "research", "submit"], (
        "it is said once a day"
    )


def test_an_action_during_the_research_counts_and_a_wrong_one_is_neither_an_attempt_nor_shown(game):
    play = game(mode="open-research")
    stock = play.shown(play.symbols(1)[0])
    right = play.decide([submit(order(stock))])
    assert right.status == "ok" and len(right.orders) == 1 and len(play.asked) == 1
    guess = action(stock_id=stock, amount=100)
    decision = play.decide([call(("get_market_context", {})), guess, submit(order(stock))])
    assert decision.status == "ok" and len(decision.orders) == 1 and not kinds(decision)
    last = play.asked[-1]
    assert last.purpose == "submit" and last.attempt == 1
    assert not any(
        one.name == "submit_action" for message in last.messages for one in message.calls
    )


def test_a_sound_order_stands_beside_one_that_is_not(game):
    good, bad = game().symbols(2)
    for convention, found in (("corrected", ["dropped", "dropped"]), ("paper", ["schema"])):
        play = game(convention=convention)
        orders = (
            order(play.shown(good)),
            order(play.shown(bad), target_weight=0.6),
            order("asset_none"),
        )
        decision = play.decide(
            [submit(*orders)] if convention == "corrected" else [submit(*orders), submit(orders[0])]
        )
        assert decision.status == "ok" and [one.symbol for one in decision.orders] == [good]
        assert kinds(decision) == found
        if convention == "corrected":
            play.go(decision)
            _, told = cured(play, submit())
            assert (
                f"not sent: {play.shown(bad)}: its weight would be 0.6000" in told
                and bad not in told
            )


def test_advice_can_be_followed(game):
    play, tried = game(cash=60_000.0), 0
    day_view = play.protocol.day_view(play.now)
    for symbol in play.symbols(12):
        shown = play.shown(symbol)
        told = (
            play.decide([submit(order(shown, target_weight=0.0001)), submit()]).failures[0].detail
        )
        if "the least is a target_weight of" in told:
            least = float(told.rsplit(" ", 1)[-1])
            assert least <= 0.1 and play.decide([submit(order(shown, target_weight=least))]).orders
            tried += 1
        else:
            price = day_view.last_close[play.now.view.column(symbol)]
            assert "cannot be bought" in told and price * 100 / 60_000 > 0.1 - 1e-4
    assert tried


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{broken", "not one JSON object"),
        ({}, "the field orders is missing"),
        ({"orders": {}}, "orders must be a list"),
        ({"orders": [], "notes": 1}, "no field notes; the fields are orders"),
        (order("?", price=3), "order 1: there is no field price"),
        (order("?", side="HOLD"), "order 1: side must be BUY or SELL"),
        (order("?", confidence=3), "confidence must be a number from 0"),
        (order("?", shares=3, target_weight=0.1), "both were given"),
        ({"side": "BUY"}, "order 1: the field stock_id is missing"),
        (order("?", reason=" \n "), "order 1: its reason is empty"),
        (order("?", shares=-100), "order 1: shares must be"),
        (order("?", target_weight=1.5), "order 1: target_weight must be"),
    ],
)
def test_refusals_are_prose_that_names_the_field(game, given, said):
    play = game()
    if isinstance(given, dict):
        given = {"orders": [given]} if "side" in given else given
        given = json.dumps({"overall_reason": REASON, **given}).replace(
            "?", play.shown(play.symbols(1)[0])
        )
    decision, told = cured(play, call(("submit_action", given)), submit())
    assert decision.status == "ok" and kinds(decision) == ["schema"] and play.asked[1].attempt == 2
    assert "3 attempts are left" in told and said in told
    assert not any(words in told for words in ("$", "`", '"failures"'))
    assert told.rsplit("\n", 1)[-1].startswith('{"orders": [{"stock_id": "<stock_id>"')


def test_an_unknown_field_that_names_a_stock_or_a_date_is_not_repeated(game):
    play = game()
    real = play.symbols(1)[0]
    for word in (real, f"sh{real}", "2022-03-01", "march", "moutai", "Kweichow Moutai", "x" * 80):
        _, told = cured(play, action(orders=[], **{word: 1}), submit())
        assert word not in told and "asset_" not in told.split("\n")[1]


def test_the_same_wrong_answer_twice_ends_the_attempts_and_the_conversation_does_not_grow(game):
    wrong, other = action(), action(orders={})
    decision = game().decide([wrong, wrong])
    assert decision.status == "failed" and kinds(decision) == [
        "schema",
        "schema",
        "repeated",
        "give_up",
    ]
    play = game()
    decision = play.decide([wrong, other, wrong, other])
    assert decision.status == "failed" and decision.orders == ()
    assert kinds(decision) == ["schema"] * 4 + ["give_up"]
    assert [request.attempt for request in play.asked] == [1, 2, 3, 4]
    left = ["3 attempts are left", "2 attempts are left", "This is the last attempt"]
    assert all(
        said in request.messages[-1].text
        for said, request in zip(left, play.asked[1:], strict=True)
    )
    words = game(retries=1).decide([ModelReply(text="I would buy."), ModelReply(text="Really.")])
    assert words.status == "failed" and kinds(words) == ["no_submit", "no_submit", "give_up"]
    play = game(retries=6)
    play.decide(
        [call(("submit_action", {"orders": [], "n": n}), text="x" * 20_000) for n in range(7)]
    )
    lengths = [sum(len(message.text) for message in request.messages) for request in play.asked]
    assert max(lengths[1:]) - min(lengths[1:]) < 50 and max(lengths) - lengths[0] < 8_000


@pytest.mark.parametrize(
    "kind", ["timeout", "refused", "unreachable", "rate_limited", "unreadable"]
)
def test_an_error_of_the_provider_is_no_attempt(game, kind):
    silence = ModelReply(error="nothing came", error_kind=kind, stop="error")
    wrong = [action(orders=[], n=n) for n in range(3)]
    play = game()
    decision = play.decide([silence, wrong[0], silence, wrong[1], wrong[2], submit()])
    assert decision.status == "ok" and [request.attempt for request in play.asked] == [
        1,
        1,
        2,
        2,
        3,
        4,
    ]
    never = game().decide([silence] * 4)
    assert never.status == "failed" and kinds(never) == [kind] * 4, (
        "no answer is no give-up of the model's"
    )
    after = game(mode="open-research")
    assert kinds(after.decide([silence, silence, submit()])) == [kind, kind]
    assert [request.purpose for request in after.asked] == ["research", "submit", "submit"]


def test_an_answer_that_was_cut_off_is_no_attempt(game):
    cut = ModelReply(text='{"orders": [{"stock_id"', stop="length")
    play = game()
    decision, told = cured(play, cut, submit())
    assert decision.status == "ok" and kinds(decision) == ["cut_off"] and play.asked[1].attempt == 1
    assert "cut off" in told and kinds(game().decide([cut] * 4)) == ["cut_off"] * 4


EXPECTED = {
    "broken-json": {"schema", "no_submit"},
    "never-submits": {"no_submit"},
    "overspender": {"constraint"},
}


PLAYERS = [
    name
    for name in scripted_models.names()
    if name not in ("away", "sensible") and "coder" not in name
]


def days(play: Game, name: str, count: int) -> list[Decision]:
    model, decisions = scripted_models.get(name)(), []
    for _ in range(count):
        decisions.append(play.decide(model.answer))
        play.go(decisions[-1])
    return decisions


@pytest.mark.parametrize("mode", MODES)
def test_the_sensible_one_trades_without_a_mistake_and_the_same_under_every_mask(game, mode):
    found = []
    for mask in ("bright", "blinded"):
        decisions = days(game(mask=mask, mode=mode), "sensible", 5)
        assert (
            all(one.status == "ok" and not one.failures for one in decisions)
            and decisions[0].orders
        )
        found.append([[(o.symbol, o.amount) for o in one.orders] for one in decisions])
    # A model that only reads numbers trades the same whatever names are called; ids alone are drawn anew.
    assert found[0] == found[1] or mode == "memory-only"


@pytest.mark.parametrize("name", [name for name in PLAYERS if not name.startswith("tiny-")])
def test_each_scripted_model_can_play_and_its_mistakes_are_counted(game, name):
    decisions = days(game(mode="open-research"), name, 4)
    found = [failure.kind for decision in decisions for failure in decision.failures]
    assert (
        set(found) & EXPECTED[name]
        if name in EXPECTED
        else any(one.status == "ok" for one in decisions)
    )
    if name == "future-asker":
        assert (
            len(kinds(decisions[0])) >= 4
            and set(found) <= {"tool", "parse"}
            and decisions[0].status == "ok"
        )
