"""Test whether returns are smoother than markets.

The causes are smoothed values, avoided losses and invented numbers. No test needs a market series.
Every sign is a separate test at 1 in 1,000 with a smallest effect size. So a long honest record is
not flagged for a meaningless difference.
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
"""One-sided level of every sign: one honest record in a thousand shows it."""
_LEAST_ROWS = 24
"""Minimum number of rows for any sign: two years of months."""
_DAILY = 100
"""Number of rows per year above which rows are days."""

_FOLLOWS_SLOW, _FOLLOWS_WEEKLY, _FOLLOWS_DAILY = 0.20, 0.30, 0.43
"""Smallest lag-one autocorrelation that is a sign of smoothing: monthly, weekly and daily rows.

These are the largest values of portfolios of listed stocks, which are autocorrelated because small
stocks do not trade every day. An equal-weighted index had 0.17 by month and 0.43 by day (Campbell,
Lo and MacKinnon 1997, table 2.4), and 0.30 by week (Lo and MacKinnon 1988). Smoothing over three
months gives 0.4 or more (Getmansky, Lo and Makarov 2004), and a mean over two days gives 0.5.
"""
_WEEKLY = 40
"""Number of rows per year above which rows are weeks."""
_FOLLOWED = (1.0, 2.0 / 3.0, 1.0 / 3.0)
"""Weights of the earlier rows in the test of serial dependence: smoothing lasts for some rows and
fades."""
_FURTHER = (4, 5, 6, 7, 8)
"""Lags of the squares that measure volatility clustering. At shorter lags smoothing itself would
inflate them."""
_MOST_FOLLOWS = 0.95
"""Largest autocorrelation for which a Sharpe ratio is corrected for smoothing."""

_POSITIVE = 0.15
"""Smallest excess of the share of positive rows over a normal record with the same Sharpe ratio.
The S&P 500 of 1999 to 2018 reaches 0.12 over ten years of months. Carry funds have rare and large
losses and reach 0.1."""

_SMOOTH_SLOW, _SMOOTH_DAILY = 3.0, 4.0
"""Annual Sharpe ratios that no audited record of liquid assets has sustained for years.

The first is for weekly and monthly rows. The second is for daily rows; a bank's market making comes
close to it.
"""
_INTEREST, _QUIET = 0.08, 0.02
"""Largest annual return and volatility of a record that can be interest on cash or short bonds.

The Sharpe ratio of such a record has no meaning unless interest was subtracted.
"""

_BINS_LEAST = 60
"""Smallest number of rows to estimate the density at zero."""
_BIN = 0.776 * 1.364
"""Width of a bin in units of spread x n^(-1/5): Silverman's rule as used by Bollen and Pool
(2009)."""
_GAP = 0.6
"""Smallest missing share of the smooth density in the bin below zero."""

_FINEST = 6
"""Largest number of decimals to which a return is considered rounded: 6 is per cent with four
decimals."""
_ROUNDED = 0.995
"""Smallest share of returns on the grid of a rounding."""
_NEIGHBOURS = 5
"""Number of grid cells on either side that show how many equal pairs rounding explains."""
_REPEATS = 1.5
"""Smallest ratio of equal pairs to the number that rounding explains."""
_DIGIT_ROWS, _DIGIT_SPREAD = 100, 30.0
"""Two minimums for the test of last digits.

