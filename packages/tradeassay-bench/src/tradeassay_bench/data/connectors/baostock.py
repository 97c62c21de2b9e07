"""Connect to baostock: log in, send one query at a time and read every page.

The library reads from its socket without a time limit. If the server closes the connection, the
library loops forever. It stores its connector in ``SocketUtil.instance``. This module replaces that
object with its own connector, whose socket has a time limit and detects a closed connection or a
broken body. The connector also stores the error, because the library prints errors and discards
them.
"""

from __future__ import annotations

import json
import socket
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError, require
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.view import FIELDS, Fundamental
from tradeassay_bench.data.calendars import Sessions
from tradeassay_bench.data.connectors import common
from tradeassay_bench.data.connectors.ashare import (
    Distribution,
    FetchedStock,
    ashare_instrument,
    dated_members,
    merged,
    parse_ashare,
    stock_actions,
    unexplained,
    unexplained_note,
)
from tradeassay_bench.data.source import Membership, Panel, SourceConfig, sources

HEADER = 21
END = b"<![CDATA[]]>\n"


class WatchedSocket:
    """A socket with the methods that the library uses.

    ``fault`` describes the last error. It is None if there was no error.
    """

    def __init__(self, raw: socket.socket, timeout: float, compressed: tuple[str, ...]) -> None:
        self._raw, self._timeout, self._compressed = raw, timeout, compressed
        self._answer = b""
        self.fault: str | None = None

    def send(self, message: bytes) -> int:
        self._answer = b""
        try:
            self._raw.sendall(message)
        except OSError as error:
            self.fault = f"the connection failed: {error}"
            raise
        return len(message)

    def recv(self, size: int) -> bytes:
        """Return the next bytes.

        Raises :class:`OSError` on a time-out, a closed connection or a broken body.
        """
        try:
            part = self._raw.recv(size)
        except OSError as error:
            self.fault = _broken(error, self._timeout)
            raise
        if not part:
            self.fault = common.BROKE_OFF
            raise ConnectionError(self.fault)
        self._answer += part
        if self._answer.endswith(END):
            head = self._answer[:HEADER].decode(errors="replace").split("\1")
            if len(head) == 3 and head[1] in self._compressed and head[2].isdecimal():
                try:
                    zlib.decompress(self._answer[HEADER : HEADER + int(head[2])])
                except zlib.error as error:
                    self.fault = common.BROKE_OFF
                    raise ConnectionError(self.fault) from error
        return part

    def close(self) -> None:
        self._raw.close()


def _broken(error: OSError, timeout: float) -> str:
    late = isinstance(error, TimeoutError)
    return f"no answer within {timeout:g} s" if late else f"the connection failed: {error}"


class SocketWatch:
    """Install watched sockets in the library, and restore the library afterwards.

    Use it as a context manager.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._before: Any = None
        self._utility: Any = require("baostock.util.socketutil", "ashare")
        self._context: Any = require("baostock.common.context", "ashare")
        self._constants: Any = require("baostock.common.contants", "ashare")
        self._failed: str | None = None  # the reason why the last connection failed

    @property
    def fault(self) -> str | None:
        present = getattr(self._context, "default_socket", None)
        return self._failed or (present.fault if isinstance(present, WatchedSocket) else None)

    def __enter__(self) -> SocketWatch:
        base = self._utility.SocketUtil
        connector = type(
            "WatchedConnector", (base,), {"connect": lambda _, api_key="": self._connect(api_key)}
        )
        self._before = base.instance
        base.instance = object.__new__(connector)
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()
        self._utility.SocketUtil.instance = self._before

    def _connect(self, api_key: str) -> None:
        """Connect to the host in the library's constants. The library calls this at login."""
        names = self._constants
        # Since version 0.9 users with an API key have a separate server.
        host = (
            names.BAOSTOCK_VIP_SERVER_IP if api_key.startswith("bs-") else names.BAOSTOCK_SERVER_IP
        )
        self._hang_up()
        try:
            raw = socket.create_connection(
                (host, names.BAOSTOCK_SERVER_PORT), timeout=self._timeout
            )
        except OSError as error:
            self._failed = _broken(error, self._timeout)
            return
        self._failed = None
        self._context.default_socket = WatchedSocket(
            raw, self._timeout, names.COMPRESSED_MESSAGE_TYPE_TUPLE
        )

    def _hang_up(self) -> None:
        present = getattr(self._context, "default_socket", None)
        if present is not None:
            present.close()
        self._context.default_socket = None


