"""Progress: a bar on a terminal, plain lines elsewhere, events for whoever asks."""

import io
from pathlib import Path

import runs_world as world

from tradeassay.runs import Advanced, Finished, PhaseStarted, ProgressEvent, RunEnded, run
from tradeassay.runs.play.progress import BarListener, LineListener, listener, silent


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_come_at_intervals() -> None:
    stream, clock = io.StringIO(), Clock()
    listen = LineListener(stream, interval=10, clock=clock)
    listen(PhaseStarted(phase="data", total=2))
    listen(PhaseStarted(phase="play", total=4, sessions=400))
    for _ in range(5):
        clock.now += 3
        listen(Advanced(key="a", sessions=30))
    listen(Finished(key="a"))
    listen(Finished(key="b", status="failed", error="no key"))
    clock.now += 10
    listen(Advanced(key="c", sessions=50))
    listen(RunEnded(complete=False, hint="stopped; continue with: x"))
    assert stream.getvalue().splitlines() == [
        "preparing data: 2 data sets",
        "playing: 4 episodes",
        "playing: 0 of 4, 10 days/s, 28 s left",
        "failed: b: no key",
        "playing: 2 of 4, 8 days/s, 25 s left",
        "stopped; continue with: x",
    ]


def test_the_time_left_does_not_grow_when_models_play_after_rules() -> None:
    stream, clock = io.StringIO(), Clock()
    listen = LineListener(stream, interval=10, clock=clock)
    listen(PhaseStarted(phase="play", total=11, sessions=444))
    listen(Advanced(key="rules", sessions=400))
    for _ in range(43):
        clock.now += 10
        listen(Advanced(key="model", sessions=1))
    told = [int(line.split(", ")[2].split()[0]) for line in stream.getvalue().splitlines()[1:]]
    settled = told[3:]
    assert settled == [10 * (43 - line) + 10 for line in range(4, 44)]


def test_the_bar_shows_episodes_failures_and_the_hint() -> None:
    stream = io.StringIO()
    listen = BarListener(stream)
    listen(PhaseStarted(phase="play", total=2, sessions=20))
    listen(Advanced(key="a", sessions=10))
    listen(Finished(key="a", status="failed", error="no key [x]"))
    assert listen._bar.tasks[0].fields["episodes"] == "1/2 episodes, 1 failed"
    listen(PhaseStarted(phase="score", total=2))
    listen(Finished(key="a"))
    listen(RunEnded(complete=False, hint="stopped; continue with: tradeassay resume x"))
    assert "failed: a: no key [x]" in stream.getvalue()
    assert "continue with: tradeassay resume x" in stream.getvalue()


def test_who_listens() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert listener("none") is silent
    assert listener(silent) is silent
    assert isinstance(listener("auto", io.StringIO()), LineListener)
    assert isinstance(listener("auto", Terminal()), BarListener)
    assert isinstance(listener("bar", io.StringIO()), BarListener)
    assert isinstance(listener("lines", Terminal()), LineListener)


def test_a_run_tells_what_it_does(home: Path, tmp_path: Path) -> None:
    events: list[ProgressEvent] = []
    run(world.tiny_spec(), tmp_path / "r", workers=2, home=home, progress=events.append)
    phases = [event for event in events if isinstance(event, PhaseStarted)]
    assert [(event.phase, event.total, event.sessions) for event in phases] == [
        ("data", 2, 0),
        ("play", 10, 500),
        ("score", 6, 0),
    ]
    assert sum(event.sessions for event in events if isinstance(event, Advanced)) == 500
    assert sum(isinstance(event, Finished) for event in events) == 18
    assert events[-1] == RunEnded(complete=True)