The first is the number of rows. The second is the standard deviation in units of the last digit: if
it is smaller, the last digits of an honest record are not evenly distributed.
"""
_LEAST_STRETCH = 3
"""Minimum number of consecutive repeated rows that is called a copy."""
_LEAST_CHANCE = 0.05
"""Minimum assumed probability that two returns are equal."""
_QUIET_SPELLS = 1.5
"""Factor by which equal returns are likelier in calm periods of a price in cents."""
_STILL_ROWS = 3
"""Smallest number of consecutive unchanged rows that count as idle: cash, and days without a
price."""
_NO_CHANGE = 0.005
"""Largest change between two rows, in standard deviations, that counts as no change."""


class Smoothness(msgspec.Struct, frozen=True, kw_only=True):
    """The smoothness of a record.

    ``autocorrelation`` is at lag one with a robust interval. ``positive`` is the share of positive
    rows among nonzero ones. ``normal_positive`` is this share for a normal record with the same
    Sharpe ratio. ``sharpe`` is annualised, with its interval. ``unsmoothed_sharpe`` is corrected
    for the autocorrelation. ``discontinuity`` is the z value of too few small losses compared with
    small gains, None if it cannot be tested. ``repeats`` is the ratio of equal pairs of returns to
    the number that rounding explains, None if nothing repeats. ``signs`` are clauses in plain
    English about the significant results. ``too_smooth`` is true if the lower bound of the
    annualised Sharpe ratio is higher than in audited records of liquid assets.
    """

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
    total: Floats,
    year: int,
    *,
    benchmark: Floats | None = None,
    beyond_cash: bool = False,
    alpha_ratio: Measure | None = None,
    interest: float = _INTEREST,
) -> Smoothness:
    """Return the smoothness of a record, and signs of smoothing or invention.

    ``total`` are returns of shape (n,), ``year`` the number of rows per year. ``beyond_cash`` means
    that the returns are in excess of cash. Otherwise a quiet record that earns no more than
    interest is not called too smooth. ``alpha_ratio`` is the annual alpha divided by its
    volatility. It is judged instead of the Sharpe ratio if its lower bound is higher. ``interest``
    is the highest annual interest on cash during the record, at least :data:`_INTEREST`.
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
    follows, follows_sign = _autocorrelation(total, year, benchmark)
    positive, normal, positive_sign = _positive(active, year)
    sharpe = cosine_interval(total, "sharpe", periods_per_year=year)
    gap, gap_sign = _discontinuity(active)
    repeats, digit_signs = _digits(active)
    most = None if beyond_cash else max(interest, _INTEREST)
    smooth, smooth_sign = _too_smooth(total, year, sharpe, most, alpha_ratio)
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
    """Return a mask of idle rows: exact zeros, and runs of rows that hardly change."""
    changes = np.abs(np.diff(total)) > _NO_CHANGE * total.std()
    # A run of equal rows starts at a row that differs from the previous one.
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    lengths = np.diff(np.append(begins, total.size))
    idle: Bools = (total == 0.0) | (np.repeat(lengths, lengths) >= _STILL_ROWS)
    return idle


def _row_name(year: int) -> str:
    names = {12: "months", 52: "weeks", 4: "quarters"}
    return names.get(year, "days" if year >= _DAILY else "rows")


def _autocorrelation(
    total: Floats, year: int, benchmark: Floats | None
) -> tuple[Measure, str | None]:
    """Return the lag-one autocorrelation with its 95 % interval, and the sign if there is one.

    The sign is a serial rank test (Wald and Wolfowitz 1943) on normal scores, so that outliers
    cannot decide it: the sum of their first three autocorrelations, weighted by :data:`_FOLLOWED`.
    Volatility clustering increases the variance of products of adjacent scores. The increase is
    estimated from squares of scores 4 to 8 rows apart.

    A portfolio of small stocks follows itself because it follows the benchmark of the row before.
    If a benchmark is given, the rest of the returns must be autocorrelated as well.
    """
    n = total.size
    gap = total - total.mean()
    whole = float(gap @ gap)
    products = gap[1:] * gap[:-1]
    value = float(products.sum()) / whole
    if n < _LEAST_ROWS:
        return Measure(value=significant(value), n=n, note=f"no interval: {n} rows"), None
    # The influence function gives the interval: products minus the effect of the variance.
    influence = products - value * 0.5 * (gap[1:] ** 2 + gap[:-1] ** 2)
    error = math.sqrt(float(influence @ influence)) / whole
    reach = student_reach(n - 2, 0.95) * error
    measure = between(value, (value - reach, value + reach), 0.95, n)
    least = _FOLLOWS_SLOW
    if year >= _WEEKLY:
        least = _FOLLOWS_DAILY if year >= _DAILY else _FOLLOWS_WEEKLY
    if benchmark is not None and value >= least:
        value = min(value, _lag_one(_beyond_benchmark(total, benchmark)))
    if value >= least and _rank_following(total) > student_reach(n - 2, 1.0 - 2.0 * _LEVEL):
        return measure, f"returns follow each other (autocorrelation {value:.2f})"
    return measure, None


