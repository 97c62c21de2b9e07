"""Ray (an extra): the same bytes as everywhere."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import runs_world as world

from tradeassay.core.errors import DataError
from tradeassay.runs import AgentSpec, Run, run
from tradeassay.runs.executors import Lost, Task, TaskExecutor, make_executor

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[TaskExecutor]:
    """One small cluster for all tests, started by our own executor: starting takes ten seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        with make_executor("ray", entry="runs_entry:perform", workers=2) as executor:
            yield executor
        assert not ray.is_initialized()


def test_the_same_bytes_from_ray(finished: Run, home: Path, tmp_path: Path) -> None:
    done = run(world.tiny_spec(), tmp_path / "r", executor="ray", workers=2, home=home)
    assert world.same_bytes(done.folder) == world.same_bytes(finished.folder)
    assert ray.is_initialized(), "a cluster that was there before is left running"


def test_a_users_agent_and_a_failed_one(home: Path, tmp_path: Path) -> None:
    agents = (AgentSpec(name="test-provoker"), AgentSpec(name="test-cannot-begin"))
    spec = world.tiny_spec(agents=agents, benchmarks=("tiny-us-v1",), seeds=(0,))
    one = run(spec, tmp_path / "ray", executor="ray", workers=2, home=home)
    two = run(spec, tmp_path / "inline", executor="inline", home=home)
    assert len(one.failed) == 1
    assert world.same_bytes(one.folder) == world.same_bytes(two.folder)


def test_errors_keep_their_type_and_a_lost_task_is_noticed(cluster: TaskExecutor) -> None:
    with pytest.raises(DataError, match="the data is gone"):
        list(cluster.perform([Task("a", b"raise")], lambda key, n: None))
    (lost,) = cluster.perform([Task("a", b"die")], lambda key, n: None)
    assert isinstance(lost, Lost)
    assert "lost" in lost.reason
