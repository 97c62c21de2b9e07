import pytest
from hypothesis import given, strategies as st

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


def ask(vendor: Vendor, **policy) -> tuple[str, list[float]]:
    slept: list[float] = []
    runtime = Runtime(clock=CLOCK, sleep=slept.append, retry=RetryPolicy(**policy))
    return ask_with_retries(vendor, vendor="V", what="the bars of X", runtime=runtime), slept


def test_an_answer_is_returned_without_waiting():
    assert ask(Vendor()) == ("bars", [])


def test_waits_double_and_a_wish_goes_first():
    vendor = Vendor(Unanswered("late"), Throttled(retry_after=5.0), Unanswered("late"))
    assert ask(vendor, first_wait=1.0) == ("bars", [1.0, 5.0, 4.0])


def test_the_last_failure_is_the_reason():
    vendor = Vendor(*[Unanswered("late")] * 3, Throttled())
    with pytest.raises(SourceError, match=r"V refused the bars of X: HTTP 429.*4 attempts, 14 s"):
        ask(vendor)
    assert vendor.calls == 4


def test_one_attempt_sleeps_not_at_all():
    vendor = Vendor(Unanswered("late"))
    with pytest.raises(SourceError, match=r"V gave no usable answer for the bars of X: late \(1 attempt, 0 s"):
        ask(vendor, attempts=1)


def test_another_error_is_final():
    vendor = Vendor(KeyError("x"))
    with pytest.raises(KeyError):
        ask(vendor)
    assert vendor.calls == 1


def test_too_long_a_wish_is_final():
    vendor = Vendor(Throttled(retry_after=121.0))
    with pytest.raises(VendorResting, match="121 s of rest") as refused:
        ask(vendor)
    assert vendor.calls == 1 and refused.value.seconds == 121.0
    with pytest.raises(VendorResting) as refused:
        ask(Vendor(Throttled(retry_after=1e9)))
    assert refused.value.seconds == 86_400.0  # no vendor is left alone for good


@given(
    wishes=st.lists(st.none() | st.floats(0, 200), max_size=8),
    attempts=st.integers(1, 6),
    longest=st.floats(0, 150),
)
def test_waiting_is_bounded(wishes, attempts, longest):
    vendor = Vendor(*[Throttled(retry_after=wish) for wish in wishes])
    slept: list[float] = []
    policy = RetryPolicy(attempts=attempts, first_wait=1.0, longest_wait=longest)
    runtime = Runtime(clock=CLOCK, sleep=slept.append, retry=policy)
    try:
        ask_with_retries(vendor, vendor="V", what="it", runtime=runtime)
    except SourceError:
        pass
    assert vendor.calls <= attempts
    assert len(slept) <= attempts - 1
    assert all(0 <= pause <= longest for pause in slept)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("30", 30.0),
        (" 0 ", 0.0),
        ("Thu, 01 Feb 2024 12:01:30 GMT", 90.0),
        ("Thu, 01 Feb 2024 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("Thu, 01 Feb 2024 12:01:30 -0000", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header, seconds):
    assert retry_after_seconds(header, CLOCK) == seconds


@pytest.mark.parametrize("bad", [{"attempts": 0}, {"timeout": 0.0}, {"first_wait": -1.0}, {"longest_wait": -1.0}])
def test_an_impossible_policy_is_refused(bad):
    with pytest.raises(UserError):
        RetryPolicy(**bad)
