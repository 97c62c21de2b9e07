"""Question: did the account hold cash?"""

from __future__ import annotations

from tradeassay.verdict._claims import holds_cash
from tradeassay.verdict._limits import answer_limits
from tradeassay.verdict._phrases import in_rows
from tradeassay.verdict.questions.common import opening
from tradeassay.verdict.record import LABELS, AgentFindings, Verdict, VerdictConfig


def cash_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *cash* if the account held only cash or has returns like cash, or None.

    Returns like cash earn no more than interest. The only limits are failed seeds and missing
    answers, because an agent without usable answers buys nothing.
    """
    if not holds_cash(account, config):
        return None
    cause = "it held cash" if account.total.value == 0.0 else "it moves as cash does"
    return Verdict(
        kind="cash",
        label="baseline" if account.baseline else LABELS["cash"],
        firm=True,
        sentence=in_rows(account, f"{opening(account)}: {cause}; nothing to judge."),
        limits=tuple(in_rows(account, limit) for limit in answer_limits(account, config)),
    )
