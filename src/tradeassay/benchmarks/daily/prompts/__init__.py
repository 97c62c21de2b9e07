"""The prompts of the daily protocol."""

from __future__ import annotations

from tradeassay.llm.prompting import PromptFolder

PROMPTS = PromptFolder(__name__, "v1", ("system", "day", "again"))
PROMPTS_V2 = PromptFolder(__name__, "v2", ("system", "day", "again", "cut"))
