"""What travels to a cluster's nodes: a stand-in performs it here, from bytes.

``test_ray`` has the real one.
"""

import pytest
import runs_code_toy as toy
import runs_talk as talk
import runs_world as world

from tradeassay_bench.core.executors import ray
from tradeassay_bench.core.executors.task import InProcess
from tradeassay_bench.runs import Asking, run
from tradeassay_bench.runs.play import programs

pytestmark = pytest.mark.journey


class Cluster(InProcess):
    """Performs in this process what it is given as bytes, and counts."""

    performed = 0

    def __init__(self, entry, workers=None, modules=()):
        super().__init__(entry)

    def __enter__(self):
        return self

    def most(self):
        return 2

    def perform(self, tasks, tick):
        for result in super().perform(tasks, tick):
            type(self).performed += 1
            yield result


@pytest.fixture(autouse=True)
def cluster(monkeypatch):
    monkeypatch.setattr(Cluster, "performed", 0)
    monkeypatch.setattr(ray, "RayExecutor", Cluster)
    monkeypatch.setattr(programs, "RayExecutor", Cluster)
    programs.opened_protocol.cache_clear()
    yield Cluster
    programs.opened_protocol.cache_clear()


def test_programs_are_examined_there(cluster, tmp_path):
    toy.fresh()
    here = run(toy.ToySpec(), tmp_path / "here", workers=1)
    toy.fresh()
    there = run(toy.ToySpec(), tmp_path / "there", executor="ray")
    assert not there.failed and cluster.performed == 9
    for name in ("scores.json", *(f"episodes/{one.key}/events.jsonl" for one in here.episodes)):
        assert (there.folder / name).read_bytes() == (here.folder / name).read_bytes()


def test_models_play_there_unless_their_money_is_capped(cluster, home, tmp_path):
    spec = talk.talk_spec("tiny-good")
    here = run(spec, tmp_path / "here", executor="inline", home=home)
    there = run(spec, tmp_path / "there", executor="ray", home=home)
    rules = sum(not episode.by_model for episode in there.episodes)
    models = len(there.episodes) - rules
    pieces = cluster.performed
    assert models and pieces > models + rules, "data, episodes of both kinds, and scores"
    assert world.same_bytes(there.folder) == world.same_bytes(here.folder)
    capped = run(spec, tmp_path / "capped", executor="ray", home=home, asking=Asking(max_usd=1.0))
    assert cluster.performed == pieces + pieces - models
    assert world.same_bytes(capped.folder) == world.same_bytes(here.folder)
