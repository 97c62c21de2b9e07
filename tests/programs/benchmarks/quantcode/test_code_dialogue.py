"""One task with one model: every turn kept, feedback with a structure, ends that are told apart."""

import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import msgspec
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.exhibits import UNTIMED
from tradeassay_bench.core.dialogue import AskModel, ModelReply, Usage
from tradeassay_bench.core.drive import drive
from tradeassay_programs.benchmarks.quantcode.dialogue import (
    QuantCodeSettings,
    TaskOutcome,
    opaque_id,
    play,
)
from tradeassay_programs.benchmarks.quantcode.scores import quantcode_scores
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.benchmarks.quantcode.tables import quantcode_paper
from tradeassay_programs.code.backtrader import Trick
from tradeassay_programs.code.checks import PASSED, Finding, failed, not_reached, not_scored
from tradeassay_programs.code.evaluation import EvaluateRequest, Evaluation
from tradeassay_programs.code.judges.decisions import BehaviourVerdict, Criterion, LanguageVerdict
from tradeassay_programs.code.task import CodeTask, Sizing

TASK = CodeTask(
    id="d-rsi-dip",
    title="t",
    difficulty="easy",
    timeframe="1d",
    family="trend",
    formal="Buy when RSI is low.",
    market="us",
    bars=100,
    sizing=Sizing(kind="fixed", value=1),
)
CODE = "```python\nimport backtrader as bt\nclass S{n}(bt.Strategy):\n    pass\n```"
AGENTIC = QuantCodeSettings(setting="agentic")
TWICE, THRICE = (msgspec.structs.replace(AGENTIC, turns=turns) for turns in (2, 3))
WHOLE = msgspec.structs.replace(AGENTIC, history="full")


def evaluation(**stages: object) -> Evaluation:
    parts: dict[str, object] = dict.fromkeys(
        ("compile", "backtest", "trade", "lookahead", "judge"), PASSED
    )
    return Evaluation(task=TASK.id, framework="backtrader", source_sha256="0", **(parts | stages))  # type: ignore[arg-type]  # a test's shorthand


def stopped(stage: str, reason: str, error_class: str = "X") -> Evaluation:
    names = ["compile", "backtest", "trade", "lookahead", "judge"]
    parts: dict[str, Finding] = {
        name: not_reached("no") for name in names[names.index(stage) + 1 :]
    }
    return evaluation(**{stage: failed(reason, error_class, line=3)}, **parts)


def played(
    replies: Iterable[ModelReply],
    found: Callable[[EvaluateRequest], Evaluation],
    settings: QuantCodeSettings,
) -> tuple[TaskOutcome, list[AskModel]]:
    answers, asked = iter(replies), []

    def said(request: AskModel | EvaluateRequest) -> ModelReply | Evaluation:
        if not isinstance(request, AskModel):
            return found(request)
        asked.append(request)
        return next(answers)

    return drive(play(TASK, settings), said), asked


def say(text: str) -> ModelReply:
    return ModelReply(text=text, usage=Usage(input_tokens=10, output_tokens=5, usd=0.5))


BROKEN = stopped("backtest", "KeyError: x", "KeyError")


def test_single_turn_ends_after_one_answer_and_its_text_speaks_to_models_alone():
    """Nothing of ours that could be echoed: no JSON, no keys of a task; what is asked comes
    last.
    """
    outcome, asked = played([say(CODE)], lambda _: BROKEN, QuantCodeSettings())
    assert len(asked) == 1 and outcome.solved is False and outcome.stage == "backtest"
    assert outcome.failure_class == "other-runtime" and outcome.turns[0].feedback == ""
    first = asked[0].messages[-1].text
    assert asked[0].purpose == "write" and "Buy when RSI is low." in first
    assert not any(words in first for words in ("quantcode", "turns", opaque_id(TASK), "{"))
    assert (
        "100 daily bars of one asset" in first
        and "10,000 in cash" in first
        and "for 1 unit." in first
    )
    assert first.rstrip().endswith("starts with ```python and ends with ```.")
    assert json.loads(asked[0].given.observation)["task"] == opaque_id(TASK)  # type: ignore[union-attr]  # beside it
    told = played([say("I am thinking."), say(CODE)], lambda _: BROKEN, TWICE)[0].turns[0].feedback
    assert (
        "words and no program" in told
        and "class MyStrategy(bt.Strategy)" in told
        and "{" not in told
    )
    with pytest.raises(UserError, match="frame"):
        next(play(TASK, QuantCodeSettings(framework="frame")))
    with pytest.raises(UserError, match="0 turns allow no answer"):
        QuantCodeSettings(turns=0)


