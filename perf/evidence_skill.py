"""Measure the reliability of the verdicts, on accounts that were not used to set any threshold.

    python perf/evidence_skill.py --accounts 200 --workers 8 --json evidence.json
    python perf/evidence_skill.py --accounts 4 --rows word,power          # a smoke test
    python perf/evidence_skill.py --accounts 400 --baseline old.json      # compare with older code

Every account is drawn here, from ``--seed``, and judged through ``tradeassay.assay``. An account
depends only on the seed, its row, its cell and its number. Two versions of the code therefore judge
the same accounts, and ``--baseline`` compares them account by account.

The rows:

* ``word``: the reliability of *skill*. Three years of daily returns, alpha ratios of 0.5 to 2,
  single accounts without skill, and the undisclosed best of twenty. The cells *switching* are in
  a market and with noise that switch between calm and busy times.
* ``nulls``, ``passive``, ``cash``, ``funds``: accounts that must not be credited with skill.
* ``power``: how often a true alpha ratio is detected with one try.
* ``grains``, ``months``, ``short``: one account in hourly, daily, weekly and monthly rows; monthly
  accounts of 24 to 120 months; twenty days.
* ``hours``: stocks by the hour and coins by all 24 hours, with and without a benchmark, against
  the daily rows of the same account.
* ``holdings``: the same for skill, nulls, costs, *worse* and *timing* with known weights.
* ``worse``: true losers, and luck's worst of twenty, by returns alone.
* ``watched``: an account without alpha that is judged every month for a year.

An *alpha ratio* is the annual alpha over the annual residual volatility. *Praised* is a verdict of
skill, timing or mixed. The *weaker word* is "positive, and could be the best of a few tries", or
"consistent with skill" in versions without tries. Ranges are 95 % intervals (Wilson).
"""

from __future__ import annotations

import os

# One thread per process: the workers are the parallelism.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import inspect
import json
import multiprocessing
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

import tradeassay
from tradeassay.core.errors import UserError

Floats = np.ndarray
Rng = np.random.Generator

YEAR = 252
TRIES = 20
"""The number of undisclosed tries from which the best (or worst) account was chosen."""
NOISES = ("normal", "student", "garch")
"""The kinds of noise, taken in turn by the number of the account."""
PRAISE = ("skill", "timing", "mixed")
NEW_CALL = "tries" in inspect.signature(tradeassay.assay).parameters


# The one place that knows the call ---------------------------------------------------------------


@dataclass
class Account:
    """One account as its owner would submit it: returns, a benchmark, and the disclosed facts."""

    returns: pd.Series
    benchmark: pd.Series | None = None
    tries: int | None = None
    watched: bool = False
    disclosed: bool = False
    """The benchmark is known to include dividends, and cash is known to have earned nothing."""
    weights: Path | None = None
    trades: Path | None = None
    """A trade log, instead of returns; ``cash_at_start`` goes with it."""
    cash_at_start: float | None = None
    dataset: str | None = None


def judge(account: Account) -> tuple[str, str, bool, str, dict[str, Any]]:
    """Return the kind, label, firmness, sentence and JSON of the verdict on one account.

    An account that is refused has the kind ``refused`` and the message as its sentence.
    """
    table: Any = pd.DataFrame({"return": account.returns})
    keywords: dict[str, Any] = {}
    if account.benchmark is not None:
        table["market"] = account.benchmark
        keywords["benchmark"] = "market"
    if account.tries is not None:
        keywords["tries" if NEW_CALL else "trials"] = account.tries
    if account.watched:
        keywords["watched"] = True
    if account.disclosed:
        keywords |= {"dividends": 0.0, "interest": 0.0}
    if account.weights is not None:
        keywords |= {"weights": str(account.weights), "dataset": account.dataset, "portfolios": 0}
    if account.trades is not None:
        table = str(account.trades)
        until = account.returns.index[-1].strftime("%Y-%m-%d")
        keywords |= {"dataset": account.dataset, "portfolios": 0, "until": until}
        keywords["cash_at_start"] = account.cash_at_start
    try:
        made = tradeassay.assay(table, **keywords)
    except UserError as error:
        return "refused", "refused", False, str(error), {}
    verdict = made.verdict
    found = msgspec.to_builtins(made.agents[0])
    row = made.frame("pandas").iloc[0]
    prefix = next(
        name for name in ("alpha_per_year", "alpha", "edge_per_year") if name in row.index
    )
    ends = [row[name] for name in (prefix, f"{prefix}_low", f"{prefix}_high")]
    found["annual_alpha"] = [None if pd.isna(end) else float(end) for end in ends]
    firm = bool(getattr(verdict, "firm", True))
    return str(verdict.kind), str(verdict.label), firm, str(verdict.sentence), found


def word_of(kind: str, label: str) -> str:
    """Return the reader's conclusion: ``skill``, ``weaker``, ``timing``, or the kind."""
    if kind == "could-be-best-of-few":
        return "weaker"
    weak = not NEW_CALL and not label.endswith("supported")
    if kind in ("skill", "mixed"):
        return "weaker" if weak else "skill"
    if kind == "timing":
        return "weaker timing" if weak else "timing"
    return kind


# Noise, markets and accounts ---------------------------------------------------------------------


def noise(rng: Rng, kind: str, days: int, columns: int = 1) -> Floats:
    """Return days of noise with unit variance, a column per series."""
    if kind == "normal":
        return rng.normal(size=(days, columns))
    if kind == "student":
        return rng.standard_t(4, (days, columns)) / np.sqrt(2.0)
    if kind == "switching":
        return switching_noise(rng, days, columns)
    warm_up = 150
    shocks = rng.standard_t(7, (days + warm_up, columns)) / np.sqrt(7.0 / 5.0)
    variance = np.ones(columns)
    made = np.empty((days + warm_up, columns))
    for day in range(days + warm_up):
        made[day] = np.sqrt(variance) * shocks[day]
        variance = 0.03 + 0.07 * made[day] ** 2 + 0.90 * variance
    return made[warm_up:]


def switching_noise(rng: Rng, days: int, columns: int) -> Floats:
    """Return noise that is calm for about 100 days and then busy for about 40, skewed to falls."""
    switches = rng.random((days, columns))
    busy = np.empty((days, columns), dtype=bool)
    state = rng.random(columns) < 0.3
    for day in range(days):
        state = np.where(switches[day] < np.where(state, 1 / 40, 1 / 100), ~state, state)
        busy[day] = state
    scale = np.where(busy, 1.6, 0.63)
    # A gamma variable from which its mean is taken has a skew of -2 / sqrt(16) = -0.5.
    shocks = (16.0 - rng.gamma(16.0, size=(days, columns))) / 4.0
    return scale * shocks


def noise_kind(number: int) -> str:
    """Return the kind of noise of an account, in turn."""
    return NOISES[number % len(NOISES)]


@cache
def sessions(first_year: int, years: int) -> pd.DatetimeIndex:
    """Return the New York sessions of whole calendar years."""
    import exchange_calendars

    calendar = exchange_calendars.get_calendar("XNYS", start="1990-01-01", end="2025-12-31")
    last = f"{first_year + years - 1}-12-31"
    return calendar.sessions_in_range(f"{first_year}-01-01", last).tz_localize(None)


