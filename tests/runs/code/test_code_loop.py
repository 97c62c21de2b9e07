"""The loop that every benchmark of programs runs in: items, files, resume, replay, money, refusals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from code_runs_toy import Lines, SandboxError, ToyProtocol, ToySpec, fresh, same

from tradeassay.core.errors import RunError, UserError
from tradeassay.llm import CassetteMismatch
from tradeassay.runs.code import CodeRun, ItemEnded, is_code_run, resume_code, run_code, verify_code
from tradeassay.runs.code.work_log import WorkLog
from tradeassay.runs.models import Asking

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    fresh()
    yield
    fresh()


def test_every_item_is_played_and_summed_up(tmp_path: Path) -> None:
    told: list[ItemEnded] = []
    run = run_code(ToySpec(), tmp_path / "r", tell=told.append, workers=2)
    assert run.complete and [item.task for item in run.items] == ["t0", "t1", "t2"]
    assert run.record("tiny-lines__t0").lines == (1, 3, 5)
    assert run.scores.total == 27
    assert sorted(event.done for event in told) == [1, 2, 3]
    assert run.spent("writer").calls == 9 and run.spent().tokens == run.spent("writer").tokens
    assert not list((tmp_path / "r").rglob("work.jsonl"))
    assert is_code_run(tmp_path / "r") and not is_code_run(tmp_path)
    assert "complete" in repr(CodeRun.load(tmp_path / "r"))


def test_the_number_of_workers_and_talks_changes_nothing(tmp_path: Path) -> None:
    run_code(ToySpec(), tmp_path / "a", workers=1, asking=Asking(concurrency=1))
    run_code(ToySpec(), tmp_path / "b", workers=3, asking=Asking(concurrency=3))
    assert same(tmp_path / "a") == same(tmp_path / "b")


def test_killed_in_an_item_and_continued_it_has_the_same_bytes(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    log = tmp_path / "log"
    run_code(ToySpec(log=str(tmp_path / "other")), whole)
    child = subprocess.run(
        [sys.executable, str(HERE / "code_runs_child.py"), str(tmp_path / "cut"), str(log), "5"],
        env={**os.environ, "PYTHONPATH": str(HERE)}, capture_output=True,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stderr
    spec_file = tmp_path / "cut" / "manifest.json"
    assert not (tmp_path / "cut" / "scores.json").exists()
    assert list((tmp_path / "cut").rglob("work.jsonl")), "an item was under way"
    # The resumed run must not die at the fifth result again: five lines are in the log already.
    resume_code(tmp_path / "cut")
    done = log.read_text().splitlines()
    assert len(done) <= 10, "only the result that was being worked out is worked out again"
    cut, full = same(tmp_path / "cut"), same(whole)
    assert spec_file.is_file() and {k: v for k, v in cut.items() if k != "manifest.json"} == {
        k: v for k, v in full.items() if k != "manifest.json"
    }


def test_what_stops_a_run_leaves_what_was_done_and_it_goes_on(tmp_path: Path) -> None:
    fresh(broken=SandboxError("the sandbox is gone"))
    with pytest.raises(SandboxError):
        run_code(ToySpec(), tmp_path / "r")
    with pytest.raises(RunError, match="is not finished"):
        _ = CodeRun.load(tmp_path / "r").scores
    fresh()
    assert run_code(ToySpec(), tmp_path / "r").scores.total == 27
    fresh()
    run_code(ToySpec(), tmp_path / "r")
    assert not ToyProtocol.worked and not ToyProtocol.opened, "a finished run is not worked on again"


def test_a_bug_fails_the_item_and_a_retry_mends_it(tmp_path: Path) -> None:
    fresh(broken=ZeroDivisionError("oops"))
    run = run_code(ToySpec(tasks=1), tmp_path / "r")
    assert run.failed == {"tiny-lines__t0": "ZeroDivisionError: oops"}
    assert run.record("tiny-lines__t0") is None and run.scores.total == 0
    assert "Traceback" in (tmp_path / "r/items/tiny-lines__t0/error.txt").read_text()
    fresh()
    assert run_code(ToySpec(tasks=1), tmp_path / "r").failed, "without being told to, nothing is played again"
    again = run_code(ToySpec(tasks=1), tmp_path / "r", retry_failed=True)
    assert not again.failed and again.scores.total == 9
    assert verify_code(tmp_path / "r").ok


def test_a_model_that_never_answers_has_no_result(tmp_path: Path) -> None:
    run = run_code(ToySpec(models=("scripted/away",), tasks=2), tmp_path / "r")
    assert set(run.failed.values()) == {"unreachable: nobody answers at that address"}
    assert ToyProtocol.opened == 0, "no sandbox is opened when there is nothing to run"


def test_recorded_answers_are_replayed_and_nothing_else(tmp_path: Path) -> None:
    run_code(ToySpec(tasks=1), tmp_path / "a")
    replay = Asking(replay=True, cassettes=tmp_path / "a")
    run_code(ToySpec(tasks=1), tmp_path / "b", asking=replay)
    assert same(tmp_path / "a") == same(tmp_path / "b")
    with pytest.raises(CassetteMismatch, match="answers another question"):
        run_code(ToySpec(tasks=1, word="bye"), tmp_path / "c", asking=replay)


def test_money_runs_out(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[prices."scripted/*"]\ninput = 1000.0\noutput = 1000.0\nas_of = 2026-01-01\nsource = "a test"\n'
    )
    asking = Asking(prices=prices, max_usd=0.05, concurrency=1)
    run = run_code(ToySpec(tasks=2), tmp_path / "r", asking=asking)
    assert run.failed and all(why.startswith("over_budget") for why in run.failed.values())
    with pytest.raises(UserError, match="price of openai/none-such is unknown"):
        run_code(ToySpec(models=("openai/none-such",)), tmp_path / "s", asking=Asking(max_usd=1.0))
    assert not (tmp_path / "s").exists()


def test_a_change_refuses_the_resume(tmp_path: Path) -> None:
    run_code(ToySpec(tasks=1), tmp_path / "r")
    fresh(fact="2")
    with pytest.raises(RunError, match="the toy has changed since"):
        resume_code(tmp_path / "r")
    fresh()
    with pytest.raises(RunError, match="holds another run: its word differ"):
        run_code(ToySpec(tasks=1, word="bye"), tmp_path / "r")


def test_verify_names_what_was_touched(tmp_path: Path) -> None:
    run_code(ToySpec(tasks=2), tmp_path / "r")
    assert verify_code(tmp_path / "r").summary().startswith("2 items checked: hashes")
    path = tmp_path / "r/items/tiny-lines__t1/outcome.json"
    path.write_bytes(path.read_bytes().replace(b"[1,3,5]", b"[1,3,6]"))
    found = verify_code(tmp_path / "r")
    assert not found.ok and "tiny-lines__t1: the outcome is not the one that was scored" in found.violations
    path.unlink()
    assert any("no outcome" in one for one in verify_code(tmp_path / "r").violations)


@pytest.mark.parametrize("content", [b"{", b'{"kind": "code"}', b'{"format": 1}'])
def test_a_folder_that_is_no_such_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(RunError):
        CodeRun.load(tmp_path)
    with pytest.raises(RunError, match="holds no run"):
        CodeRun.load(tmp_path / "nowhere")


def test_an_unknown_item_and_a_damaged_outcome(tmp_path: Path) -> None:
    run = run_code(ToySpec(tasks=1), tmp_path / "r")
    with pytest.raises(RunError, match="did you mean tiny-lines__t0"):
        run.outcome("tiny-lines__t9")
    (tmp_path / "r/items/tiny-lines__t0/outcome.json").write_text("{")
    with pytest.raises(RunError, match="is damaged"):
        run.outcome("tiny-lines__t0")


def test_the_work_log_drops_what_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    first, second, other = (Lines(lines=n, third=n / 3) for n in (1, 2, 3))
    log = WorkLog(path, Lines)
    assert log.find(first) is None
    assert log.add(first, first) == first
    log.add(second, second)
    path.write_bytes(path.read_bytes() + b'{"torn')
    again = WorkLog(path, Lines)
    assert again.find(first) == first
    assert again.find(other) is None, "another question: what follows is worth nothing"
    again.add(other, other)
    third = WorkLog(path, Lines)
    assert [third.find(one) for one in (first, other)] == [first, other]
    assert path.read_bytes().count(b"\n") == 2 and msgspec.json.decode(path.read_bytes().splitlines()[1])
