"""An account session by session, replayed from its journal: starting weights, and where trading money went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tradeassay.account import Ledger
from tradeassay.core.errors import RunError
from tradeassay.core.events import BorrowCharged, Event, Filled, InterestCharged, Settled, StepRecord
from tradeassay.core.view import Bools, Floats

COSTS = ("fees", "slippage", "financing", "futures")
"""What is known of trading from the journal; ``fills`` is the rest: trades inside the day against its close,
orders that were filled away from the close, fractions paid out, holdings without a price."""


@dataclass(frozen=True, slots=True)
class AccountDays:
    """T sessions up to the first that began with nothing. ``nav`` (T + 1,) starts with the initial value.

    ``weights`` (T, N) are shares of the value before a session, of stocks, coins and funds; futures are not in
    them, because their value is no money in the account. ``costs`` hold fractions of the value before the session.
    ``ruined`` names the session that ended with nothing or less.
    """

    sessions: tuple[str, ...]
    nav: Floats
    weights: Floats
    costs: dict[str, Floats]
    ruined: str | None = None

    @property
    def returns(self) -> Floats:
        """What the account returned each session."""
        gained: Floats = self.nav[1:] / self.nav[:-1] - 1.0
        return gained


def account_days(records: Iterable[StepRecord], symbols: tuple[str, ...], futures: Bools) -> AccountDays:
    """Replay a journal; ``symbols`` are the columns, ``futures`` says which are contracts.

    Raises :class:`RunError` when a holding is in none of the columns, and
    :class:`~tradeassay.core.errors.LedgerError` when the journal breaks an accounting identity.
    """
    place = {symbol: column for column, symbol in enumerate(symbols)}
    sessions: list[str] = []
    nav: list[float] = []
    weights: list[Floats] = []
    costs: dict[str, list[float]] = {name: [] for name in COSTS}
    held = np.zeros(len(symbols))
    ruined: str | None = None
    for ledger, record in Ledger.steps(records):
        state = ledger.state()
        nav = nav or [state.initial]
        before = nav[-1]
        sessions.append(record.session)
        nav.append(state.nav)
        weights.append(held)
        for name, money in _money((*record.opening, *record.events)).items():
            costs[name].append(money / before)
        if not state.nav > 0.0:
            ruined = record.session
            break
        values = {symbol: position.value for symbol, position in state.positions.items()}
        held = _weights(values, state.nav, place, futures)
    return AccountDays(
        sessions=tuple(sessions),
        nav=np.array(nav or [np.nan]),
        weights=np.array(weights).reshape(len(sessions), len(symbols)),
        costs={name: np.array(values) for name, values in costs.items()},
        ruined=ruined,
    )


def _weights(values: Mapping[str, float], nav: float, place: Mapping[str, int], futures: Bools) -> Floats:
    held = np.zeros(futures.size)
    for symbol, value in values.items():
        if symbol not in place:
            raise RunError(f"'{symbol}' is held but not in the data", mend="use the data the run was played on")
        held[place[symbol]] = value / nav
    held[futures] = 0.0
    return held


def _money(events: Iterable[Event]) -> dict[str, float]:
    """Return what a session's trading cost or brought, by kind."""
    money = dict.fromkeys(COSTS, 0.0)
    for event in events:
        if isinstance(event, Filled):
            money["fees"] -= event.fee + event.tax
            if not event.margined:
                money["slippage"] -= event.quantity * (event.price - event.reference) * event.multiplier
        elif isinstance(event, BorrowCharged | InterestCharged):
            money["financing"] += event.cash
        elif isinstance(event, Settled):
            money["futures"] += event.cash
    return money
