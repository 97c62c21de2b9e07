"""Ray (an extra): the same bytes as everywhere."""

import os
import sys

import msgspec
import pytest
import runs_code_toy as toy
import runs_talk as talk
import runs_world as world

from tradeassay.core.errors import DataError
from tradeassay.verdict.record import VerdictConfig
from tradeassay_bench.agents.factor_models.fitting import list_trained
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors import HERE, Spread, make_executor
from tradeassay_bench.core.executors.task import Lost, Task
from tradeassay_bench.data import synthetic, write_snapshot
from tradeassay_bench.examine import assay
from tradeassay_bench.examine.baselines import BaselineSpec, Span, train_baselines
from tradeassay_bench.examine.leaks import LeakTestConfig
from tradeassay_bench.examine.leaks.examine import leak_tests
from tradeassay_bench.examine.luck import LuckConfig, luck_of_run
from tradeassay_bench.runs import AgentSpec, Asking, run
from tradeassay_bench.runs.play import trading
from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.benchmarks.quantcode.check import validate_tasks

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One small cluster for all tests, started by our own executor: starting takes ten seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        with make_executor("ray", entry="runs_entry:perform", workers=2) as executor:
            yield executor
        assert not ray.is_initialized()


def test_the_same_bytes_from_ray(finished, home, tmp_path):
    done = run(world.tiny_spec(), tmp_path / "r", executor="ray", workers=2, home=home)
    assert world.same_bytes(done.folder) == world.same_bytes(finished.folder)
    assert ray.is_initialized(), "a cluster that was there before is left running"


def test_a_users_agent_and_a_failed_one(home, tmp_path):
    agents = (AgentSpec(name="test-provoker"), AgentSpec(name="test-cannot-begin"))
    spec = world.tiny_spec(agents=agents, benchmarks=("tiny-us-v1",), seeds=(0,))
    one = run(spec, tmp_path / "ray", executor="ray", workers=2, home=home)
    two = run(spec, tmp_path / "inline", executor="inline", home=home)
    assert len(one.failed) == 1
    assert world.same_bytes(one.folder) == world.same_bytes(two.folder)


def test_errors_keep_their_type_and_a_lost_task_is_noticed(cluster):
    with pytest.raises(DataError, match="the data is gone"):
        list(cluster.perform([Task("a", b"raise")], lambda key, n: None))
    (lost,) = cluster.perform([Task("a", b"die")], lambda key, n: None)
    assert isinstance(lost, Lost)
    assert "lost" in lost.reason


def test_models_play_on_the_cluster_each_with_its_recording(home, tmp_path, monkeypatch):
    """Their conversation is a test's own, which workers have to import as they would a plugin."""
    monkeypatch.setattr(
        trading, "modules_of", lambda episodes: ((talk.__name__, "runs_agents"), False)
    )
    spec = talk.talk_spec("tiny-good", "tiny-mute")
    here = run(spec, tmp_path / "here", executor="inline", home=home)
    there = run(spec, tmp_path / "there", executor="ray", workers=2, home=home)
    assert world.same_bytes(there.folder) == world.same_bytes(here.folder)
    again = Asking(replay=True, recordings=there.folder)
    replayed = run(spec, tmp_path / "again", executor="ray", home=home, asking=again)
    for episode in replayed.episodes:
        name = f"episodes/{episode.key}/events.jsonl"
        assert (replayed.folder / name).read_bytes() == (here.folder / name).read_bytes()


def test_programs_are_examined_on_the_cluster(tmp_path):
    here = run(toy.ToySpec(), tmp_path / "here", workers=1)
    there = run(toy.ToySpec(), tmp_path / "there", executor="ray")
    for name in ("scores.json", *(f"episodes/{one.key}/events.jsonl" for one in here.episodes)):
        assert (there.folder / name).read_bytes() == (here.folder / name).read_bytes()


@pytest.mark.slow
def test_luck_leaks_and_verdicts_from_the_cluster(finished):
    ray_, config = (
        Spread(executor="ray", workers=2),
        VerdictConfig(portfolios=100, draws=100, least=20),
    )
    hundred = LuckConfig(portfolios=100)
    assert luck_of_run(finished, config=hundred, spread=ray_) == luck_of_run(
        finished, config=hundred
    )
    assert assay(finished, config, spread=ray_) == assay(finished, config)
    short = LeakTestConfig(sessions=4)
    assert leak_tests(finished, config=short, spread=ray_) == leak_tests(finished, config=short)


@pytest.mark.slow
def test_references_and_decoys_are_validated_on_the_cluster():
    tasks = [load_task("d-sma-cross-long"), load_task("d-tuesday-to-friday")]
    told: list[str] = []
    there = validate_tasks(
        tasks, secret="5e" * 16, executor="ray", workers=2, tell=lambda line: told.append(line.name)
    )
    here = validate_tasks(tasks, secret="5e" * 16, workers=1)
    timeless = [
        [msgspec.structs.replace(line, cpu_s=0.0) for line in one.lines] for one in (there, here)
    ]
    assert timeless[0] == timeless[1] and (there.judges, there.twins) == (here.judges, here.twins)
    assert there.ok and sorted(told) == sorted(line.name for line in here.lines)


@pytest.mark.slow
def test_factor_models_are_trained_on_the_cluster(tmp_path, monkeypatch):
    """Each node has an environment of its own, in which nobody has set where the data is."""
    pytest.importorskip("qlib", reason="factor models need pip install 'tradeassay[qlib]'")
    panel = synthetic.generate(
        synthetic.preset("ashare", seed=11, names=40, sessions=420, fundamentals=False)
    ).panel
    days = [str(day) for day in panel.sessions]
    write_snapshot(panel, tmp_path / "world")
    spec = BaselineSpec(
        dataset=str(tmp_path / "world"),
        models=("linear", "lightgbm"),
        train=Span(days[255], days[340]),
        valid=Span(days[341], days[380]),
        size="small",
        threads=1,
        device="cpu",
    )
    trained = []
    for place, spread in (("there", Spread(executor="ray", workers=2)), ("here", HERE)):
        monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / place))
        found = train_baselines(spec, spread=spread)
        assert {one.key for one in list_trained()} == {one.key for one in found}, (
            "they are where this process looks"
        )
        trained.append([msgspec.structs.replace(one, cpu_seconds=0.0) for one in found])
    assert trained[0] == trained[1]


@pytest.mark.slow
def test_a_piece_that_kills_every_worker_is_said():
    with pytest.raises(RunError, match="1 of 2 tasks were lost"):
        Spread(executor="ray", workers=2).map(eval, ["1", "__import__('os')._exit(9)"])
