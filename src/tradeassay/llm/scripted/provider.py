"""The registry of scripted models, and a provider that asks one of them."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Protocol, runtime_checkable

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.registry import Registry
from tradeassay.llm.model import Attempt, ModelParams, QuestionPlace, failed_reply
from tradeassay.llm.retry import Sleep
from tradeassay.llm.tables import Price, Tokens
from tradeassay.llm.tokens import request_texts, rough_tokens


class ScriptedModel(Protocol):
    """A program that answers as a model would. The same request must get the same answer, always."""

    summary: ClassVar[str]

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one request. Usage is filled in by the caller."""
        ...


@runtime_checkable
class Slowly(Protocol):
    """A scripted model that takes its time."""

    def seconds(self, request: AskModel) -> float:
        """Return how long the answer to a request takes."""
        ...


scripted_models: Registry[type[ScriptedModel]] = Registry("scripted_model")
"""All scripted models. Other packages add theirs through the entry-point group ``tradeassay.scripted_models``."""


class ScriptedProvider:
    """Asks a scripted model; raises :class:`UserError` for an unknown name.

    Tokens are estimated. An answer that would take longer than the time limit is a time-out at once: nothing is
    learned by waiting for it.
    """

    def __init__(
        self, full_name: str, name: str, params: ModelParams, price: Price | None, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._name = full_name
        self._model = scripted_models.get(name)()
        self._slow = self._model if isinstance(self._model, Slowly) else None
        self._params = params
        self._price = price
        self._sleep = sleep

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._name

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Ask once."""
        if self._slow is not None:
            seconds = self._slow.seconds(request)
            if seconds > self._params.timeout_s:
                late = f"no answer within {self._params.timeout_s:g} seconds"
                return Attempt(reply=failed_reply("timeout", late))
            await self._sleep(seconds)
        reply = self._model.answer(request)
        return Attempt(reply=msgspec.structs.replace(reply, usage=self._usage(request, reply)))

    async def aclose(self) -> None:
        """Nothing is open."""

    def _usage(self, request: AskModel, reply: ModelReply) -> Usage:
        said = [reply.text, *(call.arguments for call in reply.calls)]
        asked = sum(map(rough_tokens, request_texts(request)))
        tokens = Tokens(plain=asked, output=sum(map(rough_tokens, said)))
        usd = None if self._price is None else self._price.usd(tokens)
        return Usage(input_tokens=tokens.plain, output_tokens=tokens.output, usd=usd)
