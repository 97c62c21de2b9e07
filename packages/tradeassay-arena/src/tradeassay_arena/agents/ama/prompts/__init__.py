"""Read the prompts of the arena's architectures from versioned files."""

from tradeassay_bench.llm.prompting import PromptFolder

_DESK = (
    "analyst",
    "persona",
    "bull",
    "bear",
    "trader",
    "risk",
    "manager",
    "investor",
    "reflection",
    "vanilla",
)
PROMPTS = PromptFolder(__name__, "v1", ("system", "ask", "again", *_DESK))
