"""A day: prompts for language models, and rules that they can satisfy."""

from __future__ import annotations

import json
import re
from typing import Any

import ktdfin_game as game
import pytest
from ktdfin_game import DONE, REASON, Game, call, order, submit

from tradeassay.benchmarks.ktdfin import MODES, KtdfinConfig
from tradeassay.core.dialogue import ModelReply
from tradeassay.data import Snapshot
from tradeassay.llm.json_text import fenced_blocks, parse_object
from tradeassay.llm.scripted import scripted_models


def config(**changes: Any) -> KtdfinConfig:
    return KtdfinConfig(**{"mode": "fixed-candidate", **changes})


def kinds(decision: Any) -> list[str]:
    return [failure.kind for failure in decision.failures]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_in_the_text_is_for_scripted_models(ashares: Snapshot, mode: Any) -> None:
    play = Game(ashares, config(mode=mode))
    play.buy(3)
    play.asked.clear()
    replies = [call(("get_market_context", {})), DONE, submit()] if mode == "open-research" else [submit()]
    play.decide(replies)
    for request in play.asked:
        assert "ktdfin.observation" in request.given.observation  # type: ignore[union-attr]
        for message in request.messages:
            if message.role in ("system", "user"):
                assert "ktdfin." not in message.text and '"kind"' not in message.text
                assert not fenced_blocks(message.text)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_asked_comes_last_with_an_example_of_the_exact_form(ashares: Snapshot, mode: Any) -> None:
    play = Game(ashares, config(mode=mode))
    play.decide([DONE, submit()] if mode == "open-research" else [submit()])
    example = parse_object(play.asked[-1].messages[-1].text.rsplit("\n", 1)[-1])
    assert example is not None and set(example) == {"orders", "overall_reason"}
    assert "only BUY is possible" in play.asked[-1].messages[-1].text
    play.buy(2)
    play.asked.clear()
    play.decide([DONE, submit()] if mode == "open-research" else [submit()])
    said = play.asked[-1].messages[-1].text
    sides = [one["side"] for one in parse_object(said.rsplit("\n", 1)[-1])["orders"]]  # type: ignore[index]
    assert sides == ["BUY", "SELL"] and "Only these can be sold" in said


def test_words_in_place_of_a_first_call_are_answered_once_with_how_to_call(ashares: Snapshot) -> None:
    announced = ModelReply(text="I will call the tools to gather information.")
    play = Game(ashares, config(mode="open-research"))
    replies = iter([announced, call(("get_market_context", {})), DONE, submit()])
    decision = play.decide(lambda request: next(replies))
    assert decision.status == "ok" and decision.tool_calls == 1 and not kinds(decision)
    assert [one.purpose for one in play.asked] == ["research"] * 3 + ["submit"]
    told = play.asked[1].messages[-1].text
    assert told.startswith(game.REMINDER) and '"factors"' in told
    play.asked.clear()
    replies = iter([announced, announced, submit()])
    assert play.decide(lambda request: next(replies)).tool_calls == 0
    assert [one.purpose for one in play.asked] == ["research", "research", "submit"], "it is said once a day"


def test_a_wrong_action_during_the_research_ends_it_and_is_neither_an_attempt_nor_shown(ashares: Snapshot) -> None:
    play = Game(ashares, config(mode="open-research"))
    stock = play.shown(play.symbols(1)[0])
    guess = call(("submit_action", {"stock_id": stock, "amount": 100}))
    decision = play.decide([call(("get_market_context", {})), guess, submit(order(stock))])
    assert decision.status == "ok" and len(decision.orders) == 1 and not kinds(decision)
    last = play.asked[-1]
    assert last.purpose == "submit" and last.attempt == 1
    assert not any(one.name == "submit_action" for message in last.messages for one in message.calls)


def test_stocks_have_one_name(ashares: Snapshot) -> None:
    play = Game(ashares, config(mode="open-research"))
    stock = play.shown(play.symbols(1)[0])
    play.decide([call(("get_stock_snapshot", {"stock_id": stock, "lookback": 3})), DONE, submit()])
    schemas = " ".join(tool.schema for request in play.asked for tool in request.tools)
    assert "alias" not in schemas and "stock_ids" in schemas
    assert stock in next(m.text for m in play.asked[-1].messages if m.role == "tool")


def test_an_action_handed_in_during_the_research_counts(ashares: Snapshot) -> None:
    play = Game(ashares, config(mode="open-research"))
    decision = play.decide([submit(order(play.shown(play.symbols(1)[0])))])
    assert decision.status == "ok" and len(decision.orders) == 1 and len(play.asked) == 1


def test_a_target_that_is_met_is_no_mistake(ashares: Snapshot) -> None:
    play = Game(ashares, config())
    (symbol,) = play.buy(1, 0.08)
    weight = play.now.account.weight(symbol)
    for side, target in (("BUY", weight), ("SELL", weight), ("BUY", weight - 4e-4), ("SELL", weight + 4e-4)):
        decision = play.decide([submit(order(play.shown(symbol), side, target_weight=round(target, 4)))])
        assert decision.status == "ok" and decision.orders == () and not decision.failures, (side, target)


