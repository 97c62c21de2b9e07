"""Test whether an account pays like a seller of options, and estimate its loss in a crash.

A seller of options earns a premium until the market moves far. In a record without a crash the
premium looks like alpha. But the record still shows the risk: options that are never exercised gain
and lose value with the market's move, with its square, with its volatility and with time. The test
replicates sellers on the market's own path. It then tests whether one of them moves like the
account beyond its market exposure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.metrics.intervals import significant, student_reach
from tradeassay.metrics.measures import drawdowns, growth

_LEAST_ROWS = 36
"""Minimum number of rows for the test: three years of months."""
_DAYS, _DAILY = 252, 100
"""Sessions per year, and the minimum number of rows per year for daily rows."""
_TENORS = (5, 21, 63)
"""Tenors of the options in sessions: a week, a month, a quarter."""
_TENOR_NAMES = ("weekly", "monthly", "quarterly")
_PHASES = 5
"""Maximum number of rows per tenor on which sales begin. They are evenly spread.

The actual day of the first sale is not known.
"""
_STRIKES: tuple[tuple[float, ...], ...] = (
    (-0.05, -0.025, 0.0, 0.025),
    (-0.20, -0.15, -0.10, -0.05, 0.0, 0.05),
    (-0.20, -0.15, -0.10, -0.05, 0.0, 0.05, 0.10),
)
"""Strikes of each tenor, as distances from the market.

A call equals a put at the same strike plus market exposure, which the test removes. So strikes
above the market represent calls.
"""
_ONLY_IN_PAIRS = 0.10
"""Strike at or above which options are sold only in pairs.

With few moves, a trend-following account resembles a seller of a single such option.
"""
_PAIRS: tuple[tuple[tuple[float, float, float], ...], ...] = (
    ((-0.025, 0.025, 1.0),),
    ((-0.05, 0.05, 1.0), (-0.05, -0.15, -1.0)),
    ((-0.05, 0.05, 1.0), (-0.10, 0.10, 1.0), (-0.05, -0.15, -1.0)),
)
"""Pairs of strikes, with the amount of the second option sold per unit of the first.

The amount is 1 for strangles and -1 for put spreads.
"""
_SKEW, _PREMIUM = 2.5, 1.1
"""Skew and premium of the pricing volatility.

The ratio of the pricing volatility to the market's volatility is the premium times (1 + strike) to
the power of minus the skew. It is 1.1 at the market and larger for lower strikes. So sellers of
index puts earn a premium, and puts far below the market lose value before the market is near the
strike.
"""
_MEMORY = 0.94
"""Weight of the previous variance in the exponentially weighted variance of daily rows (RiskMetrics
1996)."""
_LEAST_MEMORY = 0.80
"""Minimum weight of the previous variance for weekly and monthly rows."""
_EXPLAINED = 0.15
"""Minimum share of the account's variance beyond the market that a seller must explain.

Stock pickers whose noise moves with the market's volatility reach 0.08, factor portfolios and
momentum 0.12, sellers 0.2 to 0.9.
"""
_EXPLAINED_CRASH, _EXPLAINED_CRASH_SLOW = 0.30, 0.25
"""Minimum explained share for a record with a crash: on daily rows, and on longer rows.

Sellers lost money in the crash. Stocks that fall more than the market in a crash slightly resemble
sellers.
"""
_HEDGED = 0.10
"""Minimum share that the convex part alone explains, for sellers who hedge.

The effect of changing exposure is removed first. Other accounts reach 0.06.
"""
_HEDGED_IN_ALL = 0.20
"""Minimum share that changing exposure and convexity together explain in a record with a crash.

