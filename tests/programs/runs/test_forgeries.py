"""Forgeries that agree with themselves, beside those of tests/forgeries: replies and data of the
runner's own.
"""

import json
import re
import shutil

import golden
import msgspec
import pytest
import runs_talk as talk
from forger import attack, counted, cover_tracks, rescore, share_noticed

from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import recording
from tradeassay_bench.runs import run
from tradeassay_bench.runs.play.episodes import play_task
from tradeassay_bench.runs.spec.run_spec import Window
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import read_manifest
from tradeassay_bench.runs.store.outcome import read_outcome, write_outcome
from tradeassay_bench.runs.verify.replay import replay_conversation
from tradeassay_bench.runs.verify.report import verify

pytestmark = pytest.mark.journey

RULE = "tiny-talk-v1__tiny-us__reversal-lookback=3__s0"
MODEL = "tiny-talk-v1__tiny-us__tiny-good__s0"


@pytest.fixture(scope="module")
def honest(home, tmp_path_factory):
    spec = talk.talk_spec(
        "tiny-good", seeds=(0,), window=Window(first="2024-01-15", last="2024-01-24")
    )
    return run(spec, tmp_path_factory.mktemp("honest") / "r", executor="inline", home=home)


@pytest.fixture
def forged(honest, tmp_path):
    shutil.copytree(honest.folder, tmp_path / "r")
    return tmp_path / "r"


def look(folder, home):
    return verify(folder, home=home, workers=1)


def invent_replies(folder, home, key):
    """Replace a model's replies in recording and dialogue, and play the whole episode by them."""
    manifest = read_manifest(folder / "manifest.json")
    episode = next(one for one in manifest.episodes if one.key == key)
    log = folder / "episodes" / key / "dialogue.jsonl"
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if line["purpose"] == "decide":
            line["reply"]["text"] = json.dumps({"symbol": "S7", "shares": 9, "why": "I knew"})
    log.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    (folder / "models" / f"{key}.jsonl").unlink()
    outcome = read_outcome(folder / "episodes" / key / "outcome.json")
    again = replay_conversation(play_task(RunFolder(folder), str(home), manifest, episode), outcome)
    (folder / "episodes" / key / "events.jsonl").write_bytes(again.events)
    log.write_bytes(again.dialogue)
    write_outcome(folder / "episodes" / key / "outcome.json", again.outcome)
    rescore(folder, home)


