"""Scripted coders that go wrong: one talks, one cheats, one cannot be reached."""

from __future__ import annotations

import hashlib
from typing import ClassVar

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.model import failed_reply
from tradeassay.llm.scripted.answers import say
from tradeassay.llm.scripted.coder import SmaCoder, framework_of, program
from tradeassay.llm.scripted.coder_programs import CHEATS
from tradeassay.llm.scripted.reading import Reading
from tradeassay.llm.scripted.registry import scripted_models

_LOOP = "Wait, let me think about the entry once more before I write it down.\n"


@scripted_models.register("coder-silent")
class SilentCoder(SmaCoder):
    """Thinks in circles and never writes a program."""

    summary: ClassVar[str] = "reasons about coding tasks without end and hands in no program"

    def code(self, reading: Reading) -> ModelReply:
        """Answer a coding task, or rather do not."""
        return say("The strategy has an entry and an exit.\n" + _LOOP * 40)


@scripted_models.register("coder-cheat")
class CheatingCoder(SmaCoder):
    """Prints a forged result, patches the broker, reads later bars or raises with an environment, by task."""

    summary: ClassVar[str] = "cheats at coding tasks, in another way for each: forges, patches, peeks, spies"

    def code(self, reading: Reading) -> ModelReply:
        """Answer a coding task."""
        ways = CHEATS[framework_of(reading)]
        chosen = hashlib.sha256(str(reading.payload.get("task", "")).encode()).digest()[0]
        return program(ways[chosen % len(ways)])


@scripted_models.register("away")
class Away(SmaCoder):
    """Stands for a model that cannot be reached: every question ends in an error of the network."""

    summary: ClassVar[str] = "cannot be reached: every question ends in an error of the network"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer nothing."""
        return failed_reply("unreachable", "nobody answers at that address")
