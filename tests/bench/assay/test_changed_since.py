"""Studies of a run whose data, or whose venue's rules, are no longer those that it was played
with.
"""

import dataclasses
import json
import shutil
from functools import partial

import msgspec
import pytest
import robust_agents  # noqa: F401  # registers the agents
from click.testing import CliRunner
from registries import replace_registered

from tradeassay.cli import root
from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay.verdict import VerdictConfig
from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.data import write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.examine.assay_file import record_assay
from tradeassay_bench.examine.judge import assay
from tradeassay_bench.examine.leaks import LeakTestConfig
from tradeassay_bench.examine.leaks.examine import leak_tests
from tradeassay_bench.examine.luck import luck_of_run
from tradeassay_bench.examine.memory import CounterfactualConfig, counterfactual_study
from tradeassay_bench.play import MarketConfig
from tradeassay_bench.runs import AgentSpec, Run, RunSpec, run
from tradeassay_bench.runs.spec.run_spec import Window

NAME = "tiny-robust-v1"
SESSIONS, WARM = 62, 30


@pytest.fixture(scope="module")
def panel():
    return generate(
        preset("us", seed=77, names=24, sessions=SESSIONS, index_members=20, new_listings=0)
    ).panel


@pytest.fixture(scope="module")
def played(panel, tmp_path_factory):
    home = tmp_path_factory.mktemp("robust")
    write_snapshot(panel, home / "store" / "tiny-robust", allow_faults=True)
    if NAME not in benchmarks:
        market = MarketConfig(
            venue="us-v1",
            first=str(panel.sessions[WARM]),
            last=str(panel.sessions[-1]),
            cash=1e5,
            index="IDX",
        )
        benchmarks.add(
            NAME,
            Benchmark(id=NAME, title=NAME, description="t", dataset="tiny-robust", market=market),
        )
    reversal = AgentSpec(name="reversal", params={"lookback": 5, "every": 3, "k": 5})
    agents = (AgentSpec(name="test-believer"), AgentSpec(name="test-obedient"), reversal)
    spec = RunSpec(
        name="robust", benchmarks=(NAME,), agents=agents, bootstrap=BootstrapConfig(draws=20)
    )
    return run(spec, home / "run", executor="inline", home=home)


def test_the_past_is_changed_of_data_whose_faults_were_accepted(panel, played, tmp_path):
    """As of real prices with real jumps: a study of a run's memory is not refused what the run
    was played on.
    """
    bars = {name: values.copy() for name, values in panel.bars.items()}
    for name in ("open", "high", "low", "close"):
        bars[name][WARM + 3 :, 0] *= 2.0
    facts = msgspec.structs.replace(panel.facts, kind="real")  # a synthetic jump is no fault
    jumping = dataclasses.replace(panel, bars=bars, facts=facts)
    write_snapshot(jumping, tmp_path / "store" / "tiny-robust", allow_faults=True)
    model = AgentSpec(name="model", label="asked", params={"model": "scripted/sensible"})
    window = Window(first=str(panel.sessions[WARM]), last=str(panel.sessions[WARM + 5]))
    spec = RunSpec(name="jumpy", benchmarks=(NAME,), agents=(model,), window=window)
    jumpy = run(spec, tmp_path / "run", executor="inline", home=tmp_path)
    found = counterfactual_study(jumpy, "asked", config=CounterfactualConfig(share=1.0))
    assert {arm.arm: arm.asked for arm in found.arms}["prices"] > 0


def dearer(venue):
    """As after an update of the package it is from."""
    return msgspec.structs.replace(venue, slippage=msgspec.structs.replace(venue.slippage, bps=9.0))


def test_a_venue_with_other_rules_than_were_played_is_not_used(played, monkeypatch):
    """Its costs would be taken for what the run did."""
    replace_registered(monkeypatch, venues, "us-v1", dearer(venues.get("us-v1")))
    for luck in luck_of_run(played):
        assert luck.place is None and "differ from this run's rules" in luck.sentence
    for study in (
        partial(leak_tests, config=LeakTestConfig(sessions=4)),
        partial(counterfactual_study, agent="test-believer"),
    ):
        with pytest.raises(UserError, match="the rules of venue 'us-v1' differ") as error:
            study(played)
        assert "from this run's rules" in str(error.value) and "\n" not in str(error.value)


def test_agents_whose_data_has_changed_are_left_out_of_the_leak_tests_and_it_is_said(
    played, monkeypatch
):
    def changed(self, key):
        raise RunError("data set 'tiny-us' has changed", hint="bring it back")

    monkeypatch.setattr(Run, "snapshot", changed)
    said: list[str] = []
    label = played.episodes[0].label
    assert leak_tests(played, agents=(label,), say=said.append) == {}
    assert f"no leak test of {label}: data set 'tiny-us' has changed (bring it back)" in said


@pytest.mark.parametrize("away", ["data", "rules"])
def test_an_assay_is_not_contradicted_by_what_is_not_here(played, tmp_path, monkeypatch, away):
    folder = tmp_path / "sent"
    shutil.copytree(played.folder, folder)
    sent = Run.load(folder, home=played.home)
    record_assay(sent, assay(sent, VerdictConfig(portfolios=100)))
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path if away == "data" else played.home))
    if away == "rules":
        replace_registered(monkeypatch, venues, "us-v1", dearer(venues.get("us-v1")))
        monkeypatch.setattr(venues, "package", lambda name: "theirs 1.0")
    said = json.loads(CliRunner().invoke(root, ["verify", str(folder), "--json"]).stdout)
    found = {one["claim"]: one["outcome"] for one in said["verification"]["claims"]}
    assert (found["account"], found["assay"], said["exit_code"]) == (
        "cannot be checked",
        "cannot be checked",
        3,
    )
