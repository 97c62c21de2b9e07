"""Asking Eastmoney through the akshare library.

The library looks neither at the HTTP status nor, in places, at the clock: a refusal arrives as broken JSON, and
one of its calls waits for ever. Both are dealt with here: the answer behind an error is taken from where it was
raised, and a call that may hang runs beside us with a time limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tradeassay.core.errors import SourceError, require
from tradeassay.data.connectors.asked import changed_format
from tradeassay.data.connectors.patience import Runtime, Throttled, Unanswered, patiently, retry_after_seconds
from tradeassay.data.connectors.quiet import quietly

VENDOR = "Eastmoney"
NOTHING_FOUND = 9201
"""Eastmoney's own code for "no such records", which the library cannot read."""


class AkshareWire:
    """A conversation with Eastmoney. Use inside :func:`conversation`."""

    def __init__(self, library: Any, runtime: Runtime) -> None:
        self._library = library
        self._runtime = runtime

    def bars(self, code: str, first: str, last: str) -> Any:
        """Return the daily table of a six-digit code, unadjusted; empty when there is none."""
        return self._ask(
            f"the daily bars of {code}",
            lambda: self._library.stock_zh_a_hist(
                symbol=code,
                period="daily",
                start_date=first.replace("-", ""),
                end_date=last.replace("-", ""),
                adjust="",
                timeout=self._runtime.patience.timeout,
            ),
        )

    def facts(self, code: str) -> dict[str, Any]:
        """Return the named facts about a code (listing date, industry)."""
        timeout = self._runtime.patience.timeout
        table = self._ask(
            f"the facts about {code}",
            lambda: self._library.stock_individual_info_em(symbol=code, timeout=timeout),
        )
        try:
            return dict(zip(table["item"], table["value"], strict=True))
        except KeyError as error:
            raise changed_format(VENDOR, f"the facts about {code}", repr(error), "akshare") from error

    def distributions(self, code: str) -> Any:
        """Return the table of dividends and bonus shares; None when the company never made any."""
        return self._ask(
            f"the dividends of {code}",
            lambda: _within(self._runtime.patience.timeout, self._library.stock_fhps_detail_em, code),
            nothing_is_fine=True,
        )

    def _ask(self, what: str, call: Callable[[], Any], *, nothing_is_fine: bool = False) -> Any:
        def once() -> Any:
            try:
                return call()
            except Exception as error:
                answer = _answer_behind(error)
                # The library looks for records inside an answer that says there are none.
                if nothing_is_fine and isinstance(error, TypeError) and _says_nothing_found(answer):
                    return None
                raise self._translated(error, answer, what) from error

        return patiently(once, vendor=VENDOR, what=what, runtime=self._runtime)

    def _translated(self, error: Exception, answer: Any, what: str) -> Exception:
        requests: Any = require("requests", "ashare")
        problems = requests.exceptions
        status = 200 if answer is None else answer.status_code
        if isinstance(error, Unanswered):
            return error
        if isinstance(error, problems.Timeout):
            return Unanswered(f"nothing came within {self._runtime.patience.timeout:g} s")
        if status == 429:
            return Throttled(
                retry_after=retry_after_seconds(answer.headers.get("Retry-After"), self._runtime.clock)
            )
        if status >= 500:
            return Unanswered(f"HTTP {status}")
        if status >= 400:
            return SourceError(f"Eastmoney refused {what}: HTTP {status}", mend="try again later")
        if isinstance(error, problems.JSONDecodeError):
            return Unanswered("the answer is not complete JSON")
        if isinstance(error, (problems.ChunkedEncodingError, problems.ConnectionError)):
            broken = "IncompleteRead" in str(error)
            text = " ".join(str(error).split())[:200]
            return Unanswered("the answer broke off in the middle" if broken else f"the connection failed: {text}")
        return changed_format(VENDOR, what, repr(error), "akshare")


def _answer_behind(error: BaseException) -> Any:
    """Return the HTTP answer that the library was reading when it failed, None when there was none."""
    requests: Any = require("requests", "ashare")
    answer, trace = None, error.__traceback__
    while trace is not None:
        found = [value for value in trace.tb_frame.f_locals.values() if isinstance(value, requests.Response)]
        answer = found[-1] if found else answer
        trace = trace.tb_next
    return answer


def _says_nothing_found(answer: Any) -> bool:
    found = None if answer is None else answer.json()
    return isinstance(found, dict) and found.get("code") == NOTHING_FOUND


def _within(seconds: float, call: Callable[[str], Any], argument: str) -> Any:
    """Return ``call(argument)``; raises :class:`Unanswered` after ``seconds``. The call is left to itself then."""
    results: list[Any] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(call(argument))
        except Exception as error:
            errors.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise Unanswered(f"nothing came within {seconds:g} s")
    return results[0]


@contextmanager
def conversation(runtime: Runtime) -> Iterator[AkshareWire]:
    """Open a conversation; raises :class:`~tradeassay.core.errors.MissingExtra` when akshare is not installed."""
    with quietly("akshare"):
        library: Any = require("akshare", "ashare")
        yield AkshareWire(library, runtime)
