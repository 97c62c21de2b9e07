"""What the machine does to a child is not put down to the code; code that has begun is never run
a second time.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tradeassay.core.errors import SandboxError
from tradeassay_programs.sandbox import (
    ChildClaim,
    Crashed,
    FileAttempt,
    ForbiddenImport,
    Job,
    JobLimits,
    OomKilled,
    Sandbox,
    SandboxConfig,
    WallTimeout,
    supervise,
)
from tradeassay_programs.sandbox.supervise import IsolationFailed, Supervisor, ZygoteLost

from .fed_programs import CONFIG, fed_job, fed_program

HONEST = Job(
    source="def run(columns):\n    try:\n        open('/nowhere')\n    except OSError:\n        "
    "pass\n"
    "    return {'a': columns['x'] * 2}",
    columns={"x": [1.0, 2.0]},
    pass_as="columns",
)
"""Its ``open`` makes the child wait for the host's answer: whatever is done to it then comes in
the middle.
"""


@pytest.fixture(scope="module")
def sandbox(machine: None) -> Iterator[Sandbox]:
    """One with nothing loaded, since a zygote is lost here."""
    with Sandbox(SandboxConfig(preload=())) as opened:
        yield opened


Harm = Callable[[Supervisor], None]


def in_the_middle(monkeypatch: pytest.MonkeyPatch, harm: Harm, times: int = 1) -> list[Supervisor]:
    """Do something to each of the next ``times`` children while it waits for the host; returns
    which ones.
    """
    answer, done = Supervisor._take_report, list[Supervisor]()

    def disturbed(self: Supervisor, event: int) -> None:
        if self._process < 0:
            return  # the zygote has not told the host which process it is; the child waits
        if len(done) < times and self not in done:
            done.append(self)
            harm(self)
        answer(self, event)

    monkeypatch.setattr(Supervisor, "_take_report", disturbed)
    return done


def sent(number: int) -> Harm:
    return lambda job: signal.pidfd_send_signal(job._process, number)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_a_child_killed_from_outside_is_not_judged_and_not_run_again(sandbox, monkeypatch, name):
    done = in_the_middle(monkeypatch, sent(signal.Signals[name]), times=2)
    with pytest.raises(SandboxError, match=f"{name}, and code that has begun is never run again"):
        sandbox.run(HONEST)
    assert len(done) == 1


def test_a_child_killed_before_its_code_ran_is_followed_by_another(sandbox, monkeypatch):
    # Half a second of parsing: a busy host hears late of its child, which must not have begun by then.
    slow = replace(HONEST, source=HONEST.source + "\ndef unused():\n" + "    a = b + c\n" * 50_000)
    left, take = 1, Supervisor._take_message

    def killed(self: Supervisor) -> None:
        """Kill the next children as soon as the host knows their process."""
        nonlocal left
        known = self._process
        take(self)
        if known < 0 <= self._process and left:
            left -= 1
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    monkeypatch.setattr(Supervisor, "_take_message", killed)
    result = sandbox.run(slow)
    assert result.ok and result.retried == "crashed in stage 'parse': SIGKILL"
    left = 2
    with pytest.raises(SandboxError, match="could not be judged"):
        sandbox.run(slow)
    assert not left


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ("os.abort()", Crashed),
        ("raise MemoryError", ChildClaim),
        ("return b'x' * (1 << 40)", ChildClaim),
    ],
)
def test_whatever_code_can_do_to_itself_brings_no_second_child(sandbox, last, kind):
    """With a second child on the same rows, whatever passes from one to the other would be the
    future.
    """
    source = f"import os\ndef run(columns):\n    print('here')\n    {last}"
    result = sandbox.run(Job(source=source, pass_as="columns", columns={"close": [1.0]}))
    assert isinstance(result.failure, kind) and not result.retried


def test_a_crash_after_a_forbidden_call_is_no_second_chance(sandbox):
    """Otherwise a program that looks at the clock could try something, crash, and behave the
    second time.
    """
    source = (
        "import os\ndef run(columns):\n    try:\n        open('/nowhere')\n    except "
        "OSError:\n        os.abort()"
    )
    job = Job(source=source, pass_as="columns", fail_on=frozenset({"file"}))
    result = sandbox.run(job)
    assert isinstance(result.failure, FileAttempt) and not result.retried
    tolerated = sandbox.run(replace(job, fail_on=frozenset()))
    assert (
        tolerated.failure == Crashed(stage="run", signal="SIGABRT")
        and tolerated.attempts == result.attempts
    )


@pytest.mark.parametrize("length", [100_000, 400_000])
def test_a_source_that_says_too_much_about_itself_is_judged(sandbox, length):
    """It ended the whole run: the name did not fit into the message that tells the host of it."""
    result = sandbox.run(Job(source=f"import {'a' * length}", pass_as="columns"))
    assert result.failure == ForbiddenImport(module="a" * 200, line=1) and not result.retried


def test_memory_that_the_machine_lacks_and_that_whoever_takes_half_of_has_used_up(
    sandbox, monkeypatch
):
    """The kernel kills the sandbox's children first, however little they have taken."""
    counted = iter(range(100))
    monkeypatch.setattr(supervise, "_oom_kills", lambda: next(counted))
    in_the_middle(monkeypatch, sent(signal.SIGKILL), times=2)
    with pytest.raises(SandboxError, match="could not be judged: killed for lack of memory"):
        sandbox.run(HONEST)
    greedy = "def run(columns):\n    kept = b'x' * (24 << 20)\n    open('/nowhere')"
    limits = JobLimits(memory_mb=40)
    assert isinstance(
        sandbox.run(Job(source=greedy, pass_as="columns", limits=limits)).failure, OomKilled
    )


