"""The common base of scripted models: their registry, provider and view of a question.

They never read a prompt. A question contains the same content as data (``AskModel.given``, which
external agents also receive): ``observation`` has a ``kind``, and ``feedback`` contains the errors
of the previous answer. Results of tools are the JSON texts of ``tool`` messages.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from tradeassay.core.registry import Registry
from tradeassay_bench.core.dialogue import AskModel, ModelReply, ToolCall, Usage, as_text
from tradeassay_bench.llm.model import (
    Attempt,
    ModelParams,
    QuestionPlace,
    Sleep,
    failed_reply,
    request_texts,
)
from tradeassay_bench.llm.prompting import parse_object
from tradeassay_bench.llm.tables import Price, Tokens


class ScriptedModel(Protocol):
    """A program that answers like a model.

    Equal requests must always get equal answers. A model that simulates a duration has a method
    ``seconds``, which returns the duration for a request.
    """

    summary: ClassVar[str]

    def answer(self, request: AskModel) -> ModelReply:
        """Return the reply to one request. The caller adds the usage."""


scripted_models: Registry[type[ScriptedModel]] = Registry("scripted_model")
"""All scripted models. Other packages add theirs through the entry-point group
``tradeassay.scripted_models``."""


class ScriptedProvider:
    """A provider of scripted models.

    Raises :class:`UserError` for an unknown name. Tokens are estimated. An answer with a duration
    over the time limit is a time-out, without waiting.
    """

    def __init__(
        self,
        full_name: str,
        name: str,
        params: ModelParams,
        price: Price | None,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name = full_name
        self._model = scripted_models.get(name)()
        self._seconds: Callable[[AskModel], float] = getattr(
            self._model, "seconds", lambda request: 0.0
        )
        self._params, self._price, self._sleep = params, price, sleep

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        seconds = self._seconds(request)
        if seconds > self._params.timeout_s:
            return Attempt(
                reply=failed_reply(
                    "timeout", f"no answer within {self._params.timeout_s:g} seconds"
                )
            )
        if seconds:
            await self._sleep(seconds)
        reply = self._model.answer(request)
        # Four characters per token are precise enough for a free program.
        said = [reply.text, *(call.arguments for call in reply.calls)]
        asked = sum(len(text) // 4 for text in request_texts(request))
        tokens = Tokens(plain=asked, output=sum(len(text) // 4 for text in said))
        usd = None if self._price is None else self._price.usd(tokens)
        usage = Usage(input_tokens=tokens.plain, output_tokens=tokens.output, usd=usd)
        return Attempt(reply=msgspec.structs.replace(reply, usage=usage))


Calls = Sequence[tuple[str, object]]
"""Names of tools with their arguments. A string stands for arguments that are not JSON."""
Json = dict[str, Any]
"""A decoded observation, read only inside this package."""


class Question:
    """A request as a scripted model sees it: the observation, feedback, and results of tools."""

    def __init__(self, request: AskModel) -> None:
        self.request = request
        self.tools = [tool.name for tool in request.tools]
        given = request.given or None
        self.payload: Json = (parse_object(given.observation) if given else None) or {}
        self.kind = str(self.payload.get("kind", ""))
        feedback: Json = (parse_object(given.feedback) if given and given.feedback else None) or {}
        self.objected = {
            failure.get("stock_id", failure.get("symbol"))
            for failure in feedback.get("failures", ())
        } - {None}
        calls = {}
        for message in request.messages:
            for call in message.calls:
                calls[call.id] = call
        answered = [
            (calls[m.call_id], m.text)
            for m in request.messages
            if m.role == "tool" and m.call_id in calls
        ]
        self.results = [(call.name, call.arguments, text) for call, text in answered]
        # A research stage counts its turns, which are not attempts at a decision.
        self.attempt = request.attempt if request.must_call is not None or not request.tools else 1

    @property
    def about(self) -> str:
        """Return the topic of the question.

        In a conversation with tools it is ``research`` or ``submit``. Otherwise it is the kind of
        the observation, or the question's purpose if the observation has no kind.
        """
        if self.request.must_call is not None:
            return "submit"
        return "research" if self.request.tools else self.kind or self.request.purpose

    def last(self, tool: str) -> Json:
        bodies = (parse_object(text) for name, _, text in reversed(self.results) if name == tool)
        return next((body for body in bodies if body is not None and "error" not in body), {})

    @property
    def day(self) -> int:
        fields = ("session", "trade_day", "step", "cash", "nav", "account")
        return number_of(as_text([self.payload.get(field) for field in fields]))


def say(value: object) -> ModelReply:
    return ModelReply(text=as_text(value))


def call(request: AskModel, calls: Calls, text: str = "") -> ModelReply:
    here = len(request.messages)
    made = [
        ToolCall(id=f"s{here}-{at}", name=name, arguments=as_text(given))
        for at, (name, given) in enumerate(calls)
    ]
    return ModelReply(text=text, calls=tuple(made), stop="tool_calls")


def number_of(text: str) -> int:
    """Return a pseudo-random number that is always the same for a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
