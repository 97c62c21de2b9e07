"""A cache of a few open data sets: consecutive episodes mostly read the same one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from tradeassay.benchmarks import find_window
from tradeassay.core.errors import RunError
from tradeassay.core.measure import Convention
from tradeassay.data import Snapshot, load_dataset, verify_snapshot
from tradeassay.play import Market, MarketConfig
from tradeassay.runs.store.manifest import DatasetEntry, window_key


class WantedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A named window to be found on a data set."""

    protocol: str
    convention: Convention
    code: str


class PrepareTask(msgspec.Struct, frozen=True, kw_only=True, tag="prepare"):
    """Prepare a data set for reading (generate a synthetic world), describe it, and check that it can be played.

    ``markets`` are the ways in which it will be played, ``windows`` the named windows that it must have.
    """

    dataset: str
    home: str | None
    markets: tuple[MarketConfig, ...]
    windows: tuple[WantedWindow, ...] = ()


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


def describe(task: PrepareTask) -> DatasetEntry:
    """Open a data set, generating it if it is synthetic and new, and describe it; see :func:`describe_open`."""
    return describe_open(load_dataset(task.dataset, Path(task.home) if task.home else None), task)


def describe_open(snapshot: Snapshot, task: PrepareTask) -> DatasetEntry:
    """Describe an open data set.

    Raises :class:`DataError` when a file or a note of the manifest was altered, and whatever a market raises that
    cannot be played on it: a window without sessions, an unknown index, no such named window.
    """
    verify_snapshot(snapshot.folder, again=False)
    for market in task.markets:
        Market(snapshot, market)
    return entry_of(snapshot, task.windows)


def entry_of(snapshot: Snapshot, windows: Sequence[WantedWindow] = ()) -> DatasetEntry:
    """Describe an open data set; raises :class:`DataError` when it has no such window."""
    return DatasetEntry(
        name=snapshot.name,
        sha256=snapshot.sha256,
        facts=snapshot.facts,
        sessions=tuple(str(day) for day in snapshot.sessions),
        windows={
            window_key(one.protocol, one.convention, one.code): find_window(
                one.protocol, one.code, snapshot, one.convention
            )
            for one in windows
        },
    )
