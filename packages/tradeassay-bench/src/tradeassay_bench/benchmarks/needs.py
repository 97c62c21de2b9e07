"""Compare a benchmark's data needs with a dataset, and describe the effect of missing data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.core.errors import DataError
from tradeassay_bench.benchmarks.benchmark import Benchmark, window_sets
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.masking import nameless

if TYPE_CHECKING:
    from tradeassay_bench.data import AsOfView, Snapshot

NeedStatus = Literal["there", "partly", "missing"]


class DataNeed(msgspec.Struct, frozen=True):
    """One kind of data that a benchmark uses, and whether a dataset has it.

    ``found`` describes the dataset. ``changes`` describes the effect of missing data, and is empty
    if the data is complete.
    """

    what: str
    status: NeedStatus
    found: str
    changes: str = ""


def data_needs(benchmark: Benchmark, snapshot: Snapshot) -> tuple[DataNeed, ...]:
    """Return a benchmark's data needs and what a dataset provides, most important first."""
    view = snapshot.at(len(snapshot.sessions) - 1, "close")
    paper = benchmark.protocol in ("ktdfin", "stockbench")
    stocks = [item for item in view.instruments if item.kind == "stock"]
    needs = [_sessions(benchmark, snapshot), _prices(view), _index(benchmark, view)]
    if paper:
        hidden = "a mask cannot hide these companies in texts: news under a stock mask is refused"
        named = _share(
            "company names", len(stocks) - len(nameless(view)), len(stocks), hidden, of=""
        )
        needs += [_windows(benchmark, snapshot), named, _actions(view, snapshot)]
    if benchmark.protocol == "ktdfin":
        needs += _of_stocks(benchmark, view, stocks)
        if benchmark.protocol_params.get("news"):
            needs.append(_news(view))
    if benchmark.protocol == "stockbench":
        have = sum(bool(view.fundamentals(item.symbol)) for item in stocks)
        unknown = "P/E and market cap are unknown for these stocks"
        needs += [_news(view), _share("fundamentals", have, len(stocks), unknown)]
    return tuple(needs)


def _sessions(benchmark: Benchmark, snapshot: Snapshot) -> DataNeed:
    first, last = str(snapshot.sessions[0]), str(snapshot.sessions[-1])
    market = benchmark.market
    before = int(np.searchsorted(snapshot.sessions, np.datetime64(market.first, "D")))
    covered = first <= market.first and last >= market.last
    found = f"{len(snapshot.sessions)} sessions, {first} to {last}"
    if covered and before >= 252:
        return DataNeed("sessions", "there", found)
    wants = f"the benchmark's own window is {market.first} to {market.last} after a year of history"
    return DataNeed("sessions", "partly", found, f"{wants}; use a named window or --first/--last")


def _prices(view: AsOfView) -> DataNeed:
    """Return the need for prices. Files with closes only are a partial match."""
    closes, what = view.bars("close"), "open, high, low, close"
    same = [
        np.array_equal(view.bars(field), closes, equal_nan=True)
        for field in ("open", "high", "low")
    ]
    if not any(same):
        return DataNeed(what, "there", f"{len(view.symbols)} symbols")
    found = "closes only: open, high and low equal them"
    changes = (
        "fills at the open use the same day's close; overnight and intraday factors are meaningless"
    )
    return DataNeed(what, "partly", found, changes)


def _index(benchmark: Benchmark, view: AsOfView) -> DataNeed:
    """Return the need for the benchmark's index: its levels and its dated members."""
    name = benchmark.index
    if name is None:
        return DataNeed("index", "there", "the benchmark has no index")
    levels, members = False, 0
    with suppress(DataError):
        view.index_levels(name, 1)
        levels = True
    with suppress(DataError):
        members = len(view.members(name))
    if levels and members:
        return DataNeed(f"index {name}", "there", f"levels and {members} members")
    missing = []
    if not levels:
        missing.append("levels")
    if not members:
        missing.append("dated members")
    changes = "no excess return, information ratio or index row"
    if not members:
        changes = "the names that may be bought are unknown"
    status: NeedStatus = "partly" if levels or members else "missing"
    return DataNeed(f"index {name}", status, f"no {' and '.join(missing)}", changes)


def _windows(benchmark: Benchmark, snapshot: Snapshot) -> DataNeed:
    windows = window_sets.get(benchmark.protocol)(snapshot, benchmark.convention)
    on_printed_dates = [window.code for window in windows if not window.structural]
    if windows and len(on_printed_dates) == len(windows):
        return DataNeed("the paper's windows", "there", ", ".join(on_printed_dates))
    return DataNeed(
        "the paper's windows",
        "partly" if on_printed_dates else "missing",
        ", ".join(on_printed_dates) or "none on the published dates",
        "other windows have the published length on other dates: not comparable with the paper",
    )


def _share(what: str, have: int, count: int, changes: str, of: str = " stocks") -> DataNeed:
    """Return the need for a kind of data that ``have`` of ``count`` instruments have."""
    if have == count:
        return DataNeed(what, "there", f"{have} of {count}{of}", "")
    status: NeedStatus = "partly" if have else "missing"
    return DataNeed(what, status, f"{have} of {count}{of}", changes)


def _of_stocks(
    benchmark: Benchmark, view: AsOfView, stocks: Sequence[Instrument]
) -> Iterator[DataNeed]:
    """Yield KTD-Fin's needs for each stock: sector, market value, board and traded amount."""
    count = len(stocks)
    have = sum(item.sector is not None for item in stocks)
    yield _share(
        "sectors",
        have,
        count,
        "no sector returns, no attribution by sector, no sector in the probe",
    )
    caps = ("free_float_cap", "market_cap")
    have = 0
    for item in stocks:
        have += any(figure.field in caps for figure in view.fundamentals(item.symbol))
    yield _share(
        "free-float caps",
        have,
        count,
        "attribution uses the mean traded amount of 20 days as weight instead",
    )
    if benchmark.market.venue.startswith("ashare"):
        have = sum(item.board.value != "none" for item in stocks)
        yield _share("boards", have, count, "price limits of 10 % are assumed for these stocks")
    else:
        yield DataNeed("boards", "there", "the venue has no price limits")
    amounts = view.bars("amount", 20)
    have = int(np.isfinite(amounts).any(axis=0).sum()) if amounts.size else 0
    changes = "no ILLIQ, no CV_VOL and no volume cap for these stocks"
    yield _share("traded amounts", have, len(view.symbols), changes)


def _actions(view: AsOfView, snapshot: Snapshot) -> DataNeed:
    count = len(view.actions(np.iinfo(np.int64).min))
    if count or snapshot.facts.adjusted == "total":
        return DataNeed(
            "splits and dividends",
            "there",
            f"{count} actions" if count else "already included in the prices",
        )
    return DataNeed(
        "splits and dividends",
        "missing",
        "none",
        "a split looks like a crash, and no dividend is paid",
    )


def _news(view: AsOfView) -> DataNeed:
    if view.news(0, limit=1):
        return DataNeed("news", "there", "dated items")
    changes = "the input is empty: comparable only with the ablation without news"
    return DataNeed("news", "missing", "none", changes)
