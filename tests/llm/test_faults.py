"""Exceptions of every provider's making, and what they mean."""

from __future__ import annotations

from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from tradeassay.core.time import FixedClock, moment, parse_iso
from tradeassay.llm.via_inspect.wire import read_fault

CLOCK = FixedClock(parse_iso("2026-01-02T03:04:05Z"))


class StatusError(Exception):
    def __init__(self, status: int, message: str = "", headers: dict[str, str] | None = None) -> None:
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
def test_kinds(error: Exception, kind: str, again: bool, billed: bool) -> None:
    fault = read_fault(raised(error), CLOCK)
    assert fault is not None
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
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    fault = read_fault(raised(StatusError(429, headers=headers)), CLOCK)
    assert fault is not None and fault.wait_s == seconds


def test_our_own_bugs_are_no_faults() -> None:
    from tradeassay.core.time import parse_day

    with pytest.raises(Exception) as caught:
        parse_day(None)  # type: ignore[arg-type]
    assert read_fault(caught.value, CLOCK) is None


def test_words_are_short_and_on_one_line() -> None:
    fault = read_fault(raised(StatusError(500, "a\nlong " * 500)), CLOCK)
    assert fault is not None and "\n" not in fault.message and len(fault.message) == 400
