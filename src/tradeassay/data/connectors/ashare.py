"""A-shares: their instruments, and what their distributions say about a price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from tradeassay.core.errors import UserError
from tradeassay.core.instruments import CorporateAction, Instrument
from tradeassay.core.view import Days, Floats
from tradeassay.data.calendars import Sessions
from tradeassay.data.connectors.grid import shorten
from tradeassay.data.connectors.sessions import action_time
from tradeassay.data.files.codes import ashare_code, board_of

UNEXPLAINED = 0.005
"""Share of the price by which the exchange's reference price may differ from what the distributions explain."""


class AShare(NamedTuple):
    """A six-digit code and its market (``SH``, ``SZ`` or ``BJ``)."""

    code: str
    market: str

    @property
    def symbol(self) -> str:
        """The house's spelling, ``600000.SH``."""
        return f"{self.code}.{self.market}"

    def instrument(self, sector: str | None = None, kind: Literal["stock", "index"] = "stock") -> Instrument:
        """Return the instrument; ``index`` is a fund.

        It has no name: vendors give today's, and a later "ST" in it would tell the future.
        """
        return Instrument(
            symbol=self.symbol,
            kind=kind,
            board=board_of(self.symbol),
            sector=sector,
            currency="CNY",
            lot=100.0,
            tick=0.01 if kind == "stock" else 0.001,
        )


def parse_ashare(text: str) -> AShare:
    """Read ``600000``, ``600000.SH``, ``sh.600000`` or ``SH600000``; raises :class:`UserError` for other text."""
    symbol = ashare_code(text.strip())
    if symbol is None:
        raise UserError(f"'{text}' is no A-share code", mend="write e.g. 600000.SH or 000001.SZ")
    code, market = symbol.split(".")
    return AShare(code, market)


class Distribution(NamedTuple):
    """What a holder of one old share gets on an ex-date: cash, and new shares."""

    ex_date: str
    cash: float
    shares: float

    def reference(self, close: float) -> float:
        """Return the price that the exchange quotes as the previous close on the ex-date."""
        return (close - self.cash) / (1.0 + self.shares)


def merged(found: list[Distribution]) -> list[Distribution]:
    """Return one distribution per ex-date, sorted; equal ones are one that was reported twice."""
    by_day: dict[str, tuple[float, float]] = {}
    for one in dict.fromkeys(found):
        cash, shares = by_day.get(one.ex_date, (0.0, 0.0))
        by_day[one.ex_date] = (cash + one.cash, shares + one.shares)
    return [Distribution(day, *by_day[day]) for day in sorted(by_day)]


def distribution_actions(symbol: str, found: list[Distribution], sessions: Sessions) -> list[CorporateAction]:
    """Return the corporate actions of the sessions asked for."""
    actions: list[CorporateAction] = []
    for one in found:
        known_at = action_time(sessions, one.ex_date)
        if known_at is None:
            continue
        kinds: list[tuple[Literal["dividend", "split"], float]] = []
        if one.cash > 0:
            kinds.append(("dividend", round(one.cash, 6)))
        if one.shares > 0:
            kinds.append(("split", round(1.0 + one.shares, 8)))
        actions += [
            CorporateAction(symbol=symbol, kind=kind, ex_date=one.ex_date, known_at=known_at, value=value)
            for kind, value in kinds
        ]
    return actions


def unexplained(days: Days, closes: Floats, precloses: Floats, found: Sequence[Distribution]) -> list[str]:
    """Return the days whose reference price does not follow from the close before and the distributions since.

    ``precloses`` are the previous closes as the exchange quotes them, distributions already taken off.
    """
    strange: list[str] = []
    for row in range(1, days.size):
        close = expected = float(closes[row - 1])
        for one in found:
            if str(days[row - 1]) < one.ex_date <= str(days[row]):
                expected = one.reference(expected)
        if abs(float(precloses[row]) - expected) > UNEXPLAINED * close:
            strange.append(str(days[row]))
    return strange


def unexplained_note(days: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence about :func:`unexplained` days by symbol, or nothing."""
    strange = [f"{symbol} {day}" for symbol in days for day in days[symbol]]
    if not strange:
        return []
    return [f"reference prices that the listed dividends do not explain (rights issues?): {shorten(strange)}"]
