"""The registry of sources, filled with everything the package ships. Vendor libraries load on use."""

from __future__ import annotations

from typing import ClassVar

from tradeassay.core.errors import DataRefused
from tradeassay.data import connectors, synthetic
from tradeassay.data.doctor import DROPS, describe
from tradeassay.data.source import Panel, SourceConfig, sources
from tradeassay.data.tables.columns import FilesConfig

__all__ = ["FilesSource", "PackagedConfig", "PackagedSource", "sources"]

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
        from tradeassay.data.tables.folder import read_files

        imported = read_files(self.config)
        dropped = {DROPS.get(name) for name in self.config.drop}
        errors = tuple(
            fault for fault in imported.faults if fault.severity == "error" and fault.check not in dropped
        )
        if errors and not self.config.allow_faults:
            raise DataRefused(
                f"{self.config.path} has {len(errors)} faults: {describe(errors)}",
                hint="fix the files, or accept the faults explicitly (allow_faults, --allow-faults)",
            )
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
        from tradeassay.data.catalogue.get import load_packaged

        return load_packaged(self.config.name)
