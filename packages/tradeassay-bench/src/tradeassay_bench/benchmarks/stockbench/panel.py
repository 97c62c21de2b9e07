"""Compute the measures of a StockBench run: panel, error profile, and published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Convention, Measure, not_scored
from tradeassay.metrics import (
    EpisodeSeries,
    SeedSummary,
    cumulative_return,
    max_drawdown,
    rate_measure,
    series_from_nav,
    significant,
    sortino,
    sortino_stockbench,
    summarise,
)
from tradeassay.metrics.ranks import places
from tradeassay_bench.benchmarks.exhibits import Published, load_published, unmet_conditions
from tradeassay_bench.benchmarks.stockbench.day import MISTAKES
from tradeassay_bench.benchmarks.stockbench.specs import DJIA_20
from tradeassay_bench.benchmarks.stockbench.stockbench_config import Inputs
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.play import Market, MarketConfig

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot


NOTES = frozenset(("context_cut", "no_target_shares"))
"""Kinds of failures that are notes rather than mistakes."""


class ErrorProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of sessions with mistakes, with Wilson intervals.

    - ``schema``, ``arithmetic``, ``liquidity``: at least one answer was refused for this reason,
      even if a later answer was accepted.
    - ``give_up``: all attempts were refused.
    - ``unanswered``: the session failed because the model returned no answer.
    - ``context_cut``: a prompt was shortened.

    ``refused`` is the number of refused answers by kind. A session may have several.
    """

    sessions: int
    schema: Measure
    arithmetic: Measure
    liquidity: Measure
    give_up: Measure
    unanswered: Measure
    context_cut: Measure
    refused: dict[str, int]


def error_profile(records: Iterable[StepRecord]) -> ErrorProfile:
    """Return the error profile of recorded sessions."""
    decisions = [record.decision for record in records]
    kinds = [[failure.kind for failure in decision.failures] for decision in decisions]
    counts = {
        kind: sum(kind in session_kinds for session_kinds in kinds)
        for kind in (*MISTAKES, "give_up", "context_cut")
    }
    counts["unanswered"] = sum(
        decision.status == "failed" and "give_up" not in session_kinds
        for decision, session_kinds in zip(decisions, kinds, strict=True)
    )
    return ErrorProfile(
        sessions=len(decisions),
        refused={
            kind: sum(session_kinds.count(kind) for session_kinds in kinds) for kind in MISTAKES
        },
        **{
            kind: rate_measure(n, len(decisions), nothing="no session was played")
            for kind, n in counts.items()
        },
    )


FIRST, LAST = "2025-03-03", "2025-06-30"
"""The first and last day of the published numbers."""


class StockbenchFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published number, as a fraction.

    A ``frictionless`` number excludes costs and dividends, unlike all our agents.
    """

    who: str
    measure: str
    value: float
    where: str
    inputs: Inputs
    frictionless: bool = False


class StockbenchSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting of one of our results.

    Only results of :func:`frictionless_equal_weight` are ``frictionless``.
    """

    data: Literal["real", "synthetic"]
    symbols: tuple[str, ...]
    first: str
    last: str
    convention: Convention
    inputs: Inputs = "all"
    has_news: bool = True
    has_fundamentals: bool = True
    frictionless: bool = False


@cache
def published() -> Published[StockbenchFigure]:
    """Return the numbers published in the paper."""
    return msgspec.convert(load_published("stockbench"), Published[StockbenchFigure])


