"""A model on the page: cost, behaviour, mistakes and confidence, all numbers already written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.data import AgentData, HoldingsOverTime
from tradeassay.report.figure import Figure
from tradeassay.report.model_data import ConfidenceNote, CostNote, ErrorRow, ModelData, ModelDecision

BEHAVIOUR = ("turnover", "hhi", "cash_ratio", "abstention_rate", "rejection_rate")
ANSWERS = {"scripted": "scripted model", "replayed": "replayed model", "live": "live model"}
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 360.0, 240.0, 44.0, 34.0
_LARGEST = 13.0


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """One number with its name and what stands below it in small print."""

    title: str
    text: str
    small: str
    defined: str = ""


class ErrorView(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of mistake; ``share`` is in per cent of the sessions, for a bar."""

    kind: str
    answers: str
    sessions: str
    rate: str
    interval: str
    share: float


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """One bin of confidence: its place in the drawing, and the numbers in words."""

    x: float
    y: float
    r: float
    label: str
    stated: str
    true: str
    n: str


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page shows of a model beyond what it shows of every agent."""

    model: str
    kind: str
    line: str
    mask: str | None
    cost: tuple[Tile, ...]
    behaviour: tuple[Tile, ...]
    sessions: str
    errors: tuple[ErrorView, ...]
    rates: tuple[Tile, ...]
    dots: tuple[Dot, ...]
    scores: tuple[Tile, ...]
    decisions: tuple[ModelDecision, ...]
    left_out: int


def model_view(agent: AgentData, figures: Mapping[str, Figure]) -> ModelView | None:
    """Return the page's view of an agent's model, None for a rule."""
    model = agent.model
    if model is None:
        return None
    return ModelView(
        model=model.model,
        kind=ANSWERS[model.answers],
        line=cost_line(model),
        mask=model.mask,
        cost=_cost(model),
        behaviour=_behaviour(agent, figures),
        sessions=numbers.count(model.sessions, "session"),
        errors=tuple(_error(row) for row in model.errors),
        rates=tuple(_rate(title, defined, measure) for title, defined, measure in model.rates),
        dots=() if model.confidence is None else _dots(model.confidence),
        scores=() if model.confidence is None else _confidence(model.confidence),
        decisions=model.decisions,
        left_out=model.decisions_left_out,
    )


def cost_line(model: ModelData) -> str:
    """Return one line below a name: ``scripted model · 1.0M tokens · $0.00``."""
    parts = [ANSWERS[model.answers]]
    if model.cost is not None:
        parts += [f"{numbers.short(model.cost.tokens)} tokens", numbers.dollars(model.cost.usd)]
    return " · ".join(parts)


def _cost(model: ModelData) -> tuple[Tile, ...]:
    tiles = [] if model.cost is None else _spent(model.cost)
    if model.net_return is not None:
        net = model.net_return
        text = numbers.NONE if net.value is None else numbers.number(net.value, unit="fraction", signed=True)
        tiles.append(
            Tile(
                title="Return net of inference",
                text=text,
                small=net.reason or "after paying for the answers",
                defined="(Last value - dollars spent on answers) / initial value - 1.",
            )
        )
    return tuple(tiles)


def _spent(cost: CostNote) -> list[Tile]:
    each = cost.decisions or 1
    per = "" if cost.usd is None else f"{numbers.dollars(cost.usd / each)} a decision"
    return [
        Tile(title="Calls", text=f"{cost.calls:,}", small=f"{cost.calls / each:.1f} a decision"),
        Tile(
            title="Tokens",
            text=numbers.short(cost.tokens),
            small=f"{numbers.short(cost.input_tokens)} in, {numbers.short(cost.output_tokens)} out, "
            f"{numbers.short(round(cost.tokens / each))} a decision",
        ),
        Tile(title="Dollars", text=numbers.dollars(cost.usd), small=per or "no price is known"),
    ]


def _behaviour(agent: AgentData, figures: Mapping[str, Figure]) -> tuple[Tile, ...]:
    tiles = [
        Tile(
            title=figures[name].title,
            text=figures[name].text,
            small=figures[name].interval or figures[name].note,
            defined=figures[name].defined,
        )
        for name in BEHAVIOUR
    ]
    return (*tiles, *_holding(agent.holdings)) if agent.holdings is not None else tuple(tiles)


def _holding(held: HoldingsOverTime) -> tuple[Tile, ...]:
    """Return how many names are held and for how long; a name still held at the end counts up to there."""
    if not held.symbols:
        return (Tile(title="Names held", text="0", small="nothing was ever held"),)
    there = np.abs(np.asarray(held.weights, dtype=np.float64)) > 0
    starts = int(there[:, 0].sum() + (there[:, 1:] & ~there[:, :-1]).sum())
    count = there.sum(axis=0)
    return (
        Tile(
            title="Names held",
            text=f"{float(count.mean()):,.1f}",
            small=f"{int(count.min())} to {int(count.max())} at the end of a session",
        ),
        Tile(
            title="Sessions a name is held",
            text=f"{float(there.sum()) / starts:,.1f}" if starts else numbers.NONE,
            small=f"mean of {numbers.count(starts, 'holding')}, those at the end cut there",
        ),
    )


def _error(row: ErrorRow) -> ErrorView:
    return ErrorView(
        kind=row.kind.replace("_", " "),
        answers=f"{row.answers:,}",
        sessions=f"{row.sessions:,}",
        rate=_fraction(row.rate),
        interval=_bounds(row.rate),
        share=round(100.0 * (row.rate.value or 0.0), 1),
    )


def _rate(title: str, defined: str, measure: Measure) -> Tile:
    return Tile(
        title=title, text=_fraction(measure), small=_bounds(measure) or measure.reason or "", defined=defined
    )


def _confidence(note: ConfidenceNote) -> tuple[Tile, ...]:
    rows = (
        (
            "Calibration error (ECE)",
            note.ece,
            "Mean gap between confidence and the share that came true.",
        ),
        ("Brier score", note.brier, "Mean of (confidence - right) squared; 0.25 is what saying 50% gets."),
    )
    return tuple(
        Tile(
            title=title,
            text=numbers.NONE if measure.value is None else numbers.number(measure.value),
            small=measure.reason or _plain_bounds(measure) or measure.note or "",
            defined=defined,
        )
        for title, measure, defined in rows
    )


def _dots(note: ConfidenceNote) -> tuple[Dot, ...]:
    full = [one for one in note.bins if one.n]
    most = max((one.n for one in full), default=1)
    return tuple(
        Dot(
            x=round(_LEFT + (one.confidence or 0.0) * (_WIDTH - _LEFT - 16.0), 1),
            y=round((_HEIGHT - _BOTTOM) - (one.accuracy or 0.0) * (_HEIGHT - _BOTTOM - 14.0), 1),
            r=round(3.5 + (_LARGEST - 3.5) * (one.n / most) ** 0.5, 1),
            label=f"{one.low:.0%} to {one.high:.0%}",
            stated=numbers.number(one.confidence or 0.0, unit="fraction"),
            true=numbers.number(one.accuracy or 0.0, unit="fraction"),
            n=f"{one.n:,}",
        )
        for one in full
    )


def _fraction(measure: Measure) -> str:
    return numbers.NONE if measure.value is None else numbers.number(measure.value, unit="fraction")


def _bounds(measure: Measure) -> str:
    if measure.low is None or measure.high is None:
        return ""
    low, high = (numbers.number(value, unit="fraction") for value in (measure.low, measure.high))
    return f"{low} to {high}"


def _plain_bounds(measure: Measure) -> str:
    if measure.low is None or measure.high is None:
        return ""
    return f"{numbers.number(measure.low)} to {numbers.number(measure.high)}"


def kinds(agents: Sequence[AgentData]) -> tuple[str, ...]:
    """Return whose answers are in a table, the liveliest first; empty when only rules played."""
    there = {agent.model.answers for agent in agents if agent.model is not None}
    return tuple(kind for kind in ("live", "replayed", "scripted") if kind in there)
