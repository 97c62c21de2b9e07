"""A whole synthetic world: the panel that everybody may read through views, and the key that nobody may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tradeassay.core.time import DAY, MINUTE, parse_day
from tradeassay.core.view import Bools, CorporateAction, Field, Floats, Instrument
from tradeassay.data.calendars import Sessions, sessions_from
from tradeassay.data.panel import Listing, Panel, action_known_at
from tradeassay.data.source import SourceConfig, sources
from tradeassay.data.synthetic.drivers import Drivers, make_decline, make_market, make_sectors, make_styles
from tradeassay.data.synthetic.engine import CorporateMove, WorldTape, make_schedule, run_days
from tradeassay.data.synthetic.events import (
    make_events,
    make_fundamentals,
    make_reports,
    planted_returns,
    write_news,
)
from tradeassay.data.synthetic.futures import generate_futures
from tradeassay.data.synthetic.index import FUND, FUND_UNIT, INDEX, Fund, make_fund, make_index
from tradeassay.data.synthetic.key import World, make_key, panel_facts
from tradeassay.data.synthetic.minutes import make_minutes
from tradeassay.data.synthetic.universe import WorldNames, make_universe
from tradeassay.data.synthetic.world_config import Market, SyntheticConfig, preset

BURN = 253
"""Hidden sessions before the first visible one, so that every factor has its history on day one."""


def generate(config: SyntheticConfig) -> World:
    """Make a world; raises :class:`~tradeassay.core.errors.DataError` where the calendar is not known."""
    if config.preset == "futures":
        return generate_futures(config)
    sessions = sessions_from(config.calendar, parse_day(config.first), config.sessions)
    universe = make_universe(config)
    reports = make_reports(config, universe, sessions)
    events = make_events(config, universe, sessions, reports)
    rows = BURN + config.sessions
    drivers = Drivers(
        market=make_market(config, BURN),
        styles=make_styles(config, rows),
        sectors=make_sectors(config, rows),
        planted=np.stack(planted_returns(config, events, rows, BURN, universe.size)),
        decline=make_decline(config, universe, BURN),
    )
    tape = run_days(config, universe, drivers, make_schedule(config, universe, BURN), BURN)
    index = make_index(config, universe, tape, sessions.days, BURN)
    fund = make_fund(config, universe, tape, index, sessions.days, BURN)
    place = _place(universe)
    items = write_news(config, universe.instruments, events)
    panel = Panel(
        name=f"synthetic/{config.preset}:{config.seed}",
        facts=panel_facts(config),
        listings=_listings(config, universe, sessions, place),
        sessions=sessions.days,
        open_time=sessions.open_time,
        close_time=sessions.close_time,
        bars=_bars(universe, tape, fund, place),
        suspended=np.insert(_suspended(universe, tape), place, False, axis=1),
        minutes=make_minutes(config, universe, tape, sessions, BURN),
        actions=_actions(universe, sessions, tape, fund),
        memberships=index.memberships,
        indices={INDEX: np.rint(index.closes * 100.0) / 100.0},
        fundamentals=make_fundamentals(config, universe, tape, reports, BURN),
        news=items,
    )
    return World(panel, make_key(config, universe, drivers, tape, events, items, sessions.days))


def _place(universe: WorldNames) -> int:
    """Return the fund's column: columns are sorted by first day, then symbol."""
    return sum(
        first == 0 and instrument.symbol < FUND
        for first, instrument in zip(universe.first, universe.instruments, strict=True)
    )


def fund_instrument(config: SyntheticConfig, symbol: str = FUND, index: str = INDEX) -> Instrument:
    lot = {"ashare": 100.0, "futures": 100.0}.get(config.preset, 1.0)
    step = 1e-6 if config.preset == "crypto" else 1.0
    return Instrument(
        symbol=symbol,
        name=f"{index} index fund",
        kind="index",
        currency=config.currency,
        lot=step if config.preset == "crypto" else lot,
        step=step,
        tick=1.0 / FUND_UNIT,
    )


