"""Sources, calendars, the point-in-time store and synthetic worlds. Other rooms see only as-of views.

Importing this package loads neither pyarrow nor pandas; every name is fetched on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.data.calendars import Sessions as Sessions, sessions_between as sessions_between
    from tradeassay.data.catalogue.recipes import (
        CatalogueEntry as CatalogueEntry,
        get_dataset as get_dataset,
        get_side_tables as get_side_tables,
        list_catalogue as list_catalogue,
    )
    from tradeassay.data.datasets import (
        DatasetInfo as DatasetInfo,
        ImportResult as ImportResult,
        data_home as data_home,
        diagnose as diagnose,
        fetch_dataset as fetch_dataset,
        import_files as import_files,
        list_datasets as list_datasets,
        load_dataset as load_dataset,
        load_proven as load_proven,
        make_source as make_source,
        preview_files as preview_files,
        sources as sources,
    )
    from tradeassay.data.snapshot import AsOfView as AsOfView, Snapshot as Snapshot, open_snapshot as open_snapshot
    from tradeassay.data.source import (
        Listing as Listing,
        Membership as Membership,
        MinutePanel as MinutePanel,
        Panel as Panel,
        PanelFacts as PanelFacts,
        Source as Source,
        SourceConfig as SourceConfig,
    )
    from tradeassay.data.splice import SplicedSnapshot as SplicedSnapshot
    from tradeassay.data.store.manifest import Manifest as Manifest
    from tradeassay.data.store.read import verify_snapshot as verify_snapshot
    from tradeassay.data.store.write import write_snapshot as write_snapshot
    from tradeassay.data.tables.columns import parse_columns as parse_columns
    from tradeassay.data.tables.faults import DataFault as DataFault
    from tradeassay.data.tables.files import FilesConfig as FilesConfig, ImportReport as ImportReport
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
