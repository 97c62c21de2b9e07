"""Contain the prompts of the daily protocol."""

from tradeassay_bench.llm.prompting import PromptFolder

PROMPTS = PromptFolder(__name__, "v1", ("system", "day", "again", "cut"))
