"""Bar by bar, in this process and fed from outside: the child has no bar before its turn."""

import inspect
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tradeassay.code.harness.desk import WireError, pack_decisions, read_decisions
from tradeassay.code.lookahead.bench import bench_columns, load_bench
from tradeassay.code.lookahead.grow import FunctionSubject, JobSubject, check_leaks
from tradeassay.code.streaming import HARNESS, BarDecision, BarDesk, Streamed, stream, stream_in_sandbox
from tradeassay.core.errors import SandboxError, UserError
from tradeassay.sandbox import (
    FrameFeed,
    Job,
    JobLimits,
    OutputLimit,
    Sandbox,
    SandboxConfig,
    TrustedCodeInProcess,
    WallTimeout,
    ask_kernel,
    refusal,
)

DAILY = {name: values[:300] for name, values in bench_columns("daily").items()}


class Cross:
    """Long above the mean of the last ten closes."""

    def __init__(self):
        self.closes, self.held = [], 0

    def on_bar(self, bar, desk):
        self.closes = [*self.closes[-9:], bar.close]
        wanted = int(bar.close > sum(self.closes) / len(self.closes))
        if wanted != self.held:
            self.held = wanted
            desk.target(wanted)


def test_decisions_carry_the_bar_they_were_made_on():
    done = stream(Cross(), DAILY)
    closes = DAILY["close"]
    expected, held = [], 0
    for row in range(300):
        window = closes[max(0, row - 9) : row + 1]
        if int(closes[row] > window.mean()) != held:
            held = 1 - held
            expected.append((row, held))
    assert [(one.row, one.quantity) for one in done.decisions] == expected
    assert done.trace.rows.tolist() == [row for row, _ in expected]
    assert done.bars == 300 and not done.certified
    assert (
        check_leaks(FunctionSubject(lambda columns: stream(Cross(), columns).trace), DAILY, seed=1).verdict
        == "clean"
    )


def test_a_bar_has_the_columns_by_name_and_time_in_nanoseconds():
    seen = []

    class Watcher:
        def on_bar(self, bar: Any, desk: BarDesk) -> None:
            seen.append(bar)

    stream(Watcher(), {name: values[:2] for name, values in DAILY.items()})
    assert seen[1]._fields == ("time", "open", "high", "low", "close", "volume", "score")
    assert np.datetime64(seen[1].time, "ns") == DAILY["time"][1]
    assert seen[0].high == DAILY["high"][0]


def test_several_feeds_come_as_bars_by_name():
    columns = {"A/close": np.array([1.0, 2.0, 3.0]), "B/close": np.array([3.0, 2.0, 1.0])}

    class Pair:
        def on_bar(self, bars: Any, desk: BarDesk) -> None:
            if bars["A"].close > bars["B"].close:
                desk.order(-5)
                desk.order(5, "B", limit=bars["B"].close)
                desk.order(1, "A", stop=9.0)
                desk.cancel("B")

    done = stream(Pair(), columns)
    assert [one[:4] for one in done.decisions] == [
        (2, "A", "market", -5.0),
        (2, "B", "limit", 5.0),
        (2, "A", "stop", 1.0),
        (2, "B", "cancel", 0.0),
    ]
    assert done.decisions[1].price == 1.0
    with pytest.raises(ValueError, match="not both"):
        BarDesk().order(1, limit=1.0, stop=2.0)


def test_what_cannot_be_streamed():
    with pytest.raises(UserError, match="one length"):
        stream(Cross(), {"A/close": np.zeros(2), "B/close": np.zeros(3)})
    with pytest.raises(UserError, match="'class' cannot be an attribute"):
        stream(Cross(), {"class": np.zeros(2)})
    assert stream(Cross(), {"close": np.zeros(0)}).decisions == ()


def test_decisions_survive_the_wire_and_nonsense_does_not():
    made = [BarDecision(3, "B", "limit", -2.0, 9.5), BarDecision(3, "A", "target", 1.0, float("nan"))]
    back = read_decisions(pack_decisions(made, ("A", "B")), 3, ("A", "B"))
    assert back[0] == made[0] and back[1][:4] == made[1][:4]
    with pytest.raises(WireError, match="whole number"):
        read_decisions(b"abc", 0, ("A",))
    with pytest.raises(WireError, match="does not exist"):
        read_decisions(pack_decisions(made, ("A", "B")), 3, ("A",))
    with pytest.raises(ValueError):
        pack_decisions([BarDecision(0, "C", "target", 1.0, 0.0)], ("A",))


CROSS = f"class Strategy:{inspect.getsource(Cross).partition(':')[2]}"


@pytest.fixture(scope="module")
def fed() -> Iterator[Sandbox]:
    refused = refusal(ask_kernel())
    if refused is not None:
        pytest.skip(str(refused))
    with Sandbox(SandboxConfig(preload=("numpy", "pandas"), harnesses=(HARNESS,))) as opened:
        yield opened


