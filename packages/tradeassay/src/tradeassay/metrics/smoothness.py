"""Whether a record of returns is smoother than markets are: smoothed values, avoided losses, invented numbers.

Nothing here needs a market. Every sign is a test of its own at 1 in 1,000 with a least size beside it, so that a
long honest record is not flagged for a difference that means nothing.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.cosine import cosine_interval
from tradeassay.metrics.intervals import between, significant, student_reach

_LEVEL = 0.001
"""One-sided level of every sign: of a thousand honest records one shows it."""
_LEAST_ROWS = 24
"""Rows without which no sign is looked for: two years of months."""
_DAILY = 100
"""Rows a year above which rows are days."""

_FOLLOWS_SLOW, _FOLLOWS_DAILY = 0.20, 0.25
"""Least lag-one autocorrelation that is a sign, on weekly and monthly rows and on daily ones. Liquid funds and trend
followers stay below (index returns of 1926 to 1980 had up to 0.25 a day, from stocks that did not trade). Three
months of smoothing give 0.4 and more (Getmansky, Lo and Makarov 2004)."""
_FOLLOWED = (1.0, 2.0 / 3.0, 1.0 / 3.0)
"""Weights of the rows before in the test of following: smoothing goes on for some rows and fades."""
_FURTHER = (4, 5, 6, 7, 8)
"""Lags whose squares say how much volatility clusters. Smoothing itself would inflate those of nearer ones."""
_MOST_FOLLOWS = 0.95
"""Largest autocorrelation that a Sharpe ratio is corrected for."""

_POSITIVE = 0.15
"""Least difference between the share of positive rows and that of a normal record with the same Sharpe ratio. The
S&P 500 of 1999 to 2018 reaches 0.12 over ten years of months, and carry funds, which lose rarely and more, a tenth."""

_SMOOTH_SLOW, _SMOOTH_DAILY = 3.0, 4.0
"""Yearly Sharpe ratios that no audited record of liquid assets has held for years: on weekly and monthly rows, and
on daily ones, where a bank's market making comes near."""
_INTEREST, _QUIET = 0.08, 0.02
"""A record that earns no more than this a year and moves by no more than this can be interest on cash or on short
bonds. Its Sharpe ratio says nothing unless the interest was taken off."""

_BINS_LEAST = 60
"""Rows from which the density at zero is known."""
_BIN = 0.776 * 1.364
"""Width of a bin in units of spread x n^(-1/5): Silverman's rule as Bollen and Pool (2009) use it."""
_GAP = 0.6
"""The bin below zero must have lost this much of what a smooth density has there, or more."""

_FINEST = 6
"""Decimals up to which a return is taken to be rounded: 6 are a percent with four."""
_ROUNDED = 0.995
"""Share of returns that must lie on the grid of a rounding."""
_NEIGHBOURS = 5
"""Grid cells to either side that say how many equal pairs rounding explains."""
_REPEATS = 1.5
"""Least ratio of equal pairs to what rounding explains."""
_DIGIT_ROWS, _DIGIT_SPREAD = 100, 30.0
"""Rows from which last digits are counted, and standard deviation in units of the last digit from which they are
even in an honest record."""
_LEAST_STRETCH = 3
"""Rows in a row that are repeated elsewhere before it is called a copy."""
_LEAST_CHANCE = 0.05
"""Chance that two returns are equal that is always allowed for."""
_QUIET_SPELLS = 1.5
"""How many times as likely equal returns are in quiet spells of a price in cents."""
_STILL_ROWS = 3
"""Rows in a row that do not change before they count as idle: cash, and days without a price."""
_NO_CHANGE = 0.005
"""Change between two rows, in standard deviations, that is none."""


