"""The questions that lead to a verdict, one module each.

The function of a question returns a verdict if the question settles the case, and None otherwise.
The first verdict is the result.
"""

from __future__ import annotations

from collections.abc import Callable

from tradeassay.verdict.questions.benchmark import no_benchmark_verdict
from tradeassay.verdict.questions.cash import cash_verdict
from tradeassay.verdict.questions.costs import costs_verdict
from tradeassay.verdict.questions.failed import failed_verdict
from tradeassay.verdict.questions.hidden_risk import hidden_risk_verdict
from tradeassay.verdict.questions.look_ahead import look_ahead_verdict
from tradeassay.verdict.questions.luck import luck_verdict
from tradeassay.verdict.questions.market import market_verdict
from tradeassay.verdict.questions.memory import memory_verdict
from tradeassay.verdict.questions.skill import skill_verdict
from tradeassay.verdict.questions.style import style_verdict
from tradeassay.verdict.questions.worse import worse_verdict
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig

Question = Callable[[AgentFindings, VerdictConfig], Verdict | None]
"""Function that returns a verdict if its question settles the case, and None otherwise."""

QUESTIONS: tuple[Question, ...] = (
    failed_verdict,
    look_ahead_verdict,
    cash_verdict,
    market_verdict,
    memory_verdict,
    hidden_risk_verdict,
    no_benchmark_verdict,
    skill_verdict,
    costs_verdict,
    worse_verdict,
    style_verdict,
)


def first_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict:
    """Return the verdict of the first question that settles the case.

    If no question settles the case, the account is not distinguishable from luck.
    """
    for question in QUESTIONS:
        verdict = question(account, config)
        if verdict is not None:
            return verdict
    return luck_verdict(account, config)
