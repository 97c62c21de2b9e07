"""Models on the command line, and studies beside the verdict on runs that were recorded once."""

import json
import shutil
from pathlib import Path

import golden
import pytest
from golden import stored as played

from tradeassay.arena.queries.seasons import opened_season
from tradeassay.arena.web.pages import names_of
from tradeassay.arena.web.words import words
from tradeassay.benchmarks.programs import code_benchmarks
from tradeassay.cli import main

WEEK = ["ktdfin-v1", "-m", "scripted/sensible", "--first", "2022-02-07", "--last", "2022-02-11"]


def test_models_are_listed_with_price_and_cutoff(tell, capsys):
    shown = tell(["models"]).out
    assert "scripted/broken-json" in shown
    assert "local/smollm2" in shown
    listed = {one["name"]: one for one in json.loads(tell(["models", "--json"]).out)}
    assert listed["openai/gpt-4o"]["input_usd"] == 2.5
    assert listed["openai/gpt-4o"]["cutoff"]
    assert listed["local/smollm2"]["note"].endswith("not here: tradeassay models --get smollm2")
    for wrong in ("smollm", "local/smollm"):
        assert main(["models", "--get", wrong]) == 2
        said = "error: no local model 'smollm' (did you mean smollm2? known: qwen2.5-coder-1.5b, smollm2)"
        assert capsys.readouterr().err.strip() == said


@pytest.mark.slow
def test_a_named_window_that_does_not_exist(tell):
    assert (
        "has no window 'W99'"
        in tell(["run", "--plan", "ktdfin-v1", "-m", "scripted/sensible", "--window", "W99"], 2).err
    )


@pytest.mark.slow
def test_a_plan_has_calls_tokens_and_dollars(tell):
    grid = "ktdfin-v1 -m openai/gpt-4o -m openai/none-such --mask bright,blinded --window W4".split()
    planned = json.loads(tell(["run", "--plan", *grid, "--json"]).out)
    cells = [cell for cell in planned["cells"] if cell["model"]]
    assert len(cells) == 4
    assert all(cell["model_calls"] > 43 and cell["input_tokens"] > 10_000 for cell in cells)
    assert {cell["model"]: cell["usd"] is None for cell in cells} == {
        "openai/gpt-4o": False,
        "openai/none-such": True,
    }
    assert "price unknown" in tell(["run", "--plan", *grid]).out


def test_models_and_rules_run_replay_and_resume(place, tell):
    several = [*WEEK, "-a", "cash", "--mask", "bright,blinded", "--workers", "1"]
    agents = json.loads(tell(["run", *several, "--slug", "one", "--json"]).out)["agents"]
    assert [
        row["agent"] for row in agents if "blinded" in row["cell"]
    ] == "equal-weight cash scripted-sensible".split()
    assert main(["run", *several, "--slug", "two", "--replay", "--cassettes", "one"]) == 0
    scores = [(place / "runs" / slug / "scores.json").read_bytes() for slug in ("one", "two")]
    assert scores[0] == scores[1]
    assert main(["resume", "two", "--workers", "1", "--retry-failed", "--concurrency", "2"]) == 0
    assert main(["verify", "one"]) == 0


@pytest.mark.slow
def test_a_named_window_is_found_on_the_data(place):
    named = ["ktdfin-v1", "-m", "scripted/sensible", "--mode", "memory-only", "--window", "W4", "--slug", "named"]
    assert main(["run", *named, "--workers", "1"]) == 0
    manifest = json.loads((place / "runs" / "named" / "manifest.json").read_text())
    ((cell, window),) = manifest["windows"].items()
    assert cell.endswith("__mode=memory-only+W4")
    assert (window["sessions"], window["structural"]) == (43, True)
    scores = json.loads((place / "runs" / "named" / "scores.json").read_text())
    assert {episode["steps"] for episode in scores["episodes"]} == {43}
    assert main(["verify", "named"]) == 0


@pytest.mark.slow
def test_an_assay_can_be_studied_further(tell, tmp_path):
    shutil.copytree(played("ktdfin-paper"), tmp_path / "run")
    studies = json.loads(
        tell(["assay", str(tmp_path / "run"), "--portfolios", "0", "--rationales", "--regimes", "--json"]).out
    )["studies"]
    assert studies["rationales"]["rows"][0]["agent"] == "scripted-sensible" and studies["regimes"]


