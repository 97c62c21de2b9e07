"""Measure the verdict on the risk of a record in other markets than ``evidence_risk.py``.

    python perf/evidence_other_markets.py --accounts 200 --workers 16 --wheels FOLDER --json FILE

The designs were drawn after the judge was changed, and no threshold was set on them. The simulated
market switches between calm and busy times, and coins move four times as much. Real series are the
ones of ``evidence_risk.py``, whose options, counts and goals apply here too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

import evidence_risk as risk
from evidence_risk import (
    MONTHS,
    YEAR,
    Account,
    Check,
    Draw,
    JumpSurface,
    Market,
    OptionDesign,
    Outcome,
    RealData,
    Row,
    Series,
    call,
    put,
)

# ------------------------------------------------------------------ markets


def switching_market(rng: Draw, size: int, scale: float = 1.0) -> Market:
    """Draw a market of calm and busy times without jumps. ``scale`` multiplies its volatility.

    The volatility that option sellers see follows the true one with a delay of some days.
    """
    calm, busy = rng.uniform(0.08, 0.12) * scale, rng.uniform(0.18, 0.28) * scale
    leave_calm, leave_busy = 1.0 / rng.uniform(80.0, 160.0), 1.0 / rng.uniform(20.0, 60.0)
    switches = rng.random(size + 1)
    true = np.empty(size + 1)
    seen = np.empty(size + 1)
    in_calm = True
    level = calm
    for day in range(size + 1):
        if switches[day] < (leave_calm if in_calm else leave_busy):
            in_calm = not in_calm
        true[day] = calm if in_calm else busy
        level += 0.25 * (true[day] - level)
        seen[day] = level
    shocks = rng.standard_t(8.0, size) * np.sqrt(6.0 / 8.0)
    # No fall of more than three standard deviations: the crash is not in the record.
    shocks = np.maximum(shocks, -3.0)
    drift = rng.uniform(0.04, 0.1) * scale / YEAR
    returns = drift + true[:-1] / np.sqrt(YEAR) * shocks
    return Market(risk.business_days(rng, size), returns, seen)


def by_month(dates: np.ndarray, returns: Series) -> tuple[np.ndarray, Series]:
    """Return the whole months of a daily series, at their last calendar days."""
    months = dates.astype("datetime64[D]").astype("datetime64[M]")
    grown = (1.0 + pd.Series(returns)).groupby(months).prod() - 1.0
    grown = grown.iloc[1:-1]
    ends = grown.index.to_numpy().astype("datetime64[M]") + np.timedelta64(1, "M")
    return ends.astype("datetime64[D]") - np.timedelta64(1, "D"), grown.to_numpy()


# ------------------------------------------------------------------ sellers of options


def variance(tenor: int, most: float = 15.0) -> OptionDesign:
    return OptionDesign(f"variance swaps of {tenor} days", tenor, variance=True, most=most)


def seller(
    *designs: OptionDesign, scale: float = 1.0, monthly: bool = False, quiet: bool = False
) -> Callable[[Draw, RealData], Account]:
    """Return the generator of accounts that sell one of the designs."""

    def draw(rng: Draw, _: RealData) -> Account:
        design = designs[int(rng.integers(len(designs)))]
        size = risk.draw_size(rng, 5.0, 12.0) if monthly else risk.draw_size(rng, 2.0, 5.0)
        market = risk.quiet_market(rng, size) if quiet else switching_market(rng, size, scale)
        levels = market.volatility.size
        typical = float(np.median(market.volatility))
        frequency = rng.uniform(0.3, 0.8) * risk.wandering(rng, levels, 0.1)
        surface = JumpSurface(
            volatility=market.volatility
            * rng.uniform(1.02, 1.08)
            * risk.wandering(rng, levels, 0.04),
            typical=typical,
            frequency=frequency,
            jump=-rng.uniform(0.1, 0.16) * min(scale, 2.0),
            jump_spread=rng.uniform(0.04, 0.08),
        )
        middle = int(np.argmin(np.abs(market.volatility - typical)))
        notional = risk.option_notional(rng, design, surface, middle)
        cash = rng.uniform(0.0, 0.04)
        own = risk.option_returns(design, market.returns, surface, notional, cash)
        if not monthly:
            return Account(market.dates, own, market.returns)
        dates, months = by_month(market.dates, own)
        shown = by_month(market.dates, market.returns)[1]
        return Account(dates, months, shown, rows_per_year=MONTHS)

    return draw


PUT_SPREADS = (
    OptionDesign("put spreads 4 and 12 % below, monthly", 21, (put(0.96), put(0.88, 1.0))),
    OptionDesign("put spreads 7 and 15 % below, 6 weeks", 30, (put(0.93), put(0.85, 1.0))),
    OptionDesign("put spreads 3 and 8 % below, weekly", 5, (put(0.97), put(0.92, 1.0))),
)
COVERED_CALLS = (
    OptionDesign("covered calls 1 % above, monthly", 21, (call(1.01),), index_share=1.0),
    OptionDesign("covered calls 3 % above, 6 weeks", 30, (call(1.03),), index_share=1.0),
    OptionDesign("covered calls 1 % above, weekly", 5, (call(1.01),), index_share=1.0),
)
COIN_STRANGLES = (
    OptionDesign("coin strangles 30 % away, monthly", 21, (put(0.7), call(1.35)), most=5.0),
    OptionDesign("coin strangles 14 % away, weekly", 5, (put(0.86), call(1.15)), most=4.0),
)

# ------------------------------------------------------------------ honest portfolios


def tilted_by_day(rng: Draw, data: RealData) -> Account:
    """The real market, partly in cash or levered, with large tilts to size and value."""
    window = _days_of(rng, data, 2.0, 8.0, "1950")
    beta, small, value = rng.uniform(0.6, 1.2), rng.uniform(-0.6, 1.5), rng.uniform(-1.0, 1.0)
    own = window["RF"] + beta * window["Mkt-RF"]
    own = own + small * window["SMB"] + value * window["HML"]
    return _daily_account(window, own)


def winners_by_day(rng: Draw, data: RealData) -> Account:
    """The fifth of real stocks with the best last year, chosen every 21 days, equally weighted.

    Half of the accounts hold the names in proportion to their last year's volatility: small and
    nervous winners weigh more.
    """
    while True:
        table = data.stocks[int(rng.integers(len(data.stocks)))]
        returns = table.pct_change(fill_method=None)
        returns = returns.loc[returns.index.intersection(data.index.index)]
        size = risk.draw_size(rng, 3.0, 5.0)
        if len(returns) <= size + YEAR:
            continue
        start = int(rng.integers(0, len(returns) - size - YEAR))
        window = returns.iloc[start : start + size + YEAR]
        window = window.loc[:, window.notna().all()]
        window = window.loc[:, window.abs().max() < 0.5]
        if window.shape[1] < 10:
            continue
        nervous = rng.random() < 0.5
        days = window.to_numpy()
        own = np.empty(size)
        for first in range(0, size, 21):
            before = days[first : first + YEAR]
            chosen = np.argsort(before.sum(axis=0))[-(days.shape[1] // 5) :]
            weights = before[:, chosen].std(axis=0) if nervous else np.ones(chosen.size)
            held = days[first + YEAR : first + YEAR + 21, chosen]
            own[first : first + held.shape[0]] = held @ (weights / weights.sum())
        dates = window.index[YEAR:]
        return Account(dates.to_numpy(), own, data.index.loc[dates].to_numpy())


def small_winners_by_month(rng: Draw, data: RealData) -> Account:
    """French's two smallest fifths with the best two fifths of the last year, by month."""
    window = risk._months_of(rng, data.portfolios_monthly, 8.0, 25.0)
    names = ["S--H", "S--4", "2--H", "2--4"]
    own = window[names[int(rng.integers(len(names)))]] + window["RF"]
    return risk._monthly_account(window, own)


