"""What a model is told about a program that was not accepted: stage, class of error, message, reasons."""

from __future__ import annotations

from typing import Final

import msgspec

from tradeassay.benchmarks.quantcode.prompts import PROMPTS
from tradeassay.benchmarks.quantcode.settings import QuantCodeSettings
from tradeassay.code.evaluation import STAGES, Evaluation
from tradeassay.code.extraction import Extraction

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


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was found. ``kind`` is the stage that found it."""

    kind: str
    error_class: str
    detail: str
    line: int | None = None


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """What goes back to the model, and the text in which it goes."""

    stage: str
    findings: tuple[Finding, ...]
    text: str


def feedback_on(evaluation: Evaluation, settings: QuantCodeSettings, turn: int) -> Feedback:
    """Return the feedback on a program that was not accepted."""
    stage = evaluation.outcome
    findings = tuple(_findings(evaluation, settings))
    stages: dict[str, str] = {name: evaluation.stage(name).status for name in STAGES}
    text = PROMPTS.fill(
        "feedback",
        left=_left(settings, turn),
        payload=_payload(findings, turn, stages),
        advice=_ADVICE.get(stage, ""),
    )
    return Feedback(stage=stage, findings=findings, text=text)


def feedback_on_no_code(extraction: Extraction, settings: QuantCodeSettings, turn: int) -> Feedback:
    """Return the feedback on an answer without a program."""
    detail = _NO_CODE.get(extraction.missing, "the answer holds no program")
    findings = (Finding(kind="no_code", error_class=extraction.missing.replace(" ", "_"), detail=detail),)
    text = PROMPTS.fill("no_code", left=_left(settings, turn), payload=_payload(findings, turn, {}))
    return Feedback(stage="no_code", findings=findings, text=text)


def _findings(evaluation: Evaluation, settings: QuantCodeSettings) -> list[Finding]:
    if evaluation.grave_tricks:
        return [
            Finding(kind="trick", error_class=trick.name, detail=_cut(trick.detail or trick.name, settings))
            for trick in evaluation.grave_tricks
        ]
    outcome = evaluation.outcome
    if outcome == "judge":
        return _judged(evaluation, settings)
    result = evaluation.stage(outcome)
    return [
        Finding(
            kind=outcome, error_class=result.error_class, detail=_cut(result.reason, settings), line=result.line
        )
    ]


def _judged(evaluation: Evaluation, settings: QuantCodeSettings) -> list[Finding]:
    found: list[Finding] = []
    language = evaluation.judge_language
    for criterion in language.criteria if language is not None else ():
        if criterion.verdict == "fail":
            found.append(
                Finding(kind="judge", error_class=criterion.name, detail=_cut(criterion.reason, settings))
            )
    behaviour = evaluation.judge_behaviour
    if behaviour is not None and behaviour.status == "failed":
        words = [*behaviour.violations, *(behaviour.hints if settings.behaviour_hints else ())]
        said = "; ".join(words) or "what it does is not what the task says"
        found.append(Finding(kind="judge", error_class="behaviour", detail=_cut(said, settings)))
    return found or [Finding(kind="judge", error_class="judge", detail=_cut(evaluation.judge.reason, settings))]


def _payload(findings: tuple[Finding, ...], turn: int, stages: dict[str, str]) -> str:
    body = {"kind": "feedback", "turn": turn, "stages": stages, "failures": findings}
    return msgspec.json.encode(body).decode()


def _left(settings: QuantCodeSettings, turn: int) -> str:
    left = settings.allowed_turns - turn
    return "this was the last attempt" if left <= 0 else f"{left} attempt{'s' if left > 1 else ''} left"


def _cut(text: str, settings: QuantCodeSettings) -> str:
    most = settings.longest_message
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"
