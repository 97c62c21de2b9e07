"""Open datasets by name, and import new ones into the store.

A dataset is a stored snapshot, a snapshot folder or a synthetic world. An import reads the raw
files, checks them for faults and writes a snapshot. Runs read the snapshot and never touch the
network or the raw files.

Importing this module registers all built-in sources. Vendor libraries are imported on use.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import msgspec

from tradeassay.core.arguments import instance_of, path_from
from tradeassay.core.arrays import Floats
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.files import data_home as data_home
from tradeassay.core.hashing import sha256_of
from tradeassay.core.registry import did_you_mean
from tradeassay.tables.faults import DataFault
from tradeassay_bench.core.errors import DataRefused
from tradeassay_bench.core.time import Clock
from tradeassay_bench.data import connectors, synthetic
from tradeassay_bench.data.connectors.common import ConnectorSource
from tradeassay_bench.data.doctor import DROPS, describe, diagnose_panel
from tradeassay_bench.data.snapshot import Snapshot, open_snapshot
from tradeassay_bench.data.source import Panel, PanelFacts, Source, SourceConfig, sources
from tradeassay_bench.data.store.manifest import (
    MANIFEST_FILE,
    Manifest,
    read_manifest,
    snapshot_folder as snapshot_folder,
    store_folder as store_folder,
)
from tradeassay_bench.data.store.read import read_panel, verify_snapshot
from tradeassay_bench.data.store.write import write_snapshot
from tradeassay_bench.data.tables.files import FilesConfig, ImportReport
from tradeassay_bench.data.tables.folder import read_files

__all__ = ["FilesSource", "PackagedConfig", "PackagedSource", "sources"]

_NAMES_SHOWN = 10
"""Maximum number of dataset names in an error message."""
_REGISTERS_SOURCES = (connectors, synthetic)
"""Modules that register sources when they are imported."""


@sources.register("csv")
@sources.register("parquet")
class FilesSource:
    """A source that reads OHLCV files, daily or intraday, in CSV or Parquet format.

    The bars may be in one file per symbol or in one long file.
    """

    Config: ClassVar[type[SourceConfig]] = FilesConfig
    summary: ClassVar[str] = "a folder or file of OHLCV bars; column names are guessed and shown"
    extra: ClassVar[str | None] = None

    def __init__(self, config: FilesConfig) -> None:
        self.config = config

    def load(self) -> Panel:
        """Return the panel of the files.

        Raises :class:`DataRefused` if the files have faults that are not accepted.
        """
        imported = read_files(self.config)
        dropped = {DROPS.get(name) for name in self.config.drop}
        errors = tuple(
            fault
            for fault in imported.faults
            if fault.severity == "error" and fault.check not in dropped
        )
        if errors and not self.config.allow_faults:
            problem = f"{self.config.path} has {len(errors)} faults: {describe(errors)}"
            raise DataRefused(
                problem, hint="fix the files, or accept the faults explicitly (allow_faults=True)"
            )
        return imported.panel


class PackagedConfig(SourceConfig, frozen=True, kw_only=True):
    """The name of a dataset in the catalogue."""

    name: str


@sources.register("packaged")
class PackagedSource:
    """A source that reads real market data from packages of the package index."""

    Config: ClassVar[type[SourceConfig]] = PackagedConfig
    summary: ClassVar[str] = (
        "real market data inside packages of the package index (see 'data list')"
    )
    extra: ClassVar[str | None] = None

    def __init__(self, config: PackagedConfig) -> None:
        self.config = config

    def load(self) -> Panel:
        from tradeassay_bench.data.catalogue.recipes import load_packaged

        return load_packaged(self.config.name)


_SYNTHETIC = re.compile(r"synthetic/(?P<preset>[a-z][a-z0-9_-]*):(?P<seed>\d{1,18})")
_PATHS = ("/", "./", "../", "~")


class DatasetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One row in a listing of stored datasets.

    ``problem`` is the reason why the dataset cannot be opened, or None if it can.
    """

    name: str
    kind: Literal["real", "synthetic", "unknown"]
    source: str = ""
    first_session: str = ""
    last_session: str = ""
    instruments: int = 0
    sessions: int = 0
    minutes: int = 0
    news: int = 0
    sha256: str = ""
    biases: tuple[str, ...] = ()
    problem: str | None = None


def load_dataset(name: str | Path, home: Path | str | None = None) -> Snapshot:
    """Return a dataset, given its name or path.

    ``synthetic/<preset>:<seed>`` names a synthetic world, which is generated and stored on first
    use. A path is opened in place. Any other name is looked up in the store. Raises
    :class:`UserError` for an unknown name.
    """
    name = str(name)
    if name.startswith(_PATHS):
        return open_snapshot(Path(name).expanduser())
    try:
        return load_stored(name, home)
    except UserError:
        if not name.startswith("synthetic/") and (Path(name) / MANIFEST_FILE).exists():
            return open_snapshot(Path(name))
        raise


