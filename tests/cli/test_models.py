"""Models on the command line: listing, planning, running, replaying, resuming."""

import json
from pathlib import Path

import pytest

from tradeassay.cli import main

WEEK = ["ktdfin-v1", "-m", "scripted/sensible", "--first", "2022-02-07", "--last", "2022-02-11"]


def test_models_are_listed_with_price_and_cutoff(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    assert "scripted/broken-json" in shown
    assert "local/smollm2" in shown
    assert main(["models", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert listed["openai/gpt-4o"]["input_usd"] == 2.5
    assert listed["openai/gpt-4o"]["cutoff"]
    assert listed["local/smollm2"]["note"].endswith("not here: tradeassay models --get smollm2")


def test_an_unknown_local_model_gets_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("smollm", "local/smollm"):
        assert main(["models", "--get", wrong]) == 2
        said = "error: no local model 'smollm' (did you mean smollm2? known: qwen2.5-coder-1.5b, smollm2)"
        assert capsys.readouterr().err.strip() == said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["ktdfin-v1", "-m", "gpt-5"], "is not a model name"),
        (["ktdfin-v1", "-m", "scripted/sensibel"], "did you mean sensible"),
        (["ktdfin-v1", "-m", "scripted/sensible", "--mask", "dark"], "it is one of blinded, bright"),
        (["ktdfin-v1", "-m", "scripted/sensible", "-p", "maks=bright"], "did you mean mask"),
        (["ktdfin-v1", "-m", "scripted/sensible", "-p", "mask"], "write KEY=VALUE"),
        (["ktdfin-v1", "-m", "scripted/sensible", "-p", "convention=paper"], "follows the convention 'sound'"),
        (["daily-us-v1", "-m", "scripted/sensible", "-p", "atempts=2"], "did you mean attempts"),
        (["ktdfin-v1", "-m", "scripted/sensible", "--max-usd", "0"], "buys nothing"),
        (["ktdfin-v1", "-m", "openai/none-such", "--max-usd", "5"], "price of openai/none-such is unknown"),
        (["ktdfin-v1", "-m", "scripted/sensible", "--cassettes", "nowhere"], "no recorded run 'nowhere'"),
    ],
)
def test_bad_input_gets_one_line_with_the_mend(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    assert main(["run", *argv]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert not (place / "runs").exists(), "a refused command leaves nothing behind"


@pytest.mark.slow
def test_a_named_window_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--plan", "ktdfin-v1", "-m", "scripted/sensible", "--window", "W99"]) == 2
    assert "has no window 'W99'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_plan_has_calls_tokens_and_dollars(capsys: pytest.CaptureFixture[str]) -> None:
    grid = "ktdfin-v1 -m openai/gpt-4o -m openai/none-such --mask bright,blinded --window W4".split()
    assert main(["run", "--plan", *grid, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    cells = [cell for cell in planned["cells"] if cell["model"]]
    assert len(cells) == 4
    assert all(cell["model_calls"] > 43 and cell["input_tokens"] > 10_000 for cell in cells)
    assert {cell["model"]: cell["usd"] is None for cell in cells} == {
        "openai/gpt-4o": False,
        "openai/none-such": True,
    }
    assert main(["run", "--plan", *grid]) == 0
    assert "price unknown" in capsys.readouterr().out


def test_models_and_rules_run_replay_and_resume(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several = [*WEEK, "-a", "cash", "--mask", "bright,blinded", "--workers", "1"]
    assert main(["run", *several, "--slug", "one", "--json"]) == 0
    agents = json.loads(capsys.readouterr().out)["agents"]
    assert [row["agent"] for row in agents if "blinded" in row["cell"]] == [
        "equal-weight",
        "cash",
        "scripted-sensible",
    ]
    assert main(["run", *several, "--slug", "two", "--replay", "--cassettes", "one"]) == 0
    scores = [(place / "runs" / slug / "scores.json").read_bytes() for slug in ("one", "two")]
    assert scores[0] == scores[1]
    assert main(["resume", "two", "--workers", "1", "--retry-failed", "--concurrency", "2"]) == 0
    assert main(["verify", "one"]) == 0


@pytest.mark.slow
def test_a_named_window_is_found_on_the_data(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = ["ktdfin-v1", "-m", "scripted/sensible", "--mode", "memory-only", "--window", "W4", "--slug", "named"]
    assert main(["run", *named, "--workers", "1"]) == 0
    manifest = json.loads((place / "runs" / "named" / "manifest.json").read_text())
    ((cell, window),) = manifest["windows"].items()
    assert cell.endswith("__mode=memory-only+W4")
    assert (window["sessions"], window["structural"]) == (43, True)
    scores = json.loads((place / "runs" / "named" / "scores.json").read_text())
    assert {episode["steps"] for episode in scores["episodes"]} == {43}
    assert main(["verify", "named"]) == 0


def test_a_failed_model_is_shown_as_failed(capsys: pytest.CaptureFixture[str]) -> None:
    silent = ["ktdfin-v1", "-m", "scripted/never-submits", "--first", "2022-02-07", "--last", "2022-02-09"]
    assert main(["run", *silent, "--workers", "1"]) == 1
    shown = capsys.readouterr()
    assert "no usable answer in any of 3 sessions" in shown.out
    assert "1 of 2 episodes failed" in shown.err
