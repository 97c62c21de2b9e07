"""The dialogue about one task with one model, from the first question to the last verdict.

No I/O here.

The settings define how a task is presented: one answer or ten, the wording, and the framework.
:func:`play` yields :class:`~tradeassay_bench.core.dialogue.AskModel` (and receives a
``ModelReply``) or :class:`~tradeassay_programs.code.evaluation.EvaluateRequest` (and receives an
``Evaluation``). It returns a frozen :class:`TaskOutcome` with every turn. The feedback on a
rejected program consists of a stage, a class of error, a message and reasons.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply, Usage
from tradeassay_programs.benchmarks.quantcode.prompts import PROMPTS, judge_prompts
from tradeassay_programs.code.bars import LABELS
from tradeassay_programs.code.checks import FailureClass
from tradeassay_programs.code.evaluation import EvaluateRequest, Evaluation
from tradeassay_programs.code.extraction import exchange, extract, no_answer, total_usage
from tradeassay_programs.code.judges.language import JudgePrompts
from tradeassay_programs.code.task import CodeTask, Framework, Sizing, Wording

Setting = Literal["single-turn", "agentic"]


class QuantCodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for presenting a task to a model.

    ``turns`` is the maximum number of answers in the agentic setting (the paper: 10). With
    ``history="full"`` the model sees the whole conversation. With ``last`` it sees only its latest
    program and the findings on it. Raises :class:`UserError` for numbers that allow no turn.
    """

    setting: Setting = "single-turn"
    turns: int = 10
    wording: Wording = "formal"
    framework: Framework = "backtrader"
    history: Literal["full", "last"] = "last"

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise UserError(f"{self.turns} turns allow no answer", hint="give 1 or more")

    @property
    def allowed_turns(self) -> int:
        return self.turns if self.setting == "agentic" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJudge:
    """A language judge: a model's name, its query function, and the prompts for a framework."""

    name: str
    answer: Callable[[AskModel], ModelReply]
    framework: Framework = "backtrader"

    @property
    def prompts(self) -> JudgePrompts:
        return judge_prompts(self.framework)

    def ask(self, request: AskModel) -> ModelReply:
        return self.answer(request)


_ADVICE: Final = {
    "compile": "It does not compile, or does not define exactly what was asked for.",
    "backtest": "It broke while it was run on the data.",
    "trade": "It ran to the end and opened no trade: its conditions were never all true at once.",
    "lookahead": "A decision changed when only later bars did. Decide with what is known at each "
    "bar's close.",
    "judge": "It runs and trades, but it is not the strategy of the task.",
    "trick": "It tried to have something else counted than its orders.",
}
_LONGEST: Final = 2_000
"""Maximum number of characters of an error text in the feedback."""
_NO_CODE: Final = {
    "empty": "the answer is empty",
    "prose": "the answer holds words and no program",
    "loop": "the answer repeats itself or never stops thinking, and holds no program",
    "cut off": "the answer was cut off before a program began",
}


def feedback_on(evaluation: Evaluation, settings: QuantCodeSettings, turn: int) -> str:
    """Return the feedback to the model on a rejected program.

    Hints of the judges describe differences in general terms and never reveal the reference.
    """
    at: int | None = None
    if evaluation.grave_tricks:
        said = [trick.detail or trick.name for trick in evaluation.grave_tricks]
    elif evaluation.outcome == "judge":
        language, behaviour = evaluation.judge_language, evaluation.judge_behaviour
        criteria = language.criteria if language is not None else ()
        said = [criterion.reason for criterion in criteria if criterion.verdict == "fail"]
        if behaviour is not None and behaviour.status == "failed":
            words = "; ".join((*behaviour.violations, *behaviour.hints))
            said.append(words or "what it does is not what the task says")
        said = said or [evaluation.judge.reason]
    else:
        stopped_at = evaluation.stage(evaluation.outcome)
        said, at = [stopped_at.reason], stopped_at.line
    half = _LONGEST // 2
    said = [text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}" for text in said]
    if at is not None and "line" not in said[0]:
        said[0] += f" (line {at})"
    findings = "\n".join(f"- {line}" for line in said)
    advice = _ADVICE.get(evaluation.outcome, "")
    return PROMPTS.fill("feedback", findings=findings, left=_left(settings, turn), advice=advice)


