"""A day: prompts for language models, and rules that they can satisfy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from stockbench_game import answer, day_of, decide, do, item, pick, play, protocol, small_market, small_panel

from tradeassay.benchmarks import benchmarks
from tradeassay.core.dialogue import ModelReply
from tradeassay.data import Snapshot, open_snapshot, write_snapshot
from tradeassay.llm.json_text import fenced_blocks, parse_object
from tradeassay.llm.scripted import scripted_models

NONE = pick()


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    folder = tmp_path_factory.mktemp("three") / "world"
    write_snapshot(small_panel(news=(item(1, 9, 10, "A", body="a body"),)), folder)
    yield open_snapshot(folder)


def day(snapshot: Snapshot, *answers: Any, convention: str = "sound", **changes: Any) -> Any:
    market = small_market(snapshot, convention=convention)
    made = protocol(market, convention=convention, **changes)
    return answer(made.dialogue(market.reset()), answers)


def kinds(decision: Any) -> list[str]:
    return [failure.kind for failure in decision.failures if failure.kind != "no_target_shares"]


def test_prompts_are_words_and_end_with_an_example(snapshot: Snapshot) -> None:
    _, asked = day(snapshot, pick("A"), {"notes": {}}, decide(A=do("increase", 100)))
    assert [request.purpose for request in asked] == ["overview", "analysis", "decision"]
    for request, key in zip(asked, ("analyse", "notes", "decisions"), strict=True):
        text = request.messages[-1].text
        example = parse_object(text.rsplit("\n", 1)[-1])
        assert example is not None and key in example
        assert not fenced_blocks(text) and "stockbench." not in text and '"kind"' not in text
    assert "title 1" in asked[0].messages[-1].text and "a body" in asked[1].messages[-1].text
    assert "You hold nothing" in asked[2].messages[-1].text


def test_a_sound_decision_stands_beside_one_that_is_not(snapshot: Snapshot) -> None:
    mixed = decide(A=do("increase", 100), B=do("decrease", 50), Z=do("hold"), C=do("buy", 3))
    decision, _ = day(snapshot, NONE, mixed)
    assert decision.status == "ok" and [one.symbol for one in decision.orders] == ["A"]
    assert sorted(kinds(decision)) == ["arithmetic", "schema", "schema"]
    decision, asked = day(snapshot, NONE, mixed, decide(A=do("increase", 100)), convention="paper")
    assert decision.status == "ok" and kinds(decision) == ["schema"] and len(asked) == 3


def test_purchases_are_kept_as_far_as_the_money_goes(snapshot: Snapshot) -> None:
    greedy = decide(A=do("increase", 600), B=do("increase", 600), C=do("increase", 300))
    decision, _ = day(snapshot, NONE, greedy)
    assert [one.symbol for one in decision.orders] == ["A", "C"] and kinds(decision) == ["liquidity"]


def test_the_reference_pays_with_the_cash_that_is_there(snapshot: Snapshot) -> None:
    greedy = decide(A=do("increase", 600), B=do("increase", 600))
    decision, asked = day(snapshot, NONE, greedy, convention="paper")
    assert kinds(decision) == [] and len(decision.orders) == 2, "each fits alone; the venue leaves the second out"
    assert "what sales of the same day bring does not count" in asked[1].messages[-1].text
    too_much = decide(A=do("increase", 1200))
    decision, _ = day(snapshot, NONE, too_much, decide(A=do("increase", 700)), convention="paper")
    assert kinds(decision) == ["liquidity"] and len(decision.orders) == 1


def test_met_targets_and_harmless_forms_are_no_mistakes(snapshot: Snapshot) -> None:
    market = small_market(snapshot)
    made = protocol(market)
    seen = market.reset()
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
        assert decision.status == "ok" and kinds(decision) == [] and len(decision.orders) == orders, wanted


def test_refusals_are_prose_with_the_smallest_complete_example(snapshot: Snapshot) -> None:
    wrong = {"decisions": {"A": {"Action": "increase", "target_cash_amount": 10}}}
    _, asked = day(snapshot, NONE, wrong, decide())
    told = asked[-1].messages[-1].text
    assert "A: the field action is missing; unknown: Action; the fields are action" in told
    assert "`" not in told and "failures" not in told and parse_object(told.rsplit("\n", 1)[-1]) is not None


def test_repeats_end_the_attempts_and_context_stays_bounded(snapshot: Snapshot) -> None:
    decision, asked = day(snapshot, NONE, "no json", "no json")
    assert decision.status == "failed" and kinds(decision) == ["schema", "schema", "repeated", "give_up"]
    _, asked = day(snapshot, NONE, *(f"{n} " + "x" * 20_000 for n in range(5)), attempts=5)
    sizes = [sum(len(message.text) for message in request.messages) for request in asked[2:]]
    assert max(sizes) - min(sizes) < 50


def test_silence_and_cut_offs_are_no_attempts(snapshot: Snapshot) -> None:
    silence = ModelReply(error="late", error_kind="timeout", stop="error")
    cut = ModelReply(text='{"decisions": {"A"', stop="length")
    decision, asked = day(snapshot, NONE, silence, cut, decide(A=do("increase", 10)))
    assert decision.status == "ok" and kinds(decision) == ["timeout", "cut_off"]
    assert [request.attempt for request in asked] == [1, 1, 1, 1]
    assert day(snapshot, NONE, cut, cut, cut)[0].status == "failed"


def test_changes_without_a_number_of_shares_are_noted(snapshot: Snapshot) -> None:
    decision, _ = day(snapshot, NONE, decide(A=do("increase", 100), B=do("increase", 100, target_shares=5)))
    assert [f.detail for f in decision.failures] == ["1 of 2 changes come without target_shares"]


@pytest.mark.parametrize("name", ["sensible", "overspender", "broken-json", "never-submits"])
def test_scripted_models_play_from_the_typed_request(snapshot: Snapshot, name: str) -> None:
    market = small_market(snapshot, cash=10_000.0)
    records, _ = play(market, protocol(market), scripted_models.get(name)().answer, days=4)
    done = sum(bool(record.decision.orders) for record in records)
    assert done if name == "sensible" else True
    assert {record.decision.status for record in records} <= {"ok", "failed"}


def test_the_paper_charges_what_the_reference_does() -> None:
    paper = benchmarks.get("stockbench-paper-v1")
    assert paper.protocol == "stockbench" and paper.protocol_params["temperature"] == 0.7
    assert paper.market.venue == "us-stockbench-v1"
    from tradeassay.account import venues

    venue = venues.get(paper.market.venue)
    assert (venue.fees.buy_bps, venue.slippage.bps, venue.priority) == (1.0, 0.0, "as_given")
    assert day_of(0)


def test_the_daily_protocol_keeps_what_can_stand(snapshot: Snapshot) -> None:
    from tradeassay.benchmarks import Daily

    market = small_market(snapshot)
    made = Daily()
    good = {"symbol": "A", "unit": "target_weight", "amount": 0.1, "reason": "x"}
    reply = {"orders": [good, {"symbol": "NOPE", "unit": "target_weight", "amount": 1}, {"symbol": "B"}]}
    decision, asked = answer(made.dialogue(market.reset()), [reply])
    assert [one.symbol for one in decision.orders] == ["A"] and kinds(decision) == ["dropped", "dropped"]
    assert not fenced_blocks(asked[0].messages[-1].text)
    decision, asked = answer(made.dialogue(market.reset()), ["?", {"orders": 1}, {"orders": []}])
    assert decision.status == "ok" and kinds(decision) == ["schema", "schema"]
    assert "orders must be a list" in asked[-1].messages[-1].text
    decision, _ = answer(made.dialogue(market.reset()), ["?", "?"])
    assert decision.status == "failed" and kinds(decision)[-2:] == ["repeated", "give_up"]
