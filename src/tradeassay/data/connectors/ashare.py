"""A-shares: their instruments, what their distributions say about a price, and dated index membership.

Membership comes from a vendor that answers "who is in it on this day?".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from tradeassay.core.errors import UserError
from tradeassay.core.view import CorporateAction, Days, Floats, Fundamental, Instrument
from tradeassay.data.calendars import Sessions
from tradeassay.data.connectors.common import Column, action_time, shorten
from tradeassay.data.names import ashare_code, board_of
from tradeassay.data.source import Membership

UNEXPLAINED = 0.005
"""Share of the price by which the exchange's reference price may differ from what the distributions explain."""


def ashare_instrument(symbol: str, sector: str | None, kind: Literal["stock", "index"] = "stock") -> Instrument:
    """Return an instrument without a name: vendors give today's, and an "ST" in it would reveal the future."""
    tick = 0.01 if kind == "stock" else 0.001
    told: dict[str, Any] = {"board": board_of(symbol), "currency": "CNY", "lot": 100.0, "tick": tick}
    return Instrument(symbol=symbol, kind=kind, sector=sector, **told)


def parse_ashare(text: str) -> str:
    """Return ``600000.SH`` for ``600000``, ``sh.600000`` or ``SH600000``; :class:`UserError` for other texts."""
    symbol = ashare_code(text.strip())
    if symbol is None:
        raise UserError(f"'{text}' is not an A-share code", hint="write e.g. 600000.SH or 000001.SZ")
    return symbol


class Distribution(NamedTuple):
    """What a holder of one old share gets on an ex-date: cash, and new shares."""

    ex_date: str
    cash: float
    shares: float

    def reference(self, close: float) -> float:
        return (close - self.cash) / (1.0 + self.shares)


def merged(found: list[Distribution]) -> list[Distribution]:
    """Return one distribution per ex-date, sorted; equal ones are the same distribution reported twice."""
    by_day: dict[str, tuple[float, float]] = {}
    for one in dict.fromkeys(found):
        cash, shares = by_day.get(one.ex_date, (0.0, 0.0))
        by_day[one.ex_date] = (cash + one.cash, shares + one.shares)
    return [Distribution(day, *by_day[day]) for day in sorted(by_day)]


@dataclass(frozen=True, slots=True)
class FetchedStock:
    """What was fetched for one stock; ``special_treatment`` counts its days under ST, ``caps`` value its float."""

    column: Column
    distributions: list[Distribution]
    unexplained: list[str]
    special_treatment: int = 0
    caps: tuple[Fundamental, ...] = ()

    @property
    def symbol(self) -> str:
        return self.column.instrument.symbol


def stock_actions(stocks: Sequence[FetchedStock], sessions: Sessions) -> tuple[CorporateAction, ...]:
    actions: list[CorporateAction] = []
    for symbol, one in ((stock.symbol, one) for stock in stocks for one in stock.distributions):
        known_at = action_time(sessions, one.ex_date)
        if known_at is not None:
            facts: dict[str, Any] = {"symbol": symbol, "ex_date": one.ex_date, "known_at": known_at}
            if one.cash > 0:
                actions.append(CorporateAction(kind="dividend", value=round(one.cash, 6), **facts))
            if one.shares > 0:
                actions.append(CorporateAction(kind="split", value=round(1.0 + one.shares, 8), **facts))
    return tuple(sorted(actions, key=lambda action: (action.ex_date, action.symbol, action.kind)))


def unexplained(days: Days, closes: Floats, precloses: Floats, found: Sequence[Distribution]) -> list[str]:
    """Return the days whose reference price (``precloses``) does not follow from the close before and the
    distributions."""
    strange: list[str] = []
    for row in range(1, days.size):
        close = expected = float(closes[row - 1])
        for one in found:
            if str(days[row - 1]) < one.ex_date <= str(days[row]):
                expected = one.reference(expected)
        if abs(float(precloses[row]) - expected) > UNEXPLAINED * close:
            strange.append(str(days[row]))
    return strange


def unexplained_note(stocks: Sequence[FetchedStock]) -> list[str]:
    strange = [f"{stock.symbol} {day}" for stock in stocks for day in stock.unexplained]
    if not strange:
        return []
    return [f"reference prices that the listed dividends do not explain (rights issues?): {shorten(strange)}"]


STRIDE = 20
"""Sessions between two looks; where the looks differ, the days between are searched for the change."""


def dated_members(index: str, sessions: Sessions, ask: Callable[[str], frozenset[str]]) -> tuple[Membership, ...]:
    """Return who was in ``index`` when, asking as few days as it takes to find every change to the day. A name
    that leaves and comes back within :data:`STRIDE` sessions would go unseen."""
    known: dict[int, frozenset[str]] = {}

    def at(row: int) -> frozenset[str]:
        if row not in known:
            known[row] = ask(str(sessions.days[row]))
        return known[row]

    def search(low: int, high: int) -> None:
        if high - low > 1 and at(low) != at(high):
            middle = (low + high) // 2
            at(middle)
            search(low, middle)
            search(middle, high)

    last = sessions.days.size - 1
    at(0)
    for low, high in pairwise([*range(0, last, STRIDE), last]):
        search(low, high)
        at(high)
    found: list[Membership] = []
    since: dict[str, str] = {}
    for row in sorted(known):
        for symbol in known[row]:
            since.setdefault(symbol, str(sessions.days[row]))
        for symbol in [name for name in since if name not in known[row]]:
            day = str(sessions.days[row - 1])
            found.append(Membership(index=index, symbol=symbol, start=since.pop(symbol), end=day))
    found += [Membership(index=index, symbol=symbol, start=start) for symbol, start in since.items()]
    return tuple(sorted(found, key=lambda one: (one.symbol, one.start)))
