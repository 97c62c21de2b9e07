"""The one retry policy towards vendors: how long to wait for an answer, and between attempts.

A connector turns what its vendor library raises into one of two words, :class:`Throttled` ("come back later") or
:class:`Unanswered` ("no usable answer arrived"). Only those are asked again, a bounded number of times;
everything else (a changed format, an unknown symbol) is final at once. Vendor libraries also talk (warnings, log
lines, prints, progress bars); :func:`quietly` keeps that out of our output.
"""

from __future__ import annotations

import contextlib
import io
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from tradeassay.core.errors import SourceError, UserError, require
from tradeassay.core.secrets import clean_words
from tradeassay.core.time import SECOND, Clock, WallClock, instant

T = TypeVar("T")
LONGEST_REST_S = 86_400.0
"""A vendor that asks to be left alone for longer than a day is asked again after a day."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds in seconds: ``timeout`` for one answer; waits double from ``first_wait`` up to ``longest_wait``.

    A vendor that asks (``Retry-After``) for more than ``longest_wait`` is not waited for.
    """

    attempts: int = 4
    timeout: float = 30.0
    first_wait: float = 2.0
    longest_wait: float = 120.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.first_wait < 0 or self.longest_wait < 0:
            raise UserError(f"impossible retry policy {self}", hint="attempts >= 1, timeout > 0, waits >= 0")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a connector takes from outside, so that no test reads the wall clock or sleeps."""

    clock: Clock = field(default_factory=WallClock)
    sleep: Callable[[float], None] = time.sleep
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Throttled(Exception):
    """The vendor answered "too many requests"; ``retry_after`` is the wait in seconds, if it named one."""

    def __init__(self, reason: str = "HTTP 429, too many requests", retry_after: float | None = None) -> None:
        self.reason = clean_words(reason)
        super().__init__(self.reason)
        self.retry_after = retry_after


class Unanswered(Exception):
    """No usable answer: a time-out, a broken connection, a truncated body."""

    def __init__(self, reason: str) -> None:
        self.reason = clean_words(reason)
        super().__init__(self.reason)


class VendorResting(SourceError):
    """The vendor wants to be left alone for longer than anybody waits here: for ``seconds``."""

    seconds: float = 0.0


def retry_after_seconds(header: str | None, clock: Clock) -> float | None:
    """Read an HTTP ``Retry-After`` header (seconds or a date); None when it is absent or unreadable."""
    text = (header or "").strip()
    if text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (instant(moment) - clock.now()) / SECOND)


def ask_with_retries(ask: Callable[[], T], *, vendor: str, what: str, runtime: Runtime) -> T:
    """Call ``ask`` until it answers, at most ``runtime.retry.attempts`` times, else raise :class:`SourceError`."""
    tenacity: Any = require("tenacity", "live")
    policy = runtime.retry
    backoff = tenacity.wait_exponential(multiplier=policy.first_wait, max=policy.longest_wait)

    def rest(error: BaseException) -> float | None:
        return error.retry_after if isinstance(error, Throttled) else None

    def pause(state: Any) -> float:
        named = rest(state.outcome.exception())
        return float(backoff(state)) if named is None else named

    def worth_another(error: BaseException) -> bool:
        return isinstance(error, Throttled | Unanswered) and (rest(error) or 0.0) <= policy.longest_wait

    attempts = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(policy.attempts),
        wait=pause,
        retry=tenacity.retry_if_exception(worth_another),
        sleep=runtime.sleep,
        reraise=True,
    )
    try:
        return attempts(ask)  # type: ignore[no-any-return]  # tenacity's types are skipped
    except Throttled as error:
        named = rest(error)
        if named is not None and named > policy.longest_wait:
            refused = VendorResting(
                f"{vendor} refused {what}: {error.reason}, and wants {named:.0f} s of rest",
                hint="fetch again after that time, or ask for fewer symbols at once",
            )
            refused.seconds = min(named, LONGEST_REST_S)
            raise refused from error
        raise SourceError(
            f"{vendor} refused {what}: {error.reason} ({_effort(attempts)})",
            hint="wait some minutes and fetch again, or ask for fewer symbols at once",
        ) from error
    except Unanswered as error:
        raise SourceError(
            f"{vendor} gave no usable answer for {what}: {error.reason} ({_effort(attempts)})",
            hint="check the connection (and a proxy, if there is one), then fetch again",
        ) from error


def _effort(attempts: Any) -> str:
    made, waited = attempts.statistics["attempt_number"], attempts.statistics["idle_for"]
    return f"{made} attempt{'s' if made > 1 else ''}, {waited:.0f} s of waiting between them"


@contextlib.contextmanager
def quietly(module: str) -> Iterator[None]:
    """Silence a library's log lines, prints, progress bars and the warnings it causes; errors pass."""
    logger = logging.getLogger(module)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
