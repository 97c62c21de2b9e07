"""Executors: the same results from all, errors with their type, deaths noticed, clean ends."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors import make_executor, pool
from tradeassay_bench.core.executors.pool import LocalProcesses
from tradeassay_bench.core.executors.task import (
    InProcess,
    Lost,
    Task,
    TaskResult,
    cores,
    one_thread,
)

ENTRY = "runs_entry:perform"


def perform(executor, *payloads):
    tasks = [Task(str(place), payload.encode()) for place, payload in enumerate(payloads)]
    ticks = {}
    results = {}
    for result in executor.perform(
        tasks, lambda key, n: ticks.__setitem__(key, ticks.get(key, 0) + n)
    ):
        assert isinstance(result, TaskResult)
        results[result.key] = result.payload
    if any(payload.startswith("echo") for payload in payloads):
        assert set(ticks.values()) == {7}
    return results


def wait_for(path, text=None, seconds=120.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and (found := path.read_text()) and (text is None or found == text):
            return found
        time.sleep(0.01)
    raise AssertionError(f"{path} did not become {text!r}")


@pytest.fixture(params=["inline", "forkserver", "spawn"])
def executor(request, monkeypatch):
    monkeypatch.setattr(pool, "METHOD", request.param)
    with InProcess(ENTRY) if request.param == "inline" else LocalProcesses(ENTRY, 2) as made:
        yield made


def test_every_task_has_its_result_and_its_ticks(executor):
    words = [f"echo:{'abc' * n}" for n in range(7)]
    assert perform(executor, *words) == {str(n): ("abc" * n)[::-1].encode() for n in range(7)}
    assert perform(executor, "echo:again") == {"0": b"niaga"}
    assert perform(executor) == {}


def test_an_error_keeps_its_type_and_its_mend(executor):
    with pytest.raises(DataError) as caught:
        perform(executor, "raise")
    assert (caught.value.message, caught.value.hint) == ("the data is gone", "bring it back")


@pytest.mark.parametrize("first", ["pid:0.0", "raise"])
def test_a_result_that_nobody_waited_for_is_not_the_next_tasks(first):
    with LocalProcesses(ENTRY, 2) as executor:
        tasks = [Task(str(place), word.encode()) for place, word in enumerate((first, "pid:0.3"))]
        left_early = executor.perform(tasks, lambda key, n: None)
        with contextlib.suppress(DataError):
            next(iter(left_early))
        left_early.close()
        assert perform(executor, "echo:ab", "echo:cd") == {"0": b"ba", "1": b"dc"}


def test_an_error_that_cannot_travel_is_told_in_words():
    with LocalProcesses(ENTRY, 2) as executor, pytest.raises(RunError, match="_Strange: strange"):
        perform(executor, "strange")


def test_work_is_spread_over_processes_that_do_not_run_threads_of_their_own():
    with LocalProcesses(ENTRY, 2) as executor:
        pids = set(perform(executor, *["pid:0.4"] * 6).values())
        assert len(pids) == 2
        assert str(os.getpid()).encode() not in pids
        assert perform(executor, "env:OPENBLAS_NUM_THREADS") == {"0": b"1"}


def test_a_matrix_product_has_the_same_bits_everywhere():
    products = []
    for made in (InProcess(ENTRY), LocalProcesses(ENTRY, 2)):
        with made as executor:
            products.append(perform(executor, "product")["0"])
    assert products[0] == products[1]


def test_threads_come_back_after_the_block():
    table = np.random.default_rng(0).normal(size=(252, 500))
    before = (table.T @ table).tobytes()
    with one_thread():
        pass
    assert (table.T @ table).tobytes() == before


def test_a_worker_that_dies_loses_its_task_and_nothing_else():
    tasks = [Task("a", b"echo:x"), Task("b", b"die"), Task("c", b"echo:y"), Task("d", b"echo:z")]
    with LocalProcesses(ENTRY, 2) as executor:
        results = {result.key: result for result in executor.perform(tasks, lambda key, n: None)}
        assert isinstance(results["b"], Lost)
        assert "died" in results["b"].reason
        assert [results[key] for key in "acd"] == [
            TaskResult("a", b"x"),
            TaskResult("c", b"y"),
            TaskResult("d", b"z"),
        ]
        assert perform(executor, "echo:x") == {"0": b"x"}


def test_leaving_stops_a_task_between_two_steps(tmp_path):
    marker = tmp_path / "marker"
    with pytest.raises(KeyboardInterrupt), LocalProcesses(ENTRY, 2) as executor:
        for _ in executor.perform(
            [Task("a", f"wait:{marker}".encode()), Task("b", b"echo:x")], lambda key, n: None
        ):
            wait_for(marker, "started")
            raise KeyboardInterrupt
    assert marker.read_text() == "stopped"


def started(tmp_path, text, *words, **how):
    """Start a script, which is a file as a user's is."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("PYTHONUNBUFFERED", None)  # which would hide output that is lost in a buffer
    head = "import sys\nfrom tradeassay_bench.core.executors.task import Task\n"
    head += "from tradeassay_bench.core.executors.pool import LocalProcesses\n"
    (tmp_path / "script.py").write_text(head + text)
    command = [sys.executable, str(tmp_path / "script.py"), *map(str, words)]
    return subprocess.Popen(command, env=env, text=True, **how)


