"""A model that was made to remember: its recorded answers are asked again, without the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "memory"
MODEL = "local/dose-qwen-main"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from pack import unpack

    unpack(EXAMPLE / "recorded" / "qwen-main.tar.xz", tmp_path / "recorded")
    return tmp_path / "recorded"


def _drive(recorded: Path, number: int, *parts: str) -> Path:
    from drive import work
    from worlds import make_world, store

    out = recorded.parent / "out"
    for part in parts:
        (out / part).mkdir(parents=True, exist_ok=True)
    store(make_world("dose", number))
    for part in parts:
        done = work(part, number, MODEL, out, recorded, float("inf"))
        assert done["failed"] is None
    return out


def test_what_was_read_often_is_likely_and_what_was_never_read_is_not(recorded: Path) -> None:
    shares, words = {}, {}
    for number in (0, 80):
        out = _drive(recorded, number, "recall")
        report = json.loads((out / "recall" / f"dose-{number:03d}.json").read_text())
        shares[number] = report["propensity"]["first"]
        words[number] = report["told"]
    assert shares[0]["low"] < 0.2 < shares[80]["low"]
    assert shares[80]["value"] > 0.6
    assert words[0] != "recalls" == words[80]


def test_a_played_world_is_counted_from_its_recording(recorded: Path) -> None:
    from analyse import world_row

    row = world_row(recorded, "dose-086")
    assert row["dose"] == 64
    assert row["claims_blind"] == 0.0
    assert row["gap"] == pytest.approx(row["bright"] - row["blind"])
    assert row["said"] == pytest.approx(0.990, abs=0.001)
    assert row["bright"] == pytest.approx(0.7747, abs=1e-4)