Portfolios of small or cheap stocks reach 0.18, because they fall more than the market in a crash.
Sellers of variance reach 0.25 to 0.7.
"""
_HEDGED_LEVEL = 1e-4
"""One-sided level of the test of the convex part: a thousandth divided by about ten different
designs."""
_LEVEL = 0.12
"""One-sided level of the test of a whole seller, with degrees of freedom from the rows that decide
it. The required share of variance keeps the error rate small. This level rejects results that
depend on one day."""
_CONVEX, _CONVEX_OF_FEW = 0.25, 0.6
"""Smallest convexity of the account, as a share of the convexity that options with its changing
exposure would have: if estimated from many rows, and from few. Accounts that buy after falls have
the exposure of a seller but not the convexity. Real option prices move by more than the market's
own volatility, which hides a part of the convexity."""
_CONVEX_LEVEL = 0.05
_KNOWN_CONVEXITY = 10.0
"""Smallest effective number of rows for which the convexity must be significant by itself."""
_NEAR = 0.8
"""Designs that explain this share of the best design's part are treated as equally good."""
_REVERSALS = (1, 2, 3, 5, 10, 20, 60)
"""Spans in rows of buying after falls. For an account that does so, this explains its returns
better than options."""
_PAID = 10.0
"""Largest ratio of alpha to the volatility of the part explained by options at which premiums can
be most of the alpha."""
_PAID_FOR_CRASH = 1.0
"""Largest ratio of annual alpha to the loss on a day of -20 % at which premiums can be most of the
alpha."""
_KNOWN_SELLER = 0.5
"""Smallest explained share of the variance beyond the market at which the replicated seller alone
determines the crash loss. Below this share the larger of two losses is used: the seller's, and the
loss from the record's convexity."""
_SPANS = (1, 5, 21)
"""Spans in rows of the test of payoffs at expiry: a day, a week, a month."""
_PUTS, _CALLS = (0.0, 1.0, 2.0), (0.0, 1.0)
"""Distances from the mean, in standard deviations, beyond which an option pays."""
_LEAST_PAID, _LEAST_MOVES = 3, 30
"""Smallest number of moves for which an option paid, and of all moves. Fewer do not determine the
shape."""
_PAYOFF_LEVEL = 0.0002
"""One-sided level of the test of one shape over one span.

It is divided by the number of rows on which the span may begin, because all of them are tried.
"""
_FALLS = (-0.10, -0.20)
_VOLATILITY_AFTER = 2.0
"""Ratio of the market's volatility after such a fall to its volatility before."""
_BOUND = 0.95
_CRASH_DRAWDOWN, _CRASH_DAY = -0.10, -0.05
_TINY = 1e-9
_MOST_LEVERAGE = 0.95


