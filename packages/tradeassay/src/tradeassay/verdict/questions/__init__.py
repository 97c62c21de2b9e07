"""The questions of a verdict, one module each, in their order.

Each function returns a verdict if it settles the case, and None otherwise. The first verdict is the
result.
"""

from __future__ import annotations

from collections.abc import Callable

from tradeassay.verdict.questions.benchmark import has_no_benchmark
from tradeassay.verdict.questions.cash import held_cash
from tradeassay.verdict.questions.costs import lost_it_to_costs
from tradeassay.verdict.questions.failed import failed
from tradeassay.verdict.questions.hidden_risk import hides_a_risk
from tradeassay.verdict.questions.look_ahead import saw_the_future
from tradeassay.verdict.questions.luck import is_not_distinguishable
from tradeassay.verdict.questions.market import followed_the_market
from tradeassay.verdict.questions.memory import remembered_the_period
from tradeassay.verdict.questions.skill import earned_it
from tradeassay.verdict.questions.style import leaned_to_styles
from tradeassay.verdict.questions.worse import did_worse_than_chance
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig

Question = Callable[[AgentFindings, VerdictConfig], Verdict | None]
"""Function that returns a verdict if it settles the case, otherwise None."""

QUESTIONS: tuple[Question, ...] = (
    failed,
    saw_the_future,
    held_cash,
    followed_the_market,
    remembered_the_period,
    hides_a_risk,
    has_no_benchmark,
    earned_it,
    lost_it_to_costs,
    did_worse_than_chance,
    leaned_to_styles,
)


def ask_all(account: AgentFindings, config: VerdictConfig) -> Verdict:
    """Evaluate the questions in order and return the first verdict."""
    for question in QUESTIONS:
        verdict = question(account, config)
        if verdict is not None:
            return verdict
    return is_not_distinguishable(account, config)
