"""KTD-Fin's windows and its venue."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.account import Participation, venues
from tradeassay.benchmarks.benchmark import NamedWindow, named_window, window_sets
from tradeassay.core.measure import Convention
from tradeassay.core.view import Days

if TYPE_CHECKING:
    from tradeassay.data import Snapshot


SHORT = 43
"""Sessions of W1 to W10 under ``sound``: what the paper says of all of them."""
WARM_UP = 252
"""Sessions of history that must precede a window, so that every factor has a value."""
NEWS_BEGUN = 0.05
"""News has begun when this share of all headlines is out: vendors have a few stray ones from years before."""
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
    window is *structural*: as many sessions as the published one, the ten spread evenly over what follows a year
    of history (and the beginning of the news, where real data has any), the long one as long as the data allows.
    A window the data has no room for is left out."""
    real = snapshot.facts.kind == "real"
    printed = real and snapshot.calendar == "XSHG"
    begin = max(WARM_UP, snapshot.news_begin(NEWS_BEGUN)) if real else WARM_UP
    placed = (
        _as_printed(window, snapshot.sessions, convention) if printed else None for window in paper_windows()
    )
    found = (
        window or _structural(place, paper, snapshot.sessions, convention, begin)
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
    return named_window(window.code, sessions, range(start, stop), window.regime, structural=False)


def _structural(
    place: int, window: PaperWindow, sessions: Days, convention: Convention, begin: int
) -> NamedWindow | None:
    room = sessions.size - begin
    length = window.length(convention)
    start = begin
    if window.code == LONG:
        length = min(length, room)
    else:
        others = len(paper_windows()) - 2
        start += round(place * (room - length) / others)
    if not 0 < length <= room:
        return None
    regime = "whatever the data holds there"
    return named_window(window.code, sessions, range(start, start + length), regime, structural=True)


PAPER_VENUE = msgspec.structs.replace(
    venues.get("ashare-flat-v1"),
    id="ashare-ktdfin-v1",
    title="China A-shares as KTD-Fin has them: T+1, price limits, no limit by volume",
    participation=Participation(),
)
"""The paper's execution layer: it knows lots, T+1, price limits and costs, and no share of the day's volume."""
venues.add(PAPER_VENUE.id, PAPER_VENUE)
