"""Configure and open a language model as an agent."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from tradeassay.core.arguments import typed
from tradeassay_bench.agents.registry import AgentConfig, Opening, agents
from tradeassay_bench.llm import Model, ModelParams, open_model, parse_name
from tradeassay_bench.llm.model import ReasoningEffort

NAME = "model"
"""The registered name."""


class ModelConfig(AgentConfig, frozen=True, kw_only=True):
    """The model's name, and overrides of the benchmark's settings.

    None keeps the benchmark's setting.
    """

    model: Annotated[
        str, Meta(description="the model's name, e.g. openai/gpt-5 or scripted/sensible")
    ] = "scripted/sensible"
    temperature: Annotated[float, Meta(ge=0, le=2, description="sampling temperature")] | None = (
        None
    )
    max_tokens: (
        Annotated[int, Meta(ge=1, description="maximum length of an answer, in tokens")] | None
    ) = None
    timeout_s: Annotated[float, Meta(gt=0, description="seconds to wait for an answer")] | None = (
        None
    )
    top_p: Annotated[float, Meta(gt=0, le=1, description="nucleus sampling")] | None = None
    seed: Annotated[int, Meta(description="the provider's sampling seed")] | None = None
    reasoning_effort: ReasoningEffort | None = None
    reasoning_tokens: Annotated[int, Meta(ge=0, description="tokens for reasoning")] | None = None


@agents.register(NAME)
class ModelAgent:
    """A language model that is queried through the benchmark's conversation."""

    summary: ClassVar[str] = "a language model, through the benchmark's conversation"
    Config: ClassVar[type[AgentConfig]] = ModelConfig
    asked: ClassVar[Literal["conversation"]] = "conversation"

    def __init__(self, config: ModelConfig) -> None:
        parse_name(config.model)
        self.config = config

    def open(self, opening: Opening) -> AbstractAsyncContextManager[Model]:
        params = model_params(self.config, opening.settings)
        return open_model(
            self.config.model, params, recording=opening.recording, replay=opening.replay
        )


def model_params(config: ModelConfig, benchmark: msgspec.Struct | None) -> ModelParams:
    """Return the parameters sent with every request.

    Each parameter is the agent's setting if it has one, else the protocol's, else the default.

    ``benchmark`` is the protocol's configuration. Its fields of the same name (``temperature``,
    ``max_tokens`` ...) are its settings. Raises :class:`UserError` for a value that no model
    accepts.
    """
    settings: dict[str, Any] = {}
    for name in ModelParams.__struct_fields__:
        own = getattr(config, name)
        value = own if own is not None else getattr(benchmark, name, None)
        if value is not None:
            settings[name] = value
    return ModelParams(**typed(settings, ModelParams))