def compare_with(figure: StockbenchFigure, ours: StockbenchSetting) -> tuple[str, ...]:
    """Return all reasons why one of our results is not comparable with a published number.

    The tuple is empty if the result is comparable.
    """
    wants_news = not figure.frictionless and figure.inputs in ("all", "no-fundamentals")
    wants_figures = not figure.frictionless and figure.inputs in ("all", "no-news")
    checks = (
        (ours.data == "real", "our data is synthetic"),
        (set(ours.symbols) == set(DJIA_20), "our names are not the paper's twenty"),
        ((ours.first, ours.last) == (FIRST, LAST), f"the figure is for {FIRST} to {LAST}"),
        (
            ours.convention == "paper",
            "our convention is 'corrected': known errors of the paper are removed",
        ),
        (figure.inputs == ours.inputs, f"the figure is for the inputs '{figure.inputs}'"),
        (not wants_news or ours.has_news, "our data has no news"),
        (not wants_figures or ours.has_fundamentals, "our data has no fundamentals"),
        (figure.frictionless or not ours.frictionless, "our result is without costs and dividends"),
        (ours.frictionless or not figure.frictionless, "the figure is without costs and dividends"),
    )
    return unmet_conditions(checks)


PANEL = ("cumulative_return", "max_drawdown", "sortino")
"""The measures of the composite. Greater is better for each, because drawdowns are negative."""


class CohortStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one agent in a cohort.

    The three measures are means over seeds. ``composite`` is the mean of their z-scores within the
    cohort. ``rank`` starts at 1 for the best agent, and equal agents share the better rank. An
    agent that lacks a measure has no composite and no rank. ``unranked`` is the reason why an agent
    is not ranked. Such an agent is not part of the cohort.
    """

    label: str
    cumulative_return: Measure
    max_drawdown: Measure
    sortino: Measure
    composite: Measure
    rank: int | None
    seeds: int
    unranked: str | None = None


class SizeRow(msgspec.Struct, frozen=True, kw_only=True):
    """Returns over seeds in a universe of ``size`` names.

    ``variation`` is the coefficient of variation: the standard deviation over abs(mean).
    """

    size: int
    returns: SeedSummary
    variation: Measure


def measures_of(series: EpisodeSeries, convention: Convention) -> dict[str, Measure]:
    """Return the three measures of an episode.

    The Sortino ratio is annualised under ``corrected``, and follows the reference under ``paper``.
    """
    if series.failure is not None:
        return dict.fromkeys(PANEL, not_scored(series.failure))
    if series.ruined is not None:
        return dict.fromkeys(PANEL, not_scored(f"the account was worth nothing on {series.ruined}"))
    returns = series.returns
    ratio = (
        sortino_stockbench(returns)
        if convention == "paper"
        else sortino(returns, series.periods_per_year)
    )
    return {
        "cumulative_return": _measure(cumulative_return(series.nav), "the path has no return"),
        "max_drawdown": _measure(max_drawdown(series.nav), "the path has no drawdown"),
        "sortino": _measure(ratio, "too few losing sessions for a downside"),
    }


def z_scores(values: Sequence[float]) -> list[float]:
    """Return (value - mean) / standard deviation (ddof 0), or zeros if all values are equal."""
    array = np.asarray(values, dtype=np.float64)
    off = array - array.mean()
    spread = math.sqrt(float((off * off).mean()))
    if spread <= 1e-12 * float(np.abs(array).max(initial=0.0)):
        return [0.0] * len(values)
    return [float(value) for value in off / spread]


def composite(cohort: Sequence[tuple[float, float, float]]) -> list[float]:
    """Return each member's mean z-score over (cumulative return, -abs(max drawdown), Sortino)."""
    columns = [
        z_scores([member[0] for member in cohort]),
        z_scores([-abs(member[1]) for member in cohort]),
        z_scores([member[2] for member in cohort]),
    ]
    return [math.fsum(scores) / 3.0 for scores in zip(*columns, strict=True)]


