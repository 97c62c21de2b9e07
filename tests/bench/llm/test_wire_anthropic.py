"""Anthropic messages, in one piece and streamed."""

import asyncio

import pytest
from llm_asking import BROKEN, GOOD, PLAIN, TOOLS, ask_provider, replies
from llm_servers import CLAUDE, anthropic_error, as_events, messages, messages_stream

from tradeassay_bench.core.dialogue import AskModel, Message, ToolCall
from tradeassay_bench.llm import ModelParams
from tradeassay_bench.llm.via_inspect.wire import UNPARSED, mend_events

NAME = "anthropic/claude-sonnet-4-5"
STREAMING = ModelParams(max_tokens=8192)


def test_input_as_object():
    says = [
        messages("hm", [("t1", "submit_action", {"orders": [], "overall_reason": "x"})]),
        messages(None, [("t1", "submit_action", {}), ("t2", "portfolio_state", {})]),
        messages(f"```json\n{GOOD}\n```"),
    ]
    attempts, heard = ask_provider(NAME, says)
    first, second, third = replies(attempts)
    assert first.text == "hm" and first.stop == "tool_calls"
    made = ToolCall(id="t1", name="submit_action", arguments='{"orders":[],"overall_reason":"x"}')
    assert first.calls == (made,)
    assert [call.arguments for call in second.calls] == ["{}", "{}"]
    assert third.calls[0].found_in == "fenced"
    assert heard[0].body["tool_choice"] == {"type": "tool", "name": "submit_action"}
    assert [tool["name"] for tool in heard[0].body["tools"]] == ["submit_action"]
    assert not heard[0].body.get("stream")


def test_input_in_pieces_whole_malformed_and_cut_off():
    says = [
        messages_stream("hm", [("t1", "submit_action", list(GOOD))]),
        messages_stream(
            None, [("t1", "submit_action", list(BROKEN)), ("t2", "portfolio_state", [])]
        ),
        messages_stream(None, [("t1", "submit_action", [GOOD[:20]])], stop="max_tokens"),
    ]
    attempts, heard = ask_provider(NAME, says, params=STREAMING)
    whole, broken, cut = replies(attempts)
    assert heard[0].body["stream"] is True
    assert (
        whole.text == "hm"
        and whole.calls[0].arguments == '{"orders":[],"overall_reason":"nothing today"}'
    )
    assert [call.arguments for call in broken.calls] == [BROKEN, "{}"]
    assert (cut.calls[0].arguments, cut.stop) == (GOOD[:20], "length")
    assert whole.usage.output_tokens == 20


@pytest.mark.parametrize("streamed", [False, True])
def test_a_paused_turn_is_one_call_and_an_answer(streamed):
    """Inspect would ask on and on, in requests that no cap sees."""
    paused = (messages_stream if streamed else messages)("thinking on", stop="pause_turn")
    params = STREAMING if streamed else ModelParams()
    attempts, heard = ask_provider(
        NAME, [paused, messages("done")][: 1 if streamed else 2], PLAIN, params=params
    )
    first = replies(attempts)[0]
    assert (first.text, first.stop, first.error) == ("thinking on", "stop", None)
    assert len(heard) == len(attempts)


def test_usage_counts_cache_reads_and_writes_at_their_own_price():
    attempts, _ = ask_provider(NAME, [messages("done")], PLAIN)
    usage = replies(attempts)[0].usage
    assert (usage.input_tokens, usage.cached_tokens) == (140, 30)
    # 100 x 3 + 30 x 0.30 + 10 x 3.75 + 20 x 15 dollars per million
    assert usage.usd == pytest.approx(0.0006465)


def test_refusal_and_errors():
    begun = {
        **CLAUDE,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    start = ("message_start", {"type": "message_start", "message": begun})
    broken_stream = as_events([start, ("error", error)])
    says = [
        messages_stream("I will not.", stop="refusal"),
        anthropic_error(429, "rate_limit_error", "slow down", headers={"retry-after": "11"}),
        anthropic_error(529, "overloaded_error", "Overloaded"),
        anthropic_error(
            400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"
        ),
        anthropic_error(401, "authentication_error", "invalid x-api-key"),
        broken_stream,
    ]
    attempts, _ = ask_provider(NAME, says, PLAIN, STREAMING)
    kinds = [(attempt.reply.error_kind, attempt.again, attempt.wait_s) for attempt in attempts]
    assert kinds == [
        ("refused", False, None),
        ("rate_limited", True, 11.0),
        ("unreachable", True, None),
        ("context", False, None),
        ("rejected", False, None),
        ("unreachable", True, None),
    ]
    assert replies(attempts)[0].error == "I will not."


def test_a_conversation_with_a_tool_result():
    call = ToolCall(id="t1", name="portfolio_state", arguments="{}")
    follow = (
        *PLAIN.messages,
        Message(role="assistant", text="looking", calls=(call,)),
        Message(role="tool", text='{"cash": 1}', call_id="t1"),
        Message(role="user", text="Go on."),
    )
    _, heard = ask_provider(
        NAME, [messages("done")], AskModel(purpose="research", messages=follow, tools=TOOLS)
    )
    body = heard[0].body
    assert body["system"][0]["text"] == "You trade."
    sent = str(body["messages"])
    assert "tool_use" in sent and "tool_result" in sent and '{"cash": 1}' in sent
    assert [tool["name"] for tool in body["tools"]] == [
        "portfolio_state",
        "screen_candidates",
        "submit_action",
    ]


def test_events_split_anywhere_are_mended_alike():
    calls = [("t1", "submit_action", list(BROKEN)), ("t2", "portfolio_state", ["{", "}"])]
    stream = messages_stream("hm", calls).body
    crlf = stream.replace(b"\n", b"\r\n")

    async def mended(raw: bytes, step: int) -> bytes:
        async def chunks():  # type: ignore[no-untyped-def]
            for at in range(0, len(raw), step):
                yield raw[at : at + step]

        return b"".join([block async for block in mend_events(chunks())])

    whole = asyncio.run(mended(stream, len(stream)))
    assert UNPARSED.encode() in whole and whole.count(b"input_json_delta") == 2
    for step in (1, 2, 3, 7, 100):
        assert asyncio.run(mended(stream, step)) == whole
        assert asyncio.run(mended(crlf, step)) == whole
