"""From a source to the store: read, look for faults, write. Runs then never touch the network or the raw files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.errors import DataError, UserError
from tradeassay.data.builtin import sources
from tradeassay.data.datasets import snapshot_folder
from tradeassay.data.doctor import diagnose_panel
from tradeassay.data.fault import DROPS, DataFault
from tradeassay.data.snapshot import Snapshot
from tradeassay.data.source import Source
from tradeassay.data.store.manifest import MANIFEST_FILE, Manifest
from tradeassay.data.store.read import read_panel, verify_snapshot
from tradeassay.data.store.write import write_snapshot
from tradeassay.data.tables.columns import FilesConfig, ImportReport
from tradeassay.data.tables.folder import read_files


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A stored import: what it is, and what had to be guessed."""

    manifest: Manifest
    report: ImportReport


def import_files(
    config: FilesConfig,
    *,
    home: Path | None = None,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
) -> ImportResult:
    """Import a folder or file of bars under ``config.name`` (default: the folder's); :class:`DataRefused` for
    faults.
    """
    _known(config.drop)
    imported = read_files(config)
    manifest = write_snapshot(
        imported.panel,
        snapshot_folder(imported.panel.name, home),
        allow_faults=allow_faults or config.allow_faults or {DROPS[name] for name in _known(config.drop)},
        replace_existing=replace_existing,
        found=imported.faults,
        locate=imported.locate,
    )
    return ImportResult(manifest, imported.report)


def _known(drop: Collection[str]) -> Collection[str]:
    unknown = sorted(set(drop) - set(DROPS))
    if unknown:
        raise UserError(f"rows cannot be dropped as '{unknown[0]}'", hint=f"one of {', '.join(DROPS)}")
    return drop


def preview_files(config: FilesConfig) -> ImportReport:
    """Return how a folder or file would be understood, without storing anything; raises as the import does."""
    return read_files(config).report


def fetch_dataset(
    source: str,
    name: str,
    options: Mapping[str, Any],
    *,
    home: Path | None = None,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
) -> Manifest:
    """Store the panel of a registered source; ``options`` are the fields of its ``Config``."""
    panel = make_source(source, options).load()
    return write_snapshot(
        replace(panel, name=name),
        snapshot_folder(name, home),
        allow_faults=allow_faults,
        replace_existing=replace_existing,
    )


def make_source(source: str, options: Mapping[str, Any]) -> Source:
    """Return a registered source with its configuration; raises :class:`UserError` naming a wrong option."""
    kind = sources.get(source)
    known = kind.Config.__struct_fields__
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(f"source '{source}' has no option '{unknown[0]}'", hint=f"it has {', '.join(known)}")
    try:
        return kind(msgspec.convert(dict(options), kind.Config, strict=False))
    except msgspec.ValidationError as error:
        raise UserError(f"source '{source}': {error}", hint=f"its options are {', '.join(known)}") from error


def diagnose(what: Path | str | Snapshot | FilesConfig) -> tuple[DataFault, ...]:
    """Return the faults of a snapshot (altered files included), a folder of bars, or one file; errors first."""
    if isinstance(what, Snapshot):
        return _diagnose_snapshot(what.folder)
    if isinstance(what, FilesConfig):
        config = what
    else:
        path = Path(what).expanduser()
        if (path / MANIFEST_FILE).exists():
            return _diagnose_snapshot(path)
        config = FilesConfig(path=str(path))
    return read_files(msgspec.structs.replace(config, allow_faults=True)).diagnose()


def _diagnose_snapshot(folder: Path) -> tuple[DataFault, ...]:
    try:
        verify_snapshot(folder)
    except DataError as error:
        return (DataFault(check="altered snapshot", file=str(folder), row=None, reason=error.message),)
    return diagnose_panel(read_panel(folder))