class Smoothness(msgspec.Struct, frozen=True, kw_only=True):
    """How smooth a record is.

    ``autocorrelation`` of lag one with a robust interval. ``positive`` is the share of rows above zero among those
    not zero, ``normal_positive`` that of a normal record with the same Sharpe ratio. ``sharpe`` is yearly, with its
    interval; ``unsmoothed_sharpe`` is what it is after the autocorrelation is taken out. ``discontinuity`` is the z
    value of too few small losses beside small gains, None where it cannot be tested. ``repeats`` is how many times
    as many equal pairs of returns there are as rounding explains, None where nothing repeats. ``signs`` are clauses
    in plain English of what is significant. ``too_smooth`` is true where the lower bound of the yearly Sharpe ratio
    is higher than audited records of liquid assets have."""

    autocorrelation: Measure
    positive: float
    normal_positive: float
    sharpe: Measure
    unsmoothed_sharpe: float | None
    discontinuity: float | None
    repeats: float | None
    signs: tuple[str, ...]
    too_smooth: bool


def smoothness(
    total: Floats, year: int, *, beyond_cash: bool = False, alpha_ratio: Measure | None = None
) -> Smoothness:
    """Return how smooth a record is.

    ``total`` are returns of shape (n,), ``year`` of them a year. ``beyond_cash`` says that interest was taken off:
    otherwise a quiet record that earns no more than interest is not called too smooth. ``alpha_ratio`` is the
    yearly alpha over its volatility, which is judged where its lower bound is above that of the Sharpe ratio.
    """
    total = np.asarray(total, dtype=np.float64)
    n = total.size
    active = total[~_idle(total)] if n >= _LEAST_ROWS else total
    deviation = float(total.std()) if n else 0.0
    if n < 2 or not deviation > 1e-12 * float(np.abs(total).max()):
        nothing = not_scored("it never moves" if n > 1 else "fewer than two rows")
        return Smoothness(
            autocorrelation=nothing,
            positive=float((total > 0.0).mean()) if n else 0.0,
            normal_positive=0.5,
            sharpe=nothing,
            unsmoothed_sharpe=None,
            discontinuity=None,
            repeats=None,
            signs=(),
            too_smooth=False,
        )
    follows, follows_sign = _autocorrelation(total, year)
    positive, normal, positive_sign = _positive(active, year)
    sharpe = cosine_interval(total, "sharpe", periods_per_year=year)
    gap, gap_sign = _discontinuity(active)
    repeats, digit_signs = _digits(active)
    smooth, smooth_sign = _too_smooth(total, year, sharpe, beyond_cash, alpha_ratio)
    signs = [follows_sign, positive_sign, gap_sign, *digit_signs, smooth_sign]
    return Smoothness(
        autocorrelation=follows,
        positive=significant(positive),
        normal_positive=significant(normal),
        sharpe=sharpe,
        unsmoothed_sharpe=_unsmoothed(sharpe, follows),
        discontinuity=gap,
        repeats=repeats,
        signs=tuple(sign for sign in signs if sign is not None) if n >= _LEAST_ROWS else (),
        too_smooth=smooth,
    )


def _idle(total: Floats) -> Bools:
    """Return a mask of rows on which nothing happened: exact zeros, and runs of rows that hardly change."""
    changes = np.abs(np.diff(total)) > _NO_CHANGE * total.std()
    # A run of equal rows begins where a row differs from the one before.
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    lengths = np.diff(np.append(begins, total.size))
    idle: Bools = (total == 0.0) | (np.repeat(lengths, lengths) >= _STILL_ROWS)
    return idle


def _row_name(year: int) -> str:
    names = {12: "months", 52: "weeks", 4: "quarters"}
    return names.get(year, "days" if year >= _DAILY else "rows")


