"""Models as the house sees them: their names and parameters, what can be asked, and what one attempt returns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.errors import UserError


class QuestionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a run a question is asked. Two questions of one run never share a place. ``sample`` tells
    repetitions of an episode apart (its seed), ``index`` counts the questions within a step."""

    episode: str
    step: int
    sample: int
    index: int


class Model(Protocol):
    """A model that can be asked. A bad answer, a refusal, a time-out, an exhausted budget: all of them are
    replies, never exceptions."""

    @property
    def name(self) -> str: ...

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Answer one request. May be called by many tasks at once."""


def failed_reply(kind: str, error: str, *, billed: bool = False) -> ModelReply:
    """Return the reply that stands for no answer. It cost nothing, unless it was ``billed``: the provider may have
    worked on it, at a cost nobody knows."""
    usage = Usage() if billed else Usage(usd=0.0)
    return ModelReply(stop="error", error=error, error_kind=kind, usage=usage)


def request_texts(request: AskModel) -> list[str]:
    """Return everything in a request that costs tokens."""
    texts = [message.text for message in request.messages]
    for message in request.messages:
        for call in message.calls:
            texts += (call.name, call.arguments)
    for tool in request.tools:
        texts += (tool.name, tool.description, tool.schema)
    if request.answer_schema is not None:
        texts.append(request.answer_schema)
    return texts


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class ModelParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling parameters and limits of one model. None means "the provider's own default"; it is then not sent.
    ``timeout_s`` limits one attempt, from sending to the last byte."""

    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = 0.0
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] = 4096
    timeout_s: Annotated[float, Meta(gt=0.0, le=604_800.0)] = 120.0
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    seed: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    reasoning_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] | None = None

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


class ModelName(msgspec.Struct, frozen=True, kw_only=True):
    """A model's name, taken apart. ``rest`` is what follows the first slash."""

    full: str
    route: Literal["scripted", "local", "inspect"]
    provider: str
    rest: str

    @property
    def gguf(self) -> Path | None:
        """The model file that the name points at, for ``local//path/to/file.gguf``."""
        return Path(self.rest) if self.route == "local" and self.rest.startswith("/") else None


def parse_name(name: str) -> ModelName:
    """Take a model's name apart; raises :class:`UserError` when it has no provider or no model."""
    provider, slash, rest = name.partition("/")
    if not slash or not provider or not rest or name != name.strip():
        raise UserError(
            f"'{name}' is not a model name",
            hint="write provider/model, e.g. openai/gpt-5, scripted/sensible or local/smollm2",
        )
    if provider == "scripted":
        return ModelName(full=name, route="scripted", provider=provider, rest=rest)
    if provider == "local":
        return ModelName(full=name, route="local", provider=provider, rest=rest)
    return ModelName(full=name, route="inspect", provider=provider, rest=rest)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt. ``again`` says that another one may do better, ``wait_s`` how long the provider
    asks to be left alone, ``seconds`` how long the answer took where the provider knows better than its caller."""

    reply: ModelReply
    again: bool = False
    wait_s: float | None = None
    seconds: float | None = None


class Provider(Protocol):
    """Something that can be asked once: a company's servers, a program, a model on this machine."""

    @property
    def name(self) -> str: ...

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Ask once. A provider's failures come back as replies; only a bug raises."""

    async def aclose(self) -> None: ...
