"""Provide market data: sources, calendars, the point-in-time store and synthetic worlds.

Other packages read market data only through as-of views. Importing this package loads neither
pyarrow nor pandas. Each public name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from tradeassay.tables.faults import DataFault as DataFault
    from tradeassay_bench.data.calendars import (
        Sessions as Sessions,
        sessions_between as sessions_between,
    )
    from tradeassay_bench.data.catalogue.recipes import (
        CatalogueEntry as CatalogueEntry,
        get_dataset as get_dataset,
        get_side_tables as get_side_tables,
        list_catalogue as list_catalogue,
    )
    from tradeassay_bench.data.datasets import (
        DatasetInfo as DatasetInfo,
        ImportResult as ImportResult,
        data_home as data_home,
        diagnose as diagnose,
        fetch_dataset as fetch_dataset,
        import_files as import_files,
        list_datasets as list_datasets,
        load_dataset as load_dataset,
        load_verified as load_verified,
        make_source as make_source,
        preview_files as preview_files,
        sources as sources,
    )
    from tradeassay_bench.data.snapshot import (
        AsOfView as AsOfView,
        Snapshot as Snapshot,
        open_snapshot as open_snapshot,
    )
    from tradeassay_bench.data.source import (
        Listing as Listing,
        Membership as Membership,
        MinutePanel as MinutePanel,
        Panel as Panel,
        PanelFacts as PanelFacts,
        Source as Source,
        SourceConfig as SourceConfig,
    )
    from tradeassay_bench.data.splice import SplicedSnapshot as SplicedSnapshot
    from tradeassay_bench.data.store.manifest import Manifest as Manifest
    from tradeassay_bench.data.store.read import (
        read_panel as read_panel,
        verify_snapshot as verify_snapshot,
    )
    from tradeassay_bench.data.store.write import write_snapshot as write_snapshot
    from tradeassay_bench.data.tables.columns import parse_columns as parse_columns
    from tradeassay_bench.data.tables.files import (
        FilesConfig as FilesConfig,
        ImportReport as ImportReport,
    )
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.data.calendars": ["Sessions", "sessions_between"],
            "tradeassay_bench.data.catalogue.recipes": [
                "CatalogueEntry",
                "get_dataset",
                "get_side_tables",
                "list_catalogue",
            ],
            "tradeassay_bench.data.datasets": [
                "DatasetInfo",
                "ImportResult",
                "data_home",
                "diagnose",
                "fetch_dataset",
                "import_files",
                "list_datasets",
                "load_dataset",
                "load_verified",
                "make_source",
                "preview_files",
                "sources",
            ],
            "tradeassay_bench.data.snapshot": ["AsOfView", "Snapshot", "open_snapshot"],
            "tradeassay_bench.data.source": [
                "Listing",
                "Membership",
                "MinutePanel",
                "Panel",
                "PanelFacts",
                "Source",
                "SourceConfig",
            ],
            "tradeassay_bench.data.splice": ["SplicedSnapshot"],
            "tradeassay_bench.data.store.manifest": ["Manifest"],
            "tradeassay_bench.data.store.read": ["read_panel", "verify_snapshot"],
            "tradeassay_bench.data.store.write": ["write_snapshot"],
            "tradeassay_bench.data.tables.columns": ["parse_columns"],
            "tradeassay.tables.faults": ["DataFault"],
            "tradeassay_bench.data.tables.files": ["FilesConfig", "ImportReport"],
        },
    )
