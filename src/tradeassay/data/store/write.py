"""Write a panel as a snapshot: everything into a temporary folder, then one rename."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tradeassay.core import __version__
from tradeassay.core.errors import DataError, DataRefused, UserError
from tradeassay.core.files import naming, sync_path
from tradeassay.core.view import FIELDS
from tradeassay.data.doctor import DROPS, DataFault, accept, describe, diagnose_panel
from tradeassay.data.source import MinutePanel, Panel, action_known_at, ex_rows, factors, previous_close
from tradeassay.data.store.manifest import (
    FORMAT,
    FORMAT_VERSION,
    MANIFEST_FILE,
    Manifest,
    Shapes,
    content_sha256,
    file_entry,
    indices_table,
    listings_table,
    matrix_column,
    numbers,
    read_manifest,
    record_tables,
    sorted_records,
    write_manifest,
)


def write_snapshot(
    panel: Panel,
    folder: Path,
    *,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
    found: Sequence[DataFault] = (),
    locate: Callable[[DataFault], DataFault] | None = None,
) -> Manifest:
    """Write ``panel`` after the doctor has looked at it. ``allow_faults`` is a flag, or the checks whose faults
    are accepted, which become a badge. ``found`` are faults of raw files, ``locate`` turns a panel's fault into
    one of those. The same content already there is left alone, so the call is safe to repeat and to race."""
    panel = normalised(panel)
    seen = diagnose_panel(panel)
    faults = (*found, *(seen if locate is None else map(locate, seen)))
    errors = tuple(fault for fault in faults if fault.severity == "error")
    refused = () if allow_faults is True else errors
    if isinstance(allow_faults, Collection):
        refused = tuple(fault for fault in errors if fault.check not in allow_faults)
    unread = "no number" in {fault.check for fault in errors} and not np.isfinite(panel.bars["close"]).any()
    if refused or unread:  # a market without a single price is none, whatever is accepted
        refused = refused or errors
        checks = {fault.check for fault in refused}
        mends = [
            "fix the files",
            *(f"leave rows out (drop=('{name}',))" for name, one in DROPS.items() if one in checks),
        ]
        if "no number" in checks:
            mends.append("write decimals with a point")
        if "bar on a holiday" in checks:
            mends.append("name their calendar (calendar='XSHG' or calendar='24/7')")
        has = "no price that can be read" if unread else f"{len(refused)} fault{'s' * (len(refused) > 1)}"
        hint = ", ".join(mends) + ("" if unread else ", or accept all faults (allow_faults=True)")
        raise DataRefused(f"'{panel.name}' has {has}: {describe(refused)}", hint=hint)
    biases = list(panel.facts.biases)
    if panel.facts.adjusted != "none":
        done = "splits" if panel.facts.adjusted == "split" else "splits and dividends"
        biases.append(f"the vendor has worked {done} into the prices with hindsight; levels are not as traded")
    if errors:
        counts = ", ".join(f"{count} {check}" for check, count in accept(errors).counts.items())
        biases.append(f"data faults accepted: {counts}")
    panel = replace(panel, facts=msgspec.structs.replace(panel.facts, biases=tuple(dict.fromkeys(biases))))
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f".writing-{folder.name}-{uuid.uuid4().hex[:12]}"
    temporary.mkdir()
    try:
        manifest = _write_files(panel, temporary, faults)
        return _move_into_place(temporary, folder, manifest, replace_existing)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_files(panel: Panel, folder: Path, found: tuple[DataFault, ...]) -> Manifest:
    _write_table(folder / "bars.arrow", _bars_table(panel))
    _write_table(folder / "listings.arrow", listings_table(panel.listings))
    _write_table(folder / "indices.arrow", indices_table(panel.sessions, panel.indices))
    records = record_tables(panel)
    for name, table in records.items():
        _write_table(folder / f"{name}.arrow", table)
    if panel.minutes is not None:
        _write_table(folder / "minutes.arrow", _minutes_table(panel))
    minutes = panel.minutes
    manifest = Manifest(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        package_version=__version__,
        name=panel.name,
        sha256=content_sha256(panel, records),
        facts=panel.facts,
        shapes=Shapes(
            sessions=panel.sessions.size,
            instruments=len(panel.listings),
            minutes=0 if minutes is None else minutes.close_time.size,
            minute_symbols=0 if minutes is None else len(minutes.symbols),
            indices=len(panel.indices),
            actions=len(panel.actions),
            memberships=len(panel.memberships),
            fundamentals=len(panel.fundamentals),
            news=len(panel.news),
        ),
        first_session=str(panel.sessions[0]),
        last_session=str(panel.sessions[-1]),
        faults=accept(found),
        files={path.name: file_entry(path) for path in sorted(folder.glob("*.arrow"))},
    )
    with naming(folder / MANIFEST_FILE):
        manifest = write_manifest(folder, manifest)
    for path in folder.iterdir():
        sync_path(path)
    sync_path(folder)
    return manifest


def _bars_table(panel: Panel) -> pa.Table:
    adjustment = factors(panel)
    days = panel.sessions[:, None]
    listed = np.array([entry.listed for entry in panel.listings], dtype="datetime64[D]")
    never = np.datetime64("9999-12-31", "D")
    delisted = np.array([entry.delisted or never for entry in panel.listings], dtype="datetime64[D]")
    trading = (days >= listed) & (days <= delisted) & ~panel.suspended
    columns = {"session": numbers(panel.sessions), "open_time": numbers(panel.open_time)}
    columns["close_time"] = numbers(panel.close_time)
    columns |= {name: matrix_column(panel.bars[name]) for name in FIELDS}
    columns["suspended"] = matrix_column(panel.suspended)
    columns["trading"] = matrix_column(trading)
    columns["prev_close"] = matrix_column(previous_close(panel.bars["close"], adjustment.total))
    if adjustment.split is not None:
        columns["split_factor"] = matrix_column(adjustment.split)
    if adjustment.total is not None:
        columns["total_factor"] = matrix_column(adjustment.total)
    return pa.table(columns)


def _minutes_table(panel: Panel) -> pa.Table:
    assert panel.minutes is not None
    columns = {"close_time": numbers(panel.minutes.close_time)}
    for index, symbol in enumerate(panel.minutes.symbols):
        for name in FIELDS:
            columns[f"{symbol}/{name}"] = numbers(panel.minutes.bars[name][:, index])
    return pa.table(columns)


def _write_table(path: Path, table: pa.Table) -> None:
    # One batch per file: a column is then one contiguous piece of the memory map.
    with naming(path), pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))


def _move_into_place(temporary: Path, folder: Path, manifest: Manifest, replace_existing: bool) -> Manifest:
    try:
        os.rename(temporary, folder)
        return manifest
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
    if not replace_existing:
        there = read_manifest(folder)
        if there.sha256 == manifest.sha256 and there.name == manifest.name:
            return there
        raise UserError(
            f"{folder} already holds another snapshot ('{there.name}', {there.sha256[:12]})",
            hint="choose another name, or say that it may be replaced",
        )
    old = folder.parent / f".replaced-{folder.name}-{uuid.uuid4().hex[:12]}"
    os.rename(folder, old)
    os.rename(temporary, folder)
    shutil.rmtree(old, ignore_errors=True)
    return manifest


_MINUS_ZERO = np.array([-0.0]).view(np.uint64)[0]
_NAN = np.array([np.nan]).view(np.uint64)[0]


def normalised(panel: Panel) -> Panel:
    """Return a panel in the store's canonical form (dtypes, one NaN, one zero, records sorted): equal content,
    equal bytes."""
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
        indices={name: _floats(levels) for name, levels in sorted(panel.indices.items())},
        **sorted_records(panel),
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
    for kind, what in (("actions", "an action"), ("memberships", "a membership"), ("fundamentals", "a figure")):
        records = getattr(panel, kind)
        unknown = sorted({record.symbol for record in records} - known)
        if unknown:
            raise _wrong(panel, f"{what} of {unknown[0]}, which is not listed")
    ids = [item.id for item in panel.news]
    if len(set(ids)) != len(ids):
        raise _wrong(panel, "two news items have the same id")
    sessions = panel.sessions.astype("datetime64[D]")
    # A view applies an action from the ex-date's pre-open on, so it must be known by then.
    for row, action in zip(ex_rows(panel.actions, sessions).tolist(), panel.actions, strict=True):
        if 0 <= row < sessions.size and action.known_at > action_known_at(int(panel.open_time[row])):
            raise _wrong(panel, f"the {action.kind} of {action.symbol} on {action.ex_date} is known only after it")
        if action.value <= 0 or not np.isfinite(action.value):
            what = f"the {action.kind} of {action.symbol} on {action.ex_date}"
            raise _wrong(panel, f"{what} has value {action.value}")
