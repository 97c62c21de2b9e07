"""Yahoo's chart service in its wire format, over prices of our own.

The market below is stated *as traded*; the stand-in adjusts it for splits the way Yahoo does before
sending.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np

from .http import Ask, Reply

NEW_YORK = ZoneInfo("America/New_York")


@dataclass
class Stock:
    """Daily bars as traded: day -> (open, high, low, close, volume); minutes:

    UTC start second -> the same.
    """

    days: dict[str, tuple[float, float, float, float, float]]
    splits: dict[str, tuple[int, int]] = field(default_factory=dict)
    dividends: dict[str, float] = field(default_factory=dict)
    minutes: dict[int, tuple[float, float, float, float, float]] = field(default_factory=dict)
    currency: str = "USD"
    kind: str = "EQUITY"
    name: str = "A Company, Inc."
    first_trade: str | None = "1999-01-04"
    unadjusted: bool = False
    raw_minutes: bool = False
    capital_gains: dict[str, float] = field(default_factory=dict)


def opening(day: str) -> int:
    """Yahoo stamps a daily bar with the opening second of its session."""
    year, month, date = map(int, day.split("-"))
    return int(datetime(year, month, date, 9, 30, tzinfo=NEW_YORK).timestamp())


def day_of(second: int) -> str:
    return str(datetime.fromtimestamp(second, UTC).astimezone(NEW_YORK).date())


def split_factor(stock: Stock, day: str) -> float:
    if stock.unadjusted:
        return 1.0
    return float(
        np.prod([new / old for ex_day, (new, old) in stock.splits.items() if ex_day > day])
    )


def adjusted(stock: Stock, day: str, bar: tuple[float, ...]) -> list[float]:
    """Adjust one bar for the splits after its day; prices are 32-bit on Yahoo's wire."""
    factor = split_factor(stock, day)
    prices = [float(np.float32(price / factor)) for price in bar[:4]]
    return [*prices, float(round(bar[4] * factor))]


@dataclass
class Yahoo:
    """The service. ``before`` may answer in its place (for refusals, stalls, broken bodies)."""

    stocks: dict[str, Stock]
    before: Callable[[Ask], Reply | None] = lambda ask: None
    edit: Callable[[dict], dict] = lambda chart: chart

    def __call__(self, ask: Ask) -> Reply:
        early = self.before(ask)
        if early is not None:
            return early
        if ask.path.startswith("/v8/finance/chart/"):
            return self.chart(ask)
        if ask.path == "/v1/test/getcrumb":
            return Reply(b"a.crumb", headers={"Content-Type": "text/plain"})
        if ask.host.startswith("fc."):
            cookie = (
                "A3=d=standin; Expires=Tue, 01 Jan 2097 00:00:00 GMT; Domain=.yahoo.com; "
                "Path=/; Secure"
            )
            return Reply(b"", 404, {"Set-Cookie": cookie})
        if ask.path.startswith(("/v10/finance/quoteSummary/", "/v7/finance/quote")):
            error = {"code": "Not Found", "description": "Quote not found"}
            return Reply.of({"quoteSummary": {"result": None, "error": error}}, status=404)
        return Reply(b"<html></html>", 404, {"Content-Type": "text/html"})

    def chart(self, ask: Ask) -> Reply:
        symbol = ask.path.rsplit("/", 1)[1]
        stock = self.stocks.get(symbol)
        if stock is None:
            error = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
            return Reply.of({"chart": {"result": None, "error": error}}, status=404)
        minutes = ask.query["interval"] == "1m"
        if "range" in ask.query:
            begin, end = 0, 1 << 40
        else:
            begin, end = int(ask.query["period1"]), int(ask.query["period2"])
        if minutes:
            rows = {
                t: list(bar) if stock.raw_minutes else adjusted(stock, day_of(t), bar)
                for t, bar in stock.minutes.items()
                if begin <= t < end
            }
        else:
            rows = {
                opening(day): adjusted(stock, day, bar)
                for day, bar in stock.days.items()
                if begin <= opening(day) < end
            }
        chart = {"meta": self.meta(symbol, stock, rows, minutes)}
        if rows:
            chart["timestamp"] = sorted(rows)
            names = ("open", "high", "low", "close", "volume")
            quote = {name: [rows[t][i] for t in sorted(rows)] for i, name in enumerate(names)}
            for values in quote.values():
                values[:] = [None if value != value else value for value in values]
            chart["indicators"] = {"quote": [quote]}
            if not minutes:
                chart["indicators"]["adjclose"] = [{"adjclose": quote["close"]}]
        else:
            chart["indicators"] = {"quote": [{}]}
        events = self.events(stock, begin, end)
        if events:
            chart["events"] = events
        return Reply.of({"chart": {"result": [self.edit(chart)], "error": None}})

    @staticmethod
    def events(stock: Stock, begin: int, end: int) -> dict:
        told = {
            "dividends": {
                day: {"amount": paid / split_factor(stock, day)}
                for day, paid in stock.dividends.items()
            },
            "splits": {
                day: {"numerator": new, "denominator": old, "splitRatio": f"{new}:{old}"}
                for day, (new, old) in stock.splits.items()
            },
            "capitalGains": {
                day: {"amount": amount} for day, amount in stock.capital_gains.items()
            },
        }
        found = {}
        for name, days in told.items():
            inside = {day: facts for day, facts in days.items() if begin <= opening(day) < end}
            found[name] = {
                str(opening(day)): {**facts, "date": opening(day)} for day, facts in inside.items()
            }
        return {name: events for name, events in found.items() if events}

    @staticmethod
    def meta(symbol: str, stock: Stock, rows: dict, minutes: bool) -> dict:
        meta = {
            "currency": stock.currency,
            "symbol": symbol,
            "exchangeName": "NMS",
            "fullExchangeName": "NasdaqGS",
            "instrumentType": stock.kind,
            "firstTradeDate": opening(stock.first_trade) if stock.first_trade else None,
            "regularMarketTime": max(rows, default=0),
            "hasPrePostMarketData": True,
            "gmtoffset": -18000,
            "timezone": "EST",
            "exchangeTimezoneName": "America/New_York",
            "longName": stock.name,
            "priceHint": 2,
            "dataGranularity": "1m" if minutes else "1d",
            "range": "",
            "validRanges": ["1d", "5d", "1mo", "max"],
        }
        if minutes:
            days = sorted({day_of(t) for t in rows})
            meta["tradingPeriods"] = [
                [
                    {
                        "timezone": "EST",
                        "start": opening(day),
                        "end": opening(day) + 23_400,
                        "gmtoffset": -18000,
                    }
                ]
                for day in days
            ]
        return meta