def test_people_mark_submissions_blind(tell, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["code", "review", str(played("systrade-peeps"))]) == 0
    form = Path("form.json").read_text()
    assert "scripted/builder-peeps" not in form and "item-001" in form
    head, row = Path("marks.csv").read_text().splitlines()
    marks = [row.replace(",,,,", f",{who},{mark},7,") for who, mark in (("ann", 8), ("bob", 9))]
    Path("marks.csv").write_text("\n".join([head, *marks]) + "\n")
    capsys.readouterr()
    found = json.loads(tell(["code", "review", "marks.csv", "--key", "key.json", "--json"]).out)
    assert found["board"]["fidelity"]["scripted/builder-peeps"]["value"] == 8.5
    assert found["agreement"]["raters"] == 2


@pytest.mark.slow
def test_only_runs_of_systrade_are_marked_by_people(tell):
    assert "name a run of systrade-v1" in tell(["code", "review", str(played("quantcode-frame"))], 2).err


def test_a_season_without_feedback_has_no_rewards(tell, capsys, tmp_path):
    db = golden.play_season("arena", tmp_path / "arena.db")
    capsys.readouterr()
    assert json.loads(tell(["arena", "standings", "--rewards", "trade", "--db", str(db), "--json"]).out) == []
    shown = tell(["arena", "standings", "--db", str(db)]).out
    with opened_season(str(db)) as (_, season):
        names = names_of(words("en"), season)
    assert len(names) > 1 and all(name in shown for name in names.values()), "as its pages call them"


@pytest.mark.slow
def test_the_leak_check_is_tried_on_known_cases(tell):
    assert "judged right" in tell(["code", "validate", "--look-ahead"]).err


def test_what_one_run_needs_is_looked_at_before_it_costs_anything(tell, tmp_path, monkeypatch):
    from tradeassay.cli import doctor

    def found(what, status=0):
        return {
            one["part"]: one["state"] for one in json.loads(tell(["doctor", "--for", what, "--json"], status).out)
        }

    (spec := tmp_path / "spec.toml").write_text(
        'benchmarks = ["daily-us-v1"]\n[[agents]]\nname = "equal-weight"\n'
        '[[agents]]\nname = "trader"\nparams = { model = "nobody/none" }\n'
    )
    parts = found(str(spec), 1)
    assert parts == {"data synthetic/us:7": "ok", "agent equal-weight": "ok", "model nobody/none": "broken"}
    assert found("scripted/sensible") == {"model scripted/sensible": "ok"}
    assert "there is no file" in tell(["doctor", "--for", str(tmp_path / "misspelt.toml")], 2).err
    assert "daily-us-v1" in tell(["doctor", "--for", "daily-uss-v1"], 2).err
    for name, said in (
        ("quantcode-v2", "did you mean quantcode-v1?"),
        ("Systrade-v1", "did you mean systrade-v1"),
        ("ama", "'ama' is played in the arena"),
        (str(tmp_path), "is a folder"),
    ):
        assert said in tell(["doctor", "--for", name], 2).err
    (tmp_path / "programs.toml").write_text('benchmark = "quantcode-v1"\nmodels = ["scripted/nobody"]\n')
    assert found(str(tmp_path / "programs.toml"), 1)["model scripted/nobody"] == "broken"
    assert found("momentum-12-1") == {"agent momentum-12-1": "ok"}
    shut = doctor.MachineFinding("sandbox", "absent", "no Landlock")
    monkeypatch.setattr(doctor, "_kernel", lambda: iter((shut,)))
    for name in code_benchmarks():
        assert found(name, 1)["sandbox"] == "broken"


def test_broken_plugins_are_reported(tell, monkeypatch):
    from tradeassay.agents import agents
    from tradeassay.cli import doctor

    monkeypatch.setattr(agents, "_broken", {"theirs": "ImportError: no module named theirs"})
    monkeypatch.setattr(doctor, "_kernel", lambda: iter(()))
    broken = [one for one in json.loads(tell(["doctor", "--json"], 1).out) if one["state"] == "broken"]
    assert [one["part"] for one in broken] == ["agent theirs"]
