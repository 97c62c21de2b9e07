"""The recordings in this checkout were made with its prompts and rules, and hold what they may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tradeassay.arena.recording import changed_season_facts, replayed_differences
from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.data import list_datasets
from tradeassay.runs.store.archive import (
    AUDIT,
    RecordingInfo,
    changed_facts,
    list_recordings,
    open_recording,
    recording_faults,
    replay_recording,
    score_differences,
)

SHIPPED, AUDITS = list_recordings(), list_recordings(AUDIT)
MOST_MEGABYTES = 25.0
SAMPLE = ("smollm2/systrade",)
"""What is played again by default: programs with their patches."""
AUDIT_SAMPLE = "smollm2/recall-fakestockdata"


def test_all_recordings_together_stay_small() -> None:
    assert sum(one.megabytes for one in SHIPPED) < MOST_MEGABYTES


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_a_changed_prompt_needs_a_new_recording(one: RecordingInfo, tmp_path: Path) -> None:
    opened = open_recording(Path(one.path), tmp_path)
    facts = changed_season_facts(opened) if opened.is_season else changed_facts(opened)
    changed = [fact for fact in facts if "version" not in fact]
    assert not changed, f"{changed[0]} has changed: record again with: {one.label.command}"
    assert not recording_faults(opened)
    assert one.label.complete and one.label.engine != "not stated"


@pytest.mark.parametrize(
    "one",
    [pytest.param(one, marks=() if one.name in SAMPLE else pytest.mark.slow, id=one.name) for one in SHIPPED],
)
def test_a_recording_gives_its_scores_again(one: RecordingInfo, tmp_path: Path) -> None:
    opened = open_recording(Path(one.path), tmp_path / "home")
    if opened.is_season:
        assert replayed_differences(opened) == []
        return
    try:
        replay_recording(opened, tmp_path / "again", workers=1)
    except UserError as error:
        pytest.skip(f"this machine cannot play it: {error}")
    assert score_differences(opened, tmp_path / "again") == []


@pytest.mark.parametrize(
    "one",
    [pytest.param(one, marks=() if one.name == AUDIT_SAMPLE else pytest.mark.slow, id=one.name) for one in AUDITS],
)
def test_an_audit_is_listed_holds_no_prices_and_is_asked_again(
    one: RecordingInfo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, dataset = one.name.split("/recall-")
    assert main(["recordings", "list"]) == 0
    assert f"recorded/{one.name}" in capsys.readouterr().out
    opened = open_recording(Path(one.path), tmp_path)
    answers = [
        json.loads(line)
        for path in (opened.folder / "models").glob("*.jsonl")
        for line in path.read_text().splitlines()[1:]
    ]
    assert len(answers) == one.label.answers > 800
    weighed = [line for line in answers if line["asked"]["purpose"] == "logprobs"]
    echoed = [json.loads(line["reply"]["text"])["tokens"] for line in weighed]
    assert all(set(token) <= {"x"} for tokens in echoed for token in tokens)
    if dataset not in {known.name for known in list_datasets()}:
        pytest.skip(f"{dataset} is not on this machine: tradeassay data get {dataset}")
    command = one.label.command.split()[1:]
    assert main([*command, "--cassettes", f"recorded/{model}", "--replay", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    shipped = json.loads((Path(one.path).parent / "recall.json").read_text())[dataset]
    assert {name: told[name] for name in ("told", "sentence", "recall")} == {
        name: shipped[name] for name in ("told", "sentence", "recall")
    }


@pytest.mark.slow
def test_some_programs_of_a_training_run_are_judged_again(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(Path(__file__).parents[2] / "examples" / "training" / "recorded" / "qwen-before-unseen.tar.xz")
    assert main(["recordings", "check", file, "--programs", "2"]) == 0
    told = capsys.readouterr().err
    assert "2 of 44 tasks were judged again" in told and "holds" in told
