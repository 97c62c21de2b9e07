"""Parse tool calls inside a text, and offer tools to models without tool support.

Many small models have no place for tools in their chat format, and a server then drops the tools
silently. For such a model the tools are written into the system message. A forced call becomes an
answer that must fit the tool's schema, and the answer is searched for calls. Models with tool
support may also write their calls into the text.

Accepted forms are a fenced block or an element (``<tool_call>``, ``<tools>``) with JSON, or an
answer that is entirely JSON. The JSON contains the name of an offered tool and its arguments. If
only one tool is possible, it may contain the arguments alone. Each call records its position, so
that these cases can be counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal

import msgspec

from tradeassay.core.errors import UNDECODABLE
from tradeassay_bench.core.dialogue import AskModel, Message, ToolCall, ToolSpec, as_text
from tradeassay_bench.llm.model import Attempt, Provider, QuestionPlace
from tradeassay_bench.llm.prompting import fenced_blocks, outer_objects, parse_object

Found = Literal["fenced", "json"]

_ELEMENT = re.compile(r"<(tool_calls?|tools?|function_calls?)>")
_WRITTEN_CALL = re.compile(r"([A-Za-z_][\w.-]*)\s*\(\s*(\{.*\})\s*\)\s*;?", re.DOTALL)
_QUOTED_ENDS = 4
"""The maximum number of ends of an element that are tried, because a text inside may quote an end.
"""
_CODE_LABELS = frozenset(
    {"", "json", "json5", "jsonc", "tool_call", "tool_calls", "tool", "tool_code", "function"}
)
_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS = (
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
    "tool_input",
    "action_input",
)


def find_calls(
    text: str, tools: tuple[ToolSpec, ...], must_call: str | None = None, *, id_prefix: str = "text"
) -> tuple[ToolCall, ...]:
    """Return the calls of offered tools in a text, in order.

    If ``must_call`` is given, or if there is a single tool, arguments alone are accepted as a call
    if they have the required fields of the tool's schema. If no call is found but exactly one block
    looks like JSON, that block is returned as the arguments, so that the model can be informed of
    the error. Never raises for any text.
    """
    if not tools or not text:
        return ()
    offered = {tool.name: tool for tool in tools}
    only = tools[0] if len(tools) == 1 else None
    if must_call is not None:
        only = offered.get(must_call)
    blocks = list(_blocks(text, offered))
    found: list[tuple[str, str, Found]] = []
    for block, where in blocks:
        found.extend(
            (name, arguments, where) for name, arguments in _calls_in(block, offered, only)
        )
    if (
        not found
        and must_call is not None
        and only is not None
        and len(blocks) == 1
        and blocks[0][0].lstrip().startswith(("{", "["))
    ):
        found = [(only.name, blocks[0][0], blocks[0][1])]
    return tuple(
        ToolCall(id=f"{id_prefix}-{at}", name=name, arguments=arguments, found_in=where)
        for at, (name, arguments, where) in enumerate(found)
    )


def _blocks(text: str, offered: dict[str, ToolSpec]) -> Iterator[tuple[str, Found]]:
    """Yield the parts of a text that may contain a call: fences and elements, else the whole
    text.
    """
    fenced = [
        block.text
        for block in fenced_blocks(text)
        if block.label in _CODE_LABELS or block.label in offered
    ]
    pieces = fenced or list(_elements(text))
    if pieces:
        yield from ((piece, "fenced") for piece in pieces)
        return
    bare = text.strip()
    if bare.startswith(("{", "[")):
        yield bare, "json"
        return
    spans = [span for span in outer_objects(bare) if parse_object(span) is not None]
    if len(spans) == 1:
        yield spans[0], "json"


def _elements(text: str) -> Iterator[str]:
    """Yield the contents of elements.

    An element ends at its first end tag that is not inside a JSON text.
    """
    at = 0
    unended: set[str] = set()
    while (opened := _ELEMENT.search(text, at)) is not None:
        mark, start = f"</{opened[1]}>", opened.end()
        first = -1 if mark in unended else text.find(mark, start)
        if first < 0:
            # Do not search for this end again: an answer in a loop has thousands of beginnings.
            unended.add(mark)
            at = start
            continue
        end = first
        for _ in range(_QUOTED_ENDS):
            if end < 0 or parse_object(text[start:end]) is not None:
                break
            end = text.find(mark, end + len(mark))
        else:
            end = -1
        end = end if end >= 0 else first
        yield text[start:end].strip()
        at = end + len(mark)


def _calls_in(
    block: str, offered: dict[str, ToolSpec], only: ToolSpec | None
) -> Iterator[tuple[str, str]]:
    """Yield the calls of a block.

    A block is an object, an array of objects, an object with ``tool_calls``, or ``name({...})``.
    """
    written = _WRITTEN_CALL.fullmatch(block.strip())
    if written is not None and written[1] in offered:
        yield written[1], written[2]
        return
    try:
        value = msgspec.json.decode(block.strip())
    except UNDECODABLE:
        return
    whole = value
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    schema = (parse_object(only.schema) or {}) if only is not None else {}
    properties, required = schema.get("properties"), schema.get("required")
    known = set(properties) if isinstance(properties, dict) else set()
    needed = set(required) if isinstance(required, list) else set()
    for body in value if isinstance(value, list) else [value]:
        if not isinstance(body, dict):
            continue
        named = _named_call(body, offered)
        if named is not None:
            yield named
        elif only is not None and needed <= body.keys() and (not known or known & body.keys()):
            # All required fields of the tool are there, and at least one of its fields.
            yield only.name, block.strip() if body == whole else as_text(body)


def _named_call(body: dict[str, object], offered: dict[str, ToolSpec]) -> tuple[str, str] | None:
    inner = body.get("function")
    if isinstance(inner, dict):
        return _named_call(inner, offered)
    name = next((body[key] for key in _NAME_KEYS if isinstance(body.get(key), str)), None)
    if isinstance(name, str) and name in offered:
        for key in _ARGUMENT_KEYS:
            if key in body:
                return name, as_text(body[key])
        if len(body) == 1:
            return name, "{}"
        return None
    if len(body) == 1:
        (key, value) = next(iter(body.items()))
        if key in offered and isinstance(value, dict):
            return key, as_text(value)
    return None


_CALL = (
    'To call a tool, answer with one block like this:\n```json\n{"name": "<tool>", '
    '"arguments": {...}}\n```'
)
_FORCED = "Answer with one JSON object: the arguments of {name}, nothing else."


class TextToolsProvider:
    """A provider that offers tools by writing them into the text of a model without tool
    support.
    """

    def __init__(self, inner: Provider) -> None:
        self._inner, self.name = inner, inner.name

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        attempt = await self._inner.attempt(tools_into_text(request), place)
        if not request.tools or attempt.reply.error is not None:
            return attempt
        prefix = f"text-{len(request.messages)}"
        calls = find_calls(attempt.reply.text, request.tools, request.must_call, id_prefix=prefix)
        return msgspec.structs.replace(
            attempt, reply=msgspec.structs.replace(attempt.reply, calls=calls)
        )


def tools_into_text(request: AskModel) -> AskModel:
    """Return a request with its tools, tool calls and results of tools written as text."""
    asked = chain.from_iterable(message.calls for message in request.messages)
    calls = {call.id: call for call in asked}
    messages = []
    for message in request.messages:
        if message.role == "tool":
            call = calls.get(message.call_id or "")
            words = f"Result of {call.name if call else 'the call'}:\n{message.text}"
            message = Message(role="user", text=words)
        elif message.calls:
            made = [call for call in message.calls if call.found_in == "call"]
            blocks = [
                f'```json\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n```'
                for call in made
            ]
            message = Message(
                role=message.role, text="\n".join(part for part in (message.text, *blocks) if part)
            )
        messages.append(message)
    offered = [tool for tool in request.tools if request.must_call in (None, tool.name)]
    schema = request.answer_schema
    if offered:
        how = _CALL if request.must_call is None else _FORCED.format(name=request.must_call)
        listed = [
            f"- {one.name}: {one.description} Arguments (JSON schema): {one.schema}"
            for one in offered
        ]
        text = "\n".join(["Tools:", *listed, how])
        if messages and messages[0].role == "system":
            messages[0] = Message(role="system", text=f"{messages[0].text}\n\n{text}")
        else:
            messages.insert(0, Message(role="system", text=text))
        if request.must_call is not None:
            schema = offered[0].schema
    return AskModel(
        purpose=request.purpose,
        messages=tuple(messages),
        answer_schema=schema,
        attempt=request.attempt,
    )
