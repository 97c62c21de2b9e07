"""The scripted model that never comes to the point."""

from __future__ import annotations

from typing import ClassVar

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.scripted.answers import call, say
from tradeassay.llm.scripted.reading import STOCKBENCH_DECISION, Reading
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible


@scripted_models.register("never-submits")
class NeverSubmits(Sensible):
    """Researches for as long as it may and talks when it should decide. It has no result, only failures."""

    summary: ClassVar[str] = "researches without end and never submits a decision"

    def research(self, request: AskModel, reading: Reading) -> ModelReply:
        """Always find something else to look up."""
        tools = [name for name in ("get_market_context", "portfolio_state") if name in reading.tools]
        return call(request, [(name, {}) for name in tools or reading.tools[:1]])

    def submit(self, request: AskModel, reading: Reading) -> ModelReply:
        """Talk, or call something that was not asked for."""
        if reading.attempt % 2 == 0:
            return call(request, [("get_market_context", {})], text="One more look at the market first.")
        return say("The market is finely balanced today, and I would rather wait before I commit to anything.")

    def stage(self, request: AskModel, reading: Reading) -> ModelReply:
        """Decide nothing in the stage where a decision is due."""
        if reading.kind == STOCKBENCH_DECISION:
            return say("On the one hand prices rose, on the other hand they may fall. It is hard to say.")
        return super().stage(request, reading)
