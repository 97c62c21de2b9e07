"""Faults of providers are told as they are: pages for answers, broken JSON, cut streams, impossible counts."""

from __future__ import annotations

import pytest
from llm_asking import GOOD, PLAIN, SUBMIT, ask_provider, replies
from llm_servers import Said, as_json, chat, messages_stream

from tradeassay.llm import ModelParams

CHAT = "openai/gpt-4o"
CLAUDE = "anthropic/claude-sonnet-4-5"
STREAMING = ModelParams(max_tokens=8192)
PAGE = b"<!DOCTYPE html><html><head><style>x{}</style></head><body><h1>Please log in</h1></body></html>"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Said(PAGE, status=502, kind="text/html"), "Please log in"),
        (Said(b'{"choices": [', kind="application/json"), "JSON"),
        (as_json([{"error": {"code": 400, "message": "API key not valid"}}], status=400), "API key not valid"),
        (as_json({"error": {"message": "Overloaded", "type": "overloaded_error"}}, status=529), "Overloaded"),
        (
            as_json({"message": "The security token is invalid", "code": "UnrecognizedClient"}, status=403),
            "security",
        ),
    ],
)
def test_the_provider_s_own_words_are_told(said: Said, words: str) -> None:
    attempts, _ = ask_provider("openai-api/vendor/model", [said], PLAIN, api_key="k" * 24)
    reply = attempts[0].reply
    assert reply.error is not None and words in reply.error
    assert "event loop" not in reply.error and "RetryError" not in reply.error


def test_a_stream_that_ends_in_the_middle_is_the_cable_s_fault() -> None:
    whole = messages_stream("hm", [("t1", "submit_action", list(GOOD))])
    until = whole.body.rindex(b"event: message_delta") if b"event: message_delta" in whole.body else -60
    cut = Said(whole.body[:until], kind=whole.kind)
    in_a_call = Said(whole.body[: whole.body.index(b"input_json_delta") + 40], kind=whole.kind)
    attempts, _ = ask_provider(CLAUDE, [cut, in_a_call, whole], SUBMIT, params=STREAMING)
    assert [(one.reply.error_kind, one.again) for one in attempts[:2]] == [("unreachable", True)] * 2
    assert attempts[2].reply.calls[0].name == "submit_action"


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -500, "completion_tokens": 20, "total_tokens": -480},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        None,
    ],
)
def test_a_count_that_cannot_be_true_never_lowers_the_bill(usage: dict[str, int] | None) -> None:
    text = "I hold everything, because nothing has changed since yesterday and costs are real. " * 5
    honest = {"prompt_tokens": 40, "completion_tokens": 90, "total_tokens": 130}
    first, second = replies(
        ask_provider(
            "openai-api/vendor/model", [chat(text, usage=usage), chat(text, usage=honest)], PLAIN, api_key="k"
        )[0]
    )
    assert first.usage.estimated and not second.usage.estimated
    assert first.usage.input_tokens >= 5 and first.usage.output_tokens >= 60
    assert (second.usage.input_tokens, second.usage.output_tokens) == (40, 90)
