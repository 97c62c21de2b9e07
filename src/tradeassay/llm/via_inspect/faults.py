"""What went wrong in a call to a provider, named so that a protocol can count it."""

from __future__ import annotations

import re
import socket
import ssl
import traceback
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from tradeassay.core.secrets import clean_words, scrub
from tradeassay.core.time import SECOND, Clock, instant

OWN = "tradeassay"
_CONTEXT = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too many tokens|(prompt|input) is too long", re.I
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance", re.I)
_CONNECTION = frozenset(
    """
APIConnectionError ConnectError ConnectionError RemoteProtocolError ReadError WriteError IncompleteRead
ProtocolError NetworkError ClientConnectionError NoStreamDataError CloseError EndpointConnectionError
ClientPayloadError ServerDisconnectedError StreamClosed
""".split()
)
_SOCKET_ERRORS = (ConnectionError, socket.gaierror, ssl.SSLError)
_TOKENIZERS = ("tiktoken", "tokenizers", "transformers", "huggingface_hub")
_AGAIN = ("Throttling", "ServiceQuotaExceeded", "TooManyRequests", "LimitExceeded")
_NEVER_SENT = ("ConnectError", "ConnectTimeout", "ConnectionRefusedError", "PoolTimeout", "gaierror")


class ProviderFault(msgspec.Struct, frozen=True, kw_only=True):
    """A failed attempt. ``billed`` says that the provider may have worked on it anyway."""

    kind: str
    message: str
    again: bool = False
    wait_s: float | None = None
    billed: bool = False
    status: int | None = None


def read_fault(error: BaseException, clock: Clock) -> ProviderFault | None:
    """Return what an exception from a provider means, or None when it is a bug of ours and must be raised. The
    clock is read only for a Retry-After that names a date."""
    chain = list(_chain(error))
    status = next((found for link in chain if (found := _status(link)) is not None), None)
    text = _text(chain)
    if (tokenizer := _tokenizer(chain)) is not None:
        # The answer may be here already: what failed is counting it, on this machine.
        said = f"the tokenizer of {tokenizer} cannot be fetched, and the provider counted nothing: {text}"
        return ProviderFault(kind="unreachable", message=said, billed=True)
    if status is not None:
        return _by_status(status, text, _retry_after(chain, clock), _amazon(chain))
    names = {kind.__name__ for link in chain for kind in type(link).__mro__}
    if any("Timeout" in name for name in names):
        sent = not names & set(_NEVER_SENT)
        return ProviderFault(kind="timeout", message=text, billed=sent)
    if names & _CONNECTION or any(isinstance(link, _SOCKET_ERRORS) for link in chain):
        return ProviderFault(kind="unreachable", message=text, again=True, billed=not names & set(_NEVER_SENT))
    code = next((word for link in chain if (word := _code(link)) is not None), None)
    if code is not None:
        return _by_code(code, text)
    if _raised_by_us(error):
        return None
    return ProviderFault(kind="unreadable", message=text, billed=True)


def _tokenizer(chain: list[BaseException]) -> str | None:
    """Return the library that failed to get a tokenizer, if that is what failed."""
    for link in chain:
        for frame, _ in traceback.walk_tb(link.__traceback__):
            library = str(frame.f_globals.get("__name__", "")).split(".")[0]
            if library in _TOKENIZERS:
                return library
    return None


def _amazon(chain: list[BaseException]) -> str:
    """Return what Amazon calls an error, which is in a header and not in the body."""
    headers = (getattr(getattr(link, "response", None), "headers", None) for link in chain)
    return next((str(found) for one in headers if one and (found := one.get("x-amzn-errortype"))), "")


def _by_status(status: int, text: str, wait_s: float | None, amazon: str) -> ProviderFault:
    if amazon.startswith(_AGAIN):
        return ProviderFault(kind="rate_limited", message=text, again=True, wait_s=wait_s, status=status)
    if status == 429 and wait_s is None and _QUOTA.search(text):
        return ProviderFault(kind="rejected", message=text, status=status)
    if status == 429:
        return ProviderFault(kind="rate_limited", message=text, again=True, wait_s=wait_s, status=status)
    if status in (408, 409, 424, 425) or status >= 500:
        return ProviderFault(kind="unreachable", message=text, again=True, wait_s=wait_s, status=status)
    if status == 413 or (status in (400, 422) and _CONTEXT.search(text)):
        return ProviderFault(kind="context", message=text, status=status)
    return ProviderFault(kind="rejected", message=text, status=status)


def _by_code(code: str, text: str) -> ProviderFault:
    plain = code.lower().replace("_", "").replace("-", "")
    if "ratelimit" in plain:
        return ProviderFault(kind="rate_limited", message=text, again=True)
    if plain in "servererror overloadederror apierror internalservererror timeout vectorstoretimeout".split():
        return ProviderFault(kind="unreachable", message=text, again=True, billed=True)
    return ProviderFault(kind="rejected", message=text, billed=True)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        last = getattr(link, "last_attempt", None)  # tenacity's RetryError
        inner = last.exception() if last is not None and hasattr(last, "exception") else None
        waiting += [other for other in (inner, link.__cause__, link.__context__) if other is not None]


