"""Answer agents over HTTP: an agent fetches a packet and posts a choice.

Every answer is JSON, and every rejection states a reason.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from socket import AF_INET, AF_INET6, create_server, socket
from threading import Lock
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay_arena.api.agent_api import (
    MAX_WAIT_S,
    MOST,
    AgentApi,
    AgentStatus,
    Notification,
    Offer,
    OwnDecision,
    OwnReward,
    RegisteredAgent,
    Rejected,
    RequestBatcher,
)
from tradeassay_arena.stream import ItemReview, confirm, item_page
from tradeassay_bench.core.time import MINUTE, SECOND, iso


def listen(host: str, port: int) -> socket:
    """Return a socket that is bound to an address before the season starts.

    Raises :class:`UserError` if the address is in use.
    """
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]
        raise UserError(
            f"cannot listen at {host}:{port}: {why}", hint="choose another port or host"
        ) from error


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on requests to the API per minute, over all processes.

    ``per_minute`` is the limit of each agent. ``strangers`` is the limit of each address that sends
    wrong tokens or keys. ``body`` is the largest size of a request, in bytes.
    """

    per_minute: int = 150
    strangers: int = 30
    body: int = 64 * 1024

    def __post_init__(self) -> None:
        if min(self.per_minute, self.strangers, self.body) < 1:
            raise UserError("limits must be at least 1", hint="give numbers above 0")


T = TypeVar("T")
BODY_S = 15.0
"""Maximum time in which the body of a request must arrive, in seconds."""

_Name = Annotated[str, Path(max_length=64)]
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's request to register an entry."""

    season: Annotated[str, msgspec.Meta(pattern=NAME)]
    entry: Annotated[str, msgspec.Meta(pattern=NAME)]
    address: Annotated[str, msgspec.Meta(max_length=2000)] | None = None


