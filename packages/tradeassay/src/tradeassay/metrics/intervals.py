"""Block bootstrap intervals, Wilson intervals of shares, and the variance of dependent means.

The bootstrap is the stationary one of Politis and Romano (1994). A resample concatenates blocks of
the original sessions. Blocks start anywhere, wrap around the end and have geometric lengths.
Adjacent sessions mostly stay adjacent, which preserves volatility clusters and momentum. The
indices are drawn once per series, and every measure is evaluated on the same resamples.

This module converts the generator's raw 64-bit stream into indices. numpy guarantees this stream
for ever, but not its distributions. Equal input therefore gives equal resamples in every version.

Block lengths follow Politis and White (2004), "Automatic block-length selection for the dependent
bootstrap", with the corrected constant of Patton, Politis and White (2009). This mean block length
minimises the mean squared error of the estimated variance of the sample mean. A test checks that it
equals ``arch.bootstrap.optimal_block_length`` to 1e-9. It is computed here because importing
``arch`` loads pandas and statsmodels, and every score of every run needs a block length.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from statistics import NormalDist

import msgspec
import numpy as np

from tradeassay.core.arguments import check_fields
from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.measure import Measure, not_scored

_MOST_UNDEFINED = 0.05


def significant(value: float, digits: int = 12) -> float:
    """Return ``value`` rounded to ``digits`` significant digits.

    Machines may differ in the last bits. Stored numbers are rounded so that this does not change a
    file.
    """
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def between(
    value: float, ends: tuple[float, float], level: float, n: int, note: str | None = None
) -> Measure:
    """Return a measure with its interval, rounded for storage."""
    low, high = (significant(float(end)) for end in ends)
    return Measure(value=significant(value), low=low, high=high, level=level, n=n, note=note)


def student_reach(freedom: float, level: float) -> float:
    """Return the half-width of Student's two-sided interval in standard errors."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(freedom, 0.5 + level / 2.0))


def percentile_interval(drawn: Floats, level: float) -> tuple[float, float] | None:
    """Return the central ``level`` interval of resampled values, shape (draws,).

    Returns None if more than 5 % of the resamples have no value, because the remaining ones would
    be biased.
    """
    defined = drawn[np.isfinite(drawn)]
    if defined.size == 0 or defined.size < (1.0 - _MOST_UNDEFINED) * drawn.size:
        return None
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return significant(float(low)), significant(float(high))


