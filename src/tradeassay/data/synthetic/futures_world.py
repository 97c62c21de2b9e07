"""Put the futures world together: contracts, funds, news about whole markets, and the key."""

from __future__ import annotations

import numpy as np

from tradeassay.core.instruments import Instrument
from tradeassay.core.time import parse_day
from tradeassay.core.view import Field, Floats
from tradeassay.data.calendars import Sessions
from tradeassay.data.panel import Listing, Panel
from tradeassay.data.synthetic.answers import news_skills, news_truths
from tradeassay.data.synthetic.config import VERSION, SyntheticConfig
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.events import make_events, planted_returns
from tradeassay.data.synthetic.facts import World, panel_facts
from tradeassay.data.synthetic.futures import CHAINS, FUTURE_UNIT, Chain, Contract, Spot, make_contracts, make_spot
from tradeassay.data.synthetic.key import AnswerKey, KeyFacts, PlantedSkill
from tradeassay.data.synthetic.names import sectors
from tradeassay.data.synthetic.news import write_news
from tradeassay.data.synthetic.past_sessions import sessions_from
from tradeassay.data.synthetic.regimes import MarketPath, make_market
from tradeassay.data.synthetic.universe import Universe
from tradeassay.factors import FACTOR_NAMES

_FUND_UNIT = 1000
_SPREAD = PlantedSkill(
    name="calendar-spread",
    knows="that the basis of a chain comes back: sessions until half of a deviation is gone",
    edge=7.0,
)


def generate_futures(config: SyntheticConfig) -> World:
    """Make a world of two chains; components of the indices are not part of it."""
    sessions = sessions_from(config.calendar, parse_day(config.first), config.sessions)
    funds = _underlyings(config)
    events = make_events(config, funds, sessions, ())
    planted = np.stack(planted_returns(config, events, config.sessions, 0, funds.size))
    market = make_market(config, 0)
    spots = [make_spot(config, chain, market, planted[:, :, k]) for k, chain in enumerate(CHAINS)]
    columns = [_fund(config, chain, spot, sessions) for chain, spot in zip(CHAINS, spots, strict=True)]
    for chain, spot in zip(CHAINS, spots, strict=True):
        columns += make_contracts(config, chain, spot, sessions)
    columns.sort(key=lambda c: (c.listing.listed, c.listing.instrument.symbol))
    items = write_news(config, funds.instruments, events)
    panel = Panel(
        name=f"synthetic/{config.preset}:{config.seed}",
        facts=panel_facts(config),
        listings=tuple(column.listing for column in columns),
        sessions=sessions.days,
        open_time=sessions.open_time,
        close_time=sessions.close_time,
        bars=_bars(columns),
        suspended=np.zeros((config.sessions, len(columns)), dtype=np.bool_),
        indices={chain.index: spot.levels[:, 3].copy() for chain, spot in zip(CHAINS, spots, strict=True)},
        news=items,
    )
    facts = KeyFacts(
        version=VERSION,
        preset=config.preset,
        seed=config.seed,
        symbols=tuple(chain.fund for chain in CHAINS),
        factors=FACTOR_NAMES,
        sectors=sectors(config.preset),
        regimes=market.regime,
        news=news_truths(config, events, items, sessions.days),
        skills=(*news_skills(events), _SPREAD),
    )
    return World(panel, _key(facts, sessions, market, planted, spots))


def _underlyings(config: SyntheticConfig) -> Universe:
    """Return the two funds as the names that news is about."""
    count = len(CHAINS)
    whole = np.zeros(count, dtype=np.int64)
    return Universe(
        instruments=tuple(_fund_instrument(config, chain) for chain in CHAINS),
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


def _fund_instrument(config: SyntheticConfig, chain: Chain) -> Instrument:
    return Instrument(
        symbol=chain.fund,
        name=chain.name,
        kind="index",
        currency=config.currency,
        lot=100.0,
        tick=1.0 / _FUND_UNIT,
    )


def _fund(config: SyntheticConfig, chain: Chain, spot: Spot, sessions: Sessions) -> Contract:
    """Return the fund of an index, priced at a thousandth of its level."""
    draws = Draws(config.seed, "fund", chain.fund)
    volume = np.rint(5_000_000.0 * (1.0 + 0.4 * np.abs(draws.normal(config.sessions)))) * 100.0
    listing = Listing(instrument=_fund_instrument(config, chain), listed=str(sessions.days[0]))
    return Contract(listing, np.rint(spot.levels), volume)


def _bars(columns: list[Contract]) -> dict[Field, Floats]:
    names: tuple[Field, ...] = ("open", "high", "low", "close")
    unit = np.array([_FUND_UNIT if c.listing.instrument.kind == "index" else FUTURE_UNIT for c in columns])
    multiplier = np.array([c.listing.instrument.multiplier for c in columns])
    bars: dict[Field, Floats] = {
        name: np.stack([c.prices[:, k] for c in columns], axis=1) / unit for k, name in enumerate(names)
    }
    bars["volume"] = np.stack([c.volume for c in columns], axis=1)
    paid = (bars["open"] + bars["high"] + bars["low"] + bars["close"]) * 0.25
    bars["amount"] = np.rint(paid * bars["volume"] * multiplier * 100.0) / 100.0
    return bars


def _key(facts: KeyFacts, sessions: Sessions, market: MarketPath, planted: Floats, spots: list[Spot]) -> AnswerKey:
    rows, count = sessions.days.size, len(CHAINS)
    return AnswerKey(
        facts=facts,
        sessions=sessions.days,
        market=market.overnight + market.intraday,
        styles=np.zeros((rows, len(FACTOR_NAMES))),
        sectors=np.zeros((rows, 1)),
        exposures=np.zeros((rows, len(FACTOR_NAMES), count)),
        news=planted[0] + planted[1],
        decline=np.zeros((rows, count)),
        residual=np.stack([spot.residual for spot in spots], axis=1),
        beta=np.array([chain.beta for chain in CHAINS]),
        alpha=np.zeros(count),
        sector=np.zeros(count, dtype=np.int64),
    )
