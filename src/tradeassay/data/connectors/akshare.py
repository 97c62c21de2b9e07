"""A-shares from Eastmoney through akshare: daily bars as traded with amounts, dividends and bonus shares.

The library ignores the HTTP status and, in places, the clock: a refusal arrives as broken JSON, and one of its
calls waits forever. Both are handled here: the answer behind an error is taken from where it was raised, and a
call that may hang runs in its own thread with a time limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tradeassay.core.errors import require
from tradeassay.core.view import FIELDS, Days, Field, Floats
from tradeassay.data.calendars import Sessions
from tradeassay.data.connectors import common
from tradeassay.data.connectors.ashare import (
    Distribution,
    FetchedStock,
    ashare_instrument,
    merged,
    parse_ashare,
    stock_actions,
    unexplained,
    unexplained_note,
)
from tradeassay.data.source import Panel, SourceConfig, sources

VENDOR = "Eastmoney"
NOTHING_FOUND = 9201
"""Eastmoney's own code for "no such records", which the library cannot read."""


class AkshareWire:
    """A conversation with Eastmoney."""

    def __init__(self, library: Any, runtime: common.Runtime) -> None:
        self._library = library
        self._runtime = runtime

    def bars(self, code: str, first: str, last: str) -> Any:
        return self._ask(
            f"the daily bars of {code}",
            lambda: self._library.stock_zh_a_hist(
                symbol=code,
                period="daily",
                start_date=first.replace("-", ""),
                end_date=last.replace("-", ""),
                adjust="",
                timeout=self._runtime.retry.timeout,
            ),
        )

    def facts(self, code: str) -> dict[str, Any]:
        timeout = self._runtime.retry.timeout
        table = self._ask(
            f"the facts about {code}", lambda: self._library.stock_individual_info_em(symbol=code, timeout=timeout)
        )
        try:
            return dict(zip(table["item"], table["value"], strict=True))
        except KeyError as error:
            raise common.changed_format(VENDOR, f"the facts about {code}", repr(error), "akshare") from error

    def distributions(self, code: str) -> Any:
        return self._ask(
            f"the dividends of {code}",
            lambda: _within(self._runtime.retry.timeout, self._library.stock_fhps_detail_em, code),
            nothing_is_fine=True,
        )

    def _ask(self, what: str, call: Callable[[], Any], *, nothing_is_fine: bool = False) -> Any:
        def once() -> Any:
            try:
                return call()
            except Exception as error:
                answer = _answer_behind(error)
                # The library looks for records inside an answer that says there are none.
                none = nothing_is_fine and isinstance(error, TypeError) and answer is not None
                said = answer.json() if none else None
                if isinstance(said, dict) and said.get("code") == NOTHING_FOUND:
                    return None
                raise self._translated(error, answer, what) from error

        return common.ask_with_retries(once, vendor=VENDOR, what=what, runtime=self._runtime)

    def _translated(self, error: Exception, answer: Any, what: str) -> Exception:
        requests: Any = require("requests", "ashare")
        problems = requests.exceptions
        status, wish = (200, None) if answer is None else (answer.status_code, answer.headers.get("Retry-After"))
        if isinstance(error, common.Unanswered):
            return error
        if isinstance(error, problems.Timeout):
            return common.Unanswered(self._runtime.late)
        if (fault := common.http_fault(status, wish, (VENDOR, what), self._runtime)) is not None:
            return fault
        if isinstance(error, problems.JSONDecodeError):
            return common.Unanswered(common.NOT_JSON)
        if isinstance(error, (problems.ChunkedEncodingError, problems.ConnectionError)):
            text = " ".join(str(error).split())[:200]
            broken = "IncompleteRead" in str(error)
            return common.Unanswered(common.BROKE_OFF if broken else f"the connection failed: {text}")
        return common.changed_format(VENDOR, what, repr(error), "akshare")


def _answer_behind(error: BaseException) -> Any:
    """Return the HTTP answer that the library was reading when it failed, or None."""
    requests: Any = require("requests", "ashare")
    answer, trace = None, error.__traceback__
    while trace is not None:
        found = [value for value in trace.tb_frame.f_locals.values() if isinstance(value, requests.Response)]
        answer = found[-1] if found else answer
        trace = trace.tb_next
    return answer


def _within(seconds: float, call: Callable[[str], Any], argument: str) -> Any:
    """Return ``call(argument)``; raises :class:`Unanswered` after ``seconds``. The call is then abandoned."""
    results: list[Any] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(call(argument))
        except Exception as error:
            errors.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise common.Unanswered(f"nothing came within {seconds:g} s")
    return results[0]


