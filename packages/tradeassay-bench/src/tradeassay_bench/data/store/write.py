"""Write a panel as a snapshot: all files to a temporary folder, then one rename."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tradeassay.core import __version__
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.files import naming, sync_path
from tradeassay.core.hashing import sha256_file
from tradeassay.tables.faults import DataFault
from tradeassay_bench.core.errors import DataRefused
from tradeassay_bench.core.view import FIELDS
from tradeassay_bench.data.doctor import DROPS, accept, describe, diagnose_panel
from tradeassay_bench.data.source import (
    MinutePanel,
    Panel,
    action_known_at,
    ex_rows,
    factors,
    previous_close,
)
from tradeassay_bench.data.store.manifest import (
    FORMAT,
    FORMAT_VERSION,
    MANIFEST_FILE,
    RECORDS,
    FileEntry,
    Manifest,
    Shapes,
    content_sha256,
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
    file_faults: Sequence[DataFault] = (),
    locate: Callable[[DataFault], DataFault] | None = None,
) -> Manifest:
    """Check a panel for faults, write it as a snapshot, and return the manifest.

    ``allow_faults`` is True, or the names of the checks whose faults are accepted. Accepted faults
    become a badge. ``file_faults`` are faults in the raw files. ``locate`` maps a fault of the
    panel to its place in those files. Raises :class:`DataRefused` for other faults.

    A folder that already contains the same content is left unchanged. The call may therefore be
    repeated, also by several processes at the same time.
    """
    panel = normalised(panel)
    panel_faults = diagnose_panel(panel)
    faults = (*file_faults, *(panel_faults if locate is None else map(locate, panel_faults)))
    errors = tuple(fault for fault in faults if fault.severity == "error")
    _refuse_faults(panel, errors, allow_faults)
    biases = list(panel.facts.biases)
    if panel.facts.adjusted != "none":
        adjustments = "splits" if panel.facts.adjusted == "split" else "splits and dividends"
        biases.append(
            f"the vendor has worked {adjustments} into the prices with hindsight; "
            "levels are not as traded"
        )
    if errors:
        counts = ", ".join(f"{count} {check}" for check, count in accept(errors).counts.items())
        biases.append(f"data faults accepted: {counts}")
    panel = replace(
        panel, facts=msgspec.structs.replace(panel.facts, biases=tuple(dict.fromkeys(biases)))
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f".writing-{folder.name}-{uuid.uuid4().hex[:12]}"
    temporary.mkdir()
    try:
        manifest = _write_files(panel, temporary, faults)
        return _move_into_place(temporary, folder, manifest, replace_existing)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_faults(
    panel: Panel, errors: Sequence[DataFault], allow_faults: bool | Collection[str]
) -> None:
    """Raise :class:`DataRefused` for errors that are not accepted.

    A panel without a single price is refused even if all faults are accepted.
    """
    refused: Sequence[DataFault] = () if allow_faults is True else errors
    if isinstance(allow_faults, Collection):
        refused = tuple(fault for fault in errors if fault.check not in allow_faults)
    no_price = (
        "no number" in {fault.check for fault in errors}
        and not np.isfinite(panel.bars["close"]).any()
    )
    if not refused and not no_price:
        return
    refused = refused or errors
    checks = {fault.check for fault in refused}
    remedies = ["fix the files"]
    for name, check in DROPS.items():
        if check in checks:
            remedies.append(f"skip rows (drop=('{name}',))")
    if "no number" in checks:
        remedies.append("write decimals with a point")
    if "bar on a holiday" in checks:
        remedies.append("set the calendar (calendar='XSHG' or calendar='24/7')")
    if no_price:
        problem = "no readable price"
    else:
        problem = f"{len(refused)} fault{'s' * (len(refused) > 1)}"
        remedies.append("or accept all faults (allow_faults=True)")
    raise DataRefused(
        f"'{panel.name}' has {problem}: {describe(refused)}", hint=", ".join(remedies)
    )


def _write_files(panel: Panel, folder: Path, faults: tuple[DataFault, ...]) -> Manifest:
    """Write the files of a panel to a folder and return the manifest."""
    records, minutes = record_tables(panel), panel.minutes
    for kind, table in chain(_grids(panel), records.items()):
        path = folder / f"{kind}.arrow"
        # One batch per file, so that a column is one contiguous part of the memory map.
        with (
            naming(path),
            pa.OSFile(str(path), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as writer,
        ):
            writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))
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
            **{kind: len(getattr(panel, kind)) for kind in RECORDS},
        ),
        first_session=str(panel.sessions[0]),
        last_session=str(panel.sessions[-1]),
        faults=accept(faults),
        files={
            path.name: FileEntry(bytes=path.stat().st_size, sha256=sha256_file(path))
            for path in sorted(folder.glob("*.arrow"))
        },
    )
    with naming(folder / MANIFEST_FILE):
        manifest = write_manifest(folder, manifest)
    for path in folder.iterdir():
        sync_path(path)
    sync_path(folder)
    return manifest


def _grids(panel: Panel) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of bars, listings, indices and minutes with their names.

    The tables are yielded one by one to save memory, because together they are most of a large
    import.
    """
    split, total = factors(panel)
    days = panel.sessions[:, None]
    listed = np.array([entry.listed for entry in panel.listings], dtype="datetime64[D]")
    delisted = np.array(
        [entry.delisted or "9999-12-31" for entry in panel.listings], dtype="datetime64[D]"
    )
    matrices: dict[str, Any] = {name: panel.bars[name] for name in FIELDS}
    matrices["suspended"] = panel.suspended
    matrices["trading"] = (days >= listed) & (days <= delisted) & ~panel.suspended
    matrices["prev_close"] = previous_close(panel.bars["close"], total)
    matrices |= {"split_factor": split, "total_factor": total}
    times = {
        "session": panel.sessions,
        "open_time": panel.open_time,
        "close_time": panel.close_time,
    }
    columns = {name: numbers(instants) for name, instants in times.items()}
    for name, values in matrices.items():
        if values is not None:
            columns[name] = matrix_column(values)
    del matrices, split, total
    yield "bars", pa.table(columns)
    yield "listings", listings_table(panel.listings)
    columns = {"session": numbers(panel.sessions)}
    yield (
        "indices",
        pa.table(columns | {name: numbers(panel.indices[name]) for name in sorted(panel.indices)}),
    )
    if panel.minutes is not None:
        columns = {"close_time": numbers(panel.minutes.close_time)}
        for index, symbol in enumerate(panel.minutes.symbols):
            columns |= {
                f"{symbol}/{name}": numbers(panel.minutes.bars[name][:, index]) for name in FIELDS
            }
        yield "minutes", pa.table(columns)


