"""The JSON object inside an answer, and prompts as files."""

from __future__ import annotations

import pytest

from tradeassay.llm.prompting import PromptFolder, answer_object


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  {"b": 1}\n', {"b": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```', {"a": 2}),
        ('```json\n{"a": 1}\n```\nsee\n```json\n{"b": 2}\n```', {"a": 1}),
        ('I say {"a": {"b": 1}} and that is it', {"a": {"b": 1}}),
        ('first {"a": 1}, no, {"a": 2}', {"a": 2}),
        ('```json\n{"a": 1\n```', None),
        ("[1, 2]", None),
        ("", None),
        ("{'a': 1}", None),
    ],
)
def test_an_answer_is_found_where_it_stands(text: str, found: object) -> None:
    assert answer_object(text, "a") == found


def test_a_folder_knows_its_files() -> None:
    folder = PromptFolder("tradeassay.benchmarks.stockbench.prompts", "v1", ("news",))
    assert folder.files == ("benchmarks/stockbench/prompts/news.v1.txt",)
    assert "Nothing much." in folder.fill("news", lines="Nothing much.", days=3)
