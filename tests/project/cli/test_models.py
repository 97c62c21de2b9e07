"""Models on the command line, and studies beside the verdict on runs that were recorded once."""

import json
import shutil

import golden
import pytest
import scripted_misfits  # noqa: F401  # adds models
from golden import stored as played

from tradeassay_arena.queries.seasons import opened_season
from tradeassay_arena.web.pages import names_of
from tradeassay_arena.web.words import words
from tradeassay_bench.agents import agents

WEEK = "ktdfin-v1 -m scripted/sensible --first 2022-02-07 --last 2022-02-11"


def test_models_are_listed_with_price_and_cutoff(given, told):
    shown = given("models").out
    assert "scripted/broken-json" in shown and "local/smollm2" in shown
    listed = {one["name"]: one for one in told("models")}
    assert listed["openai/gpt-4o"]["input_usd"] == 2.5
    assert listed["openai/gpt-4o"]["cutoff"]
    assert listed["local/smollm2"]["note"].endswith(
        "not downloaded: tradeassay models --get smollm2"
    )


@pytest.mark.slow
def test_a_plan_has_calls_tokens_and_dollars(given, told):
    grid = (
        "run --plan ktdfin-v1 -m openai/gpt-4o -m openai/none-such --mask bright,blinded "
        "--window W4"
    )
    cells = [cell for cell in told(grid)["cells"] if cell["model"]]
    assert len(cells) == 4
    assert all(cell["model_calls"] > 43 and cell["input_tokens"] > 10_000 for cell in cells)
    unpriced = {cell["model"]: cell["usd"] is None for cell in cells}
    assert unpriced == {"openai/gpt-4o": False, "openai/none-such": True}
    assert "price unknown" in given(grid).out
    assert (
        "has no window 'W99'"
        in given("run --plan ktdfin-v1 -m scripted/sensible --window W99", 2).err
    )


def test_models_and_rules_run_replay_and_resume(place, given, told):
    several = f"run {WEEK} -a cash --mask bright,blinded --workers 1"
    rows = told(f"{several} --name one")["agents"]
    blind = [row["agent"] for row in rows if "blinded" in row["cell"]]
    assert blind == ["equal-weight", "cash", "scripted-sensible"]
    given(f"{several} --name two --replay --recordings one")
    one, two = ((place / "runs" / slug / "scores.json").read_bytes() for slug in ("one", "two"))
    assert one == two
    given("resume two --workers 1 --retry-failed --concurrency 2")
    given("verify one")


@pytest.mark.slow
def test_a_named_window_is_found_on_the_data(place, given):
    given(
        "run ktdfin-v1 -m scripted/sensible --mode memory-only --window W4 --name named --workers 1"
    )
    manifest = json.loads((place / "runs" / "named" / "manifest.json").read_text())
    ((cell, window),) = manifest["windows"].items()
    assert cell.endswith("__mode=memory-only+W4")
    assert (window["sessions"], window["structural"]) == (43, True)
    scores = json.loads((place / "runs" / "named" / "scores.json").read_text())
    assert {episode["steps"] for episode in scores["episodes"]} == {43}
    given("verify named")


@pytest.mark.slow
def test_an_assay_can_be_studied_further(told, place):
    shutil.copytree(played("ktdfin-paper"), place / "run")
    studies = told("assay ./run --portfolios 0 --regimes")["studies"]
    assert studies["regimes"]


def test_people_mark_submissions_blind(given, told, place):
    given(f"code review {played('systrade-peeps')}")
    form = (place / "form.json").read_text()
    assert "scripted/builder-peeps" not in form and "item-001" in form
    head, row = (place / "marks.csv").read_text().splitlines()
    marks = [row.replace(",,,,", f",{who},{mark},7,") for who, mark in (("ann", 8), ("bob", 9))]
    (place / "marks.csv").write_text("\n".join([head, *marks]) + "\n")
    found = told("code review marks.csv --key key.json")
    assert found["board"]["fidelity"]["scripted/builder-peeps"]["value"] == 8.5
    assert found["agreement"]["raters"] == 2


@pytest.mark.slow
def test_only_runs_of_systrade_are_marked_by_people(given):
    assert "name a run of systrade-v1" in given(f"code review {played('quantcode-frame')}", 2).err


def test_a_season_without_feedback_has_no_rewards(given, told, place, capsys):
    db = golden.play_season("arena", place / "arena.db")
    capsys.readouterr()
    assert told("arena standings --rewards trade --db arena.db") == []
    shown = given("arena standings --db arena.db").out
    with opened_season(str(db)) as (_, season):
        names = names_of(words("en"), season)
    assert len(names) > 1 and all(name in shown for name in names.values()), (
        "as its pages call them"
    )


@pytest.mark.slow
def test_the_leak_check_is_tried_on_known_cases(given):
    assert "are right" in given("code validate --look-ahead").err


def test_broken_plugins_are_reported(told, monkeypatch):
    problems = {"theirs": "ImportError: no module named theirs"}
    monkeypatch.setattr(agents, "broken", lambda: problems)
    assert [one["part"] for one in told("doctor", 1) if one["state"] == "broken"] == [
        "agent theirs"
    ]
