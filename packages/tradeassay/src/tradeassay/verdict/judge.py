"""Turn the findings about an account into its verdict and its statements."""

from __future__ import annotations

import msgspec

from tradeassay.verdict.questions import ask_all
from tradeassay.verdict.record import AgentAssay, AgentFindings, VerdictConfig
from tradeassay.verdict.statements import statements_of


def judge(account: AgentFindings, config: VerdictConfig) -> AgentAssay:
    """Return an account's verdict with a statement for every number behind it."""
    verdict = ask_all(account, config)
    statements = statements_of(account, verdict, config)
    return AgentAssay(**msgspec.structs.asdict(account), verdict=verdict, statements=statements)
