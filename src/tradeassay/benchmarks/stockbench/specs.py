"""StockBench's windows, its venue and its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tradeassay.account import Cash, Fees, Lots, Venue, venues
from tradeassay.benchmarks.benchmark import NamedWindow, named_window, window_sets
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.measure import Convention, plain_sum

if TYPE_CHECKING:
    from tradeassay.data import Snapshot
    from tradeassay.data.synthetic import SyntheticConfig


LENGTH = 83
"""Sessions of the paper's window (opens of 2025-03-03 to 2025-06-30)."""
WARM_UP = 252
"""Sessions of history before a window, so that 52-week figures exist."""
# The paper's regimes are months, and from a report about it: their first and last sessions are ours.
_DATED = (
    ("main", "2025-03-03", "2025-06-30", "a fall and a rebound"),
    ("down-2025", "2025-01-02", "2025-04-30", "the paper's falling market, January to April (at second hand)"),
    ("up-2025", "2025-05-01", "2025-08-29", "the paper's rising market, May to August (at second hand)"),
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
    """Return the windows on a data set; both conventions have the same.

    On a ready-made synthetic world they are the middle of its planted regimes. On other data they are the dated
    ones that it covers, and the worst and the best stretch of the paper's length, which are found with hindsight:
    they show how agents behave there, but must not enter an average over markets."""
    sessions, found = snapshot.sessions, []
    if snapshot.facts.kind == "synthetic":
        from tradeassay.data.synthetic import preset

        try:
            config = preset(msgspec.json.decode(snapshot.facts.query, type=dict[str, Any])["preset"])
        except (KeyError, *UNDECODABLE):
            return _extremes(snapshot)
        if config.sessions != len(sessions):
            # A world of a different length has its regimes elsewhere.
            return _extremes(snapshot)
        for code, kind, words in _REGIMES:
            fitting = [rows for name, rows in regime_rows(config) if name == kind and rows.start >= WARM_UP]
            if fitting and len(fitting[0]) >= LENGTH:
                start = fitting[0].start + (len(fitting[0]) - LENGTH) // 2
                found.append(named_window(code, sessions, range(start, start + LENGTH), words, structural=True))
        return tuple(found)
    for code, first, last, words in _DATED:
        start = int(np.searchsorted(sessions, np.datetime64(first, "D")))
        stop = int(np.searchsorted(sessions, np.datetime64(last, "D"), side="right"))
        covered = sessions.size > 0 and str(sessions[0]) <= first and str(sessions[-1]) >= last
        if covered and stop > start:
            found.append(named_window(code, sessions, range(start, stop), words, structural=False))
    return (*found, *_extremes(snapshot))


def regime_rows(config: SyntheticConfig) -> tuple[tuple[str, range], ...]:
    """Return the regimes of a synthetic world with their rows."""
    spans = config.market.regimes
    whole = plain_sum(span.share for span in spans)
    edges = [0]
    for place in range(len(spans)):
        passed = plain_sum(span.share for span in spans[: place + 1])
        edges.append(min(config.sessions, round(config.sessions * passed / whole)))
    edges[-1] = config.sessions
    return tuple((str(span.kind), range(*edges[place : place + 2])) for place, span in enumerate(spans))


def _extremes(snapshot: Snapshot) -> tuple[NamedWindow, ...]:
    """Return the stretches in which the names fell and rose most, on average and from open to open."""
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
    title="US stocks as StockBench's reference books them: 1 bp commission, no slippage in cash, orders as given",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    lots=Lots(lot=0.01, step=0.01, on_odd="trim"),
    cash=Cash(on_short="reject"),
    priority="as_given",
)
"""The reference uses its slippage for the average price of a position only: no cash leaves the account for it.
Orders are carried out one after the other; a purchase that the cash does not cover is left out."""
venues.add(PAPER.id, PAPER)

NAMES = 20
DJIA_20: tuple[str, ...] = tuple(
    "GS MSFT HD V SHW CAT MCD UNH AXP AMGN TRV CRM JPM IBM HON BA AMZN AAPL PG JNJ".split()
)
"""Those with the greatest weight in the price-weighted index. The paper says "top 20", the list is ours."""
