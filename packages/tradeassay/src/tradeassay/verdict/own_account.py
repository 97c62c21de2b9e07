"""A user's own account, and how its tables are read."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.tables.account import TableReading

Between = Literal["cash", "hold"]


class OwnAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a user's own account, and how they are read.

    ``weights`` is a table of ``date``, ``symbol``, ``weight``: shares of the account held into that session (known
    at the close before), shorts negative. ``returns`` is the account's (``date``, ``return``, net of costs), or
    those of the names (``date``, ``symbol``, ``return``, optionally ``size`` and columns named like the
    factors, all known before the date). Prices and factors come from ``dataset`` (a stored data set or a
    snapshot's folder) unless the names' returns are given. Where weights are given on at most a third of the
    sessions, the account held what it had in between; where on more but not all, ``between`` must say whether it
    did or was in cash. A luck baseline needs the account's returns, a
    benchmark ``suite`` for the market's rules, and how many ``names`` were held with which yearly one-way ``turnover``.

    An account's returns may also be a pandas or polars table, hold its value instead, and be compared with
    ``benchmark``: another table of returns, or a column of the same. ``cash`` is a table of what cash earned,
    ``factors`` one with the returns of styles, a column each (``RF`` in it is cash, ``Mkt-RF`` the market); both
    may be ``french``. ``reading`` says what cannot be told from the account's table.

    ``returns`` may also name a log of trades, whose account is made with the prices of ``dataset`` or of the file
    ``prices``. It began with ``cash_at_start``, by default the least that pays for every trade, and is judged
    ``until`` its last trade; ``symbol`` is what was traded where the log does not say."""

    weights: str | None = None
    returns: str | object | None = None
    benchmark: str | object | None = None
    cash: str | object | None = None
    factors: str | object | None = None
    reading: TableReading = TableReading()
    dataset: str | None = None
    universe: str = "all"
    between: Between | None = None
    suite: str | None = None
    names: int | None = None
    turnover: float | None = None
    home: str | None = None
    title: str | None = None
    prices: str | None = None
    cash_at_start: float | None = None
    until: str | None = None
    symbol: str | None = None
