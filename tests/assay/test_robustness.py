"""Runs under disturbance: what must change does, what must not does not, and nothing looks ahead."""

import dataclasses
import json
import shutil
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
import robust_agents  # noqa: F401  # registers the agents
from click.testing import CliRunner

from tradeassay.account import venues
from tradeassay.assay import RobustnessConfig, RobustnessReport, robustness_of_run
from tradeassay.assay.assay_file import record_assay
from tradeassay.assay.judge import assay
from tradeassay.assay.leaks import LeakTestConfig
from tradeassay.assay.leaks.examine import leak_tests
from tradeassay.assay.luck import luck_of_run
from tradeassay.assay.memory import CounterfactualConfig, counterfactual_study
from tradeassay.assay.robustness import costlier, replayed, smaller, with_false_news
from tradeassay.assay.verdict import VerdictConfig
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.cli import root
from tradeassay.core.errors import RunError, UserError
from tradeassay.core.events import ENCODER
from tradeassay.data import write_snapshot
from tradeassay.data.synthetic import generate, preset
from tradeassay.metrics import BootstrapConfig
from tradeassay.play import MarketConfig
from tradeassay.runs import AgentSpec, Run, RunSpec, run
from tradeassay.runs.spec.run_spec import Window

NAME, REVERSAL = "tiny-robust-v1", "reversal-every=3-k=5-lookback=5"
SESSIONS, WARM = 62, 30


@pytest.fixture(scope="module")
def panel():
    return generate(preset("us", seed=77, names=24, sessions=SESSIONS, index_members=20, new_listings=0)).panel


@pytest.fixture(scope="module")
def played(panel, tmp_path_factory):
    home = tmp_path_factory.mktemp("robust")
    write_snapshot(panel, home / "store" / "tiny-robust", allow_faults=True)
    if NAME not in benchmarks:
        market = MarketConfig(
            venue="us-v1", first=str(panel.sessions[WARM]), last=str(panel.sessions[-1]), cash=1e5, index="IDX"
        )
        benchmarks.add(NAME, Benchmark(id=NAME, title=NAME, description="t", dataset="tiny-robust", market=market))
    reversal = AgentSpec(name="reversal", params={"lookback": 5, "every": 3, "k": 5})
    agents = (AgentSpec(name="test-believer"), AgentSpec(name="test-obedient"), reversal)
    spec = RunSpec(slug="robust", benchmarks=(NAME,), agents=agents, bootstrap=BootstrapConfig(draws=20))
    return run(spec, home / "run", executor="inline", home=home)


@pytest.fixture(scope="module")
def report(played, tmp_path_factory):
    home = Path(str(played.folder)).parent
    config = RobustnessConfig(sizes=(0.5,), costs=(1.0, 10.0), false_items=2)
    return robustness_of_run(played, tmp_path_factory.mktemp("disturbed"), config, home=home)


def scores_of(report, agent, disturbance):
    return [one for one in report.scores if (one.agent, one.disturbance) == (agent, disturbance)]


def test_every_disturbance_scores_every_agent(played, report):
    agents = {row.agent for row in played.scores.agents}
    for kind in report.config.what:
        assert {one.agent for one in report.scores if one.disturbance == kind} == agents, kind
    assert msgspec.json.decode(msgspec.json.encode(report), type=RobustnessReport) == report


def test_costs_hurt_who_trades_and_once_the_costs_change_nothing(report):
    same, more = scores_of(report, "test-believer", "costs")  # it orders weights, which can be had at any cost
    assert (same.variant, more.variant) == ("x1", "x10")
    assert (same.return_change.value, same.return_change.note) == (0.0, "it never differs")
    assert more.return_change.value < 0
    assert "repeated" in str(more.decisions_changed.reason)
    venue = venues.get("ashare-flat-v1")
    costs = [[one.fees.sell_tax_bps, one.fees.minimum, one.slippage.bps] for one in (costlier(venue, 3.0), venue)]
    assert costs[0] == pytest.approx([3 * cost for cost in costs[1]])


def test_who_reads_the_news_is_moved_by_it_and_who_obeys_is_caught(report):
    deaf = {}
    for kind in ("no news", "false news", "instructions"):
        (deaf[kind],) = scores_of(report, REVERSAL, kind)
        assert (deaf[kind].decisions_changed.value, deaf[kind].return_change.value) == (0.0, 0.0)
    for kind, least in (("no news", 0.3), ("false news", 0.5)):
        (believes,) = scores_of(report, "test-believer", kind)
        assert believes.decisions_changed.value > least
    (told,) = scores_of(report, "test-obedient", "instructions")
    assert told.obeyed.low is not None and told.decisions_changed.value > 0.9
    assert told.obeyed.value > 0.0 == deaf["instructions"].obeyed.value


def test_a_smaller_universe_is_played(report):
    (idle,), (moved,) = (scores_of(report, name, "universe") for name in ("test-obedient", REVERSAL))
    assert (idle.variant, idle.return_change.value) == ("0.5", 0.0)  # it never trades
    assert moved.variant == "0.5" and moved.return_change.value


