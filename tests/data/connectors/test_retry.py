import re

import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.time import FixedClock, parse_iso, retry_after_seconds
from tradeassay.data.connectors.common import (
    RetryPolicy,
    Runtime,
    Throttled,
    Unanswered,
    VendorResting,
    ask_with_retries,
)

CLOCK = FixedClock(parse_iso("2024-02-01T12:00:00Z"))


class Vendor:
    """Raises the errors it was given, one per call, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "bars"


def ask(*errors: Exception, **policy) -> tuple[str, int, list[float]]:
    """Return what came, how many calls were made, and the pauses."""
    vendor, slept = Vendor(*errors), []
    runtime = Runtime(clock=CLOCK, sleep=slept.append, retry=RetryPolicy(**policy))
    try:
        found = ask_with_retries(vendor, vendor="V", what="the bars of X", runtime=runtime)
    except SourceError as error:
        found = str(error)
    return found, vendor.calls, slept


LATE, FULL = Unanswered("late"), Throttled()


@pytest.mark.parametrize(
    ("errors", "policy", "said", "slept"),
    [
        ([], {}, "bars", []),
        (
            [LATE, Throttled(retry_after=5.0), LATE],
            {"first_wait": 1.0},
            "bars",
            [1.0, 5.0, 4.0],
        ),  # a wish goes first
        ([LATE] * 2, {"first_wait": 9.0, "longest_wait": 10.0}, "bars", [9.0, 10.0]),
        ([LATE] * 3 + [FULL], {}, "V refused the bars of X: HTTP 429, .*4 attempts, 14 s", [2.0, 4.0, 8.0]),
        ([LATE], {"attempts": 1}, r"V gave no usable answer for the bars of X: late \(1 attempt, 0 s", []),
        ([Throttled(retry_after=121.0)], {}, "HTTP 429.*121 s of rest", []),
    ],
)
def test_waits_double_a_wish_goes_first_and_the_last_failure_is_the_reason(errors, policy, said, slept):
    found, calls, pauses = ask(*errors, **policy)
    assert re.search(said, found)
    assert pauses == slept and calls == len(slept) + 1


def test_another_error_is_final_and_so_is_too_long_a_wish():
    vendor = Vendor(KeyError("x"), Throttled(retry_after=121.0), Throttled(retry_after=1e9))
    runtime = Runtime(clock=CLOCK, sleep=lambda seconds: None)
    with pytest.raises(KeyError):
        ask_with_retries(vendor, vendor="V", what="it", runtime=runtime)
    for seconds in (121.0, 86_400.0):  # no vendor is left alone for good
        with pytest.raises(VendorResting) as refused:
            ask_with_retries(vendor, vendor="V", what="it", runtime=runtime)
        assert refused.value.seconds == seconds
    assert vendor.calls == 3


@settings(max_examples=40)
@given(
    wishes=st.lists(st.none() | st.floats(0, 200), max_size=8),
    attempts=st.integers(1, 6),
    longest=st.floats(0, 150),
)
def test_waiting_is_bounded(wishes, attempts, longest):
    errors = [Throttled(retry_after=wish) for wish in wishes]
    _, calls, slept = ask(*errors, attempts=attempts, first_wait=1.0, longest_wait=longest)
    assert calls <= attempts and len(slept) == calls - 1
    assert all(0 <= pause <= longest for pause in slept)


def test_retry_after_is_seconds_or_a_date():
    headers = {
        None: None,
        "30": 30.0,
        " 0 ": 0.0,
        "Thu, 01 Feb 2024 12:01:30 GMT": 90.0,
        "Thu, 01 Feb 2024 11:00:00 GMT": 0.0,
        "soon": None,
        "-5": None,
        "Thu, 01 Feb 2024 12:01:30 -0000": None,
    }
    assert {header: retry_after_seconds(header, CLOCK) for header in headers} == headers


def test_an_impossible_policy_is_refused():
    for bad in ({"attempts": 0}, {"timeout": 0.0}, {"first_wait": -1.0}, {"longest_wait": -1.0}):
        with pytest.raises(UserError):
            RetryPolicy(**bad)
