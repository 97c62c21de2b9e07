"""A season after its newest settlement: everything its pages show, computed from the journal and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from functools import cached_property
from typing import Literal, TypeVar, cast

import msgspec
import numpy as np

from tradeassay.arena import standings as st
from tradeassay.arena.queries.decisions import DecisionLine, PriceNow, Shown, holdings, newest_prices
from tradeassay.arena.queries.seasons import SeasonBadges, SeasonFacts, badges_of, facts_of, opened_season
from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.state.store import Store
from tradeassay.benchmarks.ama import compare_with, published
from tradeassay.benchmarks.ama.published import Setting
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, plain_sum
from tradeassay.core.time import parse_day
from tradeassay.metrics.intervals import rate_measure
from tradeassay.report.charts import Band, Equity, curve_chart, kept, picked

Value = TypeVar("Value")
_SETTLED = ("_boards", "_charts", "behaviours", "split", "luck", "first_day")
"""What a snapshot computes from settled decisions alone, and computes once."""


class EntryTrade(msgspec.Struct, kw_only=True):
    """A position from the session it was taken in to the one it was left in (None: it is still held).

    Money is in dollars. ``result`` is what it made after the fees of both its ends."""

    asset: str
    side: int
    opened: str
    closed: str | None = None
    price_in: float
    price_out: float | None = None
    sessions: int = 0
    fees: float = 0.0
    result: float = 0.0


class EntryTrades(msgspec.Struct, frozen=True, kw_only=True):
    """All trades of an entry in settled sessions: the newest, their number, fees, and the share that paid.

    ``value`` is what its accounts are worth, ``start`` what they began with."""

    newest: tuple[EntryTrade, ...]
    count: int
    fees: float
    won: Measure
    value: float
    start: float


class SeasonSnapshot:
    """A season as everybody may see it, each answer computed once. ``lines`` are its settled decisions.

    Two snapshots of one journal give equal answers, so whoever has the journal can make every page again.
    ``before`` is an older one: where nothing was settled since, what was computed from its lines is taken over."""

    def __init__(
        self,
        store: Store,
        season: Season,
        lines: st.Lines | None = None,
        config: st.BoardConfig | None = None,
        *,
        before: SeasonSnapshot | None = None,
    ) -> None:
        self.store, self.season = store, season
        self.lines = st.read_lines(store, season) if lines is None else lines
        self.badges: SeasonBadges = badges_of(season)
        self._config = config or st.BoardConfig()
        self._read: dict[Hashable, object] = {}
        self._boards: dict[str | None, st.Standings] = {}
        self._charts: dict[str | None, Equity] = {}
        if before is not None and before.lines is self.lines:
            self.__dict__ |= {name: before.__dict__[name] for name in _SETTLED if name in before.__dict__}

    @property
    def sealed(self) -> bool:
        return self.badges.sealed

    @cached_property
    def facts(self) -> SeasonFacts:
        return facts_of(self.store, self.season, self.badges)

    @cached_property
    def prices(self) -> tuple[PriceNow, ...]:
        return newest_prices(self.store, self.season)

    @cached_property
    def holdings(self) -> dict[str, dict[str, DecisionLine]]:
        """What everybody holds: entry -> asset -> the decision that took the position."""
        return holdings(self.store, self.season, sealed=self.sealed)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what ``make`` gives, made once: every language's pages are made from the same answers."""
        if key not in self._read:
            self._read[key] = make()
        return cast(Value, self._read[key])

    def _of(self, asset: str | None) -> st.Lines:
        return {key: line for key, line in self.lines.items() if asset in (None, key[1])}

    def board(self, asset: str | None = None) -> st.Standings:
        if asset not in self._boards:
            self._boards[asset] = st.standings(self.season, self._of(asset), self._config)
        return self._boards[asset]

    def equity(self, asset: str | None = None) -> Equity:
        """Return the accounts over time, with the luck band behind them: the best at the end first and those
        without a rank last, or in a live season in the order of its spec."""
        if asset not in self._charts:
            unranked = {row.entry for row in self.board(asset).rows if row.unranked is not None}
            self._charts[asset] = _equity_chart(self.season, self._of(asset), unranked)
        return self._charts[asset]

    @cached_property
    def behaviours(self) -> dict[str, st.Behaviour]:
        return {entry.id: st.behaviour(entry.id, self.lines.values()) for entry in self.season.everyone}

    @cached_property
    def split(self) -> st.VarianceSplit:
        return st.split_variance(self.season, self.lines)

    @cached_property
    def luck(self) -> dict[str, dict[str, Measure]]:
        if self.season.live:
            return {}
        return {
            asset.symbol: st.luck_percentiles(self.lines, asset.symbol, self.season.fee_on)
            for asset in self.season.assets
        }

    @cached_property
    def first_day(self) -> dict[str, dict[str, str]]:
        return st.first_day(self.lines)

    def trades(self, entry: str) -> EntryTrades:
        cash, mine = self.season.cash, [line for line in self.lines.values() if line.entry == entry]
        found = [trade for line in mine for trade in _trades(line, cash)]
        found.sort(key=lambda one: (one.closed or "9", one.opened, one.asset), reverse=True)
        closed = [one for one in found if one.closed is not None]
        start = cash * (1 if self.season.rules.cross_asset else len(mine) or len(self.season.assets))
        return EntryTrades(
            newest=tuple(found[:60]),  # the figures count all of them
            count=len(found),
            fees=plain_sum(float(line.fees.sum()) for line in mine) * cash,
            won=rate_measure(sum(one.result > 0 for one in closed), len(closed), nothing="no trade is closed yet"),
            value=start + plain_sum(float((line.earned * line.worth).sum()) for line in mine) * cash,
            start=start,
        )

    def cited(self) -> Shown:
        """Return the published figures with ours: on the same asset where we have it, else on all of ours. One of
        ours is comparable where no reason speaks against it."""
        paper, symbols = published(), {asset.symbol for asset in self.season.assets}
        data: Literal["real", "synthetic"] = "real" if self.badges.data == "real" else "synthetic"
        figures = []
        for figure in paper.figure:
            board, ours = self.board(figure.asset if figure.asset in symbols else None), []
            for row in board.rows:
                if row.architecture != figure.architecture:
                    continue
                setting = Setting(
                    data=data,
                    convention=self.season.convention,
                    first=board.first or "",
                    last=board.last or "",
                    architecture=row.architecture,
                    model=row.model,
                    asset=",".join(row.assets),
                )
                reasons = compare_with(figure, setting)
                shown = {"entry": row.entry, "label": row.label, "assets": row.assets}
                measure = row.measures[figure.measure]
                ours.append({**shown, "measure": measure, "comparable": not reasons, "reasons": reasons})
            figures.append({"figure": figure, "ours": ours})
        of = {name: getattr(paper, name) for name in ("source", "second_hand", "first", "last")}
        return {**of, "figures": figures}