def wilson_interval(successes: float, n: int, level: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share (Wilson 1927).

    It stays within 0 and 1, and its width is positive for shares of 0 and 1.
    """
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At shares of 0 and 1 the formula gives 0 and 1 up to rounding.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return significant(low), significant(high)


def measure_from(
    value: float, drawn: Floats | None, *, level: float, n: int, note: str | None = None
) -> Measure:
    """Return a measure with its percentile interval, or with a note if there is none.

    ``drawn`` are resampled values, or None if ``note`` gives the reason for their absence.
    """
    if not math.isfinite(value):
        return not_scored("it is not defined for this series")
    bounds = None if drawn is None else percentile_interval(drawn, level)
    if drawn is not None and bounds is None:
        undefined = 100.0 * (1.0 - np.isfinite(drawn).mean())
        note = f"no interval: {undefined:.0f} % of the resamples have no value"
    low, high = bounds if bounds is not None else (None, None)
    return Measure(value=significant(value), low=low, high=high, level=level, n=n, note=note)


def rate_measure(successes: int, n: int, *, nothing: str, level: float = 0.95) -> Measure:
    """Return successes / n with Wilson's score interval.

    If n is 0, there is no value, and ``nothing`` is the reason.
    """
    if n == 0:
        return not_scored(nothing)
    low, high = wilson_interval(successes, n, level)
    return Measure(
        value=significant(successes / n),
        low=low,
        high=high,
        level=level,
        n=n,
        note="interval by Wilson's formula",
    )


def long_run_variance(values: Floats, lags: int) -> Floats:
    """Return the variance of sqrt(n) x mean along the last axis (Newey and West 1987).

    It uses Bartlett's kernel. ``values`` has shape (..., n). ``lags`` is the number of
    autocovariances; 0 gives the plain variance (divided by n). It is never negative, and NaN
    without observations.
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    if n == 0:
        return np.full(values.shape[:-1], np.nan)
    centred = values - values.mean(axis=-1, keepdims=True)
    total = (centred * centred).sum(axis=-1)
    for lag in range(1, min(lags, n - 1) + 1):
        total = total + 2.0 * (1.0 - lag / (lags + 1.0)) * (
            centred[..., lag:] * centred[..., :-lag]
        ).sum(axis=-1)
    return np.asarray(total / n)


def variance_inflation(values: Floats, lags: int) -> float:
    """Return the variance of the mean relative to independent observations.

    It is 1 for a series that does not vary. The effective number of observations is n divided by
    it.
    """
    plain = float(long_run_variance(values, 0))
    return float(long_run_variance(values, lags)) / plain if plain > 0.0 else 1.0


def ar1_inflation(correlation: float) -> float:
    """Return the variance inflation of a first-order autoregression: (1 + c) / (1 - c)."""
    return (1.0 + correlation) / (1.0 - correlation)


def _longest_block(n: int) -> float:
    """Return the largest mean block length for ``n`` observations.

    It is min(3 sqrt(n), n / 3), rounded up.
    """
    return float(math.ceil(min(3.0 * math.sqrt(n), n / 3.0)))


def mean_block_length(values: Floats) -> float:
    """Return the automatic mean block length of one series of shape (n,), in observations.

    It is between 1 and the largest length. It is 1 (no blocks) for a series that does not vary or
    has fewer than eight observations.
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[0]
    if n < 8:
        return 1.0
    centred = values - values.mean()
    if np.abs(centred).max() <= 1e-12 * np.abs(values).max():
        return 1.0
    run = max(5, int(math.log10(n)))
    lags = min(math.ceil(math.sqrt(n)) + run, n - 2)
    covariance = np.array([np.sum(centred[k:] * centred[: n - k]) for k in range(lags + 1)]) / n
    # Autocorrelations, each scaled by the overlapping parts of the series.
    squares = centred * centred
    head, tail, kept = np.cumsum(squares), np.cumsum(squares[::-1]), n - 1 - np.arange(lags + 1)
    scale = np.sqrt(head[kept - 1] * tail[kept - 1])
    quiet = np.abs(covariance * n) / np.where(scale > 0, scale, np.inf) < 2.0 * math.sqrt(
        math.log10(n) / n
    )
    # Twice the first lag that is followed by enough insignificant lags.
    first = next((lag for lag in range(lags - run + 1) if quiet[lag : lag + run].all()), lags)
    window = min(2 * max(first, 1), lags)
    k = np.arange(1, window + 1)
    taper = np.minimum(1.0, 2.0 * (1.0 - k / window))
    spectral_slope = 2.0 * float(np.sum(taper * k * covariance[k]))
    spectral_level = float(covariance[0] + 2.0 * np.sum(taper * covariance[k]))
    if spectral_level <= 0.0:
        # A flat-top estimate can be negative. Only the upper bound is then safe.
        return max(1.0, _longest_block(n))
    length: float = abs(spectral_slope / spectral_level) ** (2.0 / 3.0) * n ** (1.0 / 3.0)
    return min(max(1.0, length), max(1.0, _longest_block(n)))


CHUNK = 1 << 16
"""Cells per chunk of resamples, which fit into a processor's cache. They do not affect results."""
_RESERVED = 1 << 21
"""Cells of an array that is allocated and freed before the first chunk. It is larger than a
chunk."""


MOST_DRAWS = 1_000_000
"""Largest number of draws. More would take hours to score or verify a run."""


class BootstrapConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of bootstrap intervals.

    ``draws`` is the number of resamples. The percentile interval has the level ``level``. ``block``
    is the mean block length in sessions. None selects it automatically between ``shortest`` and
    min(3 sqrt(n), n / 3). Below ``least`` observations there is no interval. ``salt`` only changes
    the resamples.
    """

    draws: int = 1000
    level: float = 0.95
    block: float | None = None
    shortest: float = 1.0
    least: int = 20
    salt: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.draws <= MOST_DRAWS:
            raise UserError(
                f"{self.draws} bootstrap draws", hint=f"give 1 to {MOST_DRAWS}, preferably 1000"
            )
        blocks = (self.block is None or self.block >= 1.0) and self.shortest >= 1.0
        if not (0.0 < self.level < 1.0 and blocks and self.least >= 2):
            hint = "a level between 0 and 1, blocks of 1 or more sessions, least 2 or more"
            raise UserError(
                f"no intervals at level {self.level} from {self.least} observations", hint=hint
            )


DEFAULT = BootstrapConfig()


def too_few(value: float, n: int, config: BootstrapConfig, what: str = "sessions") -> Measure:
    """Return a measure without an interval because ``n`` sessions are too few."""
    note = f"no interval: {n} {what}, at least {config.least} are needed"
    return measure_from(value, None, level=config.level, n=n, note=note)


def choose_block(returns: Floats, config: BootstrapConfig) -> float:
    """Return the mean block length for returns of shape (n,).

    It is the larger of the automatic lengths for the returns and for their squares. Ratios depend
    on both, and returns with independent signs can still have calm and volatile periods.
    """
    n = returns.shape[0]
    highest = max(1.0, _longest_block(n))
    if config.block is not None:
        return min(config.block, max(1.0, float(n)))
    centred = returns - returns.mean()
    chosen = max(mean_block_length(returns), mean_block_length(centred * centred))
    # Rounded so that the last bits of the estimate cannot move the end of a block.
    return round(min(max(chosen, config.shortest), highest), 4)


def content_seed(config: BootstrapConfig, *arrays: Floats) -> int:
    """Return a seed from the settings and the values. Equal input gives equal resamples."""
    digest = hashlib.sha256(canonical_json(config))
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return int.from_bytes(digest.digest()[:16], "little")


def resamples(n: int, draws: int, block: float, seed: int) -> Iterator[Ints]:
    """Yield index matrices of a stationary bootstrap, shape (rows, n).

    They have ``draws`` rows in total. The rows do not depend on the size of the chunks.
    """
    # After a large array was freed, the C library reuses the memory of smaller arrays instead of
    # returning it each time. A thousand resamples of ten years then cause a tenth of the page
    # faults.
    np.empty(_RESERVED)
    stream = np.random.PCG64(seed)
    rows = max(1, CHUNK // max(n, 1))
    # A uniform number is k / 2^53, so the integer k is compared directly. A block's start is
    # computed only where a block begins.
    bound = np.uint64(math.ceil(min(1.0, 1.0 / block) * 2.0**53))
    position = np.arange(n)
    for first in range(0, draws, rows):
        count = min(rows, draws - first)
        raw = _whole(stream, count * 2 * n).reshape(count, 2, n)
        begins = raw[:, 1, :] < bound
        begins[:, 0] = True
        at = np.flatnonzero(begins)
        row = at // n * n
        starts = (raw.reshape(-1).take(at + row) * 2.0**-53 * n).astype(np.int64)
        indices = np.repeat(starts + row - at, np.diff(at, append=count * n)).reshape(count, n)
        indices += position
        np.subtract(indices, n, out=indices, where=indices >= n)
        yield indices


def seed_resamples(seeds: int, draws: int, seed: int) -> Ints:
    """Return the seeds of each draw, with replacement, shape (draws, seeds).

    Seeds are repetitions of an episode.
    """
    uniform = _whole(np.random.PCG64(seed ^ 0x5EED), draws * seeds) * 2.0**-53
    return (uniform * seeds).astype(np.int64).reshape(draws, seeds)


def _whole(stream: np.random.PCG64, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return the 53 leading bits of the next numbers of a stream."""
    raw = np.asarray(stream.random_raw(count), dtype=np.uint64)
    raw >>= np.uint64(11)
    return raw
