"""Replies that nobody hoped for: loops, traps for patterns, and a thousand odd ones whose
meaning is known.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from tradeassay_bench.core.dialogue import ToolSpec
from tradeassay_bench.llm.prompting import answer_object, fenced_blocks, outer_objects, parse_object
from tradeassay_bench.llm.text_tools import find_calls
from tradeassay_programs.benchmarks.systrade.dialogue import read_halves
from tradeassay_programs.code.extraction import extract, extract_block

ORDER = {
    "type": "object",
    "properties": {"stock_id": {"type": "string"}, "target_weight": {"type": "number"}},
}
SUBMIT = ToolSpec(
    name="submit_action",
    description="Hand in the day's orders.",
    schema=json.dumps(
        {
            "type": "object",
            "properties": {
                "orders": {"type": "array", "items": ORDER},
                "overall_reason": {"type": "string"},
            },
            "required": ["orders", "overall_reason"],
        }
    ),
)
LONG = 40_000
TRAPS = {
    "fences that never end": "```json\n" * (LONG // 8),
    "a label that never ends": "```" + "a" * LONG + "`",
    "ticks": "`" * LONG + "x`",
    "tildes": "~" * LONG + "`",
    "blanks before a fence": " " * LONG + "```x",
    "elements that never end": "<tool_call>" * (LONG // 11),
    "an element of blanks": "<tool>" + " " * LONG,
    "elements of blanks": ("<tool>" + "\n" * 60) * (LONG // 66),
    "elements closed by others": "<tool></tools>" * (LONG // 14),
    "braces": "{" * LONG,
    "pairs of braces": "{}" * (LONG // 2),
    "objects that never end": '{"a":' * (LONG // 5),
    "strings that never end": '{"a":"' * (LONG // 6),
    "a call of braces": "submit_action(" + "{" * LONG,
    "a call of blanks": "submit_action" + " " * LONG + "(" + "} " * 1000,
    "thoughts that never end": "<think>" * (LONG // 7),
    "tags of programs": "[python]" * (LONG // 8),
}
READERS: dict[str, Callable[[str], object]] = {
    "fenced_blocks": fenced_blocks,
    "outer_objects": lambda text: list(outer_objects(text)),
    "answer_object": lambda text: answer_object(text, "orders"),
    "find_calls": lambda text: find_calls(text, (SUBMIT,), "submit_action"),
    "extract": extract,
    "extract_block": partial(extract_block, cut_off=False),
    "read_halves": read_halves,
}


@pytest.mark.parametrize("name", TRAPS)
def test_no_reply_takes_more_time_than_it_has_letters(name: str) -> None:
    # With a pattern that looks for the same end again and again, each of these takes minutes to hours.
    for reader in READERS.values():
        reader(TRAPS[name])


def test_blocks_are_those_of_one_simple_pattern():
    simple = re.compile(
        r"^[ \t]*```[ \t]*([\w.+-]*)[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL
    )
    rng = random.Random(5)
    pieces = ("```", "```json", "```py x", "\n", "\n", " ", "\t", "`", "a", "{}", "~~~", "é")
    for _ in range(4000):
        text = "".join(rng.choices(pieces, k=rng.randrange(24)))
        expected = [(found[1].lower(), found[2].strip()) for found in simple.finditer(text)]
        assert [(block.label, block.text) for block in fenced_blocks(text)] == expected, text


APOLOGIES = (
    "I'm sorry, but as a language model I cannot predict markets. That said, here is my "
    "decision:\n",
    "Sure! Here you go 😊\n",
    "First I thought of selling everything (see {my notes}). Then I changed my mind.\n",
    "Step 1: look at `asset_0001`.\nStep 2: decide.\n\n",
    "",
)
ODD_TEXTS = (
    "“curly” quotes|a ``` b|braces } { and ]|line\nbreak|back\\slash|中文|</tool_call>|'".split("|")
)


def clear(rng: random.Random, meant: dict[str, object]) -> tuple[str, str]:
    """Return a reply that a careful person reads in one way, and what kind it is."""
    body = json.dumps(meant, indent=rng.choice((None, 2)), ensure_ascii=rng.random() < 0.5)
    named = json.dumps({"name": "submit_action", "arguments": meant})
    before, after = rng.choice(APOLOGIES), rng.choice(("", "\nGood luck!", "\n\nNote: no advice."))
    if "{" in before and "```" not in body:
        before = before.replace("{my notes}", "my notes") if rng.random() < 0.5 else before
    kinds = {
        "fenced": f"{before}```json\n{body}\n```{after}",
        "fenced without a label": f"{before}```\n{body}\n```{after}",
        "fenced as a call": f"{before}```json\n{named}\n```{after}",
        "indented fence": f"{before}   ```json\n{body}\n   ```{after}",
        "an element": f"<tool_call>\n{named}\n</tool_call>",
        "bare": f"  {body}\n",
        "windows lines": f"{before}```json\n{body}\n```{after}".replace("\n", "\r\n"),
        "beside a program": f"{before}```python\nprint({{1: 2}})\n```\n```json\n{body}\n```{after}",
    }
    kind = rng.choice(sorted(kinds))
    return kinds[kind], kind


def unclear(
    rng: random.Random, meant: dict[str, object], other: dict[str, object]
) -> tuple[str, str]:
    """Return a reply that is broken or has two meanings, and what kind it is."""
    body, second = json.dumps(meant), json.dumps(other)
    kinds = {
        "cut off": f"```json\n{body[: rng.randrange(5, len(body) - 2)]}",
        "cut off without a fence": body[: rng.randrange(5, len(body) - 2)],
        "curly quotes for JSON's": f"```json\n{body.replace(chr(34), '“')}\n```",
        "numbers as words": "```json\n" + re.sub(r"0\.\d+", "ten percent", body) + "\n```",
        "two in prose": f"Either {body} or {second}, I am not sure.",
        "python's spelling": f"```json\n{meant!r} # None\n```",
        "nested": json.dumps({"answer": {"maybe": [meant, other]}}),
        "huge": body[:-1] + "," * 20_000 + "}",
    }
    kind = rng.choice(sorted(kinds))
    return kinds[kind], kind


def actions(rng: random.Random) -> dict[str, object]:
    orders = [
        {
            "stock_id": f"asset_{rng.randrange(9999):04d}",
            "target_weight": rng.randrange(1, 99) / 1000,
        }
        for _ in range(rng.randrange(1, 5))
    ]
    return {"orders": orders, "overall_reason": rng.choice(ODD_TEXTS)}


def test_of_a_thousand_odd_replies_none_is_read_wrongly():
    rng = random.Random(17)
    lost: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for at in range(1000):
        meant, other = actions(rng), actions(rng)
        text, kind = clear(rng, meant) if at % 2 else unclear(rng, meant, other)
        read = [
            parse_object(call.arguments) for call in find_calls(text, (SUBMIT,), "submit_action")
        ]
        understood = [body for body in read if body is not None]
        if at % 2:
            lost[kind] += understood == []
            wrong[kind] += understood not in ([], [meant])
        else:
            # A block that fits nothing is handed on as it is, so that the model is told what it lacks.
            wrong[kind] += any("orders" in body for body in understood)
    assert +wrong == Counter()
    assert +lost == Counter()
