"""Question: is the result a style?"""

from __future__ import annotations

from tradeassay.verdict._phrases import alpha_size, leans, part_of, part_words
from tradeassay.verdict.evidence import leaning
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.questions.luck import too_short_words, why_no_alpha
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig

_MOST = 0.5
"""Share of active variance above which style is the main cause of an account's moves."""


def style_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *style* if styles moved the account, or paid, more than its names did."""
    if not leaning(account, config):
        return None
    moved = account.style_variance or 0.0
    style = part_of(account, "style")
    own = (part_of(account, "selection") or 0.0) + (part_of(account, "trading") or 0.0)
    if moved < _MOST and abs(style or 0.0) <= abs(own):
        return None
    share = f"{moved:.0%}: {leans(account, config)}"
    what = f"most of what moves it apart from the market is style ({share})"
    brought, rest_brought = part_words(account, style), part_words(account, own)
    if brought is not None:
        what += f", which brought {brought}"
    if moved < _MOST:
        others = (
            "what is unexplained"
            if account.method == "returns"
            else "selection and trading together"
        )
        what = f"style ({leans(account, config)}) brought more than {others}"
        if brought is not None and rest_brought is not None:
            what += f": {brought}, and {rest_brought}"
    against = why_no_alpha(account, config)
    rest = f"is not distinguishable from luck{too_short_words(account)}"
    if against is not None:
        rest = f"may be luck: {against}"
    said = f"; {what}; the rest, {alpha_size(account)}, {rest}."
    return make_verdict(account, config, "style", said)
