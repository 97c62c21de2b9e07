"""Generate a synthetic world: its index and index fund, its panel, and its answer key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tradeassay.core.arrays import Bools, Days, Floats
from tradeassay.factors import FACTOR_NAMES
from tradeassay_bench.core.time import DAY, MINUTE, parse_day
from tradeassay_bench.core.view import FIELDS, CorporateAction, Field, Instrument
from tradeassay_bench.data.calendars import Sessions, sessions_from
from tradeassay_bench.data.source import (
    Listing,
    Membership,
    Panel,
    SourceConfig,
    action_known_at,
    sources,
)
from tradeassay_bench.data.synthetic.engine import (
    CorporateMove,
    Drivers,
    WorldTape,
    make_decline,
    make_market,
    make_schedule,
    planted,
    run_days,
)
from tradeassay_bench.data.synthetic.events import (
    make_events,
    make_fundamentals,
    make_reports,
    planted_returns,
    write_news,
)
from tradeassay_bench.data.synthetic.key import PlantedSkill, World, make_key, panel_frame
from tradeassay_bench.data.synthetic.minutes import make_minutes
from tradeassay_bench.data.synthetic.universe import (
    Draws,
    Market,
    SyntheticConfig,
    WorldNames,
    make_universe,
    preset,
)

INDEX = "IDX"
FUND = "IDXF"
START = 1000.0
_SEASON = 40
"""Number of sessions after its listing before a name may join the index."""
_NOTICE = 3
FUND_UNIT = 100


@dataclass(frozen=True, slots=True)
class Index:
    """The members of the index, shape (rows, names), and its levels at each open and close."""

    member: Bools
    opens: Floats
    closes: Floats
    memberships: tuple[Membership, ...]


def make_index(
    config: SyntheticConfig, universe: WorldNames, tape: WorldTape, days: Days, burn: int
) -> Index:
    """Return the index. Its members are chosen at fixed reviews, and its levels are chained."""
    finest = int(universe.unit.max())
    worth = tape.shares * tape.last.astype(np.int64) * (finest // universe.unit)
    size = config.index_members
    member = np.zeros((days.size, universe.size), dtype=np.bool_)
    # Reviews take place in the first session of June and December, and of every quarter for crypto.
    months = days.astype("datetime64[M]").astype(np.int64)
    every, phase = (3, 0) if config.preset == "crypto" else (6, 5)
    turns = (np.flatnonzero(np.diff(months)) + 1).tolist()
    edges = [0, *(row for row in turns if months[row] % 12 % every == phase % every), days.size]
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
    found = []
    for column in range(member.shape[1]):
        steps = np.flatnonzero(np.diff(np.concatenate([[0], member[:, column].view(np.int8), [0]])))
        for start, stop in steps.reshape(-1, 2).tolist():
            symbol, end = (
                universe.instruments[column].symbol,
                None if stop == days.size else str(days[stop - 1]),
            )
            found.append(Membership(index=INDEX, symbol=symbol, start=str(days[start]), end=end))
    dated = tuple(sorted(found, key=lambda m: (m.start, m.symbol)))
    return Index(member, opens, closes, dated)


def _review(ranked: list[int], inside: set[int], size: int) -> set[int]:
    """Return the members after a review, at least one of which is new.

    Members that rank within 110 % of the size stay. The highest-ranked other names take the
    remaining places.
    """
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


def _income(tape: WorldTape, index: Index, burn: int) -> Floats:
    """Return the members' dividends per row, in hundredths per share of the fund."""
    level = np.concatenate([[START], index.closes[:-1]])
    income = np.zeros(index.closes.size)
    for action in tape.actions:
        row = action.ex - burn
        if action.kind != "dividend" or row < 0 or not index.member[row, action.column]:
            continue
        worth = (tape.shares[action.ex - 1] * tape.last[action.ex - 1].astype(np.int64))[
            index.member[row]
        ].sum()
        part = float(tape.shares[action.ex - 1, action.column]) * action.value / float(worth)
        income[row] += level[row] * 10.0 * part
    return income


