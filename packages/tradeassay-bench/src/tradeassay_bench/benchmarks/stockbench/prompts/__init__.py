"""Contain the prompts of StockBench, in our own words."""

from tradeassay_bench.llm.prompting import PromptFolder

_SYSTEM = ("system.minimal", "system.reasoned", "system.hybrid")
_STAGES = ("news", "fundamentals", "overview", "analysis", "decision")
_FORMATS = ("format.minimal", "format.reasoned", "format.hybrid")
PROMPTS = PromptFolder(__name__, "v1", (*_SYSTEM, *_STAGES, *_FORMATS, "again", "form", "cut"))
