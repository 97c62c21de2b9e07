"""D2: does it stay within its constraints, in ordinary times and under stress? Counted on the host's account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.code.bars import TaskBars
from tradeassay.code.semantics.expression import calendar_of
from tradeassay.code.semantics.model import StrategyConstraints
from tradeassay.code.submission_run import SubmissionRun, closes_of, market_columns
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats, Ints

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


Severity = Literal["minor", "major", "critical"]
MINOR: Final = 0.05
MAJOR: Final = 0.25
"""Up to here, as a share of equity beyond the limit, a breach is minor or major; more is critical."""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint that was broken, on how many bars, and the first of them.

    From the second version on (section 4.4.2 of the paper): ``time`` of the first bar, ``worst`` is how far beyond
    the limit it went (shares of equity; for trades a bar the number beyond, over the limit), ``severity`` follows
    from it, and ``logged`` counts the bars on which the submission's own risk check said no.
    """

    constraint: str
    bars: int
    first: int
    time: str | msgspec.UnsetType = msgspec.UNSET
    worst: float | msgspec.UnsetType = msgspec.UNSET
    severity: Severity | msgspec.UnsetType = msgspec.UNSET
    logged: int | msgspec.UnsetType = msgspec.UNSET


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


def severity_of(worst: float) -> Severity:
    """Return how grave a breach is by how far it went beyond its limit."""
    return "minor" if worst <= MINOR else "major" if worst <= MAJOR else "critical"


def examine(
    regime: str,
    run: SubmissionRun,
    bars: TaskBars,
    legs: tuple[str, ...],
    constraints: StrategyConstraints,
    *,
    graded: bool = False,
) -> Discipline:
    """Return the breaches of a run, counted on the bars where it traded; ``graded`` with times and severities.

    Only what a decision did is counted: an exposure that drifts over a limit because prices moved is not a breach.
    """
    if run.account is None or run.decisions is None or run.trades is None:
        text = "no run" if run.failure is None else run.failure.text
        return Discipline(regime=regime, decisions=0, failed=text[:300])
    found = _beyond(run, bars, legs, constraints)
    refused = _refused(run) if graded else None
    broken = tuple(
        breach
        for name, at, beyond, room in found
        if (breach := _breach(name, at, np.nan_to_num(beyond, posinf=1e9), room, bars, refused)) is not None
    )
    return Discipline(regime=regime, decisions=int(np.unique(run.decisions.row).size), breaches=broken)


def broken_bars(
    run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> dict[str, Ints]:
    """Return the bars on which each constraint was broken, where it was."""
    found = _beyond(run, bars, legs, constraints)
    return {name: at[np.nan_to_num(beyond, posinf=1e9) > room] for name, at, beyond, room in found}


def _beyond(
    run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> list[tuple[str, Ints, Floats, float]]:
    """Return for each constraint the bars looked at, how far beyond the limit each is, and room for rounding."""
    assert run.account is not None and run.decisions is not None and run.trades is not None
    closes = closes_of(market_columns(bars, legs), legs)
    rows = np.unique(run.decisions.row)
    held, equity = run.account.held[:, rows], run.account.equity[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(equity > 0, held * closes[:, rows] / equity, np.inf * np.sign(held))
    gross = np.abs(np.nan_to_num(share, nan=0.0, posinf=1e9, neginf=-1e9)).sum(axis=0)
    placed, counts = np.unique(run.trades.row, return_counts=True)
    most = max(constraints.max_trades_per_bar, 1)
    found: list[tuple[str, Ints, Floats, float]] = [
        ("max_exposure", rows, gross - constraints.max_exposure, ROOM),
        ("max_trades_per_bar", placed, (counts - constraints.max_trades_per_bar) / most, 0.0),
    ]
    if not constraints.short_allowed:
        found.append(("short_allowed", rows, -share.min(axis=0), ROOM))
    if constraints.flat_overnight:
        last = np.flatnonzero(calendar_of(bars.times).last)
        left = np.abs(run.account.held[:, last] * closes[:, last]).sum(axis=0)
        found.append(("flat_overnight", last, left / np.maximum(np.abs(run.account.equity[last]), 1e-9), 0.0))
    return found


def _refused(run: SubmissionRun) -> Ints:
    """Return the bars on which the submission's own log has a risk check that did not hold."""
    if run.audit is None:
        return np.empty(0, dtype=np.int64)
    checks: Ints = run.audit.row[(run.audit.kind == "risk_check") & (run.audit.value < 1.0)]
    return checks


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


def _breach(
    name: str, rows: Ints, beyond: Floats, room: float, bars: TaskBars, refused: Ints | None
) -> Breach | None:
    over = beyond > room
    if not over.any():
        return None
    at = rows[over]
    made = Breach(constraint=name, bars=int(at.size), first=int(at[0]))
    if refused is None:
        return made
    worst = float(beyond[over].max())
    return msgspec.structs.replace(
        made,
        time=str(bars.times[at[0]].astype("M8[D]" if bars.timeframe == "1d" else "M8[m]")),
        worst=round(worst, 9),
        severity=severity_of(worst),
        logged=int(np.isin(at, refused).sum()),
    )
