"""The prompts of SysTradeBench, as versioned files."""

from tradeassay.llm.prompting import PromptFolder

PROMPTS = PromptFolder(__name__, "v1", ("system", "first", "evidence", "goal", "review_system", "review", "again"))
PROMPTS_V2 = PromptFolder(
    __name__,
    "v2",
    (
        *("system", "first", "evidence", "goal", "review_system", "review", "again", "again_review"),
        *("example_program", "example_card", "want_program", "want_card"),
    ),
)
