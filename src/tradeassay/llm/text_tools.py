"""Tools for models that have none: described in the prompt, called in the text.

Many small models come without a place for tools in their chat format; a server then drops the tools without a
word. For these the tools are written into the system message, a forced call becomes an answer that must fit the
tool's schema, and what the model writes is searched for calls.
"""

from __future__ import annotations

import msgspec

from tradeassay.core.dialogue import AskModel, Message, ModelReply, ToolCall, ToolSpec
from tradeassay.llm.attempt import Attempt, Provider
from tradeassay.llm.model import Place
from tradeassay.llm.text_calls import find_calls

_CALL = 'To call a tool, answer with one block like this:\n```json\n{"name": "<tool>", "arguments": {...}}\n```'
_FORCED = "Answer with one JSON object: the arguments of {name}, nothing else."


class TextToolsProvider:
    """Asks a provider without tools as if it had them."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._inner.name

    async def attempt(self, request: AskModel, place: Place) -> Attempt:
        """Ask once, in words."""
        attempt = await self._inner.attempt(tools_into_text(request), place)
        if not request.tools or attempt.reply.error is not None:
            return attempt
        return msgspec.structs.replace(attempt, reply=_with_calls(attempt.reply, request))

    async def aclose(self) -> None:
        """Close the inner provider."""
        await self._inner.aclose()


def tools_into_text(request: AskModel) -> AskModel:
    """Return a request that says in words what another says in tools."""
    calls = {call.id: call for message in request.messages for call in message.calls}
    messages = [_in_words(message, calls) for message in request.messages]
    offered = [tool for tool in request.tools if request.must_call in (None, tool.name)]
    schema = request.answer_schema
    if offered:
        how = _CALL if request.must_call is None else _FORCED.format(name=request.must_call)
        text = "\n".join(["Tools:", *map(_described, offered), how])
        if messages and messages[0].role == "system":
            messages[0] = Message(role="system", text=f"{messages[0].text}\n\n{text}")
        else:
            messages.insert(0, Message(role="system", text=text))
        if request.must_call is not None:
            schema = offered[0].schema
    return AskModel(
        purpose=request.purpose, messages=tuple(messages), answer_schema=schema, attempt=request.attempt
    )


def _with_calls(reply: ModelReply, request: AskModel) -> ModelReply:
    calls = find_calls(reply.text, request.tools, request.must_call, id_prefix=f"text-{len(request.messages)}")
    return msgspec.structs.replace(reply, calls=calls)


def _in_words(message: Message, calls: dict[str, ToolCall]) -> Message:
    if message.role == "tool":
        call = calls.get(message.call_id or "")
        return Message(role="user", text=f"Result of {call.name if call else 'the call'}:\n{message.text}")
    if message.calls:
        made = [call for call in message.calls if call.found_in == "call"]
        blocks = [f'```json\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n```' for call in made]
        return Message(role=message.role, text="\n".join(part for part in (message.text, *blocks) if part))
    return message


def _described(tool: ToolSpec) -> str:
    return f"- {tool.name}: {tool.description} Arguments (JSON schema): {tool.schema}"