def managed_by_day(rng: Draw, data: RealData) -> Account:
    """The real market, held in inverse proportion to its last weeks' volatility or variance."""
    window = _days_of(rng, data, 3.0, 6.0, "1930")
    excess = window["Mkt-RF"].to_numpy()
    span = int(rng.integers(10, 64))
    recent = pd.Series(excess).rolling(span).std().to_numpy() * np.sqrt(YEAR)
    power = int(rng.integers(1, 3))
    share = np.minimum((rng.uniform(0.09, 0.16) / recent[span - 1 : -1]) ** power, 2.0)
    window = window.iloc[span:]
    own = window["RF"] + share * window["Mkt-RF"]
    return _daily_account(window, own)


def managed_by_month(rng: Draw, data: RealData) -> Account:
    """The real market by month, in inverse proportion to its last month's variance."""
    window = _days_of(rng, data, 10.0, 20.0, "1930")
    dates = window.index.to_numpy()
    months = dates.astype("datetime64[M]")
    daily = window["Mkt-RF"].to_numpy()
    recent = (pd.Series(daily) ** 2).groupby(months).sum().to_numpy()
    total = by_month(dates, (window["Mkt-RF"] + window["RF"]).to_numpy())
    cash = by_month(dates, window["RF"].to_numpy())[1]
    # ``total`` leaves the first and the last month out: the month before each is one to the left.
    share = np.minimum(rng.uniform(0.8, 1.2) * np.median(recent) / recent[:-2], 2.0)
    own = cash + share * (total[1] - cash)
    return Account(total[0], own, total[1], rows_per_year=MONTHS)


