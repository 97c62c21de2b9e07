"""Where to cut. That matters more than how often: at decisions, in the warm-up, and at random."""

from __future__ import annotations

import numpy as np

from tradeassay.code.leak.config import LeakConfig
from tradeassay.code.leak.trace import Trace


def choose_cuts(scored: Trace, bars: int, config: LeakConfig, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the last true rows to cut after, in increasing order and without repeats.

    Every row up to the last but one in mode ``every``; short prefixes are preferred on long series.
    """
    last = bars - 2
    if last < 0:
        return ()
    if config.mode == "every":
        return tuple(range(last + 1))
    reach = min(last, config.short_rows)
    changes = np.unique(scored.rows)
    near = changes[changes <= reach]
    warm = min(config.warm_up_rows, reach)
    chosen = [
        _draw(np.arange(min(1, warm), warm + 1), config.warm_up_cuts, rng),
        _draw(near if near.size else np.arange(reach + 1), config.change_cuts, rng),
        _draw(np.arange(reach + 1), config.random_cuts, rng),
    ]
    return tuple(int(row) for row in np.unique(np.concatenate(chosen)))


def middle(bars: int, rng: np.random.Generator) -> int:
    """Return a row about the middle of the sample, never the same for code to wait for."""
    return int(rng.integers(max(bars * 2 // 5, 0), max(bars * 3 // 5, 1)))


def _draw(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(rng.choice(rows, size=min(count, len(rows)), replace=False), dtype=np.int64)
