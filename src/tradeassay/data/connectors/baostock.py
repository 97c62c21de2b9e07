"""A-shares from baostock: daily bars as traded, amounts, suspensions, dividends, dated members, float caps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.instruments import Fundamental
from tradeassay.core.view import Days, Field, Floats
from tradeassay.data.calendars import Sessions
from tradeassay.data.connectors import asked
from tradeassay.data.connectors.ashare import (
    AShare,
    Distribution,
    FetchedStock,
    dated_members,
    merged,
    parse_ashare,
    stock_actions,
    unexplained,
    unexplained_note,
)
from tradeassay.data.connectors.baostock_wire import VENDOR, BaostockWire, Row, conversation
from tradeassay.data.connectors.grid import Column, Vendor, lay_out, shorten, vendor_panel
from tradeassay.data.connectors.retry import Runtime
from tradeassay.data.panel import Membership, Panel
from tradeassay.data.source import SourceConfig, sources

Index = Literal["hs300", "sz50", "zz500"]
LEVELS: dict[Index, str] = {"hs300": "sh.000300", "sz50": "sh.000016", "zz500": "sh.000905"}
BAR_FIELDS = (
    "date", "open", "high", "low", "close", "preclose", "volume", "amount", "turn", "tradestatus", "isST",
)  # fmt: skip
KINDS: dict[str, Literal["stock", "index"]] = {"1": "stock", "5": "index"}
"""baostock's types that can be traded here: shares, and exchange-traded funds."""
NUMBERS: tuple[Field, ...] = ("open", "high", "low", "close", "volume", "amount")
FEW = 5
"""Up to this many symbols, facts are asked for one by one; beyond it, for the whole market at once."""

BAOSTOCK = Vendor(
    source="baostock",
    calendar="XSHG",
    currency="CNY",
    licence="baostock.com through baostock (BSD): free for study and research; the numbers are the exchanges' "
    "and their suppliers', do not redistribute them.",
)


class BaostockConfig(asked.ConnectorConfig, frozen=True, kw_only=True):
    """Codes like ``600000.SH``; or, with ``index`` and no symbols, every member it had on any day asked for."""

    index: Index | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.symbols and self.index is None:
            raise UserError("no symbols to fetch", hint="name some, e.g. 600000.SH, or an index, e.g. hs300")


class BaostockSource:
    """Daily bars of A-shares. With ``index`` alone the universe is dated: nothing is picked with hindsight."""

    Config: ClassVar[type[SourceConfig]] = BaostockConfig
    summary: ClassVar[str] = (
        "A-shares from baostock: daily with amounts, suspensions, dividends, dated index members"
    )
    extra: ClassVar[str | None] = "ashare"

    def __init__(self, config: BaostockConfig, *, runtime: Runtime | None = None) -> None:
        """Take a configuration."""
        self._config = config
        self._runtime = runtime or Runtime()

    def load(self) -> Panel:
        """Fetch the panel; raises :class:`SourceError` naming the code that could not be fetched."""
        config = self._config
        sessions = asked.sessions_asked("XSHG", config.first, config.last, self._runtime.clock)
        with conversation(self._runtime) as wire:
            memberships = _members(wire, config.index, sessions) if config.index else ()
            shares = [parse_ashare(text) for text in config.symbols]
            shares = shares or [parse_ashare(name) for name in sorted({one.symbol for one in memberships})]
            facts = _listings(wire, shares)
            sectors = _sectors(wire, shares, sessions)
            stocks = [_stock(wire, share, facts[share], sectors.get(share), sessions) for share in shares]
            indices = {config.index: _levels(wire, LEVELS[config.index], sessions)} if config.index else {}
        chosen = {share.symbol for share in shares}
        return self._panel(stocks, sessions, tuple(one for one in memberships if one.symbol in chosen), indices)

    def _panel(
        self,
        stocks: Sequence[FetchedStock],
        sessions: Sessions,
        memberships: tuple[Membership, ...],
        indices: dict[Index, Floats],
    ) -> Panel:
        config = self._config
        grid = lay_out(
            [stock.column for stock in stocks],
            sessions,
            vendor=VENDOR,
            allow_partial=config.allow_partial,
            forgive=config.forgive,
        )
        biases = (
            *(["symbols chosen at the time of retrieval: survivorship"] if config.symbols else []),
            *grid.notes,
            *_warnings(stocks),
        )
        return replace(
            vendor_panel(BAOSTOCK, config, grid, sessions, biases, self._runtime.clock),
            actions=stock_actions(stocks, sessions),
            fundamentals=tuple(cap for stock in stocks for cap in stock.caps),
            memberships=memberships,
            indices={str(name): levels for name, levels in indices.items()},
        )


