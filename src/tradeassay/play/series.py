"""From a journal to an episode's series, by replaying it through the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tradeassay.account import Ledger
from tradeassay.core.events import BorrowCharged, Event, Filled, InterestCharged, Rejected, StepRecord, Trimmed
from tradeassay.core.sums import plain_sum
from tradeassay.core.view import Floats
from tradeassay.metrics.measures import concentration
from tradeassay.metrics.series import EpisodeSeries


def series_from_records(
    records: Iterable[StepRecord],
    *,
    periods_per_year: int = 252,
    index: Floats | None = None,
    index_note: str | None = None,
    failure: str | None = None,
) -> EpisodeSeries:
    """Replay a journal and return its series.

    ``index`` holds one level per session and one from the session before the first, ``index_note`` what a reader
    of a comparison with it must know. ``failure`` says why the run as a whole failed. An episode in which *no*
    decision was usable, or with no record at all, is failed whatever ``failure`` says: its flat value path is not
    a return of zero. An order is refused, once, in the session that placed it (its id begins with that step),
    whether all or part of it was refused, and whenever that happened. Raises
    :class:`~tradeassay.core.errors.LedgerError` when the journal breaks an accounting identity.
    """
    steps = _Steps()
    for ledger, record in Ledger.steps(records):
        steps.add(ledger, record)
    n = len(steps.sessions)
    table = np.array(steps.rows, dtype=np.float64).reshape(n, 7)
    return EpisodeSeries(
        sessions=tuple(steps.sessions),
        nav=np.array([steps.initial, *table[:, 0]]),
        cash=table[:, 1].copy(),
        traded=table[:, 2].copy(),
        costs=table[:, 3].copy(),
        hhi=np.array(steps.hhi),
        orders=table[:, 4].astype(np.int64),
        rejected=np.array([len(orders) for orders in steps.refused], dtype=np.int64),
        abstained=table[:, 5] > 0,
        failed=table[:, 6] > 0,
        periods_per_year=periods_per_year,
        index=None if index is None else np.asarray(index, dtype=np.float64),
        index_note=index_note,
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
        self.refused: list[set[str]] = []
        self._placed: dict[str, set[str]] = {}
        self._reasons: set[tuple[str, str]] = set()
        self.rejections: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    def add(self, ledger: Ledger, record: StepRecord) -> None:
        """Add one step; the ledger is at its end."""
        events = record.opening + record.events
        decision = record.decision
        failed = decision.status == "failed"
        orders = () if failed else decision.orders
        self._refusals([f"{record.step}.{place}" for place in range(len(orders))], events)
        self.initial = ledger.deposit.cash
        self.sessions.append(record.session)
        self.rows.append(
            (
                ledger.nav(),
                ledger.cash,
                plain_sum(abs(event.quantity * event.price * event.multiplier) for event in _fills(events)),
                _costs(events),
                len(orders),
                not failed and not orders,
                failed,
            )
        )
        values = np.array([held.quantity * held.mark * held.multiplier for held in ledger.holdings.values()])
        self.hhi.append(float(concentration(values)))
        self.failures.update(failure.kind for failure in decision.failures)

    def _refusals(self, placed: Iterable[str], events: Iterable[Event]) -> None:
        """Count refused orders where they were placed: one that waited may be refused in a later session."""
        here: set[str] = set()
        self.refused.append(here)
        self._placed |= dict.fromkeys(placed, here)
        for event in events:
            if not isinstance(event, Rejected | Trimmed) or event.reason == "no_change":
                continue
            home = self._placed.get(event.order_id)
            if home is None:  # nobody's order: verification reports it; it says nothing about the agent's conduct
                continue
            home.add(event.order_id)
            if (event.order_id, event.reason) not in self._reasons:
                self._reasons.add((event.order_id, event.reason))
                self.rejections[event.reason] += 1


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
    if not all(row[6] for row in steps.rows):
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