VENDOR = "baostock"
Row = dict[str, str]

OK, NOT_LOGGED_IN, TOO_OLD, TOO_MANY_LOGINS, BANNED = (
    "0",
    "10001001",
    "10001004",
    "10001005",
    "10001011",
)
WIRE_TROUBLE = ("10002", "10004001", "10004002")
"""Prefixes of the library's own error codes for a failed connection."""


class BaostockWire:
    """A connection to baostock. It logs in with the first query."""

    def __init__(self, library: Any, watch: SocketWatch, runtime: common.Runtime) -> None:
        self._library, self._watch, self._runtime = library, watch, runtime
        self._logged_in = False

    def rows(
        self, what: str, needed: Sequence[str], method: str, *args: str, **named: str
    ) -> list[Row]:
        """Call a query of the library and return all its rows.

        Raises :class:`SourceError` if it fails or its rows lack one of the ``needed`` fields.
        """

        def once() -> list[Row]:
            if not self._logged_in:
                self._attempt("the login", self._library.login)
                self._logged_in = True
            rows: list[list[str]] = []

            def every_page() -> Any:
                result = getattr(self._library, method)(*args, **named)
                # The library fetches the next page inside next(), and ends silently if that fails.
                while result.error_code == OK and result.next():
                    rows.append(result.get_row_data())
                return result

            fields = self._attempt(what, every_page).fields
            if missing := [name for name in needed if name not in fields]:
                raise common.changed_format(VENDOR, what, f"no field {', '.join(missing)}", VENDOR)
            if short := next((row for row in rows if len(row) != len(fields)), None):
                raise common.changed_format(VENDOR, what, f"a row reads {short}", VENDOR)
            return [dict(zip(fields, row, strict=True)) for row in rows]

        return common.ask_with_retries(once, vendor=VENDOR, what=what, runtime=self._runtime)

    def _attempt(self, what: str, call: Callable[[], Any]) -> Any:
        """Return the result of a call, or raise the error of the connection or of the server."""
        try:
            result = call()
        except json.JSONDecodeError as error:
            self._logged_in = False
            raise common.Unanswered(common.NOT_JSON) from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise common.changed_format(VENDOR, what, repr(error), VENDOR) from error
        if self._watch.fault is not None:
            self._logged_in = False
            raise common.Unanswered(self._watch.fault)
        code = str(result.error_code)
        message = f"{result.error_msg} ({code})"
        if code == NOT_LOGGED_IN or code.startswith(WIRE_TROUBLE):
            self._logged_in = False
            raise common.Unanswered(message)
        if code == TOO_MANY_LOGINS:
            raise common.Throttled(f"too many logins: {message}")
        if code != OK:
            remedies = {
                BANNED: "baostock has blocked this address; wait a day and request less at once",
                TOO_OLD: "pip install -U baostock",
            }
            problem = f"baostock refused {what}: {message}"
            raise SourceError(problem, hint=remedies.get(code, "check the code and the days"))
        return result


Index = Literal["hs300", "sz50", "zz500"]
LEVELS: dict[Index, str] = {"hs300": "sh.000300", "sz50": "sh.000016", "zz500": "sh.000905"}
BAR_FIELDS = tuple("date open high low close preclose volume amount turn tradestatus isST".split())
KINDS: dict[str, Literal["stock", "index"]] = {"1": "stock", "5": "index"}
"""The types of baostock that are supported: shares and exchange-traded funds."""
FEW = 5
"""Maximum number of symbols that are queried one by one. For more symbols one query fetches the
whole market.
"""

BAOSTOCK = common.Vendor(
    name=VENDOR,
    source="baostock",
    calendar="XSHG",
    currency="CNY",
    licence="baostock.com through baostock (BSD): free for study and research; the numbers are the "
    "exchanges' "
    "and their suppliers', do not redistribute them.",
)


class BaostockConfig(common.ConnectorConfig, frozen=True, kw_only=True):
    """The options of the baostock connector.

    ``symbols`` are codes like ``600000.SH``. With ``index`` and no symbols, the connector fetches
    all names that were members of the index on any day of the period.
    """

    index: Index | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.symbols and self.index is None:
            raise UserError(
                "no symbols to fetch", hint="name some, e.g. 600000.SH, or an index, e.g. hs300"
            )


