"""Combine a true market up to a movable present with a false future after it.

A leak test runs an agent once and moves the present with the agent, so that every session is tested
against a false future. Views of a spliced snapshot behave like all other views. An agent that
bypasses the views and reads future data receives the false future.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, TypeVar

import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import DataError
from tradeassay_bench.core.time import Instant
from tradeassay_bench.core.view import FIELDS, CorporateAction, Field
from tradeassay_bench.data.snapshot import SessionPhase, Snapshot
from tradeassay_bench.data.store.read import History, TimedTable

T = TypeVar("T")
NEAR = 10
"""Number of future sessions that are rewritten whenever the present moves."""
_PRICES: tuple[Field, ...] = ("open", "high", "low", "close")
_MIRROR: dict[Field, Field] = {"open": "open", "close": "close", "high": "low", "low": "high"}


class SplicedSnapshot(Snapshot):
    """A snapshot that equals ``true`` up to the present and ``false`` after it.

    Raises :class:`DataError` unless both have the same sessions and columns. Until :meth:`move` is
    called, the present is the end of the data.

    With ``bars``, each move rewrites the next sessions. Their prices are then the mirror image of
    the true prices, or with ``noisy`` the true prices multiplied by noise.
    """

    def __init__(
        self, true: Snapshot, false: Snapshot, *, bars: bool, noisy: bool, seed: int = 0
    ) -> None:
        super().__init__(true.folder, true.manifest)
        true_history, false_history = self._history, History(false.folder, false.manifest)
        if true_history.fields["close"].shape != false_history.fields["close"].shape:
            raise DataError("the two futures differ in size", hint="rewrite the panel of the run")
        self._spliced = _Spliced(true_history, false_history, bars=bars, noisy=noisy, seed=seed)
        self._history = self._spliced

    def move(self, row: int, phase: SessionPhase) -> None:
        """Move the present to a phase of a session."""
        self._spliced.move(row, phase, self._clocks[phase][row])


class _Spliced(History):
    """A history that is true up to the present and false after it."""

    def __init__(
        self, true: History, false: History, *, bars: bool, noisy: bool, seed: int
    ) -> None:
        self.__dict__.update(true.__dict__)
        self._true, self._false = true, false
        self._bars, self._noisy, self._seed = bars, noisy, seed
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.fields = {name: self._own(name, true.fields[name]) for name in FIELDS}
        self.prev_close = self._own("prev_close", true.prev_close)
        self.suspended = self._own("suspended", true.suspended)
        self.trading = self._own("trading", true.trading)
        self.levels = {
            name: self._own(f"level {name}", values) for name, values in true.levels.items()
        }
        self._sources = [
            (array, self._source(true, name), self._source(false, name))
            for name, array in self._arrays.items()
        ]
        self._now = self.sessions.size
        self._clock: Instant = 1 << 62
        self._tables = (
            _SplicedTable(true.news, false.news),
            _SplicedTable(true.fundamentals, false.fundamentals),
        )
        self.news, self.fundamentals = self._tables
        # The base class caches these. Here their results change with every move.
        self.known_figures = self._known_figures  # type: ignore[assignment]  # not cached, see above
        self.minute_bars = self._minutes_now  # type: ignore[assignment]  # ditto
        self.symbols = self._symbols  # type: ignore[assignment]  # ditto
        self.instruments = self._instruments  # type: ignore[assignment]  # ditto

    def _own(self, name: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return a read-only view of a private copy of an array, which :meth:`move` rewrites."""
        self._arrays[name] = values.copy()
        read_only = self._arrays[name].view()
        read_only.setflags(write=False)
        return read_only

    def move(self, row: int, phase: SessionPhase, clock: Instant) -> None:
        """Rewrite the arrays so that the present is the given phase of a session."""
        unknown = row + 1 if phase == "close" else row
        start = min(self._now, unknown)
        for array, true, false in self._sources:
            array[start:unknown] = true[start:unknown]
            if self._now >= self.sessions.size:
                array[unknown:] = false[unknown:]
            else:
                array[unknown : unknown + NEAR] = false[unknown : unknown + NEAR]
        if self._bars:
            self._write_near(unknown)
        if phase == "open":
            for name in ("open", "suspended", "trading"):
                self._arrays[name][row] = self._source(self._true, name)[row]
        self._now, self._clock = unknown, clock
        visible = self._true.visible[row]
        past, future = self._true, self._false
        self.every_instrument = past.every_instrument[:visible] + future.every_instrument[visible:]
        self.every_symbol = past.every_symbol[:visible] + future.every_symbol[visible:]
        self.last_rows: Ints = np.where(past.last_rows < row, past.last_rows, future.last_rows)
        self._splice_actions(row, clock)
        for table in self._tables:
            table.move(clock)

    def _source(self, history: History, name: str) -> np.ndarray[Any, Any]:
        if name.startswith("level "):
            return history.levels[name.removeprefix("level ")]
        fields: dict[str, np.ndarray[Any, Any]] = dict(history.fields.items())
        array: np.ndarray[Any, Any] = fields[name] if name in fields else getattr(history, name)
        return array

    def _write_near(self, start: int) -> None:
        """Rewrite the sessions from row ``start`` with false prices derived from the true ones."""
        stop = min(start + NEAR, self.sessions.size)
        if start >= stop or start == 0:
            return
        rng = np.random.default_rng([self._seed, start])
        true = self._true.fields
        base = true["close"][start - 1]
        shape = true["close"][start:stop].shape
        noise = np.exp(rng.normal(0.0, 0.3 if self._noisy else 0.02, shape))
        for field in _PRICES:
            if self._noisy:
                later = true[field][start:stop]
            else:
                # A rise becomes a fall of the same ratio. The mirror of a high is a low.
                later = base * base / true[_MIRROR[field]][start:stop]
            self._arrays[field][start:stop] = (
                np.where(np.isfinite(later), later, true[field][start:stop]) * noise
            )
        for field in ("volume", "amount"):
            self._arrays[field][start:stop] = true[field][start:stop] * rng.uniform(0.2, 4.0, shape)
        before = np.concatenate([base[None], self._arrays["close"][start : stop - 1]])
        self._arrays["prev_close"][start:stop] = np.where(np.isfinite(before), before, np.nan)

    # -- listings and members --

    def gone_by(self, row: int) -> tuple[str, ...]:
        return self._true.gone_by(row) if row <= self._now else self._false.gone_by(row)

    def members_at(self, index: str, row: int) -> tuple[str, ...]:
        return (self._true if row <= self._now else self._false).members_at(index, row)

    # -- actions --

    def _splice_actions(self, row: int, clock: Instant) -> None:
        true, false = self._true, self._false
        past = bisect_right(true.action_times, clock)
        skipped = bisect_right(false.action_times, clock)
        self.actions: tuple[CorporateAction, ...] = true.actions[:past] + false.actions[skipped:]
        self.action_times = true.action_times[:past] + false.action_times[skipped:]

    def actions_of(self, row: int) -> tuple[CorporateAction, ...]:
        return (self._true if row <= self._now else self._false).actions_of(row)

    # -- figures and minutes --

    def _minutes_now(self, symbol: str) -> tuple[Ints, dict[Field, Floats]] | None:
        true, false = self._true.minute_bars(symbol), self._false.minute_bars(symbol)
        if true is None or false is None:
            return true
        before, after = true[0] <= self._clock, false[0] > self._clock
        times = np.concatenate([true[0][before], false[0][after]])
        columns = {
            name: np.concatenate([true[1][name][before], false[1][name][after]]) for name in true[1]
        }
        return times, columns


