"""Harden a mask: new levels of price and volume, fixed for an episode, that identify no name.

Scaling prices alone hides nothing. True prices are multiples of a cent, and a search over scales
finds the scale for which all displayed prices are such multiples. A price is therefore scaled,
blurred by noise that is wider than the true step of all but the cheapest stocks, and rounded to
cents (:class:`Ticks`). The *shape* of returns is preserved with slight blur. No rebasing can hide
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from tradeassay.core.arrays import Days, Floats
from tradeassay_bench.core.view import FIELDS, Field, MarketView
from tradeassay_bench.masking.aliases import MaskConfig

_SHOWN_PRICES = (20.0, 200.0)
_VOLUME_SPREAD = 8.0
_SHOWN_AMOUNTS = (1e7, 1e9)
_RECENT = 20
_BLOCK = 4096
_LOOKBACK = 250
PER_SHARE = frozenset(
    "eps eps_ttm dividend dividend_per_share dividend_per_share_ttm book_value_per_share high_52w "
    "low_52w".split()
)
"""Fundamentals that are amounts per share and scale with prices."""
SHARE_COUNTS = frozenset({"shares_outstanding", "free_float_shares"})
"""Fundamentals that count shares and scale inversely to prices."""


class Scales:
    """The factors of the columns of the true view.

    Columns of the true view are never reordered, so a factor never changes.

    With rebased prices, the last close before the episode is displayed as a price drawn between 20
    and 200. For a later listing, the first opening price is used. Prices are multiplied by the
    factor, quantities are divided by it, and values are unchanged. Volume and turnover also get a
    factor: the displayed turnover before the episode is drawn from one range for all names. A later
    listing gets a factor between 1/8 and 8.
    """

    def __init__(self, config: MaskConfig, start: MarketView, rng: np.random.Generator) -> None:
        self.rebases, self._rescale = config.rebase_prices, config.scale_volumes
        self.active = self.rebases or self._rescale
        self._key = rng.bytes(16)
        self._price_rng, self._volume_rng = rng.spawn(2)
        self._shown: Floats = np.zeros(0)
        self._volume: Floats = np.zeros(0)
        self._price: Floats = np.zeros(0)
        self._start = start
        self._levels: dict[str, float] = {}
        self._looked: tuple[int, int, bytes, bool] | None = None
        self.usual: Floats | None = None
        """Mean logarithm of every column's turnover before the episode; None without scaling."""
        if self.rebases:
            closes = start.bars("close", _LOOKBACK, adjust="none")
            self._price = np.full(closes.shape[1], np.nan)
            if closes.size:
                priced = np.isfinite(closes)
                last = closes.shape[0] - 1 - np.argmax(priced[::-1], axis=0)
                columns = np.flatnonzero(priced.any(axis=0))
                self._price[columns] = (
                    self._target(last.size)[columns] / closes[last[columns], columns]
                )
        if self._rescale:
            # The displayed recent turnover of every name is drawn from the same range.
            amounts = start.bars("amount", _RECENT)
            known = (
                np.isfinite(amounts).any(axis=0)
                if amounts.size
                else np.zeros(amounts.shape[1], dtype=bool)
            )
            low, high = np.log(_SHOWN_AMOUNTS)
            shown = np.exp(self._volume_rng.uniform(low, high, known.size))
            mean = np.full(known.size, np.nan)
            mean[known] = np.nanmean(amounts[:, known], axis=0)
            usable = np.isfinite(mean) & (mean > 0)
            self._volume = np.where(usable, shown / np.where(usable, mean, 1.0), 1.0)
            amounts = start.bars("amount", _LOOKBACK)
            traded = amounts > 0
            logs = np.log(np.where(traded, amounts, 1.0)).sum(axis=0)
            self.usual = np.where(
                traded.any(axis=0), logs / np.maximum(1, traded.sum(axis=0)), np.nan
            )

    def prices(self, view: MarketView, count: int) -> Floats | None:
        """Return the price factors of the first ``count`` columns, NaN before a first price.

        Returns None if all factors are 1.
        """
        if not self.rebases:
            return None
        if count > self._price.size:
            self._price = np.concatenate([self._price, np.full(count - self._price.size, np.nan)])
        # If one session closes when the next opens, one instant has several moments. The known data
        # distinguishes them.
        moment = (view.clock, count, view.sessions(1).tobytes(), view.opens() is None)
        if self._looked != moment:
            self._looked = moment
            missing = np.flatnonzero(np.isnan(self._price[:count]))
            if missing.size:
                opens = view.bars("open", None, adjust="none")[:, missing]
                today = view.opens()
                if today is not None:
                    opens = np.vstack([opens, today[missing]])
                known = np.isfinite(opens)
                for place, column in enumerate(missing.tolist()):
                    if known[:, place].any():
                        first = opens[int(np.argmax(known[:, place])), place]
                        self._price[column] = self._target(column + 1)[column] / first
        return self._price[:count]

    def price(self, view: MarketView, symbol: str) -> float:
        """Return a symbol's price factor.

        It is 1 if prices are not rebased or the symbol has no price yet.
        """
        factors = self.prices(view, len(view.symbols))
        factor = 1.0 if factors is None else float(factors[view.column(symbol)])
        return 1.0 if np.isnan(factor) else factor

    def volumes(self, count: int) -> Floats | None:
        """Return the factors of volume and turnover of the first ``count`` columns.

        Returns None if all factors are 1.
        """
        if not self._rescale:
            return None
        while self._volume.size < count:
            spread = np.log(_VOLUME_SPREAD)
            self._volume = np.concatenate(
                [self._volume, np.exp(self._volume_rng.uniform(-spread, spread, _BLOCK))]
            )
        return self._volume[:count]

    def of_field(self, field: Field, view: MarketView, count: int) -> Floats | None:
        """Return the factors of a field for the first ``count`` columns; None if all are 1."""
        volumes = self.volumes(count)
        if field == "amount":
            return volumes
        prices = self.prices(view, count)
        if field != "volume":
            return prices
        if prices is None:
            return volumes
        return 1.0 / prices if volumes is None else volumes / prices

    def index(self, view: MarketView, name: str) -> float:
        if not self.rebases:
            return 1.0
        if name not in self._levels:
            levels = self._start.index_levels(name, _LOOKBACK)
            known = levels[np.isfinite(levels)]
            if not known.size:
                levels = view.index_levels(name)
                known = levels[np.isfinite(levels)][:1]
                if not known.size:
                    return 1.0
            seed = hashlib.sha256(self._key + name.encode()).digest()
            draw = int.from_bytes(seed[:8], "big") / 2**64
            self._levels[name] = float(1000.0 * 4.0**draw / known[-1])
        return self._levels[name]

    def figure(self, view: MarketView, symbol: str, field: str, value: float) -> float:
        if self.rebases and field in PER_SHARE:
            return value * self.price(view, symbol)
        if self.rebases and field in SHARE_COUNTS:
            return value / self.price(view, symbol)
        return value

    def _target(self, count: int) -> Floats:
        low, high = np.log(_SHOWN_PRICES)
        while self._shown.size < count:
            self._shown = np.concatenate(
                [self._shown, np.exp(self._price_rng.uniform(low, high, _BLOCK))]
            )
        return self._shown[:count]


