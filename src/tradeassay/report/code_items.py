"""Item by item: every turn's program, where it ended, what the model was told. It is other people's text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tradeassay.report import numbers

if TYPE_CHECKING:
    from tradeassay.runs import CodeRun, Episode

MOST_TURNS = 3_000
"""Turns whose programs are put on a page; a browser takes more, a reader does not."""
_LONGEST = 40_000
_WORDS = {
    "solved": "solved",
    "trick": "trick",
    "compile": "does not compile",
    "backtest": "breaks",
    "trade": "no trade",
    "lookahead": "looks ahead",
    "judge": "turned down",
    "no_code": "no code",
    "not_scored": "not judged",
    "no_answer": "no answer",
}
Tone = Literal["above", "below", "failed", "same"]


class StageChip(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of one program: its status and the reason."""

    name: str
    status: str
    reason: str
    tone: Tone


class TurnView(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    number: int
    outcome: str
    tone: Tone
    reason: str
    code: str
    raw: str
    stages: tuple[StageChip, ...]
    tricks: tuple[tuple[str, str], ...]
    judges: tuple[tuple[str, str, str], ...]
    markets: tuple[tuple[str, str], ...]
    evidence: tuple[str, ...]
    feedback: str
    tokens: str


class ItemView(msgspec.Struct, frozen=True, kw_only=True):
    """One item with its turns; ``turns`` is empty for those that did not fit on the page."""

    id: str
    key: str
    model: str
    task: str
    way: str
    seed: int
    outcome: str
    tone: Tone
    reason: str
    turns: tuple[TurnView, ...]
    said: str


class EarnedRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a solved program earned, and holding beside it."""

    model: str
    task: str
    item: str
    trades: str
    strategy: str
    hold: str
    sharpe: str
    drawdown: str


def item_views(run: CodeRun, records: dict[str, Any]) -> tuple[tuple[ItemView, ...], int]:
    """Return all items, and how many of them are shown without their turns."""
    views: list[ItemView] = []
    shown = without = 0
    for place, (item, outcome) in enumerate(run.outcomes()):
        record = records.get(item.key)
        turns: tuple[TurnView, ...] = ()
        if record is not None and shown + len(record.turns) <= MOST_TURNS:
            turns = tuple(_turn(turn) for turn in record.turns)
            shown += len(turns)
        elif record is not None:
            without += 1
        stage = "no_answer" if record is None else record.stage
        views.append(
            ItemView(
                id=f"item-{place}",
                key=item.key,
                model=item.model,
                task=item.task,
                way=item_way(item),
                seed=item.seed,
                outcome=_WORDS.get(stage, stage),
                tone=_tone(stage),
                reason=outcome.reason,
                turns=turns,
                said=numbers.count(len(record.turns), "turn") if record is not None else "",
            )
        )
    return tuple(views), without


def item_way(item: Episode) -> str:
    """Return in which way an item's task was put."""
    return " · ".join(
        str(item.protocol[name]) for name in ("setting", "wording", "framework") if name in item.protocol
    )


def earned_rows(run: CodeRun, records: dict[str, Any], ids: dict[str, str]) -> tuple[EarnedRow, ...]:
    """Return what the programs that solved their task earned."""
    rows = []
    for item in run.episodes:
        record = records.get(item.key)
        found = record.turns[-1].evaluation if record is not None and record.solved else None
        if found is None or found.earned is None:
            continue
        earned = found.earned
        rows.append(
            EarnedRow(
                model=item.model,
                task=item.task,
                item=ids.get(item.key, ""),
                trades=f"{earned.trades:,}",
                strategy=_share(earned.strategy.total_return),
                hold=_share(earned.hold.total_return),
                sharpe=_number(earned.strategy.sharpe),
                drawdown=_share(earned.strategy.max_drawdown),
            )
        )
    return tuple(rows)


def _turn(turn: Any) -> TurnView:
    found = turn.evaluation
    return TurnView(
        number=turn.number,
        outcome=_WORDS.get(turn.stage, turn.stage),
        tone=_tone(turn.stage),
        reason=_cut(turn.reason),
        code=_cut(turn.code or ""),
        raw=_cut(turn.raw),
        stages=() if found is None else tuple(_chips(found)),
        tricks=() if found is None else tuple((t.name, _cut(t.detail)) for t in found.tricks),
        judges=() if found is None else tuple(_verdicts(found)),
        markets=() if found is None else _markets(found),
        evidence=() if found is None or found.leak is None else tuple(one.text for one in found.leak.evidence),
        feedback=_cut(turn.feedback),
        tokens=_tokens(turn.usage.input_tokens, turn.usage.output_tokens),
    )


def _tokens(read: int, written: int) -> str:
    return f"{numbers.short(read)} tokens in, {numbers.short(written)} out"


def _chips(found: Any) -> Iterable[StageChip]:
    tones: dict[str, Tone] = {"passed": "above", "failed": "below"}
    for name in ("compile", "backtest", "trade", "lookahead", "judge"):
        stage = found.stage(name)
        yield StageChip(
            name="look-ahead" if name == "lookahead" else name,
            status=stage.status.replace("_", " "),
            reason=_cut(stage.reason),
            tone=tones.get(stage.status, "same"),
        )


def _verdicts(found: Any) -> Iterable[tuple[str, str, str]]:
    behaviour, language = found.judge_behaviour, found.judge_language
    if behaviour is not None:
        agreed = "" if behaviour.agreement is None else f"agreement {behaviour.agreement:.3f}"
        yield "behaviour", behaviour.status.replace("_", " "), _cut(behaviour.reason or agreed)
    if language is not None and language.attempts:
        reasons = (
            "; ".join(f"{one.name} {one.verdict}: {one.reason}" for one in language.criteria) or language.reason
        )
        yield language.judge or "language", language.status.replace("_", " "), _cut(reasons)


def _markets(found: Any) -> tuple[tuple[str, str], ...]:
    behaviour = found.judge_behaviour
    if behaviour is None:
        return ()
    return tuple((one.market, one.failure or f"{one.value:.3f}") for one in behaviour.markets)


def _tone(stage: str) -> Tone:
    if stage == "solved":
        return "above"
    if stage in ("no_answer", "trick"):
        return "failed"
    return "same" if stage == "not_scored" else "below"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n... {len(text) - _LONGEST:,} more characters"


def _share(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.number(value, unit="fraction", signed=True)


def _number(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.number(value, signed=True)
