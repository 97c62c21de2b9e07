"""Accounts of every kind at random, judged in memory: five hundred of them are read back on
every surface.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from tradeassay.tables.account import OwnSeries
from tradeassay.verdict.own_returns import one_account
from tradeassay.verdict.record import Assay, VerdictConfig
from tradeassay.verdict.returns import assay_series
from tradeassay_bench.examine.planted import PLANTS, Bench, PlantConfig, planted_world

NATURES = (
    "mixed",
    "mixed",
    "mixed",
    "short",
    "grown",
    "tracker",
    "levered",
    "seller",
    "smoothed",
    "cash",
    "styled",
    "styled",
    "faded",
    "skilled",
    "alone",
    "watched",
)
"""What accounts may be; *mixed* is beta, noise, drift and length at random."""
_PLANTED = 5
"""Every so many draws one is an agent of known nature on a synthetic market, judged by its
holdings.
"""
_STEPS = {252: "B", 52: "W-FRI", 12: "ME"}


def drawn_assay(seed: int) -> Assay:
    """Return the assay of an account that only the seed decides."""
    if seed % _PLANTED == 0:
        return _planted(seed)
    rng = np.random.default_rng([seed, 77])
    nature = str(rng.choice(NATURES))
    tries = (None, None, 1, 3, 50)[rng.integers(5)]
    config = VerdictConfig(tries=tries, portfolios=0, draws=100, watched=nature == "watched")
    title = f"account-{seed}-{nature}"
    judged, notes = assay_series(_series(nature, rng), config, agent=title)
    return one_account(title, config, judged, notes)


@lru_cache(maxsize=2)
def _bench(world: int, tries: int | None) -> Bench:
    sessions = (40, 130, 252, 504)[world % 4]
    config = VerdictConfig(tries=tries, draws=100)
    return Bench(planted_world(world, sessions=sessions), PlantConfig(), config, portfolios=100)


def _planted(seed: int) -> Assay:
    """Return the assay of a planted agent; several share a world, because making one takes long."""
    number = seed // _PLANTED
    world, plant = number // len(PLANTS), PLANTS[number % len(PLANTS)]
    bench = _bench(9000 + world, (None, 1)[world % 2])
    one = bench.judge(plant, seed=seed)
    return Assay(title=f"planted-{seed}", source="run", config=bench.config, agents=(one,))


def _series(nature: str, rng: np.random.Generator) -> OwnSeries:
    year = int(rng.choice((252, 252, 252, 52, 12)))
    years = float(rng.choice((0.5, 1.0, 3.0, 5.0, 10.0)))
    if nature == "short":
        year, years = 252, float(rng.choice((21, 30, 45, 59))) / 252.0
    if nature in ("grown", "styled") and rng.random() < 0.6:
        years = float(rng.choice((15.0, 25.0)))
    rows = max(24, round(year * years)) if nature != "short" else round(252 * years)
    step = 252.0 / year
    market = rng.normal(0.0004 * step, 0.01 * np.sqrt(step), rows)
    noise = rng.choice([0.0005, 0.004, 0.012]) * np.sqrt(step)
    drift = rng.choice([0.0, 0.0, 0.0003, 0.001, -0.001]) * step
    account = rng.choice([0.0, 0.3, 1.0, 1.4]) * market + rng.normal(drift, noise, rows)
    factors = {}
    if nature == "grown":
        account = 0.8 * market + rng.normal(0.0012 * step, 0.006 * np.sqrt(step), rows)
    elif nature == "tracker":
        account = market + rng.normal(-0.00001 * step, 0.0001, rows)
    elif nature == "levered":
        account = 2.0 * market + rng.normal(-0.0001 * step, 0.0003, rows)
    elif nature == "seller":
        account = 0.0008 * step + 0.1 * market - np.where(market < -2.2 * market.std(), 0.02, 0.0)
        account = account + rng.normal(0.0, 0.001, rows)
    elif nature == "smoothed":
        raw = rng.normal(0.0005 * step, 0.006 * np.sqrt(step), rows + 2)
        account = 0.4 * raw[2:] + 0.35 * raw[1:-1] + 0.25 * raw[:-2]
    elif nature == "cash":
        account = np.full(rows, 0.02 / year) + rng.normal(0.0, 1e-6, rows)
    elif nature == "styled":
        factors = {
            name: rng.normal(0.0003 * step, 0.006 * np.sqrt(step), rows) for name in ("SMB", "HML")
        }
        lean = rng.choice([0.0, 0.6, 2.0, -4.0])
        account = market + lean * factors["SMB"] + rng.normal(drift, noise, rows)
    elif nature == "faded":
        account = market + rng.normal(0.0, 0.005 * np.sqrt(step), rows)
        account[: rows // 2] += 0.0015 * step
    elif nature == "skilled":
        account = 0.9 * market + rng.normal(0.0008 * step, 0.006 * np.sqrt(step), rows)
    days = pd.date_range("1990-01-01", periods=rows, freq=_STEPS[year]).strftime("%Y-%m-%d")

    def by_day(values: np.ndarray) -> dict[str, float]:
        return dict(zip(days, values.tolist(), strict=True))

    return OwnSeries(
        returns=by_day(account),
        benchmark=None if nature == "alone" else by_day(market),
        year=year,
        factors={name: by_day(values) for name, values in factors.items()},
    )
