"""From a name to a model, and what is said when that cannot be."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from llm_asking import PLAIN, SUBMIT, place
from llm_servers import StandIn, chat

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, ModelReply, ToolSpec
from tradeassay_bench.llm import (
    Access,
    Budget,
    ModelParams,
    RecordingStore,
    check_model,
    open_model,
    parse_name,
)
from tradeassay_bench.llm.budget import most_request
from tradeassay_bench.llm.model import RetryPolicy
from tradeassay_bench.llm.tables import load_prices


async def open_and_ask(name: str, **named: Any) -> ModelReply:
    async with open_model(name, **named) as model:
        assert model.name == name
        return await model.ask(PLAIN, place())


@pytest.mark.parametrize("name", ["", "gpt-5", "openai/", "/x", " openai/gpt-5"])
def test_names_need_two_parts(name):
    with pytest.raises(UserError, match="is not a model name"):
        parse_name(name)


def test_names_taken_apart():
    assert parse_name("openai-api/host/org/model").rest == "host/org/model"
    assert (
        parse_name("scripted/slow").route == "scripted" and parse_name("local/smollm2").gguf is None
    )
    assert parse_name("local//data/model.gguf").gguf == Path("/data/model.gguf")


@pytest.mark.parametrize(
    ("name", "how", "said"),
    [
        ("scripted/sensibel", {}, "did you mean sensible"),
        ("nosuch/model", {}, "nosuch/model"),
        ("openai/gpt-5", {"replay": True}, "without recorded answers"),
        ("local/smollm3", {}, "no local model 'smollm3'"),
        ("openai/gpt-99", {"budget": Budget(1.0)}, "price of openai/gpt-99 is unknown"),
    ],
)
async def test_unknown_things_are_named(name, how, said):
    with pytest.raises(UserError, match=said):
        await open_and_ask(name, **how)


async def test_a_missing_key_fails_every_answer_and_the_check(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    reply = await open_and_ask("anthropic/claude-sonnet-4-5")
    assert reply.error_kind == "rejected" and "ANTHROPIC_API_KEY" in (reply.error or "")
    assert "[" not in (reply.error or "")
    with pytest.raises(UserError, match="ANTHROPIC_API_KEY"):
        check_model("anthropic/claude-sonnet-4-5")
    check_model("scripted/sensible")
    check_model("openai/gpt-4o")


async def test_recorded_through_the_wire_then_replayed_without_it(tmp_path):
    async with StandIn(chat("one"), chat(None, [("c1", "submit_action", "{broken")])) as server:
        access = Access(base_url=f"{server.url}/v1")
        async with open_model(
            "openai-api/standin/m", recording=RecordingStore(tmp_path), access=access
        ) as model:
            recorded = [await model.ask(PLAIN, place(0)), await model.ask(SUBMIT, place(1))]
    code = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from llm_asking import PLAIN, SUBMIT, place
import msgspec, socket
socket.socket.connect = None
from tradeassay_bench.llm import RecordingStore, open_model
async def main():
    store = RecordingStore(Path({str(tmp_path)!r}))
    async with open_model("openai-api/standin/m", recording=store, replay=True) as model:
        replies = [await model.ask(PLAIN, place(0)), await model.ask(SUBMIT, place(1))]
    print(msgspec.json.encode(replies).decode())
    print(*[name for name in ("inspect_ai", "openai", "httpx") if name in sys.modules])
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == msgspec.json.encode(recorded).decode()
    assert lines[1:] in ([], [""])


async def test_a_lost_call_is_spent_after_a_resume_too(tmp_path):
    """Both attempts may have been billed, and no bill came: the next part of the run has that
    much less.
    """
    name = "openai/gpt-4o"

    async def live(cap: float) -> tuple[ModelReply, float]:
        broken = chat("one")
        broken.cut = True
        store = RecordingStore(tmp_path)
        budget = Budget(cap, spent_usd=store.spent_usd())
        async with StandIn(broken) as server:
            access = Access(base_url=f"{server.url}/v1", retry=RetryPolicy(attempts=2, first_s=0.0))
            async with open_model(name, recording=store, budget=budget, access=access) as model:
                return await model.ask(PLAIN, place(0)), budget.spent_usd

    first, spent = await live(1.0)
    worst = load_prices().of(name).worst_usd(most_request(PLAIN), ModelParams().max_tokens)
    assert first.error_kind == "unreachable" and spent == pytest.approx(2 * worst)
    assert RecordingStore(tmp_path).spent_usd() == pytest.approx(spent)
    assert (await live(2.5 * worst))[0].error_kind == "over_budget"


async def test_a_bug_or_a_bad_schema_of_ours_still_raises(monkeypatch):
    from tradeassay_bench.llm.via_inspect import provider

    def wrong(*args: object, **named: object) -> None:
        raise KeyError("a bug")

    tool = ToolSpec(name="t", description="", schema="{not json")
    async with StandIn(chat("ok")) as server:
        async with open_model(
            "openai-api/standin/m", access=Access(base_url=f"{server.url}/v1")
        ) as model:
            with pytest.raises(Exception, match="malformed"):
                await model.ask(
                    AskModel(purpose="p", messages=PLAIN.messages, tools=(tool,)), place()
                )
            monkeypatch.setattr(provider, "to_reply", wrong)
            with pytest.raises(KeyError, match="a bug"):
                await model.ask(PLAIN, place())


def test_params_are_checked():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"temperature": 3.0}, ModelParams)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"max_tokens": 0}, ModelParams)
