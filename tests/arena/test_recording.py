"""A season's answers are packed and played again: the same decisions and standings, or a word
about it.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_arena.recording import pack_season, replayed_differences, season_differences
from tradeassay_arena.season import demo_season
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_bench.llm import RecordingMismatch
from tradeassay_bench.runs.store.archive import (
    open_recording,
    read_members,
    recording_faults,
    write_packed,
)

pytestmark = pytest.mark.journey

AGAIN = "tradeassay arena run --season season.toml --db arena.db"


@pytest.fixture(scope="module")
def packed(scripted_db, tmp_path_factory):
    """The recording of a small season that scripted models played."""
    place = tmp_path_factory.mktemp("season")
    shutil.copyfile(scripted_db, place / "arena.db")
    pack_season(
        place / "arena.db",
        place / "arena.tar.xz",
        engine="a program",
        precision="none",
        command=AGAIN,
    )
    return place / "arena.tar.xz"


def changed(packed: Path, place: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Return a recording that somebody changed and then gave a label that fits."""
    content = dict(read_members(packed))
    change(content)
    label = json.loads(content["recording.json"])
    label["files"] = {
        name: sha256_bytes(one) for name, one in content.items() if name != "recording.json"
    }
    content["recording.json"] = (json.dumps(label, indent=1, ensure_ascii=False) + "\n").encode()
    write_packed(place / "changed.tar.xz", content)
    return place / "changed.tar.xz"


@pytest.fixture(scope="module")
def again(packed, tmp_path_factory):
    """The database of that season, played again from its recording."""
    place = tmp_path_factory.mktemp("again")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRADEASSAY_HOME", str(place / "home"))
        assert (
            main(["arena", "run", "--recordings", str(packed), "--db", str(place / "again.db")])
            == 0
        )
        assert main(["recordings", "check", "--no-replay", str(packed)]) == 0
    return place / "again.db"


def test_a_recorded_season_comes_out_again(packed, again, tmp_path):
    opened = open_recording(packed, tmp_path / "home")
    assert season_differences(opened, again) == recording_faults(opened) == []
    assert (
        main(["recordings", "record", str(again), "-o", str(tmp_path / "second.tar.xz"), "--json"])
        == 0
    )
    first, second = dict(read_members(packed)), dict(read_members(tmp_path / "second.tar.xz"))
    assert {name for name in first if first[name] != second[name]} == {"recording.json"}
    assert b"You " not in b"".join(
        one for name, one in first.items() if name.startswith("models/")
    )  # no question


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("standings.json", b'"failed":0', b'"failed":1'),
        ("decisions.jsonl", b'"BUY"', b'"SELL"'),
        ("decisions.jsonl", b'"asset"', b'"note":"of others","asset"'),
    ],
)
def test_a_change_with_a_label_that_fits_is_found_by_playing(
    packed, again, tmp_path, name, old, new
):
    def change(content: dict[str, bytes]) -> None:
        content[name] = content[name].replace(old, new, 1)

    opened = open_recording(changed(packed, tmp_path, change), tmp_path / "home")
    assert recording_faults(opened) == []
    assert season_differences(opened, again)


def test_another_answer_is_found_by_playing(packed, tmp_path):
    def sold(content: dict[str, bytes]) -> None:
        for name in [one for one in content if one.startswith("models/")]:
            lines = [json.loads(line) for line in content[name].splitlines()]
            for line in lines[1:]:
                line["reply"]["text"] = line["reply"].get("text", "").replace('"BUY"', '"SELL"')
            content[name] = b"".join(
                json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines
            )

    try:
        found = replayed_differences(
            open_recording(changed(packed, tmp_path, sold), tmp_path / "home")
        )
    except RecordingMismatch:
        return  # the next question was about another answer
    assert found


def test_a_question_that_was_not_recorded_stops_the_replay(packed, tmp_path):
    def shorter(content: dict[str, bytes]) -> None:
        name = next(one for one in content if one.startswith("models/"))
        content[name] = b"".join(content[name].splitlines(keepends=True)[:-1])

    opened = open_recording(changed(packed, tmp_path, shorter), tmp_path / "home")
    assert any("its label states" in one for one in recording_faults(opened))
    with pytest.raises(RecordingMismatch, match="nothing was recorded"):
        replayed_differences(opened)


def test_what_cannot_be_played_again_is_not_recorded(tmp_path):
    store = Store(open_engine(str(tmp_path / "new.db")))
    store.create_season(demo_season(), "2022-03-01T00:00:00Z")
    store.engine.dispose()
    with pytest.raises(UserError, match="is not finished: it cannot be recorded"):
        pack_season(tmp_path / "new.db", tmp_path / "x", engine="", precision="")
    with pytest.raises(UserError, match=r"no season 'demo-8'.*demo-7"):
        pack_season(tmp_path / "new.db", tmp_path / "x", season="demo-8", engine="", precision="")
