"""From daily parts, luck, masks, leak tests and confidences to what a verdict is made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.assay.attribution import Attribution
from tradeassay.assay.leaks.examine import leak_test
from tradeassay.assay.leaks.records import LeakTestConfig, LeakTestReport
from tradeassay.assay.luck.luck import Luck
from tradeassay.assay.verdict.record import (
    AgentFindings,
    Edge,
    LuckEvidence,
    MemoryEvidence,
    VerdictConfig,
)
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics import (
    BootstrapConfig,
    long_run_variance,
    significant,
    studentised_interval,
)
from tradeassay.metrics.attribution import MAIN, Totals, total_parts
from tradeassay.metrics.bootstrap import choose_block

if TYPE_CHECKING:
    from pathlib import Path

    from tradeassay.assay.memory.records import MemoryContrast
    from tradeassay.runs import Run

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


def luck_evidence(each: Sequence[Luck]) -> LuckEvidence:
    """Return several seeds' luck as one."""
    placed = sorted(
        (one.place for one in each if one.place is not None), key=lambda place: place.percentile.value or 0.0
    )
    if not placed:
        return LuckEvidence(percentile=not_scored(str(each[0].reason) if each else "nothing was played"), p=None)
    # With an even number of seeds the worse of the two in the middle: a bound must not be the lucky one's.
    middle = placed[(len(placed) - 1) // 2]
    done_as_well = round((middle.by_luck.value or 0.0) * middle.portfolios)
    p = (done_as_well + 1) / (middle.portfolios + 1)
    return LuckEvidence(
        percentile=middle.percentile,
        p=min(1.0, p if len(placed) == 1 else 2.0 * p),
        portfolios=middle.portfolios,
        quantiles=middle.quantiles,
    )


BRIGHT = "bright"
_SHOWN = (*MAIN, EDGE)


def memory_evidence(
    bright: Mapping[str, Floats],
    masked: Mapping[str, Floats],
    year: int,
    config: VerdictConfig,
    *,
    against: str,
    comparisons: int = 1,
) -> MemoryEvidence:
    """Return the contrast of daily parts with those of the same agent under a mask, session by session."""
    parts = {name: tested(bright[name] - masked[name], year, config, 1) for name in _SHOWN}
    return MemoryEvidence(
        against=against,
        gap=parts[EDGE],
        masked=tested(masked[EDGE], year, config, comparisons),
        parts=parts,
    )


def no_memory(reason: str) -> MemoryEvidence:
    """Return that there is no contrast, and why."""
    return MemoryEvidence(against=None, gap=not_scored(reason), masked=not_scored(reason), reason=reason)


def contrast_of(run: Run, masks: Iterable[str | None], config: VerdictConfig) -> MemoryContrast | None:
    """Return what masks say over all windows of the run; None where none was run."""
    if all(mask in (None, BRIGHT) for mask in masks):
        return None
    from tradeassay.assay.memory.contrast import memory_contrast
    from tradeassay.assay.memory.records import MemoryConfig

    try:
        return memory_contrast(run, config=MemoryConfig(level=config.level, draws=config.draws))
    except UserError:  # no masked episode has a result: the rows say so themselves
        return None


def with_contrast(found: AgentFindings, contrast: MemoryContrast | None, mode: str | None) -> AgentFindings:
    """Return findings with what the contrast over all windows says about the agent."""
    memory = found.memory
    if memory is None or memory.against is None or contrast is None:
        return found
    gap = contrast.gap_of(found.agent, masked=memory.against, mode=mode)
    said = "" if gap is None else gap.sentence
    doubted = contrast.controls_hold is False
    return msgspec.structs.replace(found, memory=msgspec.structs.replace(memory, sentence=said, doubted=doubted))


def leak_tests(
    run: Run, *, agents: Sequence[str] = (), config: LeakTestConfig | None = None, home: Path | None = None
) -> dict[str, LeakTestReport]:
    """Return a leak test of every rule of a run (or of some agents), in the first cell that it played.

    Models are left out: testing one asks it again, which costs money and is decided on its own
    (:func:`~tradeassay.assay.leaks.examine.leak_test`).
    """
    found: dict[str, LeakTestReport] = {}
    for episode in run.episodes:
        if episode.by_model or episode.label in found or (agents and episode.label not in agents):
            continue
        found[episode.label] = leak_test(
            episode.agent.name,
            run.manifest.benchmark(episode),
            run.snapshot(episode.key),
            params=episode.agent.params,
            config=config,
            home=home,
        )
    return found
