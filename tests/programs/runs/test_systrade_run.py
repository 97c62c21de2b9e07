"""SysTradeBench from end to end: scripted builders, the real sandbox, one strategy; and sums
without a sandbox.
"""

import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from itertools import count
from unittest import mock

import msgspec
import pytest
import scripted_misfits  # noqa: F401  # adds models
from runs_code_toy import same

from tradeassay.core.errors import UserError
from tradeassay_bench.runs import resume, run as run_spec
from tradeassay_bench.runs.verify.report import verify
from tradeassay_programs.benchmarks.systrade import load_spec
from tradeassay_programs.benchmarks.systrade.benchmark import SystradeProtocol
from tradeassay_programs.benchmarks.systrade.data import synthetic_year
from tradeassay_programs.benchmarks.systrade.dialogue import ScoreWanted
from tradeassay_programs.benchmarks.systrade.examine import examine_submission, with_secret
from tradeassay_programs.benchmarks.systrade.scores import paper_tier
from tradeassay_programs.benchmarks.systrade.spec import SystradeSpec
from tradeassay_programs.code.drift import DriftReport
from tradeassay_programs.code.gates import GateConfig
from tradeassay_programs.code.scores import ScoreConfig
from tradeassay_programs.code.submission import submission_config
from tradeassay_programs.sandbox import ask_kernel, open_executor, refusal
from tradeassay_programs.sandbox.feed import FrameFeed
from tradeassay_programs.sandbox.supervise import Supervisor

pytestmark = pytest.mark.journey

BUILDERS = ("scripted/builder-gold", "scripted/builder-mends", "scripted/builder-peeps")
QUICK = ScoreConfig(gates=GateConfig(seeds=(42, 123)), stresses=("gap",), stress_rows=120)
needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)


@pytest.fixture(scope="module")
def executor():
    """One sandbox for all runs of this file."""
    with (
        open_executor(config=submission_config()) as opened,
        mock.patch.object(
            SystradeProtocol, "open_executor", lambda self, workers: nullcontext(opened)
        ),
        mock.patch.object(
            SystradeProtocol, "fixed", ()
        ),  # quick rules instead of the benchmark's own
    ):
        yield opened


@pytest.fixture(scope="module")
def run(tmp_path_factory, executor):
    spec = SystradeSpec(
        models=BUILDERS,
        strategies=("double-ma",),
        reviewers=BUILDERS[:2],
        iterations=3,
        score=QUICK,
    )
    return run_spec(spec, tmp_path_factory.mktemp("systrade") / "r", workers=1)


def record(run, name):
    """The record of an item; without one the outcome says why."""
    found = next((one for key, one in run.records().items() if name in key), None)
    (outcome,) = run.folder.glob(f"episodes/*{name}*/outcome.json")
    assert found is not None, outcome.read_text()[:3000]
    return found


@needs_walls
def test_each_builder_ends_where_it_must(run):
    gold, mends, peeps = (record(run, name) for name in ("gold", "mends", "peeps"))
    assert gold.stopped == "target" and len(gold.iterations) == 1
    assert gold.last.scorecard.gates.passed and gold.last.scorecard.corrected["D1"].value == 10.0
    trail = gold.last.trail
    assert set(trail.counts) == {"both"} and trail.trades == trail.counts["both"]
    assert all(step.id for trade in trail.audit for step in trade.steps)
    assert [one.scored is None for one in mends.iterations] == [True, False, False]
    crash, right = mends.iterations[1].scored, mends.iterations[2].scored
    assert crash.scorecard.gates.first_failure.name == "exec" and crash.trail is None
    assert (right.drift.kind, right.drift.changed_lines, mends.stopped) == ("repair", 1, "target")
    assert peeps.stopped == "iterations" and len(peeps.iterations) == 3
    leaky = peeps.last.scorecard
    assert leaky.gates.first_failure.name == "leak" and leaky.year is None
    assert (
        leaky.corrected["D4"].reason
        == "a result that may know the future says nothing about robustness"
    )
    assert peeps.last.trail.counts.get("only submission", 0) > 0
    assert peeps.iterations[1].scored.drift.kind == "unchanged"
    assert (
        all(gate.measures.get("cpu_s") is None for gate in leaky.gates.gates)
        and leaky.gates.cpu_s == 0.0
    )


@needs_walls
def test_who_hands_in_the_same_while_it_is_examined_gets_the_same_findings(
    run, executor, monkeypatch
):
    gold = record(run, "gold").iterations[0]
    protocol = SystradeProtocol(
        SystradeSpec(models=BUILDERS[:1], strategies=("double-ma",), score=QUICK)
    )
    second_waits, years = threading.Event(), list[str]()

    def examine(submission, spec, executor, bars, *rest, **options):
        years.append(bars.name)
        assert second_waits.wait(60)
        return examine_submission(submission, spec, executor, bars, *rest, **options)

    monkeypatch.setattr(
        "tradeassay_programs.benchmarks.systrade.benchmark.examine_submission", examine
    )
    (item,) = protocol.episodes()
    asked = ScoreWanted(strategy="double-ma", iteration=0, submission=gold.submission)
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(protocol.examine, item, asked, executor) for _ in range(2)]
        second_waits.set()
    assert both[0].result() == both[1].result()
    assert len(years) == 2  # the test year and the year to develop on, once each


@needs_walls
def test_reviewers_mark_blind_and_their_own_marks_do_not_count(run):
    gold = record(run, "gold")
    reviews = gold.iterations[0].reviews
    assert [review.own for review in reviews] == [True, False]
    assert gold.last.scorecard.paper["D1"].value == reviews[1].fidelity
    board = run.scores.reviews
    assert set(board.rating) <= set(BUILDERS) and board.unanswered == 0