def test_it_tells_in_prose_what_was_wrong_and_ends_when_an_answer_is_repeated():
    outcome, asked = played([say(CODE)] * 9, lambda _: BROKEN, AGENTIC)
    assert len(asked) == 2 and [turn.number for turn in outcome.turns] == [1, 2]
    assert "same answer again" in outcome.reason and outcome.failure_class == "other-runtime"
    told = outcome.turns[0].feedback
    assert (
        "It broke while it was run" in told
        and "- KeyError: x (line 3)" in told
        and "9 attempts left" in told
    )
    assert len(asked[1].messages) == 4, "the conversation does not grow with its turns"
    long = stopped("backtest", "a" * 5000 + "END", "KeyError")
    told = played([say(CODE)] * 2, lambda _: long, TWICE)[0].turns[0].feedback
    assert "END" in told and len(told) < 3500, "long errors are cut in the middle"
    answers = [say(CODE.replace("S{n}", f"S{number}")) for number in range(3)]
    outcome, asked = played(answers, lambda _: stopped("compile", "no"), THRICE)
    assert [len(a.messages) for a in asked] == [2, 4, 4] and len(outcome.turns) == 3, (
        "the last attempt only"
    )
    assert outcome.turns[-1].feedback == "" and outcome.solved is False


def test_half_a_character_in_an_answer_is_the_models_business_not_ours():
    for text in (f"\udc80{CODE}\ud800", "\ud800 no"):
        outcome, _ = played([say(text)], lambda _: stopped("compile", "no"), QuantCodeSettings())
        assert (outcome.turns[0].code is None) == (outcome.stage == "no_code") == (CODE not in text)
        assert msgspec.json.encode(outcome)


def test_agentic_goes_on_with_feedback_until_it_is_solved():
    results = iter(
        [
            stopped("compile", "no class", "no_strategy"),
            stopped("trade", "no trade was opened"),
            evaluation(),
        ]
    )
    replies = [
        say(CODE.replace("S{n}", f"S{n}")) if n else say("I am thinking.") for n in (1, 0, 2, 3)
    ]
    outcome, asked = played(replies, lambda _: next(results), WHOLE)
    assert outcome.solved and outcome.solved_at == 4 and outcome.reason == ""
    assert [turn.stage for turn in outcome.turns] == ["compile", "no_code", "trade", "solved"]
    assert [turn.code is None for turn in outcome.turns] == [False, True, False, False]
    assert len({turn.code_sha256 for turn in outcome.turns if turn.code}) == 3
    assert outcome.turns[1].raw == "I am thinking."
    assert outcome.usage == Usage(input_tokens=40, output_tokens=20, usd=2.0)
    assert "- no class (line 3)" in outcome.turns[0].feedback
    assert "9 attempts left" in outcome.turns[0].feedback and [len(a.messages) for a in asked] == [
        2,
        4,
        6,
        8,
    ]
    assert msgspec.json.decode(msgspec.json.encode(outcome), type=TaskOutcome) == outcome


def test_judges_reasons_go_back_and_the_reference_does_not():
    missing = Criterion(name="logic", verdict="fail", reason="exit is missing")
    found = evaluation(
        judge=failed("agreement 0.3", "does_not_match"),
        judge_language=LanguageVerdict(status="failed", criteria=(missing,)),
        judge_behaviour=BehaviourVerdict(
            status="failed", agreement=0.3, hints=("its exits differ",)
        ),
    )
    outcome, _ = played([say(CODE)] * 2, lambda _: found, TWICE)
    words = outcome.turns[0].feedback
    assert "exit is missing" in words and "its exits differ" in words and "0.3" not in words


