"""Fill the answer key from what was planted."""

from __future__ import annotations

import numpy as np

from tradeassay.core import reproducible_math as exact
from tradeassay.core.instruments import NewsItem
from tradeassay.core.view import Days
from tradeassay.data.synthetic.drivers import Drivers
from tradeassay.data.synthetic.engine import WorldTape
from tradeassay.data.synthetic.events import NewsEvent
from tradeassay.data.synthetic.key import AnswerKey, KeyFacts, NewsTruth, PlantedSkill
from tradeassay.data.synthetic.universe import WorldNames, sectors
from tradeassay.data.synthetic.world_config import VERSION, SyntheticConfig
from tradeassay.factors import FACTOR_NAMES


def make_key(
    config: SyntheticConfig,
    universe: WorldNames,
    drivers: Drivers,
    tape: WorldTape,
    events: tuple[NewsEvent, ...],
    items: tuple[NewsItem, ...],
    days: Days,
) -> AnswerKey:
    """Return the key of a world whose shown sessions are ``days``; what lies before them is left out."""
    burn = len(drivers.market.regime) - days.size
    facts = KeyFacts(
        version=VERSION,
        preset=config.preset,
        seed=config.seed,
        symbols=tuple(instrument.symbol for instrument in universe.instruments),
        factors=FACTOR_NAMES,
        sectors=sectors(config.preset),
        regimes=drivers.market.regime[burn:],
        news=news_truths(config, events, items, days),
        skills=news_skills(events) + _style_skills(config),
    )
    market = drivers.market
    return AnswerKey(
        facts=facts,
        sessions=days,
        market=(market.overnight + market.intraday)[burn:],
        styles=(drivers.styles[0] + drivers.styles[1])[burn:],
        sectors=(drivers.sectors[0] + drivers.sectors[1])[burn:],
        exposures=tape.exposures[burn:],
        news=(drivers.planted[0] + drivers.planted[1])[burn:],
        decline=drivers.decline[burn:],
        residual=tape.residual[burn:],
        beta=universe.beta,
        alpha=universe.alpha,
        sector=universe.sector,
    )


def news_truths(
    config: SyntheticConfig, events: tuple[NewsEvent, ...], items: tuple[NewsItem, ...], days: Days
) -> tuple[NewsTruth, ...]:
    """Return what every item is worth, in the order of the items."""
    return tuple(
        NewsTruth(
            id=item.id,
            symbol=item.symbols[0],
            session=str(days[event.row]),
            kind=event.kind,
            theme=event.theme,
            tone=event.tone,
            size=event.size,
            gap=event.gap,
            drift=event.drift,
            horizon=config.news.horizon,
            repeats=None if event.origin is None else items[event.origin].id,
        )
        for event, item in zip(events, items, strict=True)
    )


def news_skills(events: tuple[NewsEvent, ...]) -> tuple[PlantedSkill, ...]:
    """Return what reading is worth: the mean drift after the first open, over items of a kind."""
    skills = []
    for kind, knows in (
        ("informative", "which items tell a fact, and whether it is good or bad"),
        ("rumour", "that rumours fade: trade against their tone at the next open"),
    ):
        worth = np.array([abs(event.drift) for event in events if event.kind == kind])
        if worth.size:
            edge = float(exact.mean(worth))
            skills.append(PlantedSkill(name=f"news-{kind}", knows=knows, edge=edge, items=worth.size))
    return tuple(skills)


def _style_skills(config: SyntheticConfig) -> tuple[PlantedSkill, ...]:
    styles = tuple(
        PlantedSkill(name=f"style-{name}", knows=f"that exposure to {name} is paid", edge=premium)
        for name, premium in zip(FACTOR_NAMES, config.styles.premia, strict=True)
    )
    own = PlantedSkill(name="alpha", knows="each name's own drift (spread per year)", edge=config.noise.alpha)
    return (*styles, own)
