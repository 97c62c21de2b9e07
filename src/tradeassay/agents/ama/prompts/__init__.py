"""The prompts of the arena's architectures, as versioned files."""

from tradeassay.llm.prompting import PromptFolder

_NAMES = (
    "system",
    "ask",
    "again",
    "analyst",
    "persona",
    "bull",
    "bear",
    "trader",
    "risk",
    "manager",
    "investor",
    "reflection",
)
PROMPTS = PromptFolder(__name__, "v1", _NAMES)
PROMPTS_2 = PromptFolder(__name__, "v2", (*_NAMES, "vanilla"))