@dataclass
class Terms:
    """The annual figures of one market and of the accounts that trade it."""

    drift: float
    volatility: float
    dividends: float
    """The annual return that the benchmark leaves out."""
    cash: float
    """The annual interest on uninvested money."""


def drawn_terms(rng: Rng, disclosed: bool) -> Terms:
    """Return a market; with ``disclosed`` the benchmark pays dividends and cash earns nothing."""
    return Terms(
        drift=rng.uniform(0.02, 0.12),
        volatility=rng.uniform(0.12, 0.22),
        dividends=0.0 if disclosed else rng.uniform(0.0, 0.022),
        cash=0.0 if disclosed else rng.uniform(0.0, 0.045),
    )


def drawn_market(rng: Rng, terms: Terms, kind: str, days: int) -> Floats:
    """Return the total return of a market, day by day."""
    chance = noise(rng, kind, days)[:, 0]
    return terms.drift / YEAR + terms.volatility / np.sqrt(YEAR) * chance


def traded(
    rng: Rng, terms: Terms, market: Floats, kind: str, ratio: float, accounts: int = 1
) -> Floats:
    """Return the days of accounts with a beta and a residual of their own, and one alpha ratio."""
    days = market.size
    beta = rng.uniform(0.3, 1.2, accounts)
    residual = rng.uniform(0.06, 0.15, accounts)
    chance = noise(rng, kind, days, accounts)
    idle = (1.0 - beta) * terms.cash / YEAR
    alpha = ratio * residual / YEAR
    return beta * market[:, None] + idle + alpha + residual / np.sqrt(YEAR) * chance


def best_by_sharpe(tries: Floats, worst: bool = False) -> int:
    """Return the column with the highest Sharpe ratio, or the lowest."""
    sharpe = tries.mean(axis=0) / tries.std(axis=0)
    return int(np.argmin(sharpe) if worst else np.argmax(sharpe))


def by_returns(
    rng: Rng,
    number: int,
    *,
    ratio: float = 0.0,
    years: int = 3,
    tries_made: int = 1,
    worst: bool = False,
    disclosed: bool = False,
    kind: str = "",
) -> Account:
    """Return an account with known returns and benchmark, after some undisclosed tries."""
    kind = kind or noise_kind(number)
    index = sessions(2001 + number % 15, years)
    terms = drawn_terms(rng, disclosed)
    market = drawn_market(rng, terms, kind, len(index))
    tries = traded(rng, terms, market, kind, ratio, tries_made)
    chosen = tries[:, best_by_sharpe(tries, worst)]
    shown = market - terms.dividends / YEAR
    return Account(pd.Series(chosen, index), pd.Series(shown, index), disclosed=disclosed)


# Rows by returns ---------------------------------------------------------------------------------


def draw_word(rng: Rng, cell: str, number: int) -> Account:
    """Return an account of the row ``word``: skilled, single, or the best of twenty."""
    nature, _, switching = cell.partition(", ")
    if nature == "best of 20":
        return by_returns(rng, number, tries_made=TRIES, kind=switching)
    ratio = 0.0 if nature == "single" else float(nature.split()[-1])
    return by_returns(rng, number, ratio=ratio, kind=switching)


