"""Prompts of the probe, one file per text. A change of one word is a new version."""

from __future__ import annotations

from tradeassay_bench.llm.prompting import PromptFolder

PROMPTS = PromptFolder(__name__, "v1", ("system", "question", "again"))
