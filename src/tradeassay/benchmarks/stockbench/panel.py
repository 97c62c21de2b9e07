"""What a run of StockBench is judged by: the panel, the error profile, and the published figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.benchmarks.exhibits import Published, printed, unmet
from tradeassay.benchmarks.stockbench.day import MISTAKES
from tradeassay.benchmarks.stockbench.specs import DJIA_20
from tradeassay.benchmarks.stockbench.stockbench_config import Inputs
from tradeassay.core.events import StepRecord
from tradeassay.core.measure import Convention, Measure, not_scored
from tradeassay.core.view import Floats
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
from tradeassay.play import Market, MarketConfig

if TYPE_CHECKING:
    from tradeassay.data import Snapshot


NOTES = frozenset(("context_cut", "no_target_shares"))
"""Kinds that are notes, not mistakes."""


class ErrorProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of sessions, with Wilson's interval.

    ``schema``, ``arithmetic`` and ``liquidity``: at least one answer of the session was refused for it, whether
    or not a later one was good. ``give_up``: all attempts were refused. ``unanswered``: the session failed because
    the model gave no answer. ``context_cut``: something was left out of a prompt. ``refused`` counts refused
    answers by kind; a session may have several."""

    sessions: int
    schema: Measure
    arithmetic: Measure
    liquidity: Measure
    give_up: Measure
    unanswered: Measure
    context_cut: Measure
    refused: dict[str, int]


def error_profile(records: Iterable[StepRecord]) -> ErrorProfile:
    decisions = [record.decision for record in records]
    kinds = [[failure.kind for failure in decision.failures] for decision in decisions]
    counts = {kind: sum(kind in found for found in kinds) for kind in (*MISTAKES, "give_up", "context_cut")}
    counts["unanswered"] = sum(
        decision.status == "failed" and "give_up" not in found
        for decision, found in zip(decisions, kinds, strict=True)
    )
    return ErrorProfile(
        sessions=len(decisions),
        refused={kind: sum(found.count(kind) for found in kinds) for kind in MISTAKES},
        **{kind: rate_measure(n, len(decisions), nothing="no session was played") for kind, n in counts.items()},
    )


FIRST, LAST = "2025-03-03", "2025-06-30"
"""The window of the published figures."""


class StockbenchFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure; a fraction. ``frictionless``: without costs and dividends, unlike all our agents."""

    who: str
    measure: str
    value: float
    where: str
    inputs: Inputs
    frictionless: bool = False


class StockbenchSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting of a result of ours; ``frictionless`` is true of :func:`frictionless_equal_weight` alone."""

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
    return msgspec.convert(printed("stockbench"), Published[StockbenchFigure])


def compare_with(figure: StockbenchFigure, ours: StockbenchSetting) -> tuple[str, ...]:
    """Return every reason why a result of ours may not be compared with a figure; empty when it may."""
    wants_news = not figure.frictionless and figure.inputs in ("all", "no-fundamentals")
    wants_figures = not figure.frictionless and figure.inputs in ("all", "no-news")
    checks = (
        (ours.data == "real", "our data is synthetic"),
        (set(ours.symbols) == set(DJIA_20), "our names are not the paper's twenty"),
        ((ours.first, ours.last) == (FIRST, LAST), f"the figure is for {FIRST} to {LAST}"),
        (ours.convention == "paper", "our convention is 'sound': known errors of the paper are removed"),
        (figure.inputs == ours.inputs, f"the figure is for the inputs '{figure.inputs}'"),
        (not wants_news or ours.has_news, "our data has no news"),
        (not wants_figures or ours.has_fundamentals, "our data has no fundamentals"),
        (figure.frictionless or not ours.frictionless, "our result is without costs and dividends"),
        (ours.frictionless or not figure.frictionless, "the figure is without costs and dividends"),
    )
    return unmet(checks)


PANEL = ("cumulative_return", "max_drawdown", "sortino")
"""The measures of the composite, for all of which greater is better (a drawdown is negative)."""


