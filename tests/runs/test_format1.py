"""Runs of the first format are read, verified, continued and compared; what is written is the present format."""

import shutil
from pathlib import Path

import msgspec
import pytest
import runs_world as world
from runs_code_toy import NAME, ToyProtocol, ToySpec, fresh, same

from tradeassay.core.errors import RunError
from tradeassay.runs import CodeManifest, CodeRun, Run, compare, load_run, resume, run
from tradeassay.runs.store.manifest import read_manifest
from tradeassay.runs.verify.report import verify


def as_format_1(folder: Path) -> None:
    """Write a run of programs as the first format had it."""
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
    items = [
        {
            "key": one["key"], "model": one["agent"]["params"]["model"], "task": one["task"],
            "labels": one["protocol"], "seed": one["seed"],
        }
        for one in manifest.pop("episodes")
    ]  # fmt: skip
    del manifest["episodes_in"]
    content = msgspec.json.encode({**manifest, "format": 1, "items": items}, order="sorted")
    (folder / "manifest.json").write_bytes(msgspec.json.format(content, indent=1) + b"\n")
    (folder / "episodes").rename(folder / "items")
    for item in (folder / "items").iterdir():
        outcome = msgspec.json.decode((item / "outcome.json").read_bytes())
        old = {
            **outcome["program"],
            "status": outcome["status"],
            "answers": outcome["model"]["answers"],
            "spent": outcome["model"]["roles"],
        }  # fmt: skip
        (item / "outcome.json").write_bytes(msgspec.json.encode(old) + b"\n")
        (item / "events.jsonl").unlink()
        (item / "dialogue.jsonl").unlink()
    (folder / "scores.json").unlink()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    fresh()
    run(ToySpec(tasks=2), tmp_path / "new")
    shutil.copytree(tmp_path / "new", tmp_path / "old")
    as_format_1(tmp_path / "old")
    return tmp_path / "old"


def test_a_run_of_programs_is_read_summed_up_and_compared(old: Path) -> None:
    fresh()
    resumed = resume(old)
    assert not ToyProtocol.worked, "every item had ended"
    new = CodeRun.load(old.parent / "new")
    assert isinstance(resumed, CodeRun)
    assert resumed.episodes == new.episodes and resumed.records() == new.records()
    assert resumed.spent("writer") == new.spent("writer") and resumed.scores == new.scores
    assert verify(old).ok and compare(resumed, new).pairs[0].measures["total"].difference == 0.0


def test_verify_sees_an_edited_outcome_of_the_first_format(old: Path) -> None:
    resume(old)
    path = old / "items/tiny-lines__t1/outcome.json"
    path.write_bytes(path.read_bytes().replace(b'"lines":[1,3,5]', b'"lines":[1,3]'))
    told = [str(one) for one in verify(old).violations]
    assert any("scores: scoring again gives other bytes" in one for one in told)
    assert "tiny-lines__t1, step 0: programs: lines and replies differ" in told


def test_an_unfinished_run_of_the_first_format_goes_on(old: Path) -> None:
    (old / "items/tiny-lines__t0/outcome.json").unlink()
    fresh()
    done = resume(old)
    assert sorted(ToyProtocol.worked) == ["t0/1", "t0/2", "t0/3"]
    assert done.records() == CodeRun.load(old.parent / "new").records() and verify(old).ok  # type: ignore[union-attr]


def test_a_manifest_of_a_trading_run_without_its_kind(finished: Run, home: Path, tmp_path: Path) -> None:
    shutil.copytree(finished.folder, tmp_path / "tiny")
    path = tmp_path / "tiny/manifest.json"
    manifest = msgspec.json.decode(path.read_bytes())
    for name in ("kind", "episodes_in"):
        del manifest[name]
    for episode in manifest["episodes"]:
        del episode["task"]
    path.write_bytes(msgspec.json.encode({**manifest, "format": 1}))
    before = path.read_bytes()
    again = load_run(tmp_path / "tiny", home=home)
    assert isinstance(again, Run) and again.manifest == finished.manifest
    resume(tmp_path / "tiny", executor="inline", home=home)
    assert path.read_bytes() == before, "a manifest is never rewritten"
    assert world.same_bytes(tmp_path / "tiny") == world.same_bytes(finished.folder)


def test_another_format_is_refused_and_a_manifest_of_programs_says_its_kind(old: Path) -> None:
    manifest = read_manifest(old.parent / "new/manifest.json")
    assert isinstance(manifest, CodeManifest) and manifest.benchmark == NAME
    assert (old.parent / "new/episodes").is_dir() and "items" not in str(list(same(old.parent / "new")))
    path = old / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(RunError, match="has format 9, this version reads up to 2"):
        load_run(old)
