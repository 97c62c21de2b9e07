"""Define KTD-Fin's windows and venue."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.core.arrays import Days
from tradeassay.core.measure import Convention
from tradeassay_bench.account import Participation, venues
from tradeassay_bench.benchmarks.benchmark import NamedWindow, named_window, window_sets

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot


SHORT = 43
"""Number of sessions in W1 to W10 under ``corrected``, as stated in the paper."""
WARM_UP = 252
"""Number of sessions required before a window, so that every factor has a value."""
NEWS_BEGUN = 0.05
"""Share of all headlines that must be published before news counts as available. Vendors have a few
stray headlines from earlier years.
"""
LONG = "long"


class PaperWindow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A window as published. ``sessions`` is its length on the Shanghai calendar."""

    code: str
    first: str
    last: str
    sessions: int
    regime: str

    def length(self, convention: Convention) -> int:
        """Return the number of sessions in the window under a convention."""
        return self.sessions if convention == "paper" or self.code == LONG else SHORT


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    window: tuple[PaperWindow, ...]


@cache
def paper_windows() -> tuple[PaperWindow, ...]:
    """Return the windows of the paper."""
    content = (files(__package__) / "windows.toml").read_bytes()
    return msgspec.toml.decode(content, type=_File).window


@window_sets.register("ktdfin")
def windows(snapshot: Snapshot, convention: Convention) -> tuple[NamedWindow, ...]:
    """Return the windows available in a dataset.

    If real A-share data covers a published window, its dates are used. Under ``paper`` the window
    extends from the first to the last published day. Under ``corrected`` it has 43 sessions from
    the first day. The long window always has its published dates.

    In all other data a window is *structural*: it has the published length but other dates. The ten
    short windows are spread evenly over the sessions after a year of history. In real data they
    also start after the first news. The long window is as long as the data allows. A window that
    does not fit into the data is skipped.
    """
    is_real = snapshot.facts.kind == "real"
    has_printed_dates = is_real and snapshot.calendar == "XSHG"
    begin = max(WARM_UP, snapshot.news_begin(NEWS_BEGUN)) if is_real else WARM_UP
    available = []
    for place, paper_window in enumerate(paper_windows()):
        window = None
        if has_printed_dates:
            window = _as_printed(paper_window, snapshot.sessions, convention)
        if window is None:
            window = _structural(place, paper_window, snapshot.sessions, convention, begin)
        if window is not None:
            available.append(window)
    return tuple(available)


def _as_printed(window: PaperWindow, sessions: Days, convention: Convention) -> NamedWindow | None:
    """Return a window on its published dates, or None if the data does not cover them."""
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
    """Return a window of the published length on other dates, or None if it does not fit."""
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
    return named_window(
        window.code, sessions, range(start, start + length), regime, structural=True
    )


PAPER_VENUE = msgspec.structs.replace(
    venues.get("ashare-flat-v1"),
    id="ashare-ktdfin-v1",
    title="China A-shares as KTD-Fin has them: T+1, price limits, no limit by volume",
    participation=Participation(),
)
"""The paper's execution layer: lots, T+1, price limits and costs, but no volume limit."""
venues.add(PAPER_VENUE.id, PAPER_VENUE)
