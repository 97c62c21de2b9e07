"""A world of two index-futures chains: spot indices, their funds, and dated contracts with a moving basis.

A contract trades at spot times (1 + carry x time to expiry + basis). The basis has two mean-reverting parts, a
level and a slope, and vanishes at expiry, so rolls cost something and calendar spreads revert.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tradeassay.core.time import parse_day
from tradeassay.core.view import FIELDS, Days, Field, Floats, Instrument
from tradeassay.data.calendars import Sessions, sessions_from
from tradeassay.data.source import Listing, Panel
from tradeassay.data.synthetic.engine import Drivers, MarketPath, clustered, limits, make_market
from tradeassay.data.synthetic.events import make_events, planted_returns, write_news
from tradeassay.data.synthetic.key import PlantedSkill, World, make_key, panel_frame
from tradeassay.data.synthetic.universe import Draws, SyntheticConfig, WorldNames
from tradeassay.factors import FACTOR_NAMES

FUTURE_UNIT = 5
_LIMIT = 10.0
_LEVEL, _LEVEL_KEPT = 0.0035, 0.87
_SLOPE, _SLOPE_KEPT = 0.0030, 0.91
_CONVERGES = 10.0
"""Days before expiry from which the basis shrinks to nothing."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One underlying and its contracts. ``every`` months a contract expires, listed ``ahead`` days before.
    ``carry`` is the yearly cost of carry, ``beta`` and ``volatility`` (own, yearly) describe the spot index."""

    index: str
    fund: str
    root: str
    name: str
    start: float
    multiplier: float
    every: int
    ahead: int
    carry: float
    beta: float
    volatility: float


CHAINS = (
    Chain("IDX", "IDXF", "QIX", "Large Basket", 4000.0, 300.0, 1, 85, 0.005, 0.95, 0.06),
    Chain("IDY", "IDYF", "QIY", "Small Basket", 6000.0, 200.0, 3, 200, -0.030, 1.15, 0.12),
)


class Spot(NamedTuple):
    """A spot index: levels per session, shape (rows, 4) as open, high, low, close, and its own returns."""

    levels: Floats
    residual: Floats


def make_spot(config: SyntheticConfig, chain: Chain, market: MarketPath, planted: Floats) -> Spot:
    draws = Draws(config.seed, "spot", chain.index)
    rows = config.sessions
    own = clustered(draws, rows, chain.volatility / math.sqrt(config.year), 0.08, 0.90, 5)
    night = config.trading.overnight * own
    gap = chain.beta * market.overnight + night + planted[0]
    move = np.clip(gap + chain.beta * market.intraday + own - night + planted[1], -0.09, 0.09)
    closes = chain.start * np.multiply.accumulate(1.0 + move)
    opens = np.concatenate([[chain.start], closes[:-1]]) * (1.0 + np.clip(gap, -0.09, 0.09))
    reach = np.abs(draws.normal((rows, 2))) * (0.5 * config.market.volatility / math.sqrt(config.year))
    high = np.maximum(opens, closes) * (1.0 + reach[:, 0])
    low = np.minimum(opens, closes) / (1.0 + reach[:, 1])
    return Spot(np.rint(np.stack([opens, high, low, closes], axis=1) * 100.0) / 100.0, own)


class Contract(NamedTuple):
    """A dated contract, or a fund: its listing, and its bars in ticks, shape (rows, 4), NaN where it has none."""

    listing: Listing
    prices: Floats
    volume: Floats


def make_contracts(config: SyntheticConfig, chain: Chain, spot: Spot, sessions: Sessions) -> list[Contract]:
    draws = Draws(config.seed, "basis", chain.root)
    rows = config.sessions
    level = _reverting(draws, rows + 1, _LEVEL, _LEVEL_KEPT)
    slope = _reverting(draws, rows + 1, _SLOPE, _SLOPE_KEPT)
    contracts = []
    for month, expiry in _expiries(chain, sessions.days):
        listed = max(expiry - chain.ahead, sessions.days[0])
        first = int(np.searchsorted(sessions.days, listed))
        last = min(int(np.searchsorted(sessions.days, expiry)), rows - 1)
        if first > last:
            continue
        expired = bool(expiry <= sessions.days[-1])
        label = str(month).replace("-", "")[2:]
        instrument = Instrument(
            symbol=f"{chain.root}{label}",
            name=f"{chain.name} future {label}",
            kind="future",
            currency=config.currency,
            lot=1.0,
            step=1.0,
            tick=1.0 / FUTURE_UNIT,
            multiplier=chain.multiplier,
            expiry=str(expiry),
            root=chain.root,
        )
        left = (expiry - sessions.days).astype(np.int64).astype(np.float64)
        prices = _prices(draws, chain, spot, left, (level, slope), slice(first, last + 1))
        weight = 1.0 / (1.0 + np.maximum(left, 0.0) / 25.0 * (np.maximum(left, 0.0) / 25.0))
        weight = np.where(left < 5, weight * 0.35, weight)
        traded = np.maximum(np.rint(60_000.0 * weight * (1.0 + 0.3 * np.abs(draws.normal(rows)))), 1.0)
        volume = np.full(rows, np.nan)
        volume[first : last + 1] = traded[first : last + 1]
        listing = Listing(
            instrument=instrument, listed=str(sessions.days[first]), delisted=str(expiry) if expired else None
        )
        contracts.append(Contract(listing, prices, volume))
    return contracts


def _reverting(draws: Draws, rows: int, scale: float, kept: float) -> Floats:
    """Return a mean-reverting path with standard deviation ``scale``."""
    step = scale * math.sqrt(1.0 - kept * kept)
    state, path = 0.0, []
    for shock in draws.normal(rows).tolist():
        state = kept * state + step * shock
        path.append(state)
    return np.array(path)


def _expiries(chain: Chain, days: Days) -> list[tuple[np.datetime64, np.datetime64]]:
    """Return (month, expiry): the third Friday, or the next session when the market is closed then."""
    months = np.arange(days[0].astype("datetime64[M]"), days[-1].astype("datetime64[M]") + 8)
    found = []
    for month in months:
        if (int(month.astype(np.int64)) % 12 + 1) % chain.every:
            continue
        first = month.astype("datetime64[D]")
        friday = first + (4 - (int(first.astype(np.int64)) + 3) % 7) % 7 + 14
        if friday < days[0]:
            continue
        row = int(np.searchsorted(days, friday))
        found.append((month, days[row] if row < days.size else friday))
    return found


def _prices(
    draws: Draws, chain: Chain, spot: Spot, left: Floats, basis: tuple[Floats, Floats], live: slice
) -> Floats:
    """Return bars in ticks inside a 10 % limit."""
    rows = left.size
    fade = np.minimum(np.maximum(left, 0.0) / _CONVERGES, 1.0)
    level, slope = basis
    carry = chain.carry * left / 365.0

    def fair(values: Floats, shift: int) -> Floats:
        part = level[shift : rows + shift] + slope[shift : rows + shift] * (left / 60.0)
        return values * (1.0 + carry + fade * part) * FUTURE_UNIT

    opens, closes = fair(spot.levels[:, 0], 0), fair(spot.levels[:, 3], 1)
    reach = np.abs(draws.normal((rows, 2))) * 0.002
    high = np.maximum(np.maximum(opens, closes), fair(spot.levels[:, 1], 1)) * (1.0 + reach[:, 0])
    low = np.minimum(np.minimum(opens, closes), fair(spot.levels[:, 2], 1)) / (1.0 + reach[:, 1])
    prices = np.rint(np.stack([opens, high, low, closes], axis=1))
    inside = np.full((rows, 4), np.nan)
    before = float(prices[live.start, 0])
    for row in range(live.start, live.stop):
        bottom, top = (float(x[0]) for x in limits(np.array([before]), np.array([_LIMIT])))
        inside[row] = np.minimum(np.maximum(prices[row], bottom), top)
        before = float(inside[row, 3])
    return inside


_FUND_UNIT = 1000
_SPREAD = PlantedSkill(
    name="calendar-spread",
    knows="that the basis of a chain comes back: sessions until half of a deviation is gone",
    edge=7.0,
)


def generate_futures(config: SyntheticConfig) -> World:
    sessions = sessions_from(config.calendar, parse_day(config.first), config.sessions)
    count = len(CHAINS)
    whole = np.zeros(count, dtype=np.int64)
    told: dict[str, Any] = {"lot": 100.0, "tick": 1.0 / _FUND_UNIT}
    funds = WorldNames(
        instruments=tuple(
            Instrument(symbol=chain.fund, name=chain.name, kind="index", currency=config.currency, **told)
            for chain in CHAINS
        ),
        first=whole,
        last=np.full(count, config.sessions - 1, dtype=np.int64),
        sector=whole,
        unit=np.full(count, _FUND_UNIT, dtype=np.int64),
        limit=np.full(count, 10, dtype=np.int64),
        shares=whole,
        price=np.array([round(chain.start) for chain in CHAINS], dtype=np.int64),
        beta=np.array([chain.beta for chain in CHAINS]),
        alpha=np.zeros(count),
        sigma=np.array([chain.volatility for chain in CHAINS]),
    )
    events = make_events(config, funds, sessions, ())
    planted = np.stack(planted_returns(config, events, config.sessions, 0, funds.size))
    market = make_market(config, 0)
    spots = [make_spot(config, chain, market, planted[:, :, k]) for k, chain in enumerate(CHAINS)]
    columns = []
    for chain, spot, instrument in zip(CHAINS, spots, funds.instruments, strict=True):
        shares = np.abs(Draws(config.seed, "fund", chain.fund).normal(config.sessions))
        listing = Listing(instrument=instrument, listed=str(sessions.days[0]))
        # A fund is priced at a thousandth of its index.
        columns.append(
            Contract(listing, np.rint(spot.levels), np.rint(5_000_000.0 * (1.0 + 0.4 * shares)) * 100.0)
        )
        columns += make_contracts(config, chain, spot, sessions)
    columns.sort(key=lambda c: (c.listing.listed, c.listing.instrument.symbol))
    items = write_news(config, funds.instruments, events)
    instruments = [column.listing.instrument for column in columns]
    unit = np.array([_FUND_UNIT if one.kind == "index" else FUTURE_UNIT for one in instruments])
    prices = np.stack([column.prices for column in columns], axis=2)
    bars: dict[Field, Floats] = {name: prices[:, k] / unit for k, name in enumerate(FIELDS[:4])}
    bars["volume"] = np.stack([column.volume for column in columns], axis=1)
    paid = (bars["open"] + bars["high"] + bars["low"] + bars["close"]) * 0.25
    multiplier = np.array([one.multiplier for one in instruments])
    bars["amount"] = np.rint(paid * bars["volume"] * multiplier * 100.0) / 100.0
    panel = Panel(
        **panel_frame(config, sessions),
        listings=tuple(column.listing for column in columns),
        bars=bars,
        suspended=np.zeros((config.sessions, len(columns)), dtype=np.bool_),
        indices={chain.index: spot.levels[:, 3].copy() for chain, spot in zip(CHAINS, spots, strict=True)},
        news=items,
    )
    rows = config.sessions
    drivers = Drivers(
        market=market,
        styles=np.zeros((2, rows, len(FACTOR_NAMES))),
        sectors=np.zeros((2, rows, 1)),
        planted=planted,
        decline=np.zeros((rows, count)),
    )
    drawn = (np.zeros((rows, len(FACTOR_NAMES), count)), np.stack([spot.residual for spot in spots], axis=1))
    key = make_key(config, funds, drivers, drawn, (events, items), sessions.days, (_SPREAD,))
    return World(panel, key)
