"""The scripted model that cannot write JSON."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.scripted.answers import dump
from tradeassay.llm.scripted.reading import Reading
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible


@scripted_models.register("broken-json")
class BrokenJson(Sensible):
    """Breaks the JSON of every decision at the first attempt, and on one day in three at every attempt.

    Which way it is broken changes from attempt to attempt: cut off, single quotes, a comma too many, words
    around it.
    """

    summary: ClassVar[str] = "writes broken JSON, and mends it when asked again on two days out of three"

    def submit(self, request: AskModel, reading: Reading) -> ModelReply:
        """Submit, brokenly."""
        reply = super().submit(request, msgspec.structs.replace(reading, attempt=1))
        if self._mended(reading):
            return reply
        broken = [msgspec.structs.replace(made, arguments=_break(made.arguments, request)) for made in reply.calls]
        return msgspec.structs.replace(reply, calls=tuple(broken))

    def stage(self, request: AskModel, reading: Reading) -> ModelReply:
        """Answer a stage, brokenly."""
        reply = super().stage(request, msgspec.structs.replace(reading, attempt=1))
        if self._mended(reading):
            return reply
        return msgspec.structs.replace(reply, text=_break(reply.text, request))

    def _mended(self, reading: Reading) -> bool:
        return reading.tries > 1 and _number(_day(reading)) % 3 != 0


def _day(reading: Reading) -> str:
    """Return what all stages of a day share."""
    return dump(
        [reading.payload.get(field) for field in ("session", "trade_day", "step", "cash", "nav", "account")]
    )


def _break(text: str, request: AskModel) -> str:
    ways = (
        text[: max(1, len(text) * 2 // 3)],
        text.replace('"', "'"),
        text[:-1] + ",}",
        f"Of course! {text[:-1]}",
    )
    return ways[(request.attempt - 1 + _number(text)) % len(ways)]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
