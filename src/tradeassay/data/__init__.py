"""Sources, calendars, the point-in-time store and synthetic worlds. Other rooms see only as-of views.

Importing this package loads neither pyarrow nor pandas; every name is fetched on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.data.calendars import Sessions as Sessions
    from tradeassay.data.calendars import sessions_between as sessions_between
    from tradeassay.data.catalogue.recipes import CatalogueEntry as CatalogueEntry
    from tradeassay.data.catalogue.recipes import get_dataset as get_dataset
    from tradeassay.data.catalogue.recipes import get_side_tables as get_side_tables
    from tradeassay.data.catalogue.recipes import list_catalogue as list_catalogue
    from tradeassay.data.datasets import DatasetInfo as DatasetInfo
    from tradeassay.data.datasets import ImportResult as ImportResult
    from tradeassay.data.datasets import data_home as data_home
    from tradeassay.data.datasets import diagnose as diagnose
    from tradeassay.data.datasets import fetch_dataset as fetch_dataset
    from tradeassay.data.datasets import import_files as import_files
    from tradeassay.data.datasets import list_datasets as list_datasets
    from tradeassay.data.datasets import load_dataset as load_dataset
    from tradeassay.data.datasets import load_proven as load_proven
    from tradeassay.data.datasets import load_stored as load_stored
    from tradeassay.data.datasets import make_source as make_source
    from tradeassay.data.datasets import preview_files as preview_files
    from tradeassay.data.datasets import sources as sources
    from tradeassay.data.doctor import DataFault as DataFault
    from tradeassay.data.snapshot import AsOfView as AsOfView
    from tradeassay.data.snapshot import Snapshot as Snapshot
    from tradeassay.data.snapshot import open_snapshot as open_snapshot
    from tradeassay.data.source import Listing as Listing
    from tradeassay.data.source import Membership as Membership
    from tradeassay.data.source import MinutePanel as MinutePanel
    from tradeassay.data.source import Panel as Panel
    from tradeassay.data.source import PanelFacts as PanelFacts
    from tradeassay.data.source import Source as Source
    from tradeassay.data.source import SourceConfig as SourceConfig
    from tradeassay.data.splice import SplicedSnapshot as SplicedSnapshot
    from tradeassay.data.store.manifest import Manifest as Manifest
    from tradeassay.data.store.read import verify_snapshot as verify_snapshot
    from tradeassay.data.store.write import write_snapshot as write_snapshot
    from tradeassay.data.tables.columns import FilesConfig as FilesConfig
    from tradeassay.data.tables.columns import ImportReport as ImportReport
    from tradeassay.data.tables.columns import parse_columns as parse_columns
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
