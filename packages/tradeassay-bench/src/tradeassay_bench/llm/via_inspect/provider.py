"""Query a provider through Inspect: translate requests and answers to Inspect's types and back."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

import msgspec
from inspect_ai._util.rich import format_traceback
from inspect_ai.event import Event
from inspect_ai.log._transcript import Transcript, init_transcript, transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model as InspectModel,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
    _model as inspect_models,
    get_model,
)
from inspect_ai.tool import ToolCall as InspectCall, ToolChoice, ToolFunction, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema, LimitExceededError

from tradeassay.core.errors import UserError
from tradeassay.core.secrets import clean_foreign, remember, remember_address
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, ToolCall, ToolSpec, Usage
from tradeassay_bench.core.time import WallClock
from tradeassay_bench.llm.budget import LEAST_SHARE, MOST_TOKENS, estimate_reply, estimate_request
from tradeassay_bench.llm.model import Attempt, ModelParams, QuestionPlace, failed_reply
from tradeassay_bench.llm.prompting import parse_object
from tradeassay_bench.llm.tables import Price, Tokens
from tradeassay_bench.llm.text_tools import find_calls
from tradeassay_bench.llm.via_inspect.wire import (
    RESPONSE,
    SENT,
    ProviderFault,
    keep_raw_responses,
    raw_calls,
    read_fault,
    repair_wires,
)

REMEMBERED = 512
"""The number of answers whose hidden parts are stored for the rest of their conversations."""
Memory = OrderedDict[tuple[str, tuple[ToolCall, ...]], list[Content]]
"""Maps an answer's text and calls to its full content.

