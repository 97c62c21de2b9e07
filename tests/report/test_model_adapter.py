"""A run of scripted models, from its folder to the page."""

import msgspec
import pytest
from test_page import Page

from tradeassay.metrics import BootstrapConfig
from tradeassay.report import print_leaderboard, write_html
from tradeassay.runs import Run, RunSpec, Window, run
from tradeassay.runs.spec.run_spec import model_agent
from tradeassay.runs.summary import RunSummary, summary_of


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    spec = RunSpec(
        slug="masks",
        benchmarks=("ktdfin-v1",),
        agents=tuple(model_agent(f"scripted/{name}") for name in ("sensible", "broken-json", "never-submits")),
        window=Window(first="2022-02-07", last="2022-03-18"),
        bootstrap=BootstrapConfig(draws=100),
        protocol={"mask": ("blinded", "bright")},
    )
    home = tmp_path_factory.mktemp("home")
    done = run(spec, tmp_path_factory.mktemp("runs") / "masks", executor="inline", home=home)
    return Run.load(done.folder, home=home)


@pytest.fixture(scope="module")
def data(recorded: Run) -> RunSummary:
    return summary_of(recorded)


def test_cells_are_told_apart_by_their_masks(data: RunSummary) -> None:
    assert [cell.settings for cell in data.cells] == [{"mask": "blinded"}, {"mask": "bright"}]
    assert [cell.title.rsplit(", ", 1)[1] for cell in data.cells] == ["blinded", "bright"]
    assert {cell.badges.model for cell in data.cells} == {"scripted"}


def test_models_are_known_as_models(data: RunSummary, recorded: Run) -> None:
    by_name = {agent.name: agent for agent in data.cells[0].agents}
    assert by_name["equal-weight"].model is None
    sensible = by_name["scripted-sensible"].model
    assert sensible is not None
    assert (sensible.model, sensible.answers, sensible.mask) == ("scripted/sensible", "scripted", "blinded")
    row = next(row for row in recorded.scores.agents if row.agent == "scripted-sensible")
    assert not isinstance(row.inference, msgspec.UnsetType)
    assert sensible.cost is not None
    assert sensible.cost.calls == row.inference.calls
    assert sensible.confidence is not None
    assert sum(one.n for one in sensible.confidence.bins) > 0
    assert sensible.confidence.ece.value is not None
    assert [one.title for one in sensible.rates] == ["Parse failures", "Valid tool calls"]


def test_conversations_are_those_of_the_run(data: RunSummary, recorded: Run) -> None:
    agent = next(agent for agent in data.cells[0].agents if agent.name == "scripted-broken-json")
    assert agent.model is not None
    key = next(row.episodes[0] for row in recorded.scores.agents if row.agent == "scripted-broken-json")
    records = list(recorded.records(key))
    assert agent.detail is not None
    assert len(agent.detail.decisions) == len(records) and agent.detail.decisions_left_out == 0
    latest = agent.detail.decisions[0]
    assert latest.session == records[-1].session
    lines = [line for line in recorded.dialogue(key) if line.step == records[-1].step]
    assert [turn.purpose for turn in latest.turns] == [line.purpose for line in lines]
    assert latest.turns[0].calls[0].result
    assert {row.kind for row in agent.model.errors} >= {"schema"}
    assert agent.model.sessions == len(records)


def test_a_model_that_never_answers_has_no_result_but_a_cost(data: RunSummary) -> None:
    agent = next(agent for agent in data.cells[0].agents if agent.name == "scripted-never-submits")
    assert agent.failure is not None
    assert agent.paths == ()
    assert agent.model is not None
    assert agent.model.cost is not None
    assert agent.model.cost.input_tokens > 0
    assert agent.model.net_return is not None
    assert agent.model.net_return.value is None
    assert agent.detail is not None and agent.detail.decisions[0].failed
    assert 1 <= len(agent.causes) <= 3 and agent.causes[0].answer
    assert agent.causes[0].where.startswith("episodes/") and agent.causes[0].where.endswith("events.jsonl:1")


def test_the_page_and_the_table(recorded: Run, capsys: pytest.CaptureFixture[str]) -> None:
    text = write_html(recorded).read_text(encoding="utf-8")
    assert text == write_html(recorded, recorded.folder / "again.html").read_text(encoding="utf-8")
    assert "Mask by mask" in text
    assert any("asset_" in one for pack in Page(text).packs for one in pack["texts"])
    print_leaderboard(recorded)
    out = capsys.readouterr().out
    assert "scripted model" in out
    assert "tokens" in out
    assert "Mask by mask" in out
    assert "blinded +" in out or "blinded −" in out