def test_a_trick_and_a_verdict_that_nobody_could_give_end_it():
    trick = evaluation(tricks=(Trick(name="printed-result", detail="printed"),))
    outcome, asked = played([say(CODE)] * 9, lambda _: trick, AGENTIC)
    assert len(asked) == 1 and outcome.solved is False and outcome.tricks == ("printed-result",)
    assert outcome.failure_class == "trick"
    outcome, asked = played(
        [say(CODE)], lambda _: evaluation(judge=not_scored("no judge")), AGENTIC
    )
    assert outcome.solved is None and outcome.reason == "no judge" and len(asked) == 1


def test_no_answer_is_not_scored_while_a_refusal_and_a_loop_are_no_code():
    for kind in ("unreachable", "over_budget", "timeout", "rejected", "rate_limited"):
        outcome, _ = played(
            [ModelReply(error="x", error_kind=kind, stop="error")], lambda _: evaluation(), AGENTIC
        )
        assert outcome.solved is None and outcome.stage == "no_answer" and kind in outcome.reason
    refused = ModelReply(error="I must not", error_kind="refused", stop="error")
    loop = ModelReply(text="<think>hm " * 50, stop="length")
    for reply, reason in ((refused, "I must not"), (loop, "loop")):
        outcome, _ = played([reply], lambda _: evaluation(), QuantCodeSettings())
        assert outcome.solved is False and outcome.stage == "no_code" and reason in outcome.reason
        assert outcome.failure_class == "no-code"


def test_an_answer_cut_off_by_the_token_limit_is_a_failure_of_its_own():
    program = (
        "import backtrader as bt\n\n\nclass S(bt.Strategy):\n    def next(self):\n        "
        "if "
        "self.data.close["
    )
    inside = f"Here it is.\n```python\n{program}"
    broken = f"```python\n{program}\n```\n"
    imports_alone = "```python\nimport backtrader as bt\n```\nand then\n```python\nclass S(bt.Strat"
    does_not_compile = stopped("compile", "'[' was never closed", "SyntaxError")
    for text, stop, stage, failure in (
        (inside, "length", "cut_off", "cut-off"),
        (program, "length", "cut_off", "cut-off"),
        (imports_alone, "length", "cut_off", "cut-off"),
        ("", "length", "cut_off", "cut-off"),
        ("I first think about", "length", "cut_off", "cut-off"),
        # Its own mistake: the model said that it was done, or the program was and what followed was cut off.
        (inside, "stop", "compile", "compilation"),
        (broken, "stop", "compile", "compilation"),
        (f"{broken}It buys when", "length", "compile", "compilation"),
        ("<think>hm " * 50, "length", "no_code", "no-code"),
    ):
        reply = ModelReply(text=text, stop=stop)
        outcome, _ = played([reply], lambda _: does_not_compile, QuantCodeSettings())
        assert (outcome.stage, outcome.failure_class, outcome.solved) == (stage, failure, False), (
            text,
            stop,
        )
    # What runs is judged by what it does, wherever the answer ended.
    outcome, _ = played(
        [ModelReply(text=CODE, stop="length")], lambda _: evaluation(), QuantCodeSettings()
    )
    assert outcome.solved


def test_a_cut_off_answer_is_in_the_tables_and_passes_no_stage():
    cut = ModelReply(text="```python\nclass S(bt.Strategy):\n    def next(", stop="length")
    outcome, _ = played(
        [cut], lambda _: stopped("compile", "no", "SyntaxError"), QuantCodeSettings()
    )
    asked = {"setting": "single-turn", "wording": "formal", "framework": "backtrader"}
    item = SimpleNamespace(key="k", model="m", task=TASK.id, seed=0, protocol=asked)
    scores = quantcode_scores([item], {TASK.id: TASK}, {"k": outcome}, turns=1)
    (cell,) = scores.cells
    assert (cell.ends, cell.last_failures) == ({"cut_off": 1}, {"cut-off": 1})
    assert cell.rates.compile.value == 0.0 and cell.rates.items == 1
    page = quantcode_paper([(QuantCodeSpec(models=("scripted/a",)), 1)], scores.cells, UNTIMED)
    rows = {row.head.text: row.cells for table in page.tables for row in table.rows}
    ours = rows["Cut off by the token limit"]
    assert ours[0].measure.reason == "not in the paper" and ours[1].measure.value == 1.0
    for stage in ("Does not compile", "No code, reasoning loop"):
        assert rows[stage][1].measure.value == 0.0
