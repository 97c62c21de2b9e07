"""Two nodes, one of which is killed in the middle: what it did is lost, done again, and has the
same bytes.
"""

import os
import sys
import threading
import time

import pytest
import runs_world as world

from tradeassay_bench.agents.own_file import own_agent
from tradeassay_bench.core.executors.ray import RayExecutor
from tradeassay_bench.core.executors.task import Task, TaskResult
from tradeassay_bench.runs import AgentSpec, run

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def nodes():
    """A cluster of two nodes on this machine, one core each."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        second = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        try:
            yield cluster, second
        finally:
            ray.shutdown()
            cluster.shutdown()


@pytest.fixture
def marks(nodes, tmp_path):
    """Where the first task on the second node says that it is there, which kills the node while
    it sleeps.
    """
    cluster, second = nodes
    folder = tmp_path / "marks"
    folder.mkdir()
    (
        folder / next(node["NodeID"] for node in ray.nodes() if node["NodeID"] != second.node_id)
    ).touch()

    def kill():
        while not (folder / second.node_id).exists():
            time.sleep(0.1)
        cluster.remove_node(second, allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    yield folder
    killer.join()


def test_what_a_killed_node_was_doing_is_done_again(marks):
    tasks = [Task(str(n), f"{marks}:{n}".encode()) for n in range(8)]
    with RayExecutor("runs_entry:perform_on_node") as executor:
        results = list(executor.perform(tasks, lambda key, n: None))
    assert executor.lost == 1, (
        "the task that said it was on the second node, and no other, was lost"
    )
    assert sorted(results, key=lambda one: one.key) == [
        TaskResult(str(n), str(n).encode()) for n in range(8)
    ]


SLEEPER = """
import pathlib
import ray
from runs_entry import hold_first_of_node
from tradeassay_bench.core.orders import Decision, Order

class Sleeper:
    def answer(self, request):
        seen = request.observation
        if seen.step == 1 and ray.is_initialized():
            hold_first_of_node(pathlib.Path("{folder}"))
        return Decision(orders=(Order(symbol=seen.universe[0], amount=10, side="BUY"),) if seen.step == 0 else ())
"""
"""The first episode on a node says that it is there and sleeps in its second session until the
node is killed.
"""


def test_a_run_has_the_same_bytes_after_a_node_that_played_an_episode_was_killed(
    marks, home, tmp_path, monkeypatch
):
    (tmp_path / "sleeper.py").write_text(SLEEPER.replace("{folder}", str(marks)))
    used: list[RayExecutor] = []

    def opened(self):
        used.append(self)
        return self

    monkeypatch.setattr(RayExecutor, "__enter__", opened)
    # Behind walls it could neither write its mark nor ask Ray where it is.
    name, params = own_agent(f"{tmp_path}/sleeper.py:Sleeper", {"files": "open"})
    spec = world.tiny_spec(agents=(AgentSpec(name=name, params=params),), seeds=(0,))

    there = run(spec, tmp_path / "there", executor="ray", home=home)
    assert not there.failed and sum(one.lost for one in used) == 1, (
        "the episode on the killed node was lost"
    )
    here = run(spec, tmp_path / "here", executor="inline", home=home)
    assert world.same_bytes(there.folder) == world.same_bytes(here.folder)
