"""Killed at any moment and resumed, a run ends with the same bytes. Ctrl-C ends it cleanly."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest
import runs_child
import runs_talk as talk
import runs_world as world

from tradeassay_bench.runs import AskStarted, Run, resume, run
from tradeassay_bench.runs.play.progress import Advanced, PhaseStarted
from tradeassay_bench.runs.verify.report import verify

pytestmark = pytest.mark.journey

HERE = Path(__file__).parent


def start(kind, folder, home, other):
    return subprocess.Popen(
        [sys.executable, HERE / "runs_child.py", kind, folder, home, str(other)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        # Where the tests run in the background, Ctrl-C is ignored, and children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def written(folder):
    return sum(path.stat().st_size for path in folder.glob("episodes/*/[!.]*"))


@pytest.fixture(scope="module")
def whole(home, tmp_path_factory):
    done = run(
        runs_child.spec(), tmp_path_factory.mktemp("whole") / "r", executor="inline", home=home
    )
    assert not done.failed
    return world.same_bytes(done.folder)


@pytest.mark.slow_for("1-2", "2-1")
@pytest.mark.parametrize(("seed", "workers"), [(1, 2), (2, 1)])
def test_killed_again_and_again(whole, home, tmp_path, seed, workers):
    folder = tmp_path / "r"
    dice = random.Random(seed)
    kills = 0
    for _ in range(4):
        with start("rules", folder, home, workers) as child:
            delay = dice.uniform(0.0, 0.5)
            before = written(folder)
            deadline = time.monotonic() + 60
            # Wait until this process writes something, then strike a random moment later.
            while (
                written(folder) == before and child.poll() is None and time.monotonic() < deadline
            ):
                time.sleep(0.002)
            time.sleep(delay)
            if child.poll() is None:
                kills += 1
            child.kill()
            child.wait()
    assert kills >= 2
    resume(folder, workers=workers, home=home)
    assert world.same_bytes(folder) == whole
    assert verify(folder, home=home).ok


def test_killed_with_all_its_workers_before_anything_is_played(whole, home, tmp_path):
    for delay in (0.05, 0.3):
        with start("rules", tmp_path / "r", home, 2) as child:
            time.sleep(delay)
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    run(runs_child.spec(), tmp_path / "r", executor="inline", home=home)
    assert world.same_bytes(tmp_path / "r") == whole


@pytest.mark.slow_for("1")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_cleanly_and_says_how_to_resume(whole, home, tmp_path, workers):
    folder = tmp_path / "r"
    with start("rules", folder, home, workers) as child:
        while written(folder) == 0 and child.poll() is None:
            time.sleep(0.002)
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=200)
    # An uncaught KeyboardInterrupt ends Python by the signal itself, which a shell shows as 130.
    assert child.returncode == -signal.SIGINT
    assert f"stopped; continue with: tradeassay resume {folder}" in said
    assert not Run.load(folder).complete
    assert not Run.load(folder).failed
    for path in folder.glob("episodes/*/events.jsonl"):
        assert path.read_bytes().endswith(b"\n") or path.stat().st_size == 0
    resume(folder, workers=2, home=home)
    assert world.same_bytes(folder) == whole


@pytest.mark.slow
def test_a_listener_that_breaks_is_no_failure_of_an_episode(whole, home, tmp_path):
    def broken(event):
        if isinstance(event, Advanced):
            raise ValueError("the listener is broken")

    for workers in (1, 2):
        with pytest.raises(ValueError, match="the listener is broken"):
            run(runs_child.spec(), tmp_path / "r", workers=workers, home=home, progress=broken)
    assert not Run.load(tmp_path / "r").failed
    resume(tmp_path / "r", executor="inline", home=home)
    assert world.same_bytes(tmp_path / "r") == whole


@pytest.fixture(scope="module")
def talked(home, tmp_path_factory):
    """The bytes of an uninterrupted run, and how many questions it asked."""
    folder = tmp_path_factory.mktemp("whole") / "talk"
    log = folder.parent / "log"
    with mock.patch.object(talk.LOG, "path", log):
        run(talk.talk_spec("tiny-slow"), folder, executor="inline", home=home)
    return same(folder), len(log.read_text().splitlines())


def same(folder):
    """Journals, scores, and here the conversations too: they hold no time."""
    talks = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("episodes/*/dialogue.jsonl")
    }
    return world.same_bytes(folder) | talks


@pytest.mark.slow_for("2")
@pytest.mark.parametrize("seed", [1, 2])
def test_kill_9_in_the_middle_of_a_day(talked, home, tmp_path, seed):
    folder, log = tmp_path / "r", tmp_path / "log"
    dice = random.Random(seed)
    for _ in range(2):
        before = len(log.read_text().splitlines()) if log.exists() else 0
        target = before + dice.randint(5, 60)
        with start("model", folder, home, log) as child:
            while child.poll() is None and (
                not log.exists() or len(log.read_text().splitlines()) < target
            ):
                time.sleep(0.002)
            child.kill()
            child.wait()
    with mock.patch.object(talk.LOG, "path", log):
        resume(folder, executor="inline", home=home)
    bytes_, questions = talked
    assert same(folder) == bytes_
    # A question that was being answered when the process died has no recorded answer; nothing else is repeated.
    assert questions <= len(log.read_text().splitlines()) <= questions + 2 * 2
    assert verify(folder, home=home, workers=1).ok


@pytest.mark.parametrize(
    ("kind", "count", "said"),
    [
        (PhaseStarted, 1, "repeat the same command"),
        (Advanced, 60, "tradeassay resume {}"),
        (AskStarted, 33, "tradeassay resume {}"),
    ],
)
def test_ctrl_c_in_the_callers_process(kind, count, said, whole, talked, home, tmp_path):
    folder, seen, talks = tmp_path / "r", 0, kind is AskStarted

    def interrupt(event):
        nonlocal seen
        seen += isinstance(event, kind)
        if seen == count and isinstance(event, kind):
            raise KeyboardInterrupt

    spec = talk.talk_spec("tiny-slow") if talks else runs_child.spec()
    with pytest.raises(KeyboardInterrupt, match=said.format(folder)):
        run(spec, folder, executor="inline", home=home, progress=interrupt)
    assert (
        (written(folder) > 0) == (folder / "manifest.json").exists() == (kind is not PhaseStarted)
    )
    run(spec, folder, executor="inline", home=home)
    assert (same(folder) == talked[0]) if talks else (world.same_bytes(folder) == whole)
