"""The panel: every measure of an episode with its interval, or no number and the reason."""

from __future__ import annotations

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.catalogue import BY_ID, MEASURES
from tradeassay.metrics.drawdown import max_drawdown
from tradeassay.metrics.evaluate import Sessions, evaluate, evaluate_resamples
from tradeassay.metrics.intervals import measure_from, significant, wilson_interval
from tradeassay.metrics.returns import cumulative_return
from tradeassay.metrics.series import EpisodeSeries

FEWEST_TO_ANNUALISE = 10
"""With fewer returns nothing that is scaled to a year is given: ten days say nothing about twelve months."""

_YEARLY = frozenset(
    (
        "annualised_return",
        "volatility",
        "sharpe",
        "sortino",
        "calmar",
        "information_ratio",
        "turnover",
        "cost_rate",
    )
)
_CONDUCT = ("abstention_rate", "failure_rate", "rejection_rate", "hit_rate")
_VS_INDEX = ("excess_return", "information_ratio")
_PATH_NOTE = "interval: what other orders of the same blocks of sessions would have given"

DEFAULT = BootstrapConfig()


def score(
    series: EpisodeSeries, *, benchmark_nav: Floats | None = None, bootstrap: BootstrapConfig = DEFAULT
) -> dict[str, Measure]:
    """Return every measure of the catalogue for one episode, in the catalogue's order.

    ``benchmark_nav`` (n + 1 levels) replaces the series' index in the measures against an index. Equal input
    gives equal numbers, to the byte: resamples are seeded by the content, and stored numbers are rounded to
    twelve significant digits. Nothing raises for a bad result; :class:`UserError` for levels of another length.
    """
    if benchmark_nav is not None and np.shape(benchmark_nav) != series.nav.shape:
        raise UserError(
            f"{np.shape(benchmark_nav)[0]} benchmark levels for {len(series.sessions)} sessions",
            mend="give one per session and the level before the first",
        )
    if series.failure is not None:
        return _failed(series, bootstrap)
    if len(series.sessions) == 0:
        return {info.id: not_scored("there are no sessions") for info in MEASURES}
    if series.ruined is not None or not series.nav[0] > 0:
        return _ruined(series)
    sessions = Sessions.of(series, benchmark_nav)
    values = {name: float(value) for name, value in evaluate(sessions).items()}
    drawn = _draw(series, sessions, bootstrap)
    note = series.index_note if benchmark_nav is None else None
    return {
        info.id: with_index_note(info.id, _one(info.id, series, values, drawn, bootstrap), note)
        for info in MEASURES
    }


def with_index_note(name: str, measure: Measure, note: str | None) -> Measure:
    """Return a measure against the index with what must be known about that index; any other as it is."""
    if note is None or name not in _VS_INDEX or measure.value is None:
        return measure
    return msgspec.structs.replace(measure, note=note if measure.note is None else f"{measure.note}; {note}")


def _draw(series: EpisodeSeries, sessions: Sessions, config: BootstrapConfig) -> dict[str, Floats] | None:
    n = len(series.sessions)
    if n < config.least:
        return None
    seed = content_seed(config, series.nav)
    return evaluate_resamples(sessions, resamples(n, config.draws, choose_block(series.returns, config), seed))


def _one(
    name: str,
    series: EpisodeSeries,
    values: dict[str, float],
    drawn: dict[str, Floats] | None,
    config: BootstrapConfig,
) -> Measure:
    n = len(series.sessions)
    reason = why_undefined(name, series, values.get(name))
    if reason is not None:
        return not_scored(reason)
    if drawn is None:
        few = f"no interval: {n} sessions, at least {config.least} are needed"
        return measure_from(values[name], None, level=config.level, n=n, note=few)
    if name in _CONDUCT and values[name] in (0.0, 1.0):
        return _certain_rate(name, series, values[name], config)
    note = _PATH_NOTE if BY_ID[name].path else None
    return measure_from(values[name], drawn[name], level=config.level, n=n, note=note)


def _certain_rate(name: str, series: EpisodeSeries, value: float, config: BootstrapConfig) -> Measure:
    """Return a rate of exactly 0 or 1: every resample would say the same, which is no evidence of certainty."""
    n = {
        "rejection_rate": int(series.orders.sum()),
        "hit_rate": int((series.returns != 0).sum()),
    }.get(name, len(series.sessions))
    low, high = wilson_interval(value * n, n, config.level)
    return Measure(value=value, low=low, high=high, level=config.level, n=n, note="interval by Wilson's formula")


def why_undefined(name: str, series: EpisodeSeries, value: float | None) -> str | None:
    """Return why a measure has no value for this series, None when it has one."""
    n = len(series.sessions)
    if value is None and name in _VS_INDEX:
        return "no index without gaps to compare with"
    if name in _YEARLY and n < FEWEST_TO_ANNUALISE:
        return f"{n} sessions, at least {FEWEST_TO_ANNUALISE} are needed"
    if value is not None and np.isfinite(value):
        return None
    return {
        "sharpe": "the returns do not vary",
        "sortino": "no session lost money",
        "sortino_stockbench": "fewer than two sessions with different losses",
        "calmar": "the account never fell below a former peak",
        "information_ratio": "the returns do not vary against the index",
        "hhi": "nothing was ever held",
        "rejection_rate": "no order was given",
        "hit_rate": "no session gained or lost money",
        "volatility": "fewer than two sessions",
    }.get(name, "a number in the series is missing")


def _failed(series: EpisodeSeries, config: BootstrapConfig) -> dict[str, Measure]:
    """Return no result for a failed episode: nothing traded is not a return of zero."""
    scores = {info.id: not_scored(str(series.failure)) for info in MEASURES}
    n = len(series.sessions)
    if n and series.failed.all():
        scores["failure_rate"] = _certain_rate("failure_rate", series, 1.0, config)
    return scores


def _ruined(series: EpisodeSeries) -> dict[str, Measure]:
    """Return the loss of an account that ended at or below zero; it must not look better than a smaller loss."""
    if not series.nav[0] > 0:
        return {info.id: not_scored("the account started with nothing") for info in MEASURES}
    reason = f"the account was worth nothing or less on {series.ruined}"
    scores = {info.id: not_scored(reason) for info in MEASURES}
    n = len(series.sessions)
    for name, value in (
        ("cumulative_return", float(cumulative_return(series.nav))),
        ("max_drawdown", float(max_drawdown(series.nav))),
    ):
        scores[name] = Measure(value=significant(value), n=n, note=f"no interval: {reason}")
    for name, happened in (("abstention_rate", series.abstained), ("failure_rate", series.failed)):
        scores[name] = Measure(value=significant(float(happened.mean())), n=n, note=f"no interval: {reason}")
    return scores
