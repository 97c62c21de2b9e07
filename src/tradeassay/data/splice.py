"""One market with a movable present: true up to a moment, another future after it.

A leak test plays an agent once and moves the present along with it, so that every session is tested against a
future that is not the one it was played in. Views of a spliced snapshot behave like any other; whoever reaches
behind them, or keeps what lies ahead, gets the other future.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, TypeVar

import numpy as np

from tradeassay.core.errors import DataError
from tradeassay.core.time import Instant
from tradeassay.core.view import FIELDS, CorporateAction, Field, Floats, Ints
from tradeassay.data.snapshot import Moment, Snapshot
from tradeassay.data.store.read import History, TimedTable

T = TypeVar("T")
NEAR = 10
"""Sessions ahead that are written anew whenever the present moves."""
_PRICES: tuple[Field, ...] = ("open", "high", "low", "close")
_MIRROR: dict[Field, Field] = {"open": "open", "close": "close", "high": "low", "low": "high"}


class SplicedSnapshot(Snapshot):
    """``true`` up to the present, ``false`` after it; both have the same sessions and columns. The present is the
    end of the data until :meth:`move` is called. With ``bars`` the sessions just ahead are written anew at every
    move, as the mirror image of what happens, or (``noisy``) multiplied with noise. Raises :class:`DataError` for
    snapshots that do not fit together."""

    def __init__(self, true: Snapshot, false: Snapshot, *, bars: bool, noisy: bool, seed: int = 0) -> None:
        super().__init__(true.folder, true.manifest)
        one, other = self._history, History(false.folder, false.manifest)
        if one.fields["close"].shape != other.fields["close"].shape:
            raise DataError("two futures of different size", hint="rewrite the panel that is played")
        self._spliced = _Spliced(one, other, bars=bars, noisy=noisy, seed=seed)
        self._history = self._spliced

    def move(self, row: int, moment: Moment) -> None:
        self._spliced.move(row, moment, self._clocks[moment][row])


class _Spliced(History):
    """A history over two others. Everything a view reads is answered by whichever of them is due."""

    def __init__(self, true: History, false: History, *, bars: bool, noisy: bool, seed: int) -> None:
        self.__dict__.update(true.__dict__)
        self._true, self._false = true, false
        self._bars, self._noisy, self._seed = bars, noisy, seed
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.fields = {name: self._own(name, true.fields[name]) for name in FIELDS}
        self.prev_close = self._own("prev_close", true.prev_close)
        self.suspended = self._own("suspended", true.suspended)
        self.trading = self._own("trading", true.trading)
        self.levels = {name: self._own(f"level {name}", values) for name, values in true.levels.items()}
        self._sources = [
            (array, self._source(true, name), self._source(false, name)) for name, array in self._arrays.items()
        ]
        self._now = self.sessions.size
        self._clock: Instant = 1 << 62
        self._tables = (_SplicedTable(true.news, false.news), _SplicedTable(true.fundamentals, false.fundamentals))
        self.news, self.fundamentals = self._tables
        self.known_figures = self._known_figures  # type: ignore[assignment]  # what is known moves: nothing is cached
        self.minute_bars = self._minutes_now  # type: ignore[assignment]  # ditto
        self.symbols = self._symbols  # type: ignore[assignment]  # ditto
        self.instruments = self._instruments  # type: ignore[assignment]  # ditto

    def _own(self, name: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self._arrays[name] = values.copy()
        shown = self._arrays[name].view()
        shown.setflags(write=False)
        return shown

    def move(self, row: int, moment: Moment, clock: Instant) -> None:
        unknown = row + 1 if moment == "close" else row
        start = min(self._now, unknown)
        for array, true, false in self._sources:
            array[start:unknown] = true[start:unknown]
            if self._now >= self.sessions.size:
                array[unknown:] = false[unknown:]
            else:
                array[unknown : unknown + NEAR] = false[unknown : unknown + NEAR]
        if self._bars:
            self._write_near(unknown)
        if moment == "open":
            for name in ("open", "suspended", "trading"):
                self._arrays[name][row] = self._source(self._true, name)[row]
        self._now, self._clock = unknown, clock
        visible = self._true.visible[row]
        one, other = self._true, self._false
        self.every_instrument = one.every_instrument[:visible] + other.every_instrument[visible:]
        self.every_symbol = one.every_symbol[:visible] + other.every_symbol[visible:]
        self.last_rows: Ints = np.where(one.last_rows < row, one.last_rows, other.last_rows)
        self._splice_actions(row, clock)
        for table in self._tables:
            table.move(clock)

    def _source(self, history: History, name: str) -> np.ndarray[Any, Any]:
        if name.startswith("level "):
            return history.levels[name.removeprefix("level ")]
        fields: dict[str, np.ndarray[Any, Any]] = dict(history.fields.items())
        found: np.ndarray[Any, Any] = fields[name] if name in fields else getattr(history, name)
        return found

    def _write_near(self, start: int) -> None:
        """Write the sessions just ahead anew, from what really happens in them."""
        stop = min(start + NEAR, self.sessions.size)
        if start >= stop or start == 0:
            return
        rng = np.random.default_rng([self._seed, start])
        true = self._true.fields
        base = true["close"][start - 1]
        shape = true["close"][start:stop].shape
        noise = np.exp(rng.normal(0.0, 0.3 if self._noisy else 0.02, shape))
        for field in _PRICES:
            later = true[field][start:stop] if self._noisy else base * base / true[_MIRROR[field]][start:stop]
            self._arrays[field][start:stop] = np.where(np.isfinite(later), later, true[field][start:stop]) * noise
        for field in ("volume", "amount"):
            self._arrays[field][start:stop] = true[field][start:stop] * rng.uniform(0.2, 4.0, shape)
        before = np.concatenate([base[None], self._arrays["close"][start : stop - 1]])
        self._arrays["prev_close"][start:stop] = np.where(np.isfinite(before), before, np.nan)

    # -- listings and members ------------------------------------------------------------------------------------

    def gone_by(self, row: int) -> tuple[str, ...]:
        return self._true.gone_by(row) if row <= self._now else self._false.gone_by(row)

    def members_at(self, index: str, row: int) -> tuple[str, ...]:
        return (self._true if row <= self._now else self._false).members_at(index, row)

    # -- actions -------------------------------------------------------------------------------------------------

    def _splice_actions(self, row: int, clock: Instant) -> None:
        true, false = self._true, self._false
        known, told = bisect_right(true.action_times, clock), bisect_right(false.action_times, clock)
        self.actions: tuple[CorporateAction, ...] = true.actions[:known] + false.actions[told:]
        self.action_times = true.action_times[:known] + false.action_times[told:]

    def actions_of(self, row: int) -> tuple[CorporateAction, ...]:
        return (self._true if row <= self._now else self._false).actions_of(row)

    # -- figures and minutes -------------------------------------------------------------------------------------

    def _minutes_now(self, symbol: str) -> tuple[Ints, dict[Field, Floats]] | None:
        true, false = self._true.minute_bars(symbol), self._false.minute_bars(symbol)
        if true is None or false is None:
            return true
        before, after = true[0] <= self._clock, false[0] > self._clock
        times = np.concatenate([true[0][before], false[0][after]])
        columns = {name: np.concatenate([true[1][name][before], false[1][name][after]]) for name in true[1]}
        return times, columns


class _SplicedTable(TimedTable[T]):
    """Records that are true up to the present and false after it."""

    def __init__(self, true: TimedTable[T], false: TimedTable[T]) -> None:
        self._true: TimedTable[T] = true
        self._false: TimedTable[T] = false
        self.record = self._record  # type: ignore[assignment]  # what stands in a row moves, so nothing is cached
        self.move(1 << 62)

    def move(self, clock: Instant) -> None:
        self._clock = clock
        self._cut, self._skipped = self._true.up_to(clock), self._false.up_to(clock)

    def __len__(self) -> int:
        return self._cut + len(self._false) - self._skipped

    def up_to(self, clock: Instant) -> int:
        if clock <= self._clock:
            return self._true.up_to(clock)
        return self._cut + self._false.up_to(clock) - self._skipped

    def of_symbol(self, symbol: str, rows: range) -> list[int]:
        found = self._true.of_symbol(symbol, range(rows.start, min(rows.stop, self._cut)))
        if rows.stop > self._cut:
            shift = self._skipped - self._cut
            later = range(max(rows.start, self._cut) + shift, rows.stop + shift)
            found = [*found, *(row - shift for row in self._false.of_symbol(symbol, later))]
        return found

    def count_of_symbol(self, symbol: str, stop: int) -> int:
        return len(self.of_symbol(symbol, range(min(stop, len(self)))))

    def _record(self, row: int) -> T:
        return self._true.record(row) if row < self._cut else self._false.record(row - self._cut + self._skipped)