def draw_null(rng: Rng, cell: str, number: int) -> Account:
    """Return an account without skill over one, three or five years, at some settings."""
    years = int(cell.split()[0])
    account = by_returns(rng, number, years=years, disclosed="disclosed" in cell)
    if "coin" in cell:
        # In and out of the market by the week, on the toss of a coin.
        weeks = np.repeat(rng.random(account.returns.size // 5 + 1) < 0.5, 5)
        share = np.where(weeks, 1.0, rng.uniform(0.0, 0.4))[: account.returns.size]
        account.returns = share * account.returns
    if "one try" in cell:
        account.tries = 1
    return account


def draw_power(rng: Rng, cell: str, number: int) -> Account:
    """Return a skilled account of one try, with dividends and cash disclosed or assumed."""
    words = cell.split()
    account = by_returns(
        rng,
        number,
        ratio=float(words[1].rstrip(",")),
        years=int(words[2]),
        disclosed="disclosed" in cell,
    )
    account.tries = 1
    return account


@cache
def real_index(name: str) -> pd.Series:
    """Return the daily levels of ``sp500`` or ``nasdaq`` (1999 to 2018, without dividends)."""
    if name == "sp500":
        from arch.data import sp500 as source
    else:
        from arch.data import nasdaq as source
    return source.load()["Adj Close"].astype(float)


def real_window(rng: Rng, name: str, years: int = 3) -> pd.Series:
    """Return the daily returns of a real index over some years, begun on a random day."""
    returns = real_index(name).pct_change().dropna()
    length = years * YEAR
    start = int(rng.integers(returns.size - length))
    return returns.iloc[start : start + length]


def draw_passive(rng: Rng, cell: str, number: int) -> Account:
    """Return a fund that follows an index: plain, levered twice, or inverse, after its fees."""
    name, source = cell.split(", ")
    if source == "simulated":
        index = sessions(2001 + number % 15, 3)
        terms = drawn_terms(rng, disclosed=False)
        market = pd.Series(drawn_market(rng, terms, noise_kind(number), len(index)), index)
    elif source == "36 months":
        index = sessions(2001 + number % 15, 3)
        terms = drawn_terms(rng, disclosed=False)
        market = pd.Series(drawn_market(rng, terms, noise_kind(number), len(index)), index)
        market = compounded(market, "M")
    else:
        market = real_window(rng, source)
    rows = YEAR if source != "36 months" else 12
    cash = rng.uniform(0.0, 0.04) / rows
    tracking = rng.normal(0.0, 0.001 / np.sqrt(rows), market.size)
    if name == "index fund":
        made = market - rng.uniform(0.0003, 0.007) / rows
    elif name == "fund with dividends":
        made = market + rng.uniform(0.012, 0.022) / rows - rng.uniform(0.0003, 0.004) / rows
    elif name == "levered":
        made = 2.0 * market - cash - rng.uniform(0.007, 0.012) / rows
    else:
        made = -market + 2.0 * cash - rng.uniform(0.007, 0.012) / rows
    return Account(made + tracking, market)


def draw_cash(rng: Rng, cell: str, number: int) -> Account:
    """Return a money-market account beside a market."""
    index = sessions(2001 + number % 15, 3)
    terms = drawn_terms(rng, disclosed=False)
    market = pd.Series(drawn_market(rng, terms, noise_kind(number), len(index)), index)
    rate = rng.uniform(0.005, 0.05)
    if cell == "constant rate":
        paid = np.full(market.size, rate)
    else:
        # The rate moves by steps every six weeks, as central banks move theirs.
        steps = rng.choice([-0.0025, 0.0, 0.0025], market.size // 30 + 1)
        paid = np.maximum(rate + np.repeat(np.cumsum(steps), 30)[: market.size], 0.0001)
    account = pd.Series(paid / YEAR, index)
    if "monthly" in cell:
        return Account(compounded(account, "M"), compounded(market, "M"))
    return Account(account, market)


STOCKS = ("fakestockdata", "skfolio-sp500", "portfolio-backtester", "bokeh-stocks")
"""Data sets of the catalogue: real stocks, prices with dividends and splits worked in."""


@cache
def stock_closes(name: str) -> pd.DataFrame:
    """Return the daily closes of a stored data set of stocks, a column per name."""
    from tradeassay_bench.data import load_dataset

    stored = load_dataset(name)
    rows = len(stored.sessions)
    view = stored.at(rows - 1, "close")
    days = pd.DatetimeIndex([pd.Timestamp(str(day)[:10]) for day in stored.sessions])
    return pd.DataFrame(view.bars("close", rows), index=days, columns=list(view.symbols))


def draw_fund(rng: Rng, cell: str, number: int) -> Account | None:
    """Return a fund or a stock that was bought once and held; None where its data has gaps."""
    if cell == "nasdaq held":
        held = real_window(rng, "nasdaq")
        market = real_index("sp500").pct_change()
        return Account(held, market.reindex(held.index))
    if cell == "style funds by month":
        return draw_style_fund(rng)
    name, _, choice = cell.partition(": ")
    closes = stock_closes(name)
    symbol = str(rng.choice(closes.columns))
    if choice == "Walmart":
        symbol = "WMT"
    if choice == "whole record":
        if number >= closes.shape[1]:
            return None
        symbol = str(closes.columns[number])
    # A day after a gap is left out: its return would span more days than the benchmark's.
    held = closes[symbol].pct_change(fill_method=None).dropna()
    market = real_index("sp500").pct_change().dropna()
    common = held.index.intersection(market.index)
    length = common.size - 1 if choice == "whole record" else 3 * YEAR
    if common.size < length + 1:
        return None
    start = int(rng.integers(common.size - length))
    window = common[start : start + length]
    return Account(held[window], market[window])


def draw_style_fund(rng: Rng) -> Account:
    """Return a small or a cheap fund of Kenneth French's factors over ten years, by month."""
    from arch.data import frenchdata

    table = frenchdata.load() / 100.0
    months = pd.period_range("1926-07", periods=len(table), freq="M").to_timestamp(how="end")
    table.index = months.normalize()
    start = int(rng.integers(len(table) - 120))
    window = table.iloc[start : start + 120]
    market = window["Mkt-RF"] + window["RF"]
    small, cheap = rng.uniform(0.0, 0.8, 2)
    fund = market + small * window["SMB"] + cheap * window["HML"] - rng.uniform(0.001, 0.01) / 12
    return Account(fund, market)


# One account, in rows of different length --------------------------------------------------------

HOURS = 7
GRAINS = ("daily", "hourly", "weekly", "monthly")


def compounded(returns: pd.Series, period: str) -> pd.Series:
    """Return the returns over days (``D``), weeks (``W``) or months (``M``), at their last day."""
    grown = (1.0 + returns).groupby(returns.index.to_period(period)).prod() - 1.0
    grown.index = grown.index.to_timestamp(how="end").normalize()
    return grown


def by_the_hour(rng: Rng, number: int, ratio: float, years: int) -> tuple[pd.Series, pd.Series]:
    """Return an account and its benchmark by the hour; a day's volatility holds for its hours."""
    kind = noise_kind(number)
    days = sessions(2001 + number % 15, years)
    terms = drawn_terms(rng, disclosed=False)
    beta, residual = rng.uniform(0.3, 1.2), rng.uniform(0.06, 0.15)

    def hours(yearly_mean: float, yearly_volatility: float) -> Floats:
        # Hours are normal around the day's move, so that their sum is the day's noise.
        day = noise(rng, kind, len(days))
        bridge = rng.normal(size=(len(days), HOURS))
        bridge -= bridge.mean(axis=1, keepdims=True)
        moves = day / HOURS + bridge / np.sqrt(HOURS)
        scaled = yearly_mean / (YEAR * HOURS) + yearly_volatility / np.sqrt(YEAR) * moves
        return scaled.ravel()

    market = hours(terms.drift, terms.volatility)
    own = hours(ratio * residual, residual)
    idle = (1.0 - beta) * terms.cash / (YEAR * HOURS)
    stamps = (days.to_numpy()[:, None] + np.arange(10, 10 + HOURS) * np.timedelta64(1, "h")).ravel()
    index = pd.DatetimeIndex(stamps)
    shown = market - terms.dividends / (YEAR * HOURS)
    return pd.Series(beta * market + idle + own, index), pd.Series(shown, index)


def in_grain(returns: pd.Series, grain: str) -> pd.Series:
    """Return an hourly account in rows of another length."""
    if grain == "hourly":
        return returns
    return compounded(returns, {"daily": "D", "weekly": "W", "monthly": "M"}[grain])


def judge_grains(rng: Rng, cell: str, number: int) -> list[dict[str, Any]]:
    """Return the verdicts on one account by the day, hour, week and month."""
    words = cell.split()
    returns, market = by_the_hour(rng, number, float(words[-1]), int(words[0]))
    found = []
    for grain in GRAINS:
        account = Account(in_grain(returns, grain), in_grain(market, grain))
        found.append(outcome(account, grain=grain))
    return found


def coin_by_the_hour(rng: Rng, ratio: float, days: int) -> tuple[pd.Series, pd.Series]:
    """Return an account of coins and its benchmark by all hours of all days.

    The hours of Europe's and America's day move more than the others.
    """
    start = np.datetime64("2016-01-04") + np.timedelta64(int(rng.integers(0, 5 * 365)), "D")
    stamps = start + np.arange(24 * days) * np.timedelta64(1, "h")
    of_day = np.arange(24 * days) % 24
    shape = 1.0 + 0.5 * np.sin((of_day - 8) * np.pi / 12.0)
    shape /= np.sqrt(np.mean(shape**2))
    volatility, residual = rng.uniform(0.35, 0.8), rng.uniform(0.1, 0.35)
    root = np.sqrt(365 * 24)

    def moves(yearly: float) -> Floats:
        busy = np.repeat(np.exp(0.4 * rng.normal(size=days) - 0.16), 24)
        return yearly / root * shape * busy * rng.standard_t(5, 24 * days) / np.sqrt(5.0 / 3.0)

    market = rng.uniform(-0.2, 0.5) / (365 * 24) + moves(volatility)
    own = rng.uniform(0.0, 1.1) * market + ratio * residual / (365 * 24) + moves(residual)
    index = pd.DatetimeIndex(stamps.astype("datetime64[ns]"))
    return pd.Series(own, index), pd.Series(market, index)


def judge_hours(rng: Rng, cell: str, number: int) -> list[dict[str, Any]]:
    """Return the verdicts on one account by the day and by the hour; half have a time zone."""
    ratio = float(re.search(r"ratio (\d)", cell)[1])
    years = 1 + number % 3
    if cell.startswith("coin"):
        returns, market = coin_by_the_hour(rng, ratio, 365 * years)
        zone = "UTC"
    else:
        returns, market = by_the_hour(rng, number, ratio, years)
        zone = "America/New_York"
    found = []
    for grain in ("daily", "hourly"):
        own, shown = in_grain(returns, grain), in_grain(market, grain)
        if grain == "hourly" and number % 2:
            own.index = own.index.tz_localize(zone)
            shown.index = own.index
        account = Account(own, None if "alone" in cell else shown)
        found.append(outcome(account, grain=grain))
    return found


def draw_months(rng: Rng, cell: str, number: int) -> Account:
    """Return a monthly account of so many months, with an alpha ratio of 2 or 0."""
    words = cell.split()
    count = int(words[0])
    years = -(-count // 12)
    account = by_returns(rng, number, ratio=float(words[-1]), years=years)
    assert account.benchmark is not None
    monthly = compounded(account.returns, "M").iloc[:count]
    return Account(monthly, compounded(account.benchmark, "M").iloc[:count])


def draw_short(rng: Rng, cell: str, number: int) -> Account:
    """Return twenty days of an account with or without skill."""
    account = by_returns(rng, number, ratio=float(cell.split()[-1]), years=1)
    assert account.benchmark is not None
    return Account(account.returns.iloc[:20], account.benchmark.iloc[:20])


# Watched -----------------------------------------------------------------------------------------


def judge_watched(rng: Rng, cell: str, number: int) -> list[dict[str, Any]]:
    """Return all verdicts on an account without alpha at twelve monthly looks."""
    account = by_returns(rng, number, years=1, disclosed="disclosed" in cell)
    assert account.benchmark is not None
    looks = []
    for month in range(1, 13):
        rows = 21 * month
        seen = Account(account.returns.iloc[:rows], account.benchmark.iloc[:rows])
        seen.watched = cell.startswith("watched")
        seen.disclosed = account.disclosed
        looks.append(outcome(seen))
    last = looks[-1]
    last["ever"] = sorted({look["word"] for look in looks})
    last["ever_kinds"] = sorted({look["kind"] for look in looks})
    last["seconds"] = sum(look["seconds"] for look in looks)
    return [last]


# Rows by holdings --------------------------------------------------------------------------------

NAMES = 120
DAILY_DRIFT = 0.0012
"""The standard deviation of the names' daily drift, which lasts for a block of sessions."""
BLOCK = 5
HISTORY = YEAR
"""Sessions before the account begins, which factors need."""
HOLDING_CELLS = (
    "word: ratio 1",
    "word: ratio 2",
    "word: single",
    "word: best of 20",
    "nulls: single, one try",
    "power: ratio 2, one try",
    "nulls: in and out by coin",
    "timing: timer",
    "timing: best of 20 coins",
    "costs: edge eaten",
    "costs: edge eaten, trade log",
    "costs: edge half eaten",
    "worse: ratio -2",
    "worse: worst of 20",
)


@dataclass
class World:
    """A simulated market of names: returns, their sources, and the path of the snapshot."""

    index: pd.DatetimeIndex
    names: list[str]
    returns: Floats
    close: Floats
    drift: Floats
    """The drift of each name on each day beyond its beta. A skilled holder sees it with noise."""
    residual: Floats
    """The yearly residual volatility of each name."""
    dataset: str
    folder: Path


def make_world(rng: Rng, number: int, folder: Path) -> World:
    """Draw prices of some names, and import them as anybody imports files of bars."""
    from tradeassay_bench.data import FilesConfig, import_files

    kind = noise_kind(number)
    index = sessions(2001 + number % 15, 4)
    days = len(index)
    terms = drawn_terms(rng, disclosed=True)
    market = drawn_market(rng, terms, kind, days)
    beta = rng.uniform(0.6, 1.4, NAMES)
    residual = rng.uniform(0.2, 0.35, NAMES)
    blocks = rng.normal(0.0, DAILY_DRIFT, (days // BLOCK + 1, NAMES))
    drift = np.repeat(blocks, BLOCK, axis=0)[:days]
    own = residual / np.sqrt(YEAR) * noise(rng, kind, days, NAMES)
    returns = np.maximum(beta * market[:, None] + drift + own, -0.25)
    returns = np.minimum(returns, 0.25)
    close = rng.uniform(20.0, 120.0, NAMES) * np.cumprod(1.0 + returns, axis=0)
    names = [f"N{place:03d}" for place in range(NAMES)]

    # Opens lie between the two closes, and the day's range holds both.
    before = np.vstack([close[:1], close[:-1]])
    opened = before + (close - before) * rng.uniform(0.1, 0.5, close.shape)
    reach = 1.0 + np.abs(rng.normal(0.0, 0.004, close.shape))
    table = pd.DataFrame(
        {
            "date": np.repeat(index.strftime("%Y-%m-%d").to_numpy(), NAMES),
            "symbol": np.tile(names, days),
            "open": opened.ravel(),
            "high": (np.maximum(opened, close) * reach).ravel(),
            "low": (np.minimum(opened, close) / reach).ravel(),
            "close": close.ravel(),
            "volume": rng.lognormal(13.0, 0.4, close.size).round(),
        }
    )
    files = folder / "files"
    files.mkdir(parents=True)
    table.to_csv(files / "bars.csv", index=False)
    import_files(FilesConfig(path=str(files), name="drawn"), home=folder)
    dataset = str(folder / "store" / "drawn")
    return World(index, names, returns, close, drift, residual, dataset, folder)


def top_mean(held: int) -> float:
    """Return the mean of the ``held`` highest of all names' standard normal scores."""
    drawn = np.random.default_rng(held).normal(size=(2_000, NAMES))
    return float(np.sort(drawn, axis=1)[:, -held:].mean())


def chosen_names(rng: Rng, world: World, held: int, sight: float) -> Floats:
    """Return equal weights on the names with the best scores, chosen anew for every block.

    A score is the true drift, seen with the correlation ``sight``, and noise. A negative sight
    chooses the worst.
    """
    weights = np.zeros_like(world.returns)
    for start in range(0, len(world.index), BLOCK):
        true = world.drift[start] / DAILY_DRIFT
        blind = np.sqrt(1.0 - sight**2) * rng.normal(size=NAMES)
        best = np.argsort(-(sight * true + blind))[:held]
        weights[start : start + BLOCK, best] = 1.0 / held
    return weights


def traded_share(weights: Floats) -> Floats:
    """Return how much of the account is bought and sold on each day."""
    moved = np.abs(np.diff(weights, axis=0)).sum(axis=1)
    return np.concatenate([[0.0], moved])


def sight_for(ratio: float, world: World, held: int, cost: float) -> float:
    """Return the sight that leaves an alpha ratio after costs at the usual turnover."""
    residual = np.sqrt((world.residual**2).mean() / held)
    turned = 2.0 * (1.0 - held / NAMES) * YEAR / BLOCK
    wanted = ratio * residual + turned * cost
    return float(np.clip(wanted / (DAILY_DRIFT * top_mean(held) * YEAR), -0.95, 0.95))


def net_of(world: World, weights: Floats, cost: float) -> Floats:
    """Return the account's days net of what it pays for what it trades."""
    return (weights * world.returns).sum(axis=1) - cost * traded_share(weights)


def coin_share(rng: Rng, market: Floats, right: float, low: float) -> Floats:
    """Return the share invested, by the week, which is rightly chosen with a probability."""
    rises = np.add.reduceat(market, np.arange(0, market.size, 5)) > 0.0
    fits = rng.random(rises.size) < right
    return np.repeat(np.where(rises == fits, 1.0, low), 5)[: market.size]


def holder(rng: Rng, world: World, cell: str) -> tuple[Floats, float, float]:
    """Return the weights of one kind of holder, what its trades cost, and its true alpha ratio."""
    held = int(rng.integers(10, 31))
    cost = rng.uniform(0.0, 0.0001)
    market = world.returns.mean(axis=1)
    residual = np.sqrt((world.residual**2).mean() / held)

    if "ratio" in cell:
        sight = sight_for(float(re.search(r"-?\d", cell)[0]), world, held, cost)
        weights = chosen_names(rng, world, held, sight)
    elif "eaten" in cell:
        weights = chosen_names(rng, world, held, sight_for(2.5, world, held, 0.0))
        gross = (weights * world.drift).sum(axis=1)[HISTORY:].sum()
        share = rng.uniform(0.45, 0.55) if "half" in cell else rng.uniform(0.95, 1.1)
        cost = share * gross / traded_share(weights)[HISTORY:].sum()
    elif "of 20" in cell and "coin" not in cell:
        tries = [chosen_names(rng, world, held, 0.0) for _ in range(TRIES)]
        days = np.column_stack([net_of(world, one, cost)[HISTORY:] for one in tries])
        weights = tries[best_by_sharpe(days, worst="worst" in cell)]
    elif "coin" in cell or "timer" in cell:
        names = chosen_names(rng, world, held, 0.0)
        low = rng.uniform(0.0, 0.3)
        right = 0.67 if "timer" in cell else 0.5
        tossed = TRIES if "of 20" in cell else 1
        tries = [names * coin_share(rng, market, right, low)[:, None] for _ in range(tossed)]
        days = np.column_stack([net_of(world, one, cost)[HISTORY:] for one in tries])
        weights = tries[best_by_sharpe(days)]
    else:
        weights = chosen_names(rng, world, held, 0.0)

    paid = cost * traded_share(weights)[HISTORY:].mean() * YEAR
    true = (weights * world.drift).sum(axis=1)[HISTORY:].mean() * YEAR
    return weights, cost, float((true - paid) / residual)


def write_weights(world: World, weights: Floats, path: Path) -> None:
    """Write the weights that are not zero, as the documentation describes the table."""
    rows, columns = np.nonzero(weights[HISTORY:])
    days = world.index[HISTORY:].strftime("%Y-%m-%d").to_numpy()
    table = pd.DataFrame(
        {
            "date": days[rows],
            "symbol": np.array(world.names)[columns],
            "weight": weights[HISTORY:][rows, columns],
        }
    )
    table.to_parquet(path)


CASH_AT_START = 10_000_000.0


def write_trades(world: World, weights: Floats, cost: float, path: Path) -> None:
    """Write the fills that lead to the weights: at the close before, in whole shares, with fees.

    One per cent of the account stays in cash for the fees.
    """
    cash, shares, fills = CASH_AT_START, np.zeros(NAMES), []
    for day in range(HISTORY, len(world.index)):
        if day > HISTORY and (weights[day] == weights[day - 1]).all():
            continue
        price = world.close[day - 1]
        value = cash + float((shares * price).sum())
        wanted = np.floor(0.99 * weights[day] * value / price)
        moved = wanted - shares
        stamp = f"{world.index[day - 1]:%Y-%m-%d} 16:00:00"
        # Sales first: they pay for what is bought.
        for column in np.argsort(moved, kind="stable"):
            if moved[column] == 0.0:
                continue
            fee = abs(moved[column]) * price[column] * cost
            cash -= moved[column] * price[column] + fee
            side = "BUY" if moved[column] > 0 else "SELL"
            name = world.names[column]
            fills.append((stamp, name, side, abs(moved[column]), price[column], round(fee, 4)))
        shares = wanted
    columns = ["time", "symbol", "side", "quantity", "price", "fees"]
    pd.DataFrame(fills, columns=columns).to_csv(path, index=False)


def judge_holdings(rng: Rng, cell: str, number: int) -> list[dict[str, Any]]:
    """Return the verdicts on all kinds of holders in one world; ``number`` is the world's."""
    folder = Path(tempfile.mkdtemp(prefix="evidence-"))
    found = []
    try:
        world = make_world(rng, number, folder)
        for kind in HOLDING_CELLS:
            for copy in range(PER_WORLD):
                weights, cost, true = holder(rng, world, kind)
                days = net_of(world, weights, cost)
                account = Account(
                    pd.Series(days[HISTORY:], world.index[HISTORY:]), dataset=world.dataset
                )
                if "trade log" in kind:
                    account.trades = folder / "trades.csv"
                    account.cash_at_start = CASH_AT_START
                    write_trades(world, weights, cost, account.trades)
                else:
                    account.weights = folder / "weights.parquet"
                    write_weights(world, weights, account.weights)
                if "one try" in kind:
                    account.tries = 1
                said = outcome(account, cell=kind, true_ratio=round(true, 3))
                said["number"] = number * PER_WORLD + copy
                found.append(said)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


PER_WORLD = 2


def draw_worse(rng: Rng, cell: str, number: int) -> Account:
    """Return a true loser, an account without skill, or the worst of twenty."""
    if cell == "worst of 20":
        return by_returns(rng, number, tries_made=TRIES, worst=True)
    return by_returns(rng, number, ratio=0.0 if cell == "single" else float(cell.split()[-1]))


# Judging -----------------------------------------------------------------------------------------

NUMBER = r"[+\-−]?\d[\d,.]*\s?%"
WITH_INTERVAL = re.compile(
    rf"{NUMBER} a year \({NUMBER} to {NUMBER}\)|{NUMBER} \({NUMBER} to {NUMBER}\) a year"
)
ANNUAL = re.compile(rf"{NUMBER} (?:a|per) year|annuali[sz]ed[^.;]*{NUMBER}")


def bare_annual(lines: Iterable[str]) -> str:
    """Return the first annual figure without an interval; empty where there is none."""
    for line in lines:
        match = ANNUAL.search(WITH_INTERVAL.sub("", line))
        if match:
            return line
    return ""


def outcome(account: Account, **more: Any) -> dict[str, Any]:
    """Judge one account, and return the values for the tables."""
    began = time.process_time()
    try:
        kind, label, firm, sentence, found = judge(account)
    except Exception as error:  # one crash must not lose the others; it is counted and shown
        kind, label, firm, sentence, found = "crashed", "crashed", False, repr(error), {}
    reasons = [str(line) for line in found.get("verdict", {}).get("because", ())]
    return {
        "kind": kind,
        "label": label,
        "word": word_of(kind, label),
        "firm": firm,
        "sentence": sentence,
        "alpha": found.get("annual_alpha", [None, None, None]),
        "bare": bare_annual([sentence, *reasons]),
        "seconds": round(time.process_time() - began, 3),
        **more,
    }


def judged_once(draw: Callable[[Rng, str, int], Account | None]) -> Callable[..., list[Any]]:
    """Return a function that draws an account and judges it once."""

    def study(rng: Rng, cell: str, number: int) -> list[dict[str, Any]]:
        account = draw(rng, cell, number)
        return [] if account is None else [outcome(account)]

    return study


# Rows, tasks and workers -------------------------------------------------------------------------

RATIOS = (0.5, 1, 1.5, 2)
POWER = [
    f"ratio {ratio}, {years} years, {settings}"
    for settings in ("disclosed", "default")
    for years in (1, 3, 5)
    for ratio in (1, 1.5, 2, 3)
]
REAL = ("sp500", "nasdaq")


@dataclass
class Row:
    """One row of the study: its cells, and the function that draws and judges one account of a
    cell.
    """

    study: Callable[[Rng, str, int], list[dict[str, Any]]]
    cells: tuple[str, ...]
    share: float = 1.0
    """How many accounts it takes, as a share of ``--accounts``."""
    skipped: list[str] = field(default_factory=list)


ROWS: dict[str, Row] = {
    "word": Row(
        judged_once(draw_word),
        (
            *(f"ratio {ratio}" for ratio in RATIOS),
            "single",
            "best of 20",
            "ratio 2, switching",
            "single, switching",
            "best of 20, switching",
        ),
    ),
    "nulls": Row(
        judged_once(draw_null),
        (
            *(f"{years} years, default" for years in (1, 3, 5)),
            *(f"{years} years, one try" for years in (1, 3, 5)),
            "3 years, one try, disclosed",
            "3 years, in and out by coin",
        ),
    ),
    "passive": Row(
        judged_once(draw_passive),
        tuple(
            f"{name}, {source}"
            for source in ("simulated", *REAL, "36 months")
            for name in ("index fund", "fund with dividends", "levered", "inverse")
        ),
    ),
    "cash": Row(judged_once(draw_cash), ("constant rate", "moving rate", "moving rate, monthly")),
    "funds": Row(
        judged_once(draw_fund),
        (
            "nasdaq held",
            "style funds by month",
            *STOCKS,
            "skfolio-sp500: Walmart",
            "portfolio-backtester: Walmart",
            "skfolio-sp500: whole record",
            "fakestockdata: whole record",
            "portfolio-backtester: whole record",
        ),
    ),
    "power": Row(judged_once(draw_power), tuple(POWER)),
    "grains": Row(
        judge_grains,
        tuple(f"{years} years, ratio {ratio}" for years in (3, 5) for ratio in (0, 2)),
    ),
    "hours": Row(
        judge_hours,
        tuple(
            f"{kind} hours, ratio {ratio}, {benchmark}"
            for kind in ("stock", "coin")
            for ratio in (0, 2)
            for benchmark in ("with benchmark", "alone")
        ),
    ),
    "months": Row(
        judged_once(draw_months),
        tuple(
            f"{months} months, ratio {ratio}"
            for ratio in (2, 0)
            for months in (24, 36, 59, 60, 120)
        ),
    ),
    "short": Row(judged_once(draw_short), ("20 days, ratio 0", "20 days, ratio 2")),
    "worse": Row(judged_once(draw_worse), ("ratio -1", "ratio -2", "single", "worst of 20")),
    "watched": Row(judge_watched, ("watched", "watched, disclosed", "the usual test")),
    "holdings": Row(judge_holdings, ("worlds",), share=1.0 / PER_WORLD),
}


def missing_stocks(cells: Iterable[str]) -> dict[str, str]:
    """Return the cells whose data set is neither stored nor to be had, each with the reason."""
    missing = {}
    for cell in cells:
        name = cell.split(":")[0]
        if name not in STOCKS:
            continue
        try:
            stock_closes(name)
        except UserError:
            got = subprocess.run(
                [sys.executable, "-m", "tradeassay", "data", "get", name],
                capture_output=True,
                text=True,
            )
            if got.returncode:
                missing[cell] = "not stored; `tradeassay data get` failed"
    return missing


Task = tuple[str, str, int, int]
"""The row, the cell, the number of the account, and the seed."""


def run_task(task: Task) -> list[dict[str, Any]]:
    """Draw and judge one account, or one world of holders."""
    row, cell, number, seed = task
    rng = np.random.default_rng([seed, zlib.crc32(f"{row}/{cell}".encode()), number])
    found = ROWS[row].study(rng, cell, number)
    return [{"row": row, "cell": cell, "number": number} | one for one in found]


def tasks_of(rows: Iterable[str], cells: str, first: int, accounts: int, seed: int) -> list[Task]:
    """Return every account that is to be judged.

    ``cells`` holds parts of the cells' names, separated by semicolons; all cells if it is empty.
    ``first`` is the number of the first account.
    """
    parts = cells.split(";")
    tasks = []
    # Worlds take longest and come first, so that no worker is left with one at the end.
    for row in sorted(rows, key=lambda row: row != "holdings"):
        start = round(first * ROWS[row].share)
        wanted = max(1, round(accounts * ROWS[row].share))
        for cell in ROWS[row].cells:
            if any(part in cell for part in parts):
                tasks += [(row, cell, number, seed) for number in range(start, start + wanted)]
    return tasks


# Tables ------------------------------------------------------------------------------------------


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z = 1.959964
    middle = (hits + z**2 / 2.0) / (of + z**2)
    reach = z / (of + z**2) * np.sqrt(hits * (of - hits) / of + z**2 / 4.0)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def share(hits: int, of: int) -> str:
    """Return a share with its interval, as text."""
    if not of:
        return "none"
    low, high = wilson(hits, of)
    return f"{hits}/{of} = {hits / of:.1%} ({low:.1%} to {high:.1%})"


def count(outcomes: list[dict[str, Any]], key: str, *values: str) -> int:
    """Return how many outcomes have one of the values."""
    return sum(one[key] in values for one in outcomes)


def cells_of(outcomes: list[dict[str, Any]], row: str) -> dict[str, list[dict[str, Any]]]:
    """Return a row's outcomes by cell, in the order of their first appearance."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for one in outcomes:
        if one["row"] == row:
            cells.setdefault(one["cell"], []).append(one)
    return cells


def worth(
    cells: dict[str, list[dict[str, Any]]], skilled: str, single: str, best: str, *words: str
) -> dict[str, Any]:
    """Return the predictive value of a word if half are skilled, a quarter single and a quarter
    chosen.

    The interval of the predictive value comes from draws of the three rates.
    """
    sizes = [
        (count(cells[cell], "word", *words), len(cells[cell])) for cell in (skilled, single, best)
    ]
    rng = np.random.default_rng(1)
    rates = [rng.beta(hits + 0.5, of - hits + 0.5, 20_000) for hits, of in sizes]
    draws = rates[0] / (rates[0] + (rates[1] + rates[2]) / 2.0)
    said, alone, luckiest = (hits / of for hits, of in sizes)
    total = said + (alone + luckiest) / 2.0
    return {
        "words": list(words),
        "said_of_skilled": said,
        "said_of_single": alone,
        "said_of_best": luckiest,
        "true": said / total if total else None,
        "true_low": float(np.quantile(draws, 0.025)) if total else None,
        "true_high": float(np.quantile(draws, 0.975)) if total else None,
        "likelihood_ratio_to_best": said / luckiest if luckiest else None,
    }


def print_worth(
    title: str,
    cells: dict[str, list[dict[str, Any]]],
    skilled: str,
    single: str,
    best: str,
    *words: str,
) -> list[Any]:
    """Print the predictive value of each word, and of all words together."""
    print(f"\n{title}: half {skilled}, a quarter {single}, a quarter {best}")
    print("| word | true | said of the skilled | of single ones | of the chosen | ratio |")
    print("|---|---|---|---|---|---|")
    found = []
    together = [words] if len(words) > 1 else []
    for some in [*((word,) for word in words), *together]:
        one = worth(cells, skilled, single, best, *some)
        found.append(one)
        true = "never said"
        if one["true"] is not None:
            true = f"{one['true']:.1%} ({one['true_low']:.1%} to {one['true_high']:.1%})"
        ratio = one["likelihood_ratio_to_best"]
        print(
            f"| {' or '.join(some)} | {true} | {one['said_of_skilled']:.1%} "
            f"| {one['said_of_single']:.1%} | {one['said_of_best']:.1%} "
            f"| {'' if ratio is None else f'{ratio:.1f}'} |"
        )
    return found


def print_cells(cells: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Print how often each word occurred in every cell of a row, and return the counts."""
    print("| cell | accounts | praised | skill | weaker word | timing | kinds |")
    print("|---|---|---|---|---|---|---|")
    found = {}
    for cell, outcomes in cells.items():
        of = len(outcomes)
        kinds = Counter(one["kind"] for one in outcomes)
        words = Counter(one["word"] for one in outcomes)
        timing = words["timing"] + words["weaker timing"]
        print(
            f"| {cell} | {of} | {share(count(outcomes, 'kind', *PRAISE), of)} "
            f"| {words['skill'] / of:.1%} | {words['weaker'] / of:.1%} | {timing / of:.1%} "
            f"| {', '.join(f'{kind} {n}' for kind, n in kinds.most_common())} |"
        )
        found[cell] = {
            "accounts": of,
            "kinds": dict(kinds.most_common()),
            "words": dict(words.most_common()),
            "labels": dict(Counter(one["label"] for one in outcomes).most_common()),
            "bare_annual": sum(bool(one["bare"]) for one in outcomes),
            "seconds_mean": float(np.mean([one["seconds"] for one in outcomes])),
        }
        if "true_ratio" in outcomes[0]:
            found[cell]["true_ratio_mean"] = float(np.mean([one["true_ratio"] for one in outcomes]))
    return found


def print_grains(cells: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Print how often rows of other lengths agree with the daily rows of the same account."""
    print(
        "| account | rows | kind as by day | refused | alpha's difference: mean, and of 95 % "
        "at most | alpha without interval | width / daily | kinds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    found = {}
    for cell, outcomes in cells.items():
        daily = {one["number"]: one for one in outcomes if one["grain"] == "daily"}
        for grain in GRAINS:
            some = [one for one in outcomes if one["grain"] == grain]
            if not some:
                continue
            of = len(some)
            same = sum(one["kind"] == daily[one["number"]]["kind"] for one in some)
            gaps, widths = [], []
            for one in some:
                other = daily[one["number"]]["alpha"]
                if one["alpha"][0] is not None and other[0] is not None:
                    gaps.append(one["alpha"][0] - other[0])
                if one["alpha"][1] is not None and other[1] is not None:
                    widths.append((one["alpha"][2] - one["alpha"][1]) / (other[2] - other[1]))
            refused = count(some, "kind", "refused")
            bare = sum(one["alpha"][0] is not None and one["alpha"][1] is None for one in some)
            kinds = Counter(one["kind"] for one in some)
            gap = "none"
            if gaps:
                gap = f"{np.mean(gaps):+.2%}, {np.quantile(np.abs(gaps), 0.95):.2%}"
            width = f"{np.median(widths):.2f}" if widths else "none"
            print(
                f"| {cell} | {grain} | {share(same, of)} | {refused} | {gap} | {bare} | {width} "
                f"| {', '.join(f'{kind} {n}' for kind, n in kinds.most_common())} |"
            )
            found[f"{cell}, {grain}"] = {
                "accounts": of,
                "same_kind": same,
                "refused": refused,
                "alpha_gap_mean": float(np.mean(gaps)) if gaps else None,
                "alpha_gap_95": float(np.quantile(np.abs(gaps), 0.95)) if gaps else None,
                "width_ratio_median": float(np.median(widths)) if widths else None,
                "alpha_without_interval": bare,
                "bare_annual_in_text": sum(bool(one["bare"]) for one in some),
                "kinds": dict(kinds.most_common()),
            }
    return found


def print_watched(cells: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Print how often an account was ever praised, or ever called worse, in a year of looks."""
    print("| looks | ever praised | ever the weaker word, or praised | ever worse |")
    print("|---|---|---|---|")
    found = {}
    for cell, outcomes in cells.items():
        of = len(outcomes)
        praised = sum(bool(set(one["ever_kinds"]) & set(PRAISE)) for one in outcomes)
        positive = sum(
            bool(set(one["ever_kinds"]) & {*PRAISE, "could-be-best-of-few"}) for one in outcomes
        )
        worse = sum("worse" in one["ever_kinds"] for one in outcomes)
        print(f"| {cell} | {share(praised, of)} | {share(positive, of)} | {share(worse, of)} |")
        found[cell] = {"accounts": of, "praised": praised, "positive": positive, "worse": worse}
    return found


def print_short(cells: dict[str, list[dict[str, Any]]]) -> None:
    """Print how often twenty days came with an annual figure that has no interval."""
    for cell, outcomes in cells.items():
        of = len(outcomes)
        bare = [one for one in outcomes if one["bare"]]
        alone = sum(one["alpha"][0] is not None and one["alpha"][1] is None for one in outcomes)
        print(f"{cell}: an annual figure without interval in the text: {share(len(bare), of)}")
        print(f"{cell}: an annual alpha without interval in the table: {share(alone, of)}")
        if bare:
            print(f"  for instance: {bare[0]['bare']}")


BARS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("nulls praised, by returns (at most 3 %)", "nulls", "", PRAISE),
    ("nulls praised, by returns, one try (at most 3 %)", "nulls", "one try", PRAISE),
    ("single nulls praised, by holdings (at most 3 %)", "holdings", "single", PRAISE),
    ("nulls in and out praised, by holdings (at most 3 %)", "holdings", "by coin", PRAISE),
    ("passive called market (100 %)", "passive", "", ("market",)),
    ("passive praised (0)", "passive", "", PRAISE),
    ("cash called cash (100 %)", "cash", "", ("cash",)),
    ("funds and stocks called timing (0)", "funds", "", ("timing", "mixed")),
    ("eaten edges called costs (at least 75 %)", "holdings", "edge eaten", ("costs",)),
)
"""The figure's name, its row, what the names of its cells contain, and the kinds that count."""


def bars(outcomes: list[dict[str, Any]]) -> dict[str, str]:
    """Return every bar that can be judged from what was run, with its figure."""
    found = {}
    for name, row, part, kinds in BARS:
        some = [one for one in outcomes if one["row"] == row and part in one["cell"]]
        if some:
            found[name] = share(count(some, "kind", *kinds), len(some))
    return found


def compare(outcomes: list[dict[str, Any]], baseline: Path) -> dict[str, Any]:
    """Print, cell by cell, how many accounts are found now and were found before.

    Both versions judged the same accounts, so the difference has the interval of paired counts.
    """
    stored = json.loads(baseline.read_text())
    older = {
        (one["row"], one["cell"], one["number"], one.get("grain")): one
        for one in stored["outcomes"]
    }
    print("\n| row | cell | accounts | praised before | now | difference |")
    print("|---|---|---|---|---|---|")
    pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for one in outcomes:
        before = older.get((one["row"], one["cell"], one["number"], one.get("grain")))
        if before is None or one.get("grain", "daily") != "daily":
            continue
        pair = (before["kind"] in PRAISE, one["kind"] in PRAISE)
        pairs.setdefault((one["row"], one["cell"]), []).append(pair)
        pairs.setdefault((one["row"], "all"), []).append(pair)
    found = {}
    for (row, cell), said in pairs.items():
        of = len(said)
        gained = sum(now and not before for before, now in said)
        lost = sum(before and not now for before, now in said)
        reach = 1.96 * np.sqrt(gained + lost - (gained - lost) ** 2 / of) / of
        gap = (gained - lost) / of
        before_rate = sum(before for before, _ in said) / of
        print(
            f"| {row} | {cell} | {of} | {before_rate:.1%} | {before_rate + gap:.1%} "
            f"| {gap:+.1%} (±{reach:.1%}) |"
        )
        found[f"{row}/{cell}"] = {
            "accounts": of,
            "before": before_rate,
            "difference": gap,
            "reach": float(reach),
        }
    return found


def print_tables(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Print all tables, and return their numbers."""
    found: dict[str, Any] = {}
    for row in ROWS:
        cells = cells_of(outcomes, row)
        if not cells:
            continue
        print(f"\n## {row}\n")
        if row in ("grains", "hours"):
            found[row] = print_grains(cells)
            continue
        if row == "watched":
            found[row] = print_watched(cells)
            continue
        found[row] = print_cells(cells)
        if row == "short":
            print_short(cells)
        if row == "word":
            for key, ending in (("worth", ""), ("worth_switching", ", switching")):
                chosen = [f"{nature}{ending}" for nature in ("ratio 2", "single", "best of 20")]
                if all(cell in cells for cell in chosen):
                    found[key] = print_worth("By returns", cells, *chosen, "skill", "weaker")
        if row == "worse":
            found["worth_worse"] = print_worth(
                "By returns", cells, "ratio -2", "single", "worst of 20", "worse"
            )
        if row == "holdings":
            found["worth_holdings"] = print_worth(
                "By holdings",
                cells,
                "word: ratio 2",
                "word: single",
                "word: best of 20",
                "skill",
                "weaker",
            )
            found["worth_worse_holdings"] = print_worth(
                "By holdings",
                cells,
                "worse: ratio -2",
                "word: single",
                "worse: worst of 20",
                "worse",
            )
            found["worth_timing_holdings"] = print_worth(
                "By holdings",
                cells,
                "timing: timer",
                "nulls: in and out by coin",
                "timing: best of 20 coins",
                "timing",
                "weaker timing",
            )
    print("\n## bars\n")
    found["bars"] = bars(outcomes)
    for name, figure in found["bars"].items():
        print(f"{name}: {figure}")
    return found


def revision() -> str:
    """Return the last commit that changed the judge, if git knows it."""
    folder = str(Path(tradeassay.__file__).parent)
    asked = subprocess.run(
        ["git", "-C", folder, "log", "-1", "--format=%h", "--", "."],
        capture_output=True,
        text=True,
    )
    return asked.stdout.strip()


def judged_all(asked: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Judge the requested accounts. Returns the outcomes and the settings of the run."""
    rows = asked.rows.split(",")
    skipped = missing_stocks(ROWS["funds"].cells) if "funds" in rows else {}
    for cell, reason in skipped.items():
        print(f"skipped: funds, {cell}: {reason}")
    tasks = tasks_of(rows, asked.cells, asked.first, asked.accounts, asked.seed)
    tasks = [task for task in tasks if task[1] not in skipped]
    outcomes: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(asked.workers) as pool:
        for done, some in enumerate(pool.imap(run_task, tasks), 1):
            outcomes += some
            if done % 500 == 0:
                print(f"{done} of {len(tasks)}", file=sys.stderr, flush=True)
    meta = {
        "code": revision(),
        "new_call": NEW_CALL,
        "seed": asked.seed,
        "first": asked.first,
        "accounts": asked.accounts,
        "rows": rows,
        "skipped": skipped,
    }
    return outcomes, meta


def merged(files: Iterable[Path]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the outcomes of several runs of one version and seed; an account counts once."""
    outcomes, meta = {}, {}
    for file in files:
        stored = json.loads(file.read_text())
        described = stored["meta"]
        if meta and (meta["code"], meta["seed"]) != (described["code"], described["seed"]):
            raise SystemExit(f"error: {file} is of another version or seed. Merge it separately.")
        meta = meta or described
        for one in stored["outcomes"]:
            outcomes[(one["row"], one["cell"], one["number"], one.get("grain"))] = one
    meta["rows"] = sorted({one["row"] for one in outcomes.values()})
    return list(outcomes.values()), meta


def main() -> int:
    """Judge all accounts, print the tables, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=200, help="accounts per cell")
    parser.add_argument("--first", type=int, default=0, help="the number of the first account")
    parser.add_argument("--seed", type=int, default=31_415_926)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rows", default=",".join(ROWS), help="some of the rows, with commas")
    parser.add_argument("--cells", default="", help="cells with one of these parts (a;b)")
    parser.add_argument("--json", type=Path, help="a file for the tables and for every verdict")
    parser.add_argument("--baseline", type=Path, help="such a file of another version of the code")
    parser.add_argument(
        "--merge", type=Path, nargs="+", help="judge nobody, and print the tables of such files"
    )
    asked = parser.parse_args()
    rows = asked.rows.split(",")
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        parser.error(f"unknown row '{unknown[0]}'. Choose among {', '.join(ROWS)}.")

    began = time.time()
    if asked.merge:
        outcomes, meta = merged(asked.merge)
    else:
        outcomes, meta = judged_all(asked)
    seconds = sum(one["seconds"] for one in outcomes)
    tables = print_tables(outcomes)
    if asked.baseline is not None:
        tables["against_baseline"] = compare(outcomes, asked.baseline)
    print(
        f"\n{len(outcomes)} verdicts of code {meta['code']}, seed {meta['seed']}: "
        f"{seconds:.0f} CPU-seconds in the judge, {time.time() - began:.0f} seconds in all"
    )
    crashed = [one for one in outcomes if one["kind"] == "crashed"]
    if crashed:
        print(f"{len(crashed)} crashed, for instance: {crashed[0]['sentence']}")
    if asked.json is not None:
        asked.json.write_text(
            json.dumps({"meta": meta, "tables": tables, "outcomes": outcomes}, default=str)
        )
    return 1 if crashed else 0


if __name__ == "__main__":
    raise SystemExit(main())
