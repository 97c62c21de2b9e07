"""Calls that models write into their text, and tools for models that have none."""

import asyncio

import pytest
from hypothesis import given, strategies as st
from llm_asking import (
    ACTION,
    BROKEN,
    GOOD,
    OPENING,
    PLAIN,
    RESEARCH,
    SCREEN,
    STATE,
    SUBMIT,
    TOOLS,
    Listed,
    place,
)

from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, ToolCall
from tradeassay_bench.llm.model import Attempt
from tradeassay_bench.llm.prompting import fenced_blocks, outer_objects, parse_object
from tradeassay_bench.llm.text_tools import TextToolsProvider, find_calls, tools_into_text

NAMED = f'{{"name": "submit_action", "arguments": {GOOD}}}'
COMPACT = '{"orders":[],"overall_reason":"nothing today"}'


@pytest.mark.parametrize(
    ("text", "arguments", "where"),
    [
        (f"```json\n{GOOD}\n```", GOOD, "fenced"),
        (f"Well.\n\n```\n{GOOD}\n```\nThat is all.", GOOD, "fenced"),
        (f"```submit_action\n{GOOD}\n```", GOOD, "fenced"),
        (f"```json\n{NAMED}\n```", COMPACT, "fenced"),
        (f"```json\n[{NAMED}]\n```", COMPACT, "fenced"),
        (f'```json\n{{"tool_calls": [{{"function": {NAMED}}}]}}\n```', COMPACT, "fenced"),
        (f"```tool_code\nsubmit_action({GOOD})\n```", GOOD, "fenced"),
        (f"<tool_call>\n{NAMED}\n</tool_call>", COMPACT, "fenced"),
        (f"<tools>\n{NAMED}\n</tools>", COMPACT, "fenced"),
        (f'```json\n{{"tool": "submit_action", "args": {GOOD}}}\n```', COMPACT, "fenced"),
        (f'```json\n{{"submit_action": {GOOD}}}\n```', COMPACT, "fenced"),
        (GOOD, GOOD, "json"),
        (f"  {GOOD}\n", GOOD, "json"),
        (NAMED, COMPACT, "json"),
        (f"My decision: {GOOD} Thank you.", GOOD, "json"),
        (f"```json\n{BROKEN}\n```", BROKEN, "fenced"),
        (BROKEN, BROKEN, "json"),
        ('{"name": "submit_action", "arguments": "not an object"}', "not an object", "json"),
    ],
)
def test_a_forced_call_is_found(text, arguments, where):
    (call,) = find_calls(text, TOOLS, "submit_action", id_prefix="text-3")
    assert (call.id, call.name, call.arguments, call.found_in) == (
        "text-3-0",
        "submit_action",
        arguments,
        where,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I will hold.",
        "```python\nprint(1)\n```",
        f"First {GOOD} or rather {GOOD}",
        "```json\n{}\n```\n```json\n{}\n```",
    ],
)
def test_what_is_no_call(text):
    assert find_calls(text, TOOLS, "submit_action") == ()


@pytest.mark.parametrize(
    "text", ['{"thoughts": "orders are dear"}', "[1, 2, 3]", BROKEN, "{" + GOOD]
)
def test_a_forced_call_that_fits_nothing_is_handed_over_as_it_is(text):
    (call,) = find_calls(text, TOOLS, "submit_action")
    assert (call.name, call.arguments, call.found_in) == ("submit_action", text, "json")
    assert find_calls(text, TOOLS) == ()


def test_a_fence_that_is_never_closed():
    (call,) = find_calls("```json\n" + GOOD, TOOLS, "submit_action")
    assert (call.arguments, call.found_in) == (GOOD, "json")


def test_without_force_a_call_must_name_its_tool():
    assert find_calls(GOOD, TOOLS) == ()
    both = f'```json\n{{"name": "portfolio_state"}}\n```\nand\n```json\n{NAMED}\n```'
    assert [call.name for call in find_calls(both, TOOLS)] == ["portfolio_state", "submit_action"]
    assert find_calls('{"name": "rm -rf", "arguments": {}}', TOOLS) == ()
    assert find_calls("```json\n{broken\n```", TOOLS) == ()
    assert find_calls(GOOD, ()) == ()


