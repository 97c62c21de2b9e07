"""Question: did the account use future data?"""

from __future__ import annotations

from tradeassay.verdict._claims import is_memory, surely_memory, too_good
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.record import AgentFindings, Verdict, VerdictConfig


def look_ahead_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *look-ahead* if the account used future data, or None.

    Look-ahead is certain if the leak test found a channel. With known holdings it is suspected if
    even the lower end of the alpha ratio is above ``too_good``, or if alpha is the same on every
    session. If a mask removes such an alpha, the verdict is memory. For a table of returns the
    verdict is hidden risk, because a smooth record has other causes as well.
    """
    channels = account.leaks.findings
    if channels:
        seen = ", ".join(channels[:3])
        ending = f", but it saw the future ({seen}): the result is void."
        return make_verdict(account, config, "look-ahead", ending, firm=True)
    if account.method == "returns" or not too_good(account, config):
        return None
    if surely_memory(account, "alpha") and is_memory(account, "alpha", config):
        return None
    ending = (
        f", too good to be believed ({why_too_good(account)}): look for {_causes(account)} "
        "before anything else."
    )
    return make_verdict(account, config, "look-ahead", ending, firm=False)


def why_too_good(account: AgentFindings) -> str:
    """Return the implausibly high alpha ratio as text, or that alpha never changes."""
    ratio = account.known_alpha.ratio
    if ratio.low is None:
        return "beyond the market it earns the same on every session"
    return f"an alpha ratio of {ratio.value:.1f}, at least {ratio.low:.1f}"


def _causes(account: AgentFindings) -> str:
    """Return the possible causes of an implausible alpha as text."""
    if account.known_alpha.ratio.low is None:
        return "look-ahead or made-up figures"
    return "look-ahead"