def _autocorrelation(total: Floats, year: int) -> tuple[Measure, str | None]:
    """Return the lag-one autocorrelation with its 95 % interval, and the sign if there is one.

    The sign is a serial rank test (Wald and Wolfowitz 1943) on normal scores, which no tail can decide: the sum of
    their first three autocorrelations, weighted by :data:`_FOLLOWED`. Volatility that clusters makes products of
    neighbours vary more. By how much is read from squares of scores 4 to 8 rows apart."""
    n = total.size
    gap = total - total.mean()
    whole = float(gap @ gap)
    products = gap[1:] * gap[:-1]
    value = float(products.sum()) / whole
    if n < _LEAST_ROWS:
        return Measure(value=significant(value), n=n, note=f"no interval: {n} rows"), None
    # The interval is that of the influence function: products less what the variance takes away.
    influence = products - value * 0.5 * (gap[1:] ** 2 + gap[:-1] ** 2)
    error = math.sqrt(float(influence @ influence)) / whole
    reach = student_reach(n - 2, 0.95) * error
    measure = between(value, (value - reach, value + reach), 0.95, n)
    least = _FOLLOWS_DAILY if year >= _DAILY else _FOLLOWS_SLOW
    if value >= least and _rank_following(total) > student_reach(n - 2, 1.0 - 2.0 * _LEVEL):
        return measure, f"returns follow each other (autocorrelation {value:.2f})"
    return measure, None