def test_a_sound_order_stands_beside_one_that_is_not(ashares: Snapshot) -> None:
    good, bad = Game(ashares, config()).symbols(2)
    for convention, stands in (("sound", True), ("paper", False)):
        play = Game(ashares, config(convention=convention))
        orders = order(play.shown(good)), order(play.shown(bad), target_weight=0.6), order("asset_none")
        replies = [submit(*orders)] if stands else [submit(*orders), submit(orders[0])]
        decision = play.decide(replies)
        assert decision.status == "ok" and [one.symbol for one in decision.orders] == [good]
        assert kinds(decision) == (["dropped", "dropped"] if stands else ["schema"])
        if stands:
            play.go(decision)
            play.asked.clear()
            play.decide([submit()])
            told = play.asked[0].messages[-1].text
            assert f"not sent: {play.shown(bad)}: its weight would be 0.6000" in told and bad not in told


def test_advice_can_be_followed(ashares: Snapshot) -> None:
    play = Game(ashares, config(), cash=60_000.0)
    desk = play.protocol.desk(play.now)
    tried = 0
    for symbol in play.symbols(12):
        replies = [submit(order(play.shown(symbol), target_weight=0.0001)), submit()]
        first = play.decide(replies).failures[0].detail
        price = desk.last_close[play.now.view.column(symbol)]
        if "the least is a target_weight of" in first:
            least = float(first.rsplit(" ", 1)[-1])
            assert least <= 0.1 and play.decide([submit(order(play.shown(symbol), target_weight=least))]).orders
            tried += 1
        else:
            assert "cannot be bought" in first and price * 100 / 60_000 > 0.1 - 1e-4
    assert tried


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{broken", "not one JSON object"),
        ({"orders": []}, "the field overall_reason is missing"),
        ({"orders": [], "overall_reason": REASON, "notes": 1}, "no field notes; the fields are orders"),
        ({"orders": [order("?", price=3)], "overall_reason": REASON}, "order 1: there is no field price"),
        ({"orders": [order("?", side="HOLD")], "overall_reason": REASON}, "order 1: side must be BUY or SELL"),
        ({"orders": [order("?", confidence=3)], "overall_reason": REASON}, "confidence must be a number from 0"),
        ({"orders": [order("?", shares=3, target_weight=0.1)], "overall_reason": REASON}, "both were given"),
        ({"orders": [{"side": "BUY"}], "overall_reason": REASON}, "order 1: the field stock_id is missing"),
    ],
)
def test_refusals_are_prose_that_names_the_field(ashares: Snapshot, arguments: Any, said: str) -> None:
    play = Game(ashares, config())
    if isinstance(arguments, dict):
        shown = play.shown(play.symbols(1)[0])
        arguments = json.loads(json.dumps(arguments).replace("?", shown))
    play.decide([call(("submit_action", arguments)), submit()])
    told = play.asked[-1].messages[-1].text
    assert said in told and "$" not in told and "`" not in told and '"failures"' not in told
    assert parse_object(told.rsplit("\n", 1)[-1]) is not None


def test_an_unknown_field_that_names_a_stock_or_a_date_is_not_repeated(ashares: Snapshot) -> None:
    play = Game(ashares, config())
    real = play.symbols(1)[0]
    for word in (real, f"sh{real}", "2022-03-01", "march", "moutai", "Kweichow Moutai", "x" * 80):
        play.asked.clear()
        play.decide([call(("submit_action", {"orders": [], "overall_reason": REASON, word: 1})), submit()])
        told = play.asked[-1].messages[-1].text
        assert word not in told and "asset_" not in told.split("\n")[1]


def test_the_same_wrong_answer_twice_ends_the_attempts(ashares: Snapshot) -> None:
    wrong = call(("submit_action", {"orders": []}))
    decision = Game(ashares, config()).decide([wrong, wrong])
    assert decision.status == "failed" and kinds(decision) == ["schema", "schema", "repeated", "give_up"]
    other = call(("submit_action", {"orders": {}}))
    decision = Game(ashares, config()).decide([wrong, other, wrong, other])
    assert kinds(decision) == ["schema"] * 4 + ["give_up"]


def test_the_conversation_does_not_grow_with_refusals(ashares: Snapshot) -> None:
    play = Game(ashares, config(retries=6))
    wrongs = [call(("submit_action", {"orders": [], "n": n}), text="x" * 20_000) for n in range(7)]
    play.decide(wrongs)
    lengths = [sum(len(message.text) for message in request.messages) for request in play.asked]
    assert max(lengths[1:]) - min(lengths[1:]) < 50 and max(lengths) - lengths[0] < 8_000


