"""A season as it stood after one settlement: the lines, and what is computed from them, each once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, RLock
from typing import TypeVar, cast

import numpy as np

from tradeassay.arena.reading.kept import KeptView, keep_view
from tradeassay.arena.reading.seasons import Lines, Selection
from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.standings import (
    Behaviour,
    BoardConfig,
    EntrySeries,
    LuckBand,
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
from tradeassay.arena.state.store import Store
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
"""How many answers of one view are kept: readers choose what to select, not how much memory that takes."""


class SeasonView:
    """Answers about a season at ``version``, the number of its newest settlement. Safe to share among threads.

    Only periods are read from the database again; every other selection is a choice among the lines at hand.
    """

    def __init__(self, store: Store, season: Season, version: int, config: BoardConfig | None = None) -> None:
        self.season = season
        self.version = version
        self.cost_s = 0.0
        self._store = store
        self._config = config or BoardConfig()
        self._made: OrderedDict[Hashable, object] = OrderedDict()
        self._making: dict[Hashable, RLock] = {}
        self._lock = Lock()

    @classmethod
    def of_kept(
        cls, store: Store, season: Season, kept: KeptView, config: BoardConfig | None = None
    ) -> SeasonView:
        """Return the view that was kept on disk."""
        made = cls(store, season, kept.version, config)
        made.cost_s = kept.cost_s
        everything = Selection()
        made._made[("board", everything)] = kept.board
        made._made[("equity", everything)] = kept.equity
        made._made["first-day"] = kept.first_day
        for one in kept.behaviours:
            made._made[("behaviour", one.entry, everything)] = one
        return made

    @classmethod
    def of_nothing(
        cls, store: Store, season: Season, cost_s: float, config: BoardConfig | None = None
    ) -> SeasonView:
        """Return the view before the first settlement; ``cost_s`` is what a newer one is expected to cost."""
        made = cls(store, season, 0, config)
        made.cost_s = cost_s
        made._made["lines", None, None] = {}
        return made

    def keep(self) -> None:
        """Keep what the first page shows for the next start."""
        everything = Selection()
        board = self.board(everything)
        behaviours = tuple(self.behaviour(row.entry, everything) for row in board.rows)
        shown, first = self.equity(everything), self.first_day()
        kept = KeptView(
            version=self.version,
            config=self._config,
            cost_s=self.cost_s,
            board=board,
            equity=shown,
            behaviours=behaviours,
            first_day=first,
        )
        keep_view(self._store, self.season.id, kept)

    def lines(self, wanted: Selection) -> Lines:
        """Return the selected lines, with the baseline's."""
        key = ("lines", wanted.first, wanted.last)
        every = self.once(key, lambda: read_lines(self._store, self.season, wanted.period))
        return wanted.pick(self.season, every)

    def board(self, wanted: Selection) -> Standings:
        """Return the standings."""
        return self.once(("board", wanted), lambda: standings(self.season, self.lines(wanted), self._config))

    def equity(self, wanted: Selection) -> Equity:
        """Return the accounts over time, with the luck band."""
        return self.once(("equity", wanted), lambda: equity(self.season, self.lines(wanted)))

    def split(self, wanted: Selection) -> VarianceSplit:
        """Return what the variance of returns is made of."""
        return self.once(("split", wanted), lambda: split_variance(self.season, self.lines(wanted)))

    def behaviour(self, entry: str, wanted: Selection) -> Behaviour:
        """Return how an entry trades."""
        return self.once(("behaviour", entry, wanted), lambda: behaviour(entry, self.lines(wanted).values()))

    def luck(self, asset: str) -> LuckBand | None:
        """Return where the entries lie among random traders of an asset; None before its first settled session."""
        fee = self.season.money.fee_bp
        return self.once(
            ("luck", asset), lambda: luck_band(self.lines(Selection(assets=(asset,))), asset, fee, draws=1000)
        )

    def first_day(self) -> dict[str, dict[str, str]]:
        """Return what every entry did on each asset's first counted session."""
        return self.once("first-day", lambda: first_day(self.lines(Selection())))

    def warm_like(self, other: SeasonView, most: int = 12) -> None:
        """Compute what readers of another view asked for last, so that nobody waits when this one replaces it."""
        with other._lock:
            asked = [key for key in other._made if isinstance(key, tuple)][-most:]
        for key in asked:
            if key[0] == "board":
                self.board(key[1])
            elif key[0] == "equity":
                self.equity(key[1])
            elif key[0] == "split":
                self.split(key[1])
            elif key[0] == "luck":
                self.luck(key[1])

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what ``make`` gives, made once for this view; for what is derived from its answers."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return cast(Value, self._made[key])
            making = self._making.setdefault(key, RLock())
        with making:  # those who ask for the same wait for the first, others go on
            with self._lock:
                if key in self._made:
                    return cast(Value, self._made[key])
            began = time.perf_counter()
            value = make()
            with self._lock:
                self.cost_s += time.perf_counter() - began
                self._made[key] = value
                self._making.pop(key, None)
                while len(self._made) > KEPT:
                    self._made.popitem(last=False)
            return value
