"""The scripted model that does everything right."""

from __future__ import annotations

from typing import ClassVar

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.scripted import ama, ktdfin, stockbench
from tradeassay.llm.scripted.answers import call, say, say_json
from tradeassay.llm.scripted.reading import (
    STOCKBENCH_ANALYSIS,
    STOCKBENCH_DECISION,
    STOCKBENCH_OVERVIEW,
    Reading,
    read_request,
)
from tradeassay.llm.scripted.registry import scripted_models


@scripted_models.register("sensible")
class Sensible:
    """Reads, researches within its means, and submits a valid decision every day.

    The other scripted models derive from it and go wrong in one of these four places.
    """

    summary: ClassVar[str] = "follows the rules: simple momentum, valid answers"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one request."""
        reading = read_request(request)
        if request.must_call is not None:
            return self.submit(request, reading)
        if request.tools:
            return self.research(request, reading)
        return self.stage(request, reading)

    def research(self, request: AskModel, reading: Reading) -> ModelReply:
        """Call research tools, or say that there is nothing left to find out."""
        calls = ktdfin.next_research(reading)
        return call(request, calls) if calls else say("I have seen enough.")

    def submit(self, request: AskModel, reading: Reading) -> ModelReply:
        """Make the one call that is asked for."""
        assert request.must_call is not None
        return call(request, [(request.must_call, self.action(reading))])

    def action(self, reading: Reading) -> dict[str, object]:
        """Return what is submitted in KTD-Fin."""
        return ktdfin.wish(reading).action()

    def decisions(self, reading: Reading) -> dict[str, stockbench.Decided]:
        """Return what is decided in StockBench."""
        return stockbench.decide(reading)

    def stage(self, request: AskModel, reading: Reading) -> ModelReply:
        """Answer a stage without tools."""
        if reading.kind == STOCKBENCH_OVERVIEW:
            return say_json({"analyse": stockbench.pick(reading), "reason": "they moved most, or are held"})
        if reading.kind == STOCKBENCH_ANALYSIS:
            return say_json({"notes": stockbench.notes(reading)})
        if reading.kind == STOCKBENCH_DECISION:
            return say_json({"decisions": self.decisions(reading)})
        spoken = ama.answer(reading)
        return say_json(spoken) if spoken is not None else say("There is nothing here that I can read.")
