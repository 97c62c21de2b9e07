"""Read deposits and withdrawals of an account, and remove them from its returns.

A deposit is assumed at the beginning of its row, a withdrawal at its end. The return of a row is
``(value + paid out) / (value before + paid in) - 1``. So neither a large deposit nor a large
withdrawal makes the invested money look smaller than it was. Columns that contradict the value
raise an error of one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.tables.cells import NOTHING, read_numbers
from tradeassay.tables.columns import TITLES, bare_title, plain_title

_SINCE = re.compile(r"\b(cum|cumul|cumulative|total)\b|\b(to date|since inception)\b|累计")
"""Words in titles of cumulative deposits."""
_PER_SHARE = frozenset(TITLES["flows"]["per share"])
"""Titles of values that deposits do not change."""
_CLEAR = 0.1
"""Largest error, as a share of the flows, at which the value shows whether it contains them."""
_CENT = 0.005
_DOUBTED = 0.01
"""Smallest annual return for which a note says that it depends on the listed payments."""
_CURRENCIES = ("currency", "ccy", "währung", "devise", "货币")
"""Titles of columns that contain currencies."""
_SIGNS = {"€": "EUR", "£": "GBP", "₹": "INR"}
_CURRENCY = re.compile(
    r"[$€£₹]|(?<![A-Za-z])(?:USD|EUR|GBP|INR|CHF|JPY|CNY|HKD|CAD|AUD|SEK|NOK|DKK|PLN|SGD|KRW|BRL)(?![A-Za-z])"
)
_OTHER_ENDS = 0.001
"""Smallest difference in the total return for which the alternative timing of flows is reported."""


def paid_titles(titles: Mapping[str, str]) -> list[str]:
    """Return the columns of deposits and withdrawals. ``titles`` are keyed by their plain form."""
    return list(dict.fromkeys(title for title in titles.values() if _kind(title) is not None))


def _kind(title: str) -> tuple[str, bool] | None:
    """Return a column's direction ("in", "out" or "net") and whether it is cumulative.

    Returns None for a column without payments.
    """
    for plain in (plain_title(title), bare_title(title)):
        rest = re.sub(r"\s+", " ", _SINCE.sub("", plain)).strip()
        for kind in ("in", "out", "net"):
            if rest in TITLES["flows"][kind]:
                return kind, rest != plain and "total" not in plain
    return None


def of_one_share(title: str) -> bool:
    """Return whether a title means the value of one share, which deposits do not change."""
    return plain_title(title) in _PER_SHARE or bare_title(title) in _PER_SHARE


class Flows(msgspec.Struct, frozen=True):
    """Net payments (deposits minus withdrawals) by ISO day. ``said`` names the columns."""

    name: str
    said: str
    net: Mapping[str, float]

    def with_money(self, days: Sequence[str], values: Floats) -> slice:
        """Return the rows with money, from the row before the first to the row after the last."""
        funded = np.flatnonzero(values != 0.0)
        if not funded.size:
            return slice(0, len(days))
        first, end = int(funded[0]), int(funded[-1]) + 2
        first -= bool(first and self.net.get(days[first], 0.0) > 0.0)
        if any(self.net.get(day, 0.0) for day in days[end:]):
            end = len(days)
        return slice(first, min(end, len(days)))

    def earned(
        self, title: str, days: Sequence[str], values: Floats, year: int
    ) -> tuple[Floats, list[str], list[str]]:
        """Return each row's return after the first, notes, and clauses about unverified payments.

        Raises :class:`UserError` if the value and the payments contradict each other. A payment
        much larger than the usual move is visible in the value. A smaller withdrawal may really be
        a loss, and a payment at the other end of its row may hide a loss.
        """
        net = np.array([self.net.get(day, 0.0) for day in days[1:]])
        came, went = np.maximum(net, 0.0), np.maximum(-net, 0.0)
        before, after = values[:-1] + came, values[1:] + went
        self._refuse(title, days, values, before, after)
        earned: Floats = after / before - 1.0
        notes, doubts = [], []
        with np.errstate(divide="ignore"):
            shares = np.log1p(went / values[1:])
        usual = 1.4826 * float(np.median(np.abs(earned))) if earned.size else 0.0
        unseen = float(shares[shares <= usual / _CLEAR].sum()) * year / max(1, earned.size)
        if unseen >= _DOUBTED:
            doubts.append(
                f"withdrawals are not verified: {unseen:.1%} a year of them came in amounts that "
                "cannot be "
                "told from losses"
            )
        whole, other = float(np.prod(1.0 + earned)) - 1.0, None
        # The opposite assumption: deposits at the end of rows and withdrawals at the beginning, if
        # possible.
        before, after = values[:-1] - went, values[1:] - came
        if (before > 0.0).all() and (after > 0.0).all():
            other = float(np.prod(1.0 + (after / before - 1.0))) - 1.0
            if np.log1p(whole) - np.log1p(other) >= _DOUBTED * max(1.0, earned.size / year):
                doubts.append(
                    "the timing of deposits is not known: with deposits when rows end and "
                    "withdrawals when they begin, "
                    f"the account earned {other:+.1%}, not {whole:+.1%}"
                )
        if rows := int(np.count_nonzero(net)):
            told = (
                f"{self.name}: money paid in ({came.sum():,.2f}) and out ({went.sum():,.2f}; "
                f"{self.said}, "
                f"net on {rows} row{'s' * (rows != 1)}) is removed from the returns, which are "
                "time-weighted: "
                "(value + paid out) / (value before + paid in) - 1, with deposits when a row "
                "begins "
                "and withdrawals when it ends"
            )
            if other is not None and abs(other - whole) >= _OTHER_ENDS:
                told += (
                    f" ({whole:+.1%} in all); with the opposite timing the account earned "
                    f"{other:+.1%}"
                )
            notes.append(told)
        return earned, notes, doubts

    def _refuse(
        self, title: str, days: Sequence[str], values: Floats, before: Floats, after: Floats
    ) -> None:
        """Raise an error for impossible values and flows.

        These are a negative or lost value, rows without money, and flows that the value does not
        contain. The last test is made only if the usual moves are small enough.
        """
        lost, nothing = np.flatnonzero(after <= 0.0), np.flatnonzero(before <= 0.0)
        if (values < 0.0).any():
            day = days[int(np.argmax(values < 0.0))]
            problem = f"{self.name}: '{title}' is negative on {day}"
            raise UserError(problem, hint="an account's value must be positive")
        if lost.size and before[lost[0]] > 0.0:
            raise UserError(
                f"{self.name}: '{title}' is zero on {days[lost[0] + 1]}, and no withdrawal is "
                "listed: "
                "everything was lost",
                hint="list it as 'withdrawals' if it was paid out",
            )
        if nothing.size:
            problem = (
                f"{self.name}: there is no money on {days[nothing[0] + 1]}, but there is "
                "some again later"
            )
            raise UserError(problem, hint="give the rows before and after as two accounts")
        # If the flows are right, the returns contain none of them. If the value never contained
        # them, the returns contain all of them.
        funded = (values[:-1] > 0.0) & (values[1:] > 0.0)
        earned = np.log(after[funded] / before[funded])
        moved = np.log(values[1:][funded] / values[:-1][funded])
        flows = moved - earned
        weight = float(flows @ flows)
        if weight <= 0.0:
            return
        usual = 1.4826 * min(float(np.median(np.abs(earned))), float(np.median(np.abs(moved))))
        if usual <= _CLEAR * weight**0.5 and abs(float(earned @ flows) / weight) >= 0.5:
            far = max(days[1:], key=lambda day: abs(self.net.get(day, 0.0)))
            raise UserError(
                f"{self.name}: {self.said} cannot be removed from '{title}': the value does not "
                "change by it "
                f"({abs(self.net[far]):,.2f} on {far})",
                hint="list deposits as 'deposits' and withdrawals as 'withdrawals', in the value's "
                "currency and on "
                "the first row whose value includes them; call running totals 'cumulative "
                "deposits', "
                "and the value of one share 'price'",
            )


def read_flows(
    name: str,
    titles: Mapping[str, str],
    columns: Mapping[str, Sequence[Any]],
    days: Sequence[str],
    value: str,
) -> Flows | None:
    """Return the payments listed besides an account's column ``value``, or None without payments.

    An empty cell means no payment. Raises :class:`UserError` for ambiguous columns.
    """
    by_kind: dict[str, tuple[str, dict[str, float]]] = {}
    for title in paid_titles(titles):
        kind, since = _kind(title) or ("net", False)
        by_day = _by_day(name, title, columns, days, since=since, value=value)
        if not any(by_day.values()):
            continue
        beside = [titles[one] for one in _CURRENCIES if one in titles]
        cells = " ".join(
            str(cell) for one in (value, title, *beside) for cell in (one, *columns[one])
        )
        marks = {_SIGNS.get(mark, mark) for mark in _CURRENCY.findall(cells)}
        coins = marks - {"$"}  # the sign $ may mean several currencies
        if len(coins) > 1 or ("$" in marks and not all(coin.endswith("D") for coin in coins)):
            said = " and ".join(sorted(marks))
            raise UserError(
                f"{name}: '{value}' and '{title}' are in {said}", hint="give both in one currency"
            )
        if kind in by_kind:
            both = f"'{by_kind[kind][0]}' and '{title}' both list payments"
            raise UserError(
                f"{name}: {both} {'in or out' if kind == 'net' else kind}", hint="keep one of them"
            )
        by_kind[kind] = title, by_day
    if not by_kind:
        return None
    net = dict.fromkeys(days, 0.0)
    for kind, (title, by_day) in by_kind.items():
        signs = {number > 0.0 for number in by_day.values() if number}
        # Withdrawals are listed with or without a minus. A negative deposit is a withdrawal.
        sign = -1.0 if kind == "out" and True in signs else 1.0
        if sign < 0.0 and len(signs) > 1:
            raise UserError(
                f"{name}: '{title}' has both signs", hint="write withdrawals without a minus"
            )
        for day, number in by_day.items() if kind != "net" else ():
            net[day] += sign * number
    if "net" in by_kind:
        title, told = by_kind["net"]
        if len(by_kind) > 1 and any(abs(told[day] - net[day]) > _CENT for day in told):
            rest = " and ".join(f"'{one}'" for one, _ in by_kind.values() if one != title)
            raise UserError(
                f"{name}: '{title}' is not the sum of {rest}", hint="keep one or the other"
            )
        net = told
    first = min(days)
    for cell, day in zip(columns[value], days, strict=True):
        # If its row were left out, a payment would look like a gain or a loss. The first row is
        # before the account.
        if net[day] and day != first and str(cell).strip().lower() in NOTHING:
            problem = f"{name}: {abs(net[day]):,.2f} was paid on {day}, which has no '{value}'"
            raise UserError(
                problem, hint="give the value, or date the payment as the next row that has one"
            )
    return Flows(name, " and ".join(f"'{title}'" for title, _ in by_kind.values()), net)


def _by_day(
    name: str,
    title: str,
    columns: Mapping[str, Sequence[Any]],
    days: Sequence[str],
    *,
    since: bool,
    value: str,
) -> dict[str, float]:
    """Return a column of payments by day, in the number format of ``value``.

    If the column is cumulative (``since``), return the difference of each day.
    """
    given = ["0" if str(cell).strip().lower() in NOTHING else cell for cell in columns[title]]
    numbers, _ = read_numbers(name, title, given, days, like=columns[value])
    by_day: dict[str, float] = {}
    for day, number in zip(days, numbers.tolist(), strict=True):
        if by_day.setdefault(day, number) != number:
            raise UserError(
                f"{name}: {day} is listed twice with different '{title}'",
                hint="add them into one row",
            )
    if not since:
        return by_day
    ordered = sorted(by_day)
    steps = [0.0, *np.diff([by_day[day] for day in ordered]).tolist()]
    return dict(zip(ordered, steps, strict=True))