def _warnings(stocks: Sequence[FetchedStock]) -> list[str]:
    special = [stock.symbol for stock in stocks if stock.special_treatment]
    warnings = unexplained_note(stocks)
    if special:
        warnings.append(f"days under special treatment (ST), whose 5 % limit is not stored: {shorten(special)}")
    return warnings


def _their(share: AShare) -> str:
    return f"{share.market.lower()}.{share.code}"


def _members(wire: BaostockWire, index: Index, sessions: Sessions) -> tuple[Membership, ...]:
    def ask(day: str) -> frozenset[str]:
        rows = wire.rows(f"the members of {index} on {day}", ("code",), f"query_{index}_stocks", date=day)
        if not rows:
            raise SourceError(f"baostock names no members of {index} on {day}", hint="ask for later days")
        return frozenset(parse_ashare(row["code"]).symbol for row in rows)

    return dated_members(index, sessions, ask)


def _listings(wire: BaostockWire, shares: Sequence[AShare]) -> dict[AShare, Row]:
    needed = ("code", "ipoDate", "outDate", "type")
    rows: list[Row] = []
    for share in shares if len(shares) <= FEW else [None]:
        code = "" if share is None else _their(share)
        rows += wire.rows(
            f"the listing of {share.symbol if share else 'all stocks'}", needed, "query_stock_basic", code
        )
    found = {row["code"]: row for row in rows}
    for share in shares:
        kind = found.get(_their(share), {}).get("type")
        if kind not in KINDS:
            what = "knows no" if kind is None else "lists, but not as"
            raise SourceError(
                f"baostock {what} stock or fund {share.symbol}", hint="check the code, or leave it out"
            )
    return {share: found[_their(share)] for share in shares}


def _sectors(wire: BaostockWire, shares: Sequence[AShare], sessions: Sessions) -> dict[AShare, str]:
    """Return industries as of the first day; for later listings, as of the last."""
    sectors: dict[AShare, str] = {}
    for day in (asked.first_day(sessions), asked.last_day(sessions)):
        rest = [share for share in shares if share not in sectors]
        rows: list[Row] = []
        for share in rest if len(rest) <= FEW else [None]:
            code = "" if share is None else _their(share)
            what = f"the industry of {share.symbol if share else 'all stocks'} on {day}"
            rows += wire.rows(what, ("code", "industry"), "query_stock_industry", code, day)
        found = {row["code"]: row["industry"] for row in rows if row["industry"]}
        sectors |= {share: found[_their(share)] for share in rest if _their(share) in found}
    return sectors