class BaostockSource(common.ConnectorSource):
    """A source of daily bars of A-shares. With ``index`` alone the universe has no hindsight."""

    Config: ClassVar[type[SourceConfig]] = BaostockConfig
    summary: ClassVar[str] = (
        "A-shares from baostock: daily with amounts, suspensions, dividends, dated index members"
    )
    extra: ClassVar[str | None] = "ashare"

    def load(self) -> Panel:
        config = self._config
        sessions = common.sessions_asked("XSHG", config.first, config.last, self._runtime.clock)
        library: Any = require("baostock", "ashare")
        with common.silenced("baostock"), SocketWatch(self._runtime.retry.timeout) as watch:
            wire = BaostockWire(library, watch, self._runtime)
            memberships = _members(wire, config.index, sessions) if config.index else ()
            shares = [parse_ashare(text) for text in config.symbols]
            shares = shares or sorted({membership.symbol for membership in memberships})
            facts = _listings(wire, shares)
            sectors: dict[str, str] = {}
            for day in (sessions.first, sessions.last):
                missing = [share for share in shares if share not in sectors]
                what = f"the industry of {{}} on {day}"
                needed = ("code", "industry")
                rows = _facts(wire, missing, what, needed, "query_stock_industry", day)
                industries = {row["code"]: row["industry"] for row in rows if row["industry"]}
                for share in missing:
                    if _vendor_code(share) in industries:
                        sectors[share] = industries[_vendor_code(share)]
            stocks = [
                _stock(wire, share, facts[share], sectors.get(share), sessions) for share in shares
            ]
            indices = {config.index: _levels(wire, config.index, sessions)} if config.index else {}
        special = [stock.symbol for stock in stocks if stock.special_treatment]
        treated = (
            "days under special treatment (ST), whose 5 % limit is not stored: "
            f"{common.shorten(special)}"
        )
        panel = self.panel(
            BAOSTOCK,
            [stock.column for stock in stocks],
            sessions,
            before=(common.SURVIVORS,) if config.symbols else (),
            after=(*unexplained_note(stocks), *([treated] if special else [])),
        )
        chosen = set(shares)
        return replace(
            panel,
            actions=stock_actions(stocks, sessions),
            fundamentals=tuple(chain.from_iterable(stock.caps for stock in stocks)),
            memberships=tuple(entry for entry in memberships if entry.symbol in chosen),
            indices=indices,
        )


def _vendor_code(share: str) -> str:
    """Return baostock's code of a share: ``sh.600000`` for ``600000.SH``."""
    code, market = share.split(".")
    return f"{market.lower()}.{code}"


def _members(wire: BaostockWire, index: Index, sessions: Sessions) -> tuple[Membership, ...]:
    """Return the dated memberships of an index."""

    def ask(day: str) -> frozenset[str]:
        rows = wire.rows(
            f"the members of {index} on {day}", ("code",), f"query_{index}_stocks", date=day
        )
        if not rows:
            raise SourceError(
                f"baostock lists no members of {index} on {day}", hint="request later days"
            )
        return frozenset(parse_ashare(row["code"]) for row in rows)

    return dated_members(index, sessions, ask)


def _facts(
    wire: BaostockWire,
    shares: Sequence[str],
    what: str,
    needed: Sequence[str],
    method: str,
    *more: str,
) -> list[Row]:
    """Return the rows of a query.

    Up to :data:`FEW` shares are queried one by one. Otherwise one query fetches the whole market.
    """
    queries = [("all stocks", "")]
    if len(shares) <= FEW:
        queries = [(share, _vendor_code(share)) for share in shares]
    rows: list[Row] = []
    for name, code in queries:
        rows += wire.rows(what.format(name), needed, method, code, *more)
    return rows


def _listings(wire: BaostockWire, shares: Sequence[str]) -> dict[str, Row]:
    """Return the vendor's listing row of each share.

    Raises :class:`SourceError` for an unknown share.
    """
    needed = ("code", "ipoDate", "outDate", "type")
    rows = _facts(wire, shares, "the listing of {}", needed, "query_stock_basic")
    by_code = {row["code"]: row for row in rows}
    for share in shares:
        kind = by_code.get(_vendor_code(share), {}).get("type")
        if kind not in KINDS:
            what = "knows no" if kind is None else "lists, but not as"
            raise SourceError(
                f"baostock {what} stock or fund {share}", hint="check the code, or leave it out"
            )
    return {share: by_code[_vendor_code(share)] for share in shares}


