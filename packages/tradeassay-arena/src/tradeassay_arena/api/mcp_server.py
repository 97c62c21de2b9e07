"""Serve entries of the arena to MCP clients: the packet's parts as tools, and ``submit_action``.

Needs the extra ``[serve]``. The server uses streamable HTTP, and every request carries the agent's
token. Each request is authenticated separately, so a token reaches only its own entry, whatever
session the request names.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import product
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from tradeassay_arena.api.agent_api import (
    MAX_WAIT_S,
    AgentApi,
    Offer,
    RegisteredAgent,
    Rejected,
    RequestBatcher,
)
from tradeassay_arena.api.router import RequestGate, RequestLimits, listen
from tradeassay_arena.queries.seasons import opened_season
from tradeassay_arena.state.engine import existing_engine
from tradeassay_bench.core.dialogue import ToolSpec
from tradeassay_bench.frontends.mcp_episode import ToolReply, make_server

ABOUT = (
    "You decide about one asset at a time in a paper-trading arena: BUY, SELL or HOLD. Call "
    "next_decision; read "
    "prices, news and filings of its slot; then call submit_action once with the slot's number. A "
    "slot that is "
    "not answered in time holds."
)
_AGENT = "tradeassay.agent"
_BRIEF = (
    "symbol kind date decided_at price momentum position phase others account exposures".split()
)


class Waiting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of ``next_decision``."""

    wait_s: float = 0.0


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No arguments."""


class SubmittedAction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of ``submit_action``."""

    slot: int
    recommended_action: str
    reasoning: str
    confidence: float | None = None
    allocation: float | None = None
    message: str | None = None


def _tool(name: str, description: str, arguments: type) -> ToolSpec:
    (_,), components = msgspec.json.schema_components([arguments])
    schema = dict(components[arguments.__name__])
    schema.pop("description", None)
    if arguments is SubmittedAction:
        schema["properties"]["recommended_action"]["enum"] = ["BUY", "SELL", "HOLD"]
    return ToolSpec(name=name, description=description, schema=msgspec.json.encode(schema).decode())


TOOLS: tuple[ToolSpec, ...] = (
    _tool(
        "next_decision",
        "The decision that waits for you: slot, asset, date, price, position.",
        Waiting,
    ),
    _tool(
        "price_history", "Up to ten earlier prices of the asset that waits, oldest first.", Nothing
    ),
    _tool("news", "Published news about the asset that waits.", Nothing),
    _tool("filings", "The newest annual and quarterly report of the asset that waits.", Nothing),
    _tool(
        "own_outcomes",
        "Your own last decisions about the asset that waits, and what they earned.",
        Nothing,
    ),
    _tool(
        "submit_action",
        "Decide: BUY, SELL or HOLD with your reasoning. Once per slot.",
        SubmittedAction,
    ),
)


class ArenaSession:
    """The tools of one agent. The class has no state: every call reads the database."""

    def __init__(self, requests: RequestBatcher, agent: RegisteredAgent) -> None:
        self._requests, self._agent = requests, agent

    @property
    def instructions(self) -> str:
        return ABOUT

    def tools(self) -> Sequence[ToolSpec]:
        return TOOLS

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        """Run one tool and return its reply. A rejected call returns the reason."""
        try:
            if name == "submit_action":
                given = msgspec.convert(arguments, SubmittedAction)
                told = await self._requests.waiting(self._agent)
                if told is None or told.slot != given.slot:
                    raise Rejected(409, "that slot does not wait for you")
                fields = {"packet_sha256": told.packet_sha256, **msgspec.structs.asdict(given)}
                offer = msgspec.convert(fields, Offer)
                await self._requests.submit(self._agent, secrets.token_hex(16), offer)
                return ToolReply(f"Accepted: {offer.recommended_action} for slot {offer.slot}.")
            if name == "next_decision":
                wait = max(0.0, min(msgspec.convert(arguments, Waiting).wait_s, MAX_WAIT_S))
                told = await self._requests.packet(self._agent, wait)
                if told is None:
                    return ToolReply("Nothing waits for you.")
                facts = msgspec.to_builtins(told.packet)
                return ToolReply(
                    msgspec.json.encode(
                        {"slot": told.slot, **{part: facts[part] for part in _BRIEF}}
                    ).decode()
                )
            told = await self._requests.waiting(self._agent)
            if told is None:
                return ToolReply("Nothing waits for you.", wrong=True)
            packet = told.packet
            parts: dict[str, Any] = {
                "price_history": packet.history,
                "news": packet.news,
                "filings": {"10k": packet.annual_report, "10q": packet.quarterly_report},
                "own_outcomes": packet.outcomes,
            }
            if name not in parts:
                return ToolReply(f"There is no tool '{name[:64]}'.", wrong=True)
            return ToolReply(msgspec.json.encode(parts[name]).decode())
        except Rejected as error:
            return ToolReply(error.detail, wrong=True)
        except msgspec.ValidationError as error:
            return ToolReply(str(error), wrong=True)


def mcp_app(
    api: AgentApi,
    *,
    limits: RequestLimits | None = None,
    host: str = "127.0.0.1",
    hosts: Sequence[str] = (),
) -> McpApp:
    """Return an application that serves the arena's entries over streamable HTTP at ``/mcp``.

    ``host`` is the address to listen on. ``hosts`` are further names that clients use, for example
    a proxy's (with a port, or ``:*`` for any port). With ``hosts``, a request for any other name is
    refused, so web pages cannot reach a local server. Without ``hosts``, the check depends on
    ``host``: only a local ``host`` refuses other names. Run the application alone, or inside
    :meth:`McpApp.running` as part of another application.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    limits, security = limits or RequestLimits(), None
    if hosts:
        known = (host, "localhost", *hosts)
        names: list[str] = []
        for name in known:
            names.append(name)
            names.append(name if ":" in name else f"{name}:*")
        origins = [f"{scheme}://{name}" for name, scheme in product(names, ("http", "https"))]
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=origins
        )
    gate = RequestGate(api, limits)
    server = make_server(
        lambda request: ArenaSession(gate.requests, request.scope[_AGENT]), instructions=ABOUT
    )
    inner = server.streamable_http_app(
        streamable_http_path="/mcp",
        json_response=True,
        stateless_http=True,
        max_request_body_size=limits.body,
        host=host,
        transport_security=security,
    )
    return McpApp(inner, gate)


def serve_entries(
    db: str, host: str, port: int, say: Callable[[str], None], hosts: Sequence[str]
) -> None:
    """Serve the entries of an arena's database until the process is stopped. Raises
    :class:`UserError`.
    """
    import uvicorn

    with opened_season(db, opened=existing_engine) as (store, _):
        app = mcp_app(AgentApi(store), host=host, hosts=hosts)
        config = uvicorn.Config(app, host=host, port=port, log_level="warning", server_header=False)
        listening = listen(host, port)
        say(f"entries: http://{host}:{port}/mcp  (stop with Ctrl-C)")
        uvicorn.Server(config).run([listening])


class McpApp:
    """Checks the token and the rate of every request before it reaches the MCP server."""

    def __init__(self, app: Starlette, gate: RequestGate) -> None:
        self._app, self._gate = app, gate

    def running(self) -> AbstractAsyncContextManager[object]:
        """Return a context that runs the MCP server as part of another application. Enter it only
        once.
        """
        return self._app.router.lifespan_context(self._app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            scope[_AGENT] = await self._gate.agent(Request(scope))
        except Rejected as error:
            headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
            await JSONResponse({"detail": error.detail}, error.status, headers)(
                scope, receive, send
            )
            return
        await self._app(scope, receive, send)
