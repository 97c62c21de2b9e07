"""From a recorded run to a page and a table: nothing is invented on the way."""

import msgspec
import numpy as np
import pytest
import runs_agents  # noqa: F401  # registers the agents
import scripted_misfits  # noqa: F401  # adds models
from test_page import Page

from tradeassay.core.errors import TradeassayWarning
from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.api import Run, run
from tradeassay_bench.report import print_comparison, print_leaderboard, write_html
from tradeassay_bench.runs import RunSpec, Window, run as run_spec
from tradeassay_bench.runs.spec.run_spec import model_agent
from tradeassay_bench.runs.summary import summary_of
from tradeassay_bench.runs.summary.comparison import compare

AGENTS = ["random", "reversal", "cash", "test-never-answers", "test-cannot-begin"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def play(home, folder, seeds):
    return run(
        "daily-crypto-v1",
        agents=AGENTS,
        seeds=seeds,
        first="2022-03-01",
        last="2022-04-30",
        name="small",
        bootstrap=BootstrapConfig(draws=100),
        folder=folder,
        executor="inline",
        progress="none",
        home=home,
    )


@pytest.fixture(scope="module")
def recorded(home, tmp_path_factory):
    return play(home, tmp_path_factory.mktemp("runs") / "small", 3)


@pytest.fixture(scope="module")
def data(recorded):
    return summary_of(recorded)


def test_one_cell_has_every_agent_with_the_numbers_of_the_scores(data, recorded):
    (cell,) = data.settings
    assert [agent.name for agent in cell.agents] == [
        recorded.names[row.agent] for row in recorded.scores.agents
    ]
    assert (cell.baseline, cell.baseline_phrase) == ("equal-weight", "buy and hold")
    assert len(cell.sessions) == 61
    assert cell.badges.data == "synthetic"
    assert "cash" in cell.rules
    assert (data.level, data.draws) == (0.95, 100)
    for agent, row in zip(data.settings[0].agents, recorded.scores.agents, strict=True):
        assert (agent.measures, agent.versus, agent.row) == (row.measures, row.versus_baseline, row)
    light = summary_of(recorded, details=False)
    for agent, full in zip(light.settings[0].agents, data.settings[0].agents, strict=True):
        assert (agent.measures, agent.failure, agent.detail) == (full.measures, full.failure, None)


def test_the_repetition_in_the_middle_is_shown_and_trades_lie_on_their_prices(data, recorded):
    chance = next(agent for agent in data.settings[0].agents if agent.name == "random")
    assert len(chance.paths) == 3
    ends = [path[-1] for path in chance.paths]
    assert chance.path[-1] == sorted(ends)[1]
    assert chance.seeds == 3
    held = chance.detail.holdings
    assert np.shape(held.weights) == (len(held.symbols), 61)
    assert len(chance.detail.falls) == 62
    (cell,) = data.settings
    turning = next(agent for agent in cell.agents if agent.name == "reversal")
    assert turning.detail.trades
    for trade in turning.detail.trades[:50]:
        assert trade.symbol in cell.prices
        close = cell.prices[trade.symbol][cell.sessions.index(trade.session)]
        assert close is not None
        assert trade.price == pytest.approx(close, rel=0.5)
    assert all(len(prices) == 61 for prices in cell.prices.values())


def test_failures_keep_their_reasons(data):
    by_name = {agent.row.agent: agent for agent in data.settings[0].agents}
    silent, broken = by_name["test-never-answers"], by_name["test-cannot-begin"]
    assert silent.paths == ()
    assert "no usable answer in any of 61 sessions" in str(silent.failure)
    assert silent.failures
    assert "<b>key</b>" in str(broken.failure)
    assert silent.causes and silent.causes[0].kind in silent.failures
    assert (
        broken.causes[0].kind == "exception" and "(runs_agents.py, line " in broken.causes[0].detail
    )
    assert broken.causes[0].where.endswith("/outcome.json") and "(runs_agents.py, line" in str(
        broken.failure
    )
    assert "<b>key</b>" in broken.causes[0].answer
    assert len(broken.failed_episodes) == 3
    assert by_name["cash"].failure is None


def test_the_page_lies_beside_the_run(recorded):
    page = write_html(recorded)
    assert page == recorded.folder / "report.html"
    text = page.read_text(encoding="utf-8")
    assert "no &lt;b&gt;key&lt;/b&gt;" in text
    again = f"tradeassay resume {recorded.folder.parent.name}/{recorded.name} --retry-failed"
    assert again in text and "(runs_agents.py, line " in text
    assert recorded.manifest.work_sha256 in text
    assert str(recorded.folder) not in text
    assert text == write_html(recorded, recorded.folder / "again.html").read_text(encoding="utf-8")


def test_two_runs_side_by_side(recorded, home, tmp_path, capsys):
    other = play(home, tmp_path / "other", 1)
    print_comparison(compare(recorded, other, home=home))
    out = capsys.readouterr().out
    assert "the same, session by session" in out
    assert "significantly different?" in out
    assert "an episode failed" in out or "no usable answer" in out


def test_without_the_data_only_decoration_is_missing(recorded, data, tmp_path):
    elsewhere = Run.load(recorded.folder, home=tmp_path)
    manifest = recorded.manifest
    changed = {
        name: msgspec.structs.replace(entry, sha256="0" * 64)
        for name, entry in manifest.datasets.items()
    }
    elsewhere.manifest = msgspec.structs.replace(manifest, datasets=changed)
    with pytest.warns(TradeassayWarning, match="no index and no prices"):
        bare = summary_of(elsewhere)
    assert (bare.settings[0].prices, bare.settings[0].index) == ({}, None)
    assert bare.settings[0].agents == data.settings[0].agents
    assert bare.settings[0].sessions == data.settings[0].sessions


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    spec = RunSpec(
        name="masks",
        benchmarks=("ktdfin-v1",),
        agents=tuple(
            model_agent(f"scripted/{name}") for name in ("sensible", "broken-json", "never-submits")
        ),
        window=Window(first="2022-02-07", last="2022-03-18"),
        bootstrap=BootstrapConfig(draws=100),
        protocol={"mask": ("blinded", "bright")},
    )
    home = tmp_path_factory.mktemp("home")
    done = run_spec(spec, tmp_path_factory.mktemp("runs") / "masks", executor="inline", home=home)
    return Run.load(done.folder, home=home)


@pytest.fixture(scope="module")
def masked_data(masked):
    return summary_of(masked)


@pytest.mark.journey
def test_cells_are_told_apart_by_their_masks_and_models_are_known_as_models(masked_data, masked):
    assert [cell.options for cell in masked_data.settings] == [
        {"mask": "blinded"},
        {"mask": "bright"},
    ]
    assert [cell.title.rsplit(", ", 1)[1] for cell in masked_data.settings] == ["blinded", "bright"]
    assert {cell.badges.model for cell in masked_data.settings} == {"scripted"}
    by_name = {agent.name: agent for agent in masked_data.settings[0].agents}
    assert by_name["equal-weight"].model is None
    sensible = by_name["scripted-sensible"].model
    assert (sensible.model, sensible.answers, sensible.mask) == (
        "scripted/sensible",
        "scripted",
        "blinded",
    )
    row = next(row for row in masked.scores.agents if row.agent == "scripted-sensible")
    assert not isinstance(row.inference, msgspec.UnsetType)
    assert sensible.cost.calls == row.inference.calls
    assert sum(one.n for one in sensible.confidence.bins) > 0
    assert sensible.confidence.ece.value is not None
    assert [one.title for one in sensible.rates] == ["Parse failures", "Valid tool calls"]


def test_conversations_are_those_of_the_run(masked_data, masked):
    agent = next(
        agent for agent in masked_data.settings[0].agents if agent.name == "scripted-broken-json"
    )
    key = next(
        row.episodes[0] for row in masked.scores.agents if row.agent == "scripted-broken-json"
    )
    records = list(masked.records(key))
    assert len(agent.detail.decisions) == len(records) and agent.detail.decisions_left_out == 0
    latest = agent.detail.decisions[0]
    assert latest.session == records[-1].session
    lines = [line for line in masked.dialogue(key) if line.step == records[-1].step]
    assert [turn.purpose for turn in latest.turns] == [line.purpose for line in lines]
    assert latest.turns[0].calls[0].result
    assert {row.kind for row in agent.model.errors} >= {"schema"}
    assert agent.model.sessions == len(records)


def test_a_model_that_never_answers_has_no_result_but_a_cost(masked_data):
    agent = next(
        agent for agent in masked_data.settings[0].agents if agent.name == "scripted-never-submits"
    )
    assert agent.failure is not None
    assert agent.paths == ()
    assert agent.model.cost.input_tokens > 0
    assert agent.model.net_return.value is None
    assert agent.detail.decisions[0].failed
    assert 1 <= len(agent.causes) <= 3 and agent.causes[0].answer
    assert agent.causes[0].where.startswith("episodes/") and agent.causes[0].where.endswith(
        "events.jsonl:1"
    )


def test_the_page_and_the_table(masked, capsys):
    text = write_html(masked).read_text(encoding="utf-8")
    assert text == write_html(masked, masked.folder / "again.html").read_text(encoding="utf-8")
    assert "Mask by mask" in text
    assert any("asset_" in one for pack in Page(text).packs for one in pack["texts"])
    print_leaderboard(masked)
    out = capsys.readouterr().out
    for wanted in ("scripted model", "tokens", "Mask by mask"):
        assert wanted in out
    assert "blinded +" in out or "blinded −" in out
