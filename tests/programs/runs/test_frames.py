"""The Python API: everything the command line does is one call, and a run is data frames."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
import runs_talk as talk
import runs_world as world
from click.testing import CliRunner
from tests.programs.report.code_report_sample import code_run

import tradeassay_bench
from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.cli.runs import report
from tradeassay_bench.runs import AgentSpec, run
from tradeassay_bench.runs.store.frames import SCHEMAS
from tradeassay_bench.runs.summary.trajectories import training_lines, trajectories

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def busy(home, tmp_path_factory):
    agents = (AgentSpec(name="test-provoker"), AgentSpec(name="test-never-answers"))
    folder = tmp_path_factory.mktemp("busy")
    return run(
        world.tiny_spec("busy", agents=agents, seeds=(0,)),
        folder / "r",
        executor="inline",
        home=home,
    )


@pytest.fixture(scope="module")
def frames(busy):
    return busy.frames("polars")


def test_nav_is_the_series(busy, frames):
    for episode in busy.episodes:
        rows = frames.nav.filter(pl.col("episode") == episode.key)
        assert rows["nav"].to_list() == busy.series(episode.key).nav.tolist()
        assert rows["session"].to_list()[0] is None
        assert [str(day) for day in rows["session"].to_list()[1:]] == list(
            busy.series(episode.key).sessions
        )
    total = frames.nav.select(
        (pl.col("cash") + pl.col("positions") - pl.col("nav")).abs().max()
    ).item()
    assert total < 1e-6


def test_trades_and_positions_add_up(frames):
    key = "tiny-us-v1__tiny-us__test-provoker__s0"
    trades = frames.trades.filter(pl.col("episode") == key)
    assert set(trades["side"].unique()) == {"BUY", "SELL"}
    last = frames.positions.filter((pl.col("episode") == key) & (pl.col("step") == 49))
    held = dict(zip(last["symbol"], last["quantity"], strict=True))
    for symbol in ("S4", "S5", "S6", "S7"):  # no split, no delisting
        signed = trades.filter(pl.col("symbol") == symbol).select(
            (pl.col("quantity") * pl.when(pl.col("side") == "BUY").then(1).otherwise(-1)).sum()
        )
        assert signed.item() == pytest.approx(held.get(symbol, 0.0))
    assert last["weight"].sum() <= 1.0 + 1e-9


def test_rejections_decisions_and_scores(busy, frames):
    assert set(frames.rejections["reason"].unique()) >= {"insufficient_shares", "lot"}
    name = busy.names["test-never-answers"]  # a rule from elsewhere has that in its name
    failed = frames.decisions.filter(pl.col("agent") == name)
    assert failed["status"].unique().to_list() == ["failed"]
    scores = frames.scores.filter((pl.col("agent") == name) & (pl.col("measure") == "sharpe"))
    assert scores["value"].to_list() == [None, None]
    assert all("no usable answer" in reason for reason in scores["reason"].to_list())
    assert len(frames["scores"]) == len(busy.episodes) * 18


def test_pandas_has_the_same_content(busy, frames):
    for name, table in busy.frames("pandas"):
        assert isinstance(table, pd.DataFrame)
        expected = getattr(frames, name)
        assert list(table.columns) == expected.columns == list(SCHEMAS[name])
        assert len(table) == len(expected)
    assert busy.frames("pandas").nav["nav"].to_list() == frames.nav["nav"].to_list()


def test_empty_tables_keep_their_columns(home, tmp_path):
    spec = world.tiny_spec(agents=(AgentSpec(name="cash"),), benchmarks=("tiny-us-v1",), seeds=(0,))
    done = run(spec, tmp_path / "r", executor="inline", home=home)
    for kind in ("polars", "pandas"):
        rejections = done.frames(kind).rejections
        assert (len(rejections), list(rejections.columns)) == (0, list(SCHEMAS["rejections"]))


def test_another_kind_is_refused(finished):
    with pytest.raises(UserError, match="choose polars or pandas"):
        finished.frames("excel")
    with pytest.raises(UserError, match="one of nav, trades"):
        _ = finished.frames()["naf"]


def test_programs_carry_their_reward_and_what_it_rests_on(tmp_path):
    made = code_run(tmp_path / "r")
    every = list(trajectories(made))
    assert {one.prompt[0]["role"] for one in every} == {"system"}
    solved = [one for one in every if one.evidence.get("stage") == "solved"]
    assert solved and {one.reward for one in solved} == {1.0}
    assert all(one.completion for one in every)
    wrong = [one for one in every if one.evidence.get("stage") == "judge"]
    assert wrong and all(one.reward == pytest.approx(0.08) for one in wrong) and wrong[0].reason
    assert {one.reward for one in every if one.evidence.get("stage") in ("trick", "lookahead")} == {
        0.0
    }
    for line in (sft := list(training_lines(made, "sft"))):
        assert line["reward"] == 1.0 and line["messages"][-1]["role"] == "assistant"
    for line in (pairs := list(training_lines(made, "dpo"))):
        assert line["rewards"][0] > line["rewards"][1] and line["chosen"] != line["rejected"]
    assert sft and pairs
    done = CliRunner().invoke(report, [str(made.folder), "--format", "rl"])
    assert done.exit_code == 0
    assert [json.loads(line)["reward"] for line in done.stdout.splitlines()] == [
        one.reward for one in every
    ]


def test_days_carry_what_the_account_made_of_them(tmp_path, home):
    made = run(talk.talk_spec("tiny-good"), tmp_path / "r", executor="inline", home=home)
    every = list(trajectories(made))
    known = [one for one in every if one.reward is not None]
    first = known[0]
    marks = {record.session: record.events[-1].nav for record in made.records(first.episode)}
    session, until = first.evidence["session"], first.evidence["until"]
    assert first.reward == pytest.approx(marks[until] / marks[session] - 1.0)
    assert len(known) < len(every), "the last day has no next one"
    assert {one.reason for one in every if one.reward is None} == {
        "the record has no reward for this answer"
    }


world.register()

SMALL = {"agents": ["reversal", {"name": "random", "label": "dice"}], "bootstrap": world.BOOTSTRAP}


def test_one_call_runs_and_the_same_call_continues(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = tradeassay_bench.run(
        "tiny-us-v1", seeds=2, executor="inline", home=home, progress="none", **SMALL
    )
    assert first.folder == Path("runs") / first.spec.name
    assert first.spec.name.startswith("tiny-us-v1-")
    assert [row.agent for row in first.scores.agents] == ["equal-weight", "reversal", "dice"]
    before = world.same_bytes(first.folder)
    again = tradeassay_bench.run(
        benchmarks=["tiny-us-v1"],
        seeds=[0, 1],
        executor="inline",
        home=home,
        progress="none",
        **SMALL,
    )
    assert again.folder == first.folder
    assert world.same_bytes(first.folder) == before
    assert tradeassay_bench.load_run(first.folder, home=home).scores == first.scores
    assert tradeassay_bench.verify(first.folder, home=home).ok
    assert tradeassay_bench.compare(first, again).pairs[0].comparable
    assert tradeassay_bench.resume(
        first.folder, home=home, executor="inline", progress="none"
    ).complete
    assert first.frames().nav.shape[0] == 5 * 51
    assert "complete" in repr(first)


def test_a_spec_file_and_a_spec(home, tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text('benchmarks = ["tiny-us-v1"]\nagents = ["cash"]\nbootstrap = { draws = 20 }\n')
    for what in (path, str(path), tradeassay_bench.load_spec(path)):
        done = tradeassay_bench.run(
            what, folder=tmp_path / "r", home=home, executor="inline", progress="none", name="named"
        )
        assert done.spec.name == "named"
    with pytest.raises(UserError, match="'agents' is not valid with a spec"):
        tradeassay_bench.run(path, agents=["cash"])
    assert tradeassay_bench.plan(path, home=home).episodes == 2


def test_making_a_spec():
    spec = tradeassay_bench.make_spec(
        "tiny-us-v1", name="s", dataset="x", first="2024-02-01", convention="corrected"
    )
    assert {agent.name for agent in spec.agents} >= {
        "equal-weight",
        "momentum-12-1",
        "min-variance",
    }
    assert spec.datasets == {"tiny-us-v1": ("x",)}
    assert (spec.window.first, spec.window.last) == ("2024-02-01", "2024-03-22")
    assert tradeassay_bench.make_spec("tiny-us-v1", seeds=3).seeds == (0, 1, 2)
    with pytest.raises(UserError, match=r"a run has no keyword 'agent' \(did you mean agents"):
        tradeassay_bench.make_spec(
            "tiny-us-v1", agent=["cash"]
        )  # it was left out, and every agent played
    for odd in (1.5, True):
        with pytest.raises(UserError, match=f"{odd} is not a valid number of seeds"):
            tradeassay_bench.make_spec("tiny-us-v1", seeds=odd)
    assert tradeassay_bench.make_spec(
        "tiny-us-v1", first=date(2024, 2, 1), last="2024-02-09"
    ) == tradeassay_bench.make_spec("tiny-us-v1", first="2024-02-01", last="2024-02-09")
    assert tradeassay_bench.make_spec("tiny-us-v1", "tiny-ashare-v1") == tradeassay_bench.make_spec(
        benchmarks=["tiny-us-v1", "tiny-ashare-v1"]
    )
    assert tradeassay_bench.make_spec("tiny-us") == tradeassay_bench.make_spec("tiny-us-v1")
    with pytest.raises(UserError, match="tiny-us-v1"):
        tradeassay_bench.make_spec("tiny-us-v7")
    with pytest.raises(UserError, match="different 'last' days"):
        tradeassay_bench.make_spec(["tiny-us-v1", "daily-us-v1"], first="2024-02-01")


def test_listings(home):
    momentum = next(info for info in tradeassay_bench.list_agents() if info.name == "reversal")
    assert momentum.summary
    assert momentum.params["lookback"] == 6
    assert "daily-us-v1" in {benchmark.id for benchmark in tradeassay_bench.list_benchmarks()}
    assert {info.name for info in tradeassay_bench.list_datasets(home)} >= {
        "tiny-us",
        "tiny-ashare",
    }
    assert tradeassay_bench.load_dataset("tiny-us", home).name == "tiny-us"


def test_running_loads_neither_pandas_nor_inspect_into_the_caller(home, tmp_path):
    code = (
        "import sys, runs_world, tradeassay_bench;"
        "tradeassay_bench.run(runs_world.tiny_spec(), folder=sys.argv[1], home=sys.argv[2], "
        "workers=2, progress='none');"
        "heavy = [m for m in ('pandas', 'inspect_ai', 'polars', 'numba', 'scipy', "
        "'exchange_calendars')"
        " if m in sys.modules]; assert not heavy, heavy"
    )
    env = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "r"), str(home)], check=True, env=env
    )


@pytest.mark.slow
def test_an_agent_of_the_calling_script_is_played_in_its_process(home, tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(
        "import sys, runs_world, tradeassay_bench\n"
        "from tradeassay_bench.agents import AgentConfig, agents\n"
        "from tradeassay_bench.core.orders import Decision, Order\n"
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
        "run = tradeassay_bench.run('tiny-us-v1', agents=['mine'], folder=sys.argv[1], "
        "home=sys.argv[2], workers=2)\n"
        "print(run.failed, len(run.frames().trades))\n"
    )
    env = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "r"), str(home)],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{} 9")


def test_universe_and_index_are_options_of_the_run(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = tradeassay_bench.make_spec("tiny-us-v1", agents=["equal-weight"])
    spec = tradeassay_bench.make_spec(
        "tiny-us-v1", agents=["equal-weight"], universe="IDX:3", index="IDX"
    )
    assert spec.name != plain.name and plain.universe is not spec.universe
    done = tradeassay_bench.run(spec, executor="inline", home=home, progress="none")
    market = done.manifest.benchmark(done.episodes[0]).market
    assert (market.universe, market.index) == ("IDX:3", "IDX")
    assert 0 < len(set(done.frames().trades["symbol"])) <= 3
    with pytest.raises(DataError, match="no index 'NOPE' is known"):
        tradeassay_bench.run(
            "tiny-us-v1", agents=["cash"], index="NOPE", executor="inline", home=home
        )
    with pytest.raises(UserError, match="requires 99 names"):
        tradeassay_bench.run(
            "tiny-us-v1", agents=["cash"], universe="IDX:99", executor="inline", home=home
        )
