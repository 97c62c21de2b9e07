"""The form a panel must have before anything else can be asked of it. Faults of content are the doctor's job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tradeassay.core.errors import DataError
from tradeassay.core.view import FIELDS, Days
from tradeassay.data.panel import MinutePanel, Panel, action_known_at
from tradeassay.data.store.adjustment import ex_rows
from tradeassay.data.store.tables import sort_actions, sort_fundamentals, sort_memberships, sort_news

_MINUS_ZERO = np.array([-0.0]).view(np.uint64)[0]
_NAN = np.array([np.nan]).view(np.uint64)[0]


def normalised(panel: Panel) -> Panel:
    """Return a panel in the store's canonical form: dtypes, one NaN, one zero, records sorted.

    Equal content then gives equal bytes. Nothing a reader could see is changed.
    Raises :class:`DataError` naming the array or record when the form is wrong.
    """
    check_form(panel)
    bars = {name: _floats(panel.bars[name]) for name in FIELDS}
    minutes = panel.minutes
    if minutes is not None:
        minutes = MinutePanel(
            tuple(minutes.symbols),
            np.ascontiguousarray(minutes.close_time, dtype=np.int64),
            {name: _floats(minutes.bars[name]) for name in FIELDS},
        )
    return replace(
        panel,
        sessions=np.ascontiguousarray(panel.sessions, dtype="datetime64[D]"),
        open_time=np.ascontiguousarray(panel.open_time, dtype=np.int64),
        close_time=np.ascontiguousarray(panel.close_time, dtype=np.int64),
        bars=bars,
        suspended=np.ascontiguousarray(panel.suspended, dtype=np.bool_),
        minutes=minutes,
        actions=sort_actions(panel.actions),
        memberships=sort_memberships(panel.memberships),
        indices={name: _floats(levels) for name, levels in sorted(panel.indices.items())},
        fundamentals=sort_fundamentals(panel.fundamentals),
        news=sort_news(panel.news),
    )


def _floats(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    if values.dtype == np.float64 and values.flags.c_contiguous and _canonical(values):
        return values
    result = np.array(values, dtype=np.float64, order="C")
    result[np.isnan(result)] = np.nan
    result += 0.0  # -0.0 and 0.0 are one number and must be one byte pattern
    return result


def _canonical(values: np.ndarray[Any, Any]) -> bool:
    """Say whether an array has one NaN and one zero already; a large panel need not be copied then."""
    for piece in np.array_split(values.reshape(-1).view(np.uint64), max(1, values.size >> 20)):
        numbers = piece.view(np.float64)
        if (piece == _MINUS_ZERO).any() or (np.isnan(numbers) & (piece != _NAN)).any():
            return False
    return True


def check_form(panel: Panel) -> None:
    """Raise :class:`DataError` naming the first array, listing or record that has the wrong form."""
    _check_axes(panel)
    _check_listings(panel)
    _check_bars(panel.name, panel.bars, (panel.sessions.size, len(panel.listings)))
    if panel.suspended.shape != (panel.sessions.size, len(panel.listings)):
        raise _wrong(panel, f"suspended has shape {panel.suspended.shape}, not (sessions, instruments)")
    for index, levels in panel.indices.items():
        if levels.shape != panel.sessions.shape:
            raise _wrong(panel, f"index {index} has {levels.size} levels for {panel.sessions.size} sessions")
    if panel.minutes is not None:
        _check_minutes(panel, panel.minutes)
    _check_records(panel)


def _wrong(panel: Panel, what: str) -> DataError:
    return DataError(f"panel '{panel.name}': {what}", hint="the source that made it must be corrected")


def _check_axes(panel: Panel) -> None:
    if panel.sessions.size == 0 or not panel.listings:
        raise _wrong(panel, f"it has {panel.sessions.size} sessions and {len(panel.listings)} instruments")
    for name in ("open_time", "close_time"):
        if getattr(panel, name).shape != panel.sessions.shape:
            raise _wrong(panel, f"{name} and sessions differ in length")
    if not _increasing(panel.sessions):
        raise _wrong(panel, "sessions are not strictly increasing")
    if not (_increasing(panel.open_time) and _increasing(panel.close_time)):
        raise _wrong(panel, "open or close times are not strictly increasing")
    if np.any(panel.open_time >= panel.close_time) or np.any(panel.close_time[:-1] > panel.open_time[1:]):
        raise _wrong(panel, "a session closes before it opens or after the next one has opened")


def _increasing(values: Any) -> bool:
    return bool(np.all(values[1:] > values[:-1]))


def _check_listings(panel: Panel) -> None:
    symbols = panel.symbols
    if len(set(symbols)) != len(symbols):
        twice = sorted({symbol for symbol in symbols if symbols.count(symbol) > 1})
        raise _wrong(panel, f"{twice[0]} is listed twice")
    keys = [(entry.listed, entry.instrument.symbol) for entry in panel.listings]
    if keys != sorted(keys):
        raise _wrong(panel, "columns are not sorted by (listed, symbol)")
    for entry in panel.listings:
        if entry.delisted is not None and entry.delisted < entry.listed:
            raise _wrong(panel, f"{entry.instrument.symbol} is delisted before it is listed")


def _check_bars(name: str, bars: Mapping[Any, Any], shape: tuple[int, int]) -> None:
    missing = [field for field in FIELDS if field not in bars]
    if missing:
        raise DataError(f"panel '{name}': bars have no {', '.join(missing)}", hint="NaN stands for unknown")
    for field in FIELDS:
        if bars[field].shape != shape:
            raise DataError(f"panel '{name}': {field} has shape {bars[field].shape}, expected {shape}")


def _check_minutes(panel: Panel, minutes: MinutePanel) -> None:
    _check_bars(f"{panel.name} (minutes)", minutes.bars, (minutes.close_time.size, len(minutes.symbols)))
    unknown = sorted(set(minutes.symbols) - set(panel.symbols))
    if unknown:
        raise _wrong(panel, f"minute bars of {unknown[0]}, which is not listed")
    if not _increasing(minutes.close_time):
        raise _wrong(panel, "minute closing times are not strictly increasing")


def _check_records(panel: Panel) -> None:
    known = set(panel.symbols)
    for records, what in ((panel.actions, "action"), (panel.memberships, "membership"),
                          (panel.fundamentals, "figure")):  # fmt: skip
        unknown = sorted({record.symbol for record in records} - known)
        if unknown:
            raise _wrong(panel, f"an {what} of {unknown[0]}, which is not listed" if what == "action"
                         else f"a {what} of {unknown[0]}, which is not listed")  # fmt: skip
    ids = [item.id for item in panel.news]
    if len(set(ids)) != len(ids):
        raise _wrong(panel, "two news items have the same id")
    _check_known(panel, panel.sessions.astype("datetime64[D]"))


def _check_known(panel: Panel, sessions: Days) -> None:
    # A view applies an action from the ex-date's pre-open on, so it must be known by then.
    for row, action in zip(ex_rows(panel.actions, sessions).tolist(), panel.actions, strict=True):
        if 0 <= row < sessions.size and action.known_at > action_known_at(int(panel.open_time[row])):
            raise _wrong(panel, f"the {action.kind} of {action.symbol} on {action.ex_date} is known only after it")
        if action.value <= 0 or not np.isfinite(action.value):
            raise _wrong(
                panel, f"the {action.kind} of {action.symbol} on {action.ex_date} has value {action.value}"
            )
