"""Question: is there a benchmark?"""

from __future__ import annotations

from tradeassay.verdict._claims import lacks_market
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig


def no_benchmark_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *no benchmark* for a table of returns without a benchmark, or None.

    Without a market, skill and market exposure look the same.
    """
    if not lacks_market(account):
        return None
    why = account.market.reason or "no benchmark is given"
    ending = (
        f", and {why}: give a market's returns (--benchmark) or a data set (--dataset) to judge it."
    )
    return make_verdict(account, config, "no-benchmark", ending)
