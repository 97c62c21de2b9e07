"""A run is continued only while everything its manifest says still holds."""

import shutil
from pathlib import Path

import msgspec
import pytest
import runs_world as world

from tradeassay.account import venues
from tradeassay.benchmarks import benchmarks
from tradeassay.core.errors import RunError, TradeassayError
from tradeassay.runs import AgentSpec, Run, resume, run
from tradeassay.runs.play import trading
from tradeassay.runs.store.folder import Versions, present_versions, version_changes


@pytest.fixture
def unfinished(finished: Run, tmp_path: Path) -> Path:
    """The finished run with one episode still to play."""
    folder = tmp_path / "tiny"
    shutil.copytree(finished.folder, folder)
    shutil.rmtree(sorted((folder / "episodes").iterdir())[0])
    (folder / "scores.json").unlink()
    return folder


def refused(folder: Path, home: Path, complaint: str) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    with pytest.raises(TradeassayError, match=complaint) as caught:
        resume(folder, executor="inline", home=home)
    assert caught.value.hint
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before


def test_unchanged_it_goes_on(unfinished: Path, finished: Run, home: Path) -> None:
    resume(unfinished, executor="inline", home=home)
    assert world.same_bytes(unfinished) == world.same_bytes(finished.folder)


def test_other_data_is_refused(unfinished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other-home"
    world.write_world(other, seed=1)
    refused(unfinished, other, "data set 'tiny-us' has changed since")


def test_an_altered_file_of_the_data_is_refused(unfinished: Path, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other-home"
    shutil.copytree(home, other)
    bars = other / "store" / "tiny-us" / "bars.arrow"
    content = bytearray(bars.read_bytes())
    content[len(content) // 2] ^= 1
    bars.chmod(0o644)
    bars.write_bytes(bytes(content))
    refused(unfinished, other, "altered")


def test_another_benchmark_is_refused(unfinished: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = msgspec.structs.replace(benchmarks.get("tiny-us-v1"), description="harder")
    monkeypatch.setitem(benchmarks._items, "tiny-us-v1", changed)
    refused(unfinished, home, "benchmark 'tiny-us-v1' has changed")


def test_another_venue_is_refused(unfinished: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = msgspec.structs.replace(venues.get("us-v1"), title="kinder")
    monkeypatch.setitem(venues._items, "us-v1", changed)
    refused(unfinished, home, "the venue of benchmark 'tiny-us-v1' has changed")


def test_another_version_is_refused(unfinished: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = present_versions()
    newer = msgspec.structs.replace(now, packages={**now.packages, "numpy": "99.0"})
    monkeypatch.setattr(trading, "present_versions", lambda: newer)
    refused(unfinished, home, r"made with other versions: numpy was .*, is 99.0")


def test_changed_code_of_a_users_agent_is_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = world.tiny_spec(agents=(AgentSpec(name="test-provoker"),), benchmarks=("tiny-us-v1",), seeds=(0,))
    done = run(spec, tmp_path / "r", executor="inline", home=home)
    record = done.manifest.agents["test-provoker"]
    assert record.module == "runs_agents"
    assert record.sha256
    text = (done.folder / "manifest.json").read_text()
    (done.folder / "manifest.json").write_text(text.replace(record.sha256, "0" * 64))
    refused(done.folder, home, "the code of agent 'test-provoker' has changed")


def test_which_versions_matter() -> None:
    then = Versions(packages={"numpy": "2.0", "polars": "1"}, python="3.11.7", platform="linux", machine="x86_64")
    assert version_changes(then, msgspec.structs.replace(then, packages={"numpy": "2.0", "polars": "2"})) == []
    assert version_changes(then, msgspec.structs.replace(then, python="3.11.9", platform="darwin")) == []
    assert version_changes(then, msgspec.structs.replace(then, python="3.12.1")) == ["Python was 3.11, is 3.12"]
    assert version_changes(then, msgspec.structs.replace(then, machine="arm64")) == [
        "the machine was x86_64, is arm64"
    ]
    assert version_changes(then, msgspec.structs.replace(then, packages={})) == ["numpy was 2.0, is not installed"]


def test_two_processes_cannot_write_one_run(unfinished: Path, home: Path) -> None:
    from tradeassay.runs.store.folder import RunLock

    with RunLock(unfinished / ".lock"), pytest.raises(RunError, match="is being written by process"):
        resume(unfinished, executor="inline", home=home)


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("manifest.json", b'"tiny-us-v1"', b'"tiny-\xff-v1"', "manifest.json is damaged"),
        ("manifest.json", b'"windows"', b'"wind\xffws"', "manifest.json is damaged"),
        ("manifest.json", b'"tiny-us-v1": {', b'"tiny-us-v9": {', "not describe"),
        ("manifest.json", b"{", b'{"more":' + b"[" * 100_000, "manifest.json is damaged"),
        ("episodes/*/events.jsonl", b'"step"', b'"st\xffp"', "damaged"),
        ("episodes/*/events.jsonl", b"{", b'{"more":' + b"[" * 100_000, "damaged"),
    ],
)
def test_a_byte_that_does_not_belong_is_one_line(
    unfinished: Path, home: Path, name: str, old: bytes, new: bytes, complaint: str
) -> None:
    path = next(unfinished.glob(name))
    assert old in path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    if name.endswith("jsonl"):
        (path.parent / "outcome.json").unlink()
    refused(unfinished, home, complaint)