TICK = 0.01
"""The displayed price step."""
BLUR = 0.003
"""Half the width of the noise of prices, as a fraction.

It exceeds one true step of any stock above 3.33.
"""
VOLUME_BLUR = 0.2
"""Half the width of the noise of volumes and amounts."""
FIGURES = 3
"""Significant digits of volumes and amounts."""


class Ticks:
    """The noise and the market-wide activity for the displayed bars of one episode.

    The noise of a day is always the same. With ``usual`` (see :attr:`Scales.usual`) the common part
    is removed from volumes. Half days, expiries and busy months affect every name's volume, so
    their sequence would identify the calendar.
    """

    def __init__(self, key: bytes, usual: Floats | None) -> None:
        self._key, self._usual = key, usual
        self.width = BLUR if usual is None else VOLUME_BLUR
        self._noise: dict[str, Floats] = {}
        self._busy: dict[str, float] = {}

    def busy(self, view: MarketView, days: Sequence[str]) -> Floats:
        """Return the market's activity on some days.

        Activity is the turnover of all names relative to its usual level.
        """
        if self._usual is not None and not all(day in self._busy for day in days):
            amounts = view.bars("amount", len(days))[:, : self._usual.size]
            for day, row in zip(days, amounts, strict=True):
                known = (row > 0) & np.isfinite(self._usual)
                if day not in self._busy:
                    common = (
                        np.median(np.log(row[known]) - self._usual[known]) if known.any() else 0.0
                    )
                    self._busy[day] = float(np.exp(common))
        return np.array([self._busy.get(day, 1.0) for day in days])

    def noise(self, days: Sequence[str], count: int, field: Field) -> Floats:
        """Return the noise of a field: numbers between -1 and 1, shape (days, count)."""
        place, rows = FIELDS.index(field), np.empty((len(days), count))
        for row, day in enumerate(days):
            known = self._noise.get(day)
            if known is None or len(known) < count:
                seed = hashlib.blake2b(day.encode(), key=self._key, digest_size=16).digest()
                drawn = np.random.Generator(np.random.Philox(key=int.from_bytes(seed, "big")))
                # Names are in rows, so that a later listing does not change the noise of earlier
                # listings.
                known = drawn.uniform(-1.0, 1.0, (count, len(FIELDS)))
                self._noise[day] = known
            rows[row] = known[:count, place]
        return rows


