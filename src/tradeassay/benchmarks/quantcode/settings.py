"""How a task is put to a model: one answer or ten, in which words, for which framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from tradeassay.benchmarks.quantcode.prompts import judge_prompts
from tradeassay.code.judges.language import JudgePrompts
from tradeassay.code.task import Framework, Wording
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import UserError

Setting = Literal["single-turn", "agentic"]


class QuantCodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One way of asking. ``turns`` is the most answers in the agentic setting (the paper: 10).

    ``history``: ``full`` keeps the whole conversation before the model, ``last`` only its latest program and
    what was found in it. ``longest_message`` bounds an error text that is handed back. ``behaviour_hints``
    adds, for a program that the behavioural judge turned down, in general terms what differs; the reference
    itself is never shown. Raises :class:`UserError` for numbers that allow no turn or no message.
    """

    setting: Setting = "single-turn"
    turns: int = 10
    wording: Wording = "formal"
    framework: Framework = "backtrader"
    history: Literal["full", "last"] = "full"
    longest_message: int = 2_000
    behaviour_hints: bool = True

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise UserError(f"{self.turns} turns allow no answer", mend="give 1 or more")
        if self.longest_message < 100:
            raise UserError(f"messages of {self.longest_message} characters say nothing", mend="give 100 or more")

    @property
    def allowed_turns(self) -> int:
        """How many answers the model has."""
        return self.turns if self.setting == "agentic" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJudge:
    """A language judge of this benchmark: a model's name, the way to ask it, and our prompts for a framework."""

    name: str
    answer: Callable[[AskModel], ModelReply]
    framework: Framework = "backtrader"

    @property
    def prompts(self) -> JudgePrompts:
        """What it is asked with."""
        return judge_prompts(self.framework)

    def ask(self, request: AskModel) -> ModelReply:
        """Answer one request."""
        return self.answer(request)


def scripted_judge(name: str = "code-judge", framework: Framework = "backtrader") -> ModelJudge:
    """Return a judge that is a program of this project; raises :class:`UserError` for an unknown name."""
    from tradeassay.llm import scripted_models

    return ModelJudge(name=f"scripted/{name}", answer=scripted_models.get(name)().answer, framework=framework)
