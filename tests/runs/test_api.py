"""The Python API: everything the command line does is one call."""

import subprocess
import sys
from pathlib import Path

import pytest
import runs_world as world

import tradeassay
from tradeassay.core.errors import DataError, UserError

world.register()
SMALL = {"agents": ["reversal", {"name": "random", "label": "dice"}], "bootstrap": world.BOOTSTRAP}


def test_one_call_runs_and_the_same_call_continues(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = tradeassay.run("tiny-us-v1", seeds=2, executor="inline", home=home, progress="none", **SMALL)
    assert first.folder == Path("runs") / first.spec.slug
    assert first.spec.slug.startswith("tiny-us-v1-")
    assert [row.agent for row in first.scores.agents] == ["equal-weight", "reversal", "dice"]
    before = world.same_bytes(first.folder)
    again = tradeassay.run(
        benchmarks=["tiny-us-v1"], seeds=[0, 1], executor="inline", home=home, progress="none", **SMALL
    )
    assert again.folder == first.folder
    assert world.same_bytes(first.folder) == before
    assert tradeassay.load_run(first.folder, home=home).scores == first.scores
    assert tradeassay.verify(first.folder, home=home).ok
    assert tradeassay.compare(first, again).pairs[0].comparable
    assert tradeassay.resume(first.folder, home=home, executor="inline", progress="none").complete
    assert first.frames().nav.shape[0] == 5 * 51
    assert "complete" in repr(first)


def test_a_spec_file_and_a_spec(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('benchmarks = ["tiny-us-v1"]\nagents = ["cash"]\nbootstrap = { draws = 20 }\n')
    for what in (path, str(path), tradeassay.load_spec(path)):
        done = tradeassay.run(
            what, folder=tmp_path / "r", home=home, executor="inline", progress="none", slug="named"
        )
        assert done.spec.slug == "named"
    with pytest.raises(UserError, match="so 'agents' has no place"):
        tradeassay.run(path, agents=["cash"])
    assert tradeassay.plan(path, home=home).episodes == 2


def test_making_a_spec() -> None:
    spec = tradeassay.make_spec("tiny-us-v1", slug="s", dataset="x", first="2024-02-01", convention="sound")
    assert {agent.name for agent in spec.agents} >= {"equal-weight", "momentum-12-1", "min-variance"}
    assert spec.datasets == {"tiny-us-v1": ("x",)}
    assert spec.window is not None
    assert (spec.window.first, spec.window.last) == ("2024-02-01", "2024-03-22")
    assert tradeassay.make_spec("tiny-us-v1", seeds=3).seeds == (0, 1, 2)
    assert tradeassay.make_spec("tiny-us-v1", "tiny-ashare-v1") == tradeassay.make_spec(
        benchmarks=["tiny-us-v1", "tiny-ashare-v1"]
    )
    with pytest.raises(UserError, match="nothing is given"):
        tradeassay.make_spec()
    assert tradeassay.make_spec("tiny-us") == tradeassay.make_spec("tiny-us-v1")
    with pytest.raises(UserError, match="tiny-us-v1"):
        tradeassay.make_spec("tiny-us-v7")
    with pytest.raises(UserError, match="different 'last' days"):
        tradeassay.make_spec(["tiny-us-v1", "daily-us-v1"], first="2024-02-01")


def test_listings() -> None:
    momentum = next(info for info in tradeassay.list_agents() if info.name == "reversal")
    assert momentum.summary
    assert momentum.params["lookback"] == 6
    assert "daily-us-v1" in {benchmark.id for benchmark in tradeassay.list_benchmarks()}


def test_the_stored_data_is_listed(home: Path) -> None:
    assert {info.name for info in tradeassay.list_datasets(home)} >= {"tiny-us", "tiny-ashare"}
    assert tradeassay.load_dataset("tiny-us", home).name == "tiny-us"


def test_every_public_name_is_there() -> None:
    for name in tradeassay.__all__:
        assert getattr(tradeassay, name) is not None
    assert set(tradeassay.__all__) <= set(dir(tradeassay))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tradeassay.nothing


@pytest.mark.parametrize("module", ["tradeassay", "tradeassay.runs"])
def test_importing_loads_neither_pandas_nor_inspect(module: str) -> None:
    code = (
        f"import sys, {module};"
        "heavy = [m for m in ('pandas', 'inspect_ai', 'numpy', 'polars', 'pyarrow', 'numba') if m in sys.modules];"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_running_loads_neither_pandas_nor_inspect_into_the_caller(home: Path, tmp_path: Path) -> None:
    code = (
        "import sys, runs_world, tradeassay;"
        "tradeassay.run(runs_world.tiny_spec(), folder=sys.argv[1], home=sys.argv[2], workers=2, progress='none');"
        "heavy = [m for m in ('pandas', 'inspect_ai', 'polars', 'numba', 'scipy', 'exchange_calendars')"
        " if m in sys.modules]; assert not heavy, heavy"
    )
    env = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "r"), str(home)], check=True, env=env)


@pytest.mark.slow
def test_an_agent_of_the_calling_script_is_played_in_its_process(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import sys, runs_world, tradeassay\n"
        "from tradeassay.agents import AgentConfig, agents\n"
        "from tradeassay.core.orders import Decision, Order\n"
        "@agents.register('mine')\n"
        "class Mine:\n"
        "    summary, Config = 'buys once', AgentConfig\n"
        "    def __init__(self, config): pass\n"
        "    def begin(self, info, rng): pass\n"
        "    def answer(self, request):\n"
        "        seen = request.observation\n"
        "        order = Order(symbol=seen.universe[0], amount=10, side='BUY')\n"
        "        return Decision(orders=(order,) if seen.step == 0 else ())\n"
        "runs_world.register()\n"
        "run = tradeassay.run('tiny-us-v1', agents=['mine'], folder=sys.argv[1], home=sys.argv[2], workers=2)\n"
        "print(run.failed, len(run.frames().trades))\n"
    )
    env = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "r"), str(home)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{} 9")


def test_universe_and_index_are_options_of_the_run(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tradeassay.core.events import Filled

    monkeypatch.chdir(tmp_path)

    plain = tradeassay.make_spec("tiny-us-v1", agents=["equal-weight"])
    spec = tradeassay.make_spec("tiny-us-v1", agents=["equal-weight"], universe="IDX:3", index="IDX")
    assert spec.slug != plain.slug and plain.universe is not spec.universe
    done = tradeassay.run(spec, executor="inline", home=home, progress="none")
    market = done.manifest.benchmark(done.episodes[0]).market
    assert (market.universe, market.index) == ("IDX:3", "IDX")
    bought = {
        event.symbol
        for record in done.records(done.episodes[0].key)
        for event in record.events
        if isinstance(event, Filled)
    }
    assert 0 < len(bought) <= 3
    with pytest.raises(DataError, match="no index 'NOPE' is known"):
        tradeassay.run("tiny-us-v1", agents=["cash"], index="NOPE", executor="inline", home=home, progress="none")
    with pytest.raises(UserError, match="asks for 99 names"):
        tradeassay.run(
            "tiny-us-v1", agents=["cash"], universe="IDX:99", executor="inline", home=home, progress="none"
        )