def _left(settings: QuantCodeSettings, turn: int) -> str:
    left = settings.allowed_turns - turn
    if left <= 0:
        return "this was the last attempt"
    return f"{left} attempt{'s' if left > 1 else ''} left"


TurnStage = Literal[
    "solved",
    "trick",
    "compile",
    "backtest",
    "trade",
    "lookahead",
    "judge",
    "no_code",
    "cut_off",
    "not_scored",
    "no_answer",
]
Request = AskModel | EvaluateRequest
Answer = ModelReply | Evaluation


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer and its result.

    ``stage`` is the stage at which the program failed, and ``feedback`` the text sent to the model.
    ``cut_off`` means that the answer reached the token limit before its program was complete. Such
    a failure says nothing about the model's Python. ``code`` is None if the answer has no program
    (``form`` is then ``none``). ``raw`` is the whole answer, kept if there is no program.
    """

    number: int
    stage: TurnStage
    form: str = "none"
    code: str | None = None
    code_sha256: str = ""
    raw: str = ""
    evaluation: Evaluation | None = None
    feedback: str = ""
    reason: str = ""
    usage: Usage = Usage()


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one task.

    ``solved`` is None without a verdict, and ``reason`` states why. ``stage`` and ``failure_class``
    are from the last turn. ``solved_at`` is the turn that solved the task. ``tricks`` names the
    tricks of all turns. ``usage`` is the sum of the writer's tokens. The judge's tokens are in the
    evaluations.
    """

    task: str
    setting: Setting
    wording: Wording
    framework: Framework
    turns: tuple[Turn, ...]
    solved: bool | None
    stage: TurnStage
    solved_at: int | None = None
    failure_class: FailureClass | None = None
    tricks: tuple[str, ...] = ()
    reason: str = ""
    usage: Usage = Usage()


def play(task: CodeTask, settings: QuantCodeSettings) -> Generator[Request, Answer, TaskOutcome]:
    """Present a task to a model, and return the outcome.

    Raises :class:`UserError` if the task has no text in this wording. The single-turn setting ends
    after one answer. The agentic setting ends in five cases: a program solves the task, turns run
    out, a grave trick is found, no verdict is possible any more, or the model gives the same answer
    twice in a row.
    """
    opening = opening_messages(task, settings)
    # The question as data. The text contains no part of it, because models copied its keys into
    # their programs.
    same = {
        name: getattr(task, name) for name in ("timeframe", "bars", "cash", "commission", "sizing")
    }
    same |= {"framework": settings.framework, "turns": settings.allowed_turns}
    shown = TaskShown(task=opaque_id(task), assets=tuple(LABELS[: task.assets]), **same)
    given = Given(session="", rules="{}", observation=msgspec.json.encode(shown).decode())
    last = ""
    messages = opening
    turns: list[Turn] = []
    for number in range(1, settings.allowed_turns + 1):
        reply = yield AskModel(
            purpose="write", messages=tuple(messages), attempt=number, given=given
        )
        assert isinstance(reply, ModelReply)
        if not reply.text.isascii():  # Lone surrogates cannot be stored.
            reply = msgspec.structs.replace(
                reply, text=reply.text.encode("utf-8", "replace").decode("utf-8")
            )
        if reason := no_answer(reply):
            turns.append(Turn(number=number, stage="no_answer", reason=reason, usage=reply.usage))
            break
        once = settings.setting == "single-turn"
        found = extract(reply.text, settings.framework, cut_off=reply.stop == "length", last=once)
        answer = found.code or reply.text
        if number > 1 and answer == last:
            # The same program has the same findings.
            reason = f"the same answer again, which ends the attempts; {turns[-1].reason}"
            turns.append(
                msgspec.structs.replace(
                    turns[-1], number=number, feedback="", reason=reason, usage=reply.usage
                )
            )
            break
        last = answer
        if found.code is None:
            problem = _NO_CODE.get(found.missing, "the answer holds no program")
            example = PROMPTS.fill(f"example.{settings.framework}").strip()
            feedback: str | None = PROMPTS.fill(
                "no_code", left=_left(settings, number), problem=problem, example=example
            )
            why = reply.error or f"no code: {found.missing}"
            none: TurnStage = "cut_off" if found.missing == "cut off" else "no_code"
            turn = Turn(number=number, stage=none, raw=reply.text, reason=why, usage=reply.usage)
        else:
            evaluation = yield EvaluateRequest(
                task=task.id, source=found.code, framework=settings.framework, turn=number
            )
            assert isinstance(evaluation, Evaluation)
            stage: TurnStage = evaluation.outcome
            why = evaluation.reason
            if stage == "compile" and reply.stop == "length" and found.to_the_end:
                stage, why = "cut_off", f"cut off by the token limit: {why}"
            turn = Turn(
                number=number,
                stage=stage,
                form=found.form,
                code=found.code,
                code_sha256=sha256_bytes(found.code.encode("utf-8", "surrogatepass")),
                evaluation=evaluation,
                reason=why,
                usage=reply.usage,
            )
            ends = stage in ("solved", "trick", "not_scored")
            feedback = None if ends else feedback_on(evaluation, settings, number)
        if feedback is None or number == settings.allowed_turns:
            turns.append(turn)
            break
        turns.append(msgspec.structs.replace(turn, feedback=feedback))
        before = messages if settings.history == "full" else opening
        messages = [*before, *exchange(reply, feedback)]
    end = turns[-1]
    solved = None if end.stage in ("not_scored", "no_answer") else end.stage == "solved"
    failure = failure_of(end)
    tricks: set[str] = set()
    for done in turns:
        if done.evaluation is not None:
            tricks |= {trick.name for trick in done.evaluation.grave_tricks}
    return TaskOutcome(
        task=task.id,
        setting=settings.setting,
        wording=settings.wording,
        framework=settings.framework,
        turns=tuple(turns),
        solved=solved,
        stage=end.stage,
        solved_at=end.number if solved else None,
        failure_class=failure,
        tricks=tuple(sorted(tricks)),
        reason="" if solved else end.reason,
        usage=total_usage(turn.usage for turn in turns),
    )


