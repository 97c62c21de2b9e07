"""Question: did costs consume the return?"""

from __future__ import annotations

from tradeassay.core.measure import above, below
from tradeassay.verdict._claims import costs_ate_alpha
from tradeassay.verdict._phrases import spanned
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig


def costs_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *costs* if costs removed a significant alpha or caused a loss, or None.

    Costs must be at least half of the alpha before costs, or more than half of the loss, and at
    least the floor. A loss counts only if alpha before costs is not significant. Costs are known
    exactly, so only the return before costs is tested. The move between a fill and the close is not
    a cost.
    """
    alpha = account.known_alpha
    if costs_ate_alpha(account, config):
        assert alpha.costs is not None
        taken = f"they took {abs(alpha.costs.value or 0.0):.1%}"
        left = f"{spanned(alpha.tested)} is left"
        earned = f"it earned {spanned(alpha.gross)} a year before costs"
        ending = f"; costs ate its alpha: {earned}, {taken}, and {left}."
        return make_verdict(account, config, "costs", ending)
    loss = below(alpha.tested) and (alpha.tested.value or 0.0) <= -config.floor
    if not loss or below(alpha.gross) or above(alpha.gross):
        return None
    if not alpha.most_of_loss or not alpha.costly(config):
        return None
    assert alpha.costs is not None
    before = f"before costs it is not distinguishable from luck ({spanned(alpha.gross)} a year)"
    paid = f"they are {abs(alpha.costs.value or 0.0):.1%} a year"
    return make_verdict(account, config, "costs", f"; costs took it: {before}, {paid}.")
