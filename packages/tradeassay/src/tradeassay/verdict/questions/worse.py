"""Question: is the account worse than chance?"""

from __future__ import annotations

from tradeassay.core.measure import below
from tradeassay.verdict._claims import allowed_share
from tradeassay.verdict._phrases import alpha_words, style_known, tries_words
from tradeassay.verdict.questions.common import make_verdict, seller_words
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig


def worse_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *worse* if alpha is below zero after correction for all tries, or None.

    The loss must be at least the floor, and luck's worst try must not look the same. If there are
    random portfolios, only a few may have done as badly.
    """
    alpha = account.known_alpha
    if not alpha.survives_below or (alpha.tested.value or 0.0) > -config.floor:
        return None
    rarely = account.luck.p_low
    if rarely is not None and rarely > allowed_share(account, config):
        return None
    yearly = f"alpha of {alpha_words(account, config)}"
    beyond = f"worse than {tries_words(account).replace('best', 'worst')}"
    if account.method == "returns":
        label = None if style_known(account, config) else "behind the market"
        ending = f"; it fell behind: {yearly}, {beyond}{seller_words(account)}."
        return make_verdict(account, config, "worse", ending, label=label)
    cause = "what it chose and what it paid for trading"
    if below(alpha.gross):
        cause = "the names that it chose"
    share = account.luck.percentile.value
    chance = ""
    if share is not None:
        chance = f"; only {share:.1%} of random portfolios with the same trades did worse"
    return make_verdict(
        account, config, "worse", f"; it lost by {cause}: {yearly}, {beyond}{chance}."
    )
