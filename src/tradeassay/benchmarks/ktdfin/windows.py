"""The windows W1 to W10 and the long one: as printed, or their structural equivalents on other data."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.benchmarks.windows import NamedWindow, window_sets
from tradeassay.core.badges import Convention
from tradeassay.core.view import Days

if TYPE_CHECKING:
    from tradeassay.data import Snapshot

SHORT = 43
"""Sessions of W1 to W10 under ``sound``: what the paper says of all of them."""
WARM_UP = 252
"""Sessions of history that must lie before a window, so that every factor has a value."""
LONG = "long"


class PaperWindow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A window as printed; ``sessions`` is what its dates give on the Shanghai calendar."""

    code: str
    first: str
    last: str
    sessions: int
    regime: str

    def length(self, convention: Convention) -> int:
        """Return how many sessions the window has under a convention."""
        return self.sessions if convention == "paper" or self.code == LONG else SHORT


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    window: tuple[PaperWindow, ...]


@cache
def paper_windows() -> tuple[PaperWindow, ...]:
    """Return the windows of the paper."""
    return msgspec.toml.decode((files(__package__) / "windows.toml").read_bytes(), type=_File).window


@window_sets.register("ktdfin")
def windows(snapshot: Snapshot, convention: Convention) -> tuple[NamedWindow, ...]:
    """Return the windows on a data set.

    Real A-shares that cover a window's dates are played on these dates: ``paper`` from the first to the last
    printed day, ``sound`` 43 sessions from the first (the long window always as printed). On all other data a
    window is *structural*: as many sessions as the published one, the ten spread evenly over what lies behind a
    year of history, the long one as long as the data allows. A window the data has no room for is left out.
    """
    real = snapshot.facts.kind == "real" and snapshot.calendar == "XSHG"
    placed = (_as_printed(window, snapshot.sessions, convention) if real else None for window in paper_windows())
    found = (
        window or _structural(place, paper, snapshot.sessions, convention)
        for place, (window, paper) in enumerate(zip(placed, paper_windows(), strict=True))
    )
    return tuple(window for window in found if window is not None)


def _as_printed(window: PaperWindow, sessions: Days, convention: Convention) -> NamedWindow | None:
    start = int(np.searchsorted(sessions, np.datetime64(window.first, "D")))
    if convention == "paper" or window.code == LONG:
        stop = int(np.searchsorted(sessions, np.datetime64(window.last, "D"), side="right"))
        covered = stop < sessions.size or (stop > 0 and str(sessions[stop - 1]) == window.last)
    else:
        stop = start + window.length(convention)
        covered = stop <= sessions.size
    if not covered or start < WARM_UP or stop <= start:
        return None
    return _window(window, sessions, range(start, stop), structural=False)


def _structural(place: int, window: PaperWindow, sessions: Days, convention: Convention) -> NamedWindow | None:
    room = sessions.size - WARM_UP
    length = window.length(convention)
    if window.code == LONG:
        length = min(length, room)
        return _window(window, sessions, range(WARM_UP, WARM_UP + length), structural=True) if room > 0 else None
    if room < length:
        return None
    others = len(paper_windows()) - 2
    start = WARM_UP + round(place * (room - length) / others)
    return _window(window, sessions, range(start, start + length), structural=True)


def _window(window: PaperWindow, sessions: Days, rows: range, *, structural: bool) -> NamedWindow:
    label = f"{window.code} (structural, {len(rows)} sessions)" if structural else window.code
    return NamedWindow(
        code=window.code,
        label=label,
        first=str(sessions[rows.start]),
        last=str(sessions[rows.stop - 1]),
        sessions=len(rows),
        structural=structural,
        regime="whatever the data holds there" if structural else window.regime,
    )
