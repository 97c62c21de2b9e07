"""Question: did the account fail?"""

from __future__ import annotations

from tradeassay.verdict.record import LABELS, AgentFindings, Verdict, VerdictConfig


def failed_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *failed* if the account has no result, or None."""
    if account.failure is None and account.alpha is not None and account.total.value is not None:
        return None
    why = account.failure or str(account.total.reason)
    return Verdict(
        kind="failed",
        label=LABELS["failed"],
        firm=True,
        sentence=f"{account.agent} has no result: {why}.",
    )