def standings(
    cohort: Mapping[str, Sequence[EpisodeSeries]],
    convention: Convention,
    unranked: Mapping[str, str | None] | None = None,
) -> tuple[CohortStanding, ...]:
    """Return the standings of all agents, best first. Agents without a composite come last.

    ``unranked`` maps excluded agents to the reason.
    """
    left_out = {label: why for label, why in (unranked or {}).items() if why is not None}
    means: dict[str, list[Measure]] = {}
    for label, episodes in cohort.items():
        each = [measures_of(series, convention) for series in episodes]
        means[label] = [_mean([measures[name] for measures in each]) for name in PANEL]
    scored: dict[str, tuple[float, float, float]] = {}
    for label, (gain, fall, ratio) in means.items():
        if label in left_out:
            continue
        if gain.value is not None and fall.value is not None and ratio.value is not None:
            scored[label] = (gain.value, fall.value, ratio.value)
    totals = (
        dict(zip(scored, composite(list(scored.values())), strict=True)) if len(scored) > 1 else {}
    )
    ranks = dict(zip(totals, places(list(totals.values())), strict=True))
    cohort_standings = []
    for label, episodes in cohort.items():
        if label in left_out:
            total = not_scored("not ranked")
        else:
            total = _composite(means[label], totals.get(label), len(totals))
        standing = CohortStanding(
            label=label,
            **dict(zip(PANEL, means[label], strict=True)),
            composite=total,
            rank=ranks.get(label),
            seeds=len(episodes),
            unranked=left_out.get(label),
        )
        cohort_standings.append(standing)
    last = len(cohort_standings) + 1
    return tuple(sorted(cohort_standings, key=lambda standing: standing.rank or last))


def _composite(means: Sequence[Measure], total: float | None, n: int) -> Measure:
    if total is not None:
        return Measure(value=significant(total), n=n, note="no interval: relative to the cohort")
    for name, measure in zip(PANEL, means, strict=True):
        if measure.value is None:
            return not_scored(f"no {name.replace('_', ' ')}: {measure.reason}")
    return not_scored("a cohort of one has no z-scores")


def size_study(
    results: Mapping[int, Sequence[EpisodeSeries]], convention: Convention
) -> tuple[SizeRow, ...]:
    """Return an agent's cumulative returns over seeds by universe size, smallest first."""
    rows = []
    for size in sorted(results):
        returns = [measures_of(series, convention)["cumulative_return"] for series in results[size]]
        summary = summarise(returns)
        if summary.cv is not None:
            variation = Measure(value=summary.cv, n=summary.n, note="no interval was asked for")
        elif summary.n == 0:
            variation = not_scored(summary.median.reason or "no seed has a return")
        else:
            variation = not_scored(
                "one seed has no spread" if summary.n == 1 else "the mean return is zero"
            )
        rows.append(SizeRow(size=size, returns=summary, variation=variation))
    return tuple(rows)


def frictionless_equal_weight(opens: Floats, cash: float) -> Floats:
    """Return the account values of the published baseline, which buys equal amounts at the first
    open.

    The first value is ``cash``, followed by the value at each open. There are no costs, dividends
    or lots. ``opens`` has shape (sessions, names) and is adjusted for splits. A missing price is
    replaced by the previous price. A name without a first price is skipped.
    """
    prices = np.array(opens[:, np.isfinite(opens[0])], dtype=np.float64)
    for row in range(1, len(prices)):
        prices[row] = np.where(np.isfinite(prices[row]), prices[row], prices[row - 1])
    growth = (prices / prices[0]).mean(axis=1)
    return np.concatenate([[cash], cash * growth])


def published_baseline(snapshot: Snapshot, config: MarketConfig) -> EpisodeSeries:
    """Return the published baseline on a market's data, with the universe of its first session."""
    market = Market(snapshot, config)
    columns = market.reset().columns
    opens = snapshot.at(market.rows[-1], "close").bars("open", len(market))
    nav = frictionless_equal_weight(opens[:, columns], config.cash)
    periods = market.rules.periods_per_year
    return series_from_nav(nav, sessions=market.sessions, periods_per_year=periods)


def _mean(measures: Sequence[Measure]) -> Measure:
    """Return the mean over seeds, or the reason why no seed has the measure."""
    summary = summarise(measures)
    if summary.mean is None:
        return summary.median
    missing = f", {summary.missing} have none" if summary.missing else ""
    return Measure(value=summary.mean, n=summary.n, note=f"mean over {summary.n} seeds{missing}")


def _measure(value: Floats, reason: str) -> Measure:
    number = float(value)
    return Measure(value=significant(number)) if math.isfinite(number) else not_scored(reason)
