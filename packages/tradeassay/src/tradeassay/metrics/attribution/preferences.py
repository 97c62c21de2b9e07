"""Mean exposure of an agent to every factor, and its agreement with the exposures of baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.attribution.decompose import DailyParts
from tradeassay.metrics.cosine import cosine_interval
from tradeassay.metrics.intervals import BootstrapConfig, rate_measure, too_few

_INVESTED = 1e-6
"""Smallest gross weight at which a day is an invested day."""


class SignAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Share of exposures with the same sign as the baselines' median exposure.

    ``overall`` is the share over all pairs of agent and factor, ``by_factor`` the share over
    agents. ``baseline`` is the median exposure of the baselines. A pair with an exposure of exactly
    0 is left out.
    """

    overall: Measure
    by_factor: dict[str, Measure]
    baseline: dict[str, float]


def preferences(
    daily: DailyParts | Sequence[DailyParts], *, bootstrap: BootstrapConfig | None = None
) -> dict[str, Measure]:
    """Return the mean z-exposure per factor and unit of gross weight on invested days.

    Several episodes (seeds) of one agent form one sample: their invested days are concatenated. The
    interval is the cosine one, at the level of ``bootstrap``. Exposures change slowly, and
    resampled blocks would give intervals that are too narrow. An agent that never held a covered
    name has no value.
    """
    bootstrap = bootstrap or BootstrapConfig()
    several = [daily] if isinstance(daily, DailyParts) else list(daily)
    factors = several[0].factors if several else ()
    rows: list[Floats] = [np.zeros((0, len(factors)))]
    for episode in several:
        share = np.nan_to_num(episode.covered_share) * episode.gross
        share = share if episode.funds is None else share - episode.funds
        invested = share > _INVESTED
        rows.append(episode.exposures[invested] / share[invested][:, None])
    held = np.concatenate(rows)
    n, level, least = len(held), bootstrap.level, bootstrap.least
    if n == 0:
        return dict.fromkeys(factors, not_scored("nothing that the factors cover was ever held"))
    means = {}
    for name, values in zip(factors, held.T.copy(), strict=True):
        if n < least:
            means[name] = too_few(float(values.mean()), n, bootstrap, "invested days")
            continue
        mean_exposure = cosine_interval(
            values, "mean", periods_per_year=1.0, level=level, least=least, rows_per_year=252
        )
        if mean_exposure.low is None:  # constant on every day, so it has no uncertainty
            same = {
                "low": mean_exposure.value,
                "high": mean_exposure.value,
                "note": "the same on every day",
            }
            mean_exposure = msgspec.structs.replace(mean_exposure, **same)
        means[name] = mean_exposure
    return means


def sign_agreement(
    agents: Sequence[Mapping[str, Measure]],
    baselines: Sequence[Mapping[str, Measure]],
    *,
    level: float = 0.95,
) -> SignAgreement:
    """Compare agents' :func:`preferences` with the preferences of factor-model baselines.

    The intervals are Wilson's. Factors are correlated and agents may be, so the interval of
    ``overall`` is too narrow. Its note says so.
    """
    factors = tuple(dict.fromkeys(name for preferred in baselines for name in preferred))
    middle: dict[str, float] = {}
    for name in factors:
        known = [
            preferred[name].value
            for preferred in baselines
            if name in preferred and preferred[name].value is not None
        ]
        if known:
            middle[name] = float(np.median(np.array(known, dtype=np.float64)))
    counted: dict[str, tuple[int, int]] = {}
    for name, side in middle.items():
        values = [preferred[name].value for preferred in agents if name in preferred]
        signs = [float(np.sign(value) * np.sign(side)) for value in values if value is not None]
        counted[name] = (signs.count(1.0), signs.count(1.0) + signs.count(-1.0))
    nothing = "no agent and no baseline lean to a side"
    by_factor = {
        name: rate_measure(same, pairs, nothing=nothing, level=level)
        for name, (same, pairs) in counted.items()
    }
    same, pairs = (sum(count[k] for count in counted.values()) for k in (0, 1))
    overall = rate_measure(same, pairs, nothing=nothing, level=level)
    if overall.value is not None:
        note = f"{overall.note}, as if factors and agents were independent"
        overall = msgspec.structs.replace(overall, note=note)
    return SignAgreement(overall=overall, by_factor=by_factor, baseline=middle)
