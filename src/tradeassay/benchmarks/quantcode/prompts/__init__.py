"""The prompts of QuantCode, in our own words: for the writer and for the judge."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from tradeassay.code.judges.language import JudgePrompts
from tradeassay.core.hashing import sha256_bytes
from tradeassay.llm.prompting import PromptFolder

VERSION = "v1"
PROMPTS = PromptFolder(
    __name__,
    VERSION,
    (
        "system.backtrader", "system.frame", "task", "feedback", "no_code",
        "judge.system.backtrader", "judge.system.frame", "judge.question", "judge.again",
    ),
)  # fmt: skip


@cache
def judge_prompts(framework: str = "backtrader") -> JudgePrompts:
    """Return the prompts of the language judge."""

    def read(name: str) -> str:
        return (files(__name__) / f"{name}.{VERSION}.txt").read_text(encoding="utf-8")

    return JudgePrompts(
        system=read(f"judge.system.{framework}"),
        question=read("judge.question"),
        again=read("judge.again"),
        version=VERSION,
    )


@cache
def prompt_hashes() -> dict[str, str]:
    """Return the SHA-256 of every prompt file, by file name, as a run records them."""
    names = [f"{name}.{VERSION}.txt" for name in PROMPTS.names]
    return {name: sha256_bytes((files(__name__) / name).read_bytes()) for name in names}