def _move_into_place(
    temporary: Path, folder: Path, manifest: Manifest, replace_existing: bool
) -> Manifest:
    """Rename the temporary folder to its final name, and return the manifest of the stored data.

    Raises :class:`UserError` if the folder has different content and may not be replaced.
    """
    try:
        os.rename(temporary, folder)
        return manifest
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
    if not replace_existing:
        stored = read_manifest(folder)
        if stored.sha256 == manifest.sha256 and stored.name == manifest.name:
            return stored
        problem = (
            f"{folder} already contains a different snapshot ('{stored.name}', "
            f"{stored.sha256[:12]})"
        )
        raise UserError(problem, hint="choose another name, or allow the replacement")
    old = folder.parent / f".replaced-{folder.name}-{uuid.uuid4().hex[:12]}"
    os.rename(folder, old)
    os.rename(temporary, folder)
    shutil.rmtree(old, ignore_errors=True)
    return manifest


_MINUS_ZERO = np.array([-0.0]).view(np.uint64)[0]
_NAN = np.array([np.nan]).view(np.uint64)[0]


def normalised(panel: Panel) -> Panel:
    """Return a panel in the store's canonical form, in which equal content has equal bytes.

    The form defines the dtypes, the bit patterns of NaN and zero, and the order of records. Raises
    :class:`DataError` for a malformed panel.
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
    """Return whether an array already has the canonical NaN and zero, so that no copy is needed."""
    for piece in np.array_split(values.reshape(-1).view(np.uint64), max(1, values.size >> 20)):
        numbers = piece.view(np.float64)
        if (piece == _MINUS_ZERO).any() or (np.isnan(numbers) & (piece != _NAN)).any():
            return False
    return True


def check_form(panel: Panel) -> None:
    """Raise :class:`DataError` for the first malformed array, listing or record."""
    for problem in _problems(panel):
        raise DataError(
            f"panel '{panel.name}': {problem}", hint="correct the source that returned it"
        )


def _problems(panel: Panel) -> Iterator[str]:
    """Yield problems of form. The caller uses only the first: later checks rely on earlier ones."""
    sessions, size, minutes = panel.sessions, panel.sessions.size, panel.minutes
    if size == 0 or not panel.listings:
        yield f"it has {size} sessions and {len(panel.listings)} instruments"
    for name in ("open_time", "close_time"):
        if getattr(panel, name).shape != sessions.shape:
            yield f"{name} and sessions differ in length"
    if not _increasing(sessions):
        yield "sessions are not strictly increasing"
    if not (_increasing(panel.open_time) and _increasing(panel.close_time)):
        yield "open or close times are not strictly increasing"
    if np.any(panel.open_time >= panel.close_time) or np.any(
        panel.close_time[:-1] > panel.open_time[1:]
    ):
        yield "a session closes before it opens or after the next one has opened"
    yield from _record_problems(panel)
    grids = [("bars", panel.bars, (size, len(panel.listings)))]
    grids += (
        [("minutes", minutes.bars, (minutes.close_time.size, len(minutes.symbols)))]
        if minutes
        else []
    )
    for table, bars, shape in grids:
        if missing := [field for field in FIELDS if field not in bars]:
            yield f"{table} have no {', '.join(missing)} (use NaN for unknown values)"
        for field in FIELDS:
            if bars[field].shape != shape:
                yield f"{field} of the {table} has shape {bars[field].shape}, expected {shape}"
    if panel.suspended.shape != (size, len(panel.listings)):
        yield f"suspended has shape {panel.suspended.shape}, expected (sessions, instruments)"
    for index, levels in panel.indices.items():
        if levels.shape != sessions.shape:
            yield f"index {index} has {levels.size} levels for {size} sessions"
    if minutes is not None and not _increasing(minutes.close_time):
        yield "minute closing times are not strictly increasing"


def _increasing(values: Any) -> bool:
    return bool(np.all(values[1:] > values[:-1]))


def _record_problems(panel: Panel) -> Iterator[str]:
    """Yield problems of listings and dated records."""
    for symbol, count in Counter(panel.symbols).items():
        if count > 1:
            yield f"{symbol} is listed twice"
    keys = [(entry.listed, entry.instrument.symbol) for entry in panel.listings]
    if keys != sorted(keys):
        yield "columns are not sorted by (listed, symbol)"
    for entry in panel.listings:
        if entry.delisted is not None and entry.delisted < entry.listed:
            yield f"{entry.instrument.symbol} is delisted before it is listed"
    about = {"minute bars": () if panel.minutes is None else panel.minutes.symbols}
    for kind, label in (
        ("actions", "an action"),
        ("memberships", "a membership"),
        ("fundamentals", "a figure"),
    ):
        about[label] = tuple(record.symbol for record in getattr(panel, kind))
    for label, symbols in about.items():
        for unknown in sorted(set(symbols) - set(panel.symbols)):
            yield f"{label} of {unknown}, which is not listed"
    ids = [item.id for item in panel.news]
    if len(set(ids)) != len(ids):
        yield "two news items have the same id"
    sessions = panel.sessions.astype("datetime64[D]")
    # A view applies an action from the ex-date's pre-open on, so it must be known by then.
    for row, action in zip(ex_rows(panel.actions, sessions).tolist(), panel.actions, strict=True):
        label = f"the {action.kind} of {action.symbol} on {action.ex_date}"
        if 0 <= row < sessions.size:
            deadline = action_known_at(int(panel.open_time[row]))
            if action.known_at > deadline:
                yield f"{label} is known only after it"
        if action.value <= 0 or not np.isfinite(action.value):
            yield f"{label} has value {action.value}"
