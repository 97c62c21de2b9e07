"""Commands that lead to studies beside the verdict, on runs that were recorded once."""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "recorded"))

import golden
from golden import stored as played

from tradeassay.arena.queries.seasons import opened_season
from tradeassay.arena.web.pages import names_of
from tradeassay.arena.web.words import words
from tradeassay.cli import main


@pytest.mark.slow
def test_an_assay_can_be_studied_further(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(played("ktdfin-paper"), tmp_path / "run")
    assert main(["assay", str(tmp_path / "run"), "--portfolios", "0", "--rationales", "--regimes", "--json"]) == 0
    studies = json.loads(capsys.readouterr().out)["studies"]
    assert studies["rationales"]["rows"][0]["agent"] == "scripted-sensible" and studies["regimes"]


def test_a_sweep_prices_every_setting_at_every_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", "sweep", "bollinger", "--variants", "2", "--tapes", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 2 * 5 and {row["variant"] for row in rows} == {0, 1}
    assert main(["code", "sweep", "bolinger"]) == 2
    assert "did you mean bollinger" in capsys.readouterr().err


def test_people_mark_submissions_blind(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["code", "review", str(played("systrade-peeps"))]) == 0
    form = Path("form.json").read_text()
    assert "scripted/builder-peeps" not in form and "item-001" in form
    head, row = Path("marks.csv").read_text().splitlines()
    marks = [row.replace(",,,,", f",{who},{mark},7,") for who, mark in (("ann", 8), ("bob", 9))]
    Path("marks.csv").write_text("\n".join([head, *marks]) + "\n")
    capsys.readouterr()
    assert main(["code", "review", "marks.csv", "--key", "key.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["board"]["fidelity"]["scripted/builder-peeps"]["value"] == 8.5
    assert found["agreement"]["raters"] == 2


@pytest.mark.slow
def test_only_runs_of_systrade_are_marked_by_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", "review", str(played("quantcode-frame"))]) == 2
    assert "name a run of systrade-v1" in capsys.readouterr().err


def test_a_season_without_feedback_has_no_rewards(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    db = golden.play_season("arena", tmp_path / "arena.db")
    capsys.readouterr()
    assert main(["arena", "standings", "--rewards", "trade", "--db", str(db), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["arena", "standings", "--db", str(db)]) == 0
    shown = capsys.readouterr().out
    with opened_season(str(db)) as (_, season):
        names = names_of(words("en"), season)
    assert len(names) > 1 and all(name in shown for name in names.values()), "as its pages call them"


@pytest.mark.slow
def test_the_leak_check_is_tried_on_known_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", "validate", "--look-ahead"]) == 0
    assert "judged right" in capsys.readouterr().err


def test_broken_plugins_are_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from tradeassay.agents import agents
    from tradeassay.cli import doctor

    monkeypatch.setattr(agents, "_broken", {"theirs": "ImportError: no module named theirs"})
    monkeypatch.setattr(doctor, "_kernel", lambda: iter(()))
    assert main(["doctor", "--json"]) == 1
    broken = [one for one in json.loads(capsys.readouterr().out) if one["state"] == "broken"]
    assert [one["part"] for one in broken] == ["agent theirs"]
