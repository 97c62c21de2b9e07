"""The benchmarks of the family, and their named windows."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.account import Participation, venues
from tradeassay.benchmarks.benchmark import Benchmark, NamedWindow, benchmarks, named_window, window_sets
from tradeassay.core.measure import Convention
from tradeassay.core.view import Days
from tradeassay.play import MarketConfig

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
    A window the data has no room for is left out.
    """
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


def _market(venue: str, first: str, last: str, *, index: str | None = "IDX") -> MarketConfig:
    return MarketConfig(
        venue=venue,
        universe=index or "all",
        cash=1_000_000.0,
        first=first,
        last=last,
        max_weight=0.10,
        max_positions=20,
        index=index,
    )


def _benchmark(
    name: str, title: str, description: str, dataset: str, market: MarketConfig, *, news: bool = False
) -> Benchmark:
    """Return one of the family; who trades at the paper's venue follows the paper."""
    convention: Convention = "paper" if market.venue == PAPER_VENUE.id else "sound"
    return Benchmark(
        id=f"{name}-v1",
        # Ids have become -v1; draws keep the word that they were first made from.
        seed_word=f"{name}-v2",
        title=title,
        description=description,
        dataset=dataset,
        market=market,
        convention=convention,
        protocol="ktdfin",
        protocol_params={"convention": convention, **({"news": True} if news else {})},
    )


KTDFIN = _benchmark(
    "ktdfin",
    "KTD-Fin: memory-controlled trading of A-shares",
    "A model trades the members of an index of China A-shares while a mask hides names, dates or both. In "
    "three modes it gets stock ids only, a table of candidates, or six research tools. Without a real "
    "A-share data set in the store it is played on a synthetic market with the same rules.",
    "synthetic/ashare:7",
    _market("ashare-v1", "2022-02-07", "2024-01-31"),
)
KTDFIN_PAPER = _benchmark(
    "ktdfin-paper",
    "KTD-Fin as the paper has it",
    "The same task with the paper's own conventions: names that closed at their price limit are no "
    "candidates, windows as printed, and the paper's definitions of turnover, concentration, abstention "
    "and calibration.",
    "synthetic/ashare:7",
    _market(PAPER_VENUE.id, "2022-02-07", "2024-01-31"),
)
KTDFIN_US = _benchmark(
    "ktdfin-us",
    "KTD-Fin on US stocks with dated news",
    "The same masks, modes and tools on a synthetic US market, with headlines that carry the time they "
    "appeared. What the news is worth was planted and is known.",
    "synthetic/us:7",
    _market("us-v1", "2022-01-10", "2023-12-22"),
    news=True,
)
KTDFIN_US_REAL = _benchmark(
    "ktdfin-us-real",
    "KTD-Fin on S&P 500 names with real news, 2019-2021",
    "The same masks, modes and tools on real closing prices of S&P 500 names, with real headlines about "
    "90 of them. The names were picked with hindsight and only closes exist: good for comparing masks "
    "with each other, not for saying what could have been earned.",
    "sp500-news",
    _market("us-v1", "2019-01-02", "2021-10-14", index=None),
    news=True,
)

for _one in (KTDFIN, KTDFIN_PAPER, KTDFIN_US, KTDFIN_US_REAL):
    benchmarks.add(_one.id, _one)
