"""A-share boards: limits are never broken, and queues spill over."""

import math

import numpy as np
import pytest

from tradeassay_bench.core.view import Board

LIMITS = {Board.MAIN: 10, Board.CHINEXT: 20, Board.STAR: 20, Board.BSE: 30}


def in_ticks(values: np.ndarray) -> np.ndarray:
    return np.rint(values * 100.0)


def bands(panel) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest price of every bar in ticks, from public data alone; NaN on a
    name's first day.
    """
    row_of = {str(day): row for row, day in enumerate(panel.sessions)}
    close = in_ticks(panel.bars["close"])
    low, high = np.full(close.shape, np.nan), np.full(close.shape, np.nan)
    effects = {(row_of[a.ex_date], a.symbol): a for a in panel.actions}
    for column, entry in enumerate(panel.listings):
        if entry.instrument.kind == "index":
            continue
        percent = LIMITS[entry.instrument.board]
        last = math.nan
        for row in range(close.shape[0]):
            action = effects.get((row, entry.instrument.symbol))
            if action is not None and action.kind == "dividend":
                last -= round(action.value * 100)
            elif action is not None:
                last = math.floor(last / action.value + 0.5)
            if not math.isnan(close[row, column]):
                if not math.isnan(last):
                    low[row, column] = math.floor(last * (100 - percent) / 100 + 0.5)
                    high[row, column] = math.floor(last * (100 + percent) / 100 + 0.5)
                last = close[row, column]
    return low, high


@pytest.mark.slow_for("1")
@pytest.mark.parametrize("seed", [0, 1])
def test_no_price_is_beyond_its_limit(world, seed):
    panel = world("ashare", seed).panel
    low, high = bands(panel)
    known = np.isfinite(high)
    assert known.sum() > 80_000
    for field in ("open", "high", "low", "close"):
        ticks = in_ticks(panel.bars[field])
        assert np.all(ticks[known] <= high[known]) and np.all(ticks[known] >= low[known])
    at_limit = in_ticks(panel.bars["close"]) == high
    assert at_limit.sum() > 60 and (in_ticks(panel.bars["close"]) == low).sum() > 60
    boards = np.array([entry.instrument.board for entry in panel.listings])
    assert set(LIMITS) <= set(boards.tolist()) and at_limit[:, boards == Board.MAIN].sum() > 20
    volume = panel.bars["volume"]
    assert np.all(volume[np.isfinite(volume)] % 100 == 0), "lots are whole"


def test_a_queue_at_the_limit_spills_into_the_next_day(world):
    gaps: dict[str, list[float]] = {"up": [], "down": []}
    locked_volume, usual_volume = [], []
    for seed in (0, 1):
        panel = world("ashare", seed).panel
        low, high = bands(panel)
        close, opened = in_ticks(panel.bars["close"]), in_ticks(panel.bars["open"])
        volume = panel.bars["volume"] / np.nanmedian(panel.bars["volume"], axis=0)
        for side, limit in (("up", high), ("down", low)):
            for row, column in np.argwhere(close[:-1] == limit[:-1]):
                gaps[side].append(opened[row + 1, column] / close[row, column] - 1)
        locked = (in_ticks(panel.bars["low"]) == high) | (in_ticks(panel.bars["high"]) == low)
        locked_volume += volume[locked].tolist()
        usual_volume += volume[np.isfinite(volume) & ~locked].tolist()
    for side, sign in (("up", 1), ("down", -1)):
        found = sign * np.array([gap for gap in gaps[side] if math.isfinite(gap)])
        assert found.mean() > 0.005 and found.mean() / found.std() * math.sqrt(found.size) > 4, side
    assert len(locked_volume) > 10 and np.median(locked_volume) < 0.6 * np.median(usual_volume)
