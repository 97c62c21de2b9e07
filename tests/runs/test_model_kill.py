"""Killed in the middle of a conversation and resumed, a run ends with the same bytes and asks nothing twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runs_talk as talk
import runs_world as world

from tradeassay.runs import AskStarted, ProgressEvent, resume, run
from tradeassay.runs.verify.report import verify

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def whole(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    """The bytes of an uninterrupted run, and how many questions it asked."""
    folder = tmp_path_factory.mktemp("whole") / "talk"
    log = folder.parent / "log"
    talk.LOG.path = log
    try:
        run(talk.talk_spec("tiny-slow"), folder, executor="inline", home=home)
    finally:
        talk.LOG.path = None
    return same(folder), len(log.read_text().splitlines())


def same(folder: Path) -> dict[str, bytes]:
    """Journals, scores, and here the conversations too: they hold no time."""
    talks = {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("episodes/*/dialogue.jsonl")}
    return world.same_bytes(folder) | talks


@pytest.mark.slow_for("2")
@pytest.mark.parametrize("seed", [1, 2])
def test_kill_9_in_the_middle_of_a_day(
    whole: tuple[dict[str, bytes], int], home: Path, tmp_path: Path, seed: int
) -> None:
    folder, log = tmp_path / "r", tmp_path / "log"
    dice = random.Random(seed)
    for _ in range(2):
        before = len(log.read_text().splitlines()) if log.exists() else 0
        child = subprocess.Popen(
            [sys.executable, str(HERE / "runs_talk_child.py"), str(folder), str(home), str(log)],
            env={**os.environ, "PYTHONPATH": str(HERE)},
            stderr=subprocess.DEVNULL,
        )
        target = before + dice.randint(5, 60)
        while child.poll() is None and (not log.exists() or len(log.read_text().splitlines()) < target):
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        child.wait()
    talk.LOG.path = log
    try:
        resume(folder, executor="inline", home=home)
    finally:
        talk.LOG.path = None
    bytes_, questions = whole
    assert same(folder) == bytes_
    # A question that was being answered when the process died has no recorded answer; nothing else is repeated.
    assert questions <= len(log.read_text().splitlines()) <= questions + 2 * 2
    assert verify(folder, home=home, workers=1).ok


def test_ctrl_c_and_resume(whole: tuple[dict[str, bytes], int], home: Path, tmp_path: Path) -> None:
    asked = 0

    def interrupt(event: ProgressEvent) -> None:
        nonlocal asked
        asked += isinstance(event, AskStarted)
        if asked == 33 and isinstance(event, AskStarted):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="tradeassay resume"):
        run(talk.talk_spec("tiny-slow"), tmp_path / "r", executor="inline", home=home, progress=interrupt)
    resume(tmp_path / "r", executor="inline", home=home)
    assert same(tmp_path / "r") == whole[0]