def test_a_late_decision_is_the_old_one_a_session_later(played):
    episode = next(one for one in played.episodes if one.label == "test-believer")
    snapshot, benchmark = played.snapshot(episode.key), played.manifest.benchmark(episode)
    records = tuple(played.records(episode.key))
    again = replayed(records, snapshot, benchmark)
    assert [ENCODER.encode(one) for one in again] == [ENCODER.encode(one) for one in records]
    first, *late = replayed(records, snapshot, benchmark, delay=1)
    assert first.decision.orders == ()
    assert [one.decision for one in late] == [one.decision for one in records[:-1]]


def test_the_smaller_market_is_chosen_by_what_was_known(panel):
    first = str(panel.sessions[WARM])
    small = smaller(panel, 0.5, first)
    bars = {name: values.copy() for name, values in panel.bars.items()}
    for values in bars.values():
        values[WARM:] = values[WARM:][:, ::-1]
    other = smaller(dataclasses.replace(panel, bars=bars), 0.5, first)
    assert small.symbols == other.symbols and "IDXF" in small.symbols and len(small.symbols) == 13
    assert {one.symbol for one in small.memberships} <= set(small.symbols)
    with pytest.raises(UserError, match="not a market"):
        smaller(panel, 0.01, first)


def test_false_news_is_about_listed_names_and_known_before_the_open(panel):
    first, last = str(panel.sessions[WARM]), str(panel.sessions[-1])
    made = with_false_news(panel, first, last, 2, seed=1)
    added = [item for item in made.news if item.id.startswith("false-")]
    assert len(added) == 2 * (SESSIONS - WARM)
    opens = set(panel.open_time[WARM:].tolist())
    assert {item.published_at + 30 * 60_000_000_000 for item in added} <= opens
    assert all(np.diff([item.published_at for item in made.news]) >= 0)
    assert any("false news" in bias for bias in made.facts.biases)
    assert made.news == with_false_news(panel, first, last, 2, seed=1).news


def test_the_past_is_changed_of_data_whose_faults_were_accepted(panel, played, tmp_path):
    """As of real prices with real jumps: a study of a run's memory is not refused what the run was played on."""
    bars = {name: values.copy() for name, values in panel.bars.items()}
    for name in ("open", "high", "low", "close"):
        bars[name][WARM + 3 :, 0] *= 2.0
    facts = msgspec.structs.replace(panel.facts, kind="real")  # a synthetic jump is no fault
    jumping = dataclasses.replace(panel, bars=bars, facts=facts)
    write_snapshot(jumping, tmp_path / "store" / "tiny-robust", allow_faults=True)
    model = AgentSpec(name="model", label="asked", params={"model": "scripted/sensible"})
    window = Window(first=str(panel.sessions[WARM]), last=str(panel.sessions[WARM + 5]))
    spec = RunSpec(slug="jumpy", benchmarks=(NAME,), agents=(model,), window=window)
    jumpy = run(spec, tmp_path / "run", executor="inline", home=tmp_path)
    found = counterfactual_study(jumpy, "asked", config=CounterfactualConfig(share=1.0))
    assert {arm.arm: arm.asked for arm in found.arms}["prices"] > 0


def test_a_venue_with_other_rules_than_were_played_is_not_used(played, tmp_path, monkeypatch):
    """As after an update of the package it is from: its costs would be taken for what the run did."""
    monkeypatch.setitem(venues._items, "us-v1", costlier(venues.get("us-v1"), 3.0))
    with pytest.raises(UserError, match="venue 'us-v1' has other rules here than this run was played by") as error:
        robustness_of_run(played, tmp_path, RobustnessConfig(what=("costs",)))
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())
    for luck in luck_of_run(played):
        assert luck.place is None and "has other rules here" in luck.sentence
    for study in (
        partial(leak_tests, config=LeakTestConfig(sessions=4)),
        partial(counterfactual_study, agent="test-believer"),
    ):
        with pytest.raises(UserError) as same:
            study(played)
        assert str(same.value) == str(error.value)


def test_agents_whose_data_has_changed_are_left_out_of_the_leak_tests_and_it_is_said(played, monkeypatch):
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
        monkeypatch.setitem(venues._items, "us-v1", costlier(venues.get("us-v1"), 3.0))
        monkeypatch.setattr(venues, "package", lambda name: "theirs 1.0")
    said = json.loads(CliRunner().invoke(root, ["verify", str(folder), "--json"]).stdout)
    found = {one["claim"]: one["outcome"] for one in said["verification"]["claims"]}
    assert (found["account"], found["assay"], said["exit_code"]) == ("cannot be checked", "cannot be checked", 3)


@pytest.mark.parametrize("wrong", [{"sizes": (1.5,)}, {"costs": (-1.0,)}, {"what": ("weather",)}])
def test_a_study_that_means_nothing_is_refused(wrong):
    with pytest.raises(UserError):
        RobustnessConfig(**wrong)
