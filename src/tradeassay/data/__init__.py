"""Sources, calendars, the point-in-time store and synthetic worlds. Outside, only as-of views exist.

Importing this package loads neither pyarrow nor pandas; every name is fetched on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.data.calendars import Sessions as Sessions
    from tradeassay.data.calendars import sessions_between as sessions_between
    from tradeassay.data.datasets import DatasetInfo as DatasetInfo
    from tradeassay.data.datasets import list_datasets as list_datasets
    from tradeassay.data.datasets import load_dataset as load_dataset
    from tradeassay.data.fault import Fault as Fault
    from tradeassay.data.home import home_folder as home_folder
    from tradeassay.data.panel import Listing as Listing
    from tradeassay.data.panel import Membership as Membership
    from tradeassay.data.panel import MinutePanel as MinutePanel
    from tradeassay.data.panel import Panel as Panel
    from tradeassay.data.panel import PanelFacts as PanelFacts
    from tradeassay.data.snapshot import Snapshot as Snapshot
    from tradeassay.data.snapshot import open_snapshot as open_snapshot
    from tradeassay.data.source import Source as Source
    from tradeassay.data.source import SourceConfig as SourceConfig
    from tradeassay.data.store.manifest import Manifest as Manifest
    from tradeassay.data.store.read import verify_snapshot as verify_snapshot
    from tradeassay.data.store.write import write_snapshot as write_snapshot
    from tradeassay.data.view import AsOfView as AsOfView

_WHERE = {
    "AsOfView": "view",
    "DatasetInfo": "datasets",
    "Fault": "fault",
    "Listing": "panel",
    "Manifest": "store.manifest",
    "Membership": "panel",
    "MinutePanel": "panel",
    "Panel": "panel",
    "PanelFacts": "panel",
    "Sessions": "calendars",
    "Snapshot": "snapshot",
    "Source": "source",
    "SourceConfig": "source",
    "home_folder": "home",
    "list_datasets": "datasets",
    "load_dataset": "datasets",
    "open_snapshot": "snapshot",
    "sessions_between": "calendars",
    "verify_snapshot": "store.read",
    "write_snapshot": "store.write",
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
