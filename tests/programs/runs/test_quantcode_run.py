"""QuantCode from end to end: scripted coders, the real sandbox, one task, every way to fail."""

from contextlib import nullcontext
from unittest import mock

import msgspec
import pytest
import scripted_misfits
from runs_code_toy import same
from scripted_misfits import CHEATING

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, Message
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.llm.scripted import coders
from tradeassay_bench.runs import resume, run as run_spec
from tradeassay_bench.runs.spec.episode import Asking
from tradeassay_bench.runs.store.archive import pack_recording
from tradeassay_bench.runs.verify.report import verify
from tradeassay_programs.benchmarks.quantcode import load_task, load_tasks
from tradeassay_programs.benchmarks.quantcode.benchmark import QuantCodeProtocol
from tradeassay_programs.benchmarks.quantcode.check import check_program
from tradeassay_programs.benchmarks.quantcode.dialogue import QuantCodeSettings, play
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.code.checks import PASSED, failed, not_reached
from tradeassay_programs.code.evaluation import Evaluation
from tradeassay_programs.code.extraction import extract
from tradeassay_programs.code.running import open_code_executor
from tradeassay_programs.sandbox import ask_kernel, refusal

pytestmark = pytest.mark.journey

TASK = "d-sma-cross-long"

CODERS = ("gold", "mends", "silent", "cheat")

needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)


def spec(**changes):
    models = tuple(f"scripted/coder-{name}" for name in CODERS)
    given = {
        "models": (*models, "scripted/away"),
        "tasks": (TASK,),
        "settings": ("agentic",),
        "turns": 4,
    }
    return QuantCodeSpec(**{**given, "judge": "scripted/code-judge", **changes})


@pytest.fixture(scope="module")
def executor():
    """One sandbox for all runs of this file."""
    with (
        open_code_executor() as opened,
        mock.patch.object(
            QuantCodeProtocol, "open_executor", lambda self, workers: nullcontext(opened)
        ),
    ):
        yield opened


@pytest.fixture(scope="module")
def run(tmp_path_factory, executor):
    return run_spec(spec(), tmp_path_factory.mktemp("quantcode") / "r", workers=1)


def records(run):
    return {
        run.episode(key).model.removeprefix("scripted/"): record
        for key, record in run.records().items()
    }


@needs_walls
def test_each_coder_ends_where_it_must(run):
    found = records(run)
    assert {name: record.stage for name, record in found.items()} == {
        "coder-gold": "solved",
        "coder-mends": "solved",
        "coder-silent": "no_code",
        "coder-cheat": "trick",
        "away": "no_answer",
    }
    mends = found["coder-mends"]
    assert [turn.stage for turn in mends.turns] == ["compile", "backtest", "trade", "solved"]
    assert all(turn.code and turn.feedback for turn in mends.turns[:3])
    assert mends.solved_at == 4
    assert list(run.failed.values()) == [
        "the model gave no answer (unreachable): nobody answers at that address"
    ]
    # Both judges spoke, and processor times are not in the record.
    gold = found["coder-gold"].turns[0].evaluation
    assert gold.judge_behaviour.status == gold.judge_language.status == "passed"
    assert (
        gold.judge_language.judge == "scripted/code-judge"
        and gold.usage.cpu_s == 0.0
        and gold.usage.runs == 3
    )


@needs_walls
def test_every_answer_of_every_turn_is_packed(run, tmp_path):
    recordings = [path.read_text() for path in (run.folder / "models").glob("*.jsonl")]
    label = pack_recording(
        run.folder, tmp_path / "packed.tar.xz", engine="a program", precision="none"
    )
    assert (
        label.answers
        == sum(text.count('{"type":"answer"') for text in recordings)
        > len(recordings)
    )


