"""The registry of sources, filled with everything the package ships. Vendor libraries load on use."""

from __future__ import annotations

from tradeassay.data import connectors, synthetic
from tradeassay.data.catalogue import catalogue_source as _packaged
from tradeassay.data.files import file_source as _files
from tradeassay.data.source import sources

__all__ = ["sources"]

_LOADED = (connectors, synthetic, _packaged, _files)
