"""What thinking cost, and what is left of a return when it is paid for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import EpisodeSeries, significant
from tradeassay.play.dialogue_log import Spending, total
from tradeassay.runs.outcome import Outcome

NET_RETURN = "return_net_of_inference"
"""Last value less the dollars spent on answers / initial value - 1."""


class Inference(msgspec.Struct, frozen=True, kw_only=True):
    """Calls, tokens and dollars of a model, in all and per decision. ``usd`` is None when a price is unknown."""

    calls: int
    decisions: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    calls_per_decision: float | None
    tokens_per_decision: float | None
    usd_per_decision: float | None


def inference_of(outcomes: Sequence[Outcome]) -> Inference | None:
    """Return what the episodes of one agent took; None when no model played."""
    parts = [(one, spending) for one in outcomes if (spending := spending_of(one)) is not None]
    if not parts:
        return None
    decisions = sum(outcome.steps for outcome, _ in parts)
    spent = total(spending for _, spending in parts)
    usd = spent.known_usd
    return Inference(
        calls=spent.calls,
        decisions=decisions,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        usd=None if usd is None else significant(usd),
        calls_per_decision=_per(spent.calls, decisions),
        tokens_per_decision=_per(spent.tokens, decisions),
        usd_per_decision=None if usd is None else _per(usd, decisions),
    )


def spending_of(outcome: Outcome) -> Spending | None:
    """Return what an episode's model took; None when none played."""
    return None if isinstance(outcome.model, msgspec.UnsetType) else outcome.model.spending


def net_return(series: EpisodeSeries, outcome: Outcome, currency: str) -> Measure:
    """Return the return when the answers are paid from the account, or why it cannot be said.

    Dollars are taken at the end; a model's answers are not reinvested. Accounts in another currency would need an
    exchange rate, which is no part of the data.
    """
    if series.failure is not None:
        return not_scored(str(series.failure))
    spent = spending_of(outcome)
    if spent is None or not len(series.sessions) or not series.nav[0] > 0:
        return not_scored("no model played" if spent is None else "there is no return")
    usd = spent.known_usd
    if usd is None:
        return not_scored(f"the price of {spent.unpriced} of {spent.calls} answers is unknown")
    if usd > 0 and currency not in ("USD", "USDT", "USDC"):
        return not_scored(f"answers cost dollars, the account is in {currency}, and no exchange rate is known")
    value = (float(series.nav[-1]) - usd) / float(series.nav[0]) - 1.0
    return Measure(value=significant(value), n=len(series.sessions), note="no interval: a cost is no sample")


def _per(amount: float, decisions: int) -> float | None:
    return significant(amount / decisions) if decisions else None
