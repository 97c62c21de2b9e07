"""The wire to a provider: repair unreadable answers, and preserve tool calls as sent.

- A server may echo its key. Configured secrets are removed here, also from headers.
- A server may send a call's arguments as an object where the OpenAI chat format has a string, an
  answer in parts, a call without an id, or token counts as floats, strings or invalid values.
- Anthropic may pause a turn. Inspect then sends further requests that are neither counted nor
  budgeted. Tradeassay offers no tools of a provider, so there is nothing to wait for, and a paused
  answer is used as the answer.
- Anthropic streams a call's input in pieces. Its client fails on pieces that do not form JSON, and
  silently drops the end of an input that was cut off. Such an input is sent to the client as
  ``{UNPARSED: text}``.
- Inspect parses a call's arguments. Text that is not a JSON object becomes an empty object, or is
  patched until it is one. Tradeassay counts such errors, so it reads them from the raw response.
- A failed call gets a kind, so that a protocol can count it.
"""

from __future__ import annotations

import re
import socket
import ssl
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import msgspec

from tradeassay.core.our_code import is_ours
from tradeassay.core.secrets import clean_foreign, refresh, remember, scrub, without_secrets
from tradeassay_bench.core.dialogue import as_text
from tradeassay_bench.core.time import Clock, retry_after_seconds
from tradeassay_bench.llm.prompting import parse_object

_CONTEXT = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too many tokens|(prompt|input) is too "
    r"long",
    re.I,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance", re.I)
_CONNECTION = frozenset(
    """APIConnectionError ConnectError ConnectionError RemoteProtocolError ReadError WriteError
    IncompleteRead ProtocolError NetworkError ClientConnectionError NoStreamDataError CloseError
    EndpointConnectionError ClientPayloadError ServerDisconnectedError StreamClosed""".split()
)
_SOCKET_ERRORS = (ConnectionError, socket.gaierror, ssl.SSLError)
_TOKENIZERS = ("tiktoken", "tokenizers", "transformers", "huggingface_hub")
_AGAIN = ("Throttling", "ServiceQuotaExceeded", "TooManyRequests", "LimitExceeded")
_AWAY = (
    "servererror overloadederror apierror internalservererror timeout vectorstoretimeout".split()
)
_NEVER_SENT = (
    "ConnectError",
    "ConnectTimeout",
    "ConnectionRefusedError",
    "PoolTimeout",
    "gaierror",
)


class ProviderFault(msgspec.Struct, frozen=True, kw_only=True):
    """A failed attempt. ``billed`` is true if the provider may have charged for it."""

    kind: str
    message: str
    again: bool = False
    wait_s: float | None = None
    billed: bool = False
    status: int | None = None


def read_fault(error: BaseException, clock: Clock) -> ProviderFault | None:
    """Return the fault that caused a provider's exception, or None for a bug of tradeassay.

    The caller must re-raise the exception if the result is None. The clock is read only for a
    Retry-After with a date.
    """
    chain = list(_chain(error))
    status = next((found for link in chain if (found := _status(link)) is not None), None)
    text = _text(chain, status)
    frames = []
    for link in chain:
        for frame, _ in traceback.walk_tb(link.__traceback__):
            frames.append(frame)
    libraries = [str(frame.f_globals.get("__name__", "")).split(".")[0] for frame in frames]
    if tokenizer := next((library for library in libraries if library in _TOKENIZERS), None):
        # The answer may have arrived already. Only counting its tokens on this machine failed.
        message = (
            f"the tokenizer of {tokenizer} cannot be fetched, and the provider reported no "
            f"tokens: {text}"
        )
        return ProviderFault(kind="unreachable", message=message, billed=True)
    if status is not None:
        return _by_status(status, text, chain, clock)
    names: set[str] = set()
    for link in chain:
        names |= {kind.__name__ for kind in type(link).__mro__}
    sent = not names & set(_NEVER_SENT)
    if any("Timeout" in name for name in names):
        return ProviderFault(kind="timeout", message=text, billed=sent)
    if names & _CONNECTION or any(isinstance(link, _SOCKET_ERRORS) for link in chain):
        return ProviderFault(kind="unreachable", message=text, again=True, billed=sent)
    code = next(
        (word for link in chain if isinstance(word := getattr(link, "code", None), str)), None
    )
    if code is not None:
        plain = code.lower().replace("_", "").replace("-", "")
        if "ratelimit" in plain:
            return ProviderFault(kind="rate_limited", message=text, again=True)
        away = plain in _AWAY
        return ProviderFault(
            kind="unreachable" if away else "rejected", message=text, again=away, billed=True
        )
    own = list(traceback.walk_tb(error.__traceback__))
    if own and is_ours(str(own[-1][0].f_globals.get("__name__", ""))):
        return None  # raised by tradeassay's own code
    return ProviderFault(kind="unreadable", message=text, billed=True)


