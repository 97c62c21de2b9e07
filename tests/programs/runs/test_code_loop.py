"""The loop that every benchmark of programs runs in: items, files, resume, replay, money,
refusals.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import msgspec
import pytest
import scripted_misfits  # noqa: F401  # adds models
from runs_code_toy import Lines, SandboxError, ToyProtocol, ToySpec, fresh, same

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import TurnRecord
from tradeassay_bench.llm import RecordingMismatch
from tradeassay_bench.runs import (
    Answered,
    CodeRun,
    Finished,
    Run,
    RunEnded,
    compare,
    load_run,
    resume,
    run as run_spec,
)
from tradeassay_bench.runs.spec.episode import Asking
from tradeassay_bench.runs.verify.report import verify
from tradeassay_programs.sandbox.failures import CpuTimeout, WallTimeout

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def toy():
    fresh()
    yield
    fresh()


def test_every_item_is_played_and_summed_up(tmp_path):
    told = []
    run = run_spec(ToySpec(), tmp_path / "r", progress=told.append, workers=2)
    assert run.complete and [episode.task for episode in run.episodes] == ["t0", "t1", "t2"]
    assert run.record("tiny-lines__t0").lines == (1, 3, 5)
    assert run.scores.total == 27
    ended = [event for event in told if isinstance(event, Finished)]
    assert sorted(event.key for event in ended) == [episode.key for episode in run.episodes]
    assert {event.words for event in ended} == {"counted"} and told[-1] == RunEnded(complete=True)
    assert sum(isinstance(event, Answered) for event in told) == 9
    writers = [outcome.model.roles["writer"] for _, outcome in run.outcomes()]
    assert sum(one.calls for one in writers) == 9
    assert [outcome.spending for _, outcome in run.outcomes()] == writers
    assert [line.step for line in run.dialogue("tiny-lines__t0")] == [0, 1, 2]
    journal = (tmp_path / "r/episodes/tiny-lines__t0/events.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=TurnRecord).step for line in journal] == [0, 1, 2]
    assert isinstance(load_run(tmp_path / "r"), CodeRun)
    with pytest.raises(RunError, match="contains a run of programs"):
        Run.load(tmp_path / "r")
    assert "complete" in repr(CodeRun.load(tmp_path / "r"))


def test_the_number_of_workers_and_talks_changes_nothing(tmp_path):
    spec = ToySpec(secret="ab" * 16)
    run_spec(spec, tmp_path / "a", workers=1, asking=Asking(concurrency=1))
    run_spec(spec, tmp_path / "b", workers=3, asking=Asking(concurrency=3))
    assert same(tmp_path / "a") == same(tmp_path / "b")


def test_killed_in_an_item_and_continued_it_has_the_same_bytes(tmp_path):
    whole = tmp_path / "whole"
    log = tmp_path / "log"
    run_spec(ToySpec(log=str(tmp_path / "other")), whole)
    child = subprocess.run(
        [
            sys.executable,
            str(HERE / "runs_child.py"),
            "programs",
            str(tmp_path / "cut"),
            str(log),
            "5",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    spec_file = tmp_path / "cut" / "manifest.json"
    assert not (tmp_path / "cut" / "scores.json").exists()
    assert list((tmp_path / "cut").rglob("events.jsonl")), "an episode was under way"
    # The resumed run must not die at the fifth result again: five lines are in the log already.
    resume(tmp_path / "cut")
    done = log.read_text().splitlines()
    assert len(done) <= 10, "only the result that was being worked out is worked out again"
    cut, full = same(tmp_path / "cut"), same(whole)
    assert spec_file.is_file() and {k: v for k, v in cut.items() if k != "manifest.json"} == {
        k: v for k, v in full.items() if k != "manifest.json"
    }


def test_what_stops_a_run_leaves_what_was_done_and_it_goes_on(tmp_path):
    fresh(broken=SandboxError("the sandbox is gone"))
    with pytest.raises(SandboxError):
        run_spec(ToySpec(), tmp_path / "r")
    with pytest.raises(RunError, match="has no scores yet"):
        _ = CodeRun.load(tmp_path / "r").scores
    fresh()
    assert run_spec(ToySpec(), tmp_path / "r").scores.total == 27
    fresh()
    run_spec(ToySpec(), tmp_path / "r")
    assert not ToyProtocol.worked and not ToyProtocol.opened, (
        "a finished run is not worked on again"
    )


def test_a_bug_fails_the_item_and_a_retry_mends_it(tmp_path):
    fresh(broken=ZeroDivisionError("oops"))
    run = run_spec(ToySpec(tasks=1), tmp_path / "r")
    assert run.failed == {"tiny-lines__t0": "ZeroDivisionError: oops"}
    assert run.record("tiny-lines__t0") is None and run.scores.total == 0
    assert "Traceback" in str(run.outcome("tiny-lines__t0").traceback)
    fresh()
    assert run_spec(ToySpec(tasks=1), tmp_path / "r").failed, (
        "without being told to, nothing is played again"
    )
    again = resume(tmp_path / "r", retry_failed=True)
    assert not again.failed and again.scores.total == 9
    assert verify(tmp_path / "r").ok


def test_a_model_that_never_answers_has_no_result(tmp_path):
    run = run_spec(ToySpec(models=("scripted/away",), tasks=2), tmp_path / "r")
    assert set(run.failed.values()) == {"unreachable: nobody answers at that address"}
    assert ToyProtocol.opened == 0, "no sandbox is opened when there is nothing to run"


def test_recorded_answers_are_replayed_and_nothing_else(tmp_path):
    run_spec(ToySpec(tasks=1), tmp_path / "a")
    replay = Asking(replay=True, recordings=tmp_path / "a")
    run_spec(ToySpec(tasks=1), tmp_path / "b", asking=replay)
    assert same(tmp_path / "a") == same(tmp_path / "b")
    with pytest.raises(RecordingMismatch, match="is of a different question"):
        run_spec(ToySpec(tasks=1, word="bye"), tmp_path / "c", asking=replay)


def test_money_runs_out(tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[prices."scripted/*"]\ninput = 1000.0\noutput = 1000.0\nas_of = 2026-01-01\nsource = "a '
        'test"\n'
    )
    asking = Asking(prices=prices, max_usd=0.05, concurrency=1)
    run = run_spec(ToySpec(tasks=2), tmp_path / "r", asking=asking)
    assert run.failed and all(why.startswith("over_budget") for why in run.failed.values())
    with pytest.raises(UserError, match="price of openai/none-such is unknown"):
        run_spec(ToySpec(models=("openai/none-such",)), tmp_path / "s", asking=Asking(max_usd=1.0))
    assert not (tmp_path / "s").exists()


def test_a_change_refuses_the_resume(tmp_path):
    run_spec(ToySpec(tasks=1), tmp_path / "r")
    fresh(fact="2")
    with pytest.raises(RunError, match="the toy has changed since"):
        resume(tmp_path / "r")
    fresh()
    with pytest.raises(RunError, match="contains a different run: its word differs"):
        run_spec(ToySpec(tasks=1, word="bye"), tmp_path / "r")


def test_verify_names_what_was_touched(tmp_path):
    run_spec(ToySpec(tasks=2), tmp_path / "r")
    assert "verified: 2 episodes, 6 steps" in verify(tmp_path / "r").summary()
    path = tmp_path / "r/episodes/tiny-lines__t1/outcome.json"
    path.write_bytes(path.read_bytes().replace(b"[1,3,5]", b"[1,3,6]"))
    found = verify(tmp_path / "r")
    told = [str(one) for one in found.violations]
    assert any(
        "the episode ends differently when it runs again: program.record.lines[2]" in one
        for one in told
    )
    assert any("scores: the recomputed scores differ" in one for one in told)
    path.unlink()
    assert any("has not ended" in str(one) for one in verify(tmp_path / "r").violations)


def test_a_benchmark_of_somebody_elses_in_another_version_contradicts_nobody(tmp_path):
    run_spec(ToySpec(tasks=1), tmp_path / "r")
    fresh(fact="2")
    found = verify(tmp_path / "r")
    fresh()
    assert found.exit_code == 3 and not found.violations, found.summary()
    (rules,) = [claim for claim in found.claims if claim.claim == "rules"]
    assert rules.outcome == "cannot be checked"
    assert (
        rules.why
        == "the rules differ from the rules of 'test-toy-code': the toy is 1, but here it is 2"
    )


@pytest.mark.parametrize(
    "failure", [WallTimeout(limit_s=120), CpuTimeout(limit_s=60, used_s=60.02), None]
)
def test_a_busy_machine_that_ends_a_program_contradicts_nobody(failure, tmp_path, monkeypatch):
    run_spec(ToySpec(tasks=1), tmp_path / "r", workers=1)
    result = mock.Mock(failure=failure)

    def examine(self, episode, request, executor):
        assert (executor.run(mock.Mock()), list(executor.map([mock.Mock()]))) == (result, [result])
        return Lines(lines=0, third=0.0)

    monkeypatch.setattr(ToyProtocol, "examine", examine)
    jobs = mock.MagicMock(**{"run.return_value": result, "map.return_value": [result]})
    monkeypatch.setattr(ToyProtocol, "open_executor", lambda *_: contextlib.nullcontext(jobs))
    found = verify(tmp_path / "r", workers=1)
    assert found.exit_code == (1 if failure is None else 3), found.summary()
    assert any(
        "one exceeded its time limit, here or as stated by the runner" in one.why
        for one in found.claims
    ) == bool(failure)


@pytest.mark.parametrize("content", [b"{", b'{"kind": "code"}', b'{"format": 1}'])
def test_a_folder_that_is_no_such_run(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(RunError):
        CodeRun.load(tmp_path)
    with pytest.raises(RunError, match="does not contain a run"):
        CodeRun.load(tmp_path / "nowhere")


def test_an_unknown_item_and_a_damaged_outcome(tmp_path):
    run = run_spec(ToySpec(tasks=1), tmp_path / "r")
    with pytest.raises(RunError, match="did you mean tiny-lines__t0"):
        run.outcome("tiny-lines__t9")
    (tmp_path / "r/episodes/tiny-lines__t0/outcome.json").write_text("{")
    with pytest.raises(RunError, match="is damaged"):
        run.outcome("tiny-lines__t0")


def test_a_journal_of_other_answers_is_refused(tmp_path):
    run_spec(ToySpec(tasks=1), tmp_path / "r")
    folder = tmp_path / "r/episodes/tiny-lines__t0"
    (folder / "outcome.json").unlink()
    (folder / "dialogue.jsonl").unlink()
    events = folder / "events.jsonl"
    lines = [
        msgspec.json.decode(line, type=TurnRecord) for line in events.read_bytes().splitlines()
    ]
    other = msgspec.structs.replace(lines[1], request="0" * 64)
    events.write_bytes(b"\n".join(map(msgspec.json.encode, (lines[0], other))) + b"\n")
    with pytest.raises(RunError, match="step 1 of tiny-lines__t0 differs from the journal"):
        resume(tmp_path / "r")


def test_a_torn_line_is_cut_and_worked_out_again(tmp_path):
    run_spec(ToySpec(tasks=1), tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    folder = tmp_path / "b/episodes/tiny-lines__t0"
    (folder / "outcome.json").unlink()
    (tmp_path / "b/scores.json").unlink()
    events = folder / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-5])
    fresh()
    resume(tmp_path / "b")
    assert ToyProtocol.worked == ["t0/3"], "only the torn result is worked out again"
    assert same(tmp_path / "a") == same(tmp_path / "b")


def test_two_runs_are_compared_and_kinds_do_not_mix(tmp_path, finished):
    one, two = (run_spec(ToySpec(tasks=n), tmp_path / f"r{n}") for n in (1, 2))
    found = compare(one, two.folder)
    assert (
        found.pairs[0].measures["total"].difference == 9.0 and found.pairs[0].paired.p_value is None
    )
    with pytest.raises(RunError, match="runs of different kinds"):
        compare(one, finished)