The content includes reasoning that is not recorded and that some providers require unchanged.
"""


def to_config(request: AskModel, params: ModelParams | None, *, can_schema: bool) -> GenerateConfig:
    """Return Inspect's settings for one call.

    Inspect's own retries and cache are off, because tradeassay has both. Without ``params`` only
    the form of the answer is set. All other settings are Inspect's defaults.
    """
    schema = request.answer_schema if can_schema else None
    form = None
    if schema is not None:
        name = "".join(char if char.isalnum() else "_" for char in request.purpose) or "answer"
        form = ResponseSchema(
            name=name, json_schema=JSONSchema.model_validate(msgspec.json.decode(schema))
        )
    if params is None:
        return GenerateConfig(response_schema=form)
    return GenerateConfig(
        temperature=params.temperature,
        top_p=params.top_p,
        max_tokens=params.max_tokens,
        seed=params.seed,
        reasoning_effort=params.reasoning_effort,
        reasoning_tokens=params.reasoning_tokens,
        # Without this setting the OpenAI provider sends an extra request to find out whether
        # summaries are allowed.
        reasoning_summary="none",
        response_schema=form,
        max_retries=0,
        max_connections=MOST_CONNECTIONS,
    )


def _message(message: Message, calls: dict[str, ToolCall], memory: Memory) -> ChatMessage:
    """Return a message in the type of Inspect."""
    match message.role:
        case "system":
            return ChatMessageSystem(content=message.text)
        case "user":
            return ChatMessageUser(content=message.text)
        case "assistant":
            made = [
                InspectCall(
                    id=call.id, function=call.name, arguments=parse_object(call.arguments) or {}
                )
                for call in message.calls
                if call.found_in == "call"
            ]
            kept = memory.get((message.text, message.calls))
            return ChatMessageAssistant(
                content=message.text if kept is None else kept, tool_calls=made or None
            )
        case "tool":
            call = calls.get(message.call_id or "")
            name = call.name if call is not None else None
            if call is not None and call.found_in != "call":
                return ChatMessageUser(content=f"Result of {name}:\n{message.text}")
            return ChatMessageTool(
                content=message.text, tool_call_id=message.call_id, function=name
            )


@lru_cache(maxsize=64)
def _tool(tool: ToolSpec) -> ToolInfo:
    # Inspect copies its arguments, so the cached object can be used again.
    parameters = ToolParams.model_validate(msgspec.json.decode(tool.schema))
    return ToolInfo(name=tool.name, description=tool.description, parameters=parameters)


Stop = Literal["stop", "length", "tool_calls", "filtered", "error"]

_STOPS: dict[str, Stop] = {"stop": "stop", "max_tokens": "length", "tool_calls": "tool_calls"}


def to_reply(
    output: ModelOutput, response: object, request: AskModel, price: Price | None, memory: Memory
) -> ModelReply:
    """Return a provider's answer as a reply, without configured secrets.

    An answer without a choice is ``unreadable``.
    """
    kind, detail = _failure(output, response)
    if kind is not None:
        reply = ModelReply(
            stop="filtered" if kind == "refused" else "error", error=detail, error_kind=kind
        )
    else:
        calls = _calls(output, response, request)
        stop = _STOPS.get(output.stop_reason, "tool_calls" if calls else "stop")
        reply = ModelReply(text=output.message.text, calls=calls, stop=stop)
        content = output.message.content
        if not isinstance(content, str) and any(
            isinstance(part, ContentReasoning) for part in content
        ):
            memory[(reply.text, reply.calls)] = content
            while len(memory) > REMEMBERED:
                memory.popitem(last=False)
    reply = msgspec.structs.replace(reply, usage=_usage(output.usage, request, reply, price))
    raw = msgspec.json.encode(reply)
    cleaned = clean_foreign(raw)
    return reply if cleaned is raw else msgspec.json.decode(cleaned, type=ModelReply)


def _failure(output: ModelOutput, response: object) -> tuple[str | None, str]:
    """Return the kind and the text of a failure. The kind is None for a usable answer."""
    if output.empty:
        return "unreadable", output.error or "the provider sent no answer"
    message, content = output.message, output.message.content
    # An answer that a router could not finish is not the model's fault.
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and not message.tool_calls:
        said, finish = first.get("error"), first.get("finish_reason")
        if isinstance(said, dict) and isinstance(said.get("message"), str):  # OpenRouter
            return "unreachable", f"the provider broke off: {said['message']}"
        if finish in (
            "error",
            "insufficient_system_resource",
        ):  # the latter is DeepSeek's
            return "unreachable", f"the provider broke off: {finish}"
    refuses = (
        not isinstance(content, str)
        and not message.tool_calls
        and any(isinstance(part, ContentText) and part.refusal for part in content)
    )
    if output.stop_reason == "content_filter" or refuses:
        details = output.choices[0].stop_details
        explained = details.explanation if details is not None else None
        return "refused", message.text or explained or output.error or "the model refused"
    if output.stop_reason == "model_length":
        return "context", message.text or "the request exceeds the context window"
    return None, ""


def _calls(output: ModelOutput, response: object, request: AskModel) -> tuple[ToolCall, ...]:
    """Return the tool calls of an answer, from its fields or from its text."""
    parsed = output.message.tool_calls or []
    here = len(request.messages)
    if not parsed:
        return find_calls(
            output.message.text, request.tools, request.must_call, id_prefix=f"text-{here}"
        )
    raw = list(raw_calls(response))
    asked = chain.from_iterable(message.calls for message in request.messages)
    taken = {call.id for call in asked}
    calls: list[ToolCall] = []
    for at, call in enumerate(parsed):
        # Use the arguments as sent: from the call at the same position, else from the call with the
        # same id, else as parsed by Inspect.
        same = [one for one in raw if one.id == call.id and one.id]
        if len(raw) == len(parsed) and raw[at].name == call.function:
            same = [raw[at]]
        arguments = (
            same[0].arguments if len(same) == 1 else msgspec.json.encode(call.arguments).decode()
        )
        # Some servers number the calls of every answer from 0, or have no ids. Ids must be unique,
        # because a result refers to its call by id.
        name = call.id if call.id and call.id not in taken else f"call-{here}-{at}"
        taken.add(name)
        calls.append(ToolCall(id=name, name=call.function, arguments=arguments))
    return tuple(calls)


def _usage(
    usage: ModelUsage | None, request: AskModel, reply: ModelReply, price: Price | None
) -> Usage:
    """Return tokens and dollars.

    A missing, negative or low count of a provider never lowers the bill. Our estimate is used if it
    is larger.
    """
    if usage is None and reply.error_kind == "context":
        return Usage(usd=0.0)  # rejected outright: nothing was read, nothing is billed
    input_estimate, output_estimate = estimate_request(request), estimate_reply(reply)
    tokens = Tokens(plain=input_estimate, output=output_estimate)
    reasoning, counted = 0, False
    if usage is not None:
        reasoning = usage.reasoning_tokens or 0
        read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
        counts = (usage.input_tokens, read, written, usage.output_tokens)
        too_few = (
            sum(counts[:3]) < LEAST_SHARE * input_estimate
            or usage.output_tokens < LEAST_SHARE * output_estimate
        )
        counted = max(counts) <= MOST_TOKENS and min(counts) >= 0 and not too_few
        if counted:
            tokens = Tokens(
                plain=usage.input_tokens,
                cache_read=read,
                cache_write=written,
                output=usage.output_tokens,
            )
        elif max(counts) <= MOST_TOKENS:  # sums of larger counts would break scoring
            plain = sum(max(0, count) for count in counts[:3])
            tokens = Tokens(
                plain=max(plain, input_estimate), output=max(usage.output_tokens, output_estimate)
            )
    return Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        reasoning_tokens=min(max(0, reasoning), MOST_TOKENS),
        cached_tokens=tokens.cache_read,
        usd=None if price is None else price.usd(tokens),
        estimated=not counted,
    )


MOST_CONNECTIONS = 10_000
"""Inspect's own limit, too high to matter. Callers share the limit of :class:`AskingModel`."""

