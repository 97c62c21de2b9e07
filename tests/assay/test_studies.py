"""Robustness, regimes, rationales and planted agents: each one call, and each behind the command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import memory_runs

from tradeassay.assay import planted, study_run
from tradeassay.assay.studies import ASKS_NOBODY
from tradeassay.cli import main
from tradeassay.core.errors import UserError


def test_models_are_not_asked_again_unless_it_is_said_how(tmp_path: Path) -> None:
    run = memory_runs.masked_run()
    found = study_run(run, ("robustness", "rationales"), folder=tmp_path, home=memory_runs.home())
    assert found.robustness is not None
    assert {one.disturbance for one in found.robustness.scores} == set(ASKS_NOBODY)
    assert "asked again" in found.robustness.notes[-1]
    assert not list(tmp_path.iterdir())
    assert found.rationales is not None
    assert found.rationales.rows
    assert found.regimes is None


def test_a_run_without_models_has_no_rationales() -> None:
    with pytest.raises(UserError, match="no model played"):
        study_run(memory_runs.rules_only(), ("rationales",))


def test_the_command_asks_for_something_to_judge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assay"]) != 0
    said = capsys.readouterr()
    assert "RUN | FILE.csv | self-test" in said.err + said.out


def test_the_command_judges_planted_agents(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = planted.planted_world(88_001, names=40, sessions=80)
    monkeypatch.setattr(planted, "planted_world", lambda seed: small)
    assert main(["assay", "self-test", "--worlds", "1", "--portfolios", "0"]) == 0
    said = capsys.readouterr().out
    assert "in 1 worlds" in said and "leaking" in said
