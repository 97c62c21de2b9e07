"""From a journal to an episode's series, by replaying it through the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tradeassay.core.events import BorrowCharged, Event, Filled, InterestCharged, Rejected, StepRecord
from tradeassay.core.view import Floats
from tradeassay.ledger import Ledger
from tradeassay.metrics.series import EpisodeSeries
from tradeassay.metrics.style import concentration


def series_from_records(
    records: Iterable[StepRecord],
    *,
    periods_per_year: int = 252,
    index: Floats | None = None,
    failure: str | None = None,
) -> EpisodeSeries:
    """Replay a journal and return its series.

    ``index`` holds one level per session and one from the session before the first. ``failure`` says why the run
    as a whole failed. An episode in which *no* decision was usable, or with no record at all, is failed whatever
    ``failure`` says: its flat value path is not a return of zero. Raises
    :class:`~tradeassay.core.errors.LedgerError` when the journal breaks an accounting identity.
    """
    steps = _Steps()
    for ledger, record in Ledger.steps(records):
        steps.add(ledger, record)
    n = len(steps.sessions)
    table = np.array(steps.rows, dtype=np.float64).reshape(n, 8)
    return EpisodeSeries(
        sessions=tuple(steps.sessions),
        nav=np.array([steps.initial, *table[:, 0]]),
        cash=table[:, 1].copy(),
        traded=table[:, 2].copy(),
        costs=table[:, 3].copy(),
        hhi=np.array(steps.hhi),
        orders=table[:, 4].astype(np.int64),
        rejected=table[:, 5].astype(np.int64),
        abstained=table[:, 6] > 0,
        failed=table[:, 7] > 0,
        periods_per_year=periods_per_year,
        index=None if index is None else np.asarray(index, dtype=np.float64),
        rejections=dict(sorted(steps.rejections.items())),
        failures=dict(sorted(steps.failures.items())),
        failure=failure or _why_failed(steps),
    )


class _Steps:
    """What is collected while a journal is replayed."""

    def __init__(self) -> None:
        self.initial = float("nan")
        self.sessions: list[str] = []
        self.rows: list[tuple[float, ...]] = []
        self.hhi: list[float] = []
        self.rejections: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    def add(self, ledger: Ledger, record: StepRecord) -> None:
        """Take one step; the ledger stands at its end."""
        state = ledger.state()
        events = record.opening + record.events
        decision = record.decision
        refused = [event for event in events if isinstance(event, Rejected) and event.reason != "no_change"]
        failed = decision.status == "failed"
        self.initial = state.initial
        self.sessions.append(record.session)
        self.rows.append(
            (
                state.nav,
                state.cash,
                sum(abs(event.quantity * event.price * event.multiplier) for event in _fills(events)),
                _costs(events),
                len(decision.orders),
                len({event.order_id for event in refused}),
                not failed and not decision.orders,
                failed,
            )
        )
        values = np.array([position.value for position in state.positions.values()])
        self.hhi.append(float(concentration(values)))
        self.rejections.update(event.reason for event in refused)
        self.failures.update(failure.kind for failure in decision.failures)


def _fills(events: Iterable[Event]) -> Iterable[Filled]:
    return (event for event in events if isinstance(event, Filled))


def _costs(events: Iterable[Event]) -> float:
    total = 0.0
    for event in events:
        if isinstance(event, Filled):
            total += event.fee + event.tax
        elif isinstance(event, BorrowCharged | InterestCharged):
            total -= event.cash
    return total


def _why_failed(steps: _Steps) -> str | None:
    n = len(steps.sessions)
    if n == 0:
        return "nothing was recorded"
    if not all(row[7] for row in steps.rows):
        return None
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(steps.failures.items()))
    return f"no usable answer in any of {n} sessions" + (f" ({kinds})" if kinds else "")


@dataclass(frozen=True, slots=True)
class Holdings:
    """What was held at the end of each session, as shares of the account's value.

    ``weights`` has shape (sessions, symbols). ``symbols`` are in the order in which they were first held; shorts
    are negative, futures count at full value.
    """

    sessions: tuple[str, ...]
    symbols: tuple[str, ...]
    weights: Floats


def holdings_from_records(records: Iterable[StepRecord]) -> Holdings:
    """Replay a journal and return the weights at the end of each session (0 for an account worth nothing)."""
    sessions: list[str] = []
    held: list[dict[str, float]] = []
    columns: dict[str, int] = {}
    for ledger, record in Ledger.steps(records):
        state = ledger.state()
        sessions.append(record.session)
        whole = state.nav or float("inf")
        held.append({symbol: position.value / whole for symbol, position in state.positions.items()})
        for symbol in state.positions:
            columns.setdefault(symbol, len(columns))
    weights = np.zeros((len(sessions), len(columns)))
    for row, shares in enumerate(held):
        for symbol, share in shares.items():
            weights[row, columns[symbol]] = share
    return Holdings(tuple(sessions), tuple(columns), weights)
