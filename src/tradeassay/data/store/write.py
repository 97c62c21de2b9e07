"""Write a panel as a snapshot: everything into a temporary folder, then one rename."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from tradeassay.core import __version__
from tradeassay.core.errors import DataRefused, UserError
from tradeassay.core.files import naming
from tradeassay.core.view import FIELDS
from tradeassay.data.doctor.panel import diagnose_panel
from tradeassay.data.fault import DataFault, accept, describe
from tradeassay.data.panel import Panel
from tradeassay.data.store import tables
from tradeassay.data.store.adjustment import factors, previous_close
from tradeassay.data.store.manifest import (
    FORMAT,
    FORMAT_VERSION,
    MANIFEST_FILE,
    Manifest,
    Shapes,
    content_sha256,
    file_entry,
    read_manifest,
    write_manifest,
)
from tradeassay.data.store.shape import normalised
from tradeassay.data.store.tables import numbers


def write_snapshot(
    panel: Panel,
    folder: Path,
    *,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
    found: Sequence[DataFault] = (),
    locate: Callable[[DataFault], DataFault] | None = None,
) -> Manifest:
    """Write ``panel`` to ``folder`` after the doctor has looked at it, and return the manifest.

    ``allow_faults`` is True, False or the names of the checks whose faults are accepted; accepted faults are
    recorded in the manifest and become a badge. ``found`` are faults found earlier on raw files, ``locate`` turns
    a fault of the panel into one of those files. A snapshot with the same content that is already there is left
    alone, which makes the call safe to repeat and to race. Raises :class:`DataRefused` listing the faults that are
    not accepted, and :class:`UserError` when the folder holds anything else and ``replace_existing`` is False.
    """
    panel = normalised(panel)
    seen = diagnose_panel(panel)
    faults = (*found, *(seen if locate is None else map(locate, seen)))
    errors = tuple(fault for fault in faults if fault.severity == "error")
    refused = () if allow_faults is True else errors
    if isinstance(allow_faults, Collection):
        refused = tuple(fault for fault in errors if fault.check not in allow_faults)
    if refused:
        raise DataRefused(
            f"'{panel.name}' has {len(refused)} faults: {describe(refused)}",
            hint="fix the files, leave rows out by name (--drop), or accept all faults (--allow-faults)",
        )
    panel = _with_badges(panel, errors)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f".writing-{folder.name}-{uuid.uuid4().hex[:12]}"
    temporary.mkdir()
    try:
        manifest = _write_files(panel, temporary, faults)
        return _move_into_place(temporary, folder, manifest, replace_existing)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _with_badges(panel: Panel, errors: tuple[DataFault, ...]) -> Panel:
    biases = list(panel.facts.biases)
    if panel.facts.adjusted != "none":
        done = "splits" if panel.facts.adjusted == "split" else "splits and dividends"
        biases.append(f"the vendor has worked {done} into the prices with hindsight; levels are not as traded")
    if errors:
        counts = ", ".join(f"{count} {check}" for check, count in accept(errors).counts.items())
        biases.append(f"data faults accepted: {counts}")
    return replace(panel, facts=msgspec.structs.replace(panel.facts, biases=tuple(dict.fromkeys(biases))))


def _write_files(panel: Panel, folder: Path, found: tuple[DataFault, ...]) -> Manifest:
    _write_table(folder / "bars.arrow", _bars_table(panel))
    _write_table(folder / "listings.arrow", tables.listings_table(panel.listings))
    _write_table(folder / "indices.arrow", tables.indices_table(panel.sessions, panel.indices))
    records = tables.record_tables(panel)
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
        _sync(path)
    _sync(folder)
    return manifest


def _bars_table(panel: Panel) -> pa.Table:
    adjustment = factors(panel)
    days = panel.sessions[:, None]
    listed = np.array([entry.listed for entry in panel.listings], dtype="datetime64[D]")
    never = np.datetime64("9999-12-31", "D")
    delisted = np.array([entry.delisted or never for entry in panel.listings], dtype="datetime64[D]")
    trading = (days >= listed) & (days <= delisted) & ~panel.suspended
    columns = {
        "session": numbers(panel.sessions),
        "open_time": numbers(panel.open_time),
        "close_time": numbers(panel.close_time),
    }
    columns |= {name: tables.matrix_column(panel.bars[name]) for name in FIELDS}
    columns["suspended"] = tables.matrix_column(panel.suspended)
    columns["trading"] = tables.matrix_column(trading)
    columns["prev_close"] = tables.matrix_column(previous_close(panel.bars["close"], adjustment.total))
    if adjustment.split is not None:
        columns["split_factor"] = tables.matrix_column(adjustment.split)
    if adjustment.total is not None:
        columns["total_factor"] = tables.matrix_column(adjustment.total)
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


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
