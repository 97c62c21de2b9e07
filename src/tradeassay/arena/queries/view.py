"""A season as it stood after one settlement: the lines, and what is computed from them, each once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, RLock
from typing import TypeVar, cast

import msgspec
import numpy as np

from tradeassay.arena.queries.cache import KeptSelection, KeptView, keep_view
from tradeassay.arena.queries.seasons import Selection
from tradeassay.arena.queries.trades import EntryTrades, entry_trades
from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.standings import (
    Behaviour,
    BoardConfig,
    EntrySeries,
    LineBook,
    Lines,
    Standings,
    VarianceSplit,
    account,
    account_band,
    behaviour,
    first_day,
    luck_band,
    read_lines,
    split_variance,
    standings,
)
from tradeassay.arena.standings.board import Scores
from tradeassay.arena.state.store import Store
from tradeassay.core.measure import Measure
from tradeassay.core.view import Floats
from tradeassay.report.charts import Band, Equity, curve_chart, kept, picked

POINTS = 500
"""More points per line than this are thinned out; highs, lows and deepest falls stay."""


def equity(season: Season, lines: Lines) -> Equity:
    """Return the accounts of the lines' entries, the best at the end first, and the luck band behind them."""
    by_entry: dict[str, list[EntrySeries]] = {}
    for (entry, _), line in lines.items():
        by_entry.setdefault(entry, []).append(line)
    days = sorted({day for line in lines.values() for day in line.sessions})
    paths = {entry: _growth(account(found, days)) for entry, found in by_entry.items()} if days else {}
    places = kept(len(days) + 1, [path.tolist() for path in paths.values()], POINTS)
    order = sorted(paths, key=lambda entry: -float(paths[entry][-1]))
    drawn = [
        (entry, season.entry(entry).shown, entry == BASELINE, (paths[entry] - 1.0).tolist()) for entry in order
    ]
    return curve_chart(days, places, drawn, _band(season, lines, days, places) if days else None)


def _band(season: Season, lines: Lines, days: list[str], places: list[int]) -> Band | None:
    found = account_band(lines, season.money.fee_bp)
    if found is None or list(found[0]) != days:
        return None
    low, middle, high = (picked((row - 1.0).tolist(), places) for row in found[1])
    return Band(low=low, middle=middle, high=high)


def _growth(earned: Floats) -> Floats:
    """Return the value of 1 over time, starting before the first day."""
    return np.asarray(np.concatenate(([1.0], np.cumprod(1.0 + earned))))


Value = TypeVar("Value")
KEPT = 96
"""How many answers about selections a view keeps: readers choose what to select, not how much memory it takes."""

COSTLY_S = 2.0
"""Standings that took less than this are made again when somebody asks."""

MOST_SINGLE = 12
"""Of how many assets, and architectures, the standings are kept one by one."""

_EVERYTHING = Selection()


def _one(asset: str | None, architecture: str | None) -> Selection:
    return Selection(
        assets=() if asset is None else (asset,), architectures=() if architecture is None else (architecture,)
    )


