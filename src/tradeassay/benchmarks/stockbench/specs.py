"""The benchmarks of the family: windows, venues, markets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.account import Cash, Fees, Lots, Venue, venues
from tradeassay.benchmarks.benchmark import Benchmark, NamedWindow, benchmarks, named_window, window_sets
from tradeassay.benchmarks.stockbench.stockbench_config import SIZES
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.measure import Convention, plain_sum
from tradeassay.play import MarketConfig

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


class _World(msgspec.Struct, frozen=True):
    preset: str
    seed: int


@window_sets.register("stockbench")
def windows(snapshot: Snapshot, convention: Convention) -> tuple[NamedWindow, ...]:
    """Return the windows on a data set; both conventions have the same.

    On a ready-made synthetic world they are the middle of its planted regimes. On other data they are the dated
    ones that it covers, and the worst and the best stretch of the paper's length, which are found with hindsight:
    they show how agents behave there, but must not enter an average over markets.
    """
    if snapshot.facts.kind == "synthetic":
        from tradeassay.data.synthetic import preset

        try:
            config = preset(msgspec.json.decode(snapshot.facts.query, type=_World).preset)
        except UNDECODABLE:
            return _extremes(snapshot)
        if config.sessions != len(snapshot.sessions):
            # A world of a different length has its regimes elsewhere.
            return _extremes(snapshot)
        found = []
        for code, kind, words in _REGIMES:
            fitting = [rows for name, rows in regime_rows(config) if name == kind and rows.start >= WARM_UP]
            if fitting and len(fitting[0]) >= LENGTH:
                start = fitting[0].start + (len(fitting[0]) - LENGTH) // 2
                found.append(
                    named_window(code, snapshot.sessions, range(start, start + LENGTH), words, structural=True)
                )
        return tuple(found)
    return (*_dated(snapshot), *_extremes(snapshot))


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


def _dated(snapshot: Snapshot) -> tuple[NamedWindow, ...]:
    sessions, found = snapshot.sessions, []
    for code, first, last, words in _DATED:
        start = int(np.searchsorted(sessions, np.datetime64(first, "D")))
        stop = int(np.searchsorted(sessions, np.datetime64(last, "D"), side="right"))
        covered = sessions.size > 0 and str(sessions[0]) <= first and str(sessions[-1]) >= last
        if covered and stop > start:
            found.append(named_window(code, snapshot.sessions, range(start, stop), words, structural=False))
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
    picks = (
        ("down", int(np.argmin(mean)), "the worst stretch, found with hindsight"),
        ("up", int(np.argmax(mean)), "the best stretch, found with hindsight"),
    )
    return tuple(
        named_window(code, snapshot.sessions, range(WARM_UP + at, WARM_UP + at + LENGTH), words, structural=True)
        for code, at, words in picks
    )


SOUND_VENUE = "us-fractional-v1"
"""Fractions of 0.0001 share, 1 bp commission and 2 bp slippage, at most a tenth of a session's volume."""

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


CASH = 100_000.0
NAMES = 20
SYNTHETIC = "synthetic/us:7"
DJIA = "djia-2025"
DJIA_20: tuple[str, ...] = tuple(
    "GS MSFT HD V SHW CAT MCD UNH AXP AMGN TRV CRM JPM IBM HON BA AMZN AAPL PG JNJ".split()
)
"""Those with the greatest weight in the price-weighted index. The paper says "top 20", the list is ours."""
_MAIN, _DOWN, _UP = ("2022-06-23", "2022-10-19"), ("2022-12-30", "2023-05-01"), ("2023-07-12", "2023-11-06")


def market_of(convention: Convention, universe: str, window: tuple[str, str], index: str | None) -> MarketConfig:
    """Return a StockBench market.

    Decisions are made at the open and filled at it. ``paper`` also marks the account there, ``sound`` at the
    close.
    """
    mark: Literal["open", "close"] = "open" if convention == "paper" else "close"
    return MarketConfig(
        venue=PAPER.id if convention == "paper" else SOUND_VENUE,
        universe=universe,
        cash=CASH,
        decide="at_open",
        fill="open",
        mark=mark,
        first=window[0],
        last=window[1],
        index=index,
    )


