"""The bars that the bench runs on: made here, the same everywhere."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

import numpy as np

from tradeassay.code.leak.trace import Array

Data = Literal["daily", "hourly"]
BARS: Final[dict[Data, int]] = {"daily": 2_500, "hourly": 1_750}
_HOURS: Final = 7
_SEEDS: Final[dict[Data, int]] = {"daily": 20, "hourly": 21}


@lru_cache(maxsize=4)
def bench_columns(data: Data) -> dict[str, Array]:
    """Return time, open, high, low, close, volume and a sparse ``score`` (missing on three rows of four).

    Daily bars are business days that end in December 2024; hourly ones are seven a day. Prices wander with quiet
    and nervous spells.
    """
    bars = BARS[data]
    rng = np.random.default_rng(_SEEDS[data])
    spell = np.exp(0.4 * np.sin(np.arange(bars) / 90) + 0.2 * rng.standard_normal(bars))
    close = 100 * np.exp(np.cumsum(0.0002 + 0.01 * spell * rng.standard_normal(bars)))
    opened = np.concatenate([[100.0], close[:-1]]) * np.exp(0.003 * rng.standard_normal(bars))
    high = np.maximum(opened, close) * np.exp(np.abs(0.004 * rng.standard_normal(bars)))
    low = np.minimum(opened, close) * np.exp(-np.abs(0.004 * rng.standard_normal(bars)))
    score = np.where(rng.random(bars) < 0.25, rng.standard_normal(bars), np.nan)
    volume = 1e6 * spell * rng.uniform(0.5, 1.5, bars)
    return {
        "time": _times(data, bars),
        "open": opened,
        "high": high,
        "low": low,
        "close": close,
        "volume": volume,
        "score": score,
    }


def _times(data: Data, bars: int) -> Array:
    days = bars if data == "daily" else -(-bars // _HOURS)
    end = np.busday_offset(np.datetime64("2024-12-31"), 0, roll="backward")
    dates = np.busday_offset(end, np.arange(1 - days, 1)).astype("M8[ns]")
    if data == "daily":
        return np.asarray(dates)
    hours = np.timedelta64(10, "h") + np.arange(_HOURS) * np.timedelta64(1, "h")
    return np.asarray((dates[:, None] + hours).ravel()[:bars])