def load_stored(name: str, home: Path | str | None = None) -> Snapshot:
    """Return a stored dataset or a synthetic world, but never a folder.

    Call this function for names from another person's files, because that person could supply a
    malicious folder.
    """
    if match := _SYNTHETIC.fullmatch(name):
        return _synthetic(name, match["preset"], int(match["seed"]), home)
    if name.startswith("synthetic/"):
        raise UserError(
            f"'{name}' is not a synthetic world", hint="write e.g. synthetic/us:7 (preset:seed)"
        )
    if name.startswith(_PATHS):
        raise UserError(
            f"'{name}' is a folder, not a stored dataset", hint="import it and start the run again"
        )
    folder = snapshot_folder(name, home)
    if not (folder / MANIFEST_FILE).exists():
        from tradeassay_bench.data.catalogue.recipes import list_catalogue

        packaged = [entry.name for entry in list_catalogue()]
        if name in packaged:
            raise UserError(
                f"the packaged dataset '{name}' is not stored yet",
                hint=f"tradeassay data get {name}",
            )
        stored = [info.name for info in list_datasets(home)]
        listed = ", ".join(stored[:_NAMES_SHOWN]) or "none"
        if len(stored) > _NAMES_SHOWN:
            listed += f" and {len(stored) - _NAMES_SHOWN} more"
        near = did_you_mean(name, [*stored, *packaged], f"stored: {listed}")
        raise UserError(
            f"no dataset '{name}' in {store_folder(home)}",
            hint=f"{near}; see 'tradeassay data list'",
        )
    return open_snapshot(folder)


def read_stored_index(
    dataset: str, index: str, home: Path | str | None
) -> tuple[list[str], Floats]:
    """Return the ISO days and the closing levels of an index in a stored dataset."""
    snapshot = load_stored(dataset, home)
    view = snapshot.at(len(snapshot.sessions) - 1, "close")
    return view.sessions().astype(str).tolist(), view.index_levels(index)


def load_verified(name: str, home: Path | str | None = None) -> Snapshot:
    """Return a dataset like :func:`load_stored`, and verify a synthetic world against its seed.

    The world is generated again and compared with the stored copy. The stored hash alone proves
    nothing, because a person who edits the store can also write a new hash. Raises
    :class:`DataError` if the two differ.
    """
    snapshot = load_stored(name, home)
    if _SYNTHETIC.fullmatch(name) and (snapshot.sha256, snapshot.facts) != _regenerate(name):
        problem = f"the stored world '{name}' differs from the world that its seed generates"
        raise DataError(
            problem, hint=f"delete {snapshot.folder}: it is generated again on its next use"
        )
    return snapshot


def synthetic_sha256(name: str) -> str | None:
    """Return the expected hash of a synthetic world, or None for any other dataset."""
    return _regenerate(name)[0] if _SYNTHETIC.fullmatch(name) else None


def _synthetic(name: str, preset: str, seed: int, home: Path | str | None) -> Snapshot:
    """Return a synthetic world, which is generated if it is not in the store."""
    folder = store_folder(home) / "synthetic" / _world_folder(preset, seed)
    if not (folder / MANIFEST_FILE).exists():
        world = synthetic.generate(synthetic.preset(preset, seed=seed))
        write_snapshot(replace(world.panel, name=name), folder)
    return open_snapshot(folder)


@lru_cache(maxsize=64)
def _world_folder(preset: str, seed: int) -> str:
    key = sha256_of(
        {"generator": synthetic.VERSION, "config": synthetic.preset(preset, seed=seed)}
    )[:16]
    return f"{preset}-{seed}-{key}"


@lru_cache(maxsize=64)
def _regenerate(name: str) -> tuple[str, PanelFacts]:
    """Return the hash and the metadata of a synthetic world that was generated from its seed."""
    with TemporaryDirectory(prefix="tradeassay-") as empty:
        snapshot = load_stored(name, Path(empty))
        return snapshot.sha256, snapshot.facts


