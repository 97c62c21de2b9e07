"""OpenAI chat completions, as OpenAI and everybody who copied them speak it."""

import asyncio
import json

import pytest
from llm_asking import BROKEN, GOOD, PLAIN, RESEARCH, SUBMIT, TOOLS, ask_provider, place, replies
from llm_servers import Said, as_json, chat, chat_stream, openai_error

from tradeassay_bench.core.dialogue import AskModel, Message, ToolCall
from tradeassay_bench.llm import ModelParams

NAME = "openai-api/standin/some-model"


def test_arguments_as_text_as_object_malformed_and_absent():
    says = [
        chat(None, [("c1", "submit_action", GOOD)]),
        chat(None, [("c1", "submit_action", {"orders": [], "overall_reason": "é"})]),
        chat(None, [("c1", "submit_action", BROKEN)]),
        chat(None, [("c1", "submit_action", "sell everything")]),
        chat(None, [("c1", "submit_action", f'{GOOD}""')]),
        chat(None, [("c1", "submit_action", None)]),
        chat("thinking aloud", [("a", "portfolio_state", "{}"), ("b", "no_such_tool", "[1]")]),
    ]
    attempts, heard = ask_provider(NAME, says)
    arguments = [[call.arguments for call in reply.calls] for reply in replies(attempts)]
    single = (
        GOOD,
        '{"orders":[],"overall_reason":"é"}',
        BROKEN,
        "sell everything",
        f'{GOOD}""',
        "",
    )
    assert arguments == [*([one] for one in single), ["{}", "[1]"]]
    assert all(call.found_in == "call" for reply in replies(attempts) for call in reply.calls)
    assert {reply.stop for reply in replies(attempts)} == {"tool_calls"}
    assert replies(attempts)[-1].text == "thinking aloud"
    assert not any(attempt.again for attempt in attempts)
    sent = heard[0].body
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["submit_action"]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "submit_action"}}
    assert sent["max_tokens"] == 4096 and sent["temperature"] == 0.0
    assert not sent["tools"][0]["function"].get("strict")


def test_arguments_in_pieces():
    def pieces(text: str) -> list[dict[str, object]]:
        made = {"name": "submit_action", "arguments": ""}
        first = {"index": 0, "id": "c1", "type": "function", "function": made}
        rest = [{"tool_calls": [{"index": 0, "function": {"arguments": char}}]} for char in text]
        return [{"role": "assistant", "tool_calls": [first]}, *rest]

    attempts, heard = ask_provider(
        NAME, [chat_stream(pieces(GOOD)), chat_stream(pieces(BROKEN))], stream=True
    )
    assert [reply.calls[0].arguments for reply in replies(attempts)] == [GOOD, BROKEN]
    assert heard[0].body["stream"] is True


def test_a_native_openai_model_reads_objects_too():
    attempts, _ = ask_provider(
        "openai/gpt-4o", [chat(None, [("c1", "submit_action", {"orders": []})])]
    )
    assert replies(attempts)[0].calls[0].arguments == '{"orders":[]}'


def test_calls_written_into_the_text():
    says = [
        chat(f"Here it is.\n```json\n{GOOD}\n```"),
        chat(GOOD),
        chat(f'{{"name": "submit_action", "arguments": {GOOD}}}'),
        chat("I would rather not say."),
        chat(f"```json\n{BROKEN}\n```"),
    ]
    attempts, _ = ask_provider(NAME, says)
    found = [
        [(call.name, call.arguments, call.found_in) for call in reply.calls]
        for reply in replies(attempts)
    ]
    assert found == [
        [("submit_action", GOOD, "fenced")],
        [("submit_action", GOOD, "json")],
        [("submit_action", '{"orders":[],"overall_reason":"nothing today"}', "json")],
        [],
        [("submit_action", BROKEN, "fenced")],
    ]


