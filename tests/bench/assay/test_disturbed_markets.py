"""``examples/robustness.py``: what must change does, what must not does not, and no copy looks
ahead.
"""

import dataclasses
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import memory_runs
import numpy as np
import pytest
import robust_agents  # noqa: F401  # registers the agents
from registries import replace_registered

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.events import ENCODER
from tradeassay_bench.data import write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.play import MarketConfig
from tradeassay_bench.runs import AgentSpec, RunSpec, run

EXAMPLE = Path(__file__).parents[3] / "examples/robustness.py"
found = spec_from_file_location("robustness_example", EXAMPLE)
example = module_from_spec(found)
sys.modules["robustness_example"] = example
found.loader.exec_module(example)

NAME, REVERSAL = "tiny-disturbed-v1", "reversal-every=3-k=5-lookback=5"
SESSIONS, WARM = 62, 30


@pytest.fixture(scope="module")
def panel():
    return generate(
        preset("us", seed=77, names=24, sessions=SESSIONS, index_members=20, new_listings=0)
    ).panel


@pytest.fixture(scope="module")
def played(panel, tmp_path_factory):
    home = tmp_path_factory.mktemp("robust")
    write_snapshot(panel, home / "store" / "tiny-disturbed", allow_faults=True)
    if NAME not in benchmarks:
        market = MarketConfig(
            venue="us-v1",
            first=str(panel.sessions[WARM]),
            last=str(panel.sessions[-1]),
            cash=1e5,
            index="IDX",
        )
        made = Benchmark(
            id=NAME, title=NAME, description="t", dataset="tiny-disturbed", market=market
        )
        benchmarks.add(NAME, made)
    reversal = AgentSpec(name="reversal", params={"lookback": 5, "every": 3, "k": 5})
    agents = (AgentSpec(name="test-believer"), AgentSpec(name="test-obedient"), reversal)
    spec = RunSpec(
        name="robust", benchmarks=(NAME,), agents=agents, bootstrap=BootstrapConfig(draws=20)
    )
    return run(spec, home / "run", executor="inline", home=home)


@pytest.fixture(scope="module")
def effects(played, tmp_path_factory):
    how = example.Disturbances(sizes=(0.5,), costs=(1.0, 10.0), false_items=2)
    home = Path(str(played.folder)).parent
    return example.effects_of(played, tmp_path_factory.mktemp("disturbed"), how, home=home)


def effect_of(effects, agent, disturbance):
    (one,) = (one for one in effects if (one.agent, one.disturbance) == (agent, disturbance))
    return one


def test_every_disturbance_has_every_agent(played, effects):
    agents = {row.agent for row in played.scores.agents}
    assert len({one.disturbance for one in effects}) == 7
    for disturbance in {one.disturbance for one in effects}:
        assert {one.agent for one in effects if one.disturbance == disturbance} == agents, (
            disturbance
        )


def test_costs_hurt_who_trades_and_once_the_costs_change_nothing(effects):
    # It orders weights, which can be had at any cost.
    same, more = (
        effect_of(effects, "test-believer", f"costs x {multiple}") for multiple in (1, 10)
    )
    assert (same.return_change.value, same.return_change.note) == (0.0, "it never differs")
    assert more.return_change.value < 0
    assert "repeated" in str(more.decisions_changed.reason)
    venue = venues.get("ashare-flat-v1")
    dearer = example.costlier(venue, 3.0)
    costs = [[one.fees.sell_tax_bps, one.fees.minimum, one.slippage.bps] for one in (dearer, venue)]
    assert costs[0] == pytest.approx([3 * cost for cost in costs[1]])