@pytest.mark.parametrize("kind", ["timeout", "refused", "unreadable"])
def test_an_error_of_the_provider_is_no_attempt(ashares: Snapshot, kind: str) -> None:
    silence = ModelReply(error="nothing came", error_kind=kind, stop="error")
    wrong = [call(("submit_action", {"orders": [], "n": n})) for n in range(3)]
    play = Game(ashares, config())
    decision = play.decide([silence, wrong[0], silence, wrong[1], wrong[2], submit()])
    assert decision.status == "ok" and [request.attempt for request in play.asked] == [1, 1, 2, 2, 3, 4]
    never = Game(ashares, config()).decide([silence] * 4)
    assert never.status == "failed" and kinds(never) == [kind] * 4


def test_an_answer_that_was_cut_off_is_no_attempt(ashares: Snapshot) -> None:
    cut = ModelReply(text='{"orders": [{"stock_id"', stop="length")
    play = Game(ashares, config())
    decision = play.decide([cut, submit()])
    assert decision.status == "ok" and kinds(decision) == ["cut_off"] and play.asked[1].attempt == 1
    assert "cut off" in play.asked[1].messages[-1].text
    assert kinds(Game(ashares, config()).decide([cut] * 4)) == ["cut_off"] * 4


def test_bad_tool_calls_are_told_in_plain_words(ashares: Snapshot) -> None:
    play = Game(ashares, config(mode="open-research"))
    answer = play.ask("get_stock_snapshot", {"alias": "asset_0001"})
    assert "there is no field alias" in answer["error"] or "the field stock_id is missing" in answer["error"]


@pytest.mark.parametrize("name", ["sensible", "overspender", "broken-json", "never-submits", "future-asker"])
def test_scripted_models_play_from_the_typed_request(ashares: Snapshot, name: str) -> None:
    model = scripted_models.get(name)()
    for mode in MODES:
        play = Game(ashares, config(mode=mode))
        ok = 0
        for _ in range(3):
            decision = play.decide(model.answer)
            ok += decision.status == "ok" and bool(decision.orders)
            play.go(decision)
        assert ok if name in ("sensible", "future-asker") else ok < 3


def test_masks_hold_in_the_new_texts(ashares: Snapshot) -> None:
    from tradeassay.masking import Truth, find_leaks

    play = Game(ashares, config(mode="fixed-candidate"))
    play.buy(3)
    play.decide(scripted_models.get("overspender")().answer)
    truth = Truth.of(play.now.view, play.config.mask_config)
    assert not [leak for text in game.texts(play.asked) for leak in find_leaks(text, truth)]


def captured(play: Game) -> list[str]:
    """Go through calls and submissions that go wrong in every way there is; return all that was said."""
    stocks = [play.shown(symbol) for symbol in play.symbols(3)]
    wrong = game.mischief(stocks)
    real = play.symbols(1)[0]
    bad = [
        submit(order("asset_9999")), submit(order(real)), submit(order(stocks[0], target_weight=0.9)),
        submit(order(stocks[0], "SELL")), call(("submit_action", {"orders": [], real: 1})), ModelReply(text="no"),
        submit(*[order(stock, target_weight=0.1) for stock in stocks] * 9), call(("submit_action", "{")),
        submit(order(stocks[0], **{real: 2, "since": "2022-03-03"})),
    ]  # fmt: skip
    for turn, refused in enumerate(bad):
        research = [call(*group) for group in game.batches(wrong, 11)]
        start = [research[turn % len(research)], DONE] if play.config.mode == "open-research" else []
        play.decide([*start, refused, submit()])
    play.buy(2, 0.05)
    play.decide([DONE, submit()] if play.config.mode == "open-research" else [submit()])
    return game.texts(play.asked)


@pytest.mark.slow
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mask", ["stock-blind", "date-blind", "blinded"])
def test_every_byte_that_is_said_under_a_mask(
    ashares: Snapshot, us: Snapshot, mask: Any, mode: Any, hard: bool
) -> None:
    from tradeassay.masking import Truth, find_leaks

    for world, news in ((ashares, False), (us, True)):
        hardening = {"rebase_prices": True, "scale_volumes": True, "scrub_news": True} if hard else {}
        play = Game(world, config(mask=mask, mode=mode, news=news, news_days=30, **hardening))
        truth = Truth.of(play.now.view, play.config.mask_config, history=280, ahead=60)
        said = captured(play)
        assert len(said) > 10
        for text in said:
            if text.startswith("{"):
                assert find_leaks(json.loads(text), truth) == []
            else:
                # A volume may look like a code: numbers of tables are judged as data, above.
                assert find_leaks(re.sub(r"(?<=\| )[\d.-]+(?= \||$)", "", text, flags=re.MULTILINE), truth) == []
        for request in play.asked:
            assert find_leaks(json.loads(request.given.observation), truth) == []  # type: ignore[union-attr]
