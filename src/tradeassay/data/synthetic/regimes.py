"""The common factor: regimes with known drift, clustered volatility, an overnight and an intraday part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tradeassay.core import exact
from tradeassay.core.view import Floats
from tradeassay.data.synthetic.config import MarketModel, SyntheticConfig
from tradeassay.data.synthetic.draws import Draws

_ARCH, _GARCH, _DF = 0.08, 0.90, 6


@dataclass(frozen=True, slots=True)
class MarketPath:
    """The common return per session, split at the open, and the regime of every row ("" before the first)."""

    overnight: Floats
    intraday: Floats
    regime: tuple[str, ...]


def make_market(config: SyntheticConfig, burn: int, stream: str = "market") -> MarketPath:
    """Draw the market's path over ``burn`` hidden sessions and the world's own."""
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
    """Return a GARCH(1,1) path with Student shocks and long-run standard deviation ``sigma``."""
    shocks = draws.student(rows, df).tolist()
    base = sigma * sigma
    variance, path = base, []
    for shock in shocks:
        value = math.sqrt(variance) * shock
        path.append(value)
        variance = min(base * (1.0 - arch - garch) + arch * value * value + garch * variance, 16.0 * base)
    return np.array(path)
