"""Wires beside OpenAI's and Anthropic's:

Google, Ollama, OpenRouter, vLLM, DeepSeek, and Amazon's errors.
"""

import json
from typing import Any

import pytest
from llm_asking import GOOD, SUBMIT, ask_provider
from llm_servers import Said, as_json, chat, openai_error

from tradeassay_bench.llm.model import Attempt

KEY = "stand-in-key-4711"
PAGE = b"<!DOCTYPE html><html><body>Bad gateway</body></html>"
GOOGLE = "google/gemini-2.5-flash"


def once(name: str, said: Said) -> Attempt:
    attempts, heard = ask_provider(name, [said], SUBMIT, api_key=KEY)
    assert heard, "the server was asked"
    return attempts[0]


def gemini(*parts: Any, finish: str = "STOP", **more: Any) -> Said:
    content = {"role": "model", "parts": list(parts)}
    usage = {
        "promptTokenCount": 400,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 7,
        "totalTokenCount": 427,
    }
    candidates = [{"content": content, "finishReason": finish, "index": 0}]
    return as_json(
        {
            "candidates": candidates,
            "usageMetadata": usage,
            "modelVersion": "gemini-2.5-flash",
            **more,
        }
    )


def gemini_error(code: int, status: str, message: str, *details: Any) -> Said:
    body = {"code": code, "message": message, "status": status, "details": list(details)}
    return as_json({"error": body}, status=code)


def amazon(status: int, kind: str, message: str, **named: Any) -> Said:
    return as_json({"message": message, **named}, status=status, headers={"x-amzn-ErrorType": kind})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ollama/qwen3:8b", {"reasoning": "I hold."}),
        ("vllm/Qwen/Qwen3-8B", {"reasoning_content": "I hold."}),
        ("deepseek/deepseek-reasoner", {"reasoning_content": "I hold."}),
        (
            "openrouter/deepseek/deepseek-r1",
            {
                "reasoning": "I hold.",
                "reasoning_details": [{"type": "reasoning.text", "text": "I hold."}],
            },
        ),
    ],
)
def test_a_call_with_reasoning_beside_it(name, message):
    usage = {"prompt_tokens": 400, "completion_tokens": 30, "total_tokens": 430}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 20}}  # type: ignore[dict-item]  # as it is sent
    reply = once(name, chat("", [("call_1", "submit_action", GOOD)], usage=usage, **message)).reply
    assert [(call.name, call.arguments) for call in reply.calls] == [("submit_action", GOOD)]
    assert reply.text == "", "what a model thinks is not what it says"
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.reasoning_tokens) == (
        400,
        30,
        20,
    )


def test_reasoning_alone_is_an_answer_without_a_call():
    reply = once(
        "deepseek/deepseek-reasoner", chat("", reasoning_content="I should submit, but")
    ).reply
    assert reply.error is None and not reply.calls and reply.text == ""


