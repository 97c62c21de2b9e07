"""``data doctor``: everything wrong with a folder of files, a file, or a snapshot."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.core.errors import DataError
from tradeassay.data.doctor.panel import diagnose_panel
from tradeassay.data.fault import DataFault
from tradeassay.data.snapshot import Snapshot
from tradeassay.data.store.manifest import MANIFEST_FILE
from tradeassay.data.store.read import read_panel, verify_snapshot
from tradeassay.data.tables.columns import FilesConfig
from tradeassay.data.tables.folder import read_files


def diagnose(what: Path | str | Snapshot | FilesConfig) -> tuple[DataFault, ...]:
    """Return the faults of a snapshot (altered files included), a folder of bars, or one file; errors first.

    ``FilesConfig`` says how to read files where guessing is not enough. Raises a one-line :class:`UserError`
    when a file cannot be understood at all.
    """
    if isinstance(what, Snapshot):
        return _diagnose_snapshot(what.folder)
    if isinstance(what, FilesConfig):
        config = what
    else:
        path = Path(what).expanduser()
        if (path / MANIFEST_FILE).exists():
            return _diagnose_snapshot(path)
        config = FilesConfig(path=str(path))
    return read_files(msgspec.structs.replace(config, allow_faults=True)).diagnose()


def _diagnose_snapshot(folder: Path) -> tuple[DataFault, ...]:
    try:
        verify_snapshot(folder)
    except DataError as error:
        return (DataFault(check="altered snapshot", file=str(folder), row=None, reason=error.message),)
    return diagnose_panel(read_panel(folder))