@needs_walls
def test_the_sums(run):
    rows = {row.model: row for row in run.scores.models}
    assert rows[BUILDERS[0]].valid.value == 1.0 and rows[BUILDERS[2]].valid.value == 0.0
    assert (
        rows[BUILDERS[2]].gates["exec"].value == 1.0
        and rows[BUILDERS[2]].gates["leak"].value == 0.0
    )
    assert rows[BUILDERS[2]].worth == "not scored" and rows[BUILDERS[0]].usd_per_strategy == 0.0
    (strategy,) = run.scores.strategies
    assert strategy.items == 3 and strategy.complexity == pytest.approx(0.79, abs=0.01)
    assert run.scores.complexity.value is None, "one strategy has no correlation"
    assert [row.items for row in run.scores.iterations] == [3, 2, 2]
    assert run.scores.iterations[2].repaired == 1
    assert run.scores.iterations[0].gain.value is None
    assert not verify(run.folder, workers=1, programs=False).contradicted


@needs_walls
@pytest.mark.slow
def test_its_programs_are_examined_again(run):
    assert verify(run.folder, workers=1).ok


@needs_walls
def test_a_resume_makes_the_same_bytes(run, tmp_path, executor):
    again = tmp_path / "r"
    shutil.copytree(run.folder, again)
    (again / "scores.json").unlink()
    (outcome,) = again.glob("episodes/*mends*/outcome.json")
    outcome.unlink()
    resume(again, workers=1)
    assert same(run.folder) == same(again)


@needs_walls
@pytest.mark.slow
def test_a_machine_that_kills_children_makes_the_same_bytes(run, tmp_path, executor, monkeypatch):
    """The mended item is played anew; every fifth child is killed at its start, as where memory
    is short: a killed child whose code had begun ends the run.
    """
    children, take = count(), Supervisor._take_message

    def killed(self):
        known = self._process
        take(self)
        if known < 0 <= self._process and next(children) % 5 == 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)

    monkeypatch.setattr(Supervisor, "_take_message", killed)
    again = tmp_path / "r"
    shutil.copytree(run.folder, again)
    (again / "scores.json").unlink()
    (episode,) = again.glob("episodes/*mends*")
    shutil.rmtree(episode)
    resume(again, workers=1)
    assert next(children) > 10
    assert same(run.folder) == same(again)


@needs_walls
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gold", "peeps"])
def test_a_replay_that_ends_with_the_first_leak_changes_no_record(run, executor, monkeypatch, name):
    handed, spec = record(run, name).iterations[0].submission, load_spec("double-ma")
    config, bars = with_secret(QUICK, "ab" * 16), synthetic_year(load_spec("double-ma"))
    without = examine_submission(handed, spec, executor, bars, config)
    monkeypatch.setattr(
        "tradeassay_programs.code.submission.FrameFeed",
        lambda until=None, **given: FrameFeed(**given),
    )
    whole = examine_submission(handed, spec, executor, bars, config, without.scenarios)
    assert msgspec.json.encode(whole.scorecard) == msgspec.json.encode(without.scorecard)
    assert without.scorecard.gates.gate("leak").passed == (name == "gold")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": ()}, "no model is named"),
        ({"strategies": ("bolinger",)}, "did you mean bollinger"),
        ({"reviewers": ("gpt-5",)}, "is not a model name"),
        ({"strategies": ("spread", "spread")}, "given twice"),
        ({"iterations": 0}, "1 to 10"),
        ({"dataset": "mine"}, "a data set needs symbols"),
        ({"splits": ("2025-01-01", "2024-01-01", "2026-01-01")}, "are not splits"),
        (
            {"dataset": "mine", "symbols": ("A",), "strategies": ("pairs",)},
            "expected 2 symbols for 'pairs', got 1",
        ),
    ],
)
def test_bad_specs_say_what_to_do(tmp_path, changes, said):
    with pytest.raises(UserError, match=said):
        run_spec(SystradeSpec(**{"models": BUILDERS, **changes}), tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_facts_name_what_decides_a_result():
    spec = SystradeSpec(models=BUILDERS, strategies=("bollinger",))
    facts = SystradeProtocol(spec).facts()
    assert {
        "strategy bollinger",
        "data bollinger test",
        "data bollinger develop",
        "prompts",
    } <= set(facts)
    other = SystradeProtocol(msgspec.structs.replace(spec, data_seed=2)).facts()
    assert facts["data bollinger test"] != other["data bollinger test"]
    assert facts["data bollinger test"] != facts["data bollinger develop"]
    assert len(SystradeProtocol(SystradeSpec(models=BUILDERS)).episodes()) == 36


def test_drift_is_set_aside_and_a_big_patch_too():
    assert DriftReport(kind="repair", changed_lines=50).accepted
    assert (
        not DriftReport(kind="drift").accepted
        and not DriftReport(kind="repair", changed_lines=51).accepted
    )
    assert not DriftReport(kind="unknown").accepted, "what could not be compared is no baseline"


@pytest.mark.parametrize(
    ("usd", "overall", "tier"),
    [
        (1.03, 7.85, "premium"),
        (0.82, 7.29, "premium"),
        (0.40, 6.94, "balanced"),
        (0.07, 5.38, "budget"),
        (0.9, 5.0, "none: dearer than half the best, and worse"),
        (None, 7.0, "not scored"),
    ],
)
def test_the_tiers_of_the_paper(usd, overall, tier):
    assert paper_tier(usd, overall, 1.03, 7.85) == tier