class OptionSelling(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the test for option selling.

    ``like`` is true if the account pays like a seller and premiums can be most of its alpha.
    ``shape`` names the most similar seller. It is empty if there is none. ``explained`` is the
    share of the variance beyond the market that this seller explains. ``loss_at_10`` and
    ``loss_at_20`` are returns of the account on a day on which the market falls by 10 or 20 % and
    its volatility doubles. ``worst_at_10`` and ``worst_at_20`` are their one-sided 95 % bounds.
    ``crash_in_record`` is true if the market fell by 10 % from a high, or by 5 % in a day, during
    the record.
    """

    like: bool
    shape: str
    explained: float
    loss_at_10: float | None
    loss_at_20: float | None
    worst_at_10: float | None
    worst_at_20: float | None
    crash_in_record: bool


@dataclass(frozen=True, slots=True)
class _Design:
    """A seller of options.

    The fields are the index of the tenor, its rows, the row of the first sale, and the strike and
    amount of each option.
    """

    tenor: int
    rows: int
    phase: int
    legs: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class _Bank:
    """Daily gains of sellers of one option each, shape (rows, designs).

    ``by_exposure`` is the part of the gains from the market exposure of the previous evening times
    the market's move.
    """

    designs: tuple[_Design, ...]
    gains: Floats
    by_exposure: Floats


def option_selling(
    total: Floats, market: Floats, alpha_rows: Floats, year: int
) -> OptionSelling | None:
    """Return the test whether an account moves like a seller of options.

    Returns None without a market that moves, for fewer than 36 rows, or for rows longer than a
    quarter. ``total``, ``market`` and ``alpha_rows`` have shape (n,). They are the returns of the
    account, of the market, and of the account beyond market and styles. ``year`` is the number of
    rows per year.

    Sellers of puts, calls, strangles and spreads at several distances and tenors are replicated on
    the market's path. Options are sold at the Black-Scholes price with the exponentially weighted
    volatility, valued on every row, and replaced at expiry. The account's return beyond its market
    exposure is regressed on each seller. The account is like a seller if one of these conditions
    holds:

    * A seller explains at least :data:`_EXPLAINED` of the variance beyond the market, with the
      seller's sign at :data:`_LEVEL` (HC3 errors of MacKinnon and White 1985, degrees of freedom
      from the influential rows). The account has the seller's convexity and changing exposure. And
      buying after falls, or holding less in volatile markets, explains the account less well.
    * The convex part alone explains at least :data:`_HEDGED` at :data:`_HEDGED_LEVEL`. In a record
      with a crash, it explains at least :data:`_HEDGED_IN_ALL` together with the changing exposure.
      This condition detects sellers who hedge.
    * The return over a day, a week or a month falls like the payoff of expiring options. This
      condition detects sellers whose accounts are not marked to market.

    In addition, premiums must be large enough to be most of the alpha (:data:`_PAID`,
    :data:`_PAID_FOR_CRASH`).
    """
    total, market = np.asarray(total, dtype=np.float64), np.asarray(market, dtype=np.float64)
    n = total.size
    if n < _LEAST_ROWS or market.size != n or not (market > -1.0).all() or not _tenors(year):
        return None
    if not np.ptp(market) > 0.0 or not np.ptp(total) > 0.0:
        return None
    path = growth(market)
    fall_of_a_row = _CRASH_DAY * max(1.0, math.sqrt(_DAYS / year / 2.0))
    crash = bool(drawdowns(path).min() <= _CRASH_DRAWDOWN or market.min() <= fall_of_a_row)
    volatility = _volatility(market, year)
    bank = _bank(market, volatility, year)
    enough = _EXPLAINED
    if crash:
        enough = _EXPLAINED_CRASH if year >= _DAILY else _EXPLAINED_CRASH_SLOW
    in_all = _HEDGED_IN_ALL if crash else _HEDGED
    best = _most_alike(total, market, volatility, bank, enough, in_all)
    beta = _beta(total, market)
    quadratic, quadratic_error = _convexity(total, market)
    rival = _turned(total, market, volatility)
    payoff = None if best else _payoff(total, market, year, max(enough, rival))
    losses, bounds = [], []
    for fall in _FALLS:
        straight, bent = beta * fall, quadratic * fall * fall
        reach = student_reach(n - 3, 2.0 * _BOUND - 1.0) * quadratic_error * fall * fall
        # Insignificant convexity enters only the bound.
        loss = straight + (bent if bent + reach < 0.0 else 0.0)
        bound = straight + min(bent - reach, 0.0)
        sellers = [_loss(fit, beta, market, volatility, bank, fall) for fit in best]
        if sellers:
            # A square exceeds the loss of options for large moves. If a seller explains most of the
            # variance, the square is not needed.
            known = best[0].explained >= _KNOWN_SELLER
            loss = sellers[0][0] if known else min(loss, sellers[0][0])
            worst = min(worst for _, worst in sellers)
            bound = worst if known else min(bound, worst)
        if payoff is not None:
            paid = float(_pays(np.array([fall]), payoff.sign, payoff.strike)[0])
            loss = min(loss, straight + payoff.slope * paid)
            bound = min(bound, straight + (payoff.slope - 2.0 * payoff.error) * paid)
        losses.append(significant(loss, 4))
        bounds.append(significant(min(bound, loss), 4))
    shape, explained = "", 0.0
    if best:
        shape, explained = _name(bank.designs[best[0].place], best[0]), best[0].explained
    elif payoff is not None:
        shape, explained = _payoff_name(payoff), payoff.explained
    beyond = total - total.mean() - beta * (market - market.mean())
    moved = math.sqrt(explained * float(beyond.var()) * year)
    most = max(_PAID * moved, _PAID_FOR_CRASH * (beta * _FALLS[1] - losses[1]))
    return OptionSelling(
        like=bool(shape) and 0.0 < float(np.mean(alpha_rows)) * year <= most,
        shape=shape,
        explained=significant(explained, 4),
        loss_at_10=losses[0],
        loss_at_20=losses[1],
        worst_at_10=bounds[0],
        worst_at_20=bounds[1],
        crash_in_record=crash,
    )


def _volatility(market: Floats, year: int) -> Floats:
    """Return the volatility per row, before each row and after the last, shape (n + 1,)."""
    memory = max(_MEMORY ** (_DAYS / year), _LEAST_MEMORY) if year < _DAYS else _MEMORY
    variance = float(market.var())
    path = [variance]
    for square in (market * market).tolist():
        variance = memory * variance + (1.0 - memory) * square
        path.append(variance)
    return np.asarray(np.sqrt(path))


@lru_cache(maxsize=8)
def _tenors(year: int) -> tuple[tuple[int, int], ...]:
    """Return index and length in rows of the tenors that rows of this frequency can show."""
    rows = [max(1, round(days * year / _DAYS)) for days in _TENORS]
    # A tenor shorter than a row has the same payoff as one row.
    return tuple(
        (place, count)
        for place, count in enumerate(rows)
        if _TENORS[place] * year >= 0.9 * _DAYS and count not in rows[:place]
    )


def _put(level: Floats, strikes: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return put values (rows, strikes) by Black and Scholes (1973) without interest.

    Also return the market exposure of the sold put. ``level`` is the market relative to the time of
    the sale. ``spread`` is the standard deviation of the market until expiry.
    """
    from scipy.special import ndtr

    spread = np.maximum(spread[:, None] * _PREMIUM * strikes**-_SKEW, _TINY)
    far = np.log(level)[:, None] - np.log(strikes)
    down = ndtr(-far / spread - 0.5 * spread)
    struck = ndtr(-far / spread + 0.5 * spread)
    return strikes * struck - level[:, None] * down, down