def test_a_zygote_lost_in_the_middle(sandbox, monkeypatch):
    zygote = sandbox._line.current().pid

    def lose(job: Supervisor) -> None:
        os.kill(zygote, signal.SIGKILL)
        select.select(
            [job._process], [], []
        )  # until the child, which waits for an answer, has gone with it

    in_the_middle(monkeypatch, lose)
    with pytest.raises(SandboxError, match="could not be judged"):
        sandbox.run(HONEST)
    assert sandbox.run(HONEST).need()["a"].tolist() == [2.0, 4.0]
    assert sandbox._line.current().pid != zygote


@pytest.mark.parametrize("error", [IsolationFailed("no room for a mount"), ZygoteLost("gone")])
def test_walls_that_do_not_stand_at_first(sandbox, monkeypatch, error):
    left, take = [error], Supervisor._take_message

    def broken(self: Supervisor) -> None:
        if left:
            raise left.pop()
        take(self)

    monkeypatch.setattr(Supervisor, "_take_message", broken)
    result = sandbox.run(HONEST)
    assert result.ok and result.retried == error.message


def test_a_machine_that_stood_still(sandbox, monkeypatch):
    """Suspended for an hour, with the host: the code is not out of time."""
    asleep = [0.0]
    clock: Any = SimpleNamespace(monotonic=lambda: time.monotonic() + asleep[0])
    monkeypatch.setattr(supervise, "time", clock)

    def hour(job: Supervisor) -> None:
        asleep[0] += 3600.0

    in_the_middle(monkeypatch, hour)
    result = sandbox.run(HONEST)
    assert result.ok and not result.retried


def test_waiting_for_a_processor_is_not_the_codes_time(sandbox, monkeypatch):
    zygote, killed = sandbox._line.current(), list[Supervisor]()
    monkeypatch.setattr(supervise, "_waited_for_processor", lambda process: 3.0)
    monkeypatch.setattr(Supervisor, "_kill", lambda self: killed.append(self))
    job = Job(source="", limits=JobLimits(wall_s=4.0))
    with Supervisor(job, zygote.tier, zygote.reach) as supervisor:
        supervisor._process, supervisor._waited = 0, 5.0
        assert supervisor._seconds_left(0.0) == 2.0 and not killed
        supervisor._waited = 7.5
        supervisor._seconds_left(0.0)
        assert killed and supervisor._stopped == WallTimeout(limit_s=4.0)


def test_the_processor_time_of_a_child_is_found(sandbox, monkeypatch):
    seen: list[float] = []
    in_the_middle(
        monkeypatch, lambda job: seen.append(supervise._waited_for_processor(job._process))
    )
    assert sandbox.run(HONEST).ok and seen[0] >= 0.0
    assert supervise._waited_for_processor(0) == 0.0, "no process"


@pytest.fixture(scope="module")
def feeder(machine: None) -> Iterator[Sandbox]:
    with Sandbox(CONFIG) as opened:
        yield opened


def ending_with(last: str) -> Job:
    """Three rows, and something that happens on the last of them."""
    return fed_job(fed_program(f"if close == 3:\n    {last}\ntell()"))


def test_what_was_fed_a_bar_is_not_run_again_on_the_same_bars(feeder):
    """A second child could be told what the first one saw: its end after the last bar is its
    own.
    """
    for last in ("raise MemoryError", "import os; os.abort()"):
        result = feeder.run(ending_with(last))
        assert result.failure is not None and not result.retried and len(result.answers) == 2


def test_a_child_killed_while_it_is_fed_is_not_judged(feeder, monkeypatch):
    done = in_the_middle(monkeypatch, sent(signal.SIGKILL))
    with pytest.raises(SandboxError, match="never run again on the same rows"):
        feeder.run(ending_with("open('/nowhere')"))
    assert len(done) == 1
