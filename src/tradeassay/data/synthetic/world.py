"""A whole synthetic world: its index and fund, the panel that views show, and the key that nobody may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tradeassay.core.time import DAY, MINUTE, parse_day
from tradeassay.core.view import FIELDS, Bools, CorporateAction, Days, Field, Floats, Instrument
from tradeassay.data.calendars import Sessions, sessions_from
from tradeassay.data.source import Listing, Membership, Panel, SourceConfig, action_known_at, sources
from tradeassay.data.synthetic.engine import (
    CorporateMove,
    Drivers,
    WorldTape,
    make_decline,
    make_market,
    make_schedule,
    make_sectors,
    make_styles,
    run_days,
)
from tradeassay.data.synthetic.events import (
    make_events,
    make_fundamentals,
    make_reports,
    planted_returns,
    write_news,
)
from tradeassay.data.synthetic.futures import generate_futures
from tradeassay.data.synthetic.key import World, make_key, panel_facts
from tradeassay.data.synthetic.minutes import make_minutes
from tradeassay.data.synthetic.universe import Draws, Market, SyntheticConfig, WorldNames, make_universe, preset

INDEX = "IDX"
FUND = "IDXF"
START = 1000.0
_SEASON = 40
"""A new listing may join the index after this many sessions."""
_NOTICE = 3
FUND_UNIT = 100


@dataclass(frozen=True, slots=True)
class Index:
    """Members per row, shape (rows, names), and levels at the open and the close of every visible row."""

    member: Bools
    opens: Floats
    closes: Floats
    memberships: tuple[Membership, ...]


@dataclass(frozen=True, slots=True)
class Fund:
    """The tracking fund: prices in hundredths, shape (rows, 4) as open, high, low, close; dividends likewise."""

    prices: Floats
    volume: Floats
    actions: tuple[CorporateMove, ...]


def make_index(config: SyntheticConfig, universe: WorldNames, tape: WorldTape, days: Days, burn: int) -> Index:
    """Choose members at fixed reviews and chain the level over the sessions."""
    finest = int(universe.unit.max())
    worth = tape.shares * tape.last.astype(np.int64) * (finest // universe.unit)
    size = config.index_members
    member = np.zeros((days.size, universe.size), dtype=np.bool_)
    edges = [0, *_reviews(config, days), days.size]
    inside: set[int] = set()
    for start, stop in pairwise(edges):
        fit = (universe.first + _SEASON <= start) | (universe.first == 0)
        fit &= universe.last >= start
        value = np.where(fit, worth[burn + start - 1], -1)
        ranked = [int(i) for i in np.argsort(-value, kind="stable") if fit[i]]
        inside = _review(ranked, inside, size) if start else set(ranked[:size])
        for column in inside:
            member[start : min(stop, int(universe.last[column]) + 1), column] = True
    before, now = worth[burn - 1 : -1], worth[burn:]
    printed = np.where(np.isnan(tape.open), tape.last, tape.open)[burn:].astype(np.int64)
    opening = tape.shares[burn:] * printed * (finest // universe.unit)
    base = np.where(member, before, 0).sum(axis=1).astype(np.float64)
    grow = np.where(member, now, 0).sum(axis=1) / base
    gap = np.where(member, opening, 0).sum(axis=1) / base
    closes = START * np.multiply.accumulate(grow)
    opens = np.concatenate([[START], closes[:-1]]) * gap
    return Index(member, opens, closes, _dated(universe, member, days))


def _reviews(config: SyntheticConfig, days: Days) -> list[int]:
    """Return the rows at which membership is reviewed: the first session of June and December, or of quarters."""
    months = days.astype("datetime64[M]").astype(np.int64)
    turns = np.flatnonzero(np.diff(months)) + 1
    every, phase = (3, 0) if config.preset == "crypto" else (6, 5)
    return [int(row) for row in turns if months[row] % 12 % every == phase % every]


def _review(ranked: list[int], inside: set[int], size: int) -> set[int]:
    """Keep members that rank within 110 % of the size, fill up from the top, and change at least one name."""
    kept = [i for i in ranked[: size + max(1, size // 10)] if i in inside][:size]
    chosen = set(kept)
    for i in ranked:
        if len(chosen) >= size:
            break
        chosen.add(i)
    outsiders = [i for i in ranked if i not in chosen]
    if chosen == inside and outsiders:
        weakest = max(chosen, key=ranked.index)
        chosen = (chosen - {weakest}) | {outsiders[0]}
    return chosen


def _dated(universe: WorldNames, member: Bools, days: Days) -> tuple[Membership, ...]:
    rows = member.shape[0]
    found = []
    for column in range(member.shape[1]):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], member[:, column].view(np.int8), [0]])))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            found.append(
                Membership(
                    index=INDEX,
                    symbol=universe.instruments[column].symbol,
                    start=str(days[start]),
                    end=None if stop == rows else str(days[stop - 1]),
                )
            )
    return tuple(sorted(found, key=lambda m: (m.start, m.symbol)))


def _income(universe: WorldNames, tape: WorldTape, index: Index, burn: int) -> Floats:
    """Return the dividends of members per row, in hundredths per fund share."""
    rows = index.closes.size
    level = np.concatenate([[START], index.closes[:-1]])
    income = np.zeros(rows)
    for action in tape.actions:
        row = action.ex - burn
        if action.kind != "dividend" or row < 0 or not index.member[row, action.column]:
            continue
        worth = (tape.shares[action.ex - 1] * tape.last[action.ex - 1].astype(np.int64))[index.member[row]].sum()
        part = float(tape.shares[action.ex - 1, action.column]) * action.value / float(worth)
        income[row] += level[row] * 10.0 * part
    return income


def _payouts(income: Floats, days: Days) -> tuple[Floats, tuple[CorporateMove, ...]]:
    """Return what the fund holds after every row, and its payouts (announced three sessions ahead)."""
    months = days.astype("datetime64[M]").astype(np.int64)
    turns = {int(row) + 10 for row in np.flatnonzero(np.diff(months)) + 1 if months[row] % 3 == 2}
    held, actions = np.zeros(income.size), []
    cash, announced = 0.0, 0.0
    for row, more in enumerate(income.tolist()):
        if row + _NOTICE in turns and row + _NOTICE < income.size:
            announced = float(np.floor(cash))
        if row in turns and announced >= 1.0:
            actions.append(CorporateMove(-1, "dividend", row - _NOTICE, row, announced))
            cash, announced = cash - announced, 0.0
        cash += more
        held[row] = cash
    return held, tuple(actions)


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
    income = _income(universe, tape, index, BURN)
    held, actions = _payouts(income, sessions.days)
    draws = Draws(config.seed, "fund")
    reach = np.abs(draws.normal((sessions.days.size, 2))) * 0.002
    before = np.concatenate([[0.0], held[:-1]])
    paid = {action.ex: action.value for action in actions}
    out = np.array([paid.get(row, 0.0) for row in range(sessions.days.size)])
    opens = np.rint(index.opens * 10.0 + before - out + income)
    closes = np.rint(index.closes * 10.0 + held)
    high = np.maximum(np.rint(np.maximum(opens, closes) * (1.0 + reach[:, 0])), np.maximum(opens, closes))
    low = np.minimum(np.rint(np.minimum(opens, closes) / (1.0 + reach[:, 1])), np.minimum(opens, closes))
    volume = np.rint(2_000_000.0 * (1.0 + np.abs(draws.normal(sessions.days.size)) * 0.4)) * 100.0
    fund = Fund(np.stack([opens, high, low, closes], axis=1), volume, actions)
    place = sum(
        first == 0 and instrument.symbol < FUND
        for first, instrument in zip(universe.first, universe.instruments, strict=True)
    )
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


def fund_instrument(config: SyntheticConfig) -> Instrument:
    lot = {"ashare": 100.0, "futures": 100.0}.get(config.preset, 1.0)
    step = 1e-6 if config.preset == "crypto" else 1.0
    return Instrument(
        symbol=FUND,
        name=f"{INDEX} index fund",
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
    for k, (name, values) in enumerate(zip(FIELDS, (tape.open, tape.high, tape.low, tape.close), strict=False)):
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