def _beyond_benchmark(total: Floats, benchmark: Floats) -> Floats:
    """Return the residuals of a regression on the benchmark of the same and the previous row."""
    columns = np.column_stack((np.ones(total.size - 1), benchmark[1:], benchmark[:-1]))
    coefficients = np.linalg.lstsq(columns, total[1:], rcond=None)[0]
    residuals: Floats = total[1:] - columns @ coefficients
    return residuals


def _lag_one(series: Floats) -> float:
    """Return the lag-one autocorrelation, or 0 for a series that hardly varies."""
    gap = series - series.mean()
    whole = float(gap @ gap)
    return float(gap[1:] @ gap[:-1]) / whole if whole > 1e-18 * gap.size else 0.0


def _rank_following(total: Floats) -> float:
    """Return the z value of the serial dependence of the returns' normal scores."""
    from scipy.special import ndtri

    n = total.size
    _, place, counts = np.unique(total, return_inverse=True, return_counts=True)
    # Equal returns share their mean rank.
    rank = (np.cumsum(counts) - 0.5 * counts)[place]
    score = ndtri(rank / n)
    score = (score - score.mean()) / score.std()
    squares = score * score
    clusters = [float((squares[lag:] * squares[:-lag]).mean()) for lag in _FURTHER if lag < n // 2]
    sums = 0.0
    for lag, weight in enumerate(_FOLLOWED, start=1):
        # The autocorrelation of independent rows is -1 / n on average, because their own mean is
        # subtracted.
        sums += weight * (float((score[lag:] * score[:-lag]).sum()) / n + 1.0 / n)
    weights = math.sqrt(sum(weight * weight for weight in _FOLLOWED))
    return sums * math.sqrt(n / max(1.0, float(np.mean(clusters)))) / weights


def _unsmoothed(sharpe: Measure, follows: Measure) -> float | None:
    """Return the Sharpe ratio of the returns before smoothing.

    A smoothed return is a mix of the true return and the last smoothed one (Geltner 1993). The
    variance of the true returns is (1 + c) / (1 - c) times as large, c being the autocorrelation.
    The mean is the same.
    """
    if sharpe.value is None or follows.value is None:
        return None
    c = min(max(follows.value, 0.0), _MOST_FOLLOWS)
    return significant(sharpe.value * math.sqrt((1.0 - c) / (1.0 + c)))


def _positive(active: Floats, year: int) -> tuple[float, float, str | None]:
    """Return the share of positive rows, its value for a normal record, and the sign.

    The normal record has the same Sharpe ratio. The difference has the error of its influence
    function (delta method) and is tested one-sided at :data:`_LEVEL`.
    """
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
    """Return the z value of too few small losses (Bollen and Pool 2009), and the sign.

    One bin ends at zero and one starts there. The expected counts come from a smooth density with a
    normal kernel as wide as a bin. Counts are compared with it by the binomial error. The sign
    requires too few losses in the bin below zero and too many gains in the bin above. The value is
    that of their difference.
    """
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
    # The two counts exclude each other, so the variance of their difference contains twice their
    # product.
    variance = n * (below + above - (above - below) ** 2)
    z = ((gains - n * above) - (losses - n * below)) / math.sqrt(max(variance, 1e-12))
    certain = z > student_reach(10**6, 1.0 - 2.0 * _LEVEL)
    if certain and few < -1.645 and many > 0.0 and losses <= _GAP * n * below:
        missing = round(n * below - losses)
        return significant(z), f"small losses are missing beside small gains (about {missing})"
    return significant(z), None


def _digits(active: Floats) -> tuple[float | None, list[str]]:
    """Return the ratio of equal pairs to the expected number, and signs of invented numbers.

    The expected number is the number that rounding explains.
    """
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
    """Return the number of decimals to which returns are rounded, or None."""
    for decimals in range(2, _FINEST + 1):
        scaled = active * 10.0**decimals
        if (np.abs(scaled - np.rint(scaled)) < 1e-6).mean() >= _ROUNDED:
            return decimals
    return None


def _equal_pairs(cells: Ints) -> tuple[float | None, bool]:
    """Return the ratio of equal pairs to the number that rounding explains, and its significance.

    With a smooth density, about as many pairs are in the same cell as in cells a small fixed
    distance apart, counted to one side. So the mean number of pairs 1 to :data:`_NEIGHBOURS` cells
    apart is the number that rounding explains. This holds for any density and for changing
    volatility.
    """
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
    # Pairs of one value are not independent: three equal returns are three pairs. The error counts
    # values.
    error = math.sqrt(expected * (1.0 + 0.5 / _NEIGHBOURS) * (1.0 + 2.0 * expected / cells.size))
    reach = student_reach(10**6, 1.0 - 2.0 * _LEVEL) * error + 4.0
    return significant(ratio), ratio >= _REPEATS and equal - expected > reach


def _uneven_digits(cells: Ints) -> bool:
    """Return whether the last digits 1 to 9 are unevenly frequent (chi-squared, :data:`_LEVEL`).

    Zero is left out, because an honest record that is partly rounded more coarsely has too many
    zeros.
    """
    from scipy.special import chdtrc

    digits = np.abs(cells) % 10
    digits = digits[digits > 0]
    if digits.size < _DIGIT_ROWS or cells.std() < _DIGIT_SPREAD:
        return False
    counts = np.bincount(digits, minlength=10)[1:]
    even = digits.size / 9.0
    return bool(chdtrc(8, float(((counts - even) ** 2).sum() / even)) < _LEVEL)


def _copied_rows(active: Floats) -> int:
    """Return the length of the longest repeated stretch of rows, or 0 if chance explains it.

    Two stretches of k rows are equal by chance with the probability of two equal rows to the power
    k. The longest stretch that chance explains among all pairs of rows at :data:`_LEVEL` is
    allowed. Prices in cents repeat returns when they repeat prices. So the chance is that of two
    returns within a fifth of the deviation, times :data:`_QUIET_SPELLS`, and at least
    :data:`_LEAST_CHANCE`.
    """
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
    """Return the length of the longest repeated stretch of at least ``least`` rows, or 0."""
    label = place.astype(np.int64)
    longest = 0
    # A stretch of twice the length is a pair of stretches. Labels are doubled until none occurs
    # twice.
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
    """Return labels of stretches that join ``first`` with ``second``, ``shift`` rows later."""
    count = min(first.size, second.size - shift)
    if count <= 0:
        return np.zeros(0, dtype=np.int64)
    both = first[:count] * (int(second.max()) + 1) + second[shift : shift + count]
    return np.asarray(np.unique(both, return_inverse=True)[1], dtype=np.int64)


def _too_smooth(
    total: Floats,
    year: int,
    sharpe: Measure,
    interest: float | None,
    alpha_ratio: Measure | None,
) -> tuple[bool, str | None]:
    """Return whether the lower bound of the Sharpe or alpha ratio is implausibly high.

    ``interest`` is the highest annual rate that a quiet record can have earned as cash. It is None
    if the returns are in excess of cash.
    """
    if total.size < max(year, _LEAST_ROWS // 2) or sharpe.low is None:
        return False, None
    quiet = float(total.std()) * math.sqrt(year) <= _QUIET
    if interest is not None and quiet and float(total.mean()) * year <= interest:
        return False, None
    name, value, low = "Sharpe ratio", sharpe.value, sharpe.low
    if alpha_ratio is not None and alpha_ratio.low is not None and alpha_ratio.low > low:
        name, value, low = "alpha ratio", alpha_ratio.value, alpha_ratio.low
    most = _SMOOTH_DAILY if year >= _DAILY else _SMOOTH_SLOW
    if low <= most or value is None:
        return False, None
    return True, f"the yearly {name} of {value:.1f} is higher than audited records have"
