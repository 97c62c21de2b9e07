"""Datasets by name (a stored snapshot, a folder, a synthetic world), and the ways into the store.

Imports read, look for faults, and write: runs then never touch the network or the raw files.

The registry of sources is filled here with everything the package ships; vendor libraries load on use.
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
from tradeassay.core.errors import DataError, DataRefused, UserError
from tradeassay.core.files import data_home as data_home
from tradeassay.core.hashing import sha256_of
from tradeassay.core.registry import did_you_mean
from tradeassay.core.time import Clock
from tradeassay.core.view import Floats
from tradeassay.data import connectors, synthetic
from tradeassay.data.connectors.common import ConnectorSource
from tradeassay.data.doctor import DROPS, describe, diagnose_panel
from tradeassay.data.snapshot import Snapshot, open_snapshot
from tradeassay.data.source import Panel, PanelFacts, Source, SourceConfig, sources
from tradeassay.data.store.manifest import (
    MANIFEST_FILE,
    Manifest,
    read_manifest,
    snapshot_folder as snapshot_folder,
    store_folder as store_folder,
)
from tradeassay.data.store.read import read_panel, verify_snapshot
from tradeassay.data.store.write import write_snapshot
from tradeassay.data.tables.faults import DataFault
from tradeassay.data.tables.files import FilesConfig, ImportReport
from tradeassay.data.tables.folder import read_files

__all__ = ["FilesSource", "PackagedConfig", "PackagedSource", "sources"]

_FEW = 10
"""So many names are told of a store that may hold hundreds."""
_LOADED = (connectors, synthetic)


@sources.register("csv")
@sources.register("parquet")
class FilesSource:
    """OHLCV files of any shape: one file per symbol or one long file, daily or intraday, CSV or Parquet."""

    Config: ClassVar[type[SourceConfig]] = FilesConfig
    summary: ClassVar[str] = "a folder or file of OHLCV bars; column names are guessed and shown"
    extra: ClassVar[str | None] = None

    def __init__(self, config: FilesConfig) -> None:
        self.config = config

    def load(self) -> Panel:
        imported = read_files(self.config)
        dropped = {DROPS.get(name) for name in self.config.drop}
        errors = tuple(
            fault for fault in imported.faults if fault.severity == "error" and fault.check not in dropped
        )
        if errors and not self.config.allow_faults:
            problem = f"{self.config.path} has {len(errors)} faults: {describe(errors)}"
            raise DataRefused(problem, hint="fix the files, or accept the faults explicitly (allow_faults=True)")
        return imported.panel


class PackagedConfig(SourceConfig, frozen=True, kw_only=True):
    """Which dataset of the catalogue."""

    name: str


@sources.register("packaged")
class PackagedSource:
    """Real market data inside packages of the package index."""

    Config: ClassVar[type[SourceConfig]] = PackagedConfig
    summary: ClassVar[str] = "real market data inside packages of the package index (see 'data list')"
    extra: ClassVar[str | None] = None

    def __init__(self, config: PackagedConfig) -> None:
        self.config = config

    def load(self) -> Panel:
        from tradeassay.data.catalogue.recipes import load_packaged

        return load_packaged(self.config.name)


_SYNTHETIC = re.compile(r"synthetic/(?P<preset>[a-z][a-z0-9_-]*):(?P<seed>\d{1,18})")
_PATHS = ("/", "./", "../", "~")


class DatasetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One stored dataset, for listings. ``problem`` says why it cannot be opened, None when it can."""

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
    """Open a dataset: ``synthetic/<preset>:<seed>`` is made on first use and kept, a path is opened in place,
    anything else is looked up in the store."""
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
    """Open a dataset of the store or a synthetic world, never a folder: for names that somebody else wrote down,
    who could send a folder along."""
    if match := _SYNTHETIC.fullmatch(name):
        return _synthetic(name, match["preset"], int(match["seed"]), home)
    if name.startswith("synthetic/"):
        raise UserError(f"'{name}' is not a synthetic world", hint="write e.g. synthetic/us:7 (preset:seed)")
    if name.startswith(_PATHS):
        raise UserError(f"'{name}' is a folder, not data of the store", hint="import it and start the run again")
    folder = snapshot_folder(name, home)
    if not (folder / MANIFEST_FILE).exists():
        from tradeassay.data.catalogue.recipes import list_catalogue

        packaged = [entry.name for entry in list_catalogue()]
        if name in packaged:
            raise UserError(f"the packaged dataset '{name}' is not stored yet", hint=f"tradeassay data get {name}")
        stored = [info.name for info in list_datasets(home)]
        more = f" and {len(stored) - _FEW} more" if len(stored) > _FEW else ""
        near = did_you_mean(name, [*stored, *packaged], f"stored: {', '.join(stored[:_FEW]) or 'none'}{more}")
        raise UserError(f"no dataset '{name}' in {store_folder(home)}", hint=f"{near}; see 'tradeassay data list'")
    return open_snapshot(folder)


def read_stored_index(dataset: str, index: str, home: Path | str | None) -> tuple[list[str], Floats]:
    """Return the days and the levels of an index of a stored data set."""
    snapshot = load_stored(dataset, home)
    view = snapshot.at(len(snapshot.sessions) - 1, "close")
    return view.sessions().astype(str).tolist(), view.index_levels(index)


