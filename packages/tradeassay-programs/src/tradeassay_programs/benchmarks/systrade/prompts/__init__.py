"""The prompts of SysTradeBench, as versioned files."""

from tradeassay_bench.llm.prompting import PromptFolder

_ASKED = ("system", "first", "evidence", "goal", "review_system", "review", "again", "again_review")
_FORMS = ("example_program", "example_card", "want_program", "want_card")
PROMPTS = PromptFolder(__name__, "v1", (*_ASKED, *_FORMS))
