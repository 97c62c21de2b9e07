"""The panel: every measure of an episode with its interval, or the reason for its absence.

:func:`_evaluate` computes all measures of one series, or of a thousand resampled ones, in one pass.
:func:`score` adds their intervals. :func:`across_seeds` measures how much of a result depends on
the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import measures
from tradeassay.metrics.catalogue import BY_ID, MEASURES
from tradeassay.metrics.cosine import cosine_interval, growth_interval
from tradeassay.metrics.intervals import (
    DEFAULT,
    BootstrapConfig,
    choose_block,
    content_seed,
    measure_from,
    resamples,
    seed_resamples,
    significant,
    too_few,
    wilson_interval,
)
from tradeassay.metrics.measures import cumulative_return, max_drawdown, simple_returns

_ROWS = ("returns", "turned", "cost", "hhi", "idle", "abstained", "failed", "orders", "rejected")


class _SessionMatrix(msgspec.Struct, frozen=True):
    """An episode as a matrix: one row per quantity (``_ROWS``), one column per session.

    ``index`` has the index's session returns, or is None. ``path`` is the value path if known. For
    a resample the path is computed by compounding. ``indices`` are the sessions of a resample.
    Money is stated as a share of the value before the session.
    """

    matrix: Sequence[Floats]
    index: Floats | None
    periods_per_year: int
    path: Floats | None = None
    indices: Ints | None = None

    @classmethod
    def of(cls, series: EpisodeSeries) -> _SessionMatrix:
        """Return the matrix of a series. An index with a gap is left out."""
        levels = series.index
        if levels is not None and not (levels > 0).all():
            levels = None
        before, after = series.nav[:-1], series.nav[1:]
        money = (
            series.returns,
            series.traded / before,
            series.costs / before,
            series.hhi,
            series.cash / after,
        )
        conduct = (series.abstained, series.failed, series.orders, series.rejected)
        matrix = [np.asarray(row, dtype=np.float64) for row in (*money, *conduct)]
        return cls(
            matrix,
            None if levels is None else simple_returns(levels),
            series.periods_per_year,
            series.nav,
        )

    def take(self, indices: Ints) -> _SessionMatrix:
        """Return the resampled sessions. Every row gets shape (draws, n)."""
        index = None if self.index is None else self.index.take(indices)
        return _SessionMatrix(self.matrix, index, self.periods_per_year, indices=indices)

    def row(self, name: str) -> Floats:
        """Return one row, resampled on demand: most callers need few measures and so few rows."""
        row = self.matrix[_ROWS.index(name)]
        return row if self.indices is None else _taken(row, self.indices)


def _taken(row: Floats, indices: Ints) -> Floats:
    """Return a row's resamples. A row of only 0 or only 1 is returned without a lookup."""
    first = row[0]
    if first in (0.0, 1.0) and (row == first).all():
        return np.broadcast_to(first, indices.shape)
    return row.take(indices)


def _evaluate(sessions: _SessionMatrix, only: Collection[str] = ()) -> dict[str, Floats]:
    """Return every measure by id, or only those in ``only``. NaN means undefined.

    The shape is () for one series and (draws,) for resampled ones.
    """
    row, year = sessions.row, sessions.periods_per_year
    earned = row("returns")
    path = measures.growth(earned) if sessions.path is None else sessions.path
    ones = np.ones(1)
    deviation, fall = measures.spread(earned), max_drawdown(path)
    yearly = measures.annualised_return(path, year)
    functions: dict[str, Callable[[], Floats]] = {
        "cumulative_return": lambda: measures.cumulative_return(path),
        "annualised_return": lambda: yearly,
        "volatility": lambda: deviation * np.sqrt(year),
        "sharpe": lambda: measures.ratio(measures.mean(earned), deviation) * np.sqrt(year),
        "sortino": lambda: measures.sortino(earned, year),
        "sortino_stockbench": lambda: measures.sortino_stockbench(earned),
        "max_drawdown": lambda: fall,
        "calmar": lambda: measures.ratio(yearly, -fall),
        "turnover": lambda: measures.turnover(row("turned"), ones, year),
        "cost_rate": lambda: measures.cost_rate(row("cost"), ones, year),
        "hhi": lambda: measures.mean_held(row("hhi")),
        "cash_ratio": lambda: measures.cash_ratio(row("idle"), ones),
        "hit_rate": lambda: measures.hit_rate(earned),
        "abstention_rate": lambda: measures.abstention_rate(row("abstained")),
        "failure_rate": lambda: measures.failure_rate(row("failed")),
        "rejection_rate": lambda: measures.rejection_rate(row("rejected"), row("orders")),
    }
    if (index := sessions.index) is not None:
        functions["excess_return"] = lambda: (
            measures.cumulative_return(path) - measures.cumulative_return(measures.growth(index))
        )
        functions["information_ratio"] = lambda: measures.information_ratio(earned, index, year)
    return {name: function() for name, function in functions.items() if not only or name in only}


