"""The language judge that is a program of this project."""

from __future__ import annotations

from tradeassay.benchmarks.quantcode.dialogue import ModelJudge
from tradeassay.llm import scripted_models


def scripted_judge() -> ModelJudge:
    return ModelJudge(name="scripted/code-judge", answer=scripted_models.get("code-judge")().answer)
