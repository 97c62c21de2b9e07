"""The prompts of QuantCode, in our own words: for the writer and for the judge."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final, Literal

from tradeassay.code.judges.language import JudgePrompts
from tradeassay.core.hashing import sha256_bytes
from tradeassay.llm.prompting import PromptFolder

Version = Literal[1, 2]
"""Version 2 speaks to models only: what scripted models need stands beside the text."""

_NAMES: Final = (
    "system.backtrader", "system.frame", "task", "feedback", "no_code",
    "judge.system.backtrader", "judge.system.frame", "judge.question", "judge.again",
)  # fmt: skip
_PROMPTS: Final = {
    1: PromptFolder(__name__, "v1", _NAMES),
    2: PromptFolder(__name__, "v2", (*_NAMES, "example.backtrader", "example.frame")),
}


def prompts_of(version: Version) -> PromptFolder:
    """Return the prompts of a version of the benchmark."""
    return _PROMPTS[version]


@cache
def judge_prompts(framework: str = "backtrader", version: Version = 2) -> JudgePrompts:
    """Return the prompts of the language judge."""

    def read(name: str) -> str:
        return (files(__name__) / f"{name}.v{version}.txt").read_text(encoding="utf-8")

    return JudgePrompts(
        system=read(f"judge.system.{framework}"),
        question=read("judge.question"),
        again=read("judge.again"),
        version=f"v{version}",
    )


@cache
def prompt_hashes(version: Version = 2) -> dict[str, str]:
    """Return the SHA-256 of every prompt file, by file name, as a run records them."""
    names = [f"{name}.v{version}.txt" for name in prompts_of(version).names]
    return {name: sha256_bytes((files(__name__) / name).read_bytes()) for name in names}
