"""Exceptions of every provider's making, and what they mean."""

from email.utils import format_datetime
from types import SimpleNamespace

import pytest
from llm_asking import GOOD, PLAIN, SUBMIT, ask_provider, replies
from llm_servers import Said, as_json, chat, messages_stream

from tradeassay_bench.core.time import FixedClock, moment, parse_iso
from tradeassay_bench.llm import ModelParams
from tradeassay_bench.llm.via_inspect.wire import read_fault

CLOCK = FixedClock(parse_iso("2026-01-02T03:04:05Z"))


class StatusError(Exception):
    def __init__(
        self, status: int, message: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.response = SimpleNamespace(headers=headers or {})


class RetryError(Exception):
    def __init__(self, inner: Exception) -> None:
        super().__init__("RetryError[...]")
        self.last_attempt = SimpleNamespace(exception=lambda: inner)


class ReadTimeout(Exception): ...


class ConnectError(Exception): ...


class CodedError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def raised(error: Exception) -> Exception:
    """Raise an error as another library would, so that its innermost frame is not the house's."""
    try:
        raise error
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "kind", "again", "billed"),
    [
        (StatusError(429), "rate_limited", True, False),
        (RetryError(StatusError(429)), "rate_limited", True, False),
        (StatusError(429, "insufficient_quota"), "rejected", False, False),
        (StatusError(500), "unreachable", True, False),
        (StatusError(529), "unreachable", True, False),
        (StatusError(408), "unreachable", True, False),
        (StatusError(413), "context", False, False),
        (StatusError(400, "context length exceeded"), "context", False, False),
        (StatusError(400, "bad request"), "rejected", False, False),
        (StatusError(403), "rejected", False, False),
        (ReadTimeout("slow"), "timeout", False, True),
        (ConnectError("refused"), "unreachable", True, False),
        (ConnectionResetError("reset"), "unreachable", True, True),
        (CodedError("rate_limit_exceeded"), "rate_limited", True, False),
        (CodedError("server_error"), "unreachable", True, True),
        (CodedError("invalid_prompt"), "rejected", False, True),
        (AttributeError("'dict' object has no attribute 'strip'"), "unreadable", False, True),
    ],
)
def test_kinds(error, kind, again, billed):
    fault = read_fault(raised(error), CLOCK)
    assert (fault.kind, fault.again, fault.billed) == (kind, again, billed)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": format_datetime(moment(parse_iso("2026-01-02T03:05:05Z")))}, 60.0),
        ({"retry-after": format_datetime(moment(parse_iso("2026-01-02T03:00:00Z")))}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers, seconds):
    fault = read_fault(raised(StatusError(429, headers=headers)), CLOCK)
    assert fault is not None and fault.wait_s == seconds


def test_our_own_bugs_are_no_faults():
    from tradeassay_bench.core.time import parse_day

    with pytest.raises(Exception) as caught:
        parse_day(None)  # type: ignore[arg-type]
    assert read_fault(caught.value, CLOCK) is None


def test_words_are_short_and_on_one_line():
    fault = read_fault(raised(StatusError(500, "a\nlong " * 500)), CLOCK)
    assert fault is not None and "\n" not in fault.message and len(fault.message) == 400


CLAUDE = "anthropic/claude-sonnet-4-5"
STREAMING = ModelParams(max_tokens=8192)
PAGE = (
    b"<!DOCTYPE html><html><head><style>x{}</style></head><body><h1>Please log "
    b"in</h1></body></html>"
)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Said(PAGE, status=502, kind="text/html"), "Please log in"),
        (Said(b'{"choices": [', kind="application/json"), "JSON"),
        (
            as_json([{"error": {"code": 400, "message": "API key not valid"}}], status=400),
            "API key not valid",
        ),
        (
            as_json({"error": {"message": "Overloaded", "type": "overloaded_error"}}, status=529),
            "Overloaded",
        ),
        (
            as_json(
                {"message": "The security token is invalid", "code": "UnrecognizedClient"},
                status=403,
            ),
            "security",
        ),
    ],
)
def test_the_provider_s_own_words_are_told(said, words):
    attempts, _ = ask_provider("openai-api/vendor/model", [said], PLAIN, api_key="k" * 24)
    reply = attempts[0].reply
    assert reply.error is not None and words in reply.error
    assert "event loop" not in reply.error and "RetryError" not in reply.error


def test_a_stream_that_ends_in_the_middle_is_the_cable_s_fault():
    whole = messages_stream("hm", [("t1", "submit_action", list(GOOD))])
    until = (
        whole.body.rindex(b"event: message_delta") if b"event: message_delta" in whole.body else -60
    )
    cut = Said(whole.body[:until], kind=whole.kind)
    in_a_call = Said(whole.body[: whole.body.index(b"input_json_delta") + 40], kind=whole.kind)
    attempts, _ = ask_provider(CLAUDE, [cut, in_a_call, whole], SUBMIT, params=STREAMING)
    assert [(one.reply.error_kind, one.again) for one in attempts[:2]] == [
        ("unreachable", True)
    ] * 2
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
def test_a_count_that_cannot_be_true_never_lowers_the_bill(usage):
    text = "I hold everything, because nothing has changed since yesterday and costs are real. " * 5
    honest = {"prompt_tokens": 40, "completion_tokens": 90, "total_tokens": 130}
    said = [chat(text, usage=usage), chat(text, usage=honest)]
    first, second = replies(ask_provider("openai-api/vendor/model", said, PLAIN, api_key="k")[0])
    assert first.usage.estimated and not second.usage.estimated
    assert first.usage.input_tokens >= 5 and first.usage.output_tokens >= 60
    assert (second.usage.input_tokens, second.usage.output_tokens) == (40, 90)
