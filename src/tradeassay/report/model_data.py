"""What a report knows about an agent that is a model: its conversations, mistakes, confidence and cost."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.metrics import Bin

Answers = Literal["scripted", "replayed", "live"]
FateTone = Literal["filled", "partly", "refused", "waiting", "nothing"]


class CallNote(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model wrote it, and what it was told. ``result`` is None when nothing was said."""

    name: str
    arguments: str
    result: str | None = None
    found_in: str = "call"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer. ``asked`` pairs a role with a text, only what is new in this question."""

    purpose: str
    attempt: int
    asked: tuple[tuple[str, str], ...]
    said: str
    calls: tuple[CallNote, ...] = ()
    error: str | None = None


class OrderNote(msgspec.Struct, frozen=True, kw_only=True):
    """An order in words, what the agent said about it, and what became of it."""

    text: str
    tone: FateTone
    fate: str
    confidence: float | None = None
    reason: str = ""


class ModelDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a model. ``attempts`` counts its tries at the answer; ``usd`` None is an unknown price."""

    session: str
    reason: str
    failed: bool
    orders: tuple[OrderNote, ...]
    problems: tuple[str, ...]
    turns: tuple[Turn, ...]
    attempts: int
    tokens: int
    usd: float | None


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of mistake: answers refused for it, sessions that had one, and the share of such sessions."""

    kind: str
    answers: int
    sessions: int
    rate: Measure


class ConfidenceNote(msgspec.Struct, frozen=True, kw_only=True):
    """How confidences compare with what came true; ``bins`` is empty when nothing could be judged."""

    bins: tuple[Bin, ...]
    ece: Measure
    brier: Measure


class CostNote(msgspec.Struct, frozen=True, kw_only=True):
    """What a model's answers took over all repetitions. ``usd`` None is an unknown price, not a zero."""

    calls: int
    decisions: int
    input_tokens: int
    output_tokens: int
    usd: float | None

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens


class ModelData(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that is a model.

    ``mask`` names what was hidden from it, None when nothing was. ``rates`` are (title, definition, measure).
    ``decisions`` are the latest sessions of the shown repetition, newest first.
    """

    model: str
    answers: Answers
    mask: str | None = None
    cost: CostNote | None = None
    net_return: Measure | None = None
    sessions: int = 0
    errors: tuple[ErrorRow, ...] = ()
    rates: tuple[tuple[str, str, Measure], ...] = ()
    confidence: ConfidenceNote | None = None
    decisions: tuple[ModelDecision, ...] = ()
    decisions_left_out: int = 0


class FigureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A printed figure and ours. ``reasons`` say why the two may not be compared; none means that they may."""

    who: str
    measure: str
    printed: float
    where: str
    ours: float | None
    ours_by: str
    reasons: tuple[str, ...]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All figures that a paper gives for a benchmark. ``second_hand``: not taken from the paper itself."""

    source: str
    second_hand: bool
    rows: tuple[FigureRow, ...]
