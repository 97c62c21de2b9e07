"""How long the nine factors take over 300 names x 4,500 days, in CPU time, beside pandas and polars.

    python perf/factor_speed.py [--json]

pandas and polars compute the same nine from a long table with rolling windows per name, as people write it;
polars may use every core, and CPU time counts all of them. Ours is numpy alone: nothing is compiled, and the
result is the same to the last bit on every CPU. Bar: 0.3 s, warm. The exit status is 1 when it is missed.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable

import numpy as np

from tradeassay.factors import FactorBars, compute_all

DAYS, NAMES, BAR = 4500, 300, 0.3


def best(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU time: other work on the machine only ever adds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def bars() -> FactorBars:
    """Return random bars with some gaps."""
    rng = np.random.default_rng(0)
    close = 50 * np.exp(np.cumsum(rng.normal(0, 0.02, (DAYS, NAMES)), axis=0))
    close[rng.random(close.shape) < 0.005] = np.nan
    volume = np.exp(rng.normal(12, 0.5, close.shape))
    return FactorBars(close * 0.99, close * 1.01, close, volume, close * volume)


def with_pandas(given: FactorBars) -> float:
    """Return the time of a groupby per name."""
    try:
        pd = importlib.import_module("pandas")
    except ImportError:
        return float("nan")
    names = np.repeat(np.arange(NAMES), DAYS)
    fields = ("open", "high", "close", "volume", "amount")
    frame = pd.DataFrame({name: getattr(given, name).T.reshape(-1) for name in fields})
    frame["name"] = names

    def work() -> None:
        by = frame.groupby("name", sort=False)
        before, volume = by["close"].shift(), by["volume"].shift()
        made = pd.DataFrame(
            {
                "name": names,
                "r": frame["close"] / before - 1,
                "on": frame["open"] / before - 1,
                "id": frame["close"] / frame["open"] - 1,
                "dv": np.log(frame["volume"] / volume),
            }
        )
        made["impact"] = made["r"].abs() / frame["amount"]
        made["rv"], made["rr"], made["vv"] = made["r"] * made["dv"], made["r"] ** 2, made["dv"] ** 2
        roll = made.groupby("name", sort=False)
        by["close"].shift(20) / by["close"].shift(251) - 1
        roll["r"].rolling(60, min_periods=48).std()
        roll["r"].rolling(60, min_periods=48).skew()
        for name in ("impact", "on", "id"):
            roll[name].rolling(20, min_periods=16).mean()
        for name in ("r", "dv", "rv", "rr", "vv"):  # a correlation per name is these five means
            roll[name].rolling(20, min_periods=16).mean()
        by["high"].rolling(252, min_periods=202).max()
        by["amount"].rolling(20, min_periods=16).std()
        by["amount"].rolling(20, min_periods=16).mean()

    return best(work, 1)


def with_polars(given: FactorBars) -> float:
    """Return the time of window expressions over each name."""
    try:
        pl = importlib.import_module("polars")
    except ImportError:
        return float("nan")
    fields = ("open", "high", "close", "volume", "amount")
    columns = {name: pl.Series(getattr(given, name).T.reshape(-1)).fill_nan(None) for name in fields}
    frame = pl.DataFrame({"name": np.repeat(np.arange(NAMES), DAYS), **columns})
    close, opened, amount = pl.col("close"), pl.col("open"), pl.col("amount")
    r, dv = close / close.shift() - 1, (pl.col("volume") / pl.col("volume").shift()).log()

    def mean(values: object, rows: int = 20) -> object:
        return values.rolling_mean(rows, min_samples=16)  # type: ignore[attr-defined]  # a polars expression

    columns_out = [
        close.shift(20) / close.shift(251) - 1,
        r.rolling_std(60, min_samples=48),
        -r.rolling_skew(60, min_samples=48, bias=False),
        mean(r.abs() / amount).log(),  # type: ignore[attr-defined]  # a polars expression
        mean(opened / close.shift() - 1),
        mean(close / opened - 1),
        pl.rolling_corr(r, dv, window_size=20, min_samples=16),
        close / pl.col("high").rolling_max(252, min_samples=202),
        amount.rolling_std(20, min_samples=16) / mean(amount),
    ]
    named = [column.over("name").alias(f"f{k}") for k, column in enumerate(columns_out)]
    return best(lambda: frame.select(named), 3)


def main() -> int:
    """Print the table."""
    given = bars()
    found = {"ours": best(lambda: compute_all(given), 9)}
    found["polars, window expressions"] = with_polars(given)
    found["pandas, groupby and rolling"] = with_pandas(given)
    met = found["ours"] < BAR
    if "--json" in sys.argv[1:]:
        seconds = {name: value if value == value else None for name, value in found.items()}
        sys.stdout.write(json.dumps({"cpu_seconds": seconds, "met": met}, indent=2) + "\n")
    else:
        for name, value in found.items():
            sys.stdout.write(f"{name:30s} {'not installed' if value != value else f'{value:6.2f} s'}\n")
        sys.stdout.write(f"bar {BAR} s: {'met' if met else 'MISSED'}\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