def managed_simulated(rng: Draw, _: RealData) -> Account:
    """A switching market, held in inverse proportion to the volatility seen the day before."""
    market = switching_market(rng, risk.draw_size(rng, 3.0, 6.0))
    share = np.minimum(rng.uniform(0.09, 0.16) / market.volatility[:-1], 2.0)
    cash = rng.uniform(0.0, 0.04) / YEAR
    own = cash + share * (market.returns - cash)
    return Account(market.dates, own, market.returns)


def _days_of(rng: Draw, data: RealData, low: float, high: float, first: str) -> pd.DataFrame:
    table = data.french_daily[first:]
    size = risk.draw_size(rng, low, high)
    start = int(rng.integers(0, len(table) - size))
    return table.iloc[start : start + size]


def _daily_account(window: pd.DataFrame, own: pd.Series) -> Account:
    market = (window["Mkt-RF"] + window["RF"]).to_numpy()
    return Account(window.index.to_numpy(), own.to_numpy(), market)


# ------------------------------------------------------------------ cash


def bills_by_day(rng: Draw, data: RealData) -> Account:
    """Real bills less a fee, by day since 1954, with a hundredth of a basis point of noise."""
    window = _days_of(rng, data, 2.0, 6.0, "1954")
    fee = rng.uniform(0.0005, 0.004) / YEAR
    own = window["RF"] - fee + rng.normal(0.0, 0.000001, len(window))
    return _daily_account(window, own)


def bills_in_basis_points(rng: Draw, data: RealData) -> Account:
    """Real bills less a fee, by month since 1954, printed in per cent with two decimals."""
    table = data.french_monthly["1954-01":]
    window = risk._months_of(rng, table, 5.0, 20.0)
    own = np.round(window["RF"].to_numpy() - rng.uniform(0.0, 0.003) / MONTHS, 4)
    market = (window["Mkt-RF"] + window["RF"]).to_numpy()
    return risk._of_months(window.index.to_numpy(), own, market)


def short_bill_fund(rng: Draw, data: RealData) -> Account:
    """A fund of bills of some months, by month: its value also moves a little with the rate."""
    table = data.french_monthly["1954-01":]
    window = risk._months_of(rng, table, 5.0, 15.0)
    rate = window["RF"].to_numpy()
    duration = rng.uniform(0.05, 0.25)
    moves = np.diff(rate, prepend=rate[0]) * MONTHS
    own = rate - duration * moves + rng.uniform(-0.003, 0.0015) / MONTHS
    market = (window["Mkt-RF"] + window["RF"]).to_numpy()
    return risk._of_months(window.index.to_numpy(), own, market)