def test_with_one_tool_its_arguments_are_enough():
    assert find_calls('{"factors": ["MOM"]}', (SCREEN,))[0].name == "screen_candidates"
    assert find_calls('{"other": 1}', (SCREEN,)) == ()
    assert find_calls("{}", (STATE,))[0].arguments == "{}"


def test_a_forced_call_of_another_tool_is_reported_as_that_one():
    (call,) = find_calls(
        '```json\n{"name": "portfolio_state", "arguments": {}}\n```', TOOLS, "submit_action"
    )
    assert call.name == "portfolio_state"


@given(st.text(max_size=200))
def test_no_text_breaks_it(text):
    for dressed in (
        text,
        f"```json\n{text}\n```",
        f"<tool_call>{text}</tool_call>",
        "{" + text + "}",
    ):
        for call in find_calls(dressed, TOOLS, "submit_action"):
            assert call.found_in in ("fenced", "json")
        find_calls(dressed, TOOLS)
        list(outer_objects(dressed))


def test_deep_nesting_is_no_trouble():
    deep = "[" * 100_000
    assert find_calls(deep, (ACTION,), "submit_action")[0].arguments == deep
    assert parse_object("{" * 100_000 + "}") is None


def test_backticks_inside_a_json_string_do_not_end_the_block():
    inner = '{"kind": "x", "reason": "a ```json\\n{}\\n``` b"}'
    (block,) = fenced_blocks(f"Look:\n```json\n{inner}\n```\nEnd.")
    assert block.label == "json" and block.text == inner and parse_object(block.text) is not None


def test_outer_objects():
    assert list(outer_objects('a {"x": "}"} b {"y": [1, {}]} c')) == [
        '{"x": "}"}',
        '{"y": [1, {}]}',
    ]
    assert list(outer_objects("{ unclosed")) == []


def ask(request: AskModel, reply: ModelReply) -> tuple[ModelReply, AskModel]:
    listed = Listed(Attempt(reply=reply))
    attempt = asyncio.run(TextToolsProvider(listed).attempt(request, place()))
    return attempt.reply, listed.asked[0]


def test_a_forced_call_becomes_an_answer_that_must_fit_its_schema():
    reply, sent = ask(SUBMIT, ModelReply(text=GOOD))
    assert sent.tools == () and sent.must_call is None and sent.answer_schema == ACTION.schema
    assert (
        "submit_action" in sent.messages[0].text and "portfolio_state" not in sent.messages[0].text
    )
    assert sent.messages[0].text.startswith("You trade.") and sent.messages[1:] == OPENING[1:]
    (call,) = reply.calls
    assert (call.name, call.arguments, call.found_in) == ("submit_action", GOOD, "json")


def test_free_calls_are_described_and_found():
    text = 'Let me look.\n```json\n{"name": "portfolio_state", "arguments": {}}\n```'
    reply, sent = ask(RESEARCH, ModelReply(text=text))
    assert sent.answer_schema is None and all(tool.name in sent.messages[0].text for tool in TOOLS)
    (call,) = reply.calls
    assert (call.id, call.name, call.found_in) == ("text-2-0", "portfolio_state", "fenced")
    assert reply.text == text


def test_calls_and_results_of_the_past_are_told_in_words():
    call = ToolCall(id="1", name="portfolio_state", arguments="{}")
    found = ToolCall(id="2", name="portfolio_state", arguments="{}", found_in="fenced")
    messages = (
        *OPENING[1:],
        Message(role="assistant", text="", calls=(call,)),
        Message(role="tool", text='{"cash": 1}', call_id="1"),
        Message(role="assistant", text="```json\n...\n```", calls=(found,)),
        Message(role="tool", text='{"cash": 2}', call_id="2"),
    )
    sent = tools_into_text(AskModel(purpose="research", messages=messages, tools=TOOLS))
    assert [
        message.role for message in sent.messages
    ] == "system user assistant user assistant user".split()
    assert sent.messages[2].text == '```json\n{"name": "portfolio_state", "arguments": {}}\n```'
    assert sent.messages[3].text == 'Result of portfolio_state:\n{"cash": 1}'
    assert sent.messages[4].text == "```json\n...\n```"


def test_without_tools_nothing_changes_and_errors_pass():
    assert tools_into_text(PLAIN) == PLAIN
    failed = ModelReply(stop="error", error="x", error_kind="timeout")
    assert ask(SUBMIT, failed)[0] == failed