def _fund(
    config: SyntheticConfig, index: Index, income: Floats, days: Days
) -> tuple[Floats, Floats, list[CorporateMove]]:
    """Return the index fund's prices, volume and payouts.

    Prices are in hundredths with shape (rows, 4): open, high, low, close. The fund pays out the
    dividends that it collects, and announces payouts three sessions ahead.
    """
    months = days.astype("datetime64[M]").astype(np.int64)
    turns = {int(row) + 10 for row in np.flatnonzero(np.diff(months)) + 1 if months[row] % 3 == 2}
    held, out, moves = np.zeros(income.size), np.zeros(income.size), []
    cash, announced = 0.0, 0.0
    for row, more in enumerate(income.tolist()):
        if row + _NOTICE in turns and row + _NOTICE < income.size:
            announced = float(np.floor(cash))
        if row in turns and announced >= 1.0:
            moves.append(CorporateMove(-1, "dividend", row - _NOTICE, row, announced))
            out[row] = announced
            cash, announced = cash - announced, 0.0
        cash += more
        held[row] = cash
    draws = Draws(config.seed, "fund")
    reach = np.abs(draws.normal((days.size, 2))) * 0.002
    opens = np.rint(index.opens * 10.0 + np.concatenate([[0.0], held[:-1]]) - out + income)
    closes = np.rint(index.closes * 10.0 + held)
    top, bottom = np.maximum(opens, closes), np.minimum(opens, closes)
    high = np.maximum(np.rint(top * (1.0 + reach[:, 0])), top)
    low = np.minimum(np.rint(bottom / (1.0 + reach[:, 1])), bottom)
    volume = np.rint(2_000_000.0 * (1.0 + np.abs(draws.normal(days.size)) * 0.4)) * 100.0
    return np.stack([opens, high, low, closes], axis=1), volume, moves


BURN = 253
"""Number of hidden sessions before the first visible session. Factors need them as history."""


def generate(config: SyntheticConfig) -> World:
    """Return the world of a configuration.

    Raises :class:`~tradeassay_bench.core.errors.DataError` for days on which the calendar is
    unknown.
    """
    sessions = sessions_from(config.calendar, parse_day(config.first), config.sessions)
    universe = make_universe(config)
    reports = make_reports(config, universe, sessions)
    events = make_events(config, universe, sessions, reports)
    rows = BURN + config.sessions
    drivers = Drivers(
        market=make_market(config, BURN),
        styles=planted(config, "styles", rows),
        sectors=planted(config, "sectors", rows),
        planted=np.stack(planted_returns(config, events, rows, BURN, universe.size)),
        decline=make_decline(config, universe, BURN),
    )
    tape = run_days(config, universe, drivers, make_schedule(config, universe, BURN), BURN)
    index = make_index(config, universe, tape, sessions.days, BURN)
    prices, fund_volume, payouts = _fund(config, index, _income(tape, index, BURN), sessions.days)
    fund_place = sum(
        first == 0 and instrument.symbol < FUND
        for first, instrument in zip(universe.first, universe.instruments, strict=True)
    )
    days, end = sessions.days, config.sessions - 1
    listings = [
        Listing(
            instrument=instrument,
            listed=str(days[first]),
            delisted=None if last == end else str(days[last]),
        )
        for instrument, first, last in zip(
            universe.instruments, universe.first, universe.last, strict=True
        )
    ]
    step, lots = (1e-6 if config.preset == "crypto" else 1.0), {"ashare": 100.0, "crypto": 1e-6}
    told: dict[str, Any] = {
        "lot": lots.get(config.preset, 1.0),
        "step": step,
        "tick": 1.0 / FUND_UNIT,
    }
    fund = Instrument(
        symbol=FUND, name=f"{INDEX} index fund", kind="index", currency=config.currency, **told
    )
    listings.insert(fund_place, Listing(instrument=fund, listed=str(days[0])))
    at = np.arange(config.sessions)[:, None]
    suspended = (at >= universe.first) & (at <= universe.last) & ~tape.trading[BURN:]
    actions = [
        _action(
            sessions,
            universe.instruments[one.column].symbol,
            one,
            BURN,
            float(universe.unit[one.column]),
        )
        for one in tape.actions
        if one.ex >= BURN
    ]
    actions += [_action(sessions, FUND, one, 0, float(FUND_UNIT)) for one in payouts]
    items = write_news(config, universe.instruments, events)
    panel = Panel(
        **panel_frame(config, sessions),
        listings=tuple(listings),
        bars=_bars(universe, tape, prices, fund_volume, fund_place),
        suspended=np.insert(suspended, fund_place, False, axis=1),
        minutes=make_minutes(config, universe, tape, sessions, BURN),
        actions=tuple(sorted(actions, key=lambda a: (a.ex_date, a.symbol, a.kind))),
        memberships=index.memberships,
        indices={INDEX: np.rint(index.closes * 100.0) / 100.0},
        fundamentals=make_fundamentals(config, universe, tape, reports, BURN),
        news=items,
    )
    skills = [
        PlantedSkill(name=f"style-{name}", knows=f"that exposure to {name} is paid", edge=premium)
        for name, premium in zip(FACTOR_NAMES, config.styles.premia, strict=True)
    ]
    knows = "each name's own drift (spread per year)"
    skills.append(PlantedSkill(name="alpha", knows=knows, edge=config.noise.alpha))
    drawn = (tape.exposures, tape.residual)
    return World(
        panel,
        make_key(config, universe, drivers, drawn, (events, items), sessions.days, tuple(skills)),
    )