def _listings(
    config: SyntheticConfig, universe: WorldNames, sessions: Sessions, place: int
) -> tuple[Listing, ...]:
    days, end = sessions.days, config.sessions - 1
    listings = [
        Listing(instrument=instrument, listed=str(days[first]), delisted=None if last == end else str(days[last]))
        for instrument, first, last in zip(universe.instruments, universe.first, universe.last, strict=True)
    ]
    listings.insert(place, Listing(instrument=fund_instrument(config), listed=str(days[0])))
    return tuple(listings)


def _bars(universe: WorldNames, tape: WorldTape, fund: Fund, place: int) -> Mapping[Field, Floats]:
    unit = universe.unit.astype(np.float64)
    bars: dict[Field, Floats] = {}
    prices: tuple[tuple[Field, Floats], ...] = (
        ("open", tape.open),
        ("high", tape.high),
        ("low", tape.low),
        ("close", tape.close),
    )
    for k, (name, values) in enumerate(prices):
        bars[name] = np.insert(values[BURN:] / unit, place, fund.prices[:, k] / FUND_UNIT, axis=1)
    four = fund.prices
    paid = (four[:, 0] + four[:, 1] + four[:, 2] + four[:, 3]) * 0.25 / FUND_UNIT
    bars["volume"] = np.insert(tape.volume[BURN:], place, fund.volume, axis=1)
    bars["amount"] = np.insert(tape.amount[BURN:], place, np.rint(paid * fund.volume * 100.0) / 100.0, axis=1)
    return bars


def _suspended(universe: WorldNames, tape: WorldTape) -> Bools:
    rows = np.arange(tape.trading.shape[0] - BURN)[:, None]
    listed = (rows >= universe.first) & (rows <= universe.last)
    return listed & ~tape.trading[BURN:]


def _actions(universe: WorldNames, sessions: Sessions, tape: WorldTape, fund: Fund) -> tuple[CorporateAction, ...]:
    found: list[CorporateAction] = []
    for action in tape.actions:
        if action.ex >= BURN:
            unit = float(universe.unit[action.column])
            symbol = universe.instruments[action.column].symbol
            found.append(_action(sessions, symbol, action, action.announced - BURN, action.ex - BURN, unit))
    for action in fund.actions:
        found.append(_action(sessions, FUND, action, action.announced, action.ex, float(FUND_UNIT)))
    return tuple(sorted(found, key=lambda a: (a.ex_date, a.symbol, a.kind)))


def _action(
    sessions: Sessions, symbol: str, action: CorporateMove, announced: int, ex: int, unit: float
) -> CorporateAction:
    told = (
        int(sessions.close_time[announced]) + 30 * MINUTE if announced >= 0 else int(sessions.open_time[0]) - DAY
    )
    return CorporateAction(
        symbol=symbol,
        kind="dividend" if action.kind == "dividend" else "split",
        ex_date=str(sessions.days[ex]),
        known_at=min(told, action_known_at(int(sessions.open_time[ex]))),
        value=action.value / unit if action.kind == "dividend" else action.value,
    )


class SyntheticQuery(SourceConfig, frozen=True, kw_only=True):
    """Which world: a preset and a seed; omitted sizes are the preset's. ``first`` is an ISO day."""

    preset: Market = "us"
    seed: int = 0
    names: int | None = None
    sessions: int | None = None
    first: str | None = None
    minutes: int | None = None


@sources.register("synthetic")
class SyntheticSource:
    """A generated market; the same query gives the same bytes everywhere."""

    Config: ClassVar[type[SourceConfig]] = SyntheticQuery
    summary: ClassVar[str] = "seeded worlds with known truth: us, ashare, crypto, futures"
    extra: ClassVar[str | None] = None

    def __init__(self, config: SyntheticQuery) -> None:
        self.config = config

    def load(self) -> Panel:
        """Generate the panel; raises :class:`UserError` for sizes that make no market."""
        asked = self.config
        sizes: dict[str, Any] = {
            name: value
            for name in ("names", "sessions", "first", "minutes")
            if (value := getattr(asked, name)) is not None
        }
        return generate(preset(asked.preset, seed=asked.seed, **sizes)).panel
