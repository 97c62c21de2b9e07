"""OpenAI responses, which Inspect speaks with the newer OpenAI models."""

import pytest
from llm_asking import BROKEN, GOOD, PLAIN, SUBMIT, TOOLS, ask_provider, place, replies
from llm_servers import StandIn, openai_error, responses, responses_stream

from tradeassay_bench.core.dialogue import AskModel, Message, ToolCall
from tradeassay_bench.llm import ModelParams

NAME = "openai/gpt-5"


def test_arguments_as_text_and_malformed():
    says = [
        responses("thinking", [("c1", "submit_action", GOOD)]),
        responses(None, [("c1", "submit_action", BROKEN)]),
        responses(None, [("c1", "submit_action", "sell")]),
        responses(f"```json\n{GOOD}\n```"),
    ]
    attempts, heard = ask_provider(NAME, says)
    assert [reply.calls[0].arguments for reply in replies(attempts)] == [GOOD, BROKEN, "sell", GOOD]
    assert [reply.calls[0].found_in for reply in replies(attempts)] == [
        "call",
        "call",
        "call",
        "fenced",
    ]
    assert replies(attempts)[0].text == "thinking"
    assert heard[0].path == "/v1/responses"
    assert heard[0].body["tool_choice"] == {"type": "function", "name": "submit_action"}
    assert heard[0].body["max_output_tokens"] == 4096
    # Only what the protocol asked for is asked: no question of Inspect's own to find out about summaries.
    assert len(heard) == len(says)


def test_arguments_in_pieces():
    says = [responses_stream("submit_action", list(text)) for text in (GOOD, BROKEN)]
    attempts, heard = ask_provider(NAME, says, streaming=True)
    assert [reply.calls[0].arguments for reply in replies(attempts)] == [GOOD, BROKEN]
    assert heard[0].body["stream"] is True


def test_usage_with_cached_input_and_reasoning():
    attempts, _ = ask_provider(NAME, [responses("done")], PLAIN)
    usage = replies(attempts)[0].usage
    assert (usage.input_tokens, usage.cached_tokens) == (100, 40)
    assert (usage.output_tokens, usage.reasoning_tokens) == (20, 5)
    # 60 x 1.25 + 40 x 0.125 + 20 x 10 dollars per million
    assert usage.usd == pytest.approx(0.00028)


def test_refusal_length_and_errors():
    refusal = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    refusal["content"] = [{"type": "refusal", "refusal": "No."}]
    says = [
        responses("cut", status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        responses(None, output=[refusal]),
        responses(
            None,
            status="failed",
            output=[],
            error={"code": "rate_limit_exceeded", "message": "slow down"},
        ),
        responses(
            None, status="failed", output=[], error={"code": "server_error", "message": "oops"}
        ),
        openai_error(429, "slow down", headers={"retry-after": "2"}),
        openai_error(500, "oops"),
    ]
    attempts, _ = ask_provider(NAME, says, PLAIN)
    cut, refused, *failed = replies(attempts)
    assert (cut.text, cut.stop) == ("cut", "length")
    assert (refused.error_kind, refused.error) == ("refused", "No.")
    assert [reply.error_kind for reply in failed] == [
        "rate_limited",
        "unreachable",
        "rate_limited",
        "unreachable",
    ]
    assert [attempt.again for attempt in attempts[2:]] == [True] * 4
    assert attempts[4].wait_s == 2.0


async def test_a_conversation_with_a_tool_result_and_reasoning():
    """What came with an answer and is no part of the record goes back: reasoning that only
    OpenAI can read.
    """
    from tradeassay_bench.llm.via_inspect.provider import open_provider

    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"}
    made = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "portfolio_state",
        "arguments": "{}",
    }
    output = [{**one, "status": "completed"} for one in (thought, made)]
    call = ToolCall(id="c1", name="portfolio_state", arguments="{}")
    said = Message(role="assistant", text="", calls=(call,))
    follow = (*SUBMIT.messages, said, Message(role="tool", text='{"cash": 1}', call_id="c1"))
    async with StandIn(responses(None, output=output), responses("done")) as server:
        provider = open_provider(NAME, ModelParams(), None, base_url=f"{server.url}/v1")
        asked = AskModel(purpose="research", messages=SUBMIT.messages, tools=TOOLS)
        first = await provider.attempt(asked, place())
        assert first.reply.calls == (call,)
        await provider.attempt(AskModel(purpose="research", messages=follow, tools=TOOLS), place(1))
        await provider.aclose()
    sent = server.heard[1].body["input"]
    assert "opaque" in str(sent)
    kinds = [item.get("type") for item in sent]
    assert (
        kinds.index("reasoning")
        < kinds.index("function_call")
        < kinds.index("function_call_output")
    )
