"""What moves prices, all drawn before the first session.

The common factor has regimes with known drift and clustered volatility. It and the planted style and sector
returns each have an overnight and an intraday part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tradeassay.core import reproducible_math as exact
from tradeassay.core.view import Floats
from tradeassay.data.synthetic.universe import Draws, WorldNames, sectors
from tradeassay.data.synthetic.world_config import MarketModel, SyntheticConfig

_ARCH, _GARCH, _DF = 0.08, 0.90, 6


@dataclass(frozen=True, slots=True)
class MarketPath:
    """The common return per session, split at the open, and the regime of every row ("" before the first)."""

    overnight: Floats
    intraday: Floats
    regime: tuple[str, ...]


def make_market(config: SyntheticConfig, burn: int, stream: str = "market") -> MarketPath:
    draws = Draws(config.seed, stream)
    model, rows = config.market, burn + config.sessions
    noise = clustered(draws, rows, model.volatility / math.sqrt(config.year), _ARCH, _GARCH, _DF)
    drift = np.zeros(rows)
    regime = [""] * burn
    start = burn
    for kind, length, legs in _spans(model, config.sessions, config.year):
        regime += [kind] * length
        for leg, total in legs:
            stop = start + leg
            noise[start:stop] -= exact.mean(noise[start:stop])
            drift[start:stop] = total / leg
            start = stop
    share = config.trading.overnight
    shift = draws.normal(rows) * (model.volatility / math.sqrt(config.year) * math.sqrt(share * (1.0 - share)))
    overnight = share * noise + shift
    return MarketPath(overnight, noise - overnight + drift, tuple(regime))


def _spans(model: MarketModel, sessions: int, year: int) -> list[tuple[str, int, list[tuple[int, float]]]]:
    """Return (kind, length, legs of (length, total return)) for every span, filling the sessions exactly."""
    whole = math.fsum(span.share for span in model.regimes)
    edges, passed = [0], 0.0
    for span in model.regimes:
        passed += span.share
        edges.append(min(sessions, round(sessions * passed / whole)))
    edges[-1] = sessions
    spans = []
    for span, start, stop in zip(model.regimes, edges, edges[1:], strict=False):
        length = stop - start
        if length <= 0:
            continue
        rate = {"bull": model.bull, "bear": model.bear}.get(span.kind, 0.0)
        legs = [(length, rate * length / year)]
        if span.kind == "v" and length > 1:
            legs = [(length // 2, -model.depth), (length - length // 2, model.depth)]
        spans.append((str(span.kind), length, legs))
    return spans


def clustered(draws: Draws, rows: int, sigma: float, arch: float, garch: float, df: int) -> Floats:
    shocks = draws.student(rows, df).tolist()
    base = sigma * sigma
    variance, path = base, []
    for shock in shocks:
        value = math.sqrt(variance) * shock
        path.append(value)
        variance = min(base * (1.0 - arch - garch) + arch * value * value + garch * variance, 16.0 * base)
    return np.array(path)


_DF = 6


def make_styles(config: SyntheticConfig, rows: int) -> Floats:
    """Return style returns per unit of exposure, shape (2, rows, 9): overnight, then intraday."""
    draws = Draws(config.seed, "styles")
    year = float(config.year)
    premia = np.array(config.styles.premia) / year
    scale = np.array(config.styles.volatility) / math.sqrt(year)
    return _split(draws, config, (rows, premia.size), scale, premia)


def make_sectors(config: SyntheticConfig, rows: int) -> Floats:
    """Return sector returns, shape (2, rows, sectors): overnight, then intraday."""
    draws = Draws(config.seed, "sectors")
    count = len(sectors(config.preset))
    scale = np.full(count, config.market.sector_volatility / math.sqrt(config.year))
    return _split(draws, config, (rows, count), scale, np.zeros(count))


def _split(draws: Draws, config: SyntheticConfig, shape: tuple[int, int], scale: Floats, mean: Floats) -> Floats:
    share = config.trading.overnight
    overnight = draws.student(shape, _DF) * (scale * math.sqrt(share))
    intraday = draws.student(shape, _DF) * (scale * math.sqrt(1.0 - share)) + mean
    return np.stack([overnight, intraday])


DISTRESS = 40
"""A name that will be delisted declines over this many sessions."""
_DISTRESS_DRIFT = -0.012


@dataclass(frozen=True, slots=True)
class Drivers:
    """Planted returns. Those of shape (2, ...) hold an overnight and an intraday part.

    ``styles`` has shape (2, rows, 9), ``sectors`` (2, rows, sectors), ``planted`` (what news causes: 2, rows,
    names), ``decline`` (rows, names) what names lose before they are delisted.
    """

    market: MarketPath
    styles: Floats
    sectors: Floats
    planted: Floats
    decline: Floats

    def known_returns(self, universe: WorldNames) -> Floats:
        """Return everything that does not depend on the path of prices, shape (rows, 2, names)."""
        market = np.stack([self.market.overnight, self.market.intraday], axis=1)
        base = market[:, :, None] * universe.beta + self.sectors.transpose(1, 0, 2)[:, :, universe.sector]
        base += self.planted.transpose(1, 0, 2)
        base[:, 1] += universe.alpha + self.decline
        return base


def make_decline(config: SyntheticConfig, universe: WorldNames, burn: int) -> Floats:
    decline = np.zeros((burn + config.sessions, universe.size))
    for column in np.flatnonzero(universe.last < config.sessions - 1).tolist():
        end = burn + int(universe.last[column]) + 1
        decline[end - DISTRESS : end, column] = _DISTRESS_DRIFT
    return decline