def _rank_following(total: Floats) -> float:
    """Return the z value of how normal scores of returns follow each other."""
    from scipy.special import ndtri

    n = total.size
    _, place, counts = np.unique(total, return_inverse=True, return_counts=True)
    # Equal returns share the mean of their ranks.
    rank = (np.cumsum(counts) - 0.5 * counts)[place]
    score = ndtri(rank / n)
    score = (score - score.mean()) / score.std()
    squares = score * score
    clusters = [float((squares[lag:] * squares[:-lag]).mean()) for lag in _FURTHER if lag < n // 2]
    sums = 0.0
    for lag, weight in enumerate(_FOLLOWED, start=1):
        # An autocorrelation of independent rows is -1 / n on average, for the mean is their own.
        sums += weight * (float((score[lag:] * score[:-lag]).sum()) / n + 1.0 / n)
    weights = math.sqrt(sum(weight * weight for weight in _FOLLOWED))
    return sums * math.sqrt(n / max(1.0, float(np.mean(clusters)))) / weights


def _unsmoothed(sharpe: Measure, follows: Measure) -> float | None:
    """Return the Sharpe ratio of the returns behind smoothed ones.

    Smoothed returns are a (Geltner 1993) mix of the true return and the last smoothed one, so that the variance of
    the true ones is (1 + c) / (1 - c) times as large, c being the autocorrelation. The mean is the same."""
    if sharpe.value is None or follows.value is None:
        return None
    c = min(max(follows.value, 0.0), _MOST_FOLLOWS)
    return significant(sharpe.value * math.sqrt((1.0 - c) / (1.0 + c)))


def _positive(active: Floats, year: int) -> tuple[float, float, str | None]:
    """Return the share of positive rows, that of a normal record with the same Sharpe ratio, and the sign.

    The difference has the error of its influence function (delta method), one-sided at :data:`_LEVEL`."""
    from scipy.special import ndtr

    n = active.size
    if n < 2 or not active.std() > 0.0:
        return (float((active > 0.0).mean()) if n else 0.0), 0.5, None
    ratio = float(active.mean() / active.std())
    share = float((active > 0.0).mean())
    normal = float(ndtr(ratio))
    z = (active - active.mean()) / active.std()
    density = math.exp(-0.5 * ratio * ratio) / math.sqrt(2.0 * math.pi)
    influence = (active > 0.0) - share - density * (z - 0.5 * ratio * (z * z - 1.0))
    error = math.sqrt(float(influence @ influence)) / n
    if n < _LEAST_ROWS or share - normal < _POSITIVE:
        return share, normal, None
    if share - normal < student_reach(n - 1, 1.0 - 2.0 * _LEVEL) * error:
        return share, normal, None
    rows = _row_name(year)
    clause = f"{share:.0%} of the {rows} are positive, {normal:.0%} in a normal record like it"
    return share, normal, clause


def _discontinuity(active: Floats) -> tuple[float | None, str | None]:
    """Return the z value of too few small losses beside small gains (Bollen and Pool 2009), and the sign.

    The bins end and begin at zero. What a smooth density has in them is that of a normal kernel as wide as a bin;
    counts are compared with it by the binomial error. Too few in the bin below and too many in the one above are
    both asked for, and the value is that of their difference."""
    from scipy.special import ndtr

    n = active.size
    if n < _BINS_LEAST:
        return None, None
    quarter, three = np.quantile(active, [0.25, 0.75])
    spread = min(float(active.std()), float(three - quarter) / 1.34)
    if not spread > 0.0:
        return None, None
    width = _BIN * spread * n**-0.2
    at_zero = ndtr(-active / width)
    below = float((at_zero - ndtr((-width - active) / width)).mean())
    above = float((ndtr((width - active) / width) - at_zero).mean())
    losses = int(((active < 0.0) & (active >= -width)).sum())
    gains = int(((active > 0.0) & (active <= width)).sum())
    few = (losses - n * below) / math.sqrt(max(n * below * (1.0 - below), 1e-12))
    many = (gains - n * above) / math.sqrt(max(n * above * (1.0 - above), 1e-12))
    # The two counts exclude each other: the variance of their difference has twice their product.
    variance = n * (below + above - (above - below) ** 2)
    z = ((gains - n * above) - (losses - n * below)) / math.sqrt(max(variance, 1e-12))
    certain = z > student_reach(10**6, 1.0 - 2.0 * _LEVEL)
    if certain and few < -1.645 and many > 0.0 and losses <= _GAP * n * below:
        missing = round(n * below - losses)
        return significant(z), f"small losses are missing beside small gains (about {missing})"
    return significant(z), None


def _digits(active: Floats) -> tuple[float | None, list[str]]:
    """Return how many times as many equal pairs there are as rounding explains, and signs of invented numbers."""
    signs: list[str] = []
    if active.size < _LEAST_ROWS:
        return None, signs
    decimals = _decimals(active)
    repeats = None
    if decimals is not None:
        cells = np.rint(active * 10.0**decimals).astype(np.int64)
        repeats, certain = _equal_pairs(cells)
        if certain:
            signs.append(f"the same numbers come {repeats:.1f} times as often as rounding explains")
        if _uneven_digits(cells):
            signs.append("last digits are not even")
    copied = _copied_rows(active)
    if copied:
        signs.append(f"{copied} rows in a row are repeated elsewhere")
    return repeats, signs


def _decimals(active: Floats) -> int | None:
    """Return the decimals to which returns are rounded, None where they are not."""
    for decimals in range(2, _FINEST + 1):
        scaled = active * 10.0**decimals
        if (np.abs(scaled - np.rint(scaled)) < 1e-6).mean() >= _ROUNDED:
            return decimals
    return None


def _equal_pairs(cells: Ints) -> tuple[float | None, bool]:
    """Return the ratio of equal pairs to what rounding explains, and whether it is certainly above it.

    A smooth density has as many pairs in the same cell as it has, to one side, in cells so or so far apart. The
    mean of the pairs 1 to :data:`_NEIGHBOURS` cells apart is therefore what rounding explains, however uneven the
    density is and however volatility changes."""
    values, counts = np.unique(cells, return_counts=True)
    equal = float((counts * (counts - 1)).sum()) / 2.0
    near = 0.0
    for apart in range(1, _NEIGHBOURS + 1):
        place = np.searchsorted(values, values + apart)
        inside = place < values.size
        hit = np.zeros(values.size, dtype=bool)
        hit[inside] = values[place[inside]] == values[inside] + apart
        near += float((counts[hit] * counts[place[hit]]).sum())
    expected = near / (2.0 * _NEIGHBOURS)
    if equal == 0.0:
        return None, False
    ratio = equal / max(expected, 0.5)
    # Pairs within a value are not independent: three equal ones are three pairs. The error counts values.
    error = math.sqrt(expected * (1.0 + 0.5 / _NEIGHBOURS) * (1.0 + 2.0 * expected / cells.size))
    reach = student_reach(10**6, 1.0 - 2.0 * _LEVEL) * error + 4.0
    return significant(ratio), ratio >= _REPEATS and equal - expected > reach


def _uneven_digits(cells: Ints) -> bool:
    """Return whether the last digits 1 to 9 are unevenly frequent (chi-squared, :data:`_LEVEL`).

    Zero is left out: a record of which a part was rounded more coarsely has too many of them, and is honest."""
    from scipy.special import chdtrc

    digits = np.abs(cells) % 10
    digits = digits[digits > 0]
    if digits.size < _DIGIT_ROWS or cells.std() < _DIGIT_SPREAD:
        return False
    counts = np.bincount(digits, minlength=10)[1:]
    even = digits.size / 9.0
    return bool(chdtrc(8, float(((counts - even) ** 2).sum() / even)) < _LEVEL)


def _copied_rows(active: Floats) -> int:
    """Return the longest stretch of rows that is found again elsewhere, 0 where chance explains it.

    Two stretches of so many rows are equal by chance with the probability that two rows are, to that power. The
    longest that chance explains among all pairs of rows at :data:`_LEVEL` is allowed. Prices in cents repeat
    returns when they repeat prices: the chance is that of two returns a fifth of the deviation apart, times
    :data:`_QUIET_SPELLS`, and at least :data:`_LEAST_CHANCE`."""
    n = active.size
    _, place, counts = np.unique(np.round(active, 12), return_inverse=True, return_counts=True)
    coarse = np.unique(np.rint(active / (0.2 * active.std())), return_counts=True)[1]
    alike = float((coarse * (coarse - 1.0)).sum()) / (n * (n - 1.0))
    chance = max(_QUIET_SPELLS * alike, _LEAST_CHANCE)
    if chance >= 1.0 or counts.max() == 1:
        return 0
    pairs = 0.5 * n * n
    allowed = math.ceil(math.log(pairs / _LEVEL) / -math.log(chance))
    return _longest_repeat(place, max(allowed, _LEAST_STRETCH))


def _longest_repeat(place: Ints, least: int) -> int:
    """Return the length of the longest stretch of at least ``least`` rows that comes twice, 0 where none does."""
    label = place.astype(np.int64)
    longest = 0
    # Stretches of twice the length are pairs of stretches: labels double until none comes twice.
    labels = {1: label}
    size = 1
    while size * 2 <= least:
        labels[size * 2] = _paired(labels[size], labels[size], size)
        size *= 2
    current, length = labels[1], 1
    while length < least:
        step = max(size for size in labels if size <= least - length)
        current = _paired(current, labels[step], length)
        length += step
    while np.unique(current).size < current.size:
        longest = length
        if length >= place.size // 2:
            break
        current = _paired(current, label, length)
        length += 1
    return longest


def _paired(first: Ints, second: Ints, shift: int) -> Ints:
    """Return labels of stretches made of one of ``first`` and, ``shift`` rows later, one of ``second``."""
    count = min(first.size, second.size - shift)
    if count <= 0:
        return np.zeros(0, dtype=np.int64)
    both = first[:count] * (int(second.max()) + 1) + second[shift : shift + count]
    return np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.int64)


def _too_smooth(
    total: Floats, year: int, sharpe: Measure, beyond_cash: bool, alpha_ratio: Measure | None
) -> tuple[bool, str | None]:
    """Return whether the lower bound of the yearly Sharpe ratio, or of the alpha ratio, is out of reach."""
    if total.size < max(year, _LEAST_ROWS // 2) or sharpe.low is None:
        return False, None
    quiet = float(total.std()) * math.sqrt(year) <= _QUIET
    if not beyond_cash and quiet and float(total.mean()) * year <= _INTEREST:
        return False, None
    name, value, low = "Sharpe ratio", sharpe.value, sharpe.low
    if alpha_ratio is not None and alpha_ratio.low is not None and alpha_ratio.low > low:
        name, value, low = "alpha ratio", alpha_ratio.value, alpha_ratio.low
    most = _SMOOTH_DAILY if year >= _DAILY else _SMOOTH_SLOW
    if low <= most or value is None:
        return False, None
    return True, f"the yearly {name} of {value:.1f} is higher than audited records have"
