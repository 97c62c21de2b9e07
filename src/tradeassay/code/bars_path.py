"""Prices of a synthetic market, bar by bar: spells of drift or a pull to a mean, clustered volatility, gaps.

Spells are counted in bars and drifts in standard deviations of a bar, so that a rule with a period of twenty bars
meets the same kind of market on days as on minutes. Only the four basic operations and a fixed stream of bits are
used: the same seed gives the same prices on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from tradeassay.code.bars_clock import MINUTES, SESSION_MINUTES, Clock, bars_per_session
from tradeassay.code.task import Timeframe
from tradeassay.core.view import Floats
from tradeassay.data.synthetic.draws import Draws

_YEAR: Final[dict[Clock, int]] = {"exchange": 252, "futures": 252, "always": 365}
_EDGE: Final = 1.2
"""How much livelier the ends of an exchange's session are than its middle."""
_CUT: Final = 6.0
"""The largest move, in standard deviations of its bar."""


class MarketSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a synthetic market behaves.

    ``volatility`` is per year. ``spell`` is the shortest and longest number of bars that a drift lasts, ``drift``
    the possible drifts in standard deviations of a bar. ``pull`` is the share of the distance to its mean that a
    price makes good on every bar. ``gap`` is the overnight share of a session's variance. ``common`` is the
    correlation of two assets, ``tied`` makes all assets follow the first one with a spread that returns to zero.
    """

    title: str
    clock: Clock = "exchange"
    price: float = 100.0
    tick: float = 0.01
    volatility: float = 0.25
    cluster: float = 0.10
    spell: tuple[int, int] = (40, 160)
    drift: tuple[float, ...] = (-0.06, 0.0, 0.08, 0.12)
    pull: float = 0.0
    gap: float = 0.2
    common: float = 0.45
    tied: bool = False
    volume: float = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Path:
    """Open, high, low, close and volume of one asset."""

    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats


def make_paths(spec: MarketSpec, timeframe: Timeframe, assets: int, bars: int, seed: int) -> list[Path]:
    """Draw the assets of a market; those of a smaller number of assets are the first ones of a larger."""
    sigma, opens = _sigma(spec, timeframe, bars)
    shared = _shocks(spec, Draws(seed, "bars", spec.title, timeframe, "common"), bars)
    paths: list[Path] = []
    for asset in range(assets):
        draws = Draws(seed, "bars", spec.title, timeframe, str(asset))
        own = _shocks(spec, draws, bars)
        shocks = math.sqrt(spec.common) * shared + math.sqrt(1.0 - spec.common) * own
        lead = paths[0] if spec.tied and paths else None
        paths.append(_path(spec, draws, shocks, sigma, opens, lead))
    return paths


def _sigma(spec: MarketSpec, timeframe: Timeframe, bars: int) -> tuple[Floats, Floats]:
    """Return every bar's standard deviation and that of the gap before it."""
    daily = spec.volatility / math.sqrt(_YEAR[spec.clock])
    gap = 0.0 if spec.clock == "always" else spec.gap
    if timeframe == "1d":
        return np.full(bars, daily * math.sqrt(1.0 - gap)), np.full(bars, daily * math.sqrt(gap))
    count = bars_per_session(spec.clock, timeframe)
    share = MINUTES[timeframe] / SESSION_MINUTES[spec.clock]
    place = (np.arange(count) + 0.5) / count - 0.5
    shape = 1.0 + (_EDGE if spec.clock == "exchange" else 0.3) * 4.0 * place * place
    shape /= math.sqrt(math.fsum((shape * shape).tolist()) / count)
    within = daily * math.sqrt((1.0 - gap) * share) * shape
    before = np.zeros(count)
    before[0] = daily * math.sqrt(gap)
    times = -(-bars // count)
    return np.tile(within, times)[:bars], np.tile(before, times)[:bars]


def _shocks(spec: MarketSpec, draws: Draws, bars: int) -> Floats:
    """Return shocks of unit variance in the long run, whose size comes in clusters."""
    plain = draws.student(bars, 5).tolist()
    variance, path = 1.0, []
    keep = 0.97 - spec.cluster
    for shock in plain:
        value = math.sqrt(variance) * min(max(shock, -_CUT), _CUT)
        path.append(value)
        variance = min(0.03 + spec.cluster * value * value + keep * variance, 9.0)
    return np.array(path)


def _drift(spec: MarketSpec, draws: Draws, bars: int) -> Floats:
    """Return the drift of every bar; each round of spells has every drift once, in random order."""
    drift = np.empty(bars)
    start = 0
    while start < bars:
        for which in draws.order(len(spec.drift)).tolist():
            stop = start + draws.integer(*spec.spell)
            drift[start:stop] = spec.drift[which]
            start = stop
    return drift


def _path(
    spec: MarketSpec, draws: Draws, shocks: Floats, sigma: Floats, before: Floats, lead: Path | None
) -> Path:
    bars = shocks.size
    moves = sigma * (np.clip(shocks, -_CUT, _CUT) + _drift(spec, draws, bars))
    gaps = before * np.clip(draws.student(bars, 5), -_CUT, _CUT)
    price = spec.price * (0.6 + 0.8 * float(draws.uniform(1)[0]))
    if lead is not None:
        opened, close = _tied(lead, moves, gaps, price)
    elif spec.pull:
        opened, close = _pulled(moves, gaps, price, spec.pull)
    else:
        steps = np.multiply.accumulate(np.stack([1.0 + gaps, 1.0 + moves], axis=1).ravel()) * price
        opened, close = steps[0::2], steps[1::2]
    reach = np.abs(draws.normal((2, bars))) * (0.6 * sigma)
    top, bottom = np.maximum(opened, close), np.minimum(opened, close)
    busy = 1.0 + np.abs(shocks) * 0.5 + np.abs(draws.normal(bars)) * 0.4
    mean = math.fsum(sigma.tolist()) / bars
    volume = np.rint(spec.volume * busy * 0.5 * (sigma / mean))
    parts = [
        _on_ticks(part, spec.tick) for part in (opened, top * (1.0 + reach[0]), bottom / (1.0 + reach[1]), close)
    ]
    opened, high, low, close = parts
    return Path(
        opened,
        np.maximum(high, np.maximum(opened, close)),
        np.minimum(low, np.minimum(opened, close)),
        close,
        np.maximum(volume, 1.0),
    )


def _pulled(moves: Floats, gaps: Floats, price: float, pull: float) -> tuple[Floats, Floats]:
    """Return opens and closes that are drawn back to their mean on every bar."""
    opened, close, last = [], [], price
    for move, gap in zip(moves.tolist(), gaps.tolist(), strict=True):
        start = last * (1.0 + gap)
        last = start * (1.0 + move + pull * (price / start - 1.0))
        opened.append(start)
        close.append(last)
    return np.array(opened), np.array(close)


def _tied(lead: Path, moves: Floats, gaps: Floats, price: float) -> tuple[Floats, Floats]:
    """Return opens and closes of an asset that follows the first one, with a spread that dies away."""
    spread, close_part, open_part = 0.0, [], []
    for move, gap in zip((moves * 0.7).tolist(), (gaps * 0.3).tolist(), strict=True):
        open_part.append(1.0 + spread + gap)
        spread = 0.93 * spread + move
        close_part.append(1.0 + spread)
    scale = price / float(lead.open[0])
    floor = 0.2
    return (
        lead.open * scale * np.maximum(np.array(open_part), floor),
        lead.close * scale * np.maximum(np.array(close_part), floor),
    )


def _on_ticks(prices: Floats, tick: float) -> Floats:
    """Return prices in whole ticks, at least one. Ticks are dealt with as a number per unit, which is exact."""
    unit = float(round(1.0 / tick))
    result: Floats = np.maximum(np.rint(prices * unit), 1.0) / unit
    return result