def _evaluate_resamples(
    sessions: _SessionMatrix, indices: Iterator[Ints], only: Collection[str] = ()
) -> dict[str, Floats]:
    chunks = [_evaluate(sessions.take(chunk), only) for chunk in indices]
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


FEWEST_TO_ANNUALISE = 10
"""Smallest number of returns for annualised measures: ten days say nothing about twelve months."""

_YEARLY = (
    "annualised_return volatility sharpe sortino calmar information_ratio turnover cost_rate"
).split()
_CONDUCT = ("abstention_rate", "failure_rate", "rejection_rate", "hit_rate")
_VS_INDEX = ("excess_return", "information_ratio")
_MEANS = ("cumulative_return", "annualised_return", "sharpe", "information_ratio")
_PATH_NOTE = "interval: what other orders of the same blocks of sessions would have given"


def score(
    series: EpisodeSeries, *, bootstrap: BootstrapConfig = DEFAULT, only: Collection[str] = ()
) -> dict[str, Measure]:
    """Return every measure of the catalogue for one episode, or only the measures in ``only``.

    The measures are in the catalogue's order. Equal input gives equal numbers, to the byte:
    resamples are seeded by the content, and stored numbers are rounded to twelve significant
    digits. A bad result does not raise.
    """
    n = len(series.sessions)
    if series.failure is not None:  # without trades there is no return, not a return of zero
        scores = dict.fromkeys(BY_ID, not_scored(str(series.failure)))
        if n and series.failed.all():
            scores["failure_rate"] = _certain_rate("failure_rate", series, 1.0, bootstrap)
        return scores
    if n == 0:
        return dict.fromkeys(BY_ID, not_scored("there are no sessions"))
    if series.ruined is not None or not series.nav[0] > 0:
        return _ruined(series)
    sessions = _SessionMatrix.of(series)
    values = {name: float(value) for name, value in _evaluate(sessions).items()}
    wanted, drawn = [name for name in BY_ID if name in only or not only], None
    if n >= bootstrap.least:
        # Means are never resampled. Their intervals are cosine intervals.
        seed, block = content_seed(bootstrap, series.nav), choose_block(series.returns, bootstrap)
        rows = resamples(n, bootstrap.draws, block, seed)
        drawn = _evaluate_resamples(sessions, rows, set(wanted) - set(_MEANS))
    panel = {name: _one(name, series, sessions, values, drawn, bootstrap) for name in wanted}
    return {
        name: _with_index_note(name, measure, series.index_note) for name, measure in panel.items()
    }


def _with_index_note(name: str, measure: Measure, note: str | None) -> Measure:
    """Return a measure against the index with a note about the index; other measures unchanged."""
    if note is None or name not in _VS_INDEX or measure.value is None:
        return measure
    return msgspec.structs.replace(
        measure, note=note if measure.note is None else f"{measure.note}; {note}"
    )


