"""Tool calls as they came over the wire.

Inspect parses a call's arguments: text that is no JSON object becomes an empty one, or is bent until it is. The
house counts such mistakes, so it looks them up in the response itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import msgspec
from inspect_ai.model import ModelAPI, ModelOutput

from tradeassay.core.secrets import KNOWN, clean_bytes, clean_tree, refresh, remember, scrub
from tradeassay.llm.via_inspect.wire_repair import UNPARSED

RESPONSE: ContextVar[list[object] | None] = ContextVar("tradeassay_raw_response", default=None)
"""Where the raw response of the call under way is put, for whoever set a list here."""


class RawCall(msgspec.Struct, frozen=True):
    """A call's id, tool and arguments, as sent. An object of arguments is written as JSON."""

    id: str
    name: str
    arguments: str


def keep_raw_responses(api: ModelAPI) -> None:
    """Make an Inspect provider hand its raw responses to :data:`RESPONSE`, all without configured secrets.

    Inspect logs what this returns or raises, so the secrets go here, whatever client the provider uses.
    """
    refresh()  # Inspect may have read keys from a file
    remember(getattr(api, "api_key", None))
    original = api.generate

    async def generate(*args: Any, **named: Any) -> Any:
        try:
            result = _clean(await original(*args, **named))
        except Exception as error:
            scrub(error)
            raise
        box = RESPONSE.get()
        if box is not None and isinstance(result, tuple):
            box[:] = [result[1].response]
        return result

    setattr(api, "generate", generate)  # noqa: B010 (a method is replaced on one object, on purpose)


def _clean(result: Any) -> Any:
    if not KNOWN:
        return result
    if isinstance(result, ModelOutput):
        raw = result.model_dump_json().encode()
        cleaned = clean_bytes(raw)
        return result if cleaned is raw else ModelOutput.model_validate_json(cleaned)
    if isinstance(result, tuple):
        output, call = result
        call.request, call.response = clean_tree(call.request), clean_tree(call.response)
        return _clean(output), call
    if isinstance(result, BaseException):
        scrub(result)
    return result


def raw_calls(response: object) -> list[RawCall]:
    """Return the tool calls of a raw response, whatever provider's form it has."""
    return list(_walk(response))


def arguments_of(raw: list[RawCall], at: int, call_id: str, name: str, count: int) -> str | None:
    """Return the raw arguments of the ``at``-th of ``count`` parsed calls: by position, else by id; else None."""
    if len(raw) == count and raw[at].name == name:
        return raw[at].arguments
    same = [call for call in raw if call.id == call_id and call.id]
    return same[0].arguments if len(same) == 1 else None


def _walk(node: object) -> Iterator[RawCall]:
    if isinstance(node, list):
        for item in node:
            yield from _walk(item)
    elif isinstance(node, dict):
        call = _call(node)
        if call is not None:
            yield call
            return
        for value in node.values():
            if isinstance(value, list | dict):
                yield from _walk(value)


def _call(node: dict[str, object]) -> RawCall | None:
    inner = node.get("function")
    if isinstance(inner, dict) and "arguments" in inner:  # OpenAI chat completions and everybody who copied them
        return _raw(node.get("id"), inner.get("name"), inner["arguments"])
    if node.get("type") == "function_call" and "arguments" in node:  # OpenAI responses
        return _raw(node.get("call_id") or node.get("id"), node.get("name"), node["arguments"])
    if node.get("type") == "tool_use" and "input" in node:  # Anthropic messages
        return _raw(node.get("id"), node.get("name"), node["input"])
    return None


def _raw(call_id: object, name: object, arguments: object) -> RawCall:
    if arguments is None:
        arguments = ""
    if isinstance(arguments, dict) and arguments.keys() == {UNPARSED}:
        arguments = arguments[UNPARSED]
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return RawCall(str(call_id or ""), str(name or ""), text)