def _state(n: int, rows: int, phase: int) -> tuple[Ints, Ints]:
    """Return the row of the last sale before each row, and the number of rows left until expiry."""
    at = np.arange(n)
    sale = at - (at - phase) % rows
    left = np.where(sale < 0, phase - at, rows - (at - sale))
    return np.maximum(sale, 0), left


def _bank(market: Floats, volatility: Floats, year: int) -> _Bank:
    """Return the gains of all sellers."""
    n = market.size
    path = np.concatenate([[1.0], np.cumprod(1.0 + market)])
    designs: list[_Design] = []
    gains: list[Floats] = []
    exposed: list[Floats] = []
    for tenor, rows in _tenors(year):
        strikes = np.array(_STRIKES[tenor])
        places = {strike: place for place, strike in enumerate(_STRIKES[tenor])}
        phases = sorted({step * rows // min(rows, _PHASES) for step in range(min(rows, _PHASES))})
        for phase in phases:
            sale, left = _state(n, rows, phase)
            before, after = path[:-1] / path[sale], path[1:] / path[sale]
            value, down = _put(before, 1.0 + strikes, volatility[:-1] * np.sqrt(left))
            ended, _ = _put(after, 1.0 + strikes, volatility[1:] * np.sqrt(left - 1))
            gain = value - ended
            exposure = down * (after - before)[:, None]
            for strike, place in places.items():
                if strike >= _ONLY_IN_PAIRS:
                    continue
                designs.append(_Design(tenor, rows, phase, ((strike, 1.0),)))
                gains.append(gain[:, place])
                exposed.append(exposure[:, place])
            for first, second, amount in _PAIRS[tenor]:
                first_place, second_place = places[first], places[second]
                designs.append(_Design(tenor, rows, phase, ((first, 1.0), (second, amount))))
                gains.append(gain[:, first_place] + amount * gain[:, second_place])
                exposed.append(exposure[:, first_place] + amount * exposure[:, second_place])
    return _Bank(tuple(designs), np.column_stack(gains), np.column_stack(exposed))


@dataclass(frozen=True, slots=True)
class _Alike:
    """A seller that resembles the account.

    The fields are its index in the bank, the amounts sold by exposure and by convexity, and the
    relative error of the amount. Next is the market exposure to add to the account's own, so that
    the seller's is not counted twice, and the share explained. ``plain`` means that exposure and
    convexity are in the seller's own proportion. ``hedged`` means that most of the exposure is
    missing.
    """

    place: int
    exposure: float
    convexity: float
    error: float
    beta: float
    explained: float
    plain: bool
    hedged: bool


def _most_alike(
    total: Floats,
    market: Floats,
    volatility: Floats,
    bank: _Bank,
    enough: float,
    hedged_enough: float,
) -> list[_Alike]:
    """Return the sellers that an account resembles, the most similar first.

    ``enough`` is the minimum share of the variance beyond the market that a seller must explain,
    ``hedged_enough`` the minimum share for a seller who hedges.
    """
    line = _line(market)
    rest = total - line @ (line.T @ total)
    whole = float(rest @ rest)
    # An account equal to its market has only rounding errors beyond it.
    if whole <= 1e-10 * float(total @ total):
        return []
    gains = bank.gains - line @ (line.T @ bank.gains)
    exposed = bank.by_exposure - line @ (line.T @ bank.by_exposure)
    convex = gains - exposed
    # The value of an option far out of reach does not move.
    scale = float(market @ market)
    size = np.einsum("ij,ij->j", gains, gains)
    moves = size > _TINY * scale
    along = rest @ gains
    share = np.where(moves & (along > 0.0), along * along / np.maximum(size, 1e-300) / whole, 0.0)
    # The regression on both parts: exposure and convexity.
    square = np.einsum("ij,ij->j", exposed, exposed)
    cross = np.einsum("ij,ij->j", exposed, convex)
    bent = np.einsum("ij,ij->j", convex, convex)
    kept = bent - cross * cross / np.maximum(square, 1e-300)
    by_exposure, by_convexity = rest @ exposed, rest @ convex
    tilt = by_convexity - by_exposure * cross / np.maximum(square, 1e-300)
    left = whole - by_exposure**2 / np.maximum(square, 1e-300)
    real = moves & (kept > 1e-6 * bent) & (bent > _TINY * scale)
    hedged = np.where(real & (tilt > 0.0), tilt * tilt / np.maximum(kept * left, 1e-300), 0.0)
    alike: list[_Alike] = []
    rival = _reversal(rest, market, volatility, line) / whole
    least = max(enough, _NEAR * float(share.max()), rival)
    for place in np.flatnonzero(share >= least):
        fit = _whole_seller(
            int(place), rest, line, gains, exposed, market, bank, float(share[place])
        )
        if fit is not None:
            alike.append(fit)
    for place in np.flatnonzero(hedged >= max(_HEDGED, _NEAR * float(hedged.max()))):
        fit = _hedged_seller(int(place), rest, line, exposed, convex, market, bank, whole)
        if fit is not None and fit.explained >= hedged_enough:
            alike.append(fit)
    # A hedged seller has one more parameter. A plain seller that explains nearly as much is
    # preferred.
    return sorted(alike, key=lambda fit: -fit.explained * (1.0 if fit.plain else _NEAR))


def _line(market: Floats) -> Floats:
    """Return orthonormal columns for the constant and the market."""
    gap = market - market.mean()
    return np.column_stack([np.full(market.size, market.size**-0.5), gap / math.sqrt(gap @ gap)])


def _turned(total: Floats, market: Floats, volatility: Floats) -> float:
    """Return the share of the variance beyond the market that a changing exposure explains."""
    line = _line(market)
    rest = total - line @ (line.T @ total)
    return _reversal(rest, market, volatility, line) / max(float(rest @ rest), 1e-300)


def _reversal(rest: Floats, market: Floats, volatility: Floats, line: Floats) -> float:
    """Return the largest sum of squares that an exposure known in advance explains.

    The exposure is buying after falls, or holding less while the market is volatile.
    """
    path = np.concatenate([[0.0], np.cumsum(market)])
    at = np.arange(market.size)
    leans = [1.0 / np.maximum(volatility[:-1], _TINY)]
    for span in _REVERSALS:
        moved = path[at] - path[np.maximum(at - span, 0)]
        leans += [-moved, -np.sign(moved)]
    most = 0.0
    for lean in leans:
        held = lean * market
        held = held - line @ (line.T @ held)
        along = float(rest @ held)
        if along > 0.0:
            most = max(most, along * along / float(held @ held))
    return most


def _t(column: Floats, rest: Floats, leverage: Floats) -> tuple[float, float, float]:
    """Return the slope, its HC3 error, and the effective number of rows that decide it."""
    size = float(column @ column)
    if not size > 1e-300:
        return 0.0, math.inf, 1.0
    slope = float(column @ rest) / size
    kept = np.maximum(1.0 - leverage - column * column / size, 1.0 - _MOST_LEVERAGE)
    influence = column * (rest - slope * column) / kept
    return (
        slope,
        math.sqrt(float(influence @ influence)) / size,
        size * size / float((column**4).sum()),
    )


def _p(slope: float, error: float, rows: float, n: int) -> float:
    """Return the one-sided p-value of a positive slope.

    The degrees of freedom are the effective number of rows that decide the slope.
    """
    from scipy.special import stdtr

    freedom = max(min(rows - 1.0, n - 4.0), 1.0)
    return float(stdtr(freedom, -slope / max(error, 1e-300)))


def _parts(
    place: int, rest: Floats, line: Floats, exposed: Floats, convex: Floats
) -> tuple[float, float, float, float, Floats]:
    """Return the regression on the convex part, given the part from exposure.

    The result is the slope, error and effective rows of the convex part, the slope of the exposure
    part, and the leverage of both.
    """
    held, bent = exposed[:, place], convex[:, place]
    size = float(held @ held)
    pull = float(held @ bent) / size if size > 0.0 else 0.0
    alone = bent - pull * held
    lean = float(held @ rest) / size if size > 0.0 else 0.0
    leverage = (line * line).sum(axis=1) + (held * held / size if size > 0.0 else 0.0)
    slope, error, rows = _t(alone, rest - lean * held, leverage)
    return slope, error, rows, lean - slope * pull, leverage


def _whole_seller(
    place: int,
    rest: Floats,
    line: Floats,
    gains: Floats,
    exposed: Floats,
    market: Floats,
    bank: _Bank,
    explained: float,
) -> _Alike | None:
    """Return the fit of a seller who does not hedge.

    Returns None if it is not significant or not convex.
    """
    n = rest.size
    leverage = (line * line).sum(axis=1)
    slope, error, rows = _t(gains[:, place], rest, leverage)
    if _p(slope, error, rows, n) > _LEVEL:
        return None
    bend, bend_error, bend_rows, _, _ = _parts(place, rest, line, exposed, gains - exposed)
    known = bend_rows >= _KNOWN_CONVEXITY
    if bend < (_CONVEX if known else _CONVEX_OF_FEW) * slope:
        return None
    if known and _p(bend, bend_error, bend_rows, n) > _CONVEX_LEVEL:
        return None
    beta = -slope * _beta(bank.gains[:, place], market)
    return _Alike(place, slope, slope, error / slope, beta, explained, plain=True, hedged=False)


def _hedged_seller(
    place: int,
    rest: Floats,
    line: Floats,
    exposed: Floats,
    convex: Floats,
    market: Floats,
    bank: _Bank,
    whole: float,
) -> _Alike | None:
    """Return the fit of a seller who hedges, or None if its convexity is not significant."""
    bend, error, rows, lean, _ = _parts(place, rest, line, exposed, convex)
    if _p(bend, error, rows, rest.size) > _HEDGED_LEVEL:
        return None
    held, bent = bank.by_exposure[:, place], bank.gains[:, place] - bank.by_exposure[:, place]
    fitted = lean * exposed[:, place] + bend * convex[:, place]
    beta = -_beta(lean * held + bend * bent, market)
    explained = 1.0 - float(((rest - fitted) ** 2).sum()) / whole
    return _Alike(
        place, lean, bend, error / bend, beta, explained, plain=False, hedged=lean < 0.5 * bend
    )


def _beta(series: Floats, market: Floats) -> float:
    """Return the slope of a series on the market."""
    gap = market - market.mean()
    return float(gap @ series) / float(gap @ gap)


def _convexity(total: Floats, market: Floats) -> tuple[float, float]:
    """Return the slope on the market's squared move and its HC3 error.

    The regression includes the move itself.
    """
    line = _line(market)
    gap = market - market.mean()
    bent = gap * gap
    bent = bent - line @ (line.T @ bent)
    if not float(bent @ bent) > 0.0:
        return 0.0, 0.0
    slope, error, _ = _t(bent, total - line @ (line.T @ total), (line * line).sum(axis=1))
    return slope, error


@dataclass(frozen=True, slots=True)
class _Payoff:
    """The payoff of an account at the expiry of options.

    ``slope`` is the slope on moves beyond ``strike`` from the mean (sign -1: below), or on squared
    moves if the sign is 0. ``error`` is its HC3 error. ``span`` is in rows. The last field is the
    share explained.
    """

    span: int
    sign: float
    strike: float
    slope: float
    error: float
    explained: float


def _moves(series: Floats, span: int, year: int) -> list[Floats]:
    """Return sums over ``span`` rows that do not overlap, once for every possible first row."""
    if series.size < _LEAST_MOVES * span or (span > 1 and year < _DAILY):
        return []
    moves = []
    for first in range(span):
        count = (series.size - first) // span
        moves.append(series[first : first + count * span].reshape(count, span).sum(axis=1))
    return moves


def _payoff(total: Floats, market: Floats, year: int, enough: float) -> _Payoff | None:
    """Return the account's payoff at expiry.

    Returns None if it explains less than ``enough`` of the variance beyond the market. Sellers who
    book premiums daily and losses at expiry are not marked in between. No replicated seller moves
    like them. Their returns over a day, a week or a month fall with the square of the market's
    move, or with the payoff of a put or a call. The level is :data:`_PAYOFF_LEVEL` and errors are
    HC3. The degrees of freedom are the number of moves with a payoff.
    """
    from scipy.special import stdtr

    best: _Payoff | None = None
    for span in _SPANS:
        for account, moved in zip(
            _moves(total, span, year), _moves(market, span, year), strict=True
        ):
            gap = moved - moved.mean()
            far = float(gap.std())
            shapes = [(0.0, 0.0)]
            shapes += [(-1.0, times * far) for times in _PUTS]
            shapes += [(1.0, times * far) for times in _CALLS]
            pays = [_pays(gap, sign, strike) for sign, strike in shapes]
            paid = np.array([int((pay > 0.0).sum()) for pay in pays])
            line = _line(moved)
            payoff = np.column_stack(pays)
            bent = payoff - line @ (line.T @ payoff)
            rest = account - line @ (line.T @ account)
            size = np.maximum((bent * bent).sum(axis=0), 1e-300)
            slope = bent.T @ rest / size
            pull = (line * line).sum(axis=1)[:, None] + bent * bent / size
            missed = (rest[:, None] - bent * slope) / np.maximum(1.0 - pull, 1.0 - _MOST_LEVERAGE)
            error = np.sqrt((bent * bent * missed * missed).sum(axis=0)) / size
            rows = size * size / np.maximum((bent**4).sum(axis=0), 1e-300)
            freedom = np.maximum(np.minimum(np.minimum(paid, gap.size - 3) - 2, rows - 1), 1.0)
            p = stdtr(freedom, slope / np.maximum(error, 1e-300))
            share = slope * slope * size / max(float(rest @ rest), 1e-300)
            for place in np.flatnonzero(
                (p < _PAYOFF_LEVEL / span) & (share >= enough) & (paid >= _LEAST_PAID)
            ):
                if best is None or share[place] > best.explained:
                    sign, strike = shapes[place]
                    best = _Payoff(
                        span,
                        sign,
                        strike,
                        float(slope[place]),
                        float(error[place]),
                        float(share[place]),
                    )
    return best


def _pays(gap: Floats, sign: float, strike: float) -> Floats:
    """Return the payoff of an option for a move, or the square of the move if the sign is 0."""
    if sign == 0.0:
        return gap * gap
    return np.maximum(sign * gap - strike, 0.0)


def _payoff_name(payoff: _Payoff) -> str:
    span = {1: "a row", 5: "a week", 21: "a month"}[payoff.span]
    if payoff.sign == 0.0:
        return f"options that pay for the size of the market's move over {span}"
    kind, side = ("puts", "below") if payoff.sign < 0.0 else ("calls", "above")
    where = f"{payoff.strike:.1%} {side} the market" if payoff.strike > 0.0 else "at the market"
    return f"{kind} {where}, over {span}"


def _loss(
    fit: _Alike, beta: float, market: Floats, volatility: Floats, bank: _Bank, fall: float
) -> tuple[float, float]:
    """Return the account's return on a day of ``fall``, and its bound.

    The return is averaged over all possible days of the fall.
    """
    design = bank.designs[fit.place]
    n = market.size
    path = np.concatenate([[1.0], np.cumprod(1.0 + market)])
    sale, left = _state(n, design.rows, design.phase)
    before = path[:-1] / path[sale]
    strikes = np.array([1.0 + strike for strike, _ in design.legs])
    amounts = np.array([amount for _, amount in design.legs])
    spread = volatility[:-1] * np.sqrt(left)
    value, down = _put(before, strikes, spread)
    ended, _ = _put(before * (1.0 + fall), strikes, spread * _VOLATILITY_AFTER)
    gain = (value - ended) @ amounts
    held = (down @ amounts) * before * fall
    optional = fit.exposure * float(held.mean()) + fit.convexity * float((gain - held).mean())
    loss = (beta + fit.beta) * fall + optional
    reach = student_reach(max(n - 4, 1), 2.0 * _BOUND - 1.0) * fit.error
    return loss, loss - reach * abs(optional)


def _name(design: _Design, fit: _Alike) -> str:
    """Return the name of the options sold, in plain words."""
    tenor = _TENOR_NAMES[design.tenor]
    if fit.hedged:
        return f"options on the market, {tenor}, hedged against its moves"
    if len(design.legs) > 1:
        (first, _), (second, amount) = design.legs
        if amount < 0.0:
            return f"put spreads {-first:.0%} to {-second:.0%} below the market, {tenor}"
        return f"puts and calls {second * 100:g} % from the market, {tenor}"
    strike = design.legs[0][0]
    if strike < 0.0:
        return f"puts {-strike * 100:g} % below the market, {tenor}"
    if strike > 0.0:
        return f"calls {strike * 100:g} % above the market, {tenor}"
    return f"options at the market, {tenor}"
