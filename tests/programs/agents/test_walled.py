"""Agents of a file behind walls: they see the view and decide as they would without, and find
nothing else.
"""

import ast
import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "runs"))

import runs_world as world

from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry
from tradeassay.verdict import VerdictConfig
from tradeassay_bench.agents import files_open, make_agent, own_agent
from tradeassay_bench.agents.own_file import agent_runner
from tradeassay_bench.agents.registry import check_agent
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo
from tradeassay_bench.data import load_dataset
from tradeassay_bench.examine import assay, leak_test
from tradeassay_bench.examine.leaks import LeakTestConfig
from tradeassay_bench.play.market import Market
from tradeassay_bench.runs import AgentSpec, Run, RunSpec, run
from tradeassay_programs.code.agent_runner import CARRY_DATA

pytestmark = [
    pytest.mark.journey,
    pytest.mark.skipif(agent_runner().refusal() != "", reason="this machine has no Landlock"),
]

WALLED = tomllib.loads((Path(__file__).parent / "walled.toml").read_text())


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walled")
    world.write_world(folder)
    world.register()
    return folder


def written(folder: Path, tried: str = "None", before: str = "", after: str = "") -> str:
    """Write an agent's file, one beside it, and data; return what names the agent."""
    folder.mkdir(exist_ok=True)
    (folder / "beside.py").write_text("FIRST = 1.0\n")
    (folder / "future.csv").write_text("2024-05-01,1.0\n")
    (folder / "mine.py").write_text(before + WALLED["agent"].replace("HERE", tried) + after)
    return f"{folder / 'mine.py'}:Mine"


def played(text: str, home: Path, place: Path, **params: str) -> Run:
    name, made = own_agent(text, params)
    spec = RunSpec(
        name="walled",
        benchmarks=("tiny-us-v1",),
        agents=(AgentSpec(name=name, params=made, label="Mine"),),
        seeds=(0,),
        bootstrap=world.BOOTSTRAP,
        secret="0" * 32,
    )
    return run(spec, place, executor="inline", home=home, progress="none")


def market_of(home: Path) -> Market:
    return Market(load_dataset("tiny-us", home), benchmarks.get("tiny-us-v1").market)


def begun(text: str, market: Market, **params: str) -> Any:
    agent = make_agent(*own_agent(text, params))
    agent.begin(EpisodeInfo(episode="one", seed=0, rules=market.rules), np.random.default_rng(0))
    return agent


def test_it_plays_as_it_would_with_files_open(home, tmp_path):
    text = written(tmp_path / "agent")
    found = []
    for given in ({}, {"files": "open"}):
        market = market_of(home)
        seen, decided, agent = market.reset(), [], begun(text, market, **given)
        while seen is not None:
            decided.append(agent.answer(AskDecision(seen)))
            seen = market.step(decided[-1]).observation
        found.append(decided)
    assert found[0] == found[1] and len(found[0]) == world.SESSIONS - world.WARM
    assert any(order.amount for one in found[0] for order in one.orders)
    assert all("FutureDataError" in one.reason for one in found[0])


def test_a_run_records_whether_files_were_open(home, tmp_path):
    one = played(written(tmp_path / "agent"), home, tmp_path / "shut")
    by = next(episode.agent for episode in one.episodes if episode.label == "Mine")
    assert by.params["files"] == "closed" and not files_open(by.name, by.params)
    judged = assay(one, VerdictConfig(portfolios=0, draws=100), agents=["Mine"]).agents[0]
    assert any("no access to files or network" in note for note in judged.notes)
    assert not any("files were open" in limit for limit in judged.verdict.limits)
    # Without the record, as in a run from elsewhere, they were open.
    assert files_open("file", {"path": "mine.py", "name": "Mine"})
    assert files_open("python", {}) and not files_open("equal-weight", {})


