"""Question: is the account a passive portfolio?"""

from __future__ import annotations

from tradeassay.core.measure import below
from tradeassay.verdict._claims import is_passive
from tradeassay.verdict._phrases import part_of, part_words, spanned
from tradeassay.verdict.evidence import gained
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.record import AgentFindings, PassiveEvidence, Verdict, VerdictConfig

_LATE = 0.05
"""Share of the exposure in later rows above which a lag is reported."""


def market_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *market* if the market explains nearly all of the variance, or None.

    The remaining return must be insignificant, or smaller than the floor plus the income that the
    benchmark may exclude. For a table of returns the rest may be any loss, because leverage, fees
    and trading have costs.
    """
    if not is_passive(account, config):
        return None
    followed = account.passive
    if followed is None or followed.explained < config.tracks:
        market_part = part_words(account, part_of(account, "common"))
        shared = "it" if market_part is None else market_part
        ending = f", which is the market: {shared} came from what all names shared, "
        ending += "and what is left is too small to be called alpha."
        return make_verdict(account, config, "market", ending)
    ending = (
        f", which is the market: {_follows(followed)}, and {_beyond(account, followed, config)}."
    )
    return make_verdict(account, config, "market", ending)


def _follows(followed: PassiveEvidence) -> str:
    """Return a clause about the passive portfolio that the account follows."""
    late = " with a lag" if followed.lagged > _LATE else ""
    share = "" if abs(followed.beta - 1.0) < 0.1 else f", beta {followed.beta:.2f}"
    explained = f"{followed.explained:.1%} of its variance{share}"
    return f"it follows {followed.portfolio}{late} ({explained})"


def _beyond(account: AgentFindings, followed: PassiveEvidence, config: VerdictConfig) -> str:
    """Return a clause about the return beyond the passive portfolio, and its cause."""
    beyond, value = followed.beyond, followed.beyond.value or 0.0
    if beyond.value is None:
        return "its record is too short to say what is left beyond that"
    if (below(beyond) or beyond.low is None) and value <= -config.floor:
        rest = "what leverage, fees or trading cost"
    elif not gained(beyond, config.floor):
        rest = "too small or too uncertain to be called alpha"
    elif account.method == "returns" and config.dividends > 0.0:
        rest = "no more than dividends and interest, which a benchmark of prices leaves out"
    else:
        rest = "no more than interest on what was not invested"
    return f"{spanned(beyond)} a year beyond that is {rest}"