class SeasonView:
    """Answers about a season at ``version``, the number of its newest settlement. Safe to share among threads.

    Only periods are read from the database again; every other selection is a choice among the lines at hand, which
    are those of the view before and what was settled since (``book``).
    """

    def __init__(
        self, store: Store, season: Season, version: int, config: BoardConfig | None = None,
        book: LineBook | None = None,
    ) -> None:  # fmt: skip
        self.season = season
        self.version = version
        self.cost_s = 0.0
        self._store = store
        self._book = book or LineBook(store, season)
        self._config = config or BoardConfig()
        self._pinned: dict[Hashable, object] = {}
        self._scores: dict[Hashable, Scores] = {}
        self._made: OrderedDict[Hashable, object] = OrderedDict()
        self._making: dict[Hashable, RLock] = {}
        self._lock = Lock()

    def next(self, version: int) -> SeasonView:
        """Return a view of a later settlement."""
        return SeasonView(self._store, self.season, version, self._config, self._book)

    def recall(self, kept: KeptView) -> None:
        """Take over what was kept on disk."""
        self.version, self.cost_s = kept.version, kept.cost_s
        self._pinned[("board", _EVERYTHING)] = kept.board
        self._pinned[("equity", _EVERYTHING)] = kept.equity
        self._pinned["first-day"] = kept.first_day
        for one in kept.behaviours:
            self._pinned[("behaviour", one.entry, _EVERYTHING)] = one
        for asset, percentiles in kept.luck.items():
            self._pinned[("luck", asset)] = percentiles
        for entry, trades in kept.trades.items():
            self._pinned[("trades", entry)] = trades
        if kept.split is not None:
            self._pinned[("split", _EVERYTHING)] = kept.split
        for some in kept.selections:
            wanted = _one(some.asset, some.architecture)
            self._pinned[("board", wanted)] = some.board
            self._pinned[("equity", wanted)] = some.equity
            for one in some.behaviours:
                self._pinned[("behaviour", one.entry, wanted)] = one

    def begin_empty(self, cost_s: float) -> None:
        """Be the view before the first settlement; ``cost_s`` is what a newer one is expected to cost."""
        self.version, self.cost_s = 0, cost_s
        self._pinned["lines", _EVERYTHING] = {}

    def keep(self, *, whole: bool = False) -> None:
        """Keep what the pages of the season and of its entries show for the next start.

        The ``whole`` is also what they show of every asset and architecture, where that is worth it.
        """
        board = self.board(_EVERYTHING)
        kept = KeptView(
            version=self.version,
            config=self._config,
            cost_s=self.cost_s,
            board=board,
            equity=self.equity(_EVERYTHING),
            behaviours=tuple(self.behaviour(row.entry, _EVERYTHING) for row in board.rows),
            first_day=self.first_day(),
            luck={asset.symbol: self.luck(asset.symbol) for asset in self.season.assets},
            trades={row.entry: self.trades(row.entry) for row in board.rows},
        )
        keep_view(self._store, self.season.id, kept)
        if whole and self.cost_s > COSTLY_S:
            some = tuple(self._kept_selection(*which) for which in self._single())
            split = self.split(_EVERYTHING)
            keep_view(self._store, self.season.id, msgspec.structs.replace(kept, selections=some, split=split))

    def _single(self) -> list[tuple[str | None, str | None]]:
        """Return the selections of one asset or one architecture, where there are several and not too many."""
        assets = sorted(asset.symbol for asset in self.season.assets)
        kinds = sorted({entry.architecture for entry in self.season.entries})
        found: list[tuple[str | None, str | None]] = []
        found += [(asset, None) for asset in assets if 1 < len(assets) <= MOST_SINGLE]
        return found + [(None, kind) for kind in kinds if 1 < len(kinds) <= MOST_SINGLE]

    def _kept_selection(self, asset: str | None, architecture: str | None) -> KeptSelection:
        wanted = _one(asset, architecture)
        board = self.board(wanted)
        return KeptSelection(
            asset=asset,
            architecture=architecture,
            board=board,
            equity=self.equity(wanted),
            behaviours=tuple(self.behaviour(row.entry, wanted) for row in board.rows),
        )

    def lines(self, wanted: Selection) -> Lines:
        """Return the selected lines, with the baseline's."""
        if wanted.first is None and wanted.last is None:
            every = self.once(("lines", _EVERYTHING), self._book.lines)
        else:
            period = Selection(first=wanted.first, last=wanted.last)
            every = self.once(("lines", period), lambda: read_lines(self._store, self.season, wanted.period))
        return wanted.pick(self.season, every)

    def board(self, wanted: Selection) -> Standings:
        """Return the standings."""

        def made() -> Standings:
            if len(self._scores) > KEPT * len(self.season.everyone):
                self._scores.clear()
            return standings(self.season, self.lines(wanted), self._config, self._scores)

        return self.once(("board", wanted), made)

    def equity(self, wanted: Selection) -> Equity:
        """Return the accounts over time, with the luck band."""
        return self.once(("equity", wanted), lambda: equity(self.season, self.lines(wanted)))

    def split(self, wanted: Selection) -> VarianceSplit:
        """Return what the variance of returns is made of."""
        return self.once(("split", wanted), lambda: split_variance(self.season, self.lines(wanted)))

    def behaviour(self, entry: str, wanted: Selection) -> Behaviour:
        """Return how an entry trades."""
        return self.once(("behaviour", entry, wanted), lambda: behaviour(entry, self.lines(wanted).values()))

    def luck(self, asset: str) -> dict[str, Measure]:
        """Return where the entries lie among random traders of an asset; empty before anything is settled."""

        def made() -> dict[str, Measure]:
            band = luck_band(self.lines(Selection(assets=(asset,))), asset, self.season.money.fee_bp, draws=1000)
            return {} if band is None else band.percentiles

        return self.once(("luck", asset), made)

    def trades(self, entry: str) -> EntryTrades:
        """Return an entry's trades with fees and results, in settled sessions."""
        return self.once(("trades", entry), lambda: entry_trades(self.season, entry, self.lines(_EVERYTHING)))

    def first_day(self) -> dict[str, dict[str, str]]:
        """Return what every entry did on each asset's first counted session."""
        return self.once("first-day", lambda: first_day(self.lines(Selection())))

    def warm_like(self, other: SeasonView, most: int = 12) -> None:
        """Compute what readers of another view asked for last, so that nobody waits when this one replaces it."""
        with other._lock:
            asked = [key for key in (*other._pinned, *other._made) if isinstance(key, tuple)][-most:]
        made = {"board": self.board, "equity": self.equity, "split": self.split}
        for key in asked:
            if key[0] in made:
                made[key[0]](key[1])

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what ``make`` gives, made once for this view; for what is derived from its answers.

        What a reader selected may be forgotten again. Everything else is as much as the season has entries.
        """
        with self._lock:
            known = self._known(key)
            if known is not None:
                return cast(Value, known[0])
            making = self._making.setdefault(key, RLock())
        with making:  # those who ask for the same wait for the first, others go on
            with self._lock:
                known = self._known(key)
                if known is not None:
                    return cast(Value, known[0])
            began = time.perf_counter()
            value = make()
            with self._lock:
                self.cost_s += time.perf_counter() - began
                if _selected(key):
                    self._made[key] = value
                else:
                    self._pinned[key] = value
                self._making.pop(key, None)
                while len(self._made) > KEPT:
                    self._made.popitem(last=False)
            return value

    def _known(self, key: Hashable) -> tuple[object] | None:
        if key in self._pinned:
            return (self._pinned[key],)
        if key not in self._made:
            return None
        self._made.move_to_end(key)
        return (self._made[key],)


def _selected(key: Hashable) -> bool:
    """Return whether an answer is about a reader's own selection."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, Selection) and part != _EVERYTHING for part in parts)
