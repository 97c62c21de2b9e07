"""Money paid into an account or out of it, as its table lists it, and the returns that are left without it.

What is paid in is taken to be there from the beginning of its row, what is paid out until its end, so that a row
earned ``(value + paid out) / (value before + paid in) - 1``: neither a large deposit nor a large withdrawal makes
the money at work look smaller than it was. Columns that the value contradicts are refused in one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats
from tradeassay.data.tables.cells import read_numbers
from tradeassay.data.tables.columns import bare_title, plain_title

_IN = frozenset(
    (
        "deposit|deposits|contribution|contributions|paid in|money in|cash in|inflow|inflows|einzahlung|"
        "einzahlungen|versamenti|apports|versements|depósitos|пополнения|入金|转入"
    ).split("|")
)
_OUT = frozenset(
    (
        "withdrawal|withdrawals|paid out|money out|cash out|outflow|outflows|auszahlung|auszahlungen|entnahme|"
        "entnahmen|prelievi|retraits|retiros|снятия|出金|转出"
    ).split("|")
)
_NET = frozenset(
    (
        "flow|flows|cash flow|cash flows|cashflow|cashflows|net flow|net flows|net cash flow|external flow|"
        "external flows|net deposit|net deposits|net contribution|net contributions|transfers|net transfers|"
        "deposits/withdrawals|deposits & withdrawals|deposits and withdrawals|ein /auszahlungen|"
        "einzahlungen/auszahlungen|出入金"
    ).split("|")
)
_SINCE = re.compile(r"\b(cum|cumul|cumulative|total)\b|\b(to date|since inception)\b|累计")
"""Words of titles over what was paid in since the beginning."""
_PER_SHARE = frozenset(
    (
        "price|adj close|adjusted close|close|close/last|nav per share|level|kurs|schlusskurs|anteilswert|"
        "rücknahmepreis|valore quota|quota|prezzo|valeur liquidative|valor liquidativo|цена|стоимость пая|"
        "单位净值|累计净值|收盘价|基準価額"
    ).split("|")
)
"""Titles of values in which deposits do not show."""
_EMPTY = ("", "nan", "na", "n/a", "<na>", "nat", "none", "null", "-")
_CLEAR = 0.1
"""The error of a share of the flows up to which the value can tell whether it holds them."""
_CENT = 0.005
_OTHER_ENDS = 0.001
"""A difference of an account's whole return from which the other reading of its flows is stated."""


def paid_titles(titles: Mapping[str, str]) -> list[str]:
    """Return the columns of money paid in or out, of ``titles`` by their plain form."""
    return list(dict.fromkeys(title for title in titles.values() if _kind(title) is not None))


def _kind(title: str) -> tuple[str, bool] | None:
    """Return a column's direction ("in", "out" or "net"), and whether it counts since the beginning; None for a
    column of something else."""
    for plain in (plain_title(title), bare_title(title)):
        rest = re.sub(r"\s+", " ", _SINCE.sub("", plain)).strip()
        for kind, names in (("in", _IN), ("out", _OUT), ("net", _NET)):
            if rest in names:
                return kind, rest != plain and "total" not in plain
    return None


@dataclass(frozen=True, slots=True)
class Flows:
    """What was paid in and out by ISO day, each 0 or more. ``said`` names the columns."""

    name: str
    said: str
    paid_in: Mapping[str, float]
    paid_out: Mapping[str, float]

    def rows_before(self, days: Sequence[str], values: Floats) -> int:
        """Return how many rows without money stand before the account's first."""
        funded = np.flatnonzero(values != 0.0)
        first = int(funded[0]) if funded.size else 0
        return first - 1 if first and self.paid_in.get(days[first], 0.0) > 0.0 else first

    def earned(self, title: str, days: Sequence[str], values: Floats, notes: list[str]) -> Floats:
        """Return what each row after the first earned; raises :class:`UserError` where the value and what was paid
        contradict each other."""
        came, went = (np.array([side.get(day, 0.0) for day in days]) for side in (self.paid_in, self.paid_out))
        before, after = values[:-1] + came[1:], values[1:] + went[1:]
        if (values < 0.0).any() or not (before > 0.0).all() or not (after > 0.0).all():
            raise UserError(
                f"{self.name}: '{title}' is negative, or zero without a deposit, somewhere",
                hint="an account's value must be positive, or paid in on the next row",
            )
        self._refuse_contradiction(title, days, values, came, went)
        earned: Floats = after / before - 1.0
        notes.append(self._explained(earned, values, came[1:], went[1:]))
        return earned

    def _explained(self, earned: Floats, values: Floats, came: Floats, went: Floats) -> str:
        rows = int(np.count_nonzero(came + went))
        told = (
            f"{self.name}: money paid in ({came.sum():,.2f}) and out ({went.sum():,.2f}; {self.said}, {rows} "
            f"row{'s' * (rows != 1)}) is taken out of the returns, which are time-weighted: (value + paid out) / "
            "(value before + paid in) - 1, as if paid in when a row begins and out when it ends"
        )
        whole = float(np.prod(1.0 + earned)) - 1.0
        before, after = values[:-1] - went, values[1:] - came
        if not (before > 0.0).all() or not (after > 0.0).all():
            return told
        other = float(np.prod(after / before)) - 1.0
        if abs(other - whole) < _OTHER_ENDS:
            return told
        return f"{told} ({whole:+.1%} in all); the other way round the account earned {other:+.1%}"

    def _refuse_contradiction(
        self, title: str, days: Sequence[str], values: Floats, came: Floats, went: Floats
    ) -> None:
        """Refuse flows that the value does not hold, where its moves are small enough to tell: of the flows, the
        share that the returns still hold is 0 if they are right, and -1 if the value holds none of them."""
        net = came - went
        told = _left_over(values, net)
        if told is None or abs(told) < 0.5:
            return
        late, early = np.concatenate([[0.0], net[:-1]]), np.concatenate([net[1:], [0.0]])
        since = np.concatenate([[0.0], np.diff(net)])
        largest = int(np.argmax(np.abs(net[1:]))) + 1
        others = (
            (since, "it looks like what was paid in since the beginning", "call it 'cumulative deposits'"),
            (-net, "the value moves the other way", "write what is paid in as 'deposits', out as 'withdrawals'"),
            (late, "the value holds it a row later", "date each payment as the first value that holds it"),
            (early, "the value holds it a row earlier", "date each payment as the first value that holds it"),
        )
        held = (_left_over(values, flows) for flows, _, _ in others)
        right = [one[1:] for one, left in zip(others, held, strict=True) if left is not None and abs(left) < 0.5]
        nothing = (
            f"the value does not move by it ({abs(net[largest]):,.2f} on {days[largest]})",
            f"call '{title}' 'price' if it is one share's, otherwise mend or leave out the column",
        )
        said, hint = right[0] if right else nothing
        raise UserError(f"{self.name}: {self.said} cannot be taken out of '{title}': {said}", hint=hint)