def _by_status(status: int, text: str, chain: list[BaseException], clock: Clock) -> ProviderFault:
    # Amazon puts the type of an error into a header and not into the body.
    amazon = ""
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None)
        error_type = headers.get("x-amzn-errortype") if headers else None
        if error_type:
            amazon = str(error_type)
            break
    wait_s = _retry_after(chain, clock)
    out_of_money = wait_s is None and _QUOTA.search(text)
    if amazon.startswith(_AGAIN) or (status == 429 and not out_of_money):
        kind = "rate_limited"
    elif status in (408, 409, 424, 425) or status >= 500:
        kind = "unreachable"
    elif status == 413 or (status in (400, 422) and _CONTEXT.search(text)):
        kind = "context"
    else:
        kind = "rejected"
    again = kind in ("rate_limited", "unreachable")
    return ProviderFault(
        kind=kind, message=text, again=again, wait_s=wait_s if again else None, status=status
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all exceptions that led to it, each once."""
    seen: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        link = pending.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        for cause in (_retried(link), link.__cause__, link.__context__):
            if cause is not None:
                pending.append(cause)


def _retried(link: BaseException) -> BaseException | None:
    """Return the exception of the last attempt inside tenacity's RetryError."""
    last = getattr(link, "last_attempt", None)
    return last.exception() if last is not None and hasattr(last, "exception") else None


def _status(link: BaseException) -> int | None:
    for name in ("status_code", "status", "code", "http_status"):
        value = getattr(link, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    return None


def _retry_after(chain: list[BaseException], clock: Clock) -> float | None:
    for link in chain:
        headers: Any = getattr(getattr(link, "response", None), "headers", None)
        if headers is None:
            continue
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            if (wait := retry_after_seconds(headers.get(name), clock)) is not None:
                return wait * unit
    for link in chain:  # Google puts the delay into the body
        body = getattr(link, "details", None)
        inner = body.get("error") if isinstance(body, dict) else None
        details = inner.get("details") if isinstance(inner, dict) else None
        for detail in details if isinstance(details, list) else ():
            delay = detail.get("retryDelay") if isinstance(detail, dict) else None
            seconds = delay.removesuffix("s") if isinstance(delay, str) else None
            if (wait := retry_after_seconds(seconds, clock)) is not None:
                return wait
    return None


def _text(chain: list[BaseException], status: int | None) -> str:
    """Return the provider's message on one line, else the text of the innermost exception.

    Configured secrets are removed.
    """
    scrub(chain[0])
    message = _page(chain)
    if not message:
        bodies = []
        for link in chain:
            for name in ("body", "details"):
                bodies.append(getattr(link, name, None))
        message = next(filter(None, map(_words, bodies)), None) or _innermost(chain)
    if status is not None:
        message = f"{status}: {message}"
    line = " ".join(clean_foreign(message).split())
    return line if len(line) <= 400 else line[:397] + "..."


_NOISE = ("no running event loop", "RetryError")
"""Internal exceptions of event-loop detection in libraries.

They appear in the context of another exception.
"""
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.IGNORECASE | re.DOTALL)


def _innermost(chain: list[BaseException]) -> str:
    """Return the text of the innermost cause that has one.

    An exception that was merely being handled at the time is not a cause.
    """
    causes: list[BaseException] = []
    link: BaseException | None = chain[0]
    while link is not None and link not in causes:
        causes.append(link)
        link = (
            _retried(link)
            or link.__cause__
            or (None if link.__suppress_context__ else link.__context__)
        )
    for cause in (*reversed(causes), *chain):
        text = str(cause)
        if not text or any(noise in text for noise in _NOISE):
            continue
        if type(cause).__name__ == "JSONDecodeError":
            return f"the answer is not JSON: {text}"
        return text
    return type(chain[0]).__name__


def _page(chain: list[BaseException]) -> str | None:
    """Return the text of a web page received instead of an answer, from a proxy or a login."""
    for link in chain:
        body = getattr(link, "body", None)
        details = getattr(link, "details", None)  # Google's client, for a body that is not JSON
        if isinstance(details, dict) and isinstance(details.get("message"), str):
            body = details["message"]
        try:
            text = (
                body
                if isinstance(body, str)
                else getattr(getattr(link, "response", None), "text", None)
            )
        except RuntimeError:  # a stream that was not read
            continue
        if isinstance(text, str) and text.lstrip()[:200].lower().startswith(("<!doctype", "<html")):
            return f"the answer is a web page: {' '.join(_TAG.sub(' ', text).split())[:200]}"
    return None


def _words(body: object) -> str | None:
    if isinstance(body, str) and body.strip() and not body.lstrip().startswith(("{", "[", "<")):
        return body
    if isinstance(body, list) and len(body) == 1:  # Google wraps an error into a list
        body = body[0]
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    message = (
        inner.get("message")
        if isinstance(inner, dict)
        else body.get("message", body.get("Message"))
    )
    code = body.get("code")
    words = message if isinstance(message, str) else None
    return f"{words} ({code})" if words and isinstance(code, str) and code not in words else words


UNPARSED = "__tradeassay_unparsed__"
"""The only field of an object that represents an invalid input. It contains the input as text."""


def repair_wires(client: object) -> None:
    """Patch a provider's client so that it can read such answers.

    An unknown client stays unchanged.
    """
    completions = getattr(getattr(client, "chat", None), "completions", None)
    if completions is not None:
        _read_object_arguments(completions)
    http = getattr(client, "_client", None)
    hooks = getattr(http, "event_hooks", None)
    if http is not None and isinstance(hooks, dict):
        # An encoded stream cannot be inspected.
        http.headers["accept-encoding"] = "identity"
        hooks["request"].append(_note_sent)
        hooks["response"].append(_mend_response)
        http.event_hooks = hooks


async def _note_sent(_: object) -> None:
    box = SENT.get()
    if box is not None and not box:
        box.append(time.perf_counter())


def _read_object_arguments(completions: Any) -> None:
    original = completions.create

    async def create(*args: Any, **named: Any) -> Any:
        completion = await original(*args, **named)
        for count in ("prompt_tokens", "completion_tokens", "total_tokens"):
            usage = getattr(completion, "usage", None)
            try:
                if usage is not None and not isinstance(getattr(usage, count, None), int):
                    setattr(usage, count, int(float(getattr(usage, count))))
            except (AttributeError, TypeError, ValueError, OverflowError):
                completion.usage = None  # tokens are then estimated
        for choice in getattr(completion, "choices", None) or []:
            parts = choice.message.content
            if isinstance(parts, list):
                choice.message.content = "".join(
                    str(part.get("text") or "") if isinstance(part, dict) else str(part)
                    for part in parts
                )
            for call in getattr(choice.message, "tool_calls", None) or []:
                if not isinstance(getattr(call, "id", None), str):
                    call.id = ""  # it gets an id later, with its result
                function = getattr(call, "function", None)
                if function is not None and not isinstance(function.arguments, str | None):
                    function.arguments = as_text(function.arguments)
        return completion

    completions.create = create


async def _mend_response(response: Any) -> None:
    for name, value in list(response.headers.items()):
        if (cleaned := without_secrets(value)) is not value:
            response.headers[name] = cleaned
    if response.headers.get("content-encoding", "identity") == "identity":
        events = "text/event-stream" in response.headers.get("content-type", "")
        base = sys.modules[type(response).__module__.split(".")[0]].AsyncByteStream
        response.stream = _mended(base, response.stream, mend_events if events else clean_body)


def _mended(
    base: Any, inner: Any, mend: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]
) -> Any:
    # The client checks for its own library's class. There are two such libraries (httpx and
    # httpx2).
    class Mended(base):  # type: ignore[misc]  # the base is known only when a response is here
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for block in mend(inner):
                yield block

        async def aclose(self) -> None:
            await inner.aclose()

    return Mended()


