"""Contain the prompts of the probe, one file per text. Any changed word requires a new version."""

from __future__ import annotations

from tradeassay_bench.llm.prompting import PromptFolder

PROMPTS = PromptFolder(__name__, "v1", ("system", "question", "again"))
