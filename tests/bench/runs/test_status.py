"""A run that is not finished can be looked at: how far it has come, and what was refused, in the
model's words.
"""

import fcntl
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import runs_world as world

from tradeassay_bench.core.dialogue import Usage
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.runs import (
    Advanced,
    Answered,
    AskStarted,
    Finished,
    PhaseStarted,
    Run,
    RunEnded,
    run,
)
from tradeassay_bench.runs.play.progress import BarListener, LineListener, listener
from tradeassay_bench.runs.store.folder import run_lock
from tradeassay_bench.runs.summary.reading import SHOWN, run_status


def _write(file, lines, torn=""):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + torn, encoding="utf-8")


def test_steps_failures_and_the_latest_refused_answers_are_told(tmp_path):
    note = {"kind": "no_target_shares", "detail": "2 of 4 changes come without target_shares"}
    wrong = [{"kind": "schema", "detail": "there is no such stock"}, note]
    decided = [{"status": "failed" if at else "ok", "failures": wrong} for at in range(5)]
    events = [
        {"step": at, "session": f"2022-01-0{at + 1}", "decision": one}
        for at, one in enumerate(decided)
    ]
    line = {"session": "", "index": 0, "purpose": "submit", "attempt": 1, "kept": 0, "messages": []}
    said = [line | {"step": at, "reply": {"text": f"answer {at}", "usage": {}}} for at in range(5)]
    _write(tmp_path / "episodes/one/events.jsonl", events, torn='{"step": 5, "ses')
    _write(tmp_path / "episodes/one/dialogue.jsonl", said)
    _write(tmp_path / "episodes/two/outcome.json", [{}])
    run = SimpleNamespace(
        folder=tmp_path, episodes=[SimpleNamespace(key=name) for name in ("one", "two", "three")]
    )
    one, two, three = run_status(run)
    assert (one.steps, one.lost, one.ended, one.failures) == (5, 4, False, {"schema": 5})
    assert [refused.text for refused in one.refused] == [
        f"answer {at}" for at in range(5 - SHOWN, 5)
    ]
    assert one.refused[-1].reason == "schema: there is no such stock"
    assert two.ended and not three.ended and three.steps == 0


def test_ahead_of_the_baseline_is_said_while_it_plays(finished, tmp_path):
    folder = shutil.copytree(finished.folder, tmp_path / "half")
    last = len(finished.episodes) - 1
    drawn = np.random.default_rng(3).normal(0.0, 0.01, (last + 1, 130))
    for number, episode in enumerate(finished.episodes):
        pace = drawn[number] + (0.0 if episode.baseline or number % 2 else 0.008)
        _write(
            folder / "episodes" / episode.key / "events.jsonl",
            [
                {"step": at, "session": f"s{at:03}", "events": [{"type": "marked", "nav": nav}]}
                for at, nav in enumerate(
                    (1000.0 * np.exp(np.cumsum(pace))).tolist()[: 50 if number == last else 130]
                )
            ],
        )
    said = run_status(Run.load(folder))
    for number, (episode, one) in enumerate(zip(finished.episodes, said, strict=True)):
        if episode.baseline:
            assert one.ahead.value is None and one.ahead.reason == "this is the baseline"
        elif number == last:
            assert (
                one.ahead.value is not None
                and one.ahead.low is None
                and "first look" in str(one.ahead.note)
            )
        else:
            assert one.ahead.low is not None and (one.ahead.low > 0.0) == (number % 2 == 0)


@pytest.fixture
def lines():
    """What a listener to lines said, the listener, and its clock."""
    stream, clock = io.StringIO(), SimpleNamespace(now=0.0)
    return stream, LineListener(stream, interval=10, clock=lambda: clock.now), clock


def test_lines_come_at_intervals(lines):
    stream, listen, clock = lines
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


