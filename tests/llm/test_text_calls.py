"""Calls that models write into their text."""

import pytest
from hypothesis import given, strategies as st
from llm_asking import ACTION, BROKEN, GOOD, SCREEN, STATE, TOOLS

from tradeassay.llm.prompting import fenced_blocks, outer_objects, parse_object
from tradeassay.llm.text_tools import find_calls

SUBMIT = f'{{"name": "submit_action", "arguments": {GOOD}}}'
PLAIN = '{"orders":[],"overall_reason":"nothing today"}'


@pytest.mark.parametrize(
    ("text", "arguments", "where"),
    [
        (f"```json\n{GOOD}\n```", GOOD, "fenced"),
        (f"Well.\n\n```\n{GOOD}\n```\nThat is all.", GOOD, "fenced"),
        (f"```submit_action\n{GOOD}\n```", GOOD, "fenced"),
        (f"```json\n{SUBMIT}\n```", PLAIN, "fenced"),
        (f"```json\n[{SUBMIT}]\n```", PLAIN, "fenced"),
        (f'```json\n{{"tool_calls": [{{"function": {SUBMIT}}}]}}\n```', PLAIN, "fenced"),
        (f"```tool_code\nsubmit_action({GOOD})\n```", GOOD, "fenced"),
        (f"<tool_call>\n{SUBMIT}\n</tool_call>", PLAIN, "fenced"),
        (f"<tools>\n{SUBMIT}\n</tools>", PLAIN, "fenced"),
        (f'```json\n{{"tool": "submit_action", "args": {GOOD}}}\n```', PLAIN, "fenced"),
        (f'```json\n{{"submit_action": {GOOD}}}\n```', PLAIN, "fenced"),
        (GOOD, GOOD, "json"),
        (f"  {GOOD}\n", GOOD, "json"),
        (SUBMIT, PLAIN, "json"),
        (f"My decision: {GOOD} Thank you.", GOOD, "json"),
        (f"```json\n{BROKEN}\n```", BROKEN, "fenced"),
        (BROKEN, BROKEN, "json"),
        ('{"name": "submit_action", "arguments": "not an object"}', "not an object", "json"),
    ],
)
def test_a_forced_call_is_found(text, arguments, where):
    (call,) = find_calls(text, TOOLS, "submit_action", id_prefix="text-3")
    assert (call.id, call.name, call.arguments, call.found_in) == ("text-3-0", "submit_action", arguments, where)


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


@pytest.mark.parametrize("text", ['{"thoughts": "orders are dear"}', "[1, 2, 3]", BROKEN, "{" + GOOD])
def test_a_forced_call_that_fits_nothing_is_handed_over_as_it_is(text):
    (call,) = find_calls(text, TOOLS, "submit_action")
    assert (call.name, call.arguments, call.found_in) == ("submit_action", text, "json")
    assert find_calls(text, TOOLS) == ()


def test_a_fence_that_is_never_closed():
    (call,) = find_calls("```json\n" + GOOD, TOOLS, "submit_action")
    assert (call.arguments, call.found_in) == (GOOD, "json")


def test_without_force_a_call_must_name_its_tool():
    assert find_calls(GOOD, TOOLS) == ()
    both = f'```json\n{{"name": "portfolio_state"}}\n```\nand\n```json\n{SUBMIT}\n```'
    assert [call.name for call in find_calls(both, TOOLS)] == ["portfolio_state", "submit_action"]
    assert find_calls('{"name": "rm -rf", "arguments": {}}', TOOLS) == ()
    assert find_calls("```json\n{broken\n```", TOOLS) == ()
    assert find_calls(GOOD, ()) == ()


def test_with_one_tool_its_arguments_are_enough():
    assert find_calls('{"factors": ["MOM"]}', (SCREEN,))[0].name == "screen_candidates"
    assert find_calls('{"other": 1}', (SCREEN,)) == ()
    assert find_calls("{}", (STATE,))[0].arguments == "{}"


def test_a_forced_call_of_another_tool_is_reported_as_that_one():
    (call,) = find_calls('```json\n{"name": "portfolio_state", "arguments": {}}\n```', TOOLS, "submit_action")
    assert call.name == "portfolio_state"


@given(st.text(max_size=200))
def test_no_text_breaks_it(text):
    for dressed in (text, f"```json\n{text}\n```", f"<tool_call>{text}</tool_call>", "{" + text + "}"):
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
    assert list(outer_objects('a {"x": "}"} b {"y": [1, {}]} c')) == ['{"x": "}"}', '{"y": [1, {}]}']
    assert list(outer_objects("{ unclosed")) == []
