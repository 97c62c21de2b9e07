"""What an agent likes: its mean exposure to every factor, and whether it leans the way factor models lean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.attribution.decompose import DailyParts
from tradeassay.metrics.cosine import cosine_interval
from tradeassay.metrics.intervals import BootstrapConfig, rate_measure, too_few

INVESTED = 1e-6
"""Gross weight from which a day counts as invested."""


class SignAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How often exposures have the sign of the baselines' median exposure.

    ``overall`` is over all pairs of agent and factor, ``by_factor`` over agents. ``baseline`` is that median. A
    pair in which either side is exactly 0 is left out.
    """

    overall: Measure
    by_factor: dict[str, Measure]
    baseline: dict[str, float]


def preferences(
    daily: DailyParts | Sequence[DailyParts], *, bootstrap: BootstrapConfig | None = None
) -> dict[str, Measure]:
    """Return the mean z-exposure per factor on invested days, per unit of gross weight, with intervals.

    Several episodes (seeds) of one agent are one sample: their invested days are strung together. The interval is
    the cosine one, at the level of ``bootstrap``: exposures change slowly, and resampled blocks would be too sure
    of them. No value for an agent that never held a covered name.
    """
    bootstrap = bootstrap or BootstrapConfig()
    several = [daily] if isinstance(daily, DailyParts) else list(daily)
    factors = several[0].factors if several else ()
    rows = [_on_invested_days(one) for one in several]
    held = np.concatenate(rows) if rows else np.zeros((0, 0))
    if held.shape[0] == 0:
        return {name: not_scored("nothing that the factors cover was ever held") for name in factors}
    return {name: _mean(held[:, k].copy(), bootstrap) for k, name in enumerate(factors)}


def sign_agreement(
    agents: Sequence[Mapping[str, Measure]], baselines: Sequence[Mapping[str, Measure]], *, level: float = 0.95
) -> SignAgreement:
    """Compare agents' :func:`preferences` with those of (factor-model) baselines; intervals are Wilson's.

    Factors are related and agents may be, so the interval of ``overall`` is narrower than the truth; its note
    says so.
    """
    factors = tuple(dict.fromkeys(name for one in baselines for name in one))
    middle: dict[str, float] = {}
    for name in factors:
        known = [one[name].value for one in baselines if name in one and one[name].value is not None]
        if known:
            middle[name] = float(np.median(np.array(known, dtype=np.float64)))
    counted = {name: _same_signs(name, side, agents) for name, side in middle.items()}
    nothing = "no agent and no baseline lean to a side"
    by_factor = {
        name: rate_measure(same, pairs, nothing=nothing, level=level) for name, (same, pairs) in counted.items()
    }
    same, pairs = (sum(count[k] for count in counted.values()) for k in (0, 1))
    overall = rate_measure(same, pairs, nothing=nothing, level=level)
    if overall.value is not None:
        note = f"{overall.note}, as if factors and agents were independent"
        overall = msgspec.structs.replace(overall, note=note)
    return SignAgreement(overall=overall, by_factor=by_factor, baseline=middle)


def _on_invested_days(daily: DailyParts) -> Floats:
    share = np.nan_to_num(daily.covered_share) * daily.gross
    if daily.funds is not None:
        share = share - daily.funds
    invested = share > INVESTED
    held: Floats = daily.exposures[invested] / share[invested][:, None]
    return held


def _mean(values: Floats, config: BootstrapConfig) -> Measure:
    n = values.size
    if n < config.least:
        return too_few(float(values.mean()), n, config, "invested days")
    found = cosine_interval(values, "mean", periods_per_year=1.0, level=config.level, least=config.least)
    if found.low is None:  # the same on every day: nothing about it is uncertain
        return msgspec.structs.replace(found, low=found.value, high=found.value, note="the same on every day")
    return found


def _same_signs(name: str, side: float, agents: Sequence[Mapping[str, Measure]]) -> tuple[int, int]:
    values = [one[name].value for one in agents if name in one]
    signs = [np.sign(value) * np.sign(side) for value in values if value is not None]
    pairs = [sign for sign in signs if sign != 0]
    return sum(sign > 0 for sign in pairs), len(pairs)