def _left_over(values: Floats, net: Floats) -> float | None:
    """Return the share of flows that is still in the returns after they are taken out; None if nobody can tell."""
    came, went = np.maximum(net, 0.0)[1:], np.maximum(-net, 0.0)[1:]
    funded = (values[:-1] > 0.0) & (values[1:] > 0.0)
    value = values[1:][funded], values[:-1][funded]
    earned = np.log((value[0] + went[funded]) / (value[1] + came[funded]))
    moved = np.log(value[0] / value[1])
    flows = moved - earned
    weight = float(flows @ flows)
    if weight <= 0.0:
        return None
    usual = 1.4826 * min(float(np.median(np.abs(earned))), float(np.median(np.abs(moved))))
    return float(earned @ flows) / weight if usual <= _CLEAR * weight**0.5 else None


def read_flows(
    name: str, titles: Mapping[str, str], columns: Mapping[str, Sequence[Any]], days: Sequence[str]
) -> Flows | None:
    """Return what was paid in and out beside an account's value; None if nothing was. An empty cell is nothing.

    Raises :class:`UserError` for columns that can be read in two ways."""
    by_kind: dict[str, tuple[str, dict[str, float]]] = {}
    for title in paid_titles(titles):
        kind, since = _kind(title) or ("net", False)
        by_day = _by_day(name, title, columns[title], days, since=since)
        if not any(by_day.values()):
            continue
        if kind in by_kind:
            both = f"'{by_kind[kind][0]}' and '{title}' both say what was paid"
            raise UserError(f"{name}: {both} {'in or out' if kind == 'net' else kind}", hint="keep one of them")
        by_kind[kind] = title, by_day
    if not by_kind:
        return None
    net = _net(name, by_kind, days)
    return Flows(
        name,
        " and ".join(f"'{title}'" for title, _ in by_kind.values()),
        {day: max(number, 0.0) for day, number in net.items()},
        {day: max(-number, 0.0) for day, number in net.items()},
    )


def _by_day(name: str, title: str, cells: Sequence[Any], days: Sequence[str], *, since: bool) -> dict[str, float]:
    """Return a column of flows by day; of what was paid ``since`` the beginning, each day's own."""
    given = ["0" if str(cell).strip().lower() in _EMPTY else cell for cell in cells]
    numbers, _ = read_numbers(name, title, given, days)
    by_day: dict[str, float] = {}
    for day, number in zip(days, numbers.tolist(), strict=True):
        if by_day.setdefault(day, number) != number:
            raise UserError(f"{name}: {day} is given twice, with other '{title}'", hint="add them into one row")
    if not since:
        return by_day
    ordered = sorted(by_day)
    steps = [0.0, *np.diff([by_day[day] for day in ordered]).tolist()]
    return dict(zip(ordered, steps, strict=True))


def _net(
    name: str, by_kind: Mapping[str, tuple[str, dict[str, float]]], days: Sequence[str]
) -> Mapping[str, float]:
    """Return what was paid in less what was paid out, by day."""
    net = dict.fromkeys(days, 0.0)
    for kind, (title, by_day) in by_kind.items():
        signs = {number > 0.0 for number in by_day.values() if number}
        # Money out is written with a minus as often as without; money in with a minus is money out.
        sign = -1.0 if kind == "out" and True in signs else 1.0
        if sign < 0.0 and len(signs) > 1:
            raise UserError(f"{name}: '{title}' has both signs", hint="write what is paid out without a minus")
        for day, number in by_day.items() if kind != "net" else ():
            net[day] += sign * number
    if "net" not in by_kind:
        return net
    title, told = by_kind["net"]
    if len(by_kind) > 1 and any(abs(told[day] - net[day]) > _CENT for day in told):
        rest = " and ".join(f"'{one}'" for one, _ in by_kind.values() if one != title)
        raise UserError(f"{name}: '{title}' is not what {rest} add up to", hint="keep one or the other")
    return told


def of_one_share(title: str) -> bool:
    """Return whether a title is of the value of one share, which deposits do not move."""
    return plain_title(title) in _PER_SHARE or bare_title(title) in _PER_SHARE
