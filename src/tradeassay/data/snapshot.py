"""A stored market: its facts are open to all, its numbers only through as-of views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tradeassay.core.errors import DataError, UserError
from tradeassay.core.time import Instant, parse_day
from tradeassay.core.view import Days
from tradeassay.data.panel import CalendarName, PanelFacts
from tradeassay.data.store.history import History
from tradeassay.data.store.manifest import Manifest, read_manifest
from tradeassay.data.store.read import check_files, verify_snapshot
from tradeassay.data.view import AsOfView, Moment, locate


class Snapshot:
    """An opened snapshot. It can be pickled: the other process opens the same folder."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._manifest = manifest
        self._history = History(folder, manifest)
        opens, closes = self._history.open_times, self._history.close_times
        # Where a session opens at the instant the previous one closes (24/7), its pre-open is that instant.
        before = [max(at - 1, closes[row - 1]) if row else at - 1 for row, at in enumerate(opens)]
        self._clocks: dict[str, list[int]] = {"pre_open": before, "open": opens, "close": closes}

    def __repr__(self) -> str:
        return f"<Snapshot '{self.name}' {self._manifest.first_session}..{self._manifest.last_session}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return open_snapshot, (self._folder,)

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self._manifest.name

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._folder

    @property
    def manifest(self) -> Manifest:
        """What the snapshot says about itself."""
        return self._manifest

    @property
    def sha256(self) -> str:
        """The hash of its content."""
        return self._manifest.sha256

    @property
    def facts(self) -> PanelFacts:
        """What a reader must know about the data."""
        return self._manifest.facts

    @property
    def calendar(self) -> CalendarName:
        """The calendar its sessions follow."""
        return self._manifest.facts.calendar

    @property
    def sessions(self) -> Days:
        """The days of all sessions (a calendar, not market data), read-only."""
        return self._history.sessions

    def rows(self, first: str | None = None, last: str | None = None) -> range:
        """Return the rows of the sessions from ISO day ``first`` to ``last``, both included.

        Raises :class:`UserError` when there are none.
        """
        days = self._history.sessions
        start = 0 if first is None else int(np.searchsorted(days, np.datetime64(parse_day(first), "D")))
        stop = (
            days.size if last is None else int(np.searchsorted(days, np.datetime64(parse_day(last), "D"), "right"))
        )
        if start >= stop:
            raise UserError(
                f"'{self.name}' has no session from {first or 'its start'} to {last or 'its end'}",
                hint=f"it holds {self._manifest.first_session} to {self._manifest.last_session}",
            )
        return range(start, stop)

    def at(self, row: int, moment: Moment) -> AsOfView:
        """Return the view of a moment of the session in ``row``; raises :class:`DataError` for a wrong row."""
        try:
            clocks = self._clocks[moment]
        except KeyError:
            raise UserError(f"no moment '{moment}'", hint="one of pre_open, open, close") from None
        if not 0 <= row < len(clocks):
            raise DataError(f"'{self.name}' has no session in row {row}", hint=f"rows are 0 to {len(clocks) - 1}")
        return AsOfView(self._history, row, moment, clocks[row])

    def as_of(self, clock: Instant) -> AsOfView:
        """Return the view of an instant."""
        row, moment = locate(self._history, clock)
        return AsOfView(self._history, row, moment, clock)


def open_snapshot(folder: Path) -> Snapshot:
    """Open the snapshot in ``folder``.

    The manifest is held to its own hash, and every file to its recorded hash before any of it is decoded (news,
    figures and minutes when they are first asked for). ``verify_snapshot`` computes the content hash as well; so
    does this for a store of an earlier version, whose manifest has no hash of its own. Raises :class:`DataError`
    naming the file that is missing, half-written or altered.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    if not manifest.own_sha256:
        verify_snapshot(folder, again=False)
    try:
        return Snapshot(folder, manifest)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"{folder} does not have the form its manifest says: {error}") from error
