"""The market's tools over the Model Context Protocol (extra ``[mcp]``): whatever speaks MCP can trade.

A *desk* is what the server exposes: it has tools and answers calls. One is an episode of KTD-Fin
(:mod:`tradeassay.frontends.mcp_episode`), another an entry in the arena. This module knows the protocol only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from tradeassay.core.dialogue import ToolSpec


class ToolReply(NamedTuple):
    """A desk's answer. ``wrong`` marks one that says what was wrong with the call."""

    text: str
    wrong: bool = False


class ToolDesk(Protocol):
    """Something with tools."""

    @property
    def instructions(self) -> str: ...

    def tools(self) -> Sequence[ToolSpec]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        """Answer a call; never raises for anything a client sends."""
        ...


DeskFor = Callable[[Any], ToolDesk]
"""Finds the desk of a request: its HTTP request, or None where there is only one client."""


def make_server(desk_for: DeskFor, *, instructions: str, name: str = "tradeassay") -> Any:
    """Return an MCP server over the desks that ``desk_for`` finds."""

    async def list_tools(context: Any, params: Any) -> Any:
        found = [
            types.Tool(name=tool.name, description=tool.description, input_schema=json.loads(tool.schema))
            for tool in desk_for(context.request).tools()
        ]
        return types.ListToolsResult(tools=found)

    async def call_tool(context: Any, params: Any) -> Any:
        said = await desk_for(context.request).call(params.name, dict(params.arguments or {}))
        return types.CallToolResult(content=[types.TextContent(type="text", text=said.text)], is_error=said.wrong)

    return Server(name, instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool)


def server_for(desk: ToolDesk) -> Any:
    """Return an MCP server over one desk."""
    return make_server(lambda request: desk, instructions=desk.instructions)


async def serve_stdio(desk: ToolDesk) -> None:
    """Serve one client over this process's standard input and output until it leaves."""
    server = server_for(desk)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