@needs_walls
def test_the_scores(run):
    cells = {cell.model.removeprefix("scripted/coder-"): cell for cell in run.scores.cells}
    assert [round(measure.value, 2) for measure in cells["mends"].by_turn] == [0.0, 0.0, 0.0, 1.0]
    assert cells["mends"].mean_turns.value == 4.0 and cells["mends"].first_failures == {
        "compilation": 1
    }
    assert (
        cells["silent"].last_failures == {"no-code": 1}
        and cells["silent"].rates.compile.value == 0.0
    )
    cheat = cells["cheat"]
    assert (
        cheat.rates.compile.value == 1.0
        and cheat.rates.backtest.value == cheat.rates.judge.value == 0.0
    )
    assert sum(cheat.tricks.values()) >= 1 and cheat.last_failures == {"trick": 1}
    away = cells["scripted/away"]
    assert away.rates.items == 0 and away.rates.failed == 1 and away.rates.judge.value is None
    assert away.rates.judge.reason == "no item has a result"
    assert cells["gold"].tokens_per_solved.value and cells["gold"].usd_per_solved.value == 0.0
    assert away.usd_per_solved.reason == "no task was solved"
    assert verify(run.folder, workers=1).ok


@needs_walls
def test_a_changed_task_refuses_the_resume(run, monkeypatch):
    task = load_task(TASK)
    other = msgspec.structs.replace(task, title="another title")
    monkeypatch.setattr(
        "tradeassay_programs.benchmarks.quantcode.benchmark.load_tasks", lambda: (other,)
    )
    with pytest.raises(RunError, match=f"task {TASK} has changed"):
        resume(run.folder)


def evaluation(**found):
    """What the sandbox would find, where no program is run."""
    whose = {"task": TASK, "framework": "backtrader", "source_sha256": ""}
    return Evaluation(**whose, compile=PASSED, backtest=PASSED, **found)


@needs_walls
def test_a_judge_who_is_away_scores_nothing(tmp_path, monkeypatch):
    found = evaluation(trade=PASSED, lookahead=PASSED, judge=failed("not decided", "x"))
    monkeypatch.setattr(
        "tradeassay_programs.benchmarks.quantcode.benchmark.examine", lambda *args, **kwargs: found
    )
    monkeypatch.setattr(QuantCodeProtocol, "open_executor", lambda self, workers: nullcontext())
    wanted = spec(
        models=("scripted/coder-sma",),
        settings=("single-turn",),
        judge="scripted/away",
        evaluate=msgspec.structs.replace(spec().evaluate, decides="language"),
    )
    run = run_spec(wanted, tmp_path / "r")
    (record,) = run.records().values()
    assert (
        record.solved is None
        and record.stage == "not_scored"
        and "judge gave no answer" in record.reason
    )
    rates = run.scores.cells[0].rates
    assert rates.unscored == 1 and rates.judge.value is None and rates.trade.value == 1.0
    assert not run.failed, "it was answered: only the judge is missing"


@needs_walls
def test_the_same_program_is_examined_once(tmp_path, monkeypatch):
    calls = []

    def examine(task, source, **rest):
        calls.append(source)
        after = not_reached("it opened no trade")
        return evaluation(
            trade=failed("no trade was opened", "no_order"), lookahead=after, judge=after
        )

    monkeypatch.setattr("tradeassay_programs.benchmarks.quantcode.benchmark.examine", examine)
    monkeypatch.setattr(QuantCodeProtocol, "open_executor", lambda self, workers: nullcontext())
    wanted = spec(models=("scripted/coder-sma",), judge=None, turns=3)
    a = run_spec(wanted, tmp_path / "a")
    assert len(calls) == 1 and len(next(iter(a.records().values())).turns) == 2, (
        "a repeated answer ends it"
    )
    assert a.scores.cells[0].last_failures == {"signals-never-activate": 1}
    b = run_spec(wanted, tmp_path / "b", asking=Asking(replay=True, recordings=tmp_path / "a"))
    assert same(a.folder) == same(b.folder)


