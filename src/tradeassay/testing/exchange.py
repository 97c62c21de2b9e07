"""``check_exchange``: do the rules of a venue hold, whatever is ordered?

It drives the exchange with seeded random orders through a rough market, keeps a second pair of books, and then
probes single rules with orders that must be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan
from typing import Literal

import msgspec
import numpy as np

from tradeassay.account import Exchange, Ledger, Venue, venues
from tradeassay.account.audit import AuditDay, AuditFinding, Auditor
from tradeassay.core.errors import LedgerError
from tradeassay.core.events import ENCODER, STEP_DECODER, Event, Filled, Rejected, RejectReason, StepRecord
from tradeassay.core.orders import Decision, Order
from tradeassay.testing._failed import CheckFailed
from tradeassay.testing._rough import RoughSession, rough_market, rough_orders

CASH = 250_000.0
_SESSIONS = 70


def check_exchange(venue: Venue | str, *, seeds: Sequence[int] = (0, 1, 2, 3)) -> None:
    """Raise :class:`CheckFailed` with one sentence when a venue breaks a rule; return when it keeps them all.

    Checked for each seed: cash + positions = NAV at every mark by a second pair of books; a cash account never
    below zero, a margin account never below maintenance without a call; no fill outside the bar, at a price limit,
    in a halted name, beyond the volume share, of locked or missing shares; costs as the fee policy says; every
    order answered by an event; the journal's replay equal to the live account; two runs equal to the byte.
    """
    rules = venues.get(venue) if isinstance(venue, str) else venue
    if msgspec.json.decode(msgspec.json.encode(rules), type=Venue) != rules:
        raise CheckFailed(f"venue '{rules.id}' does not survive a round trip through JSON")
    fills = 0
    for seed in seeds:
        journal = play_journal(rules, seed, fill="open")
        if ENCODER.encode(journal) != ENCODER.encode(play_journal(rules, seed, fill="open")):
            raise CheckFailed(f"venue '{rules.id}', seed {seed}: two runs of the same orders differ")
        fills += sum(isinstance(event, Filled) for record in journal for event in record.events)
        play_journal(rules, seed, fill="close")
    if fills == 0:
        raise CheckFailed(f"venue '{rules.id}' filled none of the random orders")
    _probe(rules)


def play_journal(venue: Venue, seed: int, *, fill: str) -> list[StepRecord]:
    """Play random orders through a rough market under audit and return the journal."""
    try:
        return _play(venue, seed, fill)
    except LedgerError as error:
        raise CheckFailed(f"venue '{venue.id}', seed {seed}: the ledger refuses an event: {error}") from error


def _play(venue: Venue, seed: int, fill: str) -> list[StepRecord]:
    rng = np.random.default_rng(seed)
    exchange, ledger = Exchange(venue), Ledger(CASH, terms=venue.terms)
    auditor, label = Auditor(CASH), f"venue '{venue.id}', seed {seed}, fills at the {fill}"
    own = venue.concentration
    moment: Literal["open", "close"] = "close" if fill == "close" else "open"
    records: list[StepRecord] = []
    for step, session in enumerate(rough_market(rng, _SESSIONS, futures=venue.margin is not None)):
        bars = session.bars
        opening = exchange.open_session(bars, session.actions, ledger, delisted=session.delisted)
        day = AuditDay(
            venue, bars, session.actions, session.delisted,
            fill=moment, max_weight=own.max_weight, max_positions=own.max_positions,
        )  # fmt: skip
        _no_finding(auditor.opening(day, opening), f"{label}, {bars.session}")
        orders = rough_orders(rng, bars, ledger.state())
        placed = [(f"{step}.{number}", order) for number, order in enumerate(orders)]
        events = exchange.execute(placed, bars, ledger, fill=moment)
        events += exchange.close_session(bars, ledger)
        _no_finding(auditor.session(day, dict(placed), events), f"{label}, {bars.session}")
        records.append(_record(step, bars.session, ledger, opening, orders, events))
    _check_replay(venue, seed, ledger, records)
    return records


def _no_finding(found: Iterable[AuditFinding], where: str) -> None:
    for finding in found:
        raise CheckFailed(f"{where}: {finding.what}")


def _record(
    step: int, session: str, ledger: Ledger, opening: list[Event], orders: list[Order], events: list[Event]
) -> StepRecord:
    first = () if step else (ledger.deposit,)
    # JSON knows no NaN, and a journal never holds one: orders are checked before they are decided on.
    kept = tuple(order for order in orders if order.amount == order.amount)
    return StepRecord(
        step=step,
        session=session,
        decided_at=0,
        opening=(*first, *opening),
        decision=Decision(orders=kept),
        events=tuple(events),
    )


def _check_replay(venue: Venue, seed: int, ledger: Ledger, records: list[StepRecord]) -> None:
    lines = [ENCODER.encode(msgspec.structs.replace(record, decision=Decision())) for record in records]
    again = Ledger.replay(STEP_DECODER.decode(line) for line in lines)
    if again.state() != ledger.state():
        raise CheckFailed(f"venue '{venue.id}', seed {seed}: the replay of the journal is another account")


def _probe(venue: Venue) -> None:
    """Send orders that must be refused, each for its reason."""
    session = _quiet_session(venue)
    symbol = "S0"
    impossible: list[tuple[Order, RejectReason]] = [
        (Order(symbol="NOBODY", amount=1.0, side="BUY"), "unknown_symbol"),
        (Order(symbol=symbol, amount=nan, side="BUY"), "bad_amount"),
        (Order(symbol=symbol, amount=-1.0, side="BUY"), "bad_amount"),
        (Order(symbol=symbol, amount=1.0), "bad_amount"),
        (Order(symbol=symbol, amount=100.0, side="BUY", kind="limit"), "bad_price"),
        (Order(symbol=symbol, amount=0.0, unit="target_weight"), "no_change"),
    ]
    if not venue.shorting.allowed:
        impossible.append((Order(symbol=symbol, amount=100.0, side="SELL"), "no_shorting"))
    for order, reason in impossible:
        exchange, ledger = Exchange(venue), Ledger(CASH, terms=venue.terms)
        exchange.open_session(session.bars, (), ledger)
        events = exchange.execute([("probe", order)], session.bars, ledger)
        got = [event.reason for event in events if isinstance(event, Rejected)]
        if len(events) != 1 or got != [reason]:
            raise CheckFailed(f"venue '{venue.id}' answers {order} with {events} instead of {reason}")


def _quiet_session(venue: Venue) -> RoughSession:
    """Return a session in which the first stock trades."""
    rng = np.random.default_rng(0)
    for session in rough_market(rng, 20, futures=False):
        if session.bars.trading[0]:
            return session
    raise AssertionError("a stock that never trades in twenty sessions")