def test_invented_replies_of_a_model_that_can_be_asked_again(forged, home, honest, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("tradeassay_bench.runs.verify.replay.can_be_queried", lambda names: False)
        invent_replies(forged, home, MODEL)
    assert look(forged, home).exit_code == 1, "the scripted model answers otherwise"
    tape = [
        recording.DECODER.decode(line)
        for line in (honest.folder / "models" / f"{MODEL}.jsonl").read_bytes().splitlines()
    ]
    assert any(
        isinstance(line, recording.AnswerLine) and isinstance(line.reply, ModelReply)
        for line in tape
    )
    shutil.copyfile(
        honest.folder / "models" / f"{MODEL}.jsonl", forged / "models" / f"{MODEL}.jsonl"
    )
    assert look(forged, home).exit_code == 1, "the recording answers otherwise"


def test_invented_replies_of_a_live_model_are_marked_as_what_cannot_be_checked(
    home, tmp_path, monkeypatch
):
    spec = talk.talk_spec(
        "tiny-good", seeds=(0,), window=Window(first="2024-01-15", last="2024-01-24")
    )
    run(spec, tmp_path / "r", executor="inline", home=home)
    monkeypatch.setattr("tradeassay_bench.runs.verify.checks.can_be_queried", lambda names: False)
    monkeypatch.setattr("tradeassay_bench.runs.verify.replay.can_be_queried", lambda names: False)
    invent_replies(tmp_path / "r", home, MODEL)
    found = look(tmp_path / "r", home)
    assert (found.violations, found.exit_code) == ((), 3)
    assert any(
        "answers as recorded by the runner, not re-derivable" in one for one in found.unchecked
    )
    assert "nothing is contradicted, but not everything was recomputed" in found.summary()


def test_a_sample_of_all_changes_is_noticed(honest, home):
    found = counted(attack(honest.folder, home=home, most=5, part=range(20)))
    assert (found["made"], share_noticed(found)) == (20, 1.0), found


@pytest.mark.slow
def test_thousands_of_changes_are_noticed(honest, home):
    tried = attack(honest.folder, home=home, most=60)
    assert share_noticed(counted(tried)) >= 0.99, counted(tried)
    assert {kind for kind, _, _ in tried} == set(
        "manifest journal outcome dialogue recording scores".split()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["daily", "stockbench", "ktdfin-us", "quantcode", "systrade"])
def test_changes_to_a_run_of_every_benchmark_are_noticed(name, tmp_path):
    found = counted(attack(golden.play(name, tmp_path), most=20, part=range(150)))
    assert share_noticed(found) >= 0.99, found


def test_forged_numbers_never_end_in_a_traceback(forged, home):
    """Sums of nothing, names that are not listed, and numbers that are none, wherever a journal
    holds one.
    """
    path = forged / "episodes" / RULE / "events.jsonl"
    honest = path.read_bytes()
    for old, new in (
        (rb'"cash":[-0-9.e]+', b'"cash":0.0'),
        (rb'"reference":[-0-9.e]+', b'"reference":0.0'),
        (rb'"symbol":"S\d"', b'"symbol":"NOBODY"'),
        (rb'"marks":\{"S', b'"marks":{"X'),
        (rb'"quantity":[-0-9.e]+', b'"quantity":1e308'),
    ):
        path.write_bytes(re.sub(old, new, honest))
        cover_tracks(forged, path, home)
        assert look(forged, home).exit_code == 1, old
        path.write_bytes(honest)


def test_a_manifest_that_names_other_folders_is_refused(forged, home):
    path = forged / "manifest.json"
    path.write_bytes(path.read_bytes().replace(MODEL.encode(), b"../../../etc"))
    with pytest.raises(RunError, match="invalid or repeated episode key"):
        look(forged, home)


@pytest.mark.parametrize("way", ["absolute", "relative", "climbing"])
def test_data_that_came_along_is_never_re_derived(home, tmp_path, monkeypatch, way):
    """A folder beside the run can hold any prices: a name that leads to it is not data of the
    store.
    """
    shutil.copytree(home / "store" / "tiny-us", tmp_path / "sent" / "us-2024")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / ("here" if way == "climbing" else "sent"))
    names = {
        "absolute": str(tmp_path / "sent" / "us-2024"),
        "relative": "us-2024",
        "climbing": "../sent/us-2024",
    }
    spec = talk.talk_spec(
        "tiny-good",
        datasets={"tiny-talk-v1": (names[way],)},
        seeds=(0,),
        window=Window(first="2024-01-15", last="2024-01-17"),
    )
    done = run(spec, tmp_path / "r", executor="inline", home=home)
    found = look(done.folder, home)
    assert (found.violations, found.exit_code) == ((), 3)
    unchecked = {one.claim for one in found.claims if one.outcome == "cannot be checked"}
    assert unchecked >= {"data", "decisions", "account", "conversation", "scores"}
    assert any(names[way] in one for one in found.unchecked)


def test_a_failed_episode_does_not_become_a_neutral_one(home, tmp_path, monkeypatch):
    """A model that never answered is written down as one that held its cash, account and scores
    included.
    """
    spec = talk.talk_spec(
        "tiny-mute", seeds=(0,), window=Window(first="2024-01-15", last="2024-01-17")
    )
    done = run(spec, tmp_path / "r", executor="inline", home=home)
    place = done.folder / "episodes" / "tiny-talk-v1__tiny-us__tiny-mute__s0"
    events = (place / "events.jsonl").read_bytes()
    assert b'"status":"failed"' in events
    lines = [json.loads(line) for line in events.splitlines()]
    for line in lines:
        line["decision"] |= {"status": "ok", "failures": [], "reason": "I wait"}
    (place / "events.jsonl").write_bytes(
        b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    )
    outcome = read_outcome(place / "outcome.json")
    assert outcome.status == "failed"
    write_outcome(
        place / "outcome.json", msgspec.structs.replace(outcome, status="done", error=None)
    )
    cover_tracks(done.folder, place / "events.jsonl", home)
    assert look(done.folder, home).exit_code == 1
    # Nor where nobody can be asked again: the recorded replies are still those of a model that never answered.
    monkeypatch.setattr("tradeassay_bench.runs.verify.checks.can_be_queried", lambda names: False)
    monkeypatch.setattr("tradeassay_bench.runs.verify.replay.can_be_queried", lambda names: False)
    assert look(done.folder, home).exit_code == 1
