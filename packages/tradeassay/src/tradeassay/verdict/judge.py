"""Judge an account: derive its verdict and its statements from the findings."""

from __future__ import annotations

import msgspec

from tradeassay.verdict.questions import first_verdict
from tradeassay.verdict.record import AgentAssay, AgentFindings, VerdictConfig
from tradeassay.verdict.statements import statements_of


def judge(account: AgentFindings, config: VerdictConfig) -> AgentAssay:
    """Return the findings with the verdict and the statements about all numbers."""
    verdict = first_verdict(account, config)
    statements = statements_of(account, verdict, config)
    return AgentAssay(**msgspec.structs.asdict(account), verdict=verdict, statements=statements)