def test_missing_and_repeated_ids_are_made_unique():
    call = ToolCall(id="0", name="portfolio_state", arguments="{}")
    messages = (
        *RESEARCH.messages,
        Message(role="assistant", text="", calls=(call,)),
        Message(role="tool", text='{"cash": 1}', call_id="0"),
    )
    request = AskModel(purpose="research", messages=messages, tools=TOOLS)
    says = [chat(None, [("0", "portfolio_state", "{}"), ("", "screen_candidates", "{}")])]
    attempts, heard = ask_provider(NAME, says, request)
    assert [made.id for made in replies(attempts)[0].calls] == ["call-4-0", "call-4-1"]
    sent = heard[0].body["messages"]
    assert sent[2]["tool_calls"][0]["function"] == {"name": "portfolio_state", "arguments": "{}"}
    assert (
        sent[3]["role"] == "tool"
        and sent[3]["tool_call_id"] == "0"
        and sent[3]["content"] == '{"cash": 1}'
    )
    assert heard[0].body["tool_choice"] == "auto" and len(heard[0].body["tools"]) == len(TOOLS)


def test_a_call_found_in_text_goes_back_as_the_text_it_was():
    call = ToolCall(id="text-2-0", name="portfolio_state", arguments="{}", found_in="fenced")
    said = '```json\n{"name": "portfolio_state", "arguments": {}}\n```'
    messages = (
        *RESEARCH.messages,
        Message(role="assistant", text=said, calls=(call,)),
        Message(role="tool", text='{"cash": 1}', call_id="text-2-0"),
    )
    _, heard = ask_provider(
        NAME, [chat("done")], AskModel(purpose="research", messages=messages, tools=TOOLS)
    )
    sent = heard[0].body["messages"]
    assert "tool_calls" not in sent[2] and sent[2]["content"] == said
    assert sent[3] == {"role": "user", "content": 'Result of portfolio_state:\n{"cash": 1}'}


def test_stops_refusals_and_usage():
    usage = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
    usage["prompt_tokens_details"] = {"cached_tokens": 400}
    usage["completion_tokens_details"] = {"reasoning_tokens": 50}
    says = [
        chat("cut off", finish="length"),
        chat(None, refusal="I cannot help with that."),
        chat("", finish="content_filter"),
        chat("done", usage=usage),
    ]
    attempts, _ = ask_provider("openai/gpt-4o", says, PLAIN)
    cut, refused, filtered, done = replies(attempts)
    assert (cut.text, cut.stop, cut.error) == ("cut off", "length", None)
    assert (refused.error_kind, refused.error, refused.stop) == (
        "refused",
        "I cannot help with that.",
        "filtered",
    )
    assert (filtered.error_kind, filtered.text, filtered.calls) == ("refused", "", ())
    assert refused.usage.usd is not None and refused.usage.usd > 0
    assert (done.usage.input_tokens, done.usage.cached_tokens) == (1000, 400)
    assert (done.usage.output_tokens, done.usage.reasoning_tokens) == (200, 50)
    # 600 x 2.50 + 400 x 1.25 + 200 x 10.00 dollars per million
    assert done.usage.usd == pytest.approx(0.004)


def test_an_unknown_price_is_none_and_uncounted_tokens_are_estimated():
    body = json.loads(chat("four words are here").body)
    del body["usage"]
    attempts, _ = ask_provider(NAME, [as_json(body)], PLAIN)
    usage = replies(attempts)[0].usage
    assert usage.usd is None and usage.input_tokens > 0 and usage.output_tokens == 4


@pytest.mark.parametrize(
    ("count", "read"),
    [(2000.4, 2000), ("2000", 2000), (10**30, None), (float("inf"), None), ("many", None)],
)
def test_odd_counts_are_read_or_made_by_the_house(count, read):
    """A count is a number in any of its spellings; one that nothing can be is not believed, and
    no run breaks.
    """
    body = json.loads(chat("four words are here").body)
    body["usage"] = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count}
    attempts, _ = ask_provider("openai/gpt-4o", [as_json(body)], PLAIN)
    (reply,) = replies(attempts)
    assert reply.text == "four words are here"
    assert (reply.usage.input_tokens, reply.usage.estimated) == (read or 13, read is None)
    assert reply.usage.usd is not None and reply.usage.usd < 1.0


def test_an_answer_in_parts_and_a_call_without_an_id():
    parted = json.loads(chat("").body)
    parts = [{"type": "text", "text": text} for text in ("four ", "two")]
    parted["choices"][0]["message"]["content"] = parts
    nameless = json.loads(chat(None, [("0", "portfolio_state", "{}")]).body)
    del nameless["choices"][0]["message"]["tool_calls"][0]["id"]
    attempts, _ = ask_provider(NAME, [as_json(parted), as_json(nameless)], RESEARCH)
    first, second = replies(attempts)
    assert (first.text, first.error) == ("four two", None)
    assert [(call.id, call.name) for call in second.calls] == [("call-2-0", "portfolio_state")]


