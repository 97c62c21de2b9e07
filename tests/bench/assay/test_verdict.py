"""Verdicts on runs: every agent has one, and the evidence that was gathered enters it.

Which evidence gets which word is tested beside each question, in tests/tradeassay/verdict."""

import json
import os
import pickle
import subprocess
import sys

import msgspec
import numpy as np
import peeking_agent  # noqa: F401  # registers the agent that leaks
import polars as pl
import pytest
import runs_agents  # noqa: F401  # registers the agents
import runs_world as world
from click.testing import CliRunner

from tradeassay.cli import root
from tradeassay.core.errors import UserError
from tradeassay.verdict import KINDS
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.record import Assay, VerdictConfig
from tradeassay_bench.core.executors import Spread
from tradeassay_bench.examine import assay
from tradeassay_bench.examine.leaks import LeakFinding, LeakTestConfig, LeakTestReport
from tradeassay_bench.examine.leaks.examine import leak_tests
from tradeassay_bench.examine.luck import Luck, LuckConfig, luck_of_run
from tradeassay_bench.examine.luck.portfolios import PLAIN
from tradeassay_bench.runs import AgentSpec, run

SMALL = VerdictConfig(portfolios=100, draws=100, least=20)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    home = tmp_path_factory.mktemp("verdict")
    world.write_world(home)
    agents = (
        AgentSpec(name="reversal", params={"lookback": 3, "every": 4}, label="reversal"),
        AgentSpec(name="index-hold"),
        AgentSpec(name="test-never-answers", label="silent"),
        AgentSpec(name="test-peeker", label="peeker"),
    )
    spec = world.tiny_spec(benchmarks=("tiny-us-v1",), agents=agents)
    return run(spec, home / "run", executor="inline", home=home)


@pytest.fixture(scope="module")
def judged(played):
    return assay(played, SMALL)


def test_a_run_is_judged_agent_by_agent(played, judged):
    assert [one.agent for one in judged.agents] == [
        played.names[row.agent] for row in played.scores.agents
    ]
    assert msgspec.json.decode(msgspec.json.encode(judged), type=Assay) == judged
    assert assay(played.folder, SMALL, home=played.folder.parent, agents=("silent",)).agents == (
        judged.agent("silent"),
    )
    one = judged.agent("reversal")
    parts = sum(
        one.parts[name].value or 0.0 for name in ("common", "style", "selection", "trading")
    )
    assert parts == pytest.approx(one.total.value, abs=1e-10)
    assert one.seeds == 2
    assert one.luck.portfolios == 100
    assert one.verdict.kind in (
        "not-distinguishable-from-luck",
        "style",
        "worse",
        "costs",
        "market",
    )
    assert one.ranks.of == 4
    assert sorted(agent.ranks.by_return or 9 for agent in judged.agents) == [1, 2, 3, 4, 9]
    assert one.could_not
    lucky = one.verdict.kind == "not-distinguishable-from-luck"
    assert "too short" in one.verdict.sentence or not lucky
    assert {stated.quantity for stated in one.statements} >= {"return", "alpha", "costs"}
    assert one.alpha.tries == 20 and one.tries.here == 4


def test_a_failed_run_is_a_failed_run(judged):
    one = judged.agent("silent")
    assert (one.verdict.kind, one.total.value, one.luck.p, one.ranks.by_return) == (
        "failed",
        None,
        None,
        None,
    )
    assert "no usable answer" in one.verdict.sentence
    assert one.failure_rate.value is None or one.failure_rate.value == 1.0
    assert one.failures


