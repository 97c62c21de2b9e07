"""An agent that is a Python object: anything with ``decide(packet)``, plain or ``async``."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from tradeassay.core.arena import Choice, Packet
from tradeassay.core.errors import UserError
from tradeassay.frontends.ama_wire import Answer, Unusable, failed_choice, to_choice


class Decides(Protocol):
    """What an agent's class must have. It may return a :class:`Choice`, a word, or the contract's answer."""

    def decide(self, packet: Packet) -> Any:
        """Return ``"BUY"``, a mapping with ``recommended_action`` and ``reasoning``, a choice, or an awaitable."""
        ...


class PythonAgent:
    """Asks an object in this process. Every failure is a choice that holds and says what went wrong.

    A plain ``decide`` runs in a thread. A thread cannot be ended from outside: while a call that ran out of time
    still hangs, later decisions fail at once. Kinds of failure: ``agent`` (it raised), ``timeout``, ``schema``.
    """

    def __init__(self, agent: Decides, *, timeout_s: float = 180.0) -> None:
        if not callable(getattr(agent, "decide", None)):
            raise UserError(f"{type(agent).__name__} has no decide(packet)", mend="give it that method")
        self._agent = agent
        self._timeout_s = timeout_s
        self._hanging: asyncio.Future[Any] | None = None

    async def decide(self, packet: Packet) -> Choice:
        """Ask the object; never raises for anything it does."""
        if self._hanging is not None and not self._hanging.done():
            return failed_choice("timeout", "an earlier call still hangs")
        try:
            async with asyncio.timeout(self._timeout_s):
                return as_choice(await self._call(packet))
        except TimeoutError:
            return failed_choice("timeout", f"no answer within {self._timeout_s:g} s")
        except Unusable as error:
            return failed_choice(error.kind, error.text)
        except Exception as error:
            return failed_choice("agent", f"{type(error).__name__}: {error}")

    async def _call(self, packet: Packet) -> Any:
        if inspect.iscoroutinefunction(self._agent.decide):
            return await self._agent.decide(packet)
        self._hanging = asyncio.ensure_future(asyncio.to_thread(self._agent.decide, packet))
        found = await asyncio.shield(self._hanging)
        return await found if inspect.isawaitable(found) else found


def as_choice(said: Any) -> Choice:
    """Return whatever an agent said as a choice; raises :class:`Unusable` (``schema``) when it is none."""
    if isinstance(said, Choice):
        return said
    if isinstance(said, str):
        said = {"recommended_action": said, "reasoning": ""}
    if not isinstance(said, Mapping):
        raise Unusable("schema", f"the answer is a {type(said).__name__}, not a choice")
    try:
        return to_choice(msgspec.convert(dict(said), Answer, strict=True))
    except msgspec.ValidationError as error:
        raise Unusable("schema", str(error)) from error


def load_agent(name: str) -> Decides:
    """Import ``package.module:Class`` and make one; raises :class:`UserError` when that does not work."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UserError(f"'{name}' names no class", mend="write package.module:Class")
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except Exception as error:
        raise UserError(
            f"'{name}' cannot be made: {type(error).__name__}: {error}", mend="import it by hand"
        ) from error
    if not callable(getattr(made, "decide", None)):
        raise UserError(f"'{name}' has no decide(packet)", mend="give it that method")
    found: Decides = made
    return found
