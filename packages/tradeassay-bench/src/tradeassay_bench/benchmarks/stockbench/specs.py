"""Define StockBench's windows, venue and universe."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.measure import Convention
from tradeassay_bench.account import Cash, Fees, Lots, Venue, venues
from tradeassay_bench.benchmarks.benchmark import NamedWindow, named_window, window_sets

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot
    from tradeassay_bench.data.synthetic import SyntheticConfig


LENGTH = 83
"""Number of sessions in the paper's window (opens of 2025-03-03 to 2025-06-30)."""
WARM_UP = 252
"""Number of sessions required before a window, so that it has 52-week figures."""
# A report about the paper names its regimes by month. The first and last sessions are ours.
_DATED = (
    ("main", "2025-03-03", "2025-06-30", "a fall and a rebound"),
    (
        "down-2025",
        "2025-01-02",
        "2025-04-30",
        "the paper's falling market, January to April (at second hand)",
    ),
    (
        "up-2025",
        "2025-05-01",
        "2025-08-29",
        "the paper's rising market, May to August (at second hand)",
    ),
    ("2008", "2008-01-02", "2008-12-31", "a crash"),
    ("2020", "2020-01-02", "2020-12-31", "a crash and a rebound"),
    ("2021", "2021-01-04", "2021-12-31", "a rising market"),
)
_REGIMES = (
    ("main", "v", "a fall and a rebound"),
    ("down", "bear", "a falling market"),
    ("up", "bull", "a rising market"),
)


@window_sets.register("stockbench")
def windows(snapshot: Snapshot, convention: Convention) -> tuple[NamedWindow, ...]:
    """Return the windows available in a dataset, the same for both conventions.

    For a preset synthetic world, the windows are the middle parts of its planted regimes. For other
    data, they are the published and other dated windows that the data covers, and the worst and
    best periods of the paper's length. The worst and best periods are chosen with hindsight. They
    show how agents behave in such periods, but must not enter an average over markets.
    """
    if snapshot.facts.kind == "synthetic":
        return _synthetic_windows(snapshot)
    sessions, dated = snapshot.sessions, []
    for code, first, last, regime in _DATED:
        start = int(np.searchsorted(sessions, np.datetime64(first, "D")))
        stop = int(np.searchsorted(sessions, np.datetime64(last, "D"), side="right"))
        covered = sessions.size > 0 and str(sessions[0]) <= first and str(sessions[-1]) >= last
        if covered and stop > start:
            dated.append(named_window(code, sessions, range(start, stop), regime, structural=False))
    return (*dated, *_extremes(snapshot))


def _synthetic_windows(snapshot: Snapshot) -> tuple[NamedWindow, ...]:
    """Return windows in the middle of a synthetic world's planted regimes.

    If the regimes are unknown, return the windows of :func:`_extremes`.
    """
    from tradeassay_bench.data.synthetic import preset

    try:
        name = msgspec.json.decode(snapshot.facts.query, type=dict[str, Any])["preset"]
        config = preset(name)
    except (KeyError, *UNDECODABLE):
        return _extremes(snapshot)
    if config.sessions != len(snapshot.sessions):
        # A world of a different length has its regimes in other rows.
        return _extremes(snapshot)
    windows = []
    for code, kind, regime in _REGIMES:
        fitting = [
            rows for name, rows in regime_rows(config) if name == kind and rows.start >= WARM_UP
        ]
        if fitting and len(fitting[0]) >= LENGTH:
            start = fitting[0].start + (len(fitting[0]) - LENGTH) // 2
            rows = range(start, start + LENGTH)
            windows.append(named_window(code, snapshot.sessions, rows, regime, structural=True))
    return tuple(windows)


def regime_rows(config: SyntheticConfig) -> tuple[tuple[str, range], ...]:
    """Return the regimes of a synthetic world as (kind, rows)."""
    spans = config.market.regimes
    whole = math.fsum(span.share for span in spans)
    edges, passed = [0], 0.0
    for span in spans:
        passed += span.share
        edges.append(min(config.sessions, round(config.sessions * passed / whole)))
    edges[-1] = config.sessions
    return tuple(
        (str(span.kind), range(*edges[place : place + 2])) for place, span in enumerate(spans)
    )


def _extremes(snapshot: Snapshot) -> tuple[NamedWindow, ...]:
    """Return two windows: the periods in which the names fell and rose most on average.

    Returns are measured from open to open.
    """
    rows = len(snapshot.sessions)
    if rows < WARM_UP + LENGTH:
        return ()
    opens = snapshot.at(rows - 1, "close").bars("open", adjust="total")
    with np.errstate(invalid="ignore"):
        gains = opens[WARM_UP + LENGTH - 1 :] / opens[WARM_UP : rows - LENGTH + 1] - 1.0
    known = np.isfinite(gains)
    mean = np.where(known, gains, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    picks = (("down", int(np.argmin(mean)), "the worst"), ("up", int(np.argmax(mean)), "the best"))
    return tuple(
        named_window(
            code,
            snapshot.sessions,
            range(WARM_UP + at, WARM_UP + at + LENGTH),
            f"{which} stretch, found with hindsight",
            structural=True,
        )
        for code, at, which in picks
    )


PAPER = Venue(
    id="us-stockbench-v1",
    title="US stocks as StockBench's reference books them: 1 bp commission, no slippage in cash, "
    "orders as given",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    lots=Lots(lot=0.01, step=0.01, on_odd="trim"),
    cash=Cash(on_short="reject"),
    priority="as_given",
)
"""The venue of StockBench's reference implementation. Its slippage changes only the average price
of a position, and no cash leaves the account. Orders are executed one by one, and a purchase that
exceeds the cash is dropped.
"""
venues.add(PAPER.id, PAPER)

NAMES = 20
DJIA_20: tuple[str, ...] = tuple(
    "GS MSFT HD V SHW CAT MCD UNH AXP AMGN TRV CRM JPM IBM HON BA AMZN AAPL PG JNJ".split()
)
"""The twenty names with the greatest weight in the price-weighted index. The paper only states "top
20".
"""