def load_proven(name: str, home: Path | str | None = None) -> Snapshot:
    """Open what :func:`load_stored` opens; a synthetic world is made again, and the stored one must be it: whoever
    edits the store can hash it again too."""
    snapshot = load_stored(name, home)
    if _SYNTHETIC.fullmatch(name) and (snapshot.sha256, snapshot.facts) != _made_again(name):
        problem = f"the stored world '{name}' is not the one that its seed gives"
        raise DataError(problem, hint=f"delete {snapshot.folder}: it is made anew on its next use")
    return snapshot


def seeded_sha256(name: str) -> str | None:
    """Return the hash of a synthetic world as its seed gives it; None for any other data."""
    return _made_again(name)[0] if _SYNTHETIC.fullmatch(name) else None


def _synthetic(name: str, preset: str, seed: int, home: Path | str | None) -> Snapshot:
    folder = store_folder(home) / "synthetic" / _world_folder(preset, seed)
    if not (folder / MANIFEST_FILE).exists():
        world = synthetic.generate(synthetic.preset(preset, seed=seed))
        write_snapshot(replace(world.panel, name=name), folder)
    return open_snapshot(folder)


@lru_cache(maxsize=64)
def _world_folder(preset: str, seed: int) -> str:
    key = sha256_of({"generator": synthetic.VERSION, "config": synthetic.preset(preset, seed=seed)})[:16]
    return f"{preset}-{seed}-{key}"


@lru_cache(maxsize=64)
def _made_again(name: str) -> tuple[str, PanelFacts]:
    with TemporaryDirectory(prefix="tradeassay-") as empty:
        made = load_stored(name, Path(empty))
        return made.sha256, made.facts


def list_datasets(home: Path | str | None = None) -> tuple[DatasetInfo, ...]:
    folders = []
    for folder in store_folder(home).glob("[!.]*"):
        if (folder / MANIFEST_FILE).exists():
            folders.append(folder)
        else:  # data sets of one kind, such as the synthetic worlds
            folders += [one for one in folder.glob("[!.]*") if one.is_dir()]
    found = []
    for folder in folders:
        try:
            manifest = read_manifest(folder)
        except DataError as error:
            found.append(DatasetInfo(name=folder.name, kind="unknown", problem=error.message))
            continue
        shapes = {name: getattr(manifest.shapes, name) for name in ("instruments", "sessions", "minutes", "news")}
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
        found.append(info)
    return tuple(sorted(found, key=lambda info: info.name))


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A stored import: what it is, and what had to be guessed."""

    manifest: Manifest
    report: ImportReport


def import_files(
    config: FilesConfig | Path | str,
    *,
    home: Path | str | None = None,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
) -> ImportResult:
    """Import a folder or file of bars under ``config.name`` (default: the folder's); :class:`DataRefused` for
    faults. A path alone is a config with nothing else in it."""
    if not isinstance(config, FilesConfig):
        config = FilesConfig(path=str(path_from("a folder or file of bars", config)))
    if unknown := sorted(set(config.drop) - set(DROPS)):
        raise UserError(f"rows cannot be dropped as '{unknown[0]}'", hint=f"one of {', '.join(DROPS)}")
    imported = read_files(config)
    manifest = write_snapshot(
        imported.panel,
        snapshot_folder(imported.panel.name, home),
        allow_faults=allow_faults or config.allow_faults or {DROPS[name] for name in config.drop},
        replace_existing=replace_existing,
        found=imported.faults,
        locate=imported.locate,
    )
    return ImportResult(manifest, imported.report)


def preview_files(config: FilesConfig) -> ImportReport:
    """Return how a folder or file would be understood, without storing anything; raises as the import does."""
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
    """Store the panel of a registered source; ``options`` are the fields of its ``Config``. A vendor's day is over
    by ``clock`` (None: the machine's).
    """
    ready = make_source(source, options)
    if clock is not None and isinstance(ready, ConnectorSource):
        ready.go_by(clock)
    panel = ready.load()
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
    instance_of("options", options, Mapping, f"give a dict of {', '.join(known)}")
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(f"source '{source}' has no option '{unknown[0]}'", hint=f"it has {', '.join(known)}")
    try:
        return kind(msgspec.convert(dict(options), kind.Config, strict=False))
    except msgspec.ValidationError as error:
        raise UserError(f"source '{source}': {error}", hint=f"its options are {', '.join(known)}") from error


def diagnose(what: Path | str | Snapshot | FilesConfig) -> tuple[DataFault, ...]:
    """Return the faults of a snapshot (altered files included), a folder of bars, or one file; errors first."""
    if not isinstance(what, FilesConfig):
        folder = what.folder if isinstance(what, Snapshot) else path_from("what is diagnosed", what).expanduser()
        if isinstance(what, Snapshot) or (folder / MANIFEST_FILE).exists():
            try:
                verify_snapshot(folder)
            except DataError as error:
                return (DataFault(check="altered snapshot", file=str(folder), row=None, reason=error.message),)
            return diagnose_panel(read_panel(folder))
        what = FilesConfig(path=str(folder))
    return read_files(msgspec.structs.replace(what, allow_faults=True)).diagnose()
