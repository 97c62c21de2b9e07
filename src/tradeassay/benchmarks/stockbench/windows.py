"""The windows of StockBench: the paper's own dates, other years, and a falling and a rising market."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.benchmarks.windows import NamedWindow, window_sets
from tradeassay.core.badges import Convention

if TYPE_CHECKING:
    from tradeassay.data import Snapshot
    from tradeassay.data.synthetic import SyntheticConfig

LENGTH = 83
"""Sessions of the paper's window (opens of 2025-03-03 to 2025-06-30)."""
WARM_UP = 252
"""Sessions of history that lie before a window, so that 52-week figures exist."""
_DATED = (
    ("main", "2025-03-03", "2025-06-30", "a fall and a rebound"),
    ("2008", "2008-01-02", "2008-12-31", "a crash"),
    ("2020", "2020-01-02", "2020-12-31", "a crash and a rebound"),
    ("2021", "2021-01-04", "2021-12-31", "a rising market"),
)
_REGIMES = (("main", "v", "a fall and a rebound"), ("down", "bear", "a falling market"),
            ("up", "bull", "a rising market"))  # fmt: skip


class _World(msgspec.Struct, frozen=True):
    preset: str
    seed: int


@window_sets.register("stockbench")
def windows(snapshot: Snapshot, convention: Convention) -> tuple[NamedWindow, ...]:
    """Return the windows on a data set; both conventions have the same.

    On a ready-made synthetic world they are the middle of its planted regimes. On other data they are the dated
    ones that it covers, and the worst and the best stretch of the paper's length, which are found with hindsight:
    good for asking how agents behave in them, not for an average over markets.
    """
    if snapshot.facts.kind == "synthetic":
        return _planted(snapshot)
    return (*_dated(snapshot), *_extremes(snapshot))


def regime_rows(config: SyntheticConfig) -> tuple[tuple[str, range], ...]:
    """Return the regimes of a synthetic world with their rows."""
    spans = config.market.regimes
    whole = sum(span.share for span in spans)
    edges = [0]
    for place in range(len(spans)):
        passed = sum(span.share for span in spans[: place + 1])
        edges.append(min(config.sessions, round(config.sessions * passed / whole)))
    edges[-1] = config.sessions
    return tuple((str(span.kind), range(*edges[place : place + 2])) for place, span in enumerate(spans))


def _planted(snapshot: Snapshot) -> tuple[NamedWindow, ...]:
    from tradeassay.data.synthetic import preset

    try:
        config = preset(msgspec.json.decode(snapshot.facts.query, type=_World).preset)
    except msgspec.MsgspecError:
        return _extremes(snapshot)
    if config.sessions != len(snapshot.sessions):
        # A world of another length has its regimes elsewhere.
        return _extremes(snapshot)
    found = []
    for code, kind, words in _REGIMES:
        fitting = [rows for name, rows in regime_rows(config) if name == kind and rows.start >= WARM_UP]
        if fitting and len(fitting[0]) >= LENGTH:
            start = fitting[0].start + (len(fitting[0]) - LENGTH) // 2
            found.append(_window(snapshot, code, range(start, start + LENGTH), words, structural=True))
    return tuple(found)


def _dated(snapshot: Snapshot) -> tuple[NamedWindow, ...]:
    sessions, found = snapshot.sessions, []
    for code, first, last, words in _DATED:
        start = int(np.searchsorted(sessions, np.datetime64(first, "D")))
        stop = int(np.searchsorted(sessions, np.datetime64(last, "D"), side="right"))
        covered = sessions.size > 0 and str(sessions[0]) <= first and str(sessions[-1]) >= last
        if covered and stop > start:
            found.append(_window(snapshot, code, range(start, stop), words, structural=False))
    return tuple(found)


def _extremes(snapshot: Snapshot) -> tuple[NamedWindow, ...]:
    """Return the stretches in which the names fell and rose most, on average and from open to open."""
    rows = len(snapshot.sessions)
    if rows < WARM_UP + LENGTH:
        return ()
    view = snapshot.at(rows - 1, "close")
    opens = view.bars("open", adjust="total")
    with np.errstate(invalid="ignore"):
        gains = opens[WARM_UP + LENGTH - 1 :] / opens[WARM_UP : rows - LENGTH + 1] - 1.0
    known = np.isfinite(gains)
    mean = np.where(known, gains, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    picks = (("down", int(np.argmin(mean)), "the worst stretch, found with hindsight"),
             ("up", int(np.argmax(mean)), "the best stretch, found with hindsight"))  # fmt: skip
    return tuple(
        _window(snapshot, code, range(WARM_UP + at, WARM_UP + at + LENGTH), words, structural=True)
        for code, at, words in picks
    )


def _window(snapshot: Snapshot, code: str, rows: range, words: str, *, structural: bool) -> NamedWindow:
    return NamedWindow(
        code=code,
        label=f"{code} (structural, {len(rows)} sessions)" if structural else code,
        first=str(snapshot.sessions[rows.start]),
        last=str(snapshot.sessions[rows.stop - 1]),
        sessions=len(rows),
        structural=structural,
        regime=words,
    )
