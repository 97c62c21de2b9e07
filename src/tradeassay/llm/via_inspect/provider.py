"""One provider, asked through Inspect."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from inspect_ai.event import Event
from inspect_ai.log._transcript import Transcript, init_transcript
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, get_model
from inspect_ai.model import Model as InspectModel
from inspect_ai.util import LimitExceededError

from tradeassay.core.dialogue import AskModel
from tradeassay.core.errors import UserError
from tradeassay.core.secrets import clean_words, remember, remember_address
from tradeassay.core.time import Clock, WallClock
from tradeassay.llm.model import Attempt, ModelParams, QuestionPlace, failed_reply
from tradeassay.llm.tables import Price
from tradeassay.llm.via_inspect.faults import ProviderFault, read_fault
from tradeassay.llm.via_inspect.translation import (
    ReasoningMemory,
    to_choice,
    to_config,
    to_messages,
    to_reply,
    to_tools,
)
from tradeassay.llm.via_inspect.wire import RESPONSE, keep_raw_responses, repair_wires

MOST_CONNECTIONS = 10_000
"""Inspect's own limit, set out of the way: callers share the house's."""

_MARKUP = re.compile(r"\[/?[a-z ]+\]")


class _Unwritten(Transcript):
    """Inspect's account of a conversation, left out where the house keeps its own."""

    def _event(self, event: Event) -> None: ...

    def _event_updated(self, event: Event) -> None: ...


class InspectProvider:
    """Asks a model that Inspect opened.

    What a provider turns out not to support (a forced tool, an answer schema) is no longer sent to it: the tool is
    then the only one offered, and enforcing it is left to the protocol. Without ``params`` Inspect is the host:
    its settings, retries, time limits and transcript apply.
    """

    def __init__(
        self,
        name: str,
        model: InspectModel,
        params: ModelParams | None,
        price: Price | None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._name = name
        self._model = model
        self._params = params
        self._price = price
        self._clock = clock or WallClock()
        self._memory = ReasoningMemory()
        self._unwritten = _Unwritten()
        self._can_force = True
        self._can_schema = True
        self.said: list[ChatMessage] = []
        """The last question and its answer, where Inspect is the host and keeps them."""

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._name

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Ask once."""
        while True:
            can_force, can_schema = self._can_force, self._can_schema
            seconds = None if self._params is None else self._params.timeout_s
            try:
                async with asyncio.timeout(seconds) as limit:
                    output, response = await self._generate(request, can_force, can_schema)
            except Exception as error:
                if limit.expired():
                    late = f"no answer within {seconds:g} seconds"
                    return Attempt(reply=failed_reply("timeout", late, billed=True))
                fault = None if isinstance(error, LimitExceededError) else read_fault(error, self._clock)
                if fault is None:
                    raise
                if self._learned(fault, request, can_force, can_schema):
                    continue
                return _failed(fault)
            reply = to_reply(output, response, request, self._price, self._memory)
            return Attempt(reply=reply, again=reply.error_kind == "unreachable")

    async def aclose(self) -> None:
        """Close the provider's connections."""
        await self._model.api.aclose()

    async def _generate(self, request: AskModel, can_force: bool, can_schema: bool) -> tuple[ModelOutput, object]:
        if self._params is None:
            return await self._call(request, can_force, to_config(request, None, can_schema=can_schema))
        config = to_config(request, self._params, can_schema=can_schema)
        config.max_connections = MOST_CONNECTIONS
        # In a task of its own, whose context ends with it.
        return await asyncio.create_task(self._call(request, can_force, config))

    async def _call(
        self, request: AskModel, can_force: bool, config: GenerateConfig
    ) -> tuple[ModelOutput, object]:
        box: list[object] = []
        RESPONSE.set(box)
        messages = to_messages(request.messages, self._memory)
        if self._params is None:
            self.said = messages
        else:
            init_transcript(self._unwritten)
        output = await self._model.generate(
            input=messages,
            tools=to_tools(request.tools, request.must_call),
            tool_choice=to_choice(request, can_force=can_force),
            config=config,
        )
        if self._params is None and not output.empty:
            self.said = [*messages, output.message]
        return output, box[0] if box else None

    def _learned(self, fault: ProviderFault, request: AskModel, can_force: bool, can_schema: bool) -> bool:
        """Tell whether a rejection was about something that can be left out from now on."""
        if fault.kind != "rejected" or fault.status not in (400, 422):
            return False
        about = fault.message.lower()
        if can_force and request.must_call is not None and "tool_choice" in about:
            self._can_force = False
            return True
        named = any(word in about for word in ("response_format", "json_schema", "output_config", "text.format"))
        if can_schema and request.answer_schema is not None and named:
            self._can_schema = False
            return True
        return False


class KeylessProvider:
    """A provider whose key is not in the environment. It answers every request by saying so."""

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self.reason = reason

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._name

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Say what is missing."""
        return Attempt(reply=failed_reply("rejected", self.reason))

    async def aclose(self) -> None:
        """Nothing is open."""


def open_provider(
    name: str,
    params: ModelParams,
    price: Price | None,
    *,
    served_as: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    **model_args: Any,
) -> InspectProvider | KeylessProvider:
    """Open a model by Inspect's name for it (``served_as``, when that is not its own).

    Raises :class:`UserError` for a provider that Inspect does not know or whose package is not installed. A
    missing key is not an error: other models of the same run must not fail because of it.
    """
    from inspect_ai._util.error import PrerequisiteError

    try:
        remember(api_key)
        remember_address(base_url)
        model = get_model(served_as or name, base_url=base_url, api_key=api_key, memoize=False, **model_args)
    except PrerequisiteError as error:
        reason = " ".join(clean_words(_MARKUP.sub("", str(error.message))).replace("ERROR:", "").split())
        if "defined in the environment" in reason:
            return KeylessProvider(name, reason)
        raise UserError(f"{name} cannot be opened: {reason}", hint="install what it names") from error
    except (ValueError, ImportError) as error:
        raise UserError(
            f"{name} cannot be opened: {clean_words(str(error))}", hint="see the providers in Inspect's handbook"
        ) from error
    _prepare(model)
    return InspectProvider(name, model, params, price)


def _failed(fault: ProviderFault) -> Attempt:
    reply = failed_reply(fault.kind, fault.message, billed=fault.billed)
    return Attempt(reply=reply, again=fault.again, wait_s=fault.wait_s)


def _prepare(model: InspectModel) -> None:
    keep_raw_responses(model.api)
    client = getattr(model.api, "client", None)
    repair_wires(client)
    # Retries are the house's: bounded, counted, and paid for one by one.
    if isinstance(getattr(client, "max_retries", None), int):
        setattr(client, "max_retries", 0)  # noqa: B010 (the clients of OpenAI and Anthropic both have it)
    if hasattr(model.api, "strict_tools"):
        # Strict tools must require every field; an order with either a weight or a number of shares cannot.
        setattr(model.api, "strict_tools", False)  # noqa: B010 (of OpenAI-compatible servers only)