_MARKUP = re.compile(r"\[/?[a-z ]+\]")


class _NoTranscript(Transcript):
    """A transcript for Inspect that stores nothing, because tradeassay has its own record."""

    def _event(self, event: Event) -> None: ...

    def _event_updated(self, event: Event) -> None: ...


def _traceback(*error: Any) -> tuple[str, str]:
    """Return a failed call's traceback for Inspect's transcript, if the transcript keeps it.

    Formatting a traceback takes a quarter of a second and blocks all other calls.
    """
    return ("", "") if isinstance(transcript(), _NoTranscript) else format_traceback(*error)


setattr(inspect_models, "format_traceback", _traceback)  # noqa: B010 (a function of Inspect's is replaced, on purpose)


class InspectProvider:
    """A provider that queries a model opened by Inspect.

    A feature that the provider rejects (a forced tool, an answer schema) is not sent again. The
    forced tool is then the only tool offered, and the protocol enforces the call. Without
    ``params`` Inspect is the host, and its settings, retries, time limits and transcript apply.
    """

    def __init__(
        self, name: str, model: InspectModel, params: ModelParams | None, price: Price | None
    ) -> None:
        self.name, self._model, self._params, self._price = name, model, params, price
        self._memory: Memory = OrderedDict()
        self._no_transcript = _NoTranscript()
        self._can_force = True
        self._can_schema = True
        self.exchange: list[ChatMessage] = []
        """The last question and its answer, stored if Inspect is the host."""

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        while True:
            can_force, can_schema = self._can_force, self._can_schema
            seconds = None if self._params is None else self._params.timeout_s
            sent: list[float] = []
            SENT.set(sent)
            try:
                async with asyncio.timeout(seconds) as limit:
                    config = to_config(request, self._params, can_schema=can_schema)
                    call = self._call(request, can_force, config)
                    # The call runs in a separate task, so that its context variables end with it.
                    # If Inspect is the host, they must reach its context.
                    output, response = await (
                        call if self._params is None else asyncio.create_task(call)
                    )
            except Exception as error:
                if limit.expired():
                    late = f"no answer within {seconds:g} seconds"
                    return Attempt(reply=failed_reply("timeout", late, billed=True))
                fault = (
                    None
                    if isinstance(error, LimitExceededError)
                    else read_fault(error, WallClock())
                )
                if fault is None:
                    raise
                if self._learned(fault, request, can_force, can_schema):
                    continue
                failed = failed_reply(fault.kind, fault.message, billed=fault.billed)
                return Attempt(reply=failed, again=fault.again, wait_s=fault.wait_s)
            # Time is measured from the first byte sent, so that importing a provider's client does
            # not count.
            elapsed = time.perf_counter() - sent[0] if sent else None
            reply = to_reply(output, response, request, self._price, self._memory)
            return Attempt(reply=reply, again=reply.error_kind == "unreachable", seconds=elapsed)

    async def aclose(self) -> None:
        await self._model.api.aclose()

    async def _call(
        self, request: AskModel, can_force: bool, config: GenerateConfig
    ) -> tuple[ModelOutput, object]:
        box: list[object] = []
        RESPONSE.set(box)
        # The provider does not know a call that was found in a model's text. Such a call is sent
        # back as text, and its result as a user message.
        calls = {}
        for message in request.messages:
            for call in message.calls:
                calls[call.id] = call
        messages = [_message(message, calls, self._memory) for message in request.messages]
        if self._params is None:
            self.exchange = messages
        else:
            init_transcript(self._no_transcript)
        choice: ToolChoice | None = "auto" if request.tools else None
        if request.tools and request.must_call is not None and can_force:
            choice = ToolFunction(name=request.must_call)
        output = await self._model.generate(
            input=messages,
            tools=[_tool(tool) for tool in request.tools if request.must_call in (None, tool.name)],
            tool_choice=choice,
            config=config,
        )
        if self._params is None and not output.empty:
            self.exchange = [*messages, output.message]
        return output, box[0] if box else None

    def _learned(
        self, fault: ProviderFault, request: AskModel, can_force: bool, can_schema: bool
    ) -> bool:
        """Return whether a request was rejected for a feature that can be omitted from now on."""
        if fault.kind != "rejected" or fault.status not in (400, 422):
            return False
        about = fault.message.lower()
        if can_force and request.must_call is not None and "tool_choice" in about:
            self._can_force = False
            return True
        named = any(
            word in about
            for word in ("response_format", "json_schema", "output_config", "text.format")
        )
        if can_schema and request.answer_schema is not None and named:
            self._can_schema = False
            return True
        return False


