"""The benchmarks of the family: windows, venues, markets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.account import Cash, Fees, Lots, Slippage, Venue, venues
from tradeassay.benchmarks.benchmark import Benchmark, benchmarks, of_family
from tradeassay.benchmarks.stockbench.stockbench_config import SIZES
from tradeassay.benchmarks.windows import NamedWindow, window_sets
from tradeassay.core.badges import Convention
from tradeassay.core.errors import UNDECODABLE
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
    they show how agents behave there, but must not enter an average over markets.
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


SOUND_VENUE = "us-fractional-v1"
"""Fractions of 0.0001 share, 1 bp commission and 2 bp slippage, at most a tenth of a session's volume."""

PAPER = Venue(
    id="us-stockbench-v1",
    title="US stocks as in StockBench: cash account, fractions of 0.01 share, no volume limit",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    slippage=Slippage(bps=2.0),
    lots=Lots(lot=0.01, step=0.01, on_odd="trim"),
)

PAPER_V2 = msgspec.structs.replace(
    PAPER,
    id="us-stockbench-v2",
    title="US stocks as StockBench's reference books them: 1 bp commission, no slippage in cash, orders as given",
    slippage=Slippage(bps=0.0),
    cash=Cash(on_short="reject"),
    priority="as_given",
)
"""The reference uses its slippage for the average price of a position only: no cash leaves the account for it.
Orders are carried out one after the other; a purchase that the cash does not cover is left out."""

for _venue in (PAPER, PAPER_V2):
    venues.add(_venue.id, _venue)


CASH = 100_000.0
NAMES = 20
BASELINES = ("equal-weight", "momentum-weighted", "sector-equal")
"""The first is the benchmark's own baseline; the others are run alongside it by name."""
SYNTHETIC = "synthetic/us:7"
DJIA = "djia-2025"
DJIA_20: tuple[str, ...] = (
    "GS", "MSFT", "HD", "V", "SHW", "CAT", "MCD", "UNH", "AXP", "AMGN",
    "TRV", "CRM", "JPM", "IBM", "HON", "BA", "AMZN", "AAPL", "PG", "JNJ",
)  # fmt: skip
"""Those with the greatest weight in the price-weighted index. The paper says "top 20", the list is ours."""
DJIA_REST: tuple[str, ...] = ("MMM", "NVDA", "DIS", "NKE", "MRK", "CVX", "KO", "CSCO", "WMT", "VZ")
"""The other ten, for the universe of thirty."""
_MAIN, _DOWN, _UP = ("2022-06-23", "2022-10-19"), ("2022-12-30", "2023-05-01"), ("2023-07-12", "2023-11-06")


def market_of(
    convention: Convention, universe: str, window: tuple[str, str], index: str | None, version: int = 2
) -> MarketConfig:
    """Return a StockBench market.

    Decisions are made at the open and filled at it. ``paper`` also marks the account there, ``sound`` at the
    close.
    """
    mark: Literal["open", "close"] = "open" if convention == "paper" else "close"
    paper = PAPER if version == 1 else PAPER_V2
    return MarketConfig(
        venue=paper.id if convention == "paper" else SOUND_VENUE,
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


class _Family:
    """All benchmarks of one version."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.main = self._synthetic(
            "stockbench", "StockBench: 20 US stocks, four stages a day", _TASK.format(size=20) + _V
        )
        self.paper = self._synthetic(
            "stockbench-paper", "StockBench as the paper has it", _TASK.format(size=20) + _PAPER + _V,
            convention="paper",
        )  # fmt: skip
        self.sizes: dict[int, Benchmark] = {
            size: self._synthetic(
                f"stockbench-{size}", f"StockBench with {size} names", _TASK.format(size=size) + _V, size=size
            )
            for size in SIZES
            if size != NAMES
        } | {NAMES: self.main}
        self.down = self._synthetic(
            "stockbench-down", "StockBench in a falling market",
            _TASK.format(size=20) + _WORLD.format(moves="falls"), window=_DOWN,
        )  # fmt: skip
        self.up = self._synthetic(
            "stockbench-up", "StockBench in a rising market",
            _TASK.format(size=20) + _WORLD.format(moves="rises"), window=_UP,
        )  # fmt: skip
        self.djia = self._real("stockbench-djia", "StockBench on 20 DJIA names, March to June 2025", "sound")
        self.djia_paper = self._real(
            "stockbench-djia-paper", "StockBench on 20 DJIA names, as the paper has it", "paper"
        )

    @property
    def every(self) -> tuple[Benchmark, ...]:
        return (self.paper, *self.sizes.values(), self.down, self.up, self.djia, self.djia_paper)

    def _synthetic(
        self, name: str, title: str, description: str, *, convention: Convention = "sound", size: int = NAMES,
        window: tuple[str, str] = _MAIN,
    ) -> Benchmark:  # fmt: skip
        market = market_of(convention, f"IDX:{size}", window, "IDX", self.version)
        return self._benchmark(name, title, description, SYNTHETIC, market, convention)

    def _real(self, name: str, title: str, convention: Convention) -> Benchmark:
        market = market_of(convention, "all", ("2025-03-03", "2025-06-30"), None, self.version)
        return self._benchmark(name, title, _TASK.format(size=20) + _REAL, DJIA, market, convention)

    def _benchmark(
        self, name: str, title: str, description: str, dataset: str, market: MarketConfig, convention: Convention
    ) -> Benchmark:
        settings = {"temperature": PAPER_TEMPERATURE} if self.version > 1 and convention == "paper" else {}
        about = (name, title, description)
        return of_family("stockbench", self.version, about, dataset, market, convention, **settings)


_V1, _V2 = _Family(1), _Family(2)
STOCKBENCH, STOCKBENCH_PAPER, STOCKBENCH_SIZES = _V2.main, _V2.paper, _V2.sizes
STOCKBENCH_DOWN, STOCKBENCH_UP = _V2.down, _V2.up
STOCKBENCH_DJIA, STOCKBENCH_DJIA_PAPER = _V2.djia, _V2.djia_paper

for _benchmark in (*_V1.every, *_V2.every):
    benchmarks.add(_benchmark.id, _benchmark)