@pytest.mark.slow
def test_without_numba_fewer_portfolios_are_played_as_plain_python(played, monkeypatch):
    whole = luck_of_run(played, agents=("reversal",), config=LuckConfig(portfolios=PLAIN))
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import msgspec, runs_agents, runs_world\n"
        "from tradeassay_bench.examine.luck import luck_of_run\n"
        "from tradeassay_bench.runs import Run\n"
        "found = luck_of_run(Run.load(sys.argv[1], home=sys.argv[2]), agents=('reversal',))\n"
        "print(msgspec.json.encode(found).decode())"
    )
    words = [sys.executable, "-W", "error", "-c", code, str(played.folder), str(played.home)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    assert msgspec.json.decode(done.stdout, type=tuple[Luck, ...]) == whole
    assert all(one.place is not None and one.place.portfolios == PLAIN for one in whole)
    # Where even a hundred would take too long, there is none, and the extra is named.
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr("tradeassay_bench.examine.luck.portfolios.PLAIN_WORK", 1_000)
    one = assay(played, SMALL, agents=("reversal",)).agents[0]
    assert one.luck.p is None and "numba" in str(one.luck.percentile.reason)
    assert any(
        limit.startswith("there is no luck baseline") and "numba" in limit
        for limit in one.verdict.limits
    )


def test_leak_tests_enter_the_verdict(played):
    finding = LeakFinding(
        kind="counterfactual", channel="news", through="decision", session="s", step=1, detail="d"
    )
    asked = {
        "agent": "reversal",
        "benchmark": "b",
        "dataset": "d",
        "sessions": 9,
        "futures": 2,
        "whole": True,
    }
    seen = {
        "decisions_with_orders": 3,
        "repeatable": True,
        "moved": {},
        "untested": {},
        "withheld": 0,
    }
    report = LeakTestReport(findings=(finding,), **asked, **seen)
    config = msgspec.structs.replace(SMALL, portfolios=0)
    made = assay(played, config, agents=("reversal",), leaks={"reversal": report})
    assert (made.agents[0].verdict.kind, made.agents[0].leaks.findings) == (
        "look-ahead",
        ("news",),
    )
    reports = leak_tests(played, agents=("reversal", "peeker"))
    assert set(reports) == {"reversal", "peeker"}
    made = assay(played, config, agents=("reversal", "peeker"), leaks=reports)
    assert made.agent("reversal").leaks.tested
    assert made.agent("reversal").verdict.kind != "look-ahead"
    peeker = made.agent("peeker")
    assert (peeker.verdict.kind, peeker.verdict.firm) == ("look-ahead", True)
    assert "saw the future (bars)" in peeker.verdict.sentence
    assert peeker.ranks.by_return == 1


def test_a_run_travels_as_its_path(played):
    there = pickle.loads(pickle.dumps(played))
    assert (there.folder, there.home) == (played.folder.absolute(), played.home)
    assert there.scores == played.scores


@pytest.mark.slow
def test_processes_give_the_same_verdicts(played, judged):
    two = Spread(executor="local", workers=2)
    assert assay(played, SMALL, spread=two) == judged
    agents = ("reversal", "peeker", "silent")
    reports = leak_tests(played, agents=agents, config=LeakTestConfig(sessions=6), spread=two)
    assert reports == leak_tests(played, agents=agents, config=LeakTestConfig(sessions=6))
    assert list(reports) == ["reversal", "peeker"]


def test_own_tables(tmp_path, played):
    days = np.busday_offset(np.datetime64("2024-01-01", "D"), np.arange(20, 50)).astype(str)
    path = tmp_path / "weights.parquet"
    pl.DataFrame(
        {"date": days.repeat(2), "symbol": ["S4", "S5"] * 30, "weight": [0.5] * 60}
    ).write_parquet(path)
    made = assay(
        OwnAccount(returns=str(path), dataset="tiny-us", home=str(played.folder.parent)), SMALL
    )
    one = made.agents[0]
    assert (made.source, one.agent, one.sessions) == ("own", "weights", 30)
    assert one.verdict.kind in KINDS
    assert one.luck.p is None
    assert any("no luck baseline" in limit for limit in one.verdict.limits)


def test_what_cannot_be_assayed(tmp_path, played):
    with pytest.raises(UserError, match="no run and no table"):
        assay(tmp_path / "nothing")
    with pytest.raises(UserError, match="no agent 'nobody'"):
        assay(played, SMALL, agents=("nobody",))
    with pytest.raises(UserError, match="no table"):
        assay(OwnAccount())
    for wrong in ({"level": 2.0}, {"tries": 0}, {"portfolios": 5}, {"draws": 1}):
        with pytest.raises(UserError):
            VerdictConfig(**wrong)


def test_the_command_for_one_agent_leaves_the_page_of_the_run_as_it_is(
    played, tmp_path, monkeypatch
):
    """The run's page shows the recorded assay; that of some agents is not recorded."""
    monkeypatch.setenv("TRADEASSAY_HOME", str(played.folder.parent))
    monkeypatch.chdir(tmp_path)
    page = played.folder / "report.html"
    before = page.read_bytes() if page.exists() else None
    words = ["assay", str(played.folder), "--agent", "silent", "--portfolios", "0"]
    assert CliRunner().invoke(root, words, catch_exceptions=False).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == [f"{played.folder.name}-assay.html"]
    done = CliRunner().invoke(
        root, [*words, "--out", "verdicts.html", "--json"], catch_exceptions=False
    )
    assert json.loads(done.stdout)["agents"][0]["verdict"]["kind"] == "failed"
    assert (
        "verdicts.html" in done.stderr
        and 20_000 < (tmp_path / "verdicts.html").stat().st_size < 1_000_000
    )
    assert (page.read_bytes() if page.exists() else None) == before