def run(fed: Sandbox, source: str, **limits: float) -> Streamed:
    return stream_in_sandbox(fed, source, DAILY, limits=JobLimits(**limits))  # type: ignore[arg-type]


def test_nothing_is_fed_once_an_answer_is_enough(fed):
    params = {"columns": "close", "format": "<d"}
    frames = DAILY["close"].astype("<f8").tobytes()
    asked: list[int] = []

    def until(number: int, answer: bytes) -> bool:
        asked.append(number)
        return number == 6

    feed = FrameFeed(frames=frames, size=8, until=until)
    result = fed.run(Job(source=CROSS, harness=f"{HARNESS}:serve", params=params, feed=feed))
    assert result.ok and len(result.answers) == 7 and asked == list(range(7))


def test_the_sandbox_decides_what_the_process_decides(fed):
    here, there = stream(Cross(), DAILY), run(fed, CROSS)
    assert there.failure is None and there.certified and there.bars == 300
    assert [one[:4] for one in there.decisions] == [one[:4] for one in here.decisions]


def test_a_child_that_reads_on_waits_for_a_bar_that_does_not_come(fed):
    """It goes to the pipe itself for the next bar: there is nothing in it until this bar is answered."""
    greedy = """
import os

class Strategy:
    seen = 0

    def on_bar(self, bar, desk):
        self.seen += 1
        desk.target(self.seen)
        if self.seen == 7:
            os.read(7, 1)
"""
    done = run(fed, greedy, wall_s=1.0)
    assert [one.quantity for one in done.decisions] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert done.bars == 6
    assert isinstance(done.result and done.result.failure, WallTimeout)


def test_answers_given_in_advance_are_given_in_ignorance(fed):
    """A child that answers everything at once gets all bars, after it has committed itself on each."""
    hasty = """
import os

class Strategy:
    def on_bar(self, bar, desk):
        os.write(8, bytes(4) * 300)
        while os.read(7, 65536):
            pass
        raise SystemExit(0)
"""
    done = run(fed, hasty)
    assert done.failure is not None
    assert done.decisions == ()
    many = hasty.replace("300", "5000")
    stopped = run(fed, many)
    assert isinstance(stopped.result and stopped.result.failure, OutputLimit)
    assert stopped.failure is not None
    assert "answers" in stopped.failure.text


def test_bad_code_is_a_failure_with_what_was_decided_before(fed):
    head = "import os\nclass Strategy:\n    n = 0\n    def on_bar(self, bar, desk):\n        self.n += 1\n"
    done = run(fed, head + "        desk.target(self.n)\n        if self.n > 5:\n            1 / 0\n")
    assert done.failure is not None and "ZeroDivisionError" in done.failure.text
    assert [one.quantity for one in done.decisions] == [1.0, 2.0, 3.0, 4.0, 5.0]
    nothing = run(fed, "x = 1")
    assert nothing.failure is not None and "no class Strategy" in nothing.failure.text
    for last in ("os.write(8, b'\\x03\\0\\0\\0abc')", "os._exit(0)"):  # garbage, and an end without a word
        assert run(fed, f"{head}        {last}\n").failure is not None


def test_nothing_is_left_behind(fed):
    run(fed, CROSS)
    before = len(os.listdir("/proc/self/fd"))
    for source in (CROSS, "x = 1", "def broken("):
        run(fed, source)
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_fed(fed):
    with pytest.raises(UserError, match="cannot be fed"):
        stream_in_sandbox(fed, CROSS, {"name": np.array(["a", "b"], dtype=object)})
    with pytest.raises(UserError, match="only a harness"):
        Job(source="", feed=FrameFeed(frames=b"1234", size=4))
    with pytest.raises(UserError, match="whole number"):
        FrameFeed(frames=b"12345", size=4)
    with pytest.raises(SandboxError, match="child of its own"):
        job = Job(source="", harness="a:b", feed=FrameFeed(frames=b"1234", size=4), trust="reference")
        TrustedCodeInProcess().run(job)


@pytest.mark.slow
def test_the_leak_check_on_jobs_of_a_sandbox(fed):
    cases = {case.name: case for case in load_bench()}
    few = {name: values[:60] for name, values in DAILY.items()}
    for name, verdict in (("shift-minus-one", "leaky"), ("end-of-data-liquidation", "clean")):
        subject = JobSubject(executor=fed, job=Job(source=cases[name].source))
        assert check_leaks(subject, few, seed=1).verdict == verdict
    broken = JobSubject(executor=fed, job=Job(source="def run(frame):\n    return frame['none']"))
    report = check_leaks(broken, few, seed=1)
    assert (report.verdict, report.cause) == (None, "run_failed")
    assert "KeyError" in report.reason
