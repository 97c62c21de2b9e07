"""A user's own account, and how to read its tables."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.tables.account import TableReading

Between = Literal["cash", "hold"]


class OwnAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a user's own account, and how to read them.

    ``weights`` is a table with the columns ``date``, ``symbol`` and ``weight``. A weight is the
    share of the account held into that session, known at the previous close, and negative for a
    short position. ``returns`` is a table of the account's returns (``date``, ``return``), net of
    costs. It may also be a table of the assets' returns (``date``, ``symbol``, ``return``, and
    optionally ``size`` and one column per factor, known before the date). Prices and factors come
    from ``dataset``, a stored data set or the folder of a snapshot, unless the assets' returns are
    given. If there are weights on at most a third of the sessions, the account held its positions
    in between. If there are weights on more sessions but not on all, ``between`` must say whether
    the account held its positions or was in cash. A luck baseline needs the account's returns, a
    benchmark ``suite`` with the venue's rules, the number of ``names`` held, and their annual
    one-way ``turnover``.

    The account's returns may also be a pandas or polars table, or a table of the account's value.
    ``benchmark`` is another table of returns, a column of the same table, or a named benchmark.
    ``cash`` is a table of the returns of cash. ``factors`` is a table of the returns of styles, one
    per column, in which ``RF`` is cash and ``Mkt-RF`` the market. Both may be ``french`` for
    Kenneth French's table. ``reading`` states facts that the account's table does not show.

    ``returns`` may also name a trade log. The account is then computed with the prices of
    ``dataset`` or of the file ``prices``. It starts with ``cash_at_start``, by default the smallest
    amount that pays for every trade. It is judged up to the day ``until``, by default the last
    trade. ``symbol`` is the traded asset if the log does not name it.
    """

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
