"""The registry of sources with everything that comes with the package in it. Vendor libraries load on use."""

from __future__ import annotations

from tradeassay.data import connectors, synthetic
from tradeassay.data.catalogue import source as _packaged
from tradeassay.data.files import source as _files
from tradeassay.data.source import sources

__all__ = ["sources"]

_LOADED = (connectors, synthetic, _packaged, _files)