COLUMNS: dict[Field, str] = dict(zip(FIELDS, "开盘 最高 最低 收盘 成交量 成交额".split(), strict=True))
DAY, CHANGE = "日期", "涨跌额"
LISTED, INDUSTRY = "上市时间", "行业"
EX_DATE, CASH_PER_TEN, SHARES_PER_TEN = "除权除息日", "现金分红-现金分红比例", "送转股份-送转总比例"
BOARD_LOT = 100.0

AKSHARE = common.Vendor(
    name=VENDOR,
    source="akshare",
    calendar="XSHG",
    currency="CNY",
    licence="Eastmoney through akshare (MIT): for academic research; the numbers are Eastmoney's and the "
    "exchanges', do not redistribute them.",
)


class AkshareConfig(common.ConnectorConfig, frozen=True, kw_only=True):
    """Codes like ``600000.SH``."""


class AkshareSource(common.ConnectorSource):
    """Daily bars of A-shares. Eastmoney marks no suspensions: a session without a bar is one. For dated index
    members use the source ``baostock``."""

    Config: ClassVar[type[SourceConfig]] = AkshareConfig
    summary: ClassVar[str] = "A-shares from Eastmoney through akshare: daily with amounts, dividends, bonus shares"
    extra: ClassVar[str | None] = "ashare"

    def load(self) -> Panel:
        config = self._config
        common.need_symbols(config, "600000.SH")
        shares = [parse_ashare(text) for text in config.symbols]
        sessions = common.sessions_asked("XSHG", config.first, config.last, self._runtime.clock)
        with common.quietly("akshare"):
            library: Any = require("akshare", "ashare")
            wire = AkshareWire(library, self._runtime)
            stocks = [_stock(wire, share, sessions) for share in shares]
        before = (common.SURVIVORS, "industries as of the time of retrieval")
        columns = [stock.column for stock in stocks]
        panel = self.panel(AKSHARE, columns, sessions, before=before, after=unexplained_note(stocks))
        return replace(panel, actions=stock_actions(stocks, sessions))


def _stock(wire: AkshareWire, share: str, sessions: Sessions) -> FetchedStock:
    first, last = sessions.first, sessions.last
    code = share[:6]
    table = wire.bars(code, first, last)
    if table is None or len(table) == 0:
        raise common.empty_answer(VENDOR, share, first, last)
    facts, dividends = wire.facts(code), wire.distributions(code)
    found: list[Distribution] = []
    what = f"the dividends of {share}"
    try:
        if dividends is not None:
            per_ten = (dividends[title].to_numpy(dtype=np.float64) for title in (CASH_PER_TEN, SHARES_PER_TEN))
            for day, *paid in zip(dividends[EX_DATE], *per_ten, strict=True):
                # A plan that has not been carried out yet has no ex-date; pandas says NaT.
                if first <= str(day) <= last:
                    found.append(Distribution(str(day), *(np.nan_to_num(paid) / 10.0).tolist()))
        what, found = f"the data of {share}", merged(found)
        days: Days = np.array([str(day) for day in table[DAY]], dtype="datetime64[D]")
        fields = {ours: table[theirs].to_numpy(dtype=np.float64) for ours, theirs in COLUMNS.items()}
        change: Floats = table[CHANGE].to_numpy(dtype=np.float64)
        listed, industry = str(facts[LISTED]), str(facts[INDUSTRY])
        if len(listed) != 8 or not listed.isdecimal():
            raise ValueError(f"{LISTED} reads {listed}")
    except (KeyError, TypeError, ValueError) as error:
        raise common.changed_format(VENDOR, what, repr(error), "akshare") from error
    fields["volume"] = fields["volume"] * _volume_unit(share, fields)
    column = common.Column(
        instrument=ashare_instrument(share, None if industry in ("", "-") else industry),
        days=days,
        fields=fields,
        listed=f"{listed[:4]}-{listed[4:6]}-{listed[6:]}",
    )
    # The day's change is measured from the exchange's reference price.
    return FetchedStock(column, found, unexplained(days, fields["close"], fields["close"] - change, found))


def _volume_unit(share: str, fields: dict[Field, Floats]) -> float:
    """Return how many shares one unit of volume is (1 or a board lot): whichever puts the average price inside the
    bars."""
    traded = (fields["volume"] > 0) & (fields["amount"] > 0)
    for unit in (BOARD_LOT, 1.0):
        average = fields["amount"][traded] / (fields["volume"][traded] * unit)
        # Volume is rounded to whole lots, so the average of a thin day may lie a little outside.
        inside = (average >= 0.9 * fields["low"][traded]) & (average <= 1.1 * fields["high"][traded])
        if not inside.size or np.mean(inside) > 0.5:
            return unit
    problem = "amount / volume lies outside the bars in lots and in shares"
    raise common.changed_format(VENDOR, f"the volume of {share}", problem, "akshare")


sources.add("akshare", AkshareSource)
