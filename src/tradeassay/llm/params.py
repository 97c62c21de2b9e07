"""How a model is asked: what is sent with every request, and how long to wait."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class ModelParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling parameters and limits of one model. None means "the provider's own default"; it is then not sent.

    ``timeout_s`` limits one attempt, from sending to the last byte.
    """

    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = 0.0
    max_tokens: Annotated[int, Meta(ge=1)] = 4096
    timeout_s: Annotated[float, Meta(gt=0.0)] = 120.0
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    seed: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    reasoning_tokens: Annotated[int, Meta(ge=0)] | None = None

    def sent(self) -> dict[str, float | int | str | None]:
        """Return what the model sees of these: everything but the time limit, which changes no answer."""
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "top_p": self.top_p,
            "seed": self.seed,
            "reasoning_effort": self.reasoning_effort,
            "reasoning_tokens": self.reasoning_tokens,
        }
