"""Keys that a provider streams back in pieces, echoes in tool calls, or puts into an error."""

from typing import Any

import msgspec
import pytest
from llm_asking import ask_provider, replies
from llm_servers import (
    Said,
    anthropic_error,
    chat,
    messages,
    messages_stream,
    openai_error,
    responses,
)

from tradeassay.core.secrets import REMOVED
from tradeassay_bench.llm import ModelParams

KEY = "sk-ant-api03-Hq6NwZ1tRk8Vx3Lb5Ym0Dc7Pf2Gj9Ts4Ea"
STREAMING = ModelParams(max_tokens=8192)


@pytest.fixture(autouse=True)
def configured(stand_in_keys, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "STANDIN_API_KEY"):
        monkeypatch.setenv(name, KEY)


def echoed(says: list[Said], name: str, params: ModelParams | None = None, **named: Any) -> bytes:
    attempts, heard = ask_provider(name, says, params=params, **named)
    assert all(KEY in str(one.headers) and KEY not in str(one.body) for one in heard)
    said = msgspec.json.encode(replies(attempts))
    for at in range(13, len(KEY) - 11):
        assert KEY[at : at + 12].encode() not in said
    assert said.count(REMOVED.encode()) >= len(says)
    return said


def test_streamed_in_pieces():
    pieces = [KEY[at : at + 5] for at in range(0, len(KEY), 5)]
    says = [
        messages_stream(f"I was called with {KEY}", []),
        messages_stream(
            "x", [("t1", "submit_action", ['{"orders": [], "overall_reason": "', *pieces, '"}'])]
        ),
        messages_stream("x", [("t1", "submit_action", ['{"orders": "', *pieces])]),
        messages_stream(
            "x", [("t1", "submit_action", ['{"orders": [], "overall_reason": "', *KEY, '"}'])]
        ),
    ]
    echoed(says, "anthropic/claude-sonnet-4-5", STREAMING)


@pytest.mark.parametrize(
    ("name", "fault"),
    [("anthropic/claude-sonnet-4-5", anthropic_error), ("openai-api/standin/x", openai_error)],
)
@pytest.mark.parametrize("status", [400, 401, 403, 500, 503])
def test_errors(name, fault, status):
    more = (
        ("invalid_request_error", f"bad key {KEY}")
        if fault is anthropic_error
        else (f"bad key {KEY}",)
    )
    echoed([fault(status, *more)], name)


def test_calls_and_text():
    arguments = f'{{"orders": [], "overall_reason": "{KEY}"}}'
    says = [
        chat(f"key {KEY}", [("c1", "submit_action", arguments)]),
        chat(f"```json\n{arguments}\n```"),
    ]
    said = echoed(says, "openai-api/standin/x")
    assert b'\\"orders\\": [], \\"overall_reason\\": \\"[secret removed]\\"' in said
    echoed(
        [messages(KEY, [("t1", "submit_action", {"orders": [], KEY: [KEY]})])],
        "anthropic/claude-sonnet-4-5",
    )
    echoed([responses(KEY, [("c1", "submit_action", arguments)])], "openai/gpt-5")