def test_nothing_beside_the_view_can_be_reached(home, tmp_path):
    reads = WALLED["reads"]
    tries = ", ".join(
        f"{what!r}: said(lambda: {how.replace('HOME', str(home))})" for what, how in reads.items()
    )
    text = written(tmp_path / "agent", f"lambda: repr({{{tries}}})", after=WALLED["tries"])
    market = market_of(home)
    request = AskDecision(market.reset())
    found = ast.literal_eval(begun(text, market).answer(request).reason.partition("; ")[0])
    assert list(found) == list(reads)
    for what, words in found.items():
        assert re.search(r"Permission|not permitted|Operation|denied", words), (what, words)
    assert not (tmp_path / "agent" / "left.txt").exists()
    # What an agent does not catch names the line of its file.
    agent = begun(written(tmp_path / "agent", f"lambda: {reads['its own folder']}"), market)
    with pytest.raises(Exception, match=r"Permission denied.*mine\.py, line"):
        agent.answer(request)


def test_a_file_that_needs_the_data_is_refused_before_it_plays(home, tmp_path):
    text = written(tmp_path / "agent", before="from tradeassay_bench.data import load_dataset\n")
    with pytest.raises(UserError, match=r"in isolation.*Permission denied(.|\n)*files=open"):
        check_agent(*own_agent(text, {}))


def test_a_file_is_not_run_outside_the_walls(home, tmp_path):
    """To leave what it reads where it finds it later: not even to see which methods its class
    has.
    """
    left = tmp_path / "agent" / "loot.py"
    leaves = f"try:\n    open({str(left)!r}, 'w').close()\nexcept OSError:\n    pass\n"
    for cls, more in (("Mine", ""), ("Other", "\n\nclass Other(vars()['Mine']):\n    pass\n")):
        text = written(tmp_path / "agent", before=leaves, after=more).replace(":Mine", f":{cls}")
        assert own_agent(text, {})[0] == "file" and not left.exists()
    (tmp_path / "talks.py").write_text(
        "class Mine:\n    async def reply(self, asked):\n        return {}\n"
    )
    text = f"{tmp_path / 'talks.py'}:Mine"
    assert own_agent(text, {})[0] == "python"
    with pytest.raises(UserError, match=r"reply\(request\) cannot be isolated"):
        own_agent(text, {"files": "closed"})


def test_without_a_sandbox_a_file_plays_only_with_files_open(tmp_path, monkeypatch):
    monkeypatch.setattr("tradeassay_bench.agents.own_file.agent_runners", Registry("nothing"))
    text = written(tmp_path / "agent")
    with pytest.raises(
        UserError, match=r"runs in the sandbox, which is not installed(.|\n)*files=open"
    ):
        own_agent(text, {})
    assert own_agent(text, {"files": "open"})[1]["files"] == "open"


@pytest.mark.slow
def test_a_leak_test_says_whether_files_were_open(home, tmp_path):
    text = written(tmp_path / "agent")
    for given, said in ({}, False), ({"files": "open"}, True):
        report = leak_test(
            text, "tiny-us-v1", params=given, config=LeakTestConfig(sessions=6), home=home
        )
        assert report.files_open is said
        assert ("files were open to it" in report.sentence) is said, report.sentence


def test_the_walls_know_every_package_that_carries_prices():
    text = (
        files("tradeassay_bench.data.catalogue")
        .joinpath("entries.toml")
        .read_text(encoding="utf-8")
    )
    named = {
        one["name"].replace("-", "_")
        for entry in tomllib.loads(text)["entries"]
        for one in entry["packages"]
    }
    assert named == {one.partition("/")[0] for one in CARRY_DATA}


@pytest.mark.parametrize(
    ("tried", "failed"),
    [("lambda: os._exit(3)", "process ended"), (None, "the answer is a dict, not a Decision")],
    ids=["its process dies", "it returns no decision"],
)
def test_a_day_without_a_decision_has_failed(tried, failed, home, tmp_path):
    if tried is None:
        (tmp_path / "wrong.py").write_text(
            "class Mine:\n    def answer(self, request):\n        return {'A': 1.0}\n"
        )
    text = f"{tmp_path / 'wrong.py'}:Mine" if tried is None else written(tmp_path / "agent", tried)
    done = played(text, home, tmp_path / "run")
    key = next(episode.key for episode in done.episodes if episode.label == "Mine")
    for record in done.records(key):
        assert record.decision.status == "failed" and failed in record.decision.failures[0].detail
    assert (tmp_path / "run" / "manifest.json").exists()
