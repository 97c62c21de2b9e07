"""Judge a table of returns, and run the tests on the daily parts of any account."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import (
    LEAST_RATIO,
    BootstrapConfig,
    growth,
    measured_design,
    power_summary,
    score,
    series_from_nav,
    sessions_needed,
    significant,
)
from tradeassay.metrics.anytime import level_at
from tradeassay.metrics.attribution import total_parts
from tradeassay.metrics.history import history_of
from tradeassay.metrics.horizon import Horizon
from tradeassay.metrics.option_selling import option_selling
from tradeassay.metrics.smoothness import smoothness
from tradeassay.metrics.staleness import Regression, lagged, stale_lags
from tradeassay.tables.account import OwnSeries
from tradeassay.verdict import diagnostics, evidence
from tradeassay.verdict.attribution import Attribution
from tradeassay.verdict.interest import most_interest
from tradeassay.verdict.judge import judge
from tradeassay.verdict.record import (
    CASH,
    AgentAssay,
    AgentFindings,
    Alpha,
    LeakEvidence,
    LuckEvidence,
    Ranks,
    StyleEvidence,
    VerdictConfig,
)

WATCHED = (
    "intervals of parts and claims hold however often they are looked at, and are wider for that"
)


_OWN_MEASURES = ("annualised_return", "sharpe", "sortino", "max_drawdown", "volatility", "calmar")
"""Measures of an account for which only returns are known."""


class JudgingContext(msgspec.Struct, frozen=True):
    """Data about an account that its daily parts do not contain.

    ``peers`` is the number of agents judged together. ``tried`` are the tries in other runs.
    ``attributions`` has one attribution per seed. Without attributions, ``references`` are the
    returns of passive portfolios by name, and ``sessions`` are the days.
    """

    peers: int = 1
    tried: diagnostics.Tried = diagnostics.NO_TRIES
    attributions: tuple[Attribution, ...] = ()
    references: Mapping[str, Floats] | None = None
    sessions: tuple[str, ...] = ()


def run_tests(
    account: AgentFindings,
    daily: Mapping[str, Floats],
    year: int,
    config: VerdictConfig,
    context: JudgingContext,
) -> AgentFindings:
    """Return an account's findings with the results of all tests of its daily parts.

    ``daily`` are the parts by name, one value per row. ``year`` is the number of rows per year.
    """
    benchmark, total, own = daily.get("market"), daily["total"], daily[evidence.ALPHA]
    # Intervals are corrected for the agents in the same setting. The number of all tries
    # (disclosed, counted or assumed) decides whether a significant result is called skill.
    tries = max(config.known_tries, context.peers + context.tried.effective)
    test = evidence.MeanTest(year, config, comparisons=context.peers, tries=tries)
    # Intervals of parts have the same level as alpha's test, so that a part never contradicts the
    # verdict's sentence. The return itself is not tested, so its interval is not corrected.
    linked = {
        name: row
        for name, row in daily.items()
        if name not in (evidence.INVESTED, "market", "tilt")
    }
    totals = total_parts(
        linked,
        periods_per_year=year,
        bootstrap=BootstrapConfig(level=test.level),
        watched=config.watched,
    )
    whole = total_parts({"total": total}, bootstrap=BootstrapConfig(level=config.level)).intervals[
        "total"
    ]
    # Shares of a sum of variances are within 0..1, although the parts may be correlated.
    style_variance = float(np.var(daily["style"]))
    alpha_variance = float(np.var(daily[evidence.ALPHA]))
    market_variance = float(np.var(daily["common"]))
    active_variance = style_variance + alpha_variance
    total_variance = active_variance + market_variance
    alpha = evidence.alpha_of(daily, test)
    power = power_of_record(own, alpha, test)
    parts = {name: measure for name, measure in totals.intervals.items() if name != "total"}
    by_returns = account.method == "returns"
    if by_returns:
        parts["trading"] = not_scored("trading cannot be seen in returns alone")
    first = context.attributions[0] if context.attributions else None
    sessions = first.daily.sessions if first is not None else context.sessions
    stored = first.daily.references if first is not None else {}
    references = context.references or {name: np.array(series) for name, series in stored.items()}
    lags = stale_lags(total, benchmark, year) if by_returns and benchmark is not None else 0
    interest = most_interest(account.first, account.last, config)
    claims = {} if by_returns else evidence.timing_series(daily)
    unstyled = total - daily["style"] if by_returns else total
    styles = None
    if "style_timing" in claims and total.size >= config.rows_needed(year):
        style_timing = claims["style_timing"]
        styles = StyleEvidence(
            tilt=test.of(daily["tilt"]),
            timing=test.of(style_timing, evidence.TIMING_ERROR_MULTIPLE),
            net=test.of(style_timing + own, evidence.TIMING_ERROR_MULTIPLE),
            at_tries=test.at_tries(style_timing, evidence.TIMING_ERROR_MULTIPLE),
            likelihood=test.likelihood(style_timing),
        )
    covered = [
        attribution.covered_share
        for attribution in context.attributions
        if attribution.covered_share is not None
    ]
    fit = None if first is None or by_returns else first.fit
    days = 0 if fit is None else fit.full_days + fit.market_days + fit.empty_days
    market, timing, options, smooth = account.market, None, None, None
    excess, information_ratio = None, None
    if benchmark is not None:
        market_return = significant(float(np.prod(1.0 + benchmark) - 1.0))
        market = Measure(value=market_return, n=benchmark.size, note="no interval: as it was")
        timing = diagnostics.timing_evidence(
            unstyled, benchmark, claims.get("timing"), test, returns_only=by_returns
        )
        excess, information_ratio = _excess(total, benchmark, test)
    if by_returns and total.size and not Horizon(total.size, year).is_short:
        ratio = None if benchmark is None else alpha.ratio
        smooth = smoothness(total, year, benchmark=benchmark, alpha_ratio=ratio, interest=interest)
        if benchmark is not None:
            options = option_selling(total, benchmark, own, year)
    # Contribution of each name to selection, averaged over seeds.
    by_name = defaultdict[str, float](float)
    for attribution in context.attributions:
        for name, value in attribution.by_name.items():
            by_name[name] += value / len(context.attributions)
    tail = None
    concentration = None
    if total.size:
        tail = diagnostics.tail_evidence(daily, sessions, test, returns_only=by_returns)
        concentration = diagnostics.concentration_of(own, sessions, by_name, daily["selection"])
    return msgspec.structs.replace(
        account,
        failure=account.failure or totals.reason,
        total=whole,
        market=market,
        parts=parts,
        style_variance=style_variance / active_variance if active_variance > 0.0 else None,
        active_variance=active_variance / total_variance if total_variance > 0.0 else None,
        alpha=alpha,
        chance=power.chance,
        could_not=power.hopeless,
        needed=power.needed,
        year=year,
        passive=diagnostics.passive_evidence(
            total,
            references,
            test,
            lags=lags,
            interest=interest,
            invested=daily.get(evidence.INVESTED),
        ),
        timing=timing,
        styles=styles,
        tail=tail,
        options=options,
        smoothness=smooth,
        excess=excess,
        information_ratio=information_ratio,
        stability=diagnostics.stability_evidence(own, sessions, test),
        capacity=diagnostics.capacity_evidence(own, context.attributions, test),
        concentration=concentration,
        tries=diagnostics.tries_evidence(
            own, alpha, test, peers=context.peers, tried=context.tried
        ),
        curve=diagnostics.curve_of(total, benchmark, sessions),
        styled=fit.full_days / days if fit is not None and days else None,
        covered=min(covered) if covered else None,
    )


def _excess(total: Floats, benchmark: Floats, test: evidence.MeanTest) -> tuple[Measure, Measure]:
    """Return the annual excess return over the benchmark and its information ratio."""
    return test.of(total - benchmark), test.ratio(total - benchmark)


class _Power(NamedTuple):
    """The power of a record.

    ``chance`` is the probability that such a record detects a skilled account. ``hopeless`` is true
    for a probability below one half, or for a record that is too short for a test. ``needed`` is
    the number of rows to detect an alpha as large as the measured one.
    """

    chance: float | None
    hopeless: bool
    needed: int | None


def power_of_record(series: Floats, alpha: Alpha, test: evidence.MeanTest) -> _Power:
    """Return the power of a record to detect a true alpha ratio of ``config.skilled``.

    The power is corrected for all tries.
    """
    config, year = test.config, test.year
    if series.size < config.rows_needed(year):
        return _Power(None, True, None)
    design = measured_design(
        series,
        level=config.level,
        comparisons=max(test.comparisons, test.tries),
        periods_per_year=year,
    )
    if config.watched:
        level = level_at(series.size, 1.0 - 2.0 * config.tail(design.comparisons))
        design = msgspec.structs.replace(design, level=level, comparisons=1)
    summary = power_summary(design, ratio=config.skilled)
    ratio = alpha.ratio.value
    needed = None
    # If an account equals its market, the ratio is only rounding errors.
    if ratio is not None and abs(ratio) >= LEAST_RATIO:
        needed = sessions_needed(ratio, design)
    return _Power(summary.chance, summary.hopeless, needed)


_LEAST_SHARED = 20
"""Smallest number of days that an account and its benchmark must share."""

_ALONE, CONSTANT = "returns alone do not say what was held", "constant, estimated from returns"


def assay_series(
    series: OwnSeries, config: VerdictConfig, *, agent: str
) -> tuple[AgentAssay, tuple[str, ...]]:
    """Return the assay of a table of returns, and notes for the reader.

    The benchmark may be missing. Raises :class:`UserError` if the account and its benchmark share
    too few days, or if the benchmark hardly moves.
    """
    notes = list(series.notes)
    why = "no benchmark is given"
    if series.benchmark is not None and diagnostics.is_cash(
        np.array([*series.benchmark.values()]), series.year
    ):
        why = "what it is compared with is cash, which is no market"
        notes.append(why)
        series = replace(series, cash=series.cash or series.benchmark, benchmark=None)
    days = _shared_days(series, notes)
    benchmark = (
        None if series.benchmark is None else np.array([series.benchmark[day] for day in days])
    )
    total = np.array([series.returns[day] for day in days])
    whole = series.whole
    if whole is None:
        whole = math.prod(1.0 + value for value in series.returns.values()) - 1.0
    if benchmark is not None and benchmark.std() < 0.02 * total.std():
        raise UserError(
            f"the benchmark hardly moves (by {benchmark.std():.2g} a row, the account by "
            f"{total.std():.2g})",
            hint="cash is not a benchmark: give the returns of an asset that could be held, or "
            "leave it out",
        )
    cash = (
        np.zeros(total.size)
        if series.cash is None
        else np.array([series.cash[day] for day in days])
    )
    factors: dict[str, Floats] = {}
    if benchmark is not None:
        for name, factor in series.factors.items():
            factors[name] = np.array([factor[day] for day in days])
    daily, betas = _rows_of_series(total, benchmark, cash, factors, series.year)
    account = own_findings(
        agent,
        days,
        dataset="",
        method="returns",
        # A smaller effect of the omitted rows is invisible in the displayed return.
        with_all=whole if abs(whole - (math.prod(1.0 + total) - 1.0)) >= 0.001 else None,
        total=not_scored("nothing was played"),
        market=not_scored(why),
        exposures={
            name: Measure(value=significant(beta), note=CONSTANT) for name, beta in betas.items()
        },
        luck=LuckEvidence(percentile=not_scored(_ALONE), p=None),
        notes=tuple(notes),
        doubts=series.doubts,
        rows=series.rows,
    )
    references = {} if benchmark is None else {series.benchmark_name: benchmark}
    context = JudgingContext(references=references, sessions=days)
    account = with_history(
        run_tests(account, daily, series.year, config, context), total, days, series.year, config
    )
    parts = dict(account.parts)
    if not factors:
        parts["style"] = not_scored("no factors are known: style cannot be measured")
        account = msgspec.structs.replace(account, style_variance=None, active_variance=None)
    passive = account.passive
    if passive is not None and account.alpha is not None and passive.portfolio != CASH:
        # The return beyond the only benchmark is alpha and has an interval.
        passive = msgspec.structs.replace(passive, beyond=account.alpha.tested)
    if benchmark is None:
        parts = {**parts, "common": not_scored(why), "selection": not_scored(_ALONE)}
    account = msgspec.structs.replace(
        account, parts=parts, styled=1.0 if factors else 0.0, passive=passive
    )
    return judge(account, config), tuple(notes)


def _shared_days(series: OwnSeries, notes: list[str]) -> tuple[str, ...]:
    """Return the days on which the account, benchmark, cash and all factors have a return.

    A sentence about omitted rows is appended to ``notes``. Raises :class:`UserError` if fewer than
    20 days, or fewer than half of the days, are shared.
    """
    days = tuple(series.returns)
    others = {"its benchmark": series.benchmark, "cash": series.cash, **series.factors}
    for what, other in others.items():
        if other is None:
            continue
        if len(days) < _LEAST_SHARED:
            hint = f"give at least {_LEAST_SHARED}, or leave {what} out"
            raise UserError(
                f"{len(days)} rows are too few to compare with {what.replace('its', 'a')}",
                hint=hint,
            )
        shared = tuple(day for day in days if day in other)
        if len(shared) < max(_LEAST_SHARED, 0.5 * len(days)):
            problem = f"share {len(shared)} of {len(days)} days"
            hint = "give both for the same days, in the same form"
            if other and (min(other) > min(days) or max(other) < max(days)):
                problem += f": {what} is known from {min(other)} to {max(other)}"
                problem += f", the account from {min(days)} to {max(days)}"
                hint = (
                    f"give {what} for all of these days as a file, or only the rows of the "
                    "account in between"
                )
            raise UserError(f"the account and {what} {problem}", hint=hint)
        if len(shared) < len(days):
            name = what.replace("its", "the")
            notes.append(
                f"left out because {name} has no return there: {len(days) - len(shared)} rows"
            )
        days = shared
    return days


def _rows_of_series(
    total: Floats, benchmark: Floats | None, cash: Floats, factors: Mapping[str, Floats], year: int
) -> tuple[dict[str, Floats], dict[str, float]]:
    """Return the daily parts of the return by name, and the exposures to factors.

    Interest on money outside the market is included in the market part.
    """
    zeros = np.zeros(total.size)
    common, style, betas = cash, zeros, {}
    rows: dict[str, Floats] = {}
    if benchmark is not None:
        lags = stale_lags(total, benchmark, year)
        late = lagged(benchmark - cash, lags)
        fit = Regression(
            (total - cash)[lags:], [series[lags:] for series in (*late, *factors.values())]
        )
        common = cash + np.column_stack(late) @ fit.coefficients[1 : 2 + lags]
        betas = dict(zip(factors, fit.coefficients[2 + lags :].tolist(), strict=True))
        styles = {f"style.{name}": betas[name] * row for name, row in factors.items()}
        if styles:
            style = np.sum([*styles.values()], axis=0)
        rows = {"market": benchmark, **styles}
    rows |= {"total": total, "common": common, "style": style, "trading": zeros}
    rows["selection"] = total - common - style
    rows[evidence.ALPHA] = rows["selection"]
    return rows, betas


def own_findings(agent: str, days: Sequence[str], **known: Any) -> AgentFindings:
    """Return the findings about an account without a recorded run.

    ``known`` are the values of the other fields of :class:`AgentFindings`.
    """
    return AgentFindings(
        setting="own",
        benchmark="",
        agent=agent,
        by_model=False,
        baseline=False,
        seeds=1,
        failed_seeds=0,
        sessions=len(days),
        first=days[0] if days else None,
        last=days[-1] if days else None,
        leaks=LeakEvidence(tested=False),
        failure_rate=not_scored("no run was recorded"),
        ranks=Ranks(of=1, by_return=None, by_selection=None),
        **known,
    )


def with_history(
    account: AgentFindings,
    total: Floats,
    sessions: tuple[str, ...],
    year: int,
    config: VerdictConfig,
) -> AgentFindings:
    """Return findings with performance measures and monthly history.

    This is for a user's own account. For a recorded run, both are part of the run. The findings are
    returned unchanged without sessions or if the account lost everything.
    """
    path = growth(total)
    if not sessions or not (path > 0.0).all():
        return account
    drawn = BootstrapConfig(draws=config.draws)
    series = series_from_nav(path, sessions=sessions, periods_per_year=year)
    scored = score(series, bootstrap=drawn, only=_OWN_MEASURES)
    if account.smoothness is not None:
        # A verdict on hidden risk states the Sharpe ratio. Both numbers must be equal.
        scored["sharpe"] = account.smoothness.sharpe
    measures = {name: scored[name] for name in _OWN_MEASURES}
    return msgspec.structs.replace(
        account,
        measures=Horizon(len(sessions), year).scored(measures),
        history=history_of(sessions, path.tolist(), year),
    )
