"""An agent behind HTTP: ``POST /trading_action/`` as the Agent Market Arena defines it. Needs ``[arena]``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx

from tradeassay.core.arena import Choice, Packet
from tradeassay.frontends.address import Network, Resolve, checked_address, parse_target, resolve_by_system
from tradeassay.frontends.ama_wire import (
    MAX_ANSWER,
    MAX_REQUEST,
    Unusable,
    encode_request,
    failed_choice,
    read_answer,
)

PATH = "/trading_action/"
TIMEOUT_S = 180.0
"""How long the contract lets an agent think."""


class HttpAgent:
    """Asks a server of the AMA contract. Every failure is a choice that holds and says what went wrong.

    ``allow`` are networks an agent may live in although they are private. ``own`` adds the agent's position and
    outcomes to the contract's keys. Kinds of failure: ``forbidden`` (the address leads inwards), ``unreachable``,
    ``timeout``, ``redirect``, ``status``, ``too_large``, ``parse``, ``schema``.

    The constructor raises :class:`~tradeassay.core.errors.UserError` for an address that makes no sense.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        timeout_s: float = TIMEOUT_S,
        allow: Sequence[Network] = (),
        own: bool = False,
        max_request: int = MAX_REQUEST,
        max_answer: int = MAX_ANSWER,
        resolve: Resolve = resolve_by_system,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._target = parse_target(url, PATH)
        self._model = model
        self._timeout_s = timeout_s
        self._allow = tuple(allow)
        self._own = own
        self._max_request, self._max_answer = max_request, max_answer
        self._resolve = resolve
        self._transport = transport

    async def decide(self, packet: Packet) -> Choice:
        """Ask the agent; never raises for anything the agent does."""
        try:
            body = encode_request(packet, model=self._model, own=self._own, limit=self._max_request)
            async with asyncio.timeout(self._timeout_s):  # httpx only bounds single steps
                return read_answer(await self._post(body), limit=self._max_answer)
        except Unusable as error:
            return failed_choice(error.kind, error.text)
        except (TimeoutError, httpx.TimeoutException):
            return failed_choice("timeout", f"no answer within {self._timeout_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return failed_choice("unreachable", f"{type(error).__name__}: {error}")

    async def _post(self, body: bytes) -> bytes:
        target = self._target
        address = await checked_address(target, self._allow, self._resolve)
        headers = {
            "Host": target.authority,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a small compressed answer could unfold into a large one
        }
        # The connection goes to the checked address; the certificate must still be the name's.
        named = {"sni_hostname": target.host}
        # A proxy from the environment would resolve the name again, and a redirect would name another one.
        async with httpx.AsyncClient(
            transport=self._transport, follow_redirects=False, trust_env=False, timeout=self._timeout_s
        ) as client:
            async with client.stream(
                "POST", target.at(address), content=body, headers=headers, extensions=named
            ) as response:
                _check_head(response)
                return await self._read(response)

    async def _read(self, response: httpx.Response) -> bytes:
        found = bytearray()
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) > self._max_answer:
                raise Unusable("too_large", f"the answer has more than {self._max_answer} bytes")
        return bytes(found)


def _check_head(response: httpx.Response) -> None:
    if response.is_redirect or 300 <= response.status_code < 400:
        raise Unusable("redirect", f"the agent answered {response.status_code}; redirects are not followed")
    if response.status_code != 200:
        raise Unusable("status", f"the agent answered {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise Unusable("parse", "the answer is compressed, which was not asked for")
