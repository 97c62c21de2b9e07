"""What the roles of an architecture answer with: small JSON objects, read strictly."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tradeassay.core.arena import Action

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What an analyst thinks of the asset."""

    view: Literal["bullish", "bearish", "neutral"]
    confidence: Share
    reason: Text


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a debate."""

    argument: Text


class RiskCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the risk manager allows. ``max_exposure`` 0 forbids any position."""

    allow_long: bool
    allow_short: bool
    reason: Text
    max_exposure: Share = 1.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal or a decision. ``message`` and ``allocation`` count only where the season allows them."""

    action: Action
    confidence: Share
    reasoning: Text
    allocation: Share | None = None
    message: Annotated[str, msgspec.Meta(max_length=500)] | None = None


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What is learnt from an outcome, and how much it matters."""

    lesson: Text
    importance: Share


SHAPES: dict[type[msgspec.Struct], str] = {
    Opinion: '{"view": "bullish" | "bearish" | "neutral", "confidence": 0..1, "reason": "..."}',
    Argument: '{"argument": "..."}',
    RiskCheck: '{"allow_long": true | false, "allow_short": true | false, "max_exposure": 0..1, "reason": "..."}',
    Verdict: '{"action": "BUY" | "SELL" | "HOLD", "confidence": 0..1, "reasoning": "...", "allocation": 0..1 or '
    'null, "message": "..." or null}',
    Lesson: '{"lesson": "...", "importance": 0..1}',
}
"""How each answer is described to a model."""

KINDS: dict[type[msgspec.Struct], str] = {
    Opinion: "ama.opinion",
    Argument: "ama.argument",
    RiskCheck: "ama.risk",
    Verdict: "ama.verdict",
    Lesson: "ama.lesson",
}
"""The ``kind`` of the payload that asks for each answer (what scripted models go by)."""
