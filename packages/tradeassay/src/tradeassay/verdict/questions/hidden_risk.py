"""Question: is the account paid for a risk that its record does not show?"""

from __future__ import annotations

from tradeassay.core.measure import above
from tradeassay.verdict._claims import lacks_market, most_portfolios_did_better, too_good
from tradeassay.verdict._phrases import alpha_words, percent, skew_words
from tradeassay.verdict.evidence import gained
from tradeassay.verdict.interest import most_interest
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.questions.look_ahead import why_too_good
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig


def hidden_risk_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *hidden risk* if a return may be the reward for a hidden risk, or None.

    Only a table of returns with a significant alpha is tested. Without a benchmark, the Sharpe
    ratio must be significant, and only the second and third test are made. The first sign decides:

    1. The account loses when the market moves far or when volatility rises, like a seller of
       options.
    2. It is smoother than any audited record of liquid assets, or its alpha ratio is above
       ``too_good``.
    3. Its returns show signs of smoothing or invention: autocorrelation, missing small losses, or
       repeated digits.
    4. Its losses are so rare and large that alpha is not significant after correction for their
       skew (Johnson 1978).

    After the third and fourth sign, hidden risk is only suspected.
    """
    if account.method != "returns" or most_portfolios_did_better(account):
        return None
    smooth, options = account.smoothness, account.options
    if lacks_market(account):
        if smooth is None or not above(smooth.sharpe):
            return None
        return _smoothed(account, config)
    if not gained(account.known_alpha.tested, config.floor) and not too_good(account, config):
        return None
    if options is not None and options.like:
        return make_verdict(
            account, config, "hidden-risk", _option_words(account, config), firm=True
        )
    verdict = _smoothed(account, config)
    if verdict is not None:
        return verdict
    tail = account.tail
    if tail is None or not tail.rare_losses:
        return None
    words = skew_words(tail)
    skew = f" ({words})" if words else ""
    rare = f"its losses are rare and large{skew}, and a window with so few of them cannot tell"
    ending = f"; hidden risk is suspected: alpha of {alpha_words(account, config)}, but {rare}."
    return make_verdict(account, config, "hidden-risk", ending, firm=False)


_QUIET = 0.02
"""Largest annual volatility of a fund of bills or deposits."""


def _earns_interest(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether a record is as calm as a fund of bills, and earns no more than interest.

    Such a record is smooth because interest is smooth, not because it hides a risk.
    """
    annual_return = account.measures.get("annualised_return")
    volatility = account.measures.get("volatility")
    if annual_return is None or annual_return.value is None:
        return False
    if volatility is None or volatility.value is None:
        return False
    interest = most_interest(account.first, account.last, config)
    return annual_return.value <= interest and volatility.value <= _QUIET


def _smoothed(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *hidden risk* for a record that may be smoothed or invented, or None."""
    if _earns_interest(account, config):
        return None
    return _too_smooth(account, config) or _has_signs(account, config)


def _option_words(account: AgentFindings, config: VerdictConfig) -> str:
    """Return the end of the sentence about an account that moves like a seller of options."""
    options = account.options
    assert options is not None
    calm = "" if options.crash_in_record else "; no crash in the record"
    loss = ""
    if options.loss_at_20 is not None:
        loss = (
            " If the market falls 20 % in one day it would return about "
            f"{percent(options.loss_at_20)}."
        )
    alike = f"it moves as a seller of options does ({options.shape})"
    return f"; hidden risk: alpha of {alpha_words(account, config)}, and {alike}{calm}.{loss}"


def _too_smooth(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict for a record that is smoother than audited records, or None."""
    smooth = account.smoothness
    if not too_good(account, config) and (smooth is None or not smooth.too_smooth):
        return None
    why = why_too_good(account)
    if smooth is not None and (lacks_market(account) or not too_good(account, config)):
        # Without a benchmark there is no alpha, so the Sharpe ratio of the whole return is stated.
        why = f"a Sharpe ratio of {smooth.sharpe.value:.1f}, at least {smooth.sharpe.low:.1f}"
    causes = "losses that are not booked, options sold, and stale or made-up prices"
    ending = (
        f"; hidden risk: smoother than any audited record of liquid assets ({why}); look for "
        f"{causes}."
    )
    return make_verdict(account, config, "hidden-risk", ending, firm=True)


def _has_signs(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict for a record with signs of smoothing or invention, or None."""
    smooth = account.smoothness
    if smooth is None or not smooth.signs:
        return None
    signs = "; ".join(smooth.signs)
    ending = f"; hidden risk is suspected, because the record may be smoothed or made up: {signs}."
    return make_verdict(account, config, "hidden-risk", ending, firm=False)
