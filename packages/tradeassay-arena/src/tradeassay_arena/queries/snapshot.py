"""Compute the content of a season's pages from its journal, after its newest settlement."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from functools import cached_property
from itertools import chain
from typing import Literal, TypeVar, cast

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.metrics.intervals import rate_measure
from tradeassay.report.charts import Equity
from tradeassay_arena import standings as st
from tradeassay_arena.benchmarks.ama import ComparedSetting, compare_with, published
from tradeassay_arena.queries.decisions import (
    DecisionLine,
    PriceNow,
    Shown,
    holdings,
    newest_prices,
)
from tradeassay_arena.queries.seasons import (
    SeasonBadges,
    SeasonFacts,
    badges_of,
    facts_of,
    opened_season,
)
from tradeassay_arena.season import BASELINE, Season
from tradeassay_arena.state.store import Store
from tradeassay_bench.core.time import parse_day
from tradeassay_bench.report.curves import curve_chart, kept

Value = TypeVar("Value")
_SETTLED = ("_boards", "_charts", "behaviours", "first_day")
"""Results that a snapshot computes once, from settled decisions alone."""


class EntryTrade(msgspec.Struct, kw_only=True):
    """A position of an entry, from the session of its opening to the session of its closing.

    The closing session is None while the position is open. Money is in dollars. ``result`` is the
    profit after the fees of both trades.
    """

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
    """The trades of an entry in settled sessions.

    It has the newest trades, the number of all trades, their fees, and the share with a profit.
    ``value`` is the present value of the entry's accounts, and ``start`` their initial value.
    """

    newest: tuple[EntryTrade, ...]
    count: int
    fees: float
    won: Measure
    value: float
    start: float


class SeasonSnapshot:
    """The public view of a season. Each result is computed once.

    ``lines`` are its settled decisions. Two snapshots of one journal give equal results, so every
    page can be rebuilt from the journal. ``before`` is an older snapshot. If nothing was settled
    since then, its results are reused.
    """

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
            self.__dict__ |= {
                name: before.__dict__[name] for name in _SETTLED if name in before.__dict__
            }

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
        """The decisions that opened the present positions, by entry and asset."""
        return holdings(self.store, self.season, sealed=self.sealed)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the result of ``make``, computed once for the pages of every language."""
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
        """Return the accounts over time, best final value first and entries without a rank last.

        A live season keeps the order of its spec.
        """
        if asset not in self._charts:
            unranked = {row.entry for row in self.board(asset).rows if row.unranked is not None}
            self._charts[asset] = _equity_chart(self.season, self._of(asset), unranked)
        return self._charts[asset]

    @cached_property
    def behaviours(self) -> dict[str, st.Behaviour]:
        return {
            entry.id: st.behaviour(entry.id, self.lines.values())
            for entry in self.season.all_entries
        }

    @cached_property
    def first_day(self) -> dict[str, dict[str, str]]:
        return st.first_day(self.lines)

    def trades(self, entry: str) -> EntryTrades:
        """Return the trades of an entry over all assets, the newest trade first."""
        cash, mine = self.season.cash, [line for line in self.lines.values() if line.entry == entry]
        found = []
        for line in mine:
            found.extend(_trades(line, cash))
        found.sort(key=lambda one: (one.closed or "9", one.opened, one.asset), reverse=True)
        closed = [one for one in found if one.closed is not None]
        start = cash * (
            1 if self.season.rules.cross_asset else len(mine) or len(self.season.assets)
        )
        return EntryTrades(
            newest=tuple(found[:60]),  # The totals count all trades.
            count=len(found),
            fees=math.fsum(float(line.fees.sum()) for line in mine) * cash,
            won=rate_measure(
                sum(one.result > 0 for one in closed), len(closed), nothing="no trade is closed yet"
            ),
            value=start
            + math.fsum(float((line.earned * line.worth).sum()) for line in mine) * cash,
            start=start,
        )

    def cited(self) -> Shown:
        """Return published figures next to our results.

        A result is on the same asset if the season has it, and on all of the season's assets
        otherwise. It is comparable if no reason for a difference is known.
        """
        paper, symbols = published(), {asset.symbol for asset in self.season.assets}
        data: Literal["real", "synthetic"] = "real" if self.badges.data == "real" else "synthetic"
        figures = []
        for figure in paper.figure:
            board, ours = self.board(figure.asset if figure.asset in symbols else None), []
            for row in board.rows:
                if row.architecture != figure.architecture:
                    continue
                setting = ComparedSetting(
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
                ours.append(
                    {**shown, "measure": measure, "comparable": not reasons, "reasons": reasons}
                )
            figures.append({"figure": figure, "ours": ours})
        of = {name: getattr(paper, name) for name in ("source", "second_hand", "first", "last")}
        return {**of, "figures": figures}


def _equity_chart(season: Season, lines: st.Lines, unranked: Collection[str]) -> Equity:
    by_entry: dict[str, list[st.EntrySeries]] = {}
    for (entry, _), line in lines.items():
        by_entry.setdefault(entry, []).append(line)
    days = sorted(set(chain.from_iterable(line.sessions for line in lines.values())))
    paths = {}
    for entry, found in by_entry.items():
        own = [day for day in days if day >= season.joined.get(entry, "")]
        path = np.concatenate(([1.0], np.cumprod(1.0 + st.combined_returns(found, own))))
        paths[entry] = np.concatenate((np.full(len(days) - len(own), np.nan), path))
    # Beyond 500 points keep highs, lows and the deepest falls.
    places = kept(
        len(days) + 1, [np.nan_to_num(path, nan=1.0).tolist() for path in paths.values()], 500
    )
    order = sorted(paths, key=lambda entry: (entry in unranked, -float(paths[entry][-1])))
    if season.live:  # A live season has no ranks.
        order = [entry.id for entry in season.all_entries if entry.id in paths]
    drawn = [
        (entry, season.entry(entry).shown, entry == BASELINE, (paths[entry] - 1.0).tolist())
        for entry in order
    ]
    return curve_chart(days, places, drawn)


def _trades(line: st.EntrySeries, cash: float) -> list[EntryTrade]:
    """Return the trades on one asset. The fee of a reversal is split between both trades."""
    made: list[EntryTrade] = []
    gains, fees = (line.earned * line.worth * cash).tolist(), (line.fees * cash).tolist()
    rows = zip(
        line.sessions,
        line.before.tolist(),
        line.positions.tolist(),
        line.prices.tolist(),
        strict=True,
    )
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
        last.sessions, last.fees, last.result = (
            last.sessions + 1,
            last.fees + fee,
            last.result + gained,
        )
    return made


def board_of(db: str, season: str | None = None, wanted: st.Filter | None = None) -> st.Standings:
    """Return the standings of a season in a database. They always include the baseline.

    If ``season`` is None, the newest season is used. Raises :class:`UserError` for a missing
    database, an unknown season, or a filter without a match.
    """
    wanted = wanted or st.Filter()
    with opened_season(db, season) as (store, found):
        all_entries = found.all_entries
        for what, values, known in (
            ("entry", wanted.entries, {entry.id for entry in all_entries}),
            ("architecture", wanted.architectures, {entry.architecture for entry in all_entries}),
            ("model", wanted.models, {entry.model for entry in all_entries if entry.model}),
            ("asset", wanted.assets, {asset.symbol for asset in found.assets}),
        ):
            for value in values or ():
                if value not in known:
                    hint = f"one of {', '.join(sorted(known)[:12])}"
                    raise UserError(f"no {what} '{value[:80]}' in this season", hint=hint)
        first, last = (
            parse_day(day).isoformat() if day else None for day in (wanted.first, wanted.last)
        )
        if first and last and last < first:
            raise UserError("the period ends before it begins", hint="swap its two days")
        # Tokens and dollars are sums over the chosen sessions, so the database selects the period.
        lines = st.read_lines(store, found, st.Filter(assets=wanted.assets, first=first, last=last))
        taken = {entry.id for entry in all_entries if wanted.takes(entry)} | {BASELINE}
        return st.standings(found, {key: line for key, line in lines.items() if key[0] in taken})
