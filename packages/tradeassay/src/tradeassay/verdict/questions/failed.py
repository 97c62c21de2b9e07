"""Did it fail?"""

from __future__ import annotations

from tradeassay.verdict.record import LABELS, AgentFindings, Verdict, VerdictConfig


def failed(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """An account without a result failed. It is never a return of zero."""
    if account.failure is None and account.alpha is not None and account.total.value is not None:
        return None
    why = account.failure or str(account.total.reason)
    return Verdict(
        kind="failed",
        label=LABELS["failed"],
        firm=True,
        sentence=f"{account.agent} has no result: {why}.",
    )
