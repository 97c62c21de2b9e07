"""The prompts of QuantCode for the writer and the judge, written by this project.

They address models only. Data for scripted models are sent separately.
"""

from functools import cache
from typing import Final

from tradeassay_bench.llm.prompting import PromptFolder
from tradeassay_programs.code.judges.language import JudgePrompts

_WRITER: Final = ("system.backtrader", "system.frame", "task", "feedback", "no_code")
_JUDGE: Final = ("judge.system.backtrader", "judge.system.frame", "judge.question", "judge.again")
PROMPTS: Final = PromptFolder(
    __name__, "v1", (*_WRITER, *_JUDGE, "example.backtrader", "example.frame")
)


@cache
def judge_prompts(framework: str = "backtrader") -> JudgePrompts:
    return JudgePrompts(
        system=PROMPTS.text(f"judge.system.{framework}"),
        question=PROMPTS.text("judge.question"),
        again=PROMPTS.text("judge.again"),
    )
