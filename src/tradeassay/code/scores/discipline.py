"""D2: does it stay within its constraints, in ordinary times and under stress? Counted on the host's account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.code.bars import TaskBars
from tradeassay.code.semantics.expression import calendar_of
from tradeassay.code.semantics.model import StrategyConstraints
from tradeassay.code.submission_run import SubmissionRun, closes_of, market_columns
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Ints

Columns = dict[str, NDArray[Any]]
_PRICES: Final = ("open", "high", "low", "close")


def gap(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars that open 15 % lower after the middle, and stay there."""
    middle = feed["close"].size // 2
    return {**feed, **{name: _scaled(feed[name], middle, 0.85) for name in _PRICES}}


def crash(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars that lose 40 % within ten bars after the middle."""
    size = feed["close"].size
    start = size // 2
    path = np.ones(size)
    path[start:] = 0.6
    end = min(start + 10, size)
    path[start:end] = np.linspace(1.0, 0.6, 11)[1 : end - start + 1]
    return {**feed, **{name: feed[name] * path for name in _PRICES}}


def halts(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars with five halts of eight bars each: the last close, no volume."""
    made = {name: np.array(values) for name, values in feed.items()}
    size = feed["close"].size
    for start in sorted(generator.integers(1, max(size - 8, 2), 5).tolist()):
        stop = min(start + 8, size)
        for name in _PRICES:
            made[name][start:stop] = made["close"][start - 1]
        made["volume"][start:stop] = 0.0
    return made


def stale(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars of which a fifth repeat the bar before, as a feed that hangs does."""
    made = {name: np.array(values) for name, values in feed.items()}
    hangs = generator.random(feed["close"].size) < 0.2
    for t in np.flatnonzero(hangs[1:]) + 1:
        for name in _PRICES:
            made[name][t] = made[name][t - 1]
    return made


STRESSES: Final[dict[str, Callable[[Columns, np.random.Generator], Columns]]] = {
    "gap": gap,
    "crash": crash,
    "halts": halts,
    "stale": stale,
}


def stressed(bars: TaskBars, name: str, seed: int = 0) -> TaskBars:
    """Return bars under one stress, the same for all assets at the same bars."""
    feeds = {asset: STRESSES[name](dict(feed), np.random.default_rng(seed)) for asset, feed in bars.feeds.items()}
    return TaskBars(feeds, bars.timeframe, bars.clock, f"{bars.name} {name}".strip())


def _scaled(values: NDArray[Any], start: int, factor: float) -> NDArray[Any]:
    made = np.array(values, dtype=np.float64)
    made[start:] *= factor
    return made


ROOM = 1e-6
"""What rounding may add to an exposure."""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint that was broken, on how many bars, and the first of them."""

    constraint: str
    bars: int
    first: int


class Discipline(msgspec.Struct, frozen=True, kw_only=True):
    """What was broken in one regime, out of how many decision bars. ``failed``: it did not run there at all."""

    regime: str
    decisions: int
    breaches: tuple[Breach, ...] = ()
    failed: str = ""

    @property
    def rate(self) -> float:
        """The share of decision bars on which something was broken; 1 when it did not run."""
        if self.failed:
            return 1.0
        return min(1.0, sum(b.bars for b in self.breaches) / self.decisions) if self.decisions else 0.0


def examine(
    regime: str, run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> Discipline:
    """Return the breaches of a run, counted on the bars where it traded.

    Only what a decision did is counted: an exposure that drifts over a limit because prices moved is not a breach.
    """
    if run.account is None or run.decisions is None or run.trades is None:
        text = "no run" if run.failure is None else run.failure.text
        return Discipline(regime=regime, decisions=0, failed=text[:300])
    closes = closes_of(market_columns(bars, legs), legs)
    rows = np.unique(run.decisions.row)
    held, equity = run.account.held[:, rows], run.account.equity[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(equity > 0, held * closes[:, rows] / equity, np.inf * np.sign(held))
    gross = np.abs(np.nan_to_num(share, nan=0.0, posinf=1e9, neginf=-1e9)).sum(axis=0)
    counts = np.unique(run.trades.row, return_counts=True)
    crowded = counts[0][counts[1] > constraints.max_trades_per_bar]
    found = [_breach("max_exposure", rows[gross > constraints.max_exposure + ROOM])]
    found.append(_breach("max_trades_per_bar", crowded))
    if not constraints.short_allowed:
        found.append(_breach("short_allowed", rows[(share < -ROOM).any(axis=0)]))
    if constraints.flat_overnight:
        last = calendar_of(bars.times).last.astype(bool)
        open_at_end = last & (np.abs(run.account.held) > 0).any(axis=0)
        found.append(_breach("flat_overnight", np.flatnonzero(open_at_end)))
    broken = tuple(breach for breach in found if breach is not None)
    return Discipline(regime=regime, decisions=int(rows.size), breaches=broken)


def discipline(found: Mapping[str, Discipline]) -> Measure:
    """Return D2, 0 to 10: half from ordinary times, half from the stresses."""
    if "normal" not in found:
        return not_scored("it was not run in ordinary times")
    stresses = [1.0 - one.rate for name, one in found.items() if name != "normal"]
    calm = 1.0 - found["normal"].rate
    under = float(np.mean(stresses)) if stresses else calm
    broken = sum(b.bars for one in found.values() for b in one.breaches)
    note = f"{broken} bars with a breach over {len(found)} regimes"
    return Measure(value=10.0 * (calm + under) / 2.0, n=len(found), note=note)


def _breach(name: str, rows: Ints) -> Breach | None:
    return Breach(constraint=name, bars=int(rows.size), first=int(rows[0])) if rows.size else None