def _bars(
    universe: WorldNames, tape: WorldTape, prices: Floats, volume: Floats, place: int
) -> Mapping[Field, Floats]:
    """Return the bars of all names, with the fund's bars inserted in its column."""
    unit = universe.unit.astype(np.float64)
    bars: dict[Field, Floats] = {}
    for k, (name, values) in enumerate(
        zip(FIELDS, (tape.open, tape.high, tape.low, tape.close), strict=False)
    ):
        bars[name] = np.insert(values[BURN:] / unit, place, prices[:, k] / FUND_UNIT, axis=1)
    paid = (prices[:, 0] + prices[:, 1] + prices[:, 2] + prices[:, 3]) * 0.25 / FUND_UNIT
    bars["volume"] = np.insert(tape.volume[BURN:], place, volume, axis=1)
    bars["amount"] = np.insert(
        tape.amount[BURN:], place, np.rint(paid * volume * 100.0) / 100.0, axis=1
    )
    return bars


def _action(
    sessions: Sessions, symbol: str, move: CorporateMove, burn: int, unit: float
) -> CorporateAction:
    """Return the corporate action of a generated move."""
    announced, ex = move.announced - burn, move.ex - burn
    told = int(sessions.open_time[0]) - DAY
    if announced >= 0:
        told = int(sessions.close_time[announced]) + 30 * MINUTE
    return CorporateAction(
        symbol=symbol,
        kind=move.kind,
        ex_date=str(sessions.days[ex]),
        known_at=min(told, action_known_at(int(sessions.open_time[ex]))),
        value=move.value / unit if move.kind == "dividend" else move.value,
    )


class SyntheticQuery(SourceConfig, frozen=True, kw_only=True):
    """The preset and seed of a world.

    Sizes that are None are taken from the preset. ``first`` is an ISO day.
    """

    preset: Market = "us"
    seed: int = 0
    names: int | None = None
    sessions: int | None = None
    first: str | None = None
    minutes: int | None = None


@sources.register("synthetic")
class SyntheticSource:
    """A source of generated markets. The same query returns the same bytes on every machine."""

    Config: ClassVar[type[SourceConfig]] = SyntheticQuery
    summary: ClassVar[str] = "seeded worlds with known truth: us, ashare, crypto"
    extra: ClassVar[str | None] = None

    def __init__(self, config: SyntheticQuery) -> None:
        self.config = config

    def load(self) -> Panel:
        """Return the generated panel. Raises :class:`UserError` for invalid sizes."""
        query = self.config
        sizes: dict[str, Any] = {}
        for name in ("names", "sessions", "first", "minutes"):
            value = getattr(query, name)
            if value is not None:
                sizes[name] = value
        return generate(preset(query.preset, seed=query.seed, **sizes)).panel
