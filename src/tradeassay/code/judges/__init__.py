"""Two judges of one question: does the program do what the task says?

The behavioural judge compares what a program does with what the task's reference does, on several markets. The
language judge reads the program. Both verdicts are shown; neither stands in for the other.
"""

from __future__ import annotations

from tradeassay.code.judges.behaviour import check_expectations
from tradeassay.code.judges.language import JudgePrompts, LanguageJudgeConfig, judge_dialogue
from tradeassay.code.judges.verdict import BehaviourVerdict, Criterion, LanguageVerdict, MarketAgreement

__all__ = [
    "BehaviourVerdict",
    "Criterion",
    "JudgePrompts",
    "LanguageJudgeConfig",
    "LanguageVerdict",
    "MarketAgreement",
    "check_expectations",
    "judge_dialogue",
]