def test_the_time_left_does_not_grow_when_models_play_after_rules(lines):
    stream, listen, clock = lines
    listen(PhaseStarted(phase="play", total=11, sessions=444))
    listen(Advanced(key="rules", sessions=400))
    for _ in range(43):
        clock.now += 10
        listen(Advanced(key="model", sessions=1))
    told = [int(line.split(", ")[2].split()[0]) for line in stream.getvalue().splitlines()[1:]]
    settled = told[3:]
    assert settled == [10 * (43 - line) + 10 for line in range(4, 44)]


def ask(listen):
    listen(PhaseStarted(phase="play", total=2, sessions=20))
    for key in ("a", "b"):
        listen(AskStarted(key=key, agent=f"model-{key}", session="2024-01-15", purpose="research"))
    listen(Answered(key="a", usage=Usage(input_tokens=1000, output_tokens=200, usd=0.25)))
    listen(Advanced(key="a", sessions=1))


def test_lines_say_who_asks_what_and_what_it_took(lines):
    stream, listen, clock = lines
    ask(listen)
    clock.now = 20.0
    listen(Finished(key="b"))
    listen(RunEnded(complete=True))
    assert stream.getvalue().splitlines() == [
        "playing: 2 episodes",
        "playing: 1 of 2, 0.05 days/s, 380 s left; 1 call, 1,200 tokens, $0.25; model-a 2024-01-15 "
        "research",
        "asked: 1 call, 1,200 tokens, $0.25",
    ]


def test_the_bar_shows_episodes_failures_models_and_the_hint():
    stream = io.StringIO()
    listen = BarListener(stream)
    ask(listen)
    line = next(task for task in listen.bar.tasks if "call" in task.description)
    assert line.description == "1 call, 1,200 tokens, $0.25"
    assert line.fields["episodes"] == "model-a 2024-01-15 research, model-b 2024-01-15 research"
    listen(PhaseStarted(phase="play", total=2, sessions=20))
    listen(Advanced(key="a", sessions=10))
    listen(Finished(key="a", status="failed", error="no key [x]"))
    assert listen.bar.tasks[0].fields["episodes"] == "1/2 episodes, 1 failed"
    listen(PhaseStarted(phase="score", total=2))
    listen(Finished(key="a"))
    listen(RunEnded(complete=False, hint="stopped; continue with: tradeassay resume x"))
    assert "failed: a: no key [x]" in stream.getvalue()
    assert "continue with: tradeassay resume x" in stream.getvalue()
    assert "asked: 1 call," in stream.getvalue()


def test_who_listens():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert listener("none")(RunEnded(complete=True)) is None
    assert listener(print) is print
    assert isinstance(listener("auto", io.StringIO()), LineListener)
    assert isinstance(listener("auto", Terminal()), BarListener)
    assert isinstance(listener("bar", io.StringIO()), BarListener)
    assert isinstance(listener("lines", Terminal()), LineListener)


def test_a_run_tells_what_it_does(home, tmp_path):
    events = []
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


HOLD = """
import sys, time
from pathlib import Path
from tradeassay_bench.runs.store.folder import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("written", "holder"),
    [
        ("process 5 on node-7.example.org", "process 5 on node-7.example.org"),
        ('{"pid":5,"host":"node-7"}', "another process"),  # as earlier versions wrote it
        ("process 5 on \x1b[31mnode", "another process"),
        ("process 5 on node\nand nobody else", "another process"),
        ("", "another process"),
    ],
)
def test_whoever_holds_a_run_is_named_in_one_line(tmp_path, written, holder):
    path = tmp_path / ".lock"
    path.write_text(written)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RunError) as caught, run_lock(path):
            pass
    assert caught.value.message == f"{tmp_path} is being written by {holder}"


def test_a_second_process_is_told_who_holds_it_and_a_dead_holder_does_not_count(tmp_path):
    path = tmp_path / ".lock"
    path.write_text("garbage is no obstacle")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline().strip() == "held"
        with (
            pytest.raises(
                RunError, match=rf"{tmp_path} is being written by process {child.pid} on "
            ),
            run_lock(path),
        ):
            pass
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert str(child.pid) in path.read_text()
    with run_lock(path):
        assert str(os.getpid()) in path.read_text()
