"""What a scorecard shows of one run: its decisions next to the frozen ones, the prices, and an audit sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.account.shares import DecisionList
from tradeassay.code.audit import CHAIN, AuditIndex
from tradeassay.code.bars import TaskBars
from tradeassay.code.scores.discipline import broken_bars
from tradeassay.code.scores.scorecard import NEAR
from tradeassay.code.semantics.expression import calendar_of
from tradeassay.code.semantics.interpreter import indicators
from tradeassay.code.submission import StrategySpec
from tradeassay.code.submission_run import AuditLog, SubmissionRun
from tradeassay.core.view import Floats
from tradeassay.sandbox.failures import plain_line

MarkKind = Literal["both", "other size", "only submission", "only frozen"]
Place = tuple[int, int]

_MOST_MARKS: Final = 240
_MOST_POINTS: Final = 480
_SAMPLE: Final = 5
_WORD: Final = 60


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One bar and leg where the submission or the frozen semantics decided. Sizes are shares of net equity.

    ``both``: same bar, leg and size. ``share`` or ``frozen`` is None where that side decided nothing.
    """

    kind: MarkKind
    row: int
    time: str
    leg: str
    share: float | None = None
    frozen: float | None = None
    signal: str = ""
    frozen_signal: str = ""


class LegPath(msgspec.Struct, frozen=True, kw_only=True):
    """The closes of one leg, thinned for a chart; highs and lows between kept points are kept too."""

    leg: str
    asset: str
    rows: tuple[int, ...]
    closes: tuple[float, ...]


