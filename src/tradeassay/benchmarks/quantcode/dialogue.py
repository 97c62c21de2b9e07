"""One task with one model, from the first question to the last verdict. No I/O here.

The settings say how a task is put to a model: one answer or ten, in which wording, for which framework.
:func:`play` yields :class:`~tradeassay.core.dialogue.AskModel` (and is sent a ``ModelReply``) or
:class:`~tradeassay.code.evaluation.EvaluateRequest` (and is sent an ``Evaluation``), and returns a frozen
:class:`TaskOutcome` that keeps every turn. What a model is told about a program that was not accepted is a
stage, a class of error, a message and reasons.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from tradeassay.benchmarks.quantcode.prompts import PROMPTS, judge_prompts
from tradeassay.code.bars import LABELS
from tradeassay.code.checks import FailureClass
from tradeassay.code.evaluation import EvaluateRequest, Evaluation
from tradeassay.code.extraction import Extraction, exchange, extract, no_answer, total_usage
from tradeassay.code.judges.language import JudgePrompts
from tradeassay.code.task import CodeTask, Framework, Sizing, Wording
from tradeassay.core.dialogue import AskModel, Given, Message, ModelReply, Usage
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes

Setting = Literal["single-turn", "agentic"]


class QuantCodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One way of asking. ``turns`` is the most answers in the agentic setting (the paper: 10).

    ``history``: ``full`` shows the model the whole conversation, ``last`` only its latest program and
    what was found in it. ``longest_message`` bounds an error text that is handed back. ``behaviour_hints``
    says in general terms what differs in a program that the behavioural judge rejected; the reference itself is
    never shown. Raises :class:`UserError` for numbers that allow no turn or no message.
    """

    setting: Setting = "single-turn"
    turns: int = 10
    wording: Wording = "formal"
    framework: Framework = "backtrader"
    history: Literal["full", "last"] = "last"
    longest_message: int = 2_000
    behaviour_hints: bool = True

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise UserError(f"{self.turns} turns allow no answer", hint="give 1 or more")
        if self.longest_message < 100:
            raise UserError(f"messages of {self.longest_message} characters say nothing", hint="give 100 or more")

    @property
    def allowed_turns(self) -> int:
        return self.turns if self.setting == "agentic" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJudge:
    """A language judge of this benchmark: a model's name, the way to ask it, and our prompts for a framework."""

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
    "lookahead": "A decision changed when only later bars did. Decide with what is known at each bar's close.",
    "judge": "It runs and trades, but it is not the strategy of the task.",
    "trick": "It tried to have something else counted than its orders.",
}
_NO_CODE: Final = {
    "empty": "the answer is empty",
    "prose": "the answer holds words and no program",
    "loop": "the answer repeats itself or never stops thinking, and holds no program",
    "cut off": "the answer was cut off before a program began",
}


class ProgramComplaint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding that a model is told about. ``kind`` is the check that made it."""

    kind: str
    error_class: str
    detail: str
    line: int | None = None


class ProgramFeedback(msgspec.Struct, frozen=True, kw_only=True):
    """What goes back to the model, and its text."""

    stage: str
    findings: tuple[ProgramComplaint, ...]
    text: str


def feedback_on(evaluation: Evaluation, settings: QuantCodeSettings, turn: int) -> ProgramFeedback:
    stage = evaluation.outcome
    findings = tuple(_findings(evaluation, settings))
    lines = [
        f"- {one.detail}{f' (line {one.line})' if one.line is not None and 'line' not in one.detail else ''}"
        for one in findings
    ]
    left, advice = _left(settings, turn), _ADVICE.get(stage, "")
    text = PROMPTS.fill("feedback", findings="\n".join(lines), left=left, advice=advice)
    return ProgramFeedback(stage=stage, findings=findings, text=text)


def feedback_on_no_code(extraction: Extraction, settings: QuantCodeSettings, turn: int) -> ProgramFeedback:
    detail = _NO_CODE.get(extraction.missing, "the answer holds no program")
    findings = (ProgramComplaint(kind="no_code", error_class=extraction.missing.replace(" ", "_"), detail=detail),)
    example = PROMPTS.fill(f"example.{settings.framework}").strip()
    text = PROMPTS.fill("no_code", left=_left(settings, turn), problem=detail, example=example)
    return ProgramFeedback(stage="no_code", findings=findings, text=text)


def _findings(evaluation: Evaluation, settings: QuantCodeSettings) -> list[ProgramComplaint]:
    if evaluation.grave_tricks:
        return [
            ProgramComplaint(
                kind="trick", error_class=trick.name, detail=_cut(trick.detail or trick.name, settings)
            )
            for trick in evaluation.grave_tricks
        ]
    outcome = evaluation.outcome
    if outcome == "judge":
        return _judged(evaluation, settings)
    result = evaluation.stage(outcome)
    return [
        ProgramComplaint(
            kind=outcome, error_class=result.error_class, detail=_cut(result.reason, settings), line=result.line
        )
    ]


def _judged(evaluation: Evaluation, settings: QuantCodeSettings) -> list[ProgramComplaint]:
    found: list[ProgramComplaint] = []
    language = evaluation.judge_language
    for criterion in language.criteria if language is not None else ():
        if criterion.verdict == "fail":
            found.append(
                ProgramComplaint(kind="judge", error_class=criterion.name, detail=_cut(criterion.reason, settings))
            )
    behaviour = evaluation.judge_behaviour
    if behaviour is not None and behaviour.status == "failed":
        words = [*behaviour.violations, *(behaviour.hints if settings.behaviour_hints else ())]
        said = "; ".join(words) or "what it does is not what the task says"
        found.append(ProgramComplaint(kind="judge", error_class="behaviour", detail=_cut(said, settings)))
    return found or [
        ProgramComplaint(kind="judge", error_class="judge", detail=_cut(evaluation.judge.reason, settings))
    ]


def _left(settings: QuantCodeSettings, turn: int) -> str:
    left = settings.allowed_turns - turn
    return "this was the last attempt" if left <= 0 else f"{left} attempt{'s' if left > 1 else ''} left"


def _cut(text: str, settings: QuantCodeSettings) -> str:
    most = settings.longest_message
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


TASK_KIND: Final = "quantcode.task"
"""The payload's ``kind``, by which a scripted model recognises the question."""

