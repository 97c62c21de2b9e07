"""From a recorded run to a page and a table: nothing is invented on the way."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
import report_agents  # noqa: F401  # registers the agents

from tradeassay import Run, compare, run
from tradeassay.core.errors import TradeassayWarning
from tradeassay.metrics import BootstrapConfig
from tradeassay.report import print_comparison, print_leaderboard, write_html
from tradeassay.runs.summary import RunSummary, summary_of

AGENTS = ["random", "reversal", "cash", "test-report-silent", "test-report-broken"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def play(home: Path, folder: Path, seeds: int) -> Run:
    return run(
        "daily-crypto-v1",
        agents=AGENTS,
        seeds=seeds,
        first="2022-03-01",
        last="2022-04-30",
        slug="small",
        bootstrap=BootstrapConfig(draws=100),
        folder=folder,
        executor="inline",
        progress="none",
        home=home,
    )


@pytest.fixture(scope="module")
def recorded(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return play(home, tmp_path_factory.mktemp("runs") / "small", 3)


@pytest.fixture(scope="module")
def data(recorded: Run) -> RunSummary:
    return summary_of(recorded)


def test_one_cell_with_every_agent_and_the_baseline(data: RunSummary, recorded: Run) -> None:
    (cell,) = data.cells
    assert [agent.name for agent in cell.agents] == [recorded.names[row.agent] for row in recorded.scores.agents]
    assert cell.baseline == "equal-weight"
    assert cell.baseline_phrase == "buy and hold"
    assert len(cell.sessions) == 61
    assert cell.badges.data == "synthetic"
    assert "cash" in cell.rules
    assert (data.level, data.draws) == (0.95, 100)


def test_numbers_are_those_of_the_scores(data: RunSummary, recorded: Run) -> None:
    for agent, row in zip(data.cells[0].agents, recorded.scores.agents, strict=True):
        assert agent.measures == row.measures
        assert agent.versus == row.versus_baseline
        assert agent.row == row


def test_the_repetition_in_the_middle_is_shown(data: RunSummary, recorded: Run) -> None:
    chance = next(agent for agent in data.cells[0].agents if agent.name == "random")
    assert len(chance.paths) == 3
    ends = [path[-1] for path in chance.paths]
    assert chance.path[-1] == sorted(ends)[1]
    assert chance.seeds == 3
    assert chance.detail is not None
    held = chance.detail.holdings
    assert held is not None
    assert np.shape(held.weights) == (len(held.symbols), 61)
    assert len(chance.detail.falls) == 62


def test_trades_lie_on_their_prices(data: RunSummary) -> None:
    (cell,) = data.cells
    turning = next(agent for agent in cell.agents if agent.name == "reversal")
    assert turning.detail is not None
    assert turning.detail.trades
    for trade in turning.detail.trades[:50]:
        assert trade.symbol in cell.prices
        close = cell.prices[trade.symbol][cell.sessions.index(trade.session)]
        assert close is not None
        assert trade.price == pytest.approx(close, rel=0.5)
    assert all(len(prices) == 61 for prices in cell.prices.values())


def test_failures_keep_their_reasons(data: RunSummary) -> None:
    by_name = {agent.row.agent: agent for agent in data.cells[0].agents}
    silent, broken = by_name["test-report-silent"], by_name["test-report-broken"]
    assert silent.paths == ()
    assert "no usable answer in any of 61 sessions" in str(silent.failure)
    assert silent.failures
    assert "no key" in str(broken.failure)
    assert silent.causes and silent.causes[0].kind in silent.failures
    assert broken.causes[0].kind == "exception" and "(report_agents.py, line " in broken.causes[0].detail
    assert broken.causes[0].where.endswith("/outcome.json") and "(report_agents.py, line" in str(broken.failure)
    assert "no key" in broken.causes[0].answer
    assert len(broken.failed_episodes) == 3
    assert by_name["cash"].failure is None


def test_a_leaderboard_needs_less(recorded: Run, data: RunSummary) -> None:
    light = summary_of(recorded, details=False)
    for agent, full in zip(light.cells[0].agents, data.cells[0].agents, strict=True):
        assert agent.measures == full.measures
        assert agent.failure == full.failure
        assert agent.detail is None


def test_the_page_lies_beside_the_run(recorded: Run) -> None:
    page = write_html(recorded)
    assert page == recorded.folder / "report.html"
    text = page.read_text(encoding="utf-8")
    assert "no key &lt;b&gt;given&lt;/b&gt;" in text
    assert f"tradeassay resume {recorded.name} --retry-failed" in text and "(report_agents.py, line " in text
    assert recorded.manifest.work_sha256 in text
    assert str(recorded.folder) not in text
    assert text == write_html(recorded, recorded.folder / "again.html").read_text(encoding="utf-8")


def test_the_leaderboard_is_printed(recorded: Run, capsys: pytest.CaptureFixture[str]) -> None:
    print_leaderboard(recorded)
    out = capsys.readouterr().out
    assert "synthetic data" in out
    assert "test-report-broken" in out
    assert "failed" in out


def test_two_runs_side_by_side(
    recorded: Run, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = play(home, tmp_path / "other", 1)
    print_comparison(compare(recorded, other, home=home))
    out = capsys.readouterr().out
    assert "the same, session by session" in out
    assert "can they be told apart?" in out
    assert "an episode failed" in out or "no usable answer" in out


def test_without_the_data_only_decoration_is_missing(recorded: Run, data: RunSummary, tmp_path: Path) -> None:
    elsewhere = Run.load(recorded.folder, home=tmp_path)
    manifest = recorded.manifest
    changed = {name: msgspec.structs.replace(entry, sha256="0" * 64) for name, entry in manifest.datasets.items()}
    elsewhere.manifest = msgspec.structs.replace(manifest, datasets=changed)
    with pytest.warns(TradeassayWarning, match="no index and no prices"):
        bare = summary_of(elsewhere)
    assert bare.cells[0].prices == {}
    assert bare.cells[0].index is None
    assert bare.cells[0].agents == data.cells[0].agents
    assert bare.cells[0].sessions == data.cells[0].sessions
