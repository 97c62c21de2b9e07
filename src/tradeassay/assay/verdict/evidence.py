"""From daily parts to what a verdict is made from. Pure functions over arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np

from tradeassay.assay.attribution_record import Attribution
from tradeassay.assay.verdict.config import VerdictConfig
from tradeassay.assay.verdict.record import AgentFindings, Edge
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics import BootstrapConfig, long_run_variance, significant, studentised_interval
from tradeassay.metrics.attribution import Totals, total_parts
from tradeassay.metrics.bootstrap import choose_block

MOST_DRAWS = 10_000
_IN_TAIL = 5
"""Resamples that should lie beyond the quantile of an interval for it to mean something."""
EDGE = "edge"
"""The row that skill would show in: selection + trading."""


def rows_of_seeds(found: Sequence[Attribution]) -> dict[str, Floats]:
    """Return daily parts of an account that holds all seeds in equal parts, and their sum ``edge``.

    All must have the same sessions. A part that a seed does not have is 0 there.
    """
    names: dict[str, None] = {}
    each = []
    for one in found:
        daily = one.daily
        rows = {
            "total": np.array(daily.total),
            "common": np.array(daily.common),
            "style": np.sum([np.array(v) for v in daily.style.values()], axis=0)
            if daily.style
            else np.zeros(len(daily.sessions)),
            "selection": np.array(daily.selection),
            "trading": np.array(daily.trading),
        }
        rows |= {f"style.{name}": np.array(values) for name, values in daily.style.items()}
        rows |= {f"trading.{name}": np.array(values) for name, values in daily.trading_parts.items()}
        each.append(rows)
        names |= dict.fromkeys(rows)
    nothing = np.zeros(len(found[0].daily.sessions))
    mean = {name: np.mean([rows.get(name, nothing) for rows in each], axis=0) for name in names}
    mean[EDGE] = mean["selection"] + mean["trading"]
    return mean


def totals_of(rows: Mapping[str, Floats], year: int, bootstrap: BootstrapConfig) -> Totals:
    """Return the linked and yearly parts with intervals."""
    return total_parts(rows, periods_per_year=year, bootstrap=bootstrap)


def edge_of(rows: Mapping[str, Floats], year: int, config: VerdictConfig, comparisons: int) -> Edge:
    """Test what is left after market and style."""
    plain = BootstrapConfig(level=config.level, draws=config.draws, least=config.least)
    edge = rows[EDGE]
    return Edge(
        per_year=studentised_interval(edge, "mean", periods_per_year=year, bootstrap=plain),
        tested=tested(edge, year, config, comparisons),
        ratio=studentised_interval(edge, "sharpe", periods_per_year=year, bootstrap=plain),
        gross=tested(rows["selection"], year, config, comparisons),
        comparisons=comparisons * config.trials,
    )


def tested(daily: Floats, year: int, config: VerdictConfig, comparisons: int) -> Measure:
    """Return a yearly mean with the interval that allows for the number of comparisons.

    Studentised resamples, as many as its tails need; where that would be more than :data:`MOST_DRAWS`, the normal
    quantile of the long-run standard error instead. An account that never moves has no interval.
    """
    if daily.size < 2:
        return not_scored("fewer than two sessions")
    if not np.ptp(daily) > 0.0:
        return Measure(value=significant(float(daily[0]) * year), n=daily.size, note="no interval: it never moves")
    tail = config.tail(comparisons)
    draws = max(config.draws, math.ceil(_IN_TAIL / tail))
    level = 1.0 - 2.0 * tail
    if draws <= MOST_DRAWS or daily.size < config.least:
        bootstrap = BootstrapConfig(level=level, draws=min(draws, MOST_DRAWS), least=config.least)
        return studentised_interval(daily, "mean", periods_per_year=year, bootstrap=bootstrap)
    centred = daily - daily.mean()
    block = choose_block(centred, BootstrapConfig())
    lags = min(daily.size - 1, round(block) if block > 1.0 else 0)
    error = math.sqrt(float(long_run_variance(centred, lags)) / daily.size)
    reach = NormalDist().inv_cdf(1.0 - tail) * error
    value = float(daily.mean())
    return Measure(
        value=significant(value * year),
        low=significant((value - reach) * year),
        high=significant((value + reach) * year),
        level=level,
        n=daily.size,
        note="normal interval: too many comparisons to resample",
    )


def variances(rows: Mapping[str, Floats]) -> tuple[float | None, float | None]:
    """Return the share of style in the variance of what is not market, and the share of that in the whole.

    None where nothing moved. Style and edge are weighed by their own variances, so that both shares lie in 0..1.
    """
    style, edge, common = (float(np.var(rows[name])) for name in ("style", EDGE, "common"))
    active = style + edge
    if not active + common > 0.0:
        return None, None
    return (style / active if active > 0.0 else None), active / (active + common)


def above(measure: Measure) -> bool:
    """Return whether a measure's interval lies above zero; one without an interval never does."""
    return measure.value is not None and measure.low is not None and measure.low > 0.0


def below(measure: Measure) -> bool:
    """Return whether a measure's interval lies below zero."""
    return measure.value is not None and measure.high is not None and measure.high < 0.0


def leaning(found: AgentFindings, config: VerdictConfig) -> list[tuple[str, float]]:
    """Return the factors an agent leans to, the strongest first, when style makes up enough of what it did."""
    if found.style_variance is None or found.style_variance < config.style_variance:
        return []
    strong = [
        (name, measure.value)
        for name, measure in found.exposures.items()
        if measure.value is not None
        and abs(measure.value) >= config.exposure
        and (above(measure) or below(measure) or found.method == "returns")
    ]
    return sorted(strong, key=lambda pair: -abs(pair[1]))
