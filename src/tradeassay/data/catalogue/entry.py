"""What is known about a packaged dataset before it is downloaded."""

from __future__ import annotations

import fnmatch
import hashlib
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from tradeassay.core.errors import SourceError
from tradeassay.core.registry import Registry
from tradeassay.data.fault import DataFault
from tradeassay.data.panel import Membership, Panel


class WheelFiles:
    """The files of one or more wheels, by their path inside."""

    def __init__(self, wheels: Sequence[Path]) -> None:
        self._where: dict[str, zipfile.ZipFile] = {}
        self._open: list[zipfile.ZipFile] = []
        for wheel in wheels:
            try:
                opened = zipfile.ZipFile(wheel)
            except (zipfile.BadZipFile, OSError) as error:
                raise SourceError(f"{wheel.name} is not a wheel: {error}", hint="try again") from error
            self._open.append(opened)
            self._where |= {name: opened for name in opened.namelist() if not name.endswith("/")}

    def __enter__(self) -> WheelFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._open:
            opened.close()

    def names(self, *patterns: str) -> list[str]:
        found = sorted(
            name for name in self._where if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        )
        if not found:
            raise SourceError(f"no file '{patterns[0]}' in the package", hint="its content has changed; report it")
        return found

    def read(self, pattern: str) -> bytes:
        """Return the bytes of the file that matches; raises :class:`SourceError` when it is broken or absent."""
        name = self.names(pattern)[0]
        try:
            return self._where[name].read(name)
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise SourceError(f"'{name}' in the package is damaged: {error}", hint="try again") from error

    def sha256(self, patterns: Iterable[str]) -> str:
        digest = hashlib.sha256()
        for name in self.names(*patterns):
            content = self.read(name)
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


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


TIMEOUT = 600.0
"""Seconds after which a download is given up."""


def download_wheel(package: str, version: str, folder: Path, *, timeout: float = TIMEOUT) -> Path:
    """Download one wheel by the index that pip is configured for; :class:`SourceError` when that fails."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-input",
        "--disable-pip-version-check",
        "--retries",
        "2",
        "--timeout",
        "30",
        "--dest",
        str(folder),
        f"{package}=={version}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise SourceError(
            f"downloading {package}=={version} took more than {timeout:.0f} s", hint="try again later"
        ) from None
    if done.returncode != 0:
        raise _failure(package, version, done.stderr)
    wheels = sorted(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
    if not wheels:
        raise SourceError(f"pip brought no wheel of {package}=={version}", hint="try again")
    return wheels[0]


def _failure(package: str, version: str, said: str) -> SourceError:
    if "No module named pip" in said:
        return SourceError(
            "pip is not installed here, and it is what downloads packages", hint="python -m ensurepip"
        )
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith("ERROR")]
    last = lines[-1].removeprefix("ERROR:").strip() if lines else "no reason given"
    unreachable = ("Connection", "connection", "resolve", "timed out", "Max retries", "Network is unreachable")
    if any(word in said for word in unreachable):
        return SourceError(
            f"the package index cannot be reached for {package}=={version}",
            hint="check the network; synthetic worlds need none",
        )
    if "No matching distribution" in said:
        return SourceError(
            f"the package index has no wheel of {package}=={version}",
            hint="check pip's index setting; synthetic worlds need none",
        )
    return SourceError(f"pip could not download {package}=={version}: {last}", hint="try again")
