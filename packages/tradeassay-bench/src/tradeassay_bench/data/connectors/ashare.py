"""Handle A-shares: instruments, distributions and their effect on prices, and index membership.

Membership is found by querying a vendor for the members of an index on individual days.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from tradeassay.core.arrays import Days, Floats
from tradeassay.core.errors import UserError
from tradeassay_bench.core.view import CorporateAction, Fundamental, Instrument
from tradeassay_bench.data.calendars import Sessions
from tradeassay_bench.data.connectors.common import Column, action_time, shorten
from tradeassay_bench.data.names import ashare_code, board_of
from tradeassay_bench.data.source import Membership

UNEXPLAINED = 0.005
"""Largest difference between the exchange's reference price and the price expected from
distributions that counts as explained, as a fraction of the last close.
"""


def ashare_instrument(
    symbol: str, sector: str | None, kind: Literal["stock", "index"] = "stock"
) -> Instrument:
    """Return an instrument without a name.

    Vendors report today's name, and an "ST" in it would reveal the future.
    """
    return Instrument(
        symbol=symbol,
        kind=kind,
        sector=sector,
        board=board_of(symbol),
        currency="CNY",
        lot=100.0,
        tick=0.01 if kind == "stock" else 0.001,
    )


def parse_ashare(text: str) -> str:
    """Return an A-share code in the form ``600000.SH``.

    Accepts ``600000``, ``sh.600000`` and ``SH600000``. Raises :class:`UserError` for other texts.
    """
    symbol = ashare_code(text.strip())
    if symbol is None:
        raise UserError(
            f"'{text}' is not an A-share code", hint="write e.g. 600000.SH or 000001.SZ"
        )
    return symbol


class Distribution(NamedTuple):
    """A distribution on an ex-date: the cash and the new shares per old share."""

    ex_date: str
    cash: float
    shares: float

    def reference(self, close: float) -> float:
        """Return the reference price that follows from the last close and this distribution."""
        return (close - self.cash) / (1.0 + self.shares)


def merged(distributions: list[Distribution]) -> list[Distribution]:
    """Return one distribution per ex-date, sorted. Equal distributions are counted once."""
    by_day: dict[str, tuple[float, float]] = {}
    for entry in dict.fromkeys(distributions):
        cash, shares = by_day.get(entry.ex_date, (0.0, 0.0))
        by_day[entry.ex_date] = (cash + entry.cash, shares + entry.shares)
    return [Distribution(day, *by_day[day]) for day in sorted(by_day)]


@dataclass(frozen=True, slots=True)
class FetchedStock:
    """The fetched data of one stock.

    ``special_treatment`` is the number of its days under ST. ``caps`` are values of its free float.
    """

    column: Column
    distributions: list[Distribution]
    unexplained: list[str]
    special_treatment: int = 0
    caps: tuple[Fundamental, ...] = ()

    @property
    def symbol(self) -> str:
        return self.column.instrument.symbol


def stock_actions(
    stocks: Sequence[FetchedStock], sessions: Sessions
) -> tuple[CorporateAction, ...]:
    """Return the corporate actions of all distributions within the sessions, sorted by ex-date."""
    actions: list[CorporateAction] = []
    for stock in stocks:
        for entry in stock.distributions:
            known_at = action_time(sessions, entry.ex_date)
            if known_at is None:
                continue
            facts: dict[str, Any] = {
                "symbol": stock.symbol,
                "ex_date": entry.ex_date,
                "known_at": known_at,
            }
            if entry.cash > 0:
                value = round(entry.cash, 6)
                actions.append(CorporateAction(kind="dividend", value=value, **facts))
            if entry.shares > 0:
                ratio = round(1.0 + entry.shares, 8)
                actions.append(CorporateAction(kind="split", value=ratio, **facts))
    return tuple(sorted(actions, key=lambda action: (action.ex_date, action.symbol, action.kind)))


def unexplained(
    days: Days, closes: Floats, precloses: Floats, distributions: Sequence[Distribution]
) -> list[str]:
    """Return the days whose reference price does not match the last close and the distributions.

    ``precloses`` are the exchange's reference prices.
    """
    odd_days: list[str] = []
    for row in range(1, days.size):
        close = float(closes[row - 1])
        expected = close
        for distribution in distributions:
            if str(days[row - 1]) < distribution.ex_date <= str(days[row]):
                expected = distribution.reference(expected)
        if abs(float(precloses[row]) - expected) > UNEXPLAINED * close:
            odd_days.append(str(days[row]))
    return odd_days


def unexplained_note(stocks: Sequence[FetchedStock]) -> list[str]:
    """Return a list with a note on unexplained reference prices, or an empty list."""
    strange = []
    for stock in stocks:
        for day in stock.unexplained:
            strange.append(f"{stock.symbol} {day}")
    if not strange:
        return []
    return [
        "reference prices that the listed dividends do not explain (rights issues?): "
        f"{shorten(strange)}"
    ]


STRIDE = 20
"""Number of sessions between two sampled days. If the members on two sampled days differ, the days
between them are searched for the change.
"""


def dated_members(
    index: str, sessions: Sessions, ask: Callable[[str], frozenset[str]]
) -> tuple[Membership, ...]:
    """Return the dated memberships of an index, exact to the day, with as few requests as possible.

    ``ask`` returns the members on a day. A name that leaves and returns within :data:`STRIDE`
    sessions is missed.
    """
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
    memberships: list[Membership] = []
    since: dict[str, str] = {}
    for row in sorted(known):
        for symbol in known[row]:
            since.setdefault(symbol, str(sessions.days[row]))
        for symbol in [name for name in since if name not in known[row]]:
            membership = Membership(
                index=index,
                symbol=symbol,
                start=since.pop(symbol),
                end=str(sessions.days[row - 1]),
            )
            memberships.append(membership)
    for symbol, start in since.items():
        memberships.append(Membership(index=index, symbol=symbol, start=start))
    return tuple(sorted(memberships, key=lambda entry: (entry.symbol, entry.start)))