def test_a_provider_without_forced_tools_is_offered_only_that_one():
    says = [
        openai_error(400, "tool_choice is not supported with this model"),
        chat(GOOD),
        chat(GOOD),
    ]
    attempts, heard = ask_provider(NAME, says[:2])
    assert replies(attempts)[0].calls[0].found_in == "json"
    assert heard[0].body["tool_choice"] != "auto"
    assert [request.body["tool_choice"] for request in heard[1:]] == ["auto", "auto"]
    assert all(len(request.body["tools"]) == 1 for request in heard)


def test_an_answer_schema_is_sent_and_dropped_where_it_is_not_known():
    schema = '{"type":"object","properties":{"analyse":{"type":"array","items":{"type":"string"}}}}'
    request = AskModel(purpose="stock overview", messages=PLAIN.messages, answer_schema=schema)
    says = [
        openai_error(400, "response_format json_schema is not supported"),
        chat('{"analyse": []}'),
    ]
    attempts, heard = ask_provider(NAME, says, request)
    sent = heard[0].body["response_format"]
    assert sent["json_schema"]["name"] == "stock_overview" and "analyse" in str(sent)
    assert all("response_format" not in request.body for request in heard[1:])
    assert [reply.text for reply in replies(attempts)] == ['{"analyse": []}'] * 2


def test_trouble_has_a_name():
    cut = chat("a long answer that never arrives")
    cut.cut = True
    says = [
        openai_error(429, "slow down", headers={"retry-after": "7"}),
        openai_error(429, "slow down", headers={"retry-after-ms": "1500"}),
        openai_error(429, "You exceeded your current quota", "insufficient_quota"),
        openai_error(500, "oops"),
        openai_error(503, "later", headers={"retry-after": "3"}),
        openai_error(401, "bad key"),
        openai_error(404, "no such model"),
        openai_error(
            400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"
        ),
        cut,
    ]
    attempts, _ = ask_provider("openai/gpt-4o", says, PLAIN)
    seen = [
        (attempt.reply.error_kind, attempt.again, attempt.wait_s, attempt.reply.usage.usd)
        for attempt in attempts
    ]
    assert seen == [
        ("rate_limited", True, 7.0, 0.0),
        ("rate_limited", True, 1.5, 0.0),
        ("rejected", False, None, 0.0),
        ("unreachable", True, None, 0.0),
        ("unreachable", True, 3.0, 0.0),
        ("rejected", False, None, 0.0),
        ("rejected", False, None, 0.0),
        ("context", False, None, 0.0),
        ("unreachable", True, None, None),
    ]
    assert replies(attempts)[0].error == "429: slow down"
    assert all(
        reply.stop == "error" and reply.text == "" and reply.calls == ()
        for reply in replies(attempts)
    )


def test_nonsense_with_status_200_is_unreadable():
    says = [
        Said(b"<html>hello</html>", kind="text/html"),
        as_json({"hello": 1}),
        as_json(["no", "object"]),
    ]
    attempts, _ = ask_provider(NAME, says, PLAIN)
    kinds = [attempt.reply.error_kind for attempt in attempts]
    assert all(kind in ("unreadable", "unreachable", "rejected") for kind in kinds), kinds


def test_a_time_out():
    slow = chat("too late")
    slow.gate = asyncio.Event()
    attempts, _ = ask_provider("openai/gpt-4o", [slow], PLAIN, ModelParams(timeout_s=0.2))
    reply = replies(attempts)[0]
    assert (reply.error_kind, reply.error) == ("timeout", "no answer within 0.2 seconds")
    assert reply.usage.usd is None and not attempts[0].again


async def test_nobody_is_there():
    from tradeassay_bench.llm.via_inspect.provider import open_provider

    provider = open_provider("openai/gpt-4o", ModelParams(), None, base_url="http://127.0.0.1:9/v1")
    attempt = await provider.attempt(SUBMIT, place())
    await provider.aclose()
    assert attempt.reply.error_kind == "unreachable" and attempt.again
    assert attempt.reply.usage.usd == 0.0  # never sent, never billed
