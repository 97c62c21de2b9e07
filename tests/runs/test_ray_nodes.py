"""Two nodes, one of which is killed in the middle: what it did is lost, done again, and has the same bytes."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import runs_world as world

from tradeassay.core.executors import Task, TaskResult
from tradeassay.runs import Run, run
from tradeassay.runs.progress import Finished

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def nodes() -> Iterator[tuple[Any, Any]]:
    """A cluster of two nodes on this machine, one core each."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        second = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        try:
            yield cluster, second
        finally:
            ray.shutdown()
            cluster.shutdown()


def test_what_a_killed_node_was_doing_is_done_again(nodes: tuple[Any, Any]) -> None:
    from tradeassay.core.executors.ray import RayExecutor

    cluster, second = nodes
    with RayExecutor("runs_entry:perform") as executor:
        results, killed = [], False
        for result in executor.perform([Task(str(n), b"pid:2.0") for n in range(8)], lambda key, n: None):
            results.append(result)
            if not killed and len(results) == 2:
                cluster.remove_node(second, allow_graceful=False)
                killed = True
        assert executor.lost >= 1, "the node was killed while it worked"
    assert sorted(one.key for one in results) == [str(n) for n in range(8)]
    assert all(isinstance(one, TaskResult) for one in results)


def test_a_run_has_the_same_bytes_after_a_node_was_killed(
    nodes: tuple[Any, Any], finished: Run, home: Path, tmp_path: Path
) -> None:
    cluster, second = nodes
    ended: list[str] = []

    def watch(event: object) -> None:
        if isinstance(event, Finished):
            ended.append(event.key)
            if len(ended) == 1:
                cluster.remove_node(second, allow_graceful=False)

    done = run(world.tiny_spec(), tmp_path / "r", executor="ray", home=home, progress=watch)
    assert len(ended) > 1 and not done.failed
    assert world.same_bytes(done.folder) == world.same_bytes(finished.folder)
