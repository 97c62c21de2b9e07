"""The KTD-Fin benchmarks: A-shares under both conventions, and the same structure on US stocks with news."""

from __future__ import annotations

from tradeassay.benchmarks.benchmark import Benchmark, benchmarks
from tradeassay.play import MarketConfig

_ASHARES = MarketConfig(
    venue="ashare-v1", universe="IDX", cash=1_000_000.0, decide="pre_open", fill="open", mark="close",
    first="2022-02-07", last="2024-01-31", max_weight=0.10, max_positions=20, index="IDX",
)  # fmt: skip

KTDFIN = Benchmark(
    id="ktdfin-v1",
    title="KTD-Fin: memory-controlled trading of A-shares",
    description=(
        "A model trades the members of an index of China A-shares while a mask hides names, dates or both. In "
        "three modes it gets stock ids only, a table of candidates, or six research tools. Without a real A-share "
        "data set in the store it is played on a synthetic market with the same rules."
    ),
    dataset="synthetic/ashare:7",
    market=_ASHARES,
    protocol="ktdfin",
    protocol_params={"convention": "sound"},
)

KTDFIN_PAPER = Benchmark(
    id="ktdfin-paper-v1",
    title="KTD-Fin as the paper has it",
    description=(
        "The same task with the paper's own conventions: names that closed at their price limit are no "
        "candidates, windows as printed, and the paper's definitions of turnover, concentration, abstention and "
        "calibration."
    ),
    dataset="synthetic/ashare:7",
    market=_ASHARES,
    convention="paper",
    protocol="ktdfin",
    protocol_params={"convention": "paper"},
)

KTDFIN_US = Benchmark(
    id="ktdfin-us-v1",
    title="KTD-Fin on US stocks with dated news",
    description=(
        "The same masks, modes and tools on a synthetic US market, with headlines that carry the time they "
        "appeared. What the news is worth was planted and is known."
    ),
    dataset="synthetic/us:7",
    market=MarketConfig(
        venue="us-v1", universe="IDX", cash=1_000_000.0, first="2022-01-10", last="2023-12-22", max_weight=0.10,
        max_positions=20, index="IDX",
    ),
    protocol="ktdfin",
    protocol_params={"convention": "sound", "news": True},
)  # fmt: skip

KTDFIN_US_REAL = Benchmark(
    id="ktdfin-us-real-v1",
    title="KTD-Fin on S&P 500 names with real news, 2019-2021",
    description=(
        "The same masks, modes and tools on real closing prices of S&P 500 names, with real headlines about 90 of "
        "them. The names were picked with hindsight and only closes exist: good for comparing masks with each "
        "other, not for saying what could have been earned."
    ),
    dataset="sp500-news",
    market=MarketConfig(
        venue="us-v1", universe="all", cash=1_000_000.0, first="2019-01-02", last="2021-10-14", max_weight=0.10,
        max_positions=20,
    ),
    protocol="ktdfin",
    protocol_params={"convention": "sound", "news": True},
)  # fmt: skip

for _benchmark in (KTDFIN, KTDFIN_PAPER, KTDFIN_US, KTDFIN_US_REAL):
    benchmarks.add(_benchmark.id, _benchmark)
