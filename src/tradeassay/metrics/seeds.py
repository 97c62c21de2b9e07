"""One agent, several repetitions: how much of a result is the seed?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats, Ints
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples, seed_resamples
from tradeassay.metrics.catalogue import BY_ID, MEASURES
from tradeassay.metrics.evaluate import Sessions, evaluate_resamples
from tradeassay.metrics.intervals import measure_from, significant
from tradeassay.metrics.score import DEFAULT, with_index_note
from tradeassay.metrics.series import EpisodeSeries


class SeedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A measure over repetitions.

    ``median`` carries the interval, ``n`` is how many repetitions have a value and ``missing`` how many do not.
    ``q1``/``q3`` are the quartiles (linear interpolation), ``iqr`` their distance, ``mean`` and ``std`` (n - 1)
    the usual ones, ``cv`` = std / abs(mean), ``lowest``/``highest`` the extremes. None where undefined: the
    spread of one repetition, the coefficient of variation around zero, everything when no repetition has a value.
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
    """Return the spread of one measure over repetitions; without ``median`` the middle gets no interval."""
    present = np.array([measure.value for measure in measures if measure.value is not None], dtype=np.float64)
    missing = len(measures) - present.size
    if present.size == 0:
        reasons = sorted({str(measure.reason) for measure in measures}) or ["there are no repetitions"]
        return SeedSummary(median=not_scored("; ".join(reasons)), n=0, missing=missing)
    q1, middle, q3 = (float(value) for value in np.quantile(present, [0.25, 0.5, 0.75]))
    mean = float(present.mean())
    std = float(present.std(ddof=1)) if present.size > 1 else None
    return SeedSummary(
        median=median or Measure(value=significant(middle), n=present.size, note="no interval was asked for"),
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
    benchmark_nav: Floats | None = None,
    bootstrap: BootstrapConfig = DEFAULT,
) -> dict[str, SeedSummary]:
    """Return each measure's summary over repetitions of one agent, in the catalogue's order.

    ``scores`` are the episodes' own, in the same order; they supply the values. The median's interval comes
    from a two-level bootstrap: repetitions are drawn with replacement, and within a draw all of them
    get the *same* resampled sessions, because they lived through the same market. With one repetition it
    is that repetition's own interval. Episodes of different lengths get a median without an interval.
    """
    single = len(episodes) == 1
    drawn = None if single else _draw(episodes, benchmark_nav, bootstrap)
    notes = () if single or benchmark_nav is not None else [one.index_note for one in episodes if one.index_note]
    summaries = {}
    for info in MEASURES:
        measures = [score[info.id] for score in scores]
        median = measures[0] if single else _median(info.id, measures, drawn, bootstrap)
        if median is not None and notes:
            median = with_index_note(info.id, median, notes[0])
        summaries[info.id] = summarise(measures, median=median if median and median.value is not None else None)
    return summaries


def _median(
    name: str, measures: Sequence[Measure], drawn: dict[str, Floats] | None, config: BootstrapConfig
) -> Measure | None:
    present = [measure.value for measure in measures if measure.value is not None]
    if not present:
        return None
    if len(present) < len(measures):
        note = f"no interval: {len(measures) - len(present)} of {len(measures)} repetitions have no value"
    elif drawn is None or name not in drawn:
        note = "no interval: too few sessions, or repetitions over different sessions"
    else:
        note = f"over {len(present)} repetitions" + (", order-dependent" if BY_ID[name].path else "")
        return measure_from(float(np.median(present)), drawn[name], level=config.level, n=len(present), note=note)
    return measure_from(float(np.median(present)), None, level=config.level, n=len(present), note=note)


def _draw(
    episodes: Sequence[EpisodeSeries], benchmark_nav: Floats | None, config: BootstrapConfig
) -> dict[str, Floats] | None:
    """Return the median over redrawn repetitions of every measure, shape (draws,); None when it cannot be done."""
    sound = [episode for episode in episodes if episode.failure is None and episode.ruined is None]
    if not sound or len({episode.sessions for episode in sound}) != 1 or len(sound) != len(episodes):
        return None
    n = len(sound[0].sessions)
    if n < config.least:
        return None
    seed = content_seed(config, *(episode.nav for episode in sound))
    block = max(choose_block(episode.returns, config) for episode in sound)
    each = [
        evaluate_resamples(Sessions.of(episode, benchmark_nav), resamples(n, config.draws, block, seed))
        for episode in sound
    ]
    chosen = seed_resamples(len(sound), config.draws, seed)
    shared = set.intersection(*(set(values) for values in each))
    return {name: _median_of(np.stack([values[name] for values in each]), chosen) for name in shared}


def _median_of(values: Floats, chosen: Ints) -> Floats:
    picked = np.take_along_axis(values.T, chosen, axis=1)
    return np.asarray(np.median(picked, axis=1))
