"""What a recorded run could have shown, and what the commands say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

import attribute_runs

from tradeassay.assay.power import power_of_run
from tradeassay.cli._group import root
from tradeassay.metrics import Design, power_of
from tradeassay.runs.summary import summary_of


def ask(*words: str) -> str:
    done = CliRunner().invoke(root, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_comparison_is_an_experiment() -> None:
    run = attribute_runs.every_venue()
    found = power_of_run(run)
    assert {(one.cell, one.agent) for one in found} == {
        (row.cell, run.names[row.agent]) for row in run.scores.agents if not row.baseline
    }
    silent = [one for one in found if one.agent.endswith(": test-never-answers")]
    assert all(one.design is None and "no result" in str(one.reason) for one in silent)
    seen = next(one for one in found if one.agent.endswith(": test-provoker") and one.design is not None)
    assert seen.design is not None and seen.power_summary is not None
    assert seen.design.sessions == 50 and seen.power_summary.hopeless
    assert seen.power_summary.chance == pytest.approx(power_of(1.0, seen.design))
    assert "can hardly show skill" in seen.sentence


def test_the_report_says_when_nothing_could_have_shown() -> None:
    data = summary_of(attribute_runs.every_venue())
    cell = next(one for one in data.cells if one.benchmark == "tiny-us-v1")
    (sentence,) = cell.limits
    assert "can hardly show skill" in sentence and sentence.endswith(".")


def test_the_power_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "7,912" in ask("power", "--ir", "0.5")
    told = json.loads(ask("power", "--ir", "2", "--sessions", "500", "--seeds", "3", "--json"))
    assert told["power_summary"]["chance"] == pytest.approx(power_of(2.0, Design(sessions=500, seeds=3)))
    run = attribute_runs.every_venue()
    monkeypatch.setenv("TRADEASSAY_HOME", str(run.folder.parent))
    assert "test-provoker" in ask("power", str(run.folder))
    lucky = json.loads(ask("luck", str(run.folder), "--agent", "test-provoker", "--portfolios", "100", "--json"))
    assert [one["agent"] for one in lucky] == ["rule of runs_agents: test-provoker"] * 8
    table = ask("luck", str(run.folder), "--agent", "index-hold", "--portfolios", "100", "--by", "sharpe")
    assert "hardly differ" in " ".join(table.split())


def test_the_luck_command_on_a_file(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("date,return\n2024-01-15,0.01\n2024-01-16,0.01\n")
    wrong = CliRunner().invoke(root, ["luck", str(table)])
    assert wrong.exit_code != 0 and "--names" in str(wrong.output or wrong.exception)