class AuditStep(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the audit log in the chain of a trade; ``found`` is None where it is missing.

    ``claimed`` is the submission's figure, ``own`` the host's (None where the host has none to compare).
    """

    kind: str
    id: str | None = None
    claimed: float | None = None
    own: float | None = None

    @property
    def true(self) -> bool:
        """Whether the row exists and its figure equals the host's, where both state one."""
        if self.id is None or self.claimed is None or self.own is None:
            return self.id is not None
        room = 1e-6 * max(1.0, abs(self.own), 100_000.0 if self.kind == "pnl" else 0.0)
        return abs(self.claimed - self.own) <= room


class FollowedTrade(msgspec.Struct, frozen=True, kw_only=True):
    """A trade of the sample, followed from its signal to its P&L."""

    number: int
    row: int
    time: str
    leg: str
    quantity: float
    claimed_price: float | None
    price: float
    signal: str
    order_id: str
    steps: tuple[AuditStep, ...]


class Trail(msgspec.Struct, frozen=True, kw_only=True):
    """The scored run as a page shows it. ``counts`` are over all decisions; ``marks`` may be fewer, differences
    first.
    """

    bars: str
    rows: int
    timeframe: str
    first: str
    last: str
    trades: int
    counts: dict[str, int]
    marks: tuple[Mark, ...]
    paths: tuple[LegPath, ...]
    audit: tuple[FollowedTrade, ...]


def make_trail(
    spec: StrategySpec, bars: TaskBars, run: SubmissionRun | None, frozen: DecisionList
) -> Trail | None:
    """Return the trail of a scored run against what the frozen semantics decide; None when there was no run."""
    if run is None or run.decisions is None or run.trades is None:
        return None
    times = [str(stamp) for stamp in bars.times.astype("M8[D]" if bars.timeframe == "1d" else "M8[m]")]
    marks = compare(spec, run.decisions, frozen, times)
    counts: dict[str, int] = {}
    for mark in marks:
        counts[mark.kind] = counts.get(mark.kind, 0) + 1
    shown = thin_marks(marks)
    legs = spec.semantics.inputs.legs
    return Trail(
        bars=bars.name,
        rows=bars.rows,
        timeframe=bars.timeframe,
        first=times[0],
        last=times[-1],
        trades=len(run.trades),
        counts=counts,
        marks=tuple(shown),
        paths=tuple(
            _path(leg, asset, feed["close"]) for leg, (asset, feed) in zip(legs, bars.feeds.items(), strict=False)
        ),
        audit=_sample(run, np.stack([feed["close"] for feed in bars.feeds.values()]), legs, times),
    )


def compare(spec: StrategySpec, found: DecisionList, frozen: DecisionList, times: Sequence[str]) -> list[Mark]:
    """Return a mark for every bar and leg where either decided, in order; the last of a bar and leg counts."""
    mine, other = _by_place(found), _by_place(frozen)
    legs, signals = spec.semantics.inputs.legs, spec.signals

    def word(signal: int) -> str:
        return signals[signal] if 0 <= signal < len(signals) else ""

    made = []
    for place in sorted(mine.keys() | other.keys()):
        one, two = mine.get(place), other.get(place)
        kind: MarkKind
        if one is None:
            kind = "only frozen"
        elif two is None:
            kind = "only submission"
        else:
            kind = "both" if abs(one[0] - two[0]) <= NEAR else "other size"
        made.append(
            Mark(
                kind=kind,
                row=place[0],
                time=times[place[0]],
                leg=legs[place[1]],
                share=None if one is None else one[0],
                frozen=None if two is None else two[0],
                signal="" if one is None else word(one[1]),
                frozen_signal="" if two is None else word(two[1]),
            )
        )
    return made


def thin_marks(marks: Sequence[Mark], most: int = _MOST_MARKS) -> list[Mark]:
    """Return at most ``most`` marks in order: differences before agreements, each spread evenly."""
    if len(marks) <= most:
        return list(marks)
    differ = [mark for mark in marks if mark.kind != "both"]
    agree = [mark for mark in marks if mark.kind == "both"]
    kept = _spread(differ, most)
    kept += _spread(agree, most - len(kept))
    return sorted(kept, key=lambda mark: (mark.row, mark.leg))


def _spread(marks: Sequence[Mark], most: int) -> list[Mark]:
    if len(marks) <= most:
        return list(marks)
    return [marks[place] for place in np.linspace(0, len(marks) - 1, most).astype(int)] if most > 0 else []


def _by_place(decisions: DecisionList) -> dict[Place, tuple[float, int]]:
    columns = (decisions.row, decisions.leg, decisions.fraction, decisions.signal)
    return {
        (int(row), int(leg)): (float(share), int(signal)) for row, leg, share, signal in zip(*columns, strict=True)
    }


def _path(leg: str, asset: str, closes: NDArray[Any]) -> LegPath:
    if closes.size <= _MOST_POINTS:
        rows = np.arange(closes.size)
    else:
        edges = np.linspace(0, closes.size, _MOST_POINTS // 2 + 1).astype(int)
        found = {0, closes.size - 1}
        for low, high in pairwise(edges.tolist()):
            part = closes[low:high]
            found |= {int(low + part.argmin()), int(low + part.argmax())}
        rows = np.array(sorted(found))
    return LegPath(
        leg=leg, asset=asset, rows=tuple(rows.tolist()), closes=tuple(float(f"{x:.6g}") for x in closes[rows])
    )


def _sample(
    run: SubmissionRun, closes: Floats, legs: Sequence[str], times: Sequence[str]
) -> tuple[FollowedTrade, ...]:
    assert run.trades is not None and run.audit is not None and run.account is not None
    trades, account = run.trades, run.account
    if not len(trades):
        return ()
    chosen = np.unique(np.linspace(0, len(trades) - 1, min(_SAMPLE, len(trades))).astype(int))
    chains = AuditIndex(run.audit).chains(trades.order_id[chosen].tolist())
    found = []
    for number, places in zip(chosen.tolist(), chains.T.tolist(), strict=True):
        row, leg = int(trades.row[number]), int(trades.leg[number])
        own = {
            "order": float(trades.quantity[number]),
            "position": float(account.position[number]),
            "pnl": float(account.equity[row]) - account.capital,
        }
        found.append(
            FollowedTrade(
                number=number,
                row=row,
                time=times[row],
                leg=legs[leg],
                quantity=float(trades.quantity[number]),
                claimed_price=_number(trades.price[number]),
                price=float(closes[leg, row]),
                signal=_word(trades.signal[number]) or "",
                order_id=_word(trades.order_id[number]) or "",
                steps=_steps(run.audit, places, own),
            )
        )
    return tuple(found)


def _steps(audit: AuditLog, places: Sequence[int], own: dict[str, float]) -> tuple[AuditStep, ...]:
    """Return the chain of an order from its signal to its P&L; what is missing is a step without an id."""
    return tuple(
        AuditStep(
            kind=kind,
            id=None if place < 0 else _word(audit.id[place]),
            claimed=None if place < 0 else _number(audit.value[place]),
            own=own.get(kind),
        )
        for kind, place in zip(CHAIN, places, strict=True)
    )


def bar_log(spec: StrategySpec, bars: TaskBars, run: SubmissionRun) -> str:
    """Return the audit log by bars as CSV (B.6 of the paper), every figure the host's own.

    Columns: ``datetime``; of each leg ``close`` and ``position``; the strategy's indicators by its frozen
    semantics; ``signal``, ``position_state``, ``equity``, and ``constraint_check`` (``pass``, or what is broken).
    """
    import polars as pl

    assert run.account is not None and run.trades is not None
    legs = spec.semantics.inputs.legs
    feeds = dict(zip(legs, bars.feeds.values(), strict=False))
    table: dict[str, Any] = {"datetime": bars.times.astype("M8[us]")}
    for leg, held in zip(legs, run.account.held, strict=True):
        table |= {f"{leg}.close": feeds[leg]["close"], f"{leg}.position": held}
    series = indicators(spec.semantics, feeds, calendar_of(bars.times))
    table |= {name: series[name] for name in spec.semantics.indicators}
    signals = np.full(bars.rows, "", dtype=object)
    for row, word in zip(run.trades.row, run.trades.signal, strict=True):
        signals[row] = "+".join(filter(None, (signals[row], _word(word))))
    longs, shorts = ((sign * run.account.held > 0).any(axis=0) for sign in (1.0, -1.0))
    table["signal"] = signals.astype(str)
    table["position_state"] = np.select([longs & shorts, longs, shorts], ["LONG+SHORT", "LONG", "SHORT"], "FLAT")
    table["equity"] = run.account.equity
    checks = np.full(bars.rows, "", dtype=object)
    for name, at in broken_bars(run, bars, legs, spec.semantics.constraints).items():
        checks[at] += f"{name} "
    table["constraint_check"] = [text.strip() or "pass" for text in checks]
    return pl.DataFrame(table).write_csv()


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _word(value: object) -> str | None:
    return None if value is None else plain_line(str(value), _WORD)