class _SplicedTable(TimedTable[T]):
    """Records that are true up to the present and false after it."""

    def __init__(self, true: TimedTable[T], false: TimedTable[T]) -> None:
        self._true: TimedTable[T] = true
        self._false: TimedTable[T] = false
        self.record = self._record  # type: ignore[assignment]  # rows move, so they are not cached
        self.move(1 << 62)

    def move(self, clock: Instant) -> None:
        """Move the present to an instant."""
        self._clock = clock
        self._cut, self._skipped = self._true.up_to(clock), self._false.up_to(clock)

    def __len__(self) -> int:
        return self._cut + len(self._false) - self._skipped

    def up_to(self, clock: Instant) -> int:
        if clock <= self._clock:
            return self._true.up_to(clock)
        return self._cut + self._false.up_to(clock) - self._skipped

    def of_symbol(self, symbol: str, rows: range) -> list[int]:
        past = self._true.of_symbol(symbol, range(rows.start, min(rows.stop, self._cut)))
        if rows.stop <= self._cut:
            return past
        shift = self._skipped - self._cut
        later = range(max(rows.start, self._cut) + shift, rows.stop + shift)
        return [*past, *(row - shift for row in self._false.of_symbol(symbol, later))]

    def count_of_symbol(self, symbol: str, stop: int) -> int:
        return len(self.of_symbol(symbol, range(min(stop, len(self)))))

    def _record(self, row: int) -> T:
        if row < self._cut:
            return self._true.record(row)
        return self._false.record(row - self._cut + self._skipped)
