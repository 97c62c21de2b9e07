"""One writer per run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tradeassay.core.errors import RunError
from tradeassay.runs.store.folder import RunLock

HOLD = """
import sys, time
from pathlib import Path
from tradeassay.runs.store.folder import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_who_holds_it_and_a_dead_holder_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "held"
        with (
            pytest.raises(RunError, match=rf"{tmp_path} is being written by process {child.pid} on "),
            RunLock(path),
        ):
            pass
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert str(child.pid) in path.read_text()
    with RunLock(path):
        assert str(os.getpid()) in path.read_text()


def test_it_can_be_taken_again_and_again(tmp_path: Path) -> None:
    for _ in range(3):
        with RunLock(tmp_path / ".lock"):
            pass


def test_a_garbled_lock_file_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("garbage")
    with RunLock(tmp_path / ".lock"), pytest.raises(RunError, match="is being written by process"):
        with RunLock(tmp_path / ".lock"):
            pass
