"""The demo's replayed model: where programs cannot be run, their recorded outcomes are shown, and it is said."""

from pathlib import Path

import pytest

from tradeassay.cli import demo
from tradeassay.runs.store.archive import find_recording, open_recording


def test_without_a_sandbox_the_recorded_outcomes_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(demo, "_no_programs_here", lambda: "this is macOS")
    [shown] = demo._programs(tmp_path / "runs", 1, quiet=False)
    said = capsys.readouterr()
    assert "because this is macOS" in said.err and "recorded outcomes" in said.err
    assert "144" in said.out and not (tmp_path / "runs").exists() and not shown.failed


def test_what_the_demo_replays_was_recorded_without_a_failed_episode(tmp_path: Path) -> None:
    recording = open_recording(find_recording(f"{demo._RECORDED}/ktdfin"), tmp_path)
    played = [
        one.key
        for one in recording.manifest.episodes
        if "mode=fixed-candidate" in one.key and ("mask=bright" in one.key or "mask=blinded" in one.key)
    ]
    models = [key for key in played if "qwen" in key]
    assert len(models) == 2
    for key in models:
        outcome = (recording.folder / "episodes" / key / "outcome.json").read_text(encoding="utf-8")
        assert '"status":"done"' in outcome