def _bars(wire: BaostockWire, what: str, code: str, sessions: Sessions) -> list[Row]:
    asked = {"start_date": sessions.first, "end_date": sessions.last, "frequency": "d"}
    # Adjustment flag 3: prices as they were traded.
    method = "query_history_k_data_plus"
    return wire.rows(what, BAR_FIELDS, method, code, ",".join(BAR_FIELDS), adjustflag="3", **asked)


def _stock(
    wire: BaostockWire, share: str, listing: Row, sector: str | None, sessions: Sessions
) -> FetchedStock:
    """Return the fetched data of one stock or fund."""
    what = f"the daily bars of {share}"
    rows = _bars(wire, what, _vendor_code(share), sessions)
    if not rows:
        raise common.empty_answer(VENDOR, share, sessions.first, sessions.last)
    traded = [row for row in rows if row["tradestatus"] == "1"]
    halted = [row["date"] for row in rows if row["tradestatus"] != "1"]
    distributions: list[Distribution] = []
    try:
        fields = {
            name: np.array([float(row[name]) for row in traded], dtype=np.float64)
            for name in FIELDS
        }
        column = common.Column(
            instrument=ashare_instrument(share, sector, KINDS[listing["type"]]),
            days=np.array([row["date"] for row in traded], dtype="datetime64[D]"),
            fields=fields,
            listed=listing["ipoDate"] or None,
            delisted=listing["outDate"] or None,
            halted=np.array(halted, dtype="datetime64[D]"),
        )
        bars = what
        needed = (
            "dividOperateDate",
            "dividCashPsBeforeTax",
            "dividStocksPs",
            "dividReserveToStockPs",
        )
        for year in range(int(sessions.first[:4]), int(sessions.last[:4]) + 1):
            what = f"the dividends of {share} in {year}"
            for row in wire.rows(
                what, needed, "query_dividend_data", _vendor_code(share), str(year), "operate"
            ):
                cash, bonus, reserve = (float(row[name] or 0.0) for name in needed[1:])
                if sessions.first <= row["dividOperateDate"] <= sessions.last:
                    shares = bonus + reserve
                    distributions.append(Distribution(row["dividOperateDate"], cash, shares))
        what, distributions = bars, merged(distributions)
        precloses = np.array([float(row["preclose"]) for row in traded])
        unclear = unexplained(column.days, fields["close"], precloses, distributions)
        caps = _float_caps(share, traded, sessions) if column.instrument.kind == "stock" else ()
    except ValueError as error:
        raise common.changed_format(VENDOR, what, str(error), VENDOR) from error
    special_treatment = sum(row["isST"] == "1" for row in rows)
    return FetchedStock(column, distributions, unclear, special_treatment, caps)


def _float_caps(symbol: str, traded: Sequence[Row], sessions: Sessions) -> tuple[Fundamental, ...]:
    """Return monthly values of the free float, each known from the next open.

    Each value is computed from the traded volume and the turnover, which is volume over free float.
    """
    next_open = dict(
        zip(map(str, sessions.days[:-1]), sessions.open_time[1:].tolist(), strict=True)
    )
    by_month: dict[str, Fundamental] = {}
    for row in traded:
        day, turnover = row["date"], float(row["turn"] or 0.0) / 100.0
        if day[:7] not in by_month and turnover > 0.0 and day in next_open:
            value = float(row["volume"]) / turnover * float(row["close"])
            by_month[day[:7]] = Fundamental(
                symbol=symbol,
                field="free_float_cap",
                period_end=day,
                known_at=next_open[day],
                value=value,
            )
    return tuple(by_month.values())


def _levels(wire: BaostockWire, index: Index, sessions: Sessions) -> Floats:
    """Return the closing levels of an index. Raises :class:`SourceError` for a missing session."""
    code = LEVELS[index]
    what = f"the levels of {code}"
    try:
        closes = {row["date"]: float(row["close"]) for row in _bars(wire, what, code, sessions)}
    except ValueError as error:
        raise common.changed_format(VENDOR, what, str(error), VENDOR) from error
    levels = np.array([closes.get(str(day), np.nan) for day in sessions.days])
    for gap in sessions.days[np.isnan(levels)]:
        raise SourceError(
            f"baostock has no level of {code} on {gap}", hint="request other days, or drop index"
        )
    return levels


sources.add("baostock", BaostockSource)
