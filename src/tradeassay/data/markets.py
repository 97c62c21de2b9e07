"""Markets by name, to compare an account with: inside the package arch, or a stored data set of a longer span."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats
from tradeassay.data.datasets import load_stored
from tradeassay.data.tables.account import OwnSeries


class NamedMarket(msgspec.Struct, frozen=True, kw_only=True):
    """A market inside the package arch: ``module`` of its data, what it is, its span, and what is wrong with it.
    ``dividends`` says whether its returns have them. ``stored`` is a data set with a longer span, used where it
    has been got: its name, the index in it, first and last day.
    """

    module: str
    title: str
    first: str = "1999-01-04"
    last: str = "2018-12-31"
    bias: str = "a price index, without its dividends of about 2% a year"
    dividends: bool = False
    stored: tuple[str, str, str, str] | None = None


MARKETS = {
    "sp500": NamedMarket(
        module="sp500", title="S&P 500", stored=("skfolio-sp500", "SPX", "1990-01-02", "2022-12-28")
    ),
    "nasdaq": NamedMarket(module="nasdaq", title="Nasdaq Composite"),
    "us-market": NamedMarket(
        module="frenchdata",
        title="all US stocks by size, monthly (Kenneth French)",
        first="1926-07-31",
        last="2018-11-30",
        bias="dividends included; nobody could hold it without costs",
        dividends=True,
    ),
}


def read_market(name: str, days: Iterable[str], home: Path | None = None) -> OwnSeries:
    """Return the returns of a market by name, with a note on what it is; UserError where spans do not meet."""
    market, asked = MARKETS[name], sorted(days)
    found, levels, source = _packaged(market)
    more = ""
    if market.stored is not None and not market.first <= asked[0] <= asked[-1] <= market.last:
        try:
            snapshot = load_stored(market.stored[0], home)
        except UserError:
            more = f", or for a longer span: tradeassay data get {market.stored[0]}"
        else:
            view = snapshot.at(len(snapshot.sessions) - 1, "close")
            found, levels = view.sessions().astype(str).tolist(), view.index_levels(market.stored[1])
            source = f"the data set {market.stored[0]}"
    if asked[-1] < found[0] or asked[0] > found[-1]:
        raise UserError(
            f"'{name}' is known from {found[0]} to {found[-1]}, the account from {asked[0]} to {asked[-1]}",
            hint=f"give a file of a market's returns (--against FILE){more}",
        )
    note = f"the market is '{name}': {market.title}, {found[0]} to {found[-1]}, from {source}; {market.bias}"
    returns = dict(zip(found[1:], (levels[1:] / levels[:-1] - 1.0).tolist(), strict=True))
    return OwnSeries(
        returns=returns, year=12 if market.module == "frenchdata" else 252, notes=(note,), since=found[0]
    )


def _packaged(market: NamedMarket) -> tuple[list[str], Floats, str]:
    table = import_module(f"arch.data.{market.module}").load()
    if market.module != "frenchdata":
        return table.index.strftime("%Y-%m-%d").tolist(), table["Adj Close"].to_numpy(float), "the package arch"
    # Its months are read as nanoseconds since 1970.
    months = table.index.astype("int64").tolist()
    starts = np.array([f"{month // 100}-{month % 100:02d}" for month in months], dtype="datetime64[M]")
    ends = ((starts + 1).astype("datetime64[D]") - 1).astype(str).tolist()
    grown = np.cumprod(1.0 + (table["Mkt-RF"] + table["RF"]).to_numpy(float) / 100.0)
    before = str(starts[0].astype("datetime64[D]") - 1)
    return [before, *ends], np.concatenate([[1.0], grown]), "the package arch"


def offer(days: Iterable[str]) -> str:
    """Return which markets by name there are for days for which no market was given."""
    asked = sorted(days)
    fits = []
    for name, one in MARKETS.items():
        if asked and one.first <= asked[0] and asked[-1] <= one.last:
            fits.append(f"--against {name}")
        elif asked and one.stored is not None and one.stored[2] <= asked[0] and asked[-1] <= one.stored[3]:
            fits.append(f"--against {name} (after tradeassay data get {one.stored[0]})")
    if fits:
        return f"no market was given; known by name for these days: {', '.join(fits)}"
    spans = ", ".join(f"{name} {one.first[:4]} to {one.last[:4]}" for name, one in MARKETS.items())
    return f"no market was given, and none known by name covers these days ({spans}): give --against FILE"
