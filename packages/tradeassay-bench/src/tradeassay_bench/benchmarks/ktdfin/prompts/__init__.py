"""Contain the prompts of KTD-Fin as versioned text files.

A change of wording needs a new version of the file and of the benchmark.
"""

from tradeassay_bench.llm.prompting import PromptFolder

_MODES = ("system.open-research", "system.fixed-candidate", "system.memory-only")
_PARTS = (
    "rules",
    "factors",
    "control",
    "user",
    "research",
    "submit",
    "refused",
    "form",
    "cut",
    "no_call",
)
PROMPTS = PromptFolder(__name__, "v1", (*_MODES, *_PARTS))
