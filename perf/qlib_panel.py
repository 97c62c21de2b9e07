"""A random 300-stock market, written twice: in Qlib's binary layout and as one of our snapshots.

Every price is representable in float32, Qlib's only precision, so both engines read the same
numbers. No daily change is within 1e-6 of the price limit, where rounding would decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tradeassay_bench.core.view import Board, Instrument
from tradeassay_bench.data import (
    Listing,
    Panel,
    PanelFacts,
    Snapshot,
    open_snapshot,
    sessions_between,
    write_snapshot,
)

NAMES, SESSIONS, HISTORY = 300, 548, 12
BEYOND = 1
"""Qlib looks up the day after its last session."""
LIMIT = 0.095
_PRICES = ("open", "high", "low", "close")


@dataclass(frozen=True)
class RandomMarket:
    """Bars of shape (sessions, names) and a score for every name and session, known before the
    session.
    """

    days: np.ndarray
    codes: tuple[str, ...]
    bars: dict[str, np.ndarray]
    score: np.ndarray

    @property
    def change(self) -> np.ndarray:
        """Close-to-close changes; the first row is zero."""
        close = self.bars["close"]
        change = np.zeros_like(close)
        change[1:] = close[1:] / close[:-1] - 1.0
        return change


def single(values: np.ndarray) -> np.ndarray:
    """Round to the nearest float32 and convert back."""
    return values.astype(np.float32).astype(np.float64)


def make_market(seed: int = 7) -> RandomMarket:
    """Draw the market. A few changes per day reach the limit."""
    rng = np.random.default_rng(seed)
    rows = HISTORY + SESSIONS + BEYOND
    days = sessions_between("XSHG", "2022-01-01", "2025-06-30").days[-rows:]
    shape = (rows, NAMES)
    common = rng.standard_normal((rows, 1)) * 0.011 * rng.uniform(0.6, 1.4, NAMES)
    returns = np.clip(
        common + rng.standard_t(3, shape) * rng.uniform(0.012, 0.035, NAMES), -0.1, 0.1
    )
    level = np.zeros(NAMES)
    path = np.empty(shape)
    for row in range(rows):
        level = 0.995 * level + np.log1p(returns[row])  # mean-reverting: nobody falls to the tick
        path[row] = level
    close = np.round(rng.uniform(15.0, 45.0, NAMES) * np.exp(path), 2)
    previous = np.vstack([close[:1], close[:-1]])
    opens = np.round(previous * (1.0 + np.clip(rng.standard_normal(shape) * 0.006, -0.09, 0.09)), 2)
    spread = np.abs(rng.standard_normal((2, *shape))) * 0.006
    high = np.round(np.maximum(opens, close) * (1.0 + spread[0]), 2)
    low = np.round(np.minimum(opens, close) * (1.0 - spread[1]), 2)
    volume = np.round(np.exp(rng.standard_normal(shape) * 0.4 + np.log(5e6)))
    bars = {
        name: single(field) for name, field in zip(_PRICES, (opens, high, low, close), strict=True)
    }
    bars["volume"] = single(volume)
    bars["amount"] = single(volume * (opens + close) / 2.0)
    codes = tuple(f"SH60{number:04d}" for number in range(NAMES))
    market = RandomMarket(days, codes, bars, rng.standard_normal(shape))
    if np.abs(np.abs(market.change) - LIMIT).min() < 1e-6:
        return make_market(seed + 1000)
    return market


def write_qlib(market: RandomMarket, folder: Path) -> None:
    """Write calendar, instruments and one binary file per name and field."""
    (folder / "calendars").mkdir(parents=True, exist_ok=True)
    (folder / "instruments").mkdir(exist_ok=True)
    days = [str(day) for day in market.days]
    (folder / "calendars" / "day.txt").write_text("\n".join(days) + "\n")
    lines = "".join(f"{code}\t{days[0]}\t{days[-1]}\n" for code in market.codes)
    (folder / "instruments" / "all.txt").write_text(lines)
    fields = {**market.bars, "change": market.change, "factor": np.ones_like(market.change)}
    for column, code in enumerate(market.codes):
        place = folder / "features" / code.lower()
        place.mkdir(parents=True, exist_ok=True)
        for name, values in fields.items():
            # The first number of a file is the calendar row at which its values begin.
            np.concatenate([[0.0], values[:, column]]).astype("<f4").tofile(
                place / f"{name}.day.bin"
            )


def write_ours(market: RandomMarket, folder: Path) -> Snapshot:
    """Write the same market into our store and open it."""
    calendar = sessions_between("XSHG", str(market.days[0]), str(market.days[-1]))
    listed = str(market.days[0])
    listings = tuple(
        Listing(
            instrument=Instrument(symbol=code, board=Board.MAIN, currency="CNY", lot=100.0),
            listed=listed,
        )
        for code in market.codes
    )
    facts = PanelFacts(
        kind="synthetic",
        source="perf/qlib_panel.py",
        query="seed 7",
        currency="CNY",
        calendar="XSHG",
    )
    panel = Panel(
        name="qlib-parity",
        facts=facts,
        listings=listings,
        sessions=calendar.days,
        open_time=calendar.open_time,
        close_time=calendar.close_time,
        bars=market.bars,
        suspended=np.zeros(market.change.shape, dtype=np.bool_),
    )
    write_snapshot(panel, folder, allow_faults=True, replace_existing=True)
    return open_snapshot(folder)