_TASK = (
    "A model manages 100,000 USD in {size} large US stocks for 83 sessions: every day it looks at the portfolio, "
    "picks names to analyse, and decides in dollars. "
)
_WORLD = "The market is synthetic, so nobody can remember its prices; it {moves}."
_PAPER = "Prices are shown, filled and marked at the same day's open, in fractions of 0.01 share. "
_V = _WORLD.format(moves="falls and recovers, as the paper's did")
_REAL = (
    "Prices are real, March to June 2025; the data set is fetched by the user. The names were members of the "
    "index, chosen by the paper after the fact, and models trained later may remember the period."
)
PAPER_TEMPERATURE = 0.7
"""The reference's, for every call."""


def _benchmark(
    name: str, title: str, description: str, *, market: MarketConfig, dataset: str = SYNTHETIC
) -> Benchmark:
    """Return one of the family; whoever marks at the open follows the paper."""
    convention: Convention = "paper" if market.mark == "open" else "sound"
    settings = {"temperature": PAPER_TEMPERATURE} if convention == "paper" else {}
    return Benchmark(
        id=f"{name}-v1",
        # Ids have become -v1; draws keep the word that they were first made from.
        seed_word=f"{name}-v2",
        title=title,
        description=description,
        dataset=dataset,
        market=market,
        convention=convention,
        protocol="stockbench",
        protocol_params={"convention": convention, **settings},
    )


def _synthetic(
    convention: Convention = "sound", size: int = NAMES, window: tuple[str, str] = _MAIN
) -> MarketConfig:
    return market_of(convention, f"IDX:{size}", window, "IDX")


_TWENTY = _TASK.format(size=NAMES)
_SPRING = ("2025-03-03", "2025-06-30")
STOCKBENCH = _benchmark(
    "stockbench", "StockBench: 20 US stocks, four stages a day", _TWENTY + _V, market=_synthetic()
)
STOCKBENCH_PAPER = _benchmark(
    "stockbench-paper", "StockBench as the paper has it", _TWENTY + _PAPER + _V, market=_synthetic("paper")
)
STOCKBENCH_SIZES: dict[int, Benchmark] = {
    size: _benchmark(
        f"stockbench-{size}",
        f"StockBench with {size} names",
        _TASK.format(size=size) + _V,
        market=_synthetic(size=size),
    )
    for size in SIZES
    if size != NAMES
} | {NAMES: STOCKBENCH}
STOCKBENCH_DOWN = _benchmark(
    "stockbench-down",
    "StockBench in a falling market",
    _TWENTY + _WORLD.format(moves="falls"),
    market=_synthetic(window=_DOWN),
)
STOCKBENCH_UP = _benchmark(
    "stockbench-up",
    "StockBench in a rising market",
    _TWENTY + _WORLD.format(moves="rises"),
    market=_synthetic(window=_UP),
)
STOCKBENCH_DJIA = _benchmark(
    "stockbench-djia",
    "StockBench on 20 DJIA names, March to June 2025",
    _TWENTY + _REAL,
    market=market_of("sound", "all", _SPRING, None),
    dataset=DJIA,
)
STOCKBENCH_DJIA_PAPER = _benchmark(
    "stockbench-djia-paper",
    "StockBench on 20 DJIA names, as the paper has it",
    _TWENTY + _REAL,
    market=market_of("paper", "all", _SPRING, None),
    dataset=DJIA,
)

for _one in (
    STOCKBENCH_PAPER,
    *STOCKBENCH_SIZES.values(),
    STOCKBENCH_DOWN,
    STOCKBENCH_UP,
    STOCKBENCH_DJIA,
    STOCKBENCH_DJIA_PAPER,
):
    benchmarks.add(_one.id, _one)