class ShownBars:
    """The bars of a true view as displayed under a hardened mask, in the true order of columns."""

    def __init__(self, view: MarketView, scales: Scales, ticks: Ticks) -> None:
        self._view, self._ticks = view, ticks
        self.symbols = view.symbols
        """The true symbols, in the order of columns."""
        count = len(self.symbols)
        prices, volumes = scales.prices(view, count), scales.volumes(count)
        self.levels: Floats = (
            np.ones(count) if prices is None else np.where(np.isnan(prices), 1.0, prices)
        )
        self._volumes = 1.0 if volumes is None else volumes
        self._known: dict[tuple[str, int], Floats] = {}

    def sessions(self, lookback: int) -> Days:
        return self._view.sessions(lookback)

    def days(self, lookback: int) -> tuple[str, ...]:
        return tuple(np.datetime_as_string(self._view.sessions(lookback), unit="D").tolist())

    def bars(self, field: Field, lookback: int) -> Floats:
        """Return a field as displayed, shape (sessions, columns).

        The high is the highest displayed price of its bar.
        """
        key = (field, lookback)
        if key not in self._known:
            days, true = self.days(lookback), self._view.bars(field, lookback)
            if field in ("high", "low"):
                every = [
                    self._price(name, lookback, days) for name in ("open", "high", "low", "close")
                ]
                found: Floats = (np.fmax if field == "high" else np.fmin).reduce(every)
                self._known[key] = np.where(np.isnan(true), np.nan, found)
            elif field in ("open", "close"):
                self._known[key] = self._price(field, lookback, days)
            else:
                scaled = true * self._volumes / (self.levels if field == "volume" else 1.0)
                blurred = 1.0 + self._ticks.width * self._ticks.noise(days, scaled.shape[1], field)
                shown = scaled / self._ticks.busy(self._view, days)[:, None] * blurred
                with np.errstate(all="ignore"):
                    step = 10.0 ** (np.floor(np.log10(shown)) - FIGURES + 1)
                    self._known[key] = np.where(shown > 0, np.rint(shown / step) * step, shown)
        return self._known[key]

    def index(self, name: str, lookback: int) -> Floats:
        levels = self._view.index_levels(name, lookback)
        days = self.days(lookback)[-levels.size :] if levels.size else ()
        return levels * (1.0 + BLUR * self._ticks.noise(days, 1, "close")[:, 0])

    def _price(self, field: Field, lookback: int, days: Sequence[str]) -> Floats:
        """Return scaled prices, shape (days, columns), blurred and rounded to the displayed
        step.
        """
        scaled = self._view.bars(field, lookback) * self.levels
        blurred = scaled * (1.0 + BLUR * self._ticks.noise(days, scaled.shape[1], field))
        return np.maximum(TICK, np.round(np.rint(blurred / TICK) * TICK, 2))