def failure_of(turn: Turn) -> FailureClass | None:
    """Return the class of a turn's failure, or None if the turn did not fail or was not scored."""
    if turn.stage == "no_code":
        return "no-code"
    if turn.stage == "cut_off":
        return "cut-off"
    return None if turn.evaluation is None else turn.evaluation.failure_class


def opaque_id(task: CodeTask) -> str:
    """Return the name under which a model sees a task. The real id would reveal the strategy."""
    return sha256_bytes(task.id.encode())[:12]


def opening_messages(task: CodeTask, settings: QuantCodeSettings) -> list[Message]:
    description, framework = task.text(settings.wording, settings.framework), settings.framework
    if description is None:
        raise UserError(
            f"task '{task.id}' has no {settings.wording} wording for the framework '{framework}'",
            hint=f"it has: {', '.join(task.wordings)}"
            f"{'' if task.frame else '; it has no variant for frames'}",
        )
    labels = ", ".join(LABELS[: task.assets])
    assets = "one asset" if task.assets == 1 else f"{task.assets} assets, {labels}"
    sized, kind, share = "", task.sizing.kind, f"{task.sizing.value:g} %"
    units = f"{task.sizing.value:g} unit{'' if task.sizing.value == 1 else 's'}"
    if framework == "frame":
        own = "A target is a share of the account's value."
        meant = {"fixed": units, "percent": f"{share} of the account's value"}
        sized = f" {own}" if kind == "own" else f" A target of 1 means {meant[kind]}."
    elif kind != "own":
        cash = (
            f"{share} of the available cash when nothing is held, and for the whole position "
            "when something is"
        )
        sized = f" An order that names no size is for {units if kind == 'fixed' else cash}."
    setting = (
        f"It is run on {task.bars:,} {_BARS[task.timeframe]} of {assets}. The account starts with "
        f"{task.cash:,.0f} in cash. Every trade costs a commission of {task.commission * 100:g} % "
        "of its value."
        f"{sized}"
    )
    words = PROMPTS.fill("task", description=description.strip(), setting=setting)
    return [
        Message(role="system", text=PROMPTS.fill(f"system.{framework}")),
        Message(role="user", text=words),
    ]


class TaskShown(msgspec.Struct, frozen=True, kw_only=True):
    """A task as data: its opaque name, framework, bars, money and turns."""

    kind: str = "quantcode.task"
    task: str
    framework: str
    timeframe: str
    bars: int
    assets: tuple[str, ...]
    cash: float
    commission: float
    sizing: Sizing
    turns: int


_BARS: Final = {
    "1d": "daily bars",
    "1h": "hourly bars",
    "30m": "bars of 30 minutes",
    "15m": "bars of 15 minutes",
    "5m": "bars of 5 minutes",
    "1m": "bars of one minute",
}
