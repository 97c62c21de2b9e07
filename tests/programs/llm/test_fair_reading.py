"""Answers of two real models that counted as failures, hundreds of them, labelled by hand with
whose fault it was.

``model``: it gave nothing that could be taken. ``prompt``: what we asked led there, and was
changed. ``human``: a careful person would have accepted it. ``read`` says whether an answer can be
read at all (a trading answer can be read and its orders still be refused).
"""

import json
import lzma
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tradeassay_bench.benchmarks.ktdfin.action import NAME, SUBMIT
from tradeassay_bench.llm.prompting import answer_object, parse_object, unclosed_object
from tradeassay_bench.llm.text_tools import find_calls
from tradeassay_programs.benchmarks.systrade.dialogue import read_halves
from tradeassay_programs.code.extraction import extract
from tradeassay_programs.code.program_source import parses

FILE = Path(__file__).with_name("failed_answers.jsonl.xz")


@cache
def labelled() -> tuple[dict[str, Any], ...]:
    """The answers, each with whether it ``is`` read: that takes seconds, and is asked once."""
    answers = map(json.loads, lzma.decompress(FILE.read_bytes()).decode().splitlines())
    return tuple({**one, "is": is_read(one)} for one in answers)


def is_read(answer: dict[str, Any]) -> bool:
    text, cut = answer["text"], answer["stop"] == "length"
    match answer["benchmark"]:
        case "quantcode":
            code = extract(text, cut_off=cut).code
            return code is not None and parses(code) is not None
        case "systrade":
            return not read_halves(text, cut_off=cut).wrong
        case "ktdfin" if "arguments" in answer:
            return parse_object(answer["arguments"]) is not None
        case "ktdfin":
            return bool(find_calls(text, (SUBMIT,), NAME))
        case "ama":
            return answer_object(text, "") is not None or (
                not cut and unclosed_object(text) is not None
            )
    return any(answer_object(text, key) for key in ("analyse", "notes", "decisions"))


def test_every_labelled_answer_is_read_as_the_label_says():
    wrong = [one for one in labelled() if one["is"] != one["read"]]
    assert not wrong, [
        (one["benchmark"], one["label"], one["why"], one["text"][:200]) for one in wrong[:5]
    ]


def test_what_a_careful_person_would_accept_is_accepted():
    counts = Counter(one["label"] for one in labelled())
    assert sum(counts.values()) >= 300 and set(counts) == {"model", "prompt", "human"}
    lost = sum(one["label"] == "human" and not one["is"] for one in labelled())
    assert lost < 0.01 * len(labelled())


def test_the_missing_half_is_asked_for_where_our_wording_lost_it():
    cards = [
        one for one in labelled() if one["benchmark"] == "systrade" and one["label"] == "prompt"
    ]
    halves = [read_halves(one["text"]) for one in cards]
    assert cards and all(half.card is not None and half.program is None for half in halves)


def test_what_is_no_program_stays_none():
    looped = [
        one for one in labelled() if one["benchmark"] == "quantcode" and one["label"] == "model"
    ]
    assert len(looped) > 30 and not any(one["is"] for one in looped)


def test_an_object_that_lacks_more_than_its_last_brace_stays_none():
    whole = '{"action": "BUY", "confidence": 0.7, "reasoning": "it rose"'
    read = {"action": "BUY", "confidence": 0.7, "reasoning": "it rose"}
    assert unclosed_object(f"```json\n{whole}\n```") == read
    near = (whole[:-1], whole + "}", whole + ",", whole + "} or so", "[" + whole)
    for text in (*near, '{"a": {"b": 1', "BUY", "", "{"):
        assert unclosed_object(text) is None, text