def _equity_chart(season: Season, lines: st.Lines, unranked: Collection[str]) -> Equity:
    by_entry: dict[str, list[st.EntrySeries]] = {}
    for (entry, _), line in lines.items():
        by_entry.setdefault(entry, []).append(line)
    days = sorted({day for line in lines.values() for day in line.sessions})
    paths = {}
    for entry, found in by_entry.items():
        own = [day for day in days if day >= season.joined.get(entry, "")]
        path = np.concatenate(([1.0], np.cumprod(1.0 + st.account(found, own))))
        paths[entry] = np.concatenate((np.full(len(days) - len(own), np.nan), path))
    # Of more than 500 points highs, lows and deepest falls stay.
    places = kept(len(days) + 1, [np.nan_to_num(path, nan=1.0).tolist() for path in paths.values()], 500)
    order = sorted(paths, key=lambda entry: (entry in unranked, -float(paths[entry][-1])))
    if season.live:  # nobody is first
        order = [entry.id for entry in season.everyone if entry.id in paths]
    drawn = [
        (entry, season.entry(entry).shown, entry == BASELINE, (paths[entry] - 1.0).tolist()) for entry in order
    ]
    random, band = st.account_band(lines, season.fee_on) if days else None, None
    if random is not None and list(random[0]) == days:
        low, middle, high = (picked((row - 1.0).tolist(), places) for row in random[1])
        band = Band(low=low, middle=middle, high=high)
    return curve_chart(days, places, drawn, band)


def _trades(line: st.EntrySeries, cash: float) -> list[EntryTrade]:
    """Return the trades on one asset. A fee that turns a position around is shared by both sides."""
    made: list[EntryTrade] = []
    gains, fees = (line.earned * line.worth * cash).tolist(), (line.fees * cash).tolist()
    rows = zip(line.sessions, line.before.tolist(), line.positions.tolist(), line.prices.tolist(), strict=True)
    for (session, before, after, price), gained, fee in zip(rows, gains, fees, strict=True):
        last = made[-1] if made and made[-1].closed is None else None
        if before and before != after and last is not None:
            left = fee * abs(before) / (abs(before) + abs(after))
            last.closed, last.price_out = session, price
            last.fees, last.result = last.fees + left, last.result - left
            fee, gained, last = fee - left, gained + left, None
        if not after:
            continue
        if before != after or last is None:
            last = EntryTrade(asset=line.asset, side=after, opened=session, price_in=price)
            made.append(last)
        last.sessions, last.fees, last.result = last.sessions + 1, last.fees + fee, last.result + gained
    return made


def board_of(db: str, season: str | None = None, wanted: st.Filter | None = None) -> st.Standings:
    """Return the standings of a season (None: the newest) in a database; the baseline is always among them.

    Raises :class:`UserError` for a missing database, an unknown season, or a filter that does not fit."""
    wanted = wanted or st.Filter()
    with opened_season(db, season) as (store, found):
        everyone = found.everyone
        for what, values, known in (
            ("entry", wanted.entries, {entry.id for entry in everyone}),
            ("architecture", wanted.architectures, {entry.architecture for entry in everyone}),
            ("model", wanted.models, {entry.model for entry in everyone if entry.model}),
            ("asset", wanted.assets, {asset.symbol for asset in found.assets}),
        ):
            for value in values or ():
                if value not in known:
                    hint = f"one of {', '.join(sorted(known)[:12])}"
                    raise UserError(f"no {what} '{value[:80]}' in this season", hint=hint)
        first, last = (parse_day(day).isoformat() if day else None for day in (wanted.first, wanted.last))
        if first and last and last < first:
            raise UserError("the period ends before it begins", hint="swap its two days")
        # Tokens and dollars are sums over the sessions asked for, so the period is the database's to choose.
        lines = st.read_lines(store, found, st.Filter(assets=wanted.assets, first=first, last=last))
        taken = {entry.id for entry in everyone if wanted.takes(entry)} | {BASELINE}
        return st.standings(found, {key: line for key, line in lines.items() if key[0] in taken})
