"""The prompts of StockBench, in our own words."""

from __future__ import annotations

from tradeassay.llm.prompting import PromptFolder

_STAGES = (
    "system.minimal", "system.reasoned", "system.hybrid", "news", "fundamentals", "overview", "analysis",
    "decision", "format.minimal", "format.reasoned", "format.hybrid", "again",
)  # fmt: skip
PROMPTS = PromptFolder(__name__, "v1", _STAGES)
PROMPTS_V2 = PromptFolder(__name__, "v2", (*_STAGES, "cut"))
