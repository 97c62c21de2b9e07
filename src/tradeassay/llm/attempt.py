"""One try at getting an answer, and who makes it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.model import Place


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one try.

    ``again`` says that another one may do better, ``wait_s`` how long the provider asks to be left alone.
    """

    reply: ModelReply
    again: bool = False
    wait_s: float | None = None


class Provider(Protocol):
    """Something that can be asked once: a company's servers, a program, a model on this machine."""

    @property
    def name(self) -> str:
        """The model's full name."""
        ...

    async def attempt(self, request: AskModel, place: Place) -> Attempt:
        """Ask once. What the provider does wrong comes back as a reply; only a bug raises."""
        ...

    async def aclose(self) -> None:
        """Let go of connections and processes."""
        ...
