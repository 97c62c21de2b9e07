"""The StockBench benchmarks: both conventions, four universe sizes, two regimes, and the paper's own market."""

from __future__ import annotations

from typing import Literal

from tradeassay.benchmarks.benchmark import Benchmark, benchmarks
from tradeassay.benchmarks.stockbench.config import SIZES
from tradeassay.benchmarks.stockbench.venues import PAPER, SOUND_VENUE
from tradeassay.core.badges import Convention
from tradeassay.play import MarketConfig

CASH = 100_000.0
NAMES = 20
BASELINES = ("equal-weight", "momentum-weighted", "sector-equal")
"""The first is the benchmark's own baseline; the others are run beside it by name."""
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


def _synthetic(
    name: str, title: str, description: str, *, convention: Convention = "sound", size: int = NAMES,
    window: tuple[str, str] = _MAIN,
) -> Benchmark:  # fmt: skip
    return Benchmark(
        id=name,
        title=title,
        description=description,
        dataset=SYNTHETIC,
        market=market_of(convention, f"IDX:{size}", window, "IDX"),
        convention=convention,
        protocol="stockbench",
        protocol_params={"convention": convention},
    )


_TASK = (
    "A model manages 100,000 USD in {size} large US stocks for 83 sessions: every day it looks at the portfolio, "
    "picks names to analyse, and decides in dollars. "
)
_WORLD = "The market is synthetic, so nobody can remember its prices; it {moves}."
_PAPER = "Prices are shown, filled and marked at the same day's open, in fractions of 0.01 share. "
_V = _WORLD.format(moves="falls and recovers, as the paper's did")

STOCKBENCH = _synthetic("stockbench-v1", "StockBench: 20 US stocks, four stages a day", _TASK.format(size=20) + _V)
STOCKBENCH_PAPER = _synthetic(
    "stockbench-paper-v1",
    "StockBench as the paper has it",
    _TASK.format(size=20) + _PAPER + _V,
    convention="paper",
)
STOCKBENCH_SIZES: dict[int, Benchmark] = {
    size: _synthetic(
        f"stockbench-{size}-v1", f"StockBench with {size} names", _TASK.format(size=size) + _V, size=size
    )
    for size in SIZES
    if size != NAMES
} | {NAMES: STOCKBENCH}
STOCKBENCH_DOWN = _synthetic(
    "stockbench-down-v1", "StockBench in a falling market", _TASK.format(size=20) + _WORLD.format(moves="falls"),
    window=_DOWN,
)  # fmt: skip
STOCKBENCH_UP = _synthetic(
    "stockbench-up-v1", "StockBench in a rising market", _TASK.format(size=20) + _WORLD.format(moves="rises"),
    window=_UP,
)  # fmt: skip


def _real(name: str, title: str, convention: Convention) -> Benchmark:
    return Benchmark(
        id=name,
        title=title,
        description=(
            _TASK.format(size=20)
            + "Prices are real, March to June 2025; the data set is fetched by the user. The "
            "names were members of the index, chosen by the paper after the fact, and models trained later may "
            "remember the period."
        ),
        dataset=DJIA,
        market=market_of(convention, "all", ("2025-03-03", "2025-06-30"), None),
        convention=convention,
        protocol="stockbench",
        protocol_params={"convention": convention},
    )


STOCKBENCH_DJIA = _real("stockbench-djia-v1", "StockBench on 20 DJIA names, March to June 2025", "sound")
STOCKBENCH_DJIA_PAPER = _real(
    "stockbench-djia-paper-v1", "StockBench on 20 DJIA names, as the paper has it", "paper"
)

for _benchmark in (
    STOCKBENCH_PAPER, *STOCKBENCH_SIZES.values(), STOCKBENCH_DOWN, STOCKBENCH_UP, STOCKBENCH_DJIA,
    STOCKBENCH_DJIA_PAPER,
):  # fmt: skip
    benchmarks.add(_benchmark.id, _benchmark)