def bank_deposit(rng: Draw, _: RealData) -> Account:
    """A deposit at a rate that moves by steps, paid every day or at the end of each month."""
    market = switching_market(rng, risk.draw_size(rng, 2.0, 6.0))
    size = market.returns.size
    steps = rng.choice([-0.0025, 0.0, 0.0, 0.0025], size // 30 + 1)
    rate = rng.uniform(0.0, 0.05) + np.repeat(np.cumsum(steps), 30)[:size]
    daily = np.maximum(rate, 0.0) / YEAR
    if rng.random() < 0.5:
        return Account(market.dates, daily, market.returns)
    months = market.dates.astype("datetime64[M]")
    last = np.append(months[1:] != months[:-1], True)
    paid = np.zeros(size)
    begins = np.concatenate([[0], np.flatnonzero(last)[:-1] + 1])
    paid[last] = np.add.reduceat(daily, begins)
    return Account(market.dates, paid, market.returns)


def called_cash(_: Account, said: Outcome) -> bool:
    return said.kind == "cash"


# ------------------------------------------------------------------ skill that ended


def skilled_until(share: float, monthly: bool = False) -> Callable[[Draw, RealData], Account]:
    """Return the generator of a ratio of 2 to 5 for a share of the record, and none after it."""

    def draw(rng: Draw, _: RealData) -> Account:
        size = risk.draw_size(rng, 7.0, 14.0) if monthly else risk.draw_size(rng, 2.5, 6.0)
        ratio = np.where(np.arange(size) < share * size, rng.uniform(2.0, 5.0), 0.0)
        return _skilled(rng, size, ratio, monthly)

    return draw


def always_skilled(ratio: float, monthly: bool = False) -> Callable[[Draw, RealData], Account]:
    def draw(rng: Draw, _: RealData) -> Account:
        size = risk.draw_size(rng, 7.0, 14.0) if monthly else risk.draw_size(rng, 2.5, 6.0)
        return _skilled(rng, size, ratio, monthly)

    return draw


def _skilled(rng: Draw, size: int, ratio: float | Series, monthly: bool) -> Account:
    """Return an account whose residuals have one volatility and Student's t of five degrees."""
    market = switching_market(rng, size)
    yearly = rng.uniform(0.05, 0.16)
    shocks = rng.standard_t(5.0, size) * np.sqrt(3.0 / 5.0)
    own = rng.uniform(0.2, 1.1) * market.returns
    own = own + (ratio * yearly / YEAR + yearly / np.sqrt(YEAR) * shocks)
    if not monthly:
        return Account(market.dates, own, market.returns)
    dates, months = by_month(market.dates, own)
    shown = by_month(market.dates, market.returns)[1]
    return Account(dates, months, shown, rows_per_year=MONTHS)


def called_faded(_: Account, said: Outcome) -> bool:
    return "faded" in said.headline


# ------------------------------------------------------------------ late, smoothed and made up


def other_time_zone(rng: Draw, _: RealData) -> Account:
    """An account that closes hours before its benchmark: the rest of a day comes on the next."""
    market = switching_market(rng, risk.draw_size(rng, 2.5, 5.0))
    seen = rng.uniform(0.2, 0.6)
    parts = rng.normal(0.0, 1.0, market.returns.size) * market.volatility[:-1] / np.sqrt(YEAR)
    early = seen * market.returns + np.sqrt(seen * (1.0 - seen)) * parts
    before = np.concatenate([[0.0], (market.returns - early)[:-1]])
    beta, yearly = rng.uniform(0.6, 1.2), rng.uniform(0.03, 0.08)
    noise = yearly / np.sqrt(YEAR) * rng.standard_t(6, market.returns.size) / np.sqrt(1.5)
    own = beta * (early + before) + noise
    return Account(market.dates, own, market.returns, beta=beta, alpha=0.0)


def faded_prices(rng: Draw, _: RealData) -> Account:
    """Reported returns are a geometric mean of the past: a share of the old value stays."""
    market = switching_market(rng, risk.draw_size(rng, 2.5, 5.0))
    beta, yearly = rng.uniform(0.5, 1.3), rng.uniform(0.03, 0.08)
    noise = yearly / np.sqrt(YEAR) * rng.standard_t(6, market.returns.size) / np.sqrt(1.5)
    alpha = rng.uniform(-1.0, 2.0) * yearly
    true = alpha / YEAR + beta * market.returns + noise
    keeps = rng.uniform(0.3, 0.85)
    own = np.empty(true.size)
    own[0] = true[0]
    for day in range(1, true.size):
        own[day] = keeps * own[day - 1] + (1.0 - keeps) * true[day]
    return Account(market.dates, own, market.returns, beta=beta, alpha=alpha)


def steady_fraud(rng: Draw, _: RealData) -> Account:
    """A record like Fairfield Sentry's in another market and with other moments."""
    size = risk.draw_size(rng, 6.0, 16.0, MONTHS)
    market = risk.monthly_market(rng, size)
    mean, deviation = rng.uniform(0.008, 0.012), rng.uniform(0.004, 0.007)
    standard = (market - market.mean()) / market.std()
    weight = rng.uniform(0.0, 0.4)
    mixed = weight * standard + np.sqrt(1.0 - weight**2) * rng.normal(size=size)
    own = np.maximum(mean + deviation * mixed, -0.006)
    return risk._of_months(risk.month_ends(rng, size), own, market)


def favourite_halves(rng: Draw, _: RealData) -> Account:
    """Monthly numbers somebody wrote down: mostly halves and tenths, and often the last ones."""
    size = risk.draw_size(rng, 8.0, 16.0, MONTHS)
    market = risk.monthly_market(rng, size)
    wanted = 0.7 + 30.0 * (market - 0.007) + rng.normal(0.0, rng.uniform(1.0, 2.0), size)
    written = np.round(wanted, 2)
    written = np.where(rng.random(size) < 0.5, np.round(wanted * 2.0) / 2.0, written)
    written = np.where(rng.random(size) < 0.3, np.round(written, 1), written)
    for month in range(4, size):
        if rng.random() < 0.2:
            written[month] = written[int(rng.integers(month - 4, month))]
    return risk._of_months(risk.month_ends(rng, size), written / 100.0, market)


# ------------------------------------------------------------------ the rows


def rows() -> list[Row]:
    """Return all rows, the most important first."""
    sellers, honest, cash = "sellers of options", "honest portfolios", "cash"
    decay, records = "skill that ended", "late, smoothed and made up"
    real = "french_daily"
    accused = Check("accused", risk.accused, at_most=0.03)
    not_accused = (risk.HOW_OFTEN_PRAISED, *risk.NO_SELLER[1:], accused)
    is_cash = (risk.HOW_OFTEN_PRAISED, accused, Check("called cash", called_cash, at_least=0.97))
    found = risk.SELLER_FOUND
    swaps = (variance(21), variance(42))
    faded = (*risk.FADED, Check("called faded", called_faded))
    constant = (risk.HOW_OFTEN_PRAISED, Check("called faded", called_faded), risk.FADED[1])
    late = (Check("called late", risk.late_said, at_least=1.0), risk.HOW_OFTEN_PRAISED)
    return [
        Row(sellers, "variance swaps of 1 and 2 months, by day", seller(*swaps), found),
        Row(sellers, "variance swaps of 1 and 2 weeks", seller(variance(5), variance(10)), found),
        Row(sellers, "variance swaps of 1 day", seller(variance(1)), found),
        Row(sellers, "variance swaps on coins", seller(*swaps, variance(5), scale=4.0), found),
        Row(sellers, "variance swaps by month", seller(*swaps, monthly=True), found),
        Row(
            sellers,
            "variance swaps by month, quiet market",
            seller(variance(21), monthly=True, quiet=True),
            found,
        ),
        Row(sellers, "put spreads, switching", seller(*PUT_SPREADS), found),
        Row(sellers, "covered calls, switching", seller(*COVERED_CALLS), found),
        Row(sellers, "strangles on coins", seller(*COIN_STRANGLES, scale=4.0), found),
        Row(honest, "tilts to size and value by day", tilted_by_day, not_accused, real),
        Row(honest, "winners among real stocks by day", winners_by_day, not_accused, "stocks"),
        Row(
            honest,
            "small winners by month",
            small_winners_by_month,
            not_accused,
            "portfolios_monthly",
        ),
        Row(honest, "volatility-managed by day", managed_by_day, not_accused, real),
        Row(honest, "volatility-managed by month", managed_by_month, not_accused, real),
        Row(honest, "volatility-managed, switching", managed_simulated, not_accused),
        Row(cash, "bills by day", bills_by_day, is_cash, real),
        Row(cash, "bills by month in basis points", bills_in_basis_points, is_cash),
        Row(cash, "fund of short bills by month", short_bill_fund, is_cash),
        Row(cash, "bank deposit by day", bank_deposit, is_cash),
        Row(decay, "skilled for two thirds by day", skilled_until(2.0 / 3.0), faded),
        Row(decay, "skilled for three quarters by day", skilled_until(0.75), faded),
        Row(
            decay,
            "skilled for two thirds by month",
            skilled_until(2.0 / 3.0, monthly=True),
            faded,
        ),
        Row(
            decay,
            "skilled for three quarters by month",
            skilled_until(0.75, monthly=True),
            faded,
        ),
        Row(decay, "always 1.5", always_skilled(1.5), constant),
        Row(decay, "always 2", always_skilled(2.0), constant),
        Row(decay, "always 2.5", always_skilled(2.5), constant),
        Row(decay, "always 2 by month", always_skilled(2.0, monthly=True), constant),
        Row(records, "close in another time zone", other_time_zone, late),
        Row(records, "geometric mean of the past", faded_prices, late),
        Row(records, "steady fraud", steady_fraud, risk.SMOOTH_FOUND),
        Row(records, "favourite halves and tenths", favourite_halves, risk.SMOOTH_FOUND),
    ]


if __name__ == "__main__":
    risk.ROWS[:] = rows()
    sys.exit(risk.main())