def list_datasets(home: Path | str | None = None) -> tuple[DatasetInfo, ...]:
    """Return all stored datasets, sorted by name, including those that cannot be opened."""
    folders = []
    for folder in store_folder(home).glob("[!.]*"):
        if (folder / MANIFEST_FILE).exists():
            folders.append(folder)
        else:  # a folder of datasets of one kind, such as the synthetic worlds
            folders += [path for path in folder.glob("[!.]*") if path.is_dir()]
    datasets = []
    for folder in folders:
        try:
            manifest = read_manifest(folder)
        except DataError as error:
            datasets.append(DatasetInfo(name=folder.name, kind="unknown", problem=error.message))
            continue
        shapes = {
            name: getattr(manifest.shapes, name)
            for name in ("instruments", "sessions", "minutes", "news")
        }
        info = DatasetInfo(
            name=manifest.name,
            kind=manifest.facts.kind,
            source=manifest.facts.source,
            first_session=manifest.first_session,
            last_session=manifest.last_session,
            sha256=manifest.sha256,
            biases=manifest.facts.biases,
            **shapes,
        )
        datasets.append(info)
    return tuple(sorted(datasets, key=lambda info: info.name))


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The manifest of a stored import, and a report of how its files were read."""

    manifest: Manifest
    report: ImportReport


def import_files(
    config: FilesConfig | Path | str,
    *,
    home: Path | str | None = None,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
) -> ImportResult:
    """Import a folder or file of bars into the store. Return the manifest and a report.

    ``config`` may be a bare path. The dataset is stored as ``config.name``, by default the name of
    the folder. Raises :class:`DataRefused` for faults that ``allow_faults`` does not accept.
    """
    if not isinstance(config, FilesConfig):
        config = FilesConfig(path=str(path_from("a folder or file of bars", config)))
    if unknown := sorted(set(config.drop) - set(DROPS)):
        raise UserError(
            f"unknown kind of row to drop: '{unknown[0]}'", hint=f"one of {', '.join(DROPS)}"
        )
    imported = read_files(config)
    manifest = write_snapshot(
        imported.panel,
        snapshot_folder(imported.panel.name, home),
        allow_faults=allow_faults or config.allow_faults or {DROPS[name] for name in config.drop},
        replace_existing=replace_existing,
        file_faults=imported.faults,
        locate=imported.locate,
    )
    return ImportResult(manifest, imported.report)


def preview_files(config: FilesConfig) -> ImportReport:
    """Return how an import would read a folder or file, without storing it.

    Raises the same errors as :func:`import_files`.
    """
    return read_files(config).report


def fetch_dataset(
    source: str,
    name: str,
    options: Mapping[str, Any],
    *,
    home: Path | str | None = None,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
    clock: Clock | None = None,
) -> Manifest:
    """Write the panel of a registered source to the store, and return the manifest.

    ``options`` are the fields of the source's ``Config``. ``clock`` decides whether the vendor's
    current day is over. By default it is the clock of the machine.
    """
    loader = make_source(source, options)
    if clock is not None and isinstance(loader, ConnectorSource):
        loader.go_by(clock)
    panel = loader.load()
    return write_snapshot(
        replace(panel, name=name),
        snapshot_folder(name, home),
        allow_faults=allow_faults,
        replace_existing=replace_existing,
    )


def make_source(source: str, options: Mapping[str, Any]) -> Source:
    """Return a configured source by its registered name.

    Raises :class:`UserError` for an unknown source, an unknown option or a wrong value.
    """
    kind = sources.get(source)
    known = kind.Config.__struct_fields__
    instance_of("options", options, Mapping, f"use a dict with keys {', '.join(known)}")
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(
            f"source '{source}' has no option '{unknown[0]}'", hint=f"it has {', '.join(known)}"
        )
    try:
        return kind(msgspec.convert(dict(options), kind.Config, strict=False))
    except msgspec.ValidationError as error:
        raise UserError(
            f"source '{source}': {error}", hint=f"its options are {', '.join(known)}"
        ) from error


def diagnose(data: Path | str | Snapshot | FilesConfig) -> tuple[DataFault, ...]:
    """Return the faults of a snapshot, a folder of bars or a single file, errors first.

    If a snapshot's files were altered, the only fault reports the alteration.
    """
    if isinstance(data, FilesConfig):
        return _diagnose_files(data)
    if isinstance(data, Snapshot):
        return _diagnose_snapshot(data.folder)
    folder = path_from("the data to diagnose", data).expanduser()
    if (folder / MANIFEST_FILE).exists():
        return _diagnose_snapshot(folder)
    return _diagnose_files(FilesConfig(path=str(folder)))


def _diagnose_snapshot(folder: Path) -> tuple[DataFault, ...]:
    try:
        verify_snapshot(folder)
    except DataError as error:
        reason = error.message
        return (DataFault(check="altered snapshot", file=str(folder), row=None, reason=reason),)
    return diagnose_panel(read_panel(folder))


def _diagnose_files(config: FilesConfig) -> tuple[DataFault, ...]:
    return read_files(msgspec.structs.replace(config, allow_faults=True)).diagnose()