PARENT = """
with LocalProcesses("runs_entry:perform", 2) as executor:
    list(executor.perform([Task("a", f"{sys.argv[1]}:{sys.argv[2]}".encode())], lambda key, n: None))
"""


@pytest.mark.journey
@pytest.mark.parametrize("word", ["wait", "deaf"])
def test_workers_end_when_their_parent_is_killed(word, tmp_path):
    marker = tmp_path / "marker"
    with started(tmp_path, PARENT, word, marker) as parent:
        found = wait_for(marker)
        parent.kill()
        parent.wait()
    if word == "wait":
        wait_for(marker, "stopped")
        return
    deadline = time.monotonic() + 120
    while Path(f"/proc/{found}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{found}").exists()


STOPPED_AT_ONCE = """
import os, signal, threading, time
from concurrent.futures import ProcessPoolExecutor
start = ProcessPoolExecutor._spawn_process
def spawn(self):
    start(self)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
ProcessPoolExecutor._spawn_process = spawn
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()  # one that draws: it takes the signal
try:
    with LocalProcesses("runs_entry:perform", 2) as executor:
        list(executor.perform([Task("a", b"echo:")], lambda key, n: None))
except KeyboardInterrupt:
    print("stopped")
"""
UNGUARDED = """
with LocalProcesses('runs_entry:perform', 2) as executor:
    results = executor.perform([Task('a', b'print:'), Task('b', b'echo:')], lambda key, n: None)
    print(len(list(results)))
"""


@pytest.mark.parametrize(
    ("text", "out", "err"),
    [(STOPPED_AT_ONCE, "stopped\n", ""), (UNGUARDED, "2\n", "an agent prints to stdout\n")],
    ids=[
        "a stop while workers start is no traceback of theirs",
        "no main guard, and stdout stays clean",
    ],
)
def test_a_script_shows_no_more_than_it_should(text, out, err, tmp_path):
    with started(tmp_path, text, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as script:
        assert (*script.communicate(timeout=250), script.returncode) == (out, err, 0)


def test_workers_that_cannot_start_say_so():
    executor = LocalProcesses("no_such_module:perform", 2)
    with executor, pytest.raises(RunError, match=r"cannot be started: .*no_such_module"):
        list(executor.perform([Task("a", b"")], lambda key, n: None))


def test_choosing_one(monkeypatch):
    assert isinstance(make_executor("local", entry=ENTRY, workers=1), InProcess)
    assert isinstance(make_executor("inline", entry=ENTRY, workers=4), InProcess)
    assert isinstance(make_executor("local", entry=ENTRY, workers=2), LocalProcesses)
    assert cores() >= 1
    monkeypatch.setattr("tradeassay_bench.core.executors.cores", lambda: 2)
    assert isinstance(make_executor("local", entry=ENTRY), LocalProcesses), (
        "as many as there are cores"
    )
    with pytest.raises(UserError, match="unknown executor 'cloud'"):
        make_executor("cloud", entry=ENTRY)
    with pytest.raises(UserError, match="expected 1 or more workers, got 0"):
        make_executor("local", entry=ENTRY, workers=0)