class Application(Registration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to join: the entry's name, its label, and a contact."""

    label: Annotated[str, msgspec.Meta(max_length=80)] = ""
    contact: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The answer was accepted. It counts unless the round had already ended."""

    slot: int
    accepted: bool = True


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    """The token of a registration, shown only once."""

    season: str
    entry: str
    token: str


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's own decisions, newest first."""

    items: tuple[OwnDecision, ...]


class Rewards(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's own lines of the reward log, oldest first."""

    items: tuple[OwnReward, ...]


class ExpertVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An expert's verdict: the expert's key, and whether the text is a true and fair account of the
    source.
    """

    key: Annotated[str, msgspec.Meta(max_length=128)]
    verdict: Literal["confirm", "reject"]
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""


TYPES: tuple[Any, ...] = (
    *(
        Notification,
        Offer,
        RegisteredAgent,
        Accepted,
        Decisions,
        Rewards,
        Registration,
        Application,
    ),
    *(AgentStatus, NewToken, ExpertVerdict, ItemReview),
)
"""The request and response structs, for OpenAPI."""

_PROBLEM = {
    "type": "object",
    "properties": {"detail": {"type": "string"}, "hint": {"type": ["string", "null"]}},
    "required": ["detail"],
}
_WHY = {
    401: "The token is missing or unknown.",
    403: "The key is missing or wrong.",
    404: "You have no such slot, or there is no such item.",
    409: "The request was seen before, or the slot is closed or answered.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    422: "The request does not fit.",
    429: "Too many requests; Retry-After says when to come again.",
}


class SharedCounts:
    """Counts of requests per key in this minute, over all processes that share a database.

    A process counts locally and shares its counts about twice a second, so a request needs no
    transaction of its own. Minutes follow the API's clock.
    """

    def __init__(self, api: AgentApi, *, every_s: float = 0.5) -> None:
        self._api, self._every_s = api, every_s
        self._pending: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._minute, self._told = 0, float("-inf")
        self._lock = Lock()

    def add(self, key: str) -> int:
        """Count one request, and return this minute's number as far as this process knows."""
        with self._lock:
            minute = self._api.clock.now() // MINUTE
            if minute != self._minute:
                self._minute = minute
                self._pending.clear()
                self._seen.clear()
            self._pending[key] = self._pending.get(key, 0) + 1
            return self._seen.get(key, 0) + self._pending[key]

    def tell(self) -> None:
        """Send the local counts to the database and read the totals of all processes."""
        with self._lock:
            told, minute, self._told = dict(self._pending), self._minute, time.monotonic()
            self._pending.clear()
        found = self._api.count(told, minute)
        with self._lock:
            if minute == self._minute:
                self._seen.update(found)

    async def count_request(self, key: str, most: int, why: str) -> None:
        """Count a request.

        Raises :class:`Rejected` (429) if this minute has more than ``most`` requests.
        """
        if time.monotonic() - self._told >= self._every_s:
            await run_in_threadpool(self.tell)
        if self.add(key) > most:
            left = MINUTE - self._api.clock.now() % MINUTE
            raise Rejected(429, f"too many {why}", retry_s=left / SECOND)


class RequestGate:
    """Checks the token, the rate and the body of every request.

    A valid token is checked first, so wrong tokens from the same address do not lock its owner out.
    """

    def __init__(self, api: AgentApi, limits: RequestLimits) -> None:
        self.api, self.limits = api, limits
        self.requests = RequestBatcher(api)
        self.counts = SharedCounts(api)

    async def agent(self, request: Request) -> RegisteredAgent:
        """Return the agent of a request. Raises :class:`Rejected` (401 or 429)."""
        token = bearer(request)
        found = await self.requests.agent_of(token) if token else None
        if found is None:
            await self.stranger(request)
            raise Rejected(401, "send your token as 'Authorization: Bearer ...'")
        await self.counts.count_request(found.id, self.limits.per_minute, "requests")
        return found

    async def stranger(self, request: Request) -> None:
        """Count a wrong token against its address. Raises :class:`Rejected` (429) if there were too
        many.
        """
        host = request.client.host if request.client else "?"
        await self.counts.count_request(
            f"stranger {host}", self.limits.strangers, "wrong tokens from this address"
        )


def bearer(request: Request) -> str:
    """Return the token of a request, or an empty text if there is not exactly one.

    With several tokens, a proxy may have checked a different token.
    """
    given = request.headers.getlist("authorization")
    kind, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


async def read_json(request: Request, type_: type[T], most: int) -> T:
    """Return a JSON body of up to ``most`` bytes as a struct.

    Raises :class:`Rejected` (413, 415 or 422).
    """
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise Rejected(415, "send application/json")

    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise Rejected(413, f"a body has at most {most} bytes")
    except (TimeoutError, ClientDisconnect) as error:
        raise Rejected(422, f"the body did not arrive within {BODY_S:g} seconds") from error
    try:
        return msgspec.json.decode(body, type=type_)
    except UNDECODABLE as error:
        raise Rejected(422, str(error)) from error


Handler = Callable[..., Coroutine[Any, Any, Any]]


def _route(
    made: APIRouter,
    path: str,
    answer: Any,
    *refusals: int,
    takes: Any = None,
    parameters: Sequence[Any] = (),
) -> Callable[[Handler], Handler]:
    """Add an operation. Its struct, or the reason of its rejection, is returned as JSON (None:
    204).

    ``answer`` is the struct with its description. An operation with ``takes`` is a POST.
    """
    type_, what = answer

    def shaped(kind: Any) -> dict[str, Any]:
        (shape,), _ = msgspec.json.schema_components(
            [kind], ref_template="#/components/schemas/{name}"
        )
        return {"content": {"application/json": {"schema": shape}}}

    problem = {"application/json": {"schema": _PROBLEM}}
    described: dict[int | str, dict[str, Any]] = {200: {"description": what, **shaped(type_)}}
    described |= {status: {"description": _WHY[status], "content": problem} for status in refusals}
    if type_ is Notification:
        described[204] = {"description": "Nothing waits."}
    extra: dict[str, Any] = (
        {"requestBody": {"required": True, **shaped(takes)}} if takes is not None else {}
    )
    extra |= {"parameters": list(parameters)} if parameters else {}

    def add(make: Handler) -> Handler:
        @wraps(make)
        async def answered(*given: Any, **named: Any) -> Response:
            headers = {"cache-control": "no-store"}
            try:
                found = await make(*given, **named)
            except Rejected as error:
                if error.status == 401:
                    headers["www-authenticate"] = "Bearer"
                if error.retry_s is not None:
                    headers["retry-after"] = str(math.ceil(error.retry_s))
                return refusal(error.status, error.detail, error.hint, headers)
            except UserError as error:
                return refusal(422, error.message, error.hint, headers)
            if found is None:
                return Response(status_code=204, headers=headers)
            return Response(msgspec.json.encode(found), 200, headers, "application/json")

        made.add_api_route(
            path,
            answered,
            methods=["GET" if takes is None else "POST"],
            responses=described,
            openapi_extra=extra or None,
            response_model=None,
        )
        return make

    return add


def router(
    api: AgentApi,
    *,
    limits: RequestLimits | None = None,
    operator: bool = False,
    apply: bool = False,
) -> APIRouter:
    """Return the routes for agents.

    With ``operator`` the holder of the operator's key can register entries over HTTP. With
    ``apply`` anybody may apply for an entry.
    """
    made = APIRouter(prefix="/agents", tags=["agents"])
    gate = RequestGate(api, limits or RequestLimits())

    @_route(made, "/me", (RegisteredAgent, "Who you are."), 401, 429)
    async def me(request: Request) -> RegisteredAgent:
        """Return the agent of this token."""
        return await gate.agent(request)

    @_route(made, "/me/status", (AgentStatus, "How you stand."), 401, 429)
    async def status(request: Request) -> AgentStatus:
        """Return the status of this token's owner, even before approval or after revocation."""
        found = await run_in_threadpool(api.status, bearer(request))
        if found is None:
            await gate.stranger(request)
            raise Rejected(401, "this token is not known here")
        return found

    @_route(made, "/me/decisions", (Decisions, "Your decisions."), 401, 422, 429)
    async def decisions(request: Request, limit: int = Query(50, ge=1, le=MOST)) -> Decisions:
        """Return your own decisions, settled or not."""
        agent = await gate.agent(request)
        return Decisions(items=await run_in_threadpool(api.decisions, agent, limit))

    @_route(made, "/me/rewards", (Rewards, "Your reward log."), 401, 422, 429)
    async def rewards(request: Request, after: int = Query(0, ge=0, le=2**31 - 1)) -> Rewards:
        """Return your own lines of the reward log.

        The log is empty in seasons without that rule.
        """
        agent = await gate.agent(request)
        return Rewards(items=await run_in_threadpool(api.rewards, agent, after))

    waits = (Notification, "A decision waits for you.")
    seconds = {"type": "number", "minimum": 0.0, "maximum": MAX_WAIT_S, "default": 0.0}
    asks = [{"name": "wait", "in": "query", "schema": seconds}]

    @_route(made, "/me/packet", waits, 401, 422, 429, parameters=asks)
    async def packet(request: Request) -> Notification | None:
        """Return the packet of the decision that is waiting for you, after up to ``wait``
        seconds.
        """
        text = request.query_params.get("wait", "0")
        try:
            wait = float(text)
        except ValueError:
            wait = math.nan
        if not 0.0 <= wait <= MAX_WAIT_S:
            raise Rejected(
                422, f"wait: {text[:40]!r} is not a number of seconds from 0 to {MAX_WAIT_S:g}"
            )
        return await gate.requests.packet(await gate.agent(request), wait)

    refused = (401, 404, 409, 413, 415, 422, 429)
    text = {"type": "string", "minLength": 8}
    named = [{"name": "Idempotency-Key", "in": "header", "required": True, "schema": text}]

    @_route(made, "/me/choice", (Accepted, "Taken."), *refused, takes=Offer, parameters=named)
    async def choice(request: Request) -> Accepted:
        """Submit a decision. A repeated key is rejected."""
        agent = await gate.agent(request)
        offer = await read_json(request, Offer, gate.limits.body)
        await gate.requests.submit(agent, request.headers.get("idempotency-key", ""), offer)
        return Accepted(slot=offer.slot)

    if apply:
        waits_too = (NewToken, "You wait for the operator.")

        @_route(made, "/applications", waits_too, 413, 415, 422, 429, takes=Application)
        async def application(request: Request) -> NewToken:
            """Apply for an entry. The token becomes valid when the operator approves; see
            ``/me/status``.
            """
            await gate.stranger(request)
            asked = await read_json(request, Application, gate.limits.body)
            given = {**msgspec.structs.asdict(asked), "now": iso(api.clock.now())}
            token = await run_in_threadpool(api.apply, **given)
            return NewToken(season=asked.season, entry=asked.entry, token=token)

    if operator:

        @_route(made, "", (NewToken, "Registered."), 403, 413, 415, 422, 429, takes=Registration)
        async def register(request: Request) -> NewToken:
            """Register an entry that decides outside. Requires the operator's key."""
            if await run_in_threadpool(api.key_owner, "operator", bearer(request)) is None:
                await gate.stranger(request)
                raise Rejected(403, "only the operator registers")
            asked = await read_json(request, Registration, gate.limits.body)
            given = {**msgspec.structs.asdict(asked), "now": iso(api.clock.now())}
            token = await run_in_threadpool(api.register, **given)
            return NewToken(season=asked.season, entry=asked.entry, token=token)

    return made


def judging(api: AgentApi) -> APIRouter:
    """Return the route by which experts judge published items.

    It accepts only JSON, so a foreign page cannot post to it.
    """
    made, gate = (
        APIRouter(prefix="/api", tags=["experts"]),
        RequestGate(api, RequestLimits(strangers=10)),
    )
    judged, refused = (
        (ItemReview, "The verdict, as it is on record."),
        (403, 404, 413, 415, 422, 429),
    )

    @_route(made, "/seasons/{season}/items/{item}/reviews", judged, *refused, takes=ExpertVerdict)
    async def judge(request: Request, season: _Name, item: _Name) -> ItemReview:
        """Confirm or reject an item. A second verdict of the same expert replaces the first."""
        sent = await read_json(request, ExpertVerdict, 8192)
        expert = await run_in_threadpool(api.key_owner, "expert", sent.key)
        if expert is None:
            await gate.stranger(request)
            raise Rejected(403, "this key is not known here")
        try:
            await run_in_threadpool(
                item_page, api.store, season, item
            )  # raises if there is no such item
            return await run_in_threadpool(
                confirm, api.store, item, expert, sent.verdict, note=sent.note
            )
        except UserError as error:
            raise Rejected(404, error.message, hint=error.hint) from error

    return made


def refusal(
    status: int, detail: str, hint: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    """Return an error response with its reason and a hint."""
    return Response(
        msgspec.json.encode({"detail": detail, "hint": hint}), status, headers, "application/json"
    )