def _stock(
    wire: BaostockWire, share: AShare, listing: Row, sector: str | None, sessions: Sessions
) -> FetchedStock:
    days = (asked.first_day(sessions), asked.last_day(sessions))
    what = f"the daily bars of {share.symbol}"
    rows = _bars(wire, what, _their(share), days)
    if not rows:
        raise asked.empty_answer(VENDOR, share.symbol, *days)
    traded = [row for row in rows if row["tradestatus"] == "1"]
    halted = [row["date"] for row in rows if row["tradestatus"] != "1"]
    try:
        fields = {name: np.array([float(row[name]) for row in traded], dtype=np.float64) for name in NUMBERS}
        column = Column(
            instrument=share.instrument(sector, KINDS[listing["type"]]),
            days=_days([row["date"] for row in traded]),
            fields=fields,
            listed=listing["ipoDate"] or None,
            delisted=listing["outDate"] or None,
            halted=_days(halted),
        )
        found = _distributions(wire, share, days)
        precloses = np.array([float(row["preclose"]) for row in traded])
        unclear = unexplained(column.days, fields["close"], precloses, found)
        caps = _float_caps(share.symbol, traded, sessions) if column.instrument.kind == "stock" else ()
    except ValueError as error:
        raise asked.changed_format(VENDOR, what, str(error), VENDOR) from error
    return FetchedStock(column, found, unclear, sum(row["isST"] == "1" for row in rows), caps)


def _float_caps(symbol: str, traded: Sequence[Row], sessions: Sessions) -> tuple[Fundamental, ...]:
    """Return what the circulating shares were worth at the first traded close of every month.

    The vendor gives no capitalisation, but the share of the circulating shares that changed hands. The value is
    known from the next open on.
    """
    next_open = dict(zip(map(str, sessions.days[:-1]), sessions.open_time[1:].tolist(), strict=True))
    found: dict[str, Fundamental] = {}
    for row in traded:
        day, turnover = row["date"], float(row["turn"] or 0.0) / 100.0
        if day[:7] not in found and turnover > 0.0 and day in next_open:
            value = float(row["volume"]) / turnover * float(row["close"])
            found[day[:7]] = Fundamental(
                symbol=symbol, field="free_float_cap", period_end=day, known_at=next_open[day], value=value
            )
    return tuple(found.values())


def _bars(wire: BaostockWire, what: str, code: str, days: tuple[str, str]) -> list[Row]:
    # Adjustment flag 3: prices as they were traded.
    return wire.rows(
        what, BAR_FIELDS, "query_history_k_data_plus", code, ",".join(BAR_FIELDS),
        start_date=days[0], end_date=days[1], frequency="d", adjustflag="3",
    )  # fmt: skip


def _days(texts: Sequence[str]) -> Days:
    return np.array(texts, dtype="datetime64[D]")


def _distributions(wire: BaostockWire, share: AShare, days: tuple[str, str]) -> list[Distribution]:
    needed = ("dividOperateDate", "dividCashPsBeforeTax", "dividStocksPs", "dividReserveToStockPs")
    found: list[Distribution] = []
    for year in range(int(days[0][:4]), int(days[1][:4]) + 1):
        what = f"the dividends of {share.symbol} in {year}"
        for row in wire.rows(what, needed, "query_dividend_data", _their(share), str(year), "operate"):
            try:
                cash, bonus, reserve = (float(row[name] or 0.0) for name in needed[1:])
            except ValueError as error:
                raise asked.changed_format(VENDOR, what, str(error), VENDOR) from error
            if days[0] <= row["dividOperateDate"] <= days[1]:
                found.append(Distribution(row["dividOperateDate"], cash, bonus + reserve))
    return merged(found)


def _levels(wire: BaostockWire, code: str, sessions: Sessions) -> Floats:
    what = f"the levels of {code}"
    rows = _bars(wire, what, code, (asked.first_day(sessions), asked.last_day(sessions)))
    levels = np.full(sessions.days.size, np.nan)
    try:
        closes = {row["date"]: float(row["close"]) for row in rows}
    except ValueError as error:
        raise asked.changed_format(VENDOR, what, str(error), VENDOR) from error
    for row, day in enumerate(sessions.days):
        levels[row] = closes.get(str(day), np.nan)
    if bool(np.isnan(levels).any()):
        gap = sessions.days[np.isnan(levels)][0]
        raise SourceError(f"baostock has no level of {code} on {gap}", hint="ask for other days or without index")
    return levels


sources.add("baostock", BaostockSource)
