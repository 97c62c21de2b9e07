"""The rules of a benchmark in plain language, written from its configuration: they cannot disagree."""

from __future__ import annotations

from tradeassay.benchmarks.benchmark import Benchmark
from tradeassay.market import MarketConfig

_KNOWS = {
    "pre_open": "before the session opens. You know every bar up to the previous close, and the corporate actions "
    "that take effect today",
    "at_open": "when the session opens. You know every bar up to the previous close, and today's opening prices",
    "close": "at the close. You know today's whole bar",
}


def rules_text(benchmark: Benchmark) -> str:
    """Return the rules page of one benchmark."""
    market = benchmark.market
    lines = [
        f"{benchmark.title} ({benchmark.id})",
        "",
        benchmark.description,
        "",
        f"- Data: {benchmark.dataset}, sessions from {market.first} to {market.last}; before that is history.",
        f"- Universe: {_universe(market)}",
        f"- Money: you start with {market.cash:,.0f} in cash.",
        f"- You decide {_KNOWS[market.decide]}.",
        f"- Orders fill at the session's {market.fill}; the account is valued at its {market.mark}.",
    ]
    return "\n".join(lines) + "\n"


def _universe(market: MarketConfig) -> str:
    if market.universe == "all":
        return "every name listed at the time, index funds aside."
    return f"the members of {market.universe} as of each day; what left the index may still be sold."
