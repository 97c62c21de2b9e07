"""Two nodes, one of which is killed in the middle: what it did is lost, done again, and has the same bytes."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import runs_world as world

from tradeassay.agents.own_file import own_agent
from tradeassay.core.executors import Task, TaskResult
from tradeassay.core.executors.ray import RayExecutor
from tradeassay.runs import AgentSpec, run

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


SLEEPER = """
import pathlib, time
import ray
from tradeassay.core.orders import Decision, Order

class Sleeper:
    def answer(self, request):
        seen = request.observation
        if seen.step == 1 and ray.is_initialized():
            marker = pathlib.Path("{folder}") / ray.get_runtime_context().get_node_id()
            if not marker.exists():
                marker.touch()
                time.sleep(60)
        return Decision(orders=(Order(symbol=seen.universe[0], amount=10, side="BUY"),) if seen.step == 0 else ())
"""
"""The first episode on a node says that it is there and sleeps in its second session until the node is killed."""


def test_a_run_has_the_same_bytes_after_a_node_that_played_an_episode_was_killed(
    nodes: tuple[Any, Any], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, second = nodes
    marks = tmp_path / "marks"
    marks.mkdir()
    (marks / next(node["NodeID"] for node in ray.nodes() if node["NodeID"] != second.node_id)).touch()
    (tmp_path / "sleeper.py").write_text(SLEEPER.replace("{folder}", str(marks)))
    used: list[RayExecutor] = []

    def opened(self: RayExecutor) -> RayExecutor:
        used.append(self)
        return self

    monkeypatch.setattr(RayExecutor, "__enter__", opened)
    name, params = own_agent(f"{tmp_path}/sleeper.py:Sleeper", {})
    spec = world.tiny_spec(agents=(AgentSpec(name=name, params=params),), seeds=(0,))

    def kill() -> None:
        while not (marks / second.node_id).exists():
            time.sleep(0.1)
        cluster.remove_node(second, allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    there = run(spec, tmp_path / "there", executor="ray", home=home)
    killer.join()
    assert not there.failed and sum(one.lost for one in used) == 1, "the episode on the killed node was lost"
    here = run(spec, tmp_path / "here", executor="inline", home=home)
    assert world.same_bytes(there.folder) == world.same_bytes(here.folder)