def _status(link: BaseException) -> int | None:
    for name in ("status_code", "status", "code", "http_status"):
        value = getattr(link, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return value
    return None


def _code(link: BaseException) -> str | None:
    value = getattr(link, "code", None)
    return value if isinstance(value, str) else None


def _retry_after(chain: list[BaseException], clock: Clock) -> float | None:
    for link in chain:
        headers: Any = getattr(getattr(link, "response", None), "headers", None)
        if headers is None:
            continue
        wait = _seconds(headers.get("retry-after-ms"), 0.001)
        if wait is None:
            wait = _seconds(headers.get("retry-after"), 1.0)
        if wait is None:
            wait = _until(headers.get("retry-after"), clock)
        if wait is not None:
            return max(0.0, wait)
    return next((wait for link in chain if (wait := _google_wait(link)) is not None), None)


def _google_wait(link: BaseException) -> float | None:
    """Return the wait that Google asks for inside the body of an error."""
    body = getattr(link, "details", None)
    inner = body.get("error") if isinstance(body, dict) else None
    details = inner.get("details") if isinstance(inner, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (wait := _seconds(delay.removesuffix("s"), 1.0)) is not None:
            return max(0.0, wait)
    return None


def _seconds(text: object, unit: float) -> float | None:
    try:
        return float(str(text)) * unit if text is not None else None
    except ValueError:
        return None


def _until(text: object, clock: Clock) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return (instant(moment) - clock.now()) / SECOND if moment.tzinfo is not None else None


def _text(chain: list[BaseException]) -> str:
    """Return the provider's own words on one line, without secrets, or what the innermost exception says."""
    scrub(chain[0])
    bodies = [getattr(link, name, None) for link in chain for name in ("body", "details")]
    said = _page(chain) or next((words for body in bodies if (words := _words(body))), None) or _innermost(chain)
    status = next((found for link in chain if (found := _status(link)) is not None), None)
    line = " ".join(clean_words(f"{status}: {said}" if status is not None else said).split())
    return line if len(line) <= 400 else line[:397] + "..."


_NOISE = ("no running event loop", "RetryError")
"""What libraries ask themselves on the way (which event loop is this?) and leave in an exception's context."""
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.IGNORECASE | re.DOTALL)


def _innermost(chain: list[BaseException]) -> str:
    """Return the words of the innermost cause that has any. What merely happened to be handled is no cause."""
    causes = [chain[0]]
    while (inner := _cause(causes[-1])) is not None and inner not in causes:
        causes.append(inner)
    told = [link for link in reversed(causes) if _tells(link)] or [link for link in chain if _tells(link)]
    if not told:
        return type(chain[0]).__name__
    if isinstance(told[0], ValueError) and type(told[0]).__name__ == "JSONDecodeError":
        return f"the answer is not JSON: {told[0]}"
    return str(told[0])


def _cause(link: BaseException) -> BaseException | None:
    last = getattr(link, "last_attempt", None)
    inner = last.exception() if last is not None and hasattr(last, "exception") else None
    return inner or link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _tells(link: BaseException) -> bool:
    text = str(link)
    return bool(text) and not any(noise in text for noise in _NOISE)


def _page(chain: list[BaseException]) -> str | None:
    """Return the text of a page that came instead of an answer: a proxy's or a login's."""
    for link in chain:
        text = _body_text(link)
        if text.lstrip()[:200].lower().startswith(("<!doctype", "<html")):
            return f"a web page came instead of an answer: {' '.join(_TAG.sub(' ', text).split())[:200]}"
    return None


def _body_text(link: BaseException) -> str:
    body = getattr(link, "body", None)
    told = getattr(link, "details", None)  # Google's client, of a body that is not JSON
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        body = told["message"]
    try:
        text = body if isinstance(body, str) else getattr(getattr(link, "response", None), "text", None)
    except RuntimeError:  # a stream that nobody has read
        return ""
    return text if isinstance(text, str) else ""


def _words(body: object) -> str | None:
    if isinstance(body, str) and body.strip() and not body.lstrip().startswith(("{", "[", "<")):
        return body
    if isinstance(body, list) and len(body) == 1:  # Google wraps an error into a list
        body = body[0]
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    message = inner.get("message") if isinstance(inner, dict) else body.get("message", body.get("Message"))
    code = body.get("code")
    words = message if isinstance(message, str) else None
    return f"{words} ({code})" if words and isinstance(code, str) and code not in words else words


def _raised_by_us(error: BaseException) -> bool:
    """Tell whether the innermost frame of an exception is the house's own code."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__", "")).split(".")[0] == OWN
