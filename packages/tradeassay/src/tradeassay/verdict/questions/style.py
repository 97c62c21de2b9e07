"""Question: is the result a style?"""

from __future__ import annotations

from tradeassay.verdict._phrases import alpha_size, leans, part_of, part_words
from tradeassay.verdict.evidence import leaning
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.questions.luck import too_short_words, why_no_alpha
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig

_MOST = 0.5
"""Minimum share of style in the variance beyond the market for being its main cause."""


def style_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *style* if style exposures explain the account best, or None.

    Style must explain at least half of the variance beyond the market, or a larger return than
    selection and trading together.
    """
    if not leaning(account, config):
        return None
    variance_share = account.style_variance or 0.0
    style = part_of(account, "style")
    rest = (part_of(account, "selection") or 0.0) + (part_of(account, "trading") or 0.0)
    if variance_share < _MOST and abs(style or 0.0) <= abs(rest):
        return None
    share = f"{variance_share:.0%}: {leans(account, config)}"
    what = f"most of what moves it apart from the market is style ({share})"
    style_words, rest_words = part_words(account, style), part_words(account, rest)
    if style_words is not None:
        what += f", which brought {style_words}"
    if variance_share < _MOST:
        others = (
            "what is unexplained"
            if account.method == "returns"
            else "selection and trading together"
        )
        what = f"style ({leans(account, config)}) brought more than {others}"
        if style_words is not None and rest_words is not None:
            what += f": {style_words}, and {rest_words}"
    against = why_no_alpha(account, config)
    doubt = f"is not distinguishable from luck{too_short_words(account)}"
    if against is not None:
        doubt = f"may be luck: {against}"
    ending = f"; {what}; the rest, {alpha_size(account)}, {doubt}."
    return make_verdict(account, config, "style", ending)
