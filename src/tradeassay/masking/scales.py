"""Hardening: other levels of price and volume, fixed for an episode, so that a level does not give a name away.

Scaled prices alone hide nothing: true prices are multiples of a cent, and a search over scales finds the one
under which all shown prices are too. A shown price is therefore scaled, blurred by noise that is wider than the
true step of all but the cheapest stocks, and rounded to cents (:class:`Ticks`). Return *shapes* stay, blurred a
little: no rebasing can hide them.
"""

from __future__ import annotations

import hashlib

import numpy as np

from tradeassay.core.view import Field, Floats, MarketView
from tradeassay.masking.aliases import MaskConfig

_SHOWN_PRICES = (20.0, 200.0)
_VOLUME_SPREAD = 8.0
_SHOWN_AMOUNTS = (1e7, 1e9)
_RECENT = 20
_BLOCK = 4096
_LOOKBACK = 250
PER_SHARE = frozenset(
    "eps eps_ttm dividend dividend_per_share dividend_per_share_ttm book_value_per_share high_52w low_52w".split()
)
"""Fundamentals that are amounts per share and scale with prices."""
SHARE_COUNTS = frozenset({"shares_outstanding", "free_float_shares"})
"""Fundamentals that count shares and scale inversely to prices."""


class Scales:
    """Factors per column of the true view; columns are never reordered there, so a factor never changes.

    With rebased prices the last close before the episode (for a later listing: its first opening price) is shown
    as a price drawn between 20 and 200, whatever it was. A share is then another unit: quantities are divided by
    the factor that multiplies prices, values stay. Volume and turnover get the factor under which the turnover
    before the episode is drawn from one range for all names; for a later listing, one between 1/8 and 8.
    """

    def __init__(self, config: MaskConfig, start: MarketView, rng: np.random.Generator) -> None:
        self._rebase, self._rescale = config.rebase_prices, config.scale_volumes
        self._key = rng.bytes(16)
        self._price_rng, self._volume_rng = rng.spawn(2)
        self._shown: Floats = np.zeros(0)
        self._volume: Floats = np.zeros(0)
        self._price: Floats = np.zeros(0)
        self._start = start
        self._levels: dict[str, float] = {}
        self._looked: tuple[int, int, bytes, bool] | None = None
        if self._rebase:
            self._price = self._start_factors(start)
        if self._rescale:
            self._volume = self._start_volumes(start)

    @property
    def active(self) -> bool:
        return self._rebase or self._rescale

    @property
    def rebases(self) -> bool:
        return self._rebase

    def prices(self, view: MarketView, count: int) -> Floats | None:
        """Return the price factors of the first ``count`` columns, NaN before a first price; None = all 1."""
        if not self._rebase:
            return None
        if count > self._price.size:
            more = np.full(count - self._price.size, np.nan)
            self._price = np.concatenate([self._price, more])
        # Where one session closes as the next opens, one instant has several moments; what is known tells which.
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
        """Return a symbol's price factor (1 when nothing is rebased or it has no price yet)."""
        factors = self.prices(view, len(view.symbols))
        factor = 1.0 if factors is None else float(factors[view.column(symbol)])
        return 1.0 if np.isnan(factor) else factor

    def volumes(self, count: int) -> Floats | None:
        """Return the factor of volume and turnover of the first ``count`` columns; None = all 1."""
        if not self._rescale:
            return None
        while self._volume.size < count:
            spread = np.log(_VOLUME_SPREAD)
            self._volume = np.concatenate(
                [self._volume, np.exp(self._volume_rng.uniform(-spread, spread, _BLOCK))]
            )
        return self._volume[:count]

    def of_field(self, field: Field, view: MarketView, count: int) -> Floats | None:
        """Return what a field of the first ``count`` columns is multiplied by; None = nothing."""
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
        if not self._rebase:
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
        if self._rebase and field in PER_SHARE:
            return value * self.price(view, symbol)
        if self._rebase and field in SHARE_COUNTS:
            return value / self.price(view, symbol)
        return value

    def _target(self, count: int) -> Floats:
        low, high = np.log(_SHOWN_PRICES)
        while self._shown.size < count:
            self._shown = np.concatenate([self._shown, np.exp(self._price_rng.uniform(low, high, _BLOCK))])
        return self._shown[:count]

    def _start_factors(self, start: MarketView) -> Floats:
        closes = start.bars("close", _LOOKBACK, adjust="none")
        factors = np.full(closes.shape[1], np.nan)
        if not closes.size:
            return factors
        known = np.isfinite(closes)
        last = closes.shape[0] - 1 - np.argmax(known[::-1], axis=0)
        some = known.any(axis=0)
        columns = np.flatnonzero(some)
        factors[columns] = self._target(factors.size)[columns] / closes[last[columns], columns]
        return factors

    def _start_volumes(self, start: MarketView) -> Floats:
        """Return factors under which every name's recent turnover is drawn from one range, whatever it was."""
        amounts = start.bars("amount", _RECENT)
        known = np.isfinite(amounts).any(axis=0) if amounts.size else np.zeros(amounts.shape[1], dtype=bool)
        low, high = np.log(_SHOWN_AMOUNTS)
        shown = np.exp(self._volume_rng.uniform(low, high, known.size))
        mean = np.full(known.size, np.nan)
        mean[known] = np.nanmean(amounts[:, known], axis=0)
        usable = np.isfinite(mean) & (mean > 0)
        factors: Floats = np.where(usable, shown / np.where(usable, mean, 1.0), 1.0)
        return factors


TICK = 0.01
"""The price step that is shown."""
BLUR = 0.003
"""Half the width of the noise, as a share of the price: more than one true step of any stock above 3.33."""
FIGURES = 3
"""Significant digits of volumes and amounts."""


class Ticks:
    """The shown grid of one episode."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def price(self, symbol: str, day: str, field: str, scaled: float) -> float:
        blurred = scaled * (1.0 + BLUR * self._noise(symbol, day, field))
        return max(TICK, round(round(blurred / TICK) * TICK, 2))

    def size(self, symbol: str, day: str, field: str, scaled: float) -> float:
        blurred = scaled * (1.0 + BLUR * self._noise(symbol, day, field))
        return float(np.format_float_positional(blurred, FIGURES, fractional=False, unique=False))

    def _noise(self, symbol: str, day: str, field: str) -> float:
        """Return a number between -1 and 1, the same whenever it is asked for."""
        text = f"{symbol}\x1f{day}\x1f{field}".encode()
        digest = hashlib.blake2b(text, key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2.0**63 - 1.0
