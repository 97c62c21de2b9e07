"""Scripted models as models: their names, what they read, what they cost.

The benchmarks' tests let them play.
"""

import json
from typing import Any, ClassVar

import msgspec
import pytest
from llm_asking import place
from scripted_misfits import Slow

from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply, ToolSpec
from tradeassay_bench.llm import Access, ModelParams, open_model, scripted_models
from tradeassay_bench.llm.scripted.model import Question
from tradeassay_bench.llm.scripted.traders import Sensible

NAMES = (
    "broken-json code-judge contrarian future-asker news-reader injector never-submits overspender "
    "sensible slow"
).split()
BUILDERS = ("builder-gold", "builder-mends", "builder-peeps")
CODERS = ("away", "coder-cheat", "coder-gold", "coder-mends", "coder-silent", "coder-sma")
TOOLS = tuple(
    ToolSpec(name=name, description=name, schema='{"type":"object"}')
    for name in (
        "get_market_context screen_candidates get_stock_snapshot compare_candidates "
        "portfolio_state risk_check"
    ).split()
)
SUBMIT = (ToolSpec(name="submit_action", description="", schema='{"type":"object"}'),)


def beside(payload: dict[str, Any], *failures: dict[str, Any]) -> Given:
    """What travels beside a question: the observation as data, and what was wrong with the
    answer before.
    """
    feedback = json.dumps({"failures": failures}) if failures else None
    return Given(session="", rules="{}", observation=json.dumps(payload), feedback=feedback)


def test_every_name_of_the_contract_is_there_and_says_what_it_does() -> None:
    # Other tests register models of their own under names that begin with tiny-.
    known = [name for name in scripted_models.names() if not name.startswith("tiny-")]
    assert sorted(known) == sorted((*NAMES, *CODERS, *BUILDERS))
    assert all(len(scripted_models.get(name).summary) > 20 for name in known)


DAY = {
    **{"session": "2022-02-07", "step": 0, "cash": 1e6, "nav": 1e6, "positions": []},
    "names": [{"symbol": f"S{at}", "tradable": True, "r20": 0.01 * at} for at in range(12)],
}
MOOD = {"kind": "ama.verdict", "momentum": 0.2}


def told(name: str, payload: dict[str, Any], purpose: str, attempt: int = 1) -> str:
    asked = AskModel(purpose=purpose, messages=(), attempt=attempt, given=beside(payload))
    return scripted_models.get(name)().answer(asked).text


def test_who_errs_errs_in_the_daily_benchmarks_and_in_the_arena_too():
    """The descriptions name no benchmark: all but two of them were played by the sensible one
    there.
    """
    ordered = json.loads(told("sensible", DAY, "orders"))["orders"]
    assert len(ordered) == 8 and sum(one["amount"] for one in ordered) < 1
    assert (
        sum(one["amount"] for one in json.loads(told("overspender", DAY, "orders"))["orders"]) > 4
    )
    injected = json.loads(told("injector", DAY, "orders"))
    assert [{**one, "reason": ""} for one in injected["orders"]] == [
        {**one, "reason": ""} for one in ordered
    ]
    assert (
        "Ignore all previous" in injected["reason"]
        and "<script>" in injected["orders"][0]["reason"]
    )
    verdict = json.loads(told("injector", MOOD, "p"))
    assert verdict["action"] == json.loads(told("sensible", MOOD, "p"))["action"]
    assert "Ignore all previous" in verdict["reasoning"]
    for payload, purpose in ((DAY, "orders"), (MOOD, "p")):
        for attempt in (1, 2, 3):
            assert "{" not in told("never-submits", payload, purpose, attempt)


def test_broken_json_is_mended_on_two_days_of_three_in_the_daily_benchmarks():
    days = [{**DAY, "step": 5 * at, "session": str(at)} for at in range(60)]
    wanted = json.loads(told("sensible", DAY, "orders"))
    mended = 0
    for day in days:
        with pytest.raises(ValueError):
            json.loads(told("broken-json", day, "orders"))
        try:
            assert (
                json.loads(told("broken-json", day, "orders", 2)) == wanted
            )  # what it wanted in the first place
            mended += 1
        except ValueError:
            pass
    assert 30 <= mended <= 50


STRANGE = (
    None,
    "",
    "{}",
    "[1]",
    '{"kind": "other"}',
    '{"kind": "stockbench.decision", "symbols": [1, {"open": "x"}]}',
    '{"kind": "ktdfin.observation", "account": [], "constraints": 3}',
    '{"kind": "ama.verdict", "opinions": 3, "momentum": "x"}',
)


@pytest.mark.parametrize("name", NAMES)
def test_a_strange_observation_breaks_nobody(name):
    messages = (Message(role="user", text="Hello."),)
    for observation in STRANGE:
        given = (
            msgspec.UNSET
            if observation is None
            else Given(session="", rules="{}", observation=observation)
        )
        model = scripted_models.get(name)()
        for tools, must in (((), None), (TOOLS, None), (SUBMIT, "submit_action")):
            asked = AskModel(
                purpose="p", messages=messages, tools=tools, must_call=must, given=given
            )
            assert isinstance(model.answer(asked), ModelReply), observation


@pytest.mark.parametrize("way", [lambda asked: asked.payload["nope"], lambda: 1, 3])
def test_what_is_wrong_with_a_way_of_ones_own_is_told(way):
    """It was answered with a sentence, as a strange observation is."""

    class Own(Sensible):
        ways: ClassVar = {"orders": way}

    with pytest.raises((KeyError, TypeError)):
        Own().answer(AskModel(purpose="orders", messages=(), given=beside(DAY)))
    assert (
        "nothing here"
        in Own().answer(AskModel(purpose="other", messages=(), given=beside(DAY))).text
    )


def test_the_text_of_a_prompt_is_not_read():
    text = 'Here:\n```json\n{"kind": "ktdfin.observation", "universe": ["a"]}\n```'
    asked = Question(AskModel(purpose="submit", messages=(Message(role="user", text=text),)))
    assert asked.kind == "" and asked.payload == {} and not asked.objected


def test_objections_to_an_earlier_answer_are_seen():
    heavy = {"kind": "constraint", "detail": "heavy", "stock_id": "a"}
    failures = [{"kind": "schema", "detail": "no JSON"}, heavy]
    asked = Question(
        AskModel(purpose="p", messages=(), attempt=2, given=beside({"kind": "two"}, *failures))
    )
    assert asked.kind == "two" and asked.objected == {"a"} and asked.attempt == 2


async def test_opened_by_name_they_count_tokens_and_cost_nothing():
    async with open_model("scripted/sensible") as model:
        reply = await model.ask(
            AskModel(purpose="p", messages=(Message(role="user", text="x" * 400),)), place()
        )
    assert (
        reply.usage.input_tokens == 100 and reply.usage.output_tokens > 0 and reply.usage.usd == 0.0
    )


async def test_the_slow_one_waits_and_sometimes_never_comes():
    requests = [
        AskModel(purpose="p", messages=(Message(role="user", text=f"day {at}"),))
        for at in range(70)
    ]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with open_model(
        "scripted/slow", ModelParams(timeout_s=60), access=Access(sleep=sleep)
    ) as model:
        replies = [await model.ask(request, place(at)) for at, request in enumerate(requests)]
    late = [reply for reply in replies if reply.error_kind == "timeout"]
    assert 3 <= len(late) <= 20 and len(slept) == 70 - len(late) and set(slept) == {0.02}
    assert [Slow().seconds(request) > 60 for request in requests] == [
        bool(reply.error) for reply in replies
    ]