class CohortStanding(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of a cohort.

    The three measures are means over its seeds. ``composite`` is the mean of their z-scores within the cohort and
    ``rank`` its place, 1 being best; equals share the better place. An agent lacking one of the three has neither,
    and an agent that is not ranked is not in the cohort: ``unranked`` says why.
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
    """Returns over seeds in a universe of ``size`` names; ``variation`` = std / abs(mean) of them."""

    size: int
    returns: SeedSummary
    variation: Measure


def measures_of(series: EpisodeSeries, convention: Convention) -> dict[str, Measure]:
    """Return one episode's three measures.

    Sortino is the annualised one under ``sound`` and the reference's under ``paper`` (see the metrics' own pages).
    """
    if series.failure is not None:
        return dict.fromkeys(PANEL, not_scored(series.failure))
    if series.ruined is not None:
        return dict.fromkeys(PANEL, not_scored(f"the account was worth nothing on {series.ruined}"))
    returns = series.returns
    ratio = sortino_stockbench(returns) if convention == "paper" else sortino(returns, series.periods_per_year)
    return {
        "cumulative_return": _measure(cumulative_return(series.nav), "the path has no return"),
        "max_drawdown": _measure(max_drawdown(series.nav), "the path has no drawdown"),
        "sortino": _measure(ratio, "too few losing sessions for a downside"),
    }


def z_scores(values: Sequence[float]) -> list[float]:
    """Return (value - mean) / standard deviation (ddof 0); all 0 when the values do not differ."""
    array = np.asarray(values, dtype=np.float64)
    off = array - array.mean()
    spread = math.sqrt(float((off * off).mean()))
    if spread <= 1e-12 * float(np.abs(array).max(initial=0.0)):
        return [0.0] * len(values)
    return [float(value) for value in off / spread]


def composite(cohort: Sequence[tuple[float, float, float]]) -> list[float]:
    """Return the mean of the z-scores of (cumulative return, -abs(max drawdown), Sortino) for every member."""
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
    """Return every agent's standing, best first; agents without a composite follow in the order given.

    ``unranked`` says why an agent is left out of composite and rank."""
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
    totals = dict(zip(scored, composite(list(scored.values())), strict=True)) if len(scored) > 1 else {}
    placed = dict(zip(totals, places(list(totals.values())), strict=True))
    found = [
        CohortStanding(
            label=label,
            **dict(zip(PANEL, means[label], strict=True)),
            composite=(
                not_scored("not ranked")
                if label in left_out
                else _composite(means[label], totals.get(label), len(totals))
            ),
            rank=placed.get(label),
            seeds=len(episodes),
            unranked=left_out.get(label),
        )
        for label, episodes in cohort.items()
    ]
    return tuple(sorted(found, key=lambda standing: standing.rank or len(found) + 1))


def _composite(means: Sequence[Measure], total: float | None, n: int) -> Measure:
    if total is not None:
        return Measure(value=significant(total), n=n, note="no interval: relative to the cohort")
    for name, measure in zip(PANEL, means, strict=True):
        if measure.value is None:
            return not_scored(f"no {name.replace('_', ' ')}: {measure.reason}")
    return not_scored("a cohort of one has no z-scores")


def size_study(results: Mapping[int, Sequence[EpisodeSeries]], convention: Convention) -> tuple[SizeRow, ...]:
    """Return the spread of one agent's cumulative returns over seeds for every universe size, smallest first."""
    rows = []
    for size in sorted(results):
        returns = [measures_of(series, convention)["cumulative_return"] for series in results[size]]
        summary = summarise(returns)
        if summary.cv is not None:
            variation = Measure(value=summary.cv, n=summary.n, note="no interval was asked for")
        elif summary.n == 0:
            variation = not_scored(summary.median.reason or "no seed has a return")
        else:
            variation = not_scored("one seed has no spread" if summary.n == 1 else "the mean return is zero")
        rows.append(SizeRow(size=size, returns=summary, variation=variation))
    return tuple(rows)


def frictionless_equal_weight(opens: Floats, cash: float) -> Floats:
    """Return the published baseline's path: equal money in every name at the first open, marked at each open.

    ``opens`` has shape (sessions, names), splits undone. No costs, no dividends, no lots; a missing price is
    filled with the last one before it. The path starts with ``cash``; a name without a first price is left out."""
    prices = np.array(opens[:, np.isfinite(opens[0])], dtype=np.float64)
    for row in range(1, len(prices)):
        prices[row] = np.where(np.isfinite(prices[row]), prices[row], prices[row - 1])
    growth = (prices / prices[0]).mean(axis=1)
    return np.concatenate([[cash], cash * growth])


def published_baseline(snapshot: Snapshot, config: MarketConfig) -> EpisodeSeries:
    """Return the published baseline on a market's data: its universe of the first session, its sessions' opens."""
    market = Market(snapshot, config)
    columns = market.reset().columns
    opens = snapshot.at(market.rows[-1], "close").bars("open", len(market))
    nav = frictionless_equal_weight(opens[:, columns], config.cash)
    periods = market.rules.periods_per_year
    return series_from_nav(nav, sessions=market.sessions, periods_per_year=periods)


def _mean(measures: Sequence[Measure]) -> Measure:
    summary = summarise(measures)
    if summary.mean is None:
        return summary.median
    missing = f", {summary.missing} have none" if summary.missing else ""
    return Measure(value=summary.mean, n=summary.n, note=f"mean over {summary.n} seeds{missing}")


def _measure(value: Floats, reason: str) -> Measure:
    number = float(value)
    return Measure(value=significant(number)) if math.isfinite(number) else not_scored(reason)