def _one(
    name: str,
    series: EpisodeSeries,
    sessions: _SessionMatrix,
    values: dict[str, float],
    drawn: dict[str, Floats] | None,
    config: BootstrapConfig,
) -> Measure:
    n = len(series.sessions)
    reason = _why_undefined(name, series, values.get(name))
    if reason is not None:
        return not_scored(reason)
    if drawn is None:
        return too_few(values[name], n, config)
    if name in _CONDUCT and values[name] in (0.0, 1.0):
        return _certain_rate(name, series, values[name], config)
    if name not in _MEANS:
        note = _PATH_NOTE if BY_ID[name].path else None
        return measure_from(values[name], drawn[name], level=config.level, n=n, note=note)
    # A mean of session returns, or a ratio with such a mean.
    earned, year, least = (
        sessions.matrix[_ROWS.index("returns")],
        sessions.periods_per_year,
        config.least,
    )
    if name in ("cumulative_return", "annualised_return"):
        periods = earned.shape[-1] if name == "cumulative_return" else year
        found = growth_interval(
            earned, periods=periods, level=config.level, least=least, rows_per_year=year
        )
    else:
        if name == "information_ratio" and sessions.index is not None:
            earned = earned - sessions.index
        found = cosine_interval(earned, periods_per_year=year, level=config.level, least=least)
    return msgspec.structs.replace(found, value=significant(values[name]), reason=None)


def _certain_rate(
    name: str, series: EpisodeSeries, value: float, config: BootstrapConfig
) -> Measure:
    """Return a rate of exactly 0 or 1 with Wilson's interval.

    All of its resamples would be equal.
    """
    counted = {"rejection_rate": series.orders.sum(), "hit_rate": (series.returns != 0).sum()}
    n = int(counted.get(name, len(series.sessions)))
    low, high = wilson_interval(value * n, n, config.level)
    return Measure(
        value=value,
        low=low,
        high=high,
        level=config.level,
        n=n,
        note="interval by Wilson's formula",
    )


def _why_undefined(name: str, series: EpisodeSeries, value: float | None) -> str | None:
    """Return why a measure has no value for this series, or None if it has one."""
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


def _ruined(series: EpisodeSeries) -> dict[str, Measure]:
    """Return the measures of an account that ended at or below zero.

    It must not look better than an account with a smaller loss.
    """
    if not series.nav[0] > 0:
        return dict.fromkeys(BY_ID, not_scored("the account started with nothing"))
    reason = f"the account was worth nothing or less on {series.ruined}"
    known = {
        "cumulative_return": float(cumulative_return(series.nav)),
        "max_drawdown": float(max_drawdown(series.nav)),
        "abstention_rate": float(series.abstained.mean()),
        "failure_rate": float(series.failed.mean()),
    }
    n, note = len(series.sessions), f"no interval: {reason}"
    shown = {
        name: Measure(value=significant(value), n=n, note=note) for name, value in known.items()
    }
    return dict.fromkeys(BY_ID, not_scored(reason)) | shown


class SeedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A measure over repetitions.

    ``median`` has the interval. ``n`` is the number of repetitions with a value, ``missing`` the
    number without. ``q1``/``q3`` are the quartiles (linear interpolation), ``iqr`` their distance.
    ``mean`` and ``std`` (n - 1) are as usual, and ``cv`` = std / abs(mean). ``lowest``/``highest``
    are the extremes. A field is None if undefined: the spread of one repetition, the coefficient of
    variation around zero, or everything if no repetition has a value.
    """

    median: Measure
    n: int
    missing: int
    q1: float | None = None
    q3: float | None = None
    iqr: float | None = None
    mean: float | None = None
    std: float | None = None
    cv: float | None = None
    lowest: float | None = None
    highest: float | None = None


def summarise(measures: Sequence[Measure], *, median: Measure | None = None) -> SeedSummary:
    """Return the spread of one measure over repetitions.

    Without ``median`` there is no interval.
    """
    present = np.array(
        [measure.value for measure in measures if measure.value is not None], dtype=np.float64
    )
    missing = len(measures) - present.size
    if present.size == 0:
        reasons = sorted({str(measure.reason) for measure in measures}) or [
            "there are no repetitions"
        ]
        return SeedSummary(median=not_scored("; ".join(reasons)), n=0, missing=missing)
    q1, middle, q3 = (float(value) for value in np.quantile(present, [0.25, 0.5, 0.75]))
    mean = float(present.mean())
    std = float(present.std(ddof=1)) if present.size > 1 else None
    return SeedSummary(
        median=median
        or Measure(value=significant(middle), n=present.size, note="no interval was asked for"),
        n=present.size,
        missing=missing,
        q1=significant(q1),
        q3=significant(q3),
        iqr=significant(q3 - q1),
        mean=significant(mean),
        std=None if std is None else significant(std),
        cv=None if std is None or abs(mean) <= 1e-12 else significant(std / abs(mean)),
        lowest=significant(float(present.min())),
        highest=significant(float(present.max())),
    )


def across_seeds(
    episodes: Sequence[EpisodeSeries],
    scores: Sequence[Mapping[str, Measure]],
    *,
    bootstrap: BootstrapConfig = DEFAULT,
) -> dict[str, SeedSummary]:
    """Return each measure's summary over repetitions of one agent, in the catalogue's order.

    ``scores`` are the scores of the episodes, in the same order, and supply the values. The
    median's interval comes from a two-level bootstrap. Repetitions are drawn with replacement.
    Within a draw all of them get the *same* resampled sessions, because they lived through the same
    market. For one repetition, or several equal ones, it is the interval of that repetition. For
    episodes of different lengths the median has no interval.
    """
    single = bool(scores) and all(one == scores[0] for one in scores[1:])
    drawn = None if single else _draw_together(episodes, bootstrap)
    notes = () if single else [one.index_note for one in episodes if one.index_note]
    summaries = {}
    for info in MEASURES:
        measures = [score[info.id] for score in scores]
        median = measures[0] if single else _median(info.id, measures, drawn, bootstrap)
        if median is not None and notes:
            median = _with_index_note(info.id, median, notes[0])
        summaries[info.id] = summarise(
            measures, median=median if median and median.value is not None else None
        )
    return summaries


def _median(
    name: str, measures: Sequence[Measure], drawn: dict[str, Floats] | None, config: BootstrapConfig
) -> Measure | None:
    present = [measure.value for measure in measures if measure.value is not None]
    if not present:
        return None
    values = drawn.get(name) if drawn is not None and len(present) == len(measures) else None
    if len(present) < len(measures):
        note = (
            f"no interval: {len(measures) - len(present)} of {len(measures)} repetitions have "
            "no value"
        )
    elif values is None:
        note = "no interval: too few sessions, or repetitions over different sessions"
    else:
        note = f"over {len(present)} repetitions" + (
            ", order-dependent" if BY_ID[name].path else ""
        )
    return measure_from(
        float(np.median(present)), values, level=config.level, n=len(present), note=note
    )


def _draw_together(
    episodes: Sequence[EpisodeSeries], config: BootstrapConfig
) -> dict[str, Floats] | None:
    """Return the median of every measure over resampled repetitions, shape (draws,).

    Returns None if the repetitions cannot be resampled.
    """
    sound = [episode for episode in episodes if episode.failure is None and episode.ruined is None]
    if (
        not sound
        or len({episode.sessions for episode in sound}) != 1
        or len(sound) != len(episodes)
    ):
        return None
    n = len(sound[0].sessions)
    if n < config.least:
        return None
    seed = content_seed(config, *(episode.nav for episode in sound))
    block = max(choose_block(episode.returns, config) for episode in sound)
    each = [
        _evaluate_resamples(_SessionMatrix.of(episode), resamples(n, config.draws, block, seed))
        for episode in sound
    ]
    chosen = seed_resamples(len(sound), config.draws, seed)
    shared = set.intersection(*(set(values) for values in each))
    stacked = {name: np.stack([values[name] for values in each]) for name in shared}
    return {
        name: np.asarray(np.median(np.take_along_axis(values.T, chosen, axis=1), axis=1))
        for name, values in stacked.items()
    }


@dataclass(frozen=True, slots=True)
class EpisodeSeries:
    """One episode, session by session.

    ``nav`` has shape (n + 1,) and starts with the initial value. All other series have shape (n,).
    ``cash`` is the cash at the end of a session. ``traded`` is the value of its fills. ``costs``
    are its fees, taxes, borrowing and interest. ``hhi`` is the concentration of the holdings (NaN
    without holdings). ``orders`` is the number of orders placed in a session. ``rejected`` is the
    number of these orders that were rejected, at once or later, wholly or in part. ``abstained``
    and ``failed`` describe the decision. ``index`` has index levels of shape (n + 1,), the first
    from the session before, or is None. ``index_note`` is added to every measure against the index.
    ``rejections`` and ``failures`` count reasons. ``failure`` is the reason why the whole episode
    has no result, or None.

    Raises :class:`UserError` for arrays of wrong lengths, and for more orders rejected than placed.
    """

    sessions: tuple[str, ...]
    nav: Floats
    cash: Floats
    traded: Floats
    costs: Floats
    hhi: Floats
    orders: Ints
    rejected: Ints
    abstained: Bools
    failed: Bools
    periods_per_year: int = 252
    index: Floats | None = None
    index_note: str | None = None
    rejections: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    failure: str | None = None

    def __post_init__(self) -> None:
        n = len(self.sessions)
        if self.nav.shape != (n + 1,):
            hint = "include the initial value"
            raise UserError(f"a path of {self.nav.shape[0]} values for {n} sessions", hint=hint)
        for name in ("cash", "traded", "costs", "hhi", "orders", "rejected", "abstained", "failed"):
            if getattr(self, name).shape != (n,):
                raise UserError(f"'{name}' does not have one number per session ({n})")
        if self.index is not None and self.index.shape != (n + 1,):
            hint = "give one per session and the level of the session before the first"
            raise UserError(f"{self.index.shape[0]} index levels for {n} sessions", hint=hint)
        if (self.rejected > self.orders).any():
            hint = "count a refusal in the session in which the order was placed, once per order"
            raise UserError("more orders were refused than placed in a session", hint=hint)

    @property
    def returns(self) -> Floats:
        """Return the session returns, shape (n,)."""
        return simple_returns(self.nav)

    @property
    def ruined(self) -> str | None:
        """Return the first session that ended at zero or below, or None."""
        gone = np.flatnonzero(~(self.nav[1:] > 0))
        return self.sessions[int(gone[0])] if gone.size else None


def series_from_nav(
    nav: Floats,
    *,
    sessions: tuple[str, ...] | None = None,
    periods_per_year: int = 252,
    index: Floats | None = None,
) -> EpisodeSeries:
    """Return the series of a value path without trades, such as a foreign backtest or an index.

    ``nav`` has shape (n + 1,) with the initial value first. The account is treated as fully
    invested and without trades. So only measures of return and risk are meaningful. Measures of
    trading, concentration and conduct are not.
    """
    nav = np.asarray(nav, dtype=np.float64)
    n = nav.shape[0] - 1
    zeros, counts = np.zeros(n), np.zeros(n, dtype=np.int64)
    return EpisodeSeries(
        sessions=tuple(str(step) for step in range(n)) if sessions is None else sessions,
        nav=nav,
        cash=zeros,
        traded=zeros,
        costs=zeros,
        hhi=np.full(n, np.nan),
        orders=counts,
        rejected=counts,
        abstained=np.ones(n, dtype=np.bool_),
        failed=np.zeros(n, dtype=np.bool_),
        periods_per_year=periods_per_year,
        index=None if index is None else np.asarray(index, dtype=np.float64),
    )