TurnStage = Literal[
    "solved", "trick", "compile", "backtest", "trade", "lookahead", "judge", "no_code", "not_scored", "no_answer"
]
Request = AskModel | EvaluateRequest
Answer = ModelReply | Evaluation


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer and what came of it. ``stage`` is where it ended, ``feedback`` what the model was told.

    ``code`` is None when there was none (``form`` is ``none``); ``raw`` is then kept, so that a reader can see
    what came instead.
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
    """What came of one task. ``solved`` is None without a verdict, and ``reason`` says why.

    ``stage`` and ``failure_class`` are those of the last turn. ``solved_at`` is the turn that solved it.
    ``tricks`` names those found in any turn. ``usage`` adds up the writer's tokens, not the judge's (those are in
    the evaluations).
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
    """Put a task to a model. Raises :class:`UserError` when the task has no such wording.

    Single-turn ends after one answer. Agentic goes on until a program is solved, turns run out, a trick is
    found (which scores zero whatever would follow), no verdict is possible any more, or the same
    answer comes twice in a row: a model that repeats itself has stopped trying.
    """
    opening = opening_messages(task, settings)
    given = _given(task, settings)
    last = ""
    messages = opening
    turns: list[Turn] = []
    for number in range(1, settings.allowed_turns + 1):
        reply = yield AskModel(purpose="write", messages=tuple(messages), attempt=number, given=given)
        assert isinstance(reply, ModelReply)
        if not reply.text.isascii():  # lone halves of characters cannot be written down
            reply = msgspec.structs.replace(reply, text=reply.text.encode("utf-8", "replace").decode("utf-8"))
        if reason := no_answer(reply):
            turns.append(Turn(number=number, stage="no_answer", reason=reason, usage=reply.usage))
            break
        once = settings.setting == "single-turn"
        found = extract(reply.text, settings.framework, cut_off=reply.stop == "length", last=once)
        answer = found.code or reply.text
        if number > 1 and answer == last:
            turns.append(_repeated(turns[-1], reply))
            break
        last = answer
        if found.code is None:
            feedback: ProgramFeedback | None = feedback_on_no_code(found, settings, number)
            why = reply.error or f"no code: {found.missing}"
            turn = Turn(number=number, stage="no_code", raw=reply.text, reason=why, usage=reply.usage)
        else:
            evaluation = yield EvaluateRequest(
                task=task.id, source=found.code, framework=settings.framework, turn=number
            )
            assert isinstance(evaluation, Evaluation)
            turn = Turn(
                number=number,
                stage=evaluation.outcome,
                form=found.form,
                code=found.code,
                code_sha256=sha256_bytes(found.code.encode("utf-8", "surrogatepass")),
                evaluation=evaluation,
                reason=evaluation.reason,
                usage=reply.usage,
            )
            ends = turn.stage in ("solved", "trick", "not_scored")
            feedback = None if ends else feedback_on(evaluation, settings, number)
        if feedback is None or number == settings.allowed_turns:
            turns.append(turn)
            break
        turns.append(msgspec.structs.replace(turn, feedback=feedback.text))
        before = messages if settings.history == "full" else opening
        messages = [*before, *exchange(reply, feedback.text)]
    return _outcome(task, settings, turns)


def opaque_id(task: CodeTask) -> str:
    """Return the name under which a model is given a task: the real id would reveal the strategy."""
    return sha256_bytes(task.id.encode())[:12]


def opening_messages(task: CodeTask, settings: QuantCodeSettings) -> list[Message]:
    description = task.text(settings.wording, settings.framework)
    if description is None:
        raise UserError(
            f"task '{task.id}' has no {settings.wording} wording for the framework '{settings.framework}'",
            hint=f"it has: {', '.join(task.wordings)}{'' if task.frame else '; it has no variant for frames'}",
        )
    words = PROMPTS.fill("task", description=description.strip(), setting=_setting(task, settings.framework))
    return [
        Message(role="system", text=PROMPTS.fill(f"system.{settings.framework}")),
        Message(role="user", text=words),
    ]


class TaskShown(msgspec.Struct, frozen=True, kw_only=True):
    """A task as data: its opaque name, the framework, and the bars, money and turns of a program."""

    kind: str = TASK_KIND
    task: str
    framework: str
    timeframe: str
    bars: int
    assets: tuple[str, ...]
    cash: float
    commission: float
    sizing: Sizing
    turns: int


def _given(task: CodeTask, settings: QuantCodeSettings) -> Given:
    """Return the question as data. The text shows none of it: models copied its keys into their programs."""
    shown = TaskShown(
        task=opaque_id(task),
        framework=settings.framework,
        timeframe=task.timeframe,
        bars=task.bars,
        assets=tuple(LABELS[: task.assets]),
        cash=task.cash,
        commission=task.commission,
        sizing=task.sizing,
        turns=settings.allowed_turns,
    )
    return Given(session="", rules="{}", observation=msgspec.json.encode(shown).decode())


_BARS: Final = {
    "1d": "daily bars",
    "1h": "hourly bars",
    "30m": "bars of 30 minutes",
    "15m": "bars of 15 minutes",
    "5m": "bars of 5 minutes",
    "1m": "bars of one minute",
}


def _setting(task: CodeTask, framework: Framework) -> str:
    labels = ", ".join(LABELS[: task.assets])
    assets = "one asset" if task.assets == 1 else f"{task.assets} assets, {labels}"
    lines = [
        f"It is run on {task.bars:,} {_BARS[task.timeframe]} of {assets}.",
        f"The account starts with {task.cash:,.0f} in cash. "
        f"Every trade costs a commission of {task.commission * 100:g} % of its value.",
    ]
    size = task.sizing
    if framework == "backtrader" and size.kind == "fixed":
        lines.append(f"An order that names no size is for {size.value:g} unit{'' if size.value == 1 else 's'}.")
    elif framework == "backtrader" and size.kind == "percent":
        lines.append(
            f"An order that names no size is for {size.value:g} % of the available cash when nothing is held, "
            "and for the whole position when something is."
        )
    elif framework == "frame" and size.kind == "fixed":
        lines.append(f"A target of 1 means {size.value:g} unit{'' if size.value == 1 else 's'}.")
    elif framework == "frame" and size.kind == "percent":
        lines.append(f"A target of 1 means {size.value:g} % of the account's value.")
    elif framework == "frame":
        lines.append("A target is a share of the account's value.")
    return " ".join(lines)


def _repeated(before: Turn, reply: ModelReply) -> Turn:
    """Return the turn of an answer that was given before, word for word: the same program, the same findings."""
    reason = f"the same answer again, which ends the attempts; {before.reason}"
    return msgspec.structs.replace(before, number=before.number + 1, feedback="", reason=reason, usage=reply.usage)


def _outcome(task: CodeTask, settings: QuantCodeSettings, turns: list[Turn]) -> TaskOutcome:
    last = turns[-1]
    solved = None if last.stage in ("not_scored", "no_answer") else last.stage == "solved"
    failure: FailureClass | None = "no-code" if last.stage == "no_code" else None
    if last.evaluation is not None:
        failure = last.evaluation.failure_class
    tricks = {
        trick.name for turn in turns if turn.evaluation is not None for trick in turn.evaluation.grave_tricks
    }
    return TaskOutcome(
        task=task.id,
        setting=settings.setting,
        wording=settings.wording,
        framework=settings.framework,
        turns=tuple(turns),
        solved=solved,
        stage=last.stage,
        solved_at=last.number if solved else None,
        failure_class=failure,
        tricks=tuple(sorted(tricks)),
        reason="" if solved else last.reason,
        usage=total_usage(turn.usage for turn in turns),
    )
