"""The language judge that is a program of this project."""

from __future__ import annotations

from tradeassay_bench.llm import scripted_models
from tradeassay_programs.benchmarks.quantcode.dialogue import ModelJudge


def scripted_judge() -> ModelJudge:
    return ModelJudge(name="scripted/code-judge", answer=scripted_models.get("code-judge")().answer)
