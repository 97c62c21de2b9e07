"""The scripted model that takes its time."""

from __future__ import annotations

import hashlib
from typing import ClassVar

from tradeassay.core.dialogue import AskModel
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible

THINKING_S = 0.02
NEVER_S = 86_400.0
ONE_IN = 7


@scripted_models.register("slow")
class Slow(Sensible):
    """Thinks a while before each sensible answer; one question in seven it thinks about for a day."""

    summary: ClassVar[str] = "answers sensibly but slowly, and one time in seven not within any time limit"

    def seconds(self, request: AskModel) -> float:
        """Return how long the answer takes."""
        text = f"{request.purpose}\0{request.attempt}\0{request.messages[-1].text if request.messages else ''}"
        chosen = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % ONE_IN == 0
        return NEVER_S if chosen else THINKING_S