async def clean_body(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a body in one piece, without configured secrets. A secret may span two chunks."""
    yield _PAUSED.sub(_ENDED, clean_foreign(b"".join([chunk async for chunk in chunks])))


_PAUSED, _ENDED = re.compile(rb'"stop_reason"\s*:\s*"pause_turn"'), b'"stop_reason":"end_turn"'
_BEGINNINGS = (b'"message_start"', b'"response.created"', b'"chat.completion.chunk"')
_ENDS = tuple(
    b'"message_stop" "response.completed" "response.incomplete" '
    b'"response.failed" [DONE] "error"'.split()
)


async def mend_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield server-sent events, with each Anthropic tool input as one JSON object.

    Raises :class:`ConnectionResetError` if a stream ends before its answer does. Otherwise a client
    would return an incomplete answer, and a broken connection would count as the model's failure.
    """
    pending = b""
    inputs: dict[int, str] = {}
    begun = False
    ended = False
    async for chunk in chunks:
        *whole, pending = (pending + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in whole:
            begun = begun or any(mark in event for mark in _BEGINNINGS)
            ended = ended or any(mark in event for mark in _ENDS)
            for mended in _mend_event(event, inputs):
                yield without_secrets(_PAUSED.sub(_ENDED, mended)) + b"\n\n"
    if pending:
        ended = ended or any(mark in pending for mark in _ENDS)
        yield without_secrets(pending)
    if begun and not ended:
        raise ConnectionResetError("the stream ended in the middle of the answer")


def _mend_event(event: bytes, inputs: dict[int, str]) -> list[bytes]:
    data = next((line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")), b"")
    body = parse_object(data.decode("utf-8", "replace")) if b"content_block_" in data else None
    at = body.get("index") if body is not None else None
    if body is None or not isinstance(at, int):
        return [event]
    delta = body.get("delta")
    if isinstance(delta, dict) and delta.get("type") == "input_json_delta":
        inputs[at] = inputs.get(at, "") + str(delta.get("partial_json") or "")
        return []
    if body.get("type") != "content_block_stop" or not inputs.get(at):
        return [event]
    text = inputs.pop(at)
    good = (
        text if parse_object(text) is not None else msgspec.json.encode({UNPARSED: text}).decode()
    )
    piece = {"type": "input_json_delta", "partial_json": good}
    whole = msgspec.json.encode({"type": "content_block_delta", "index": at, "delta": piece})
    return [b"event: content_block_delta\ndata: " + whole, event]


RESPONSE: ContextVar[list[object] | None] = ContextVar("tradeassay_raw_response", default=None)
"""A list for the raw response of the current call, set by the caller."""
SENT: ContextVar[list[float] | None] = ContextVar("tradeassay_sent", default=None)
"""A list for the time at which the current call was first sent, set by the caller."""


class RawCall(msgspec.Struct, frozen=True):
    """A call's id, tool and arguments as sent.

    Arguments in the form of an object are written as JSON.
    """

    id: str
    name: str
    arguments: str


def keep_raw_responses(api: Any) -> None:
    """Make an Inspect provider store its raw responses in :data:`RESPONSE`, without secrets.

    Inspect logs the results and errors of this call. Secrets are therefore removed here, for every
    kind of client.
    """
    refresh()  # Inspect may have read keys from a file
    remember(getattr(api, "api_key", None))
    original = api.generate

    async def generate(*args: Any, **named: Any) -> Any:
        try:
            result = _clean(await original(*args, **named))
        except Exception as error:
            scrub(error)
            raise
        box = RESPONSE.get()
        if box is not None and isinstance(result, tuple):
            box[:] = [result[1].response]
        return result

    setattr(api, "generate", generate)  # noqa: B010 (a method is replaced on one object, on purpose)


def _clean(result: Any) -> Any:
    if hasattr(result, "model_dump_json"):  # Inspect's output
        raw = result.model_dump_json().encode()
        cleaned = clean_foreign(raw)
        return result if cleaned is raw else type(result).model_validate_json(cleaned)
    if isinstance(result, tuple):
        output, call = result
        call.request, call.response = without_secrets(call.request), without_secrets(call.response)
        return _clean(output), call
    if isinstance(result, BaseException):
        scrub(result)
    return result


def raw_calls(node: Any) -> Iterator[RawCall]:
    """Yield the tool calls of a raw response in the format of any provider."""
    match node:
        case list():
            for item in node:
                yield from raw_calls(item)
            return
        case {
            "function": {"arguments": arguments, **inner}
        }:  # OpenAI chat completions and compatible servers
            call_id, name = node.get("id"), inner.get("name")
        case {"type": "function_call", "arguments": arguments}:  # OpenAI responses
            call_id, name = node.get("call_id") or node.get("id"), node.get("name")
        case {"type": "tool_use", "input": arguments}:  # Anthropic messages
            call_id, name = node.get("id"), node.get("name")
        case dict():
            for value in node.values():
                yield from raw_calls(value)
            return
        case _:
            return
    if isinstance(arguments, dict) and arguments.keys() == {UNPARSED}:
        arguments = arguments[UNPARSED]
    if arguments is None:
        arguments = ""
    yield RawCall(str(call_id or ""), str(name or ""), as_text(arguments))
