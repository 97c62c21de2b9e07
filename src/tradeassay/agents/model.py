"""The agent that stands for a language model. It decides nothing itself: it says which model is asked, and how.

An episode of this agent is a conversation: the benchmark's protocol asks, the model answers (see
:class:`~tradeassay.benchmarks.protocol.ModelProtocol`). Where there is no conversation it cannot play.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.core.agent import AskDecision, EpisodeInfo
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision, Failure
from tradeassay.llm import ModelParams, parse_name
from tradeassay.llm.model import ReasoningEffort

NAME = "model"
"""The registered name."""


class ModelConfig(AgentConfig, frozen=True, kw_only=True):
    """Which model, and what differs from the benchmark's own settings; None is "as the benchmark says"."""

    model: Annotated[str, Meta(description="the model's name, e.g. openai/gpt-5 or scripted/sensible")] = (
        "scripted/sensible"
    )
    temperature: Annotated[float, Meta(ge=0, le=2, description="sampling temperature")] | None = None
    max_tokens: Annotated[int, Meta(ge=1, description="longest answer, in tokens")] | None = None
    timeout_s: Annotated[float, Meta(gt=0, description="seconds to wait for one answer")] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1, description="nucleus sampling")] | None = None
    seed: Annotated[int, Meta(description="the provider's sampling seed")] | None = None
    reasoning_effort: ReasoningEffort | None = None
    reasoning_tokens: Annotated[int, Meta(ge=0, description="tokens for reasoning")] | None = None


@agents.register(NAME)
class ModelAgent:
    """Marks an episode as played by a language model."""

    summary: ClassVar[str] = "a language model, asked by the benchmark's own conversation"
    Config: ClassVar[type[AgentConfig]] = ModelConfig

    def __init__(self, config: ModelConfig) -> None:
        """Take a configuration; raises :class:`UserError` for what is no model name."""
        parse_name(config.model)
        self.config = config

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Nothing is kept: the conversation belongs to the protocol."""

    def answer(self, request: AskDecision) -> Decision:
        """Decline: a model is not asked for a bare decision."""
        return _DECLINES


_DECLINES = Decision(
    status="failed",
    reason="a model plays through a conversation, and there is none here",
    failures=(Failure(kind="agent", detail="no conversation"),),
)


def model_params(config: ModelConfig, benchmark: msgspec.Struct | None = None) -> ModelParams:
    """Return what is sent with every request: the agent's own settings, else the protocol's, else the defaults.

    ``benchmark`` is the protocol's configuration; fields of the same name (``temperature``, ``max_tokens`` ...)
    are its settings. Raises :class:`UserError` for a value that no model takes.
    """
    chosen: dict[str, object] = {}
    for field in msgspec.structs.fields(ModelParams):
        own = getattr(config, field.name)
        value = own if own is not None else getattr(benchmark, field.name, None)
        if value is not None:
            chosen[field.name] = value
    try:
        return msgspec.convert(chosen, ModelParams)
    except msgspec.ValidationError as error:
        raise UserError(
            f"the settings of {config.model} are wrong: {error}", mend="correct the parameter"
        ) from error
