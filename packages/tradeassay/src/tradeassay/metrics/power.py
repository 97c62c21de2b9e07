"""Statistical power of a design: the number of sessions and seeds needed to detect skill.

The alpha ratio x is an agent's annual alpha divided by its own volatility. With Y sessions per
year, its mean return per session is x / sqrt(Y) standard deviations. The test asks whether the mean
over sessions and seeds differs from zero. Its error shrinks with the number of sessions. More seeds
help only if they behave differently. Serially dependent sessions contain less information.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.metrics.intervals import (
    BootstrapConfig,
    choose_block,
    significant,
    variance_inflation,
)

_SEED_CORRELATION = 0.5
"""Default correlation of two seeds' active returns: they share half of the variance."""
SKILLED = 1.0
"""An annual alpha ratio that few professionals reach. A design that cannot detect it is useless."""
_MOST_SEEDS = 1000
"""Maximum number of seeds in a plan.

The variation that all seeds share does not shrink with more seeds.
"""
LEAST_RATIO = 1e-6
"""Minimum alpha ratio that counts as an effect.

No market has enough sessions to detect a smaller ratio.
"""
_NORMAL = NormalDist()


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment with ``sessions`` and ``seeds``, tested two-sided at ``level`` for ``power``.

    ``seed_correlation`` is the correlation of two seeds' active returns (1: identical seeds).
    ``inflation`` is the factor by which dependence increases the variance of the mean (1:
    independent sessions; see :func:`~tradeassay.metrics.intervals.ar1_inflation`). ``comparisons``
    is the number of agents judged together. Raises :class:`UserError` for invalid numbers.
    """

    sessions: int = 252
    seeds: int = 1
    level: float = 0.95
    power: float = 0.8
    seed_correlation: float = _SEED_CORRELATION
    inflation: float = 1.0
    comparisons: int = 1
    periods_per_year: int = 252

    def __post_init__(self) -> None:
        if self.sessions < 1 or self.seeds < 1 or self.comparisons < 1 or self.periods_per_year < 1:
            raise UserError(
                "an experiment needs sessions, seeds and comparisons", hint="give 1 or more of each"
            )
        if not (0.0 < self.level < 1.0 and 0.0 < self.power < 1.0):
            raise UserError(
                f"level {self.level} and power {self.power}", hint="both must be between 0 and 1"
            )
        if not 0.0 <= self.seed_correlation <= 1.0 or not self.inflation > 0.0:
            raise UserError(
                f"a seed correlation of {self.seed_correlation} and an inflation of "
                f"{self.inflation}",
                hint="a correlation is from 0 to 1, an inflation above 0",
            )

    @property
    def noise(self) -> float:
        """Return the variance of the mean of one session over all seeds.

        The unit is the variance of one seed.
        """
        shared = self.seed_correlation
        return self.inflation * (shared + (1.0 - shared) / self.seeds)

    @property
    def judged(self) -> float:
        """Return the test's estimate of :attr:`noise`.

        The test resamples sessions and seeds. The variance that seeds do not share is then counted
        (3 k - 2) / k times instead of once. So with k > 1 seeds the test is conservative.
        """
        shared, k = self.seed_correlation, self.seeds
        return self.inflation * (shared + (1.0 - shared) * (3.0 * k - 2.0) / (k * k))

    @property
    def reach(self) -> float:
        """Return the smallest true mean that is detected with the design's power.

        The unit is the standard deviation of one seed.
        """
        return self.critical * math.sqrt(self.judged) + _NORMAL.inv_cdf(self.power) * math.sqrt(
            self.noise
        )

    @property
    def critical(self) -> float:
        """Return the critical value in standard errors, corrected for comparisons (Bonferroni)."""
        return _NORMAL.inv_cdf(1.0 - (1.0 - self.level) / self.comparisons / 2.0)


def power_of(ratio: float, design: Design) -> float:
    """Return the probability of detecting an agent with the true annual alpha ratio ``ratio``."""
    distance = abs(ratio) * math.sqrt(design.sessions / design.periods_per_year / design.noise)
    critical = design.critical * math.sqrt(design.judged / design.noise)
    return _NORMAL.cdf(distance - critical) + _NORMAL.cdf(-distance - critical)


def minimum_detectable_ratio(design: Design) -> float:
    """Return the smallest annual alpha ratio that the design detects with its power."""
    return design.reach * math.sqrt(design.periods_per_year / design.sessions)


def sessions_needed(ratio: float, design: Design) -> int:
    """Return the number of sessions needed to detect ``ratio`` with the design's power.

    The design's own number of sessions is ignored. Raises :class:`UserError` for a ``ratio`` below
    :data:`LEAST_RATIO`, which no number of sessions can detect, and for one that is not a number.
    """
    if not math.isfinite(ratio):
        raise UserError(f"an alpha ratio of {ratio}", hint="give a number such as 0.5")
    if abs(ratio) < LEAST_RATIO:
        what = "an alpha ratio of 0" if ratio == 0.0 else f"an alpha ratio as small as {ratio:g}"
        raise UserError(f"{what} is no effect", hint="give the ratio that you want to detect")
    return math.ceil(design.periods_per_year * (design.reach / ratio) ** 2)


def seeds_needed(ratio: float, design: Design) -> int | None:
    """Return the number of seeds needed to detect ``ratio`` in the design's sessions.

    Returns None if :data:`_MOST_SEEDS` are not enough.
    """
    candidates: list[int] = [*range(1, 101), *range(110, _MOST_SEEDS + 1, 10)]
    for seeds in candidates:
        tried = msgspec.structs.replace(design, seeds=seeds)
        if minimum_detectable_ratio(tried) <= abs(ratio):
            return seeds
    return None


def measured_design(
    active: Floats,
    *,
    level: float = 0.95,
    power: float = 0.8,
    comparisons: int = 1,
    periods_per_year: int = 252,
) -> Design:
    """Return the design of a completed experiment with its measured dependence.

    ``active`` are active returns, shape (n,) or (seeds, n). Raises :class:`UserError` for fewer
    than two sessions.
    """
    table = np.atleast_2d(np.asarray(active, dtype=np.float64))
    seeds, n = table.shape
    if n < 2 or not np.isfinite(table).all():
        raise UserError(
            f"{n} active returns, or gaps in them", hint="give at least two sessions without gaps"
        )
    mean = table.mean(axis=0)
    moving = table[table.std(axis=1) > 0]
    shared = _SEED_CORRELATION if seeds < 2 else 1.0  # identical seeds
    if seeds > 1 and len(moving) > 1:
        pairs = np.atleast_2d(np.corrcoef(moving))[np.triu_indices(len(moving), 1)]
        shared = min(1.0, max(0.0, float(pairs.mean())))
    block = choose_block(mean, BootstrapConfig())
    inflation = variance_inflation(mean, min(n - 1, round(block) if block > 1.0 else 0))
    return Design(
        sessions=n,
        seeds=seeds,
        level=level,
        power=power,
        seed_correlation=shared,
        inflation=max(inflation, 0.05),
        comparisons=comparisons,
        periods_per_year=periods_per_year,
    )


class PowerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The effects that a design can and cannot detect.

    ``chance`` is the probability of detecting an agent with the true ratio ``ratio``. ``smallest``
    is the smallest ratio detected with the design's power. ``sessions`` is the number of sessions
    needed to detect ``ratio``. ``hopeless`` means a chance below one half. ``sentence`` states the
    result in plain words.
    """

    ratio: float
    chance: float
    smallest: float
    sessions: int
    hopeless: bool
    sentence: str


def power_summary(design: Design, *, ratio: float = SKILLED) -> PowerSummary:
    """Return the alpha ratios that a design can detect, before or after the experiment is run."""
    needed = sessions_needed(ratio, design)
    chance, smallest = power_of(ratio, design), minimum_detectable_ratio(design)
    size = f"{design.sessions:,} sessions" + (
        f" and {design.seeds} seeds" if design.seeds > 1 else ""
    )
    among = f" among {design.comparisons}" if design.comparisons > 1 else ""
    if chance < 0.5:
        sentence = (
            f"{size} can hardly show skill: an agent{among} with a true alpha ratio of {ratio:g} "
            "would be "
            f"found in {chance:.0%} of such windows; {design.power:.0%} takes about {needed:,} "
            "sessions"
        )
    else:
        sentence = (
            f"{size} show an alpha ratio of {smallest:.2g} or more with a chance of "
            f"{design.power:.0%}, "
            f"one of {ratio:g} with {chance:.0%}"
        )
    return PowerSummary(
        ratio=ratio,
        chance=significant(chance),
        smallest=significant(smallest),
        sessions=needed,
        hopeless=chance < 0.5,
        sentence=sentence,
    )