@needs_walls
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": ()}, "no model is named"),
        ({"models": ("gpt-5",)}, "is not a model name"),
        ({"tasks": ("d-sma-cros",)}, "did you mean d-sma-cross-long"),
        ({"settings": ("agentc",)}, "did you mean agentic"),
        ({"wordings": ("formal", "formal")}, "given twice"),
        ({"difficulties": ("trivial",)}, "no difficulty 'trivial'"),
        ({"turns": 0}, "must be 1 or more"),
        ({"frameworks": ()}, "no framework is named"),
        ({"judge": None, "evaluate": {"decides": "both"}}, "no judge is named"),
        ({"difficulties": ("hard",)}, "no episode is left to run"),
    ],
)
def test_bad_specs_say_what_to_do(tmp_path, changes, said):
    if "evaluate" in changes:
        changes = {**changes, "evaluate": msgspec.structs.replace(spec().evaluate, decides="both")}
    with pytest.raises(UserError, match=said):
        run_spec(spec(**changes), tmp_path / "r")
    assert not (tmp_path / "r").exists()


@needs_walls
def test_items_of_what_a_task_does_not_have_are_left_out_and_said():
    other = next(task.id for task in load_tasks() if task.frame is None)
    both = spec(
        tasks=(TASK, other), frameworks=("backtrader", "frame"), models=("scripted/coder-sma",)
    )
    protocol = QuantCodeProtocol(both)
    assert {(episode.task, episode.protocol["framework"]) for episode in protocol.episodes()} == {
        (TASK, "backtrader"),
        (other, "backtrader"),
        (TASK, "frame"),
    }
    assert protocol.notes == ("1 of 2 tasks have no formal wording for frame",)
    assert len(QuantCodeProtocol(spec(tasks=(), sample=7)).tasks) == 7
    frames = QuantCodeProtocol(
        spec(tasks=(), sample=7, frameworks=("frame",), models=("scripted/coder-sma",))
    )
    assert len(frames.episodes()) == 7 and not frames.notes


SMA_CROSS, SMA_FRAME = coders.PROGRAMS["sma backtrader"], coders.PROGRAMS["sma frame"]

BROKEN = tuple(coders.PROGRAMS[f"{name} backtrader"] for name in coders.BROKEN)

CHEATS = {
    kind: [CHEATING[f"{name} {kind}"] for name in names]
    for kind, names in scripted_misfits.CHEATS.items()
}


def ask(name, framework="backtrader", attempt=1):
    settings = msgspec.convert({"framework": framework}, QuantCodeSettings)
    request = next(play(load_task(TASK), settings))
    assert isinstance(request, AskModel)
    return (
        scripted_models.get(name)().answer(msgspec.structs.replace(request, attempt=attempt)).text
    )


@pytest.mark.parametrize(
    "name", ["coder-sma", "coder-gold", "coder-mends", "coder-silent", "coder-cheat", "away"]
)
def test_strange_questions_break_nobody(name):
    for text in (
        "",
        "Hello.",
        '```json\n{"kind": "quantcode.task"}\n```',
        '```json\n{"kind": "other"}\n```',
    ):
        request = AskModel(purpose="any", messages=(Message(role="user", text=text),))
        model = scripted_models.get(name)()
        assert model.answer(request) == model.answer(request)


def test_the_mending_one_gets_better_and_the_silent_one_loops():
    answers = [extract(ask("coder-mends", attempt=n)).code for n in (1, 2, 3)]
    assert tuple(answers) == BROKEN
    assert extract(ask("coder-silent")).missing == "loop"
    assert extract(ask("coder-cheat")).code in CHEATS["backtrader"]
    assert extract(ask("coder-cheat", "frame")).code in CHEATS["frame"]


@pytest.mark.slow
@pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)
def test_no_way_to_cheat_scores():
    """What is printed is not believed, whoever looks ahead breaks in a fed run and is named, as
    is the rest.
    """
    with open_code_executor(1) as executor:
        found = [check_program(source, TASK, executor=executor) for source in CHEATS["backtrader"]]
        frame = [
            check_program(source, TASK, framework="frame", executor=executor)
            for source in CHEATS["frame"]
        ]
    named = [{trick.name for trick in one.tricks} for one in found]
    assert "patched-framework" in named[1] and "secrets-in-error" in named[3] and not named[0]
    assert [one.outcome for one in found] == ["judge", "trick", "lookahead", "trick"]
    assert [one.outcome for one in frame] == ["lookahead"] and all(
        one.score == 0.0 for one in [*found, *frame]
    )