NO, AWAY = ("rejected", False), ("unreachable", True)
BUSY, LONG = ("rate_limited", True), ("context", False)
DIED = {"code": 502, "message": "Upstream died"}
BROKE_OFF = {
    "index": 0,
    "finish_reason": "error",
    "error": DIED,
    "message": {"role": "assistant", "content": ""},
}
TOO_LONG = "This model's maximum context length is 4096 tokens."
ABSENT = {"object": "error", "message": "The model `x` does not exist."}
FAULTS: dict[str, list[tuple[Said, tuple[str, bool], str]]] = {
    "ollama/qwen3:8b": [
        (openai_error(404, "model 'qwen3:8b' not found"), NO, "not found"),
        (Said(b"404 page not found", 404, "text/plain"), NO, "page not found"),
        (openai_error(400, "gemma:2b does not support tools"), NO, "tools"),
        (openai_error(500, "requires more system memory"), AWAY, "memory"),
    ],
    "vllm/Qwen/Qwen3-8B": [
        (
            as_json({"object": "error", "message": TOO_LONG, "code": 400}, status=400),
            LONG,
            "maximum context length",
        ),
        (as_json({**ABSENT, "code": 404}, status=404), NO, "does not exist"),
    ],
    "deepseek/deepseek-chat": [
        (openai_error(402, "Insufficient Balance"), NO, "Balance"),
        (openai_error(503, "Service is too busy."), AWAY, "too busy"),
        (
            chat("half an ans", finish="insufficient_system_resource"),
            AWAY,
            "insufficient_system_resource",
        ),
    ],
    "openrouter/x/y": [
        (
            as_json({"error": {"code": 402, "message": "requires more credits"}}, status=402),
            NO,
            "credits",
        ),
        (
            as_json({"error": {"code": 502, "message": "Provider returned error"}}),
            AWAY,
            "Provider returned error",
        ),
        (
            as_json({"error": {"code": 429, "message": "free-models-per-min"}}),
            BUSY,
            "free-models-per-min",
        ),
        (as_json({**json.loads(chat("").body), "choices": [BROKE_OFF]}), AWAY, "Upstream died"),
    ],
    "openai-api/bedrock/x": [
        (amazon(429, "ThrottlingException", "Too many requests"), BUSY, "Too many"),
        (amazon(400, "ServiceQuotaExceededException", "exceeds the quota"), BUSY, "quota"),
        (amazon(403, "AccessDeniedException", "You don't have access"), NO, "access"),
        (amazon(403, "ExpiredTokenException", "The security token is expired"), NO, "expired"),
        (as_json({"Message": "User x is not authorized"}, status=403), NO, "not authorized"),
        (
            amazon(400, "ValidationException", "Input is too long for requested model."),
            LONG,
            "too long",
        ),
        (amazon(424, "ModelErrorException", "failed", originalStatusCode=500), AWAY, "failed"),
        (amazon(408, "ModelTimeoutException", "Model has timed out"), AWAY, "timed out"),
        (amazon(503, "ServiceUnavailableException", "unable to process"), AWAY, "unable"),
    ],
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named_for_what_they_are(name):
    attempts, _ = ask_provider(name, [said for said, _, _ in FAULTS[name]], SUBMIT, api_key=KEY)
    for attempt, (_, what, words) in zip(attempts, FAULTS[name], strict=True):
        assert (attempt.reply.error_kind, attempt.again) == what, attempt
        assert not attempt.reply.calls and words in str(attempt.reply.error), attempt


@pytest.mark.slow  # its client takes seconds to open
class TestGoogle:
    """Google's own form, which needs its own client."""

    @pytest.fixture(autouse=True)
    def client(self, monkeypatch):
        pytest.importorskip("google.genai")
        for name in (
            "GOOGLE_BASE_URL",
            "GOOGLE_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ):
            monkeypatch.delenv(name, raising=False)

    def test_what_it_says_and_what_goes_wrong(self):
        arguments = {"orders": [], "overall_reason": "nothing today"}
        call = {
            "functionCall": {"name": "submit_action", "args": arguments},
            "thoughtSignature": "c2ln",
        }
        wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
        long = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
        says = [
            gemini({"text": "I think", "thought": True}, call),
            gemini({"text": "hol"}, finish="MAX_TOKENS"),
            gemini(finish="SAFETY"),
            as_json({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
            gemini_error(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, check your billing.",
                wait,
            ),
            gemini_error(400, "INVALID_ARGUMENT", "API key not valid."),
            gemini_error(400, "INVALID_ARGUMENT", long),
            gemini_error(503, "UNAVAILABLE", "The model is overloaded."),
            Said(PAGE, status=502, kind="text/html"),
            Said(b'{"candidates": ['),
        ]
        attempts, heard = ask_provider(GOOGLE, says, SUBMIT, api_key=KEY)
        assert len(heard) == len(says), "nothing is tried again behind the house's back"
        called, cut = attempts[0].reply, attempts[1].reply
        assert [(one.name, one.arguments) for one in called.calls] == [
            ("submit_action", '{"orders":[],"overall_reason":"nothing today"}')
        ]
        assert called.text == "" and (cut.text, cut.stop) == ("hol", "length")
        usage = called.usage
        assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (400, 27, 7)
        told = [
            (one.reply.error_kind, one.again, one.wait_s, one.reply.error) for one in attempts[2:]
        ]
        assert told == [
            ("refused", False, None, "the model refused"),
            ("refused", False, None, "BLOCKED: BlockedReason.PROHIBITED_CONTENT"),
            (
                "rate_limited",
                True,
                37.0,
                "429: You exceeded your current quota, check your billing.",
            ),
            ("rejected", False, None, "400: API key not valid."),
            ("context", False, None, long),
            ("unreachable", True, None, "503: The model is overloaded."),
            ("unreachable", True, None, "502: the answer is a web page: Bad gateway"),
            (
                "unreadable",
                False,
                None,
                "the answer is not JSON: Expecting value: line 1 column 17 (char 16)",
            ),
        ]