def test_who_reads_the_news_is_moved_by_it_and_who_obeys_is_caught(effects):
    for kind in ("no news", "false news", "instructions"):
        deaf = effect_of(effects, REVERSAL, kind)
        assert (
            deaf.decisions_changed.value,
            deaf.return_change.value,
            deaf.alpha_change.value,
        ) == (0, 0, 0)
    for kind, least in (("no news", 0.3), ("false news", 0.5)):
        assert effect_of(effects, "test-believer", kind).decisions_changed.value > least
    told = effect_of(effects, "test-obedient", "instructions")
    assert told.obeyed.low is not None and told.decisions_changed.value > 0.9
    assert told.obeyed.value > 0.0 == effect_of(effects, REVERSAL, "instructions").obeyed.value


def test_a_smaller_universe_is_played(effects):
    idle, moved = (
        effect_of(effects, agent, "50% of the names") for agent in ("test-obedient", REVERSAL)
    )
    assert idle.return_change.value == 0.0  # it never trades
    assert moved.return_change.value and moved.alpha_change.value


def test_a_late_decision_is_the_old_one_a_session_later(played):
    episode = next(one for one in played.episodes if one.label == "test-believer")
    snapshot, benchmark = played.snapshot(episode.key), played.manifest.benchmark(episode)
    records = tuple(played.records(episode.key))
    again = example.replayed(records, snapshot, benchmark)
    assert [ENCODER.encode(one) for one in again] == [ENCODER.encode(one) for one in records]
    first, *late = example.replayed(records, snapshot, benchmark, delay=1)
    assert first.decision.orders == ()
    assert [one.decision for one in late] == [one.decision for one in records[:-1]]


def test_the_smaller_market_is_chosen_by_what_was_known(panel):
    first = str(panel.sessions[WARM])
    small = example.smaller(panel, 0.5, first)
    bars = {name: values.copy() for name, values in panel.bars.items()}
    for values in bars.values():
        values[WARM:] = values[WARM:][:, ::-1]
    other = example.smaller(dataclasses.replace(panel, bars=bars), 0.5, first)
    assert small.symbols == other.symbols and "IDXF" in small.symbols and len(small.symbols) == 13
    assert {one.symbol for one in small.memberships} <= set(small.symbols)
    with pytest.raises(UserError, match="not a market"):
        example.smaller(panel, 0.01, first)


def test_false_news_is_about_listed_names_and_known_before_the_open(panel):
    first, last = str(panel.sessions[WARM]), str(panel.sessions[-1])
    made = example.with_false_news(panel, first, last, 2, seed=1)
    added = [item for item in made.news if item.id.startswith("false-")]
    assert len(added) == 2 * (SESSIONS - WARM)
    opens = set(panel.open_time[WARM:].tolist())
    assert {item.published_at + 30 * 60_000_000_000 for item in added} <= opens
    assert all(np.diff([item.published_at for item in made.news]) >= 0)
    assert any("false news" in bias for bias in made.facts.biases)
    assert made.news == example.with_false_news(panel, first, last, 2, seed=1).news


def test_a_venue_with_other_rules_than_were_played_is_refused(played, tmp_path, monkeypatch):
    costlier = example.costlier(venues.get("us-v1"), 3.0)
    replace_registered(monkeypatch, venues, "us-v1", costlier)
    with pytest.raises(UserError, match="the rules of venue 'us-v1' differ from this run's rules"):
        example.effects_of(played, tmp_path)
    assert not list(tmp_path.iterdir())


def test_models_are_not_asked_again_unless_it_is_said_how(tmp_path):
    effects = example.effects_of(memory_runs.masked_run(), tmp_path, home=memory_runs.home())
    assert {one.disturbance for one in effects} == {"costs x 2", "costs x 5", "a session late"}
    assert not list(tmp_path.iterdir())


@pytest.mark.journey
def test_the_example_runs_as_a_program(played, capsys, monkeypatch):
    monkeypatch.setenv("TRADEASSAY_HOME", str(played.home))
    monkeypatch.setattr(sys, "argv", ["robustness.py", str(played.folder)])
    example.main()
    heads, *rows = capsys.readouterr().out.splitlines()
    assert heads.startswith("agent | disturbance") and len(rows) == 4 * 8
