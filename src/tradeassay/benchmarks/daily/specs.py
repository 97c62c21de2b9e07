"""The daily benchmarks: one decision per session in three synthetic markets and one real panel."""

from tradeassay.benchmarks.benchmark import Benchmark, benchmarks
from tradeassay.play import MarketConfig


def _benchmark(name: str, title: str, description: str, dataset: str, market: MarketConfig) -> Benchmark:
    return Benchmark(
        id=f"daily-{name}-v1",
        # Ids have become -v1; draws keep the word that they were first made from.
        seed_word=f"daily-{name}-v2",
        title=title,
        description=description,
        dataset=dataset,
        market=market,
    )


DAILY_US = _benchmark(
    "us",
    "US stocks, daily, synthetic",
    "A seeded synthetic US market with regimes, style factors, news, dividends, splits and index changes. "
    "Nobody can remember its prices, and what skill there is to find was planted and is known.",
    "synthetic/us:7",
    MarketConfig(
        venue="us-v1", universe="IDX", cash=1_000_000.0, first="2022-01-10", last="2023-12-22", index="IDX"
    ),
)
DAILY_ASHARE = _benchmark(
    "ashare",
    "China A-shares, daily, synthetic",
    "A seeded synthetic A-share market under A-share rules: lots, T+1, price limits by board, suspensions, "
    "and costs on the selling side. The account is large enough for a lot of every name.",
    "synthetic/ashare:7",
    MarketConfig(
        venue="ashare-v1", universe="IDX", cash=10_000_000.0, first="2022-02-07", last="2024-01-31", index="IDX"
    ),
)
DAILY_CRYPTO = _benchmark(
    "crypto",
    "Crypto, daily, synthetic",
    "A seeded synthetic crypto market that never closes: fractional coins, fat tails, higher costs than "
    "stocks, and a year of 365 sessions.",
    "synthetic/crypto:7",
    MarketConfig(
        venue="crypto-v1", universe="all", cash=100_000.0, first="2022-01-01", last="2023-01-20", index="IDX"
    ),
)
DAILY_US_REAL = _benchmark(
    "us-real",
    "29 US stocks, daily, real prices 2007-2009",
    "Real daily bars of 29 large US companies through the crisis of 2008: a year of calm, the fall, "
    "the rebound. All 29 were picked with hindsight and survived, and prices come adjusted from the vendor: "
    "good for comparing agents with each other, not for saying what could have been earned.",
    "fakestockdata",
    MarketConfig(venue="us-v1", universe="all", cash=100_000.0, first="2007-01-03", last="2009-12-31"),
)

for _one in (DAILY_US, DAILY_ASHARE, DAILY_CRYPTO, DAILY_US_REAL):
    benchmarks.add(_one.id, _one)
