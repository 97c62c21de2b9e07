"""Models that were made to remember are asked again from their recordings, and say what is printed of them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

MEMORY = Path(__file__).resolve().parents[2] / "examples" / "memory"
NEVER, OFTEN = 0, 90
"""A world that the model never read about, and one that it read about 64 times."""


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, ModuleType]:
    names = ("worlds", "practice", "drive", "analyse", "pack")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(MEMORY))
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    made = {name: __import__(name) for name in names}
    made["pack"].unpack(MEMORY / "recorded" / "qwen-main.tar.xz", tmp_path / "recorded")
    return made


def again(recipe: dict[str, ModuleType], folder: Path, number: int, *parts: str) -> dict[str, object]:
    """Ask one world's questions from the recording; return its row of the table."""
    world = recipe["worlds"].make_world("dose", number)
    recipe["worlds"].store(world)
    for part in parts:
        (folder / "again" / part).mkdir(parents=True, exist_ok=True)
        asked = (part, number, "local/dose-qwen-main", folder / "again", folder / "recorded", time.time() + 900)
        done = recipe["drive"].work(*asked)
        assert done["failed"] is None, done
    found: dict[str, object] = recipe["analyse"].world_row(folder / "again", world.id)
    return found


def printed(number: int) -> dict[str, object]:
    rows = json.loads((MEMORY / "recorded" / "worlds.json").read_text())["qwen-main"]
    found: dict[str, object] = next(row for row in rows if row["world"] == f"dose-{number:03d}")
    return found


@pytest.mark.parametrize(("number", "told"), [(NEVER, False), (OFTEN, True)])
def test_an_audit_is_asked_again_without_a_model(
    recipe: dict[str, ModuleType], tmp_path: Path, number: int, told: bool
) -> None:
    row, then = again(recipe, tmp_path, number, "recall"), printed(number)
    assert row["told"] == then["told"] and (row["told"] == "recalls") is told
    for name in ("asked", "hit", "closes", "refused", "first", "familiar"):
        assert row[name] == pytest.approx(then[name], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("number", [NEVER, OFTEN])
def test_play_and_verdict_come_out_again(recipe: dict[str, ModuleType], tmp_path: Path, number: int) -> None:
    then = printed(number)
    parts = [part for part, name in (("traded", "traded_told"), ("counterfactual", "unread")) if name in then]
    row = again(recipe, tmp_path, number, "recall", "play", *parts, "assay")
    assert {name: row[name] for name in ("word", "word_blind")} == {
        name: then[name] for name in ("word", "word_blind")
    }
    for name in ("bright", "gap", "claims"):
        assert row[name] == pytest.approx(then[name], rel=1e-5)


def test_the_bars_hold() -> None:
    rows = json.loads((MEMORY / "recorded" / "worlds.json").read_text())
    told = {
        dose: [row["told"] == "recalls" for row in rows["qwen-main"] if row["dose"] == dose]
        for dose in (0, 16, 64)
    }
    placebo = [row["told"] == "recalls" for row in rows["qwen-placebo"]]
    assert len(told[0]) >= 20 <= len(placebo) and sum(told[0] + placebo) <= 0.05 * len(told[0] + placebo)
    assert all(len(told[dose]) >= 20 and sum(told[dose]) >= 0.9 * len(told[dose]) for dose in (16, 64))
