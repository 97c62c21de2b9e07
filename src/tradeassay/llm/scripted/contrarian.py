"""The scripted model that goes against the crowd in the arena."""

from __future__ import annotations

from typing import ClassVar, Final

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.json_text import parse_object
from tradeassay.llm.scripted import ama
from tradeassay.llm.scripted.answers import say_json
from tradeassay.llm.scripted.reading import Reading
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible

_TURNED: Final = {"BUY": "SELL", "SELL": "BUY"}


@scripted_models.register("contrarian")
class Contrarian(Sensible):
    """Turns every verdict of the arena round, and leaves analysts their opinions. Elsewhere it is sensible."""

    summary: ClassVar[str] = "decides against what its analysts suggest in the arena; sensible elsewhere"

    def stage(self, request: AskModel, reading: Reading) -> ModelReply:
        """Answer a stage without tools."""
        reply = super().stage(request, reading)
        said = parse_object(reply.text) if reading.kind == ama.VERDICT else None
        if said is None:
            return reply
        action = str(said.get("action"))
        return say_json(
            {**said, "action": _TURNED.get(action, action), "reasoning": f"against: {said['reasoning']}"}
        )