class KeylessProvider:
    """A provider without a key in the environment. Every request returns that error."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        return Attempt(reply=failed_reply("rejected", self.reason))

    async def aclose(self) -> None: ...


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
    """Open a model through Inspect. ``served_as`` is Inspect's name for the model if it differs.

    Raises :class:`UserError` for a provider that Inspect does not know or whose package is not
    installed. A missing key is not an error here, so that the run can continue with its other
    models.
    """
    from inspect_ai._util.error import PrerequisiteError

    try:
        remember(api_key)
        remember_address(base_url)
        model = get_model(
            served_as or name, base_url=base_url, api_key=api_key, memoize=False, **model_args
        )
    except PrerequisiteError as error:
        reason = " ".join(
            clean_foreign(_MARKUP.sub("", str(error.message))).replace("ERROR:", "").split()
        )
        if "defined in the environment" in reason:
            return KeylessProvider(name, reason)
        raise UserError(
            f"{name} cannot be opened: {reason}", hint="install the package in the message"
        ) from error
    except (ValueError, ImportError) as error:
        hint = "see the providers in Inspect's handbook"
        raise UserError(
            f"{name} cannot be opened: {clean_foreign(str(error))}", hint=hint
        ) from error
    keep_raw_responses(model.api)
    client = getattr(model.api, "client", None)
    repair_wires(client)
    # Tradeassay has its own retries. They are limited, counted and charged one by one.
    if isinstance(getattr(client, "max_retries", None), int):
        setattr(client, "max_retries", 0)  # noqa: B010 (the clients of OpenAI and Anthropic both have it)
    if hasattr(model.api, "strict_tools"):
        # Strict tools must require every field. An order with either a weight or a number of shares
        # cannot.
        setattr(model.api, "strict_tools", False)  # noqa: B010 (of OpenAI-compatible servers only)
    return InspectProvider(name, model, params, price)
