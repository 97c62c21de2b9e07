"""A cache of a few open data sets: consecutive episodes mostly read the same one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from tradeassay.core.errors import RunError
from tradeassay.data import Snapshot, load_dataset


@lru_cache(maxsize=2)
def snapshot_for(dataset: str, home: str | None, sha256: str) -> Snapshot:
    """Open a data set; raises :class:`RunError` when its content is not what the run was started with."""
    snapshot = load_dataset(dataset, Path(home) if home else None)
    if snapshot.sha256 != sha256:
        raise RunError(
            f"data set '{dataset}' has changed (sha256 {sha256[:12]} is now {snapshot.sha256[:12]})",
            hint="bring it back as it was, or start a new run",
        )
    return snapshot
