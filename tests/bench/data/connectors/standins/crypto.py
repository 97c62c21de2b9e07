"""Three exchanges in their wire formats, over candles of our own.

binance gives candles from ``startTime`` on, bitstamp those between ``start`` and ``end``, kraken
its newest ones.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .http import Ask, Reply

Candle = tuple[float, float, float, float, float]
SECONDS = {"1d": 86_400, "1m": 60}
MARKETS = json.loads((Path(__file__).parent / "markets.json").read_text())
"""What the exchanges say of every market."""


@dataclass
class Market:
    """Candles by opening second, for each timeframe."""

    base: str
    quote: str
    candles: dict[str, dict[int, Candle]] = field(default_factory=dict)


@dataclass
class Exchange:
    """What is common: the markets, and a way to answer something else instead."""

    markets: list[Market]
    before: Callable[[Ask], Reply | None] = lambda ask: None
    edit: Callable[[object], object] = lambda value: value

    def __call__(self, ask: Ask) -> Reply:
        early = self.before(ask)
        if early is not None:
            return early
        answer = self.answer(ask)
        return Reply(b"", 404) if answer is None else Reply.of(answer)

    def answer(self, ask: Ask) -> object:
        raise AssertionError

    def chosen(
        self, name: str, timeframe: str, begin: int, end: int, limit: int
    ) -> list[tuple[int, Candle]]:
        market = next(m for m in self.markets if name.lower() == (m.base + m.quote).lower())
        found = sorted(market.candles.get(timeframe, {}).items())
        return [(t, candle) for t, candle in found if begin <= t < end][:limit]


class Binance(Exchange):
    most = 1000

    def answer(self, ask: Ask) -> object:
        if ask.path == "/api/v3/exchangeInfo":
            return {
                "timezone": "UTC",
                "serverTime": 0,
                "symbols": [self.market(m) for m in self.markets],
            }
        if ask.path == "/api/v3/klines":
            step = SECONDS[ask.query["interval"]]
            rows = self.chosen(
                ask.query["symbol"],
                ask.query["interval"],
                int(ask.query["startTime"]) // 1000,
                1 << 40,
                min(int(ask.query["limit"]), self.most),
            )
            return self.edit(
                [
                    [
                        t * 1000,
                        *(f"{v:.8f}" for v in candle),
                        (t + step) * 1000 - 1,
                        "0.0",
                        7,
                        "0.0",
                        "0.0",
                        "0",
                    ]
                    for t, candle in rows
                ]
            )
        return None

    @staticmethod
    def market(market: Market) -> dict:
        names = {
            "symbol": market.base + market.quote,
            "baseAsset": market.base,
            "quoteAsset": market.quote,
        }
        return {**MARKETS["binance"], **names}


class Bitstamp(Exchange):
    def answer(self, ask: Ask) -> object:
        if ask.path == "/api/v2/markets/":
            return [self.market(m) for m in self.markets]
        if ask.path.startswith("/api/v2/ohlc/"):
            timeframe = {"86400": "1d", "60": "1m"}[ask.query["step"]]
            begin, end = int(ask.query["start"]), int(ask.query["end"])
            pair = ask.path.strip("/").rsplit("/", 1)[1]
            rows = self.chosen(pair, timeframe, begin, end + 1, int(ask.query["limit"]))
            names = ("open", "high", "low", "close", "volume")
            ohlc = [
                {"timestamp": str(t), **{n: f"{v:.8f}" for n, v in zip(names, candle, strict=True)}}
                for t, candle in rows
            ]
            return self.edit({"data": {"pair": pair, "ohlc": ohlc}})
        return None

    @staticmethod
    def market(market: Market) -> dict:
        names = {
            "name": f"{market.base}/{market.quote}",
            "market_symbol": (market.base + market.quote).lower(),
        }
        names |= {"base_currency": market.base, "counter_currency": market.quote}
        names["description"] = f"{market.base} / {market.quote}"
        return {**MARKETS["bitstamp"], **names}


class Kraken(Exchange):
    newest = 720

    def answer(self, ask: Ask) -> object:
        if ask.path == "/0/public/Assets":
            names = {name for m in self.markets for name in (m.base, m.quote)}
            assets = {
                n: {"aclass": "currency", "altname": n, "decimals": 8, "display_decimals": 5}
                for n in names
            }
            return {"error": [], "result": assets}
        if ask.path == "/0/public/AssetPairs":
            return {"error": [], "result": {m.base + m.quote: self.market(m) for m in self.markets}}
        if ask.path == "/0/public/OHLC":
            timeframe = {"1440": "1d", "1": "1m"}[ask.query["interval"]]
            rows = self.chosen(ask.query["pair"], timeframe, 0, 1 << 40, 1 << 40)[-self.newest :]
            rows = [row for row in rows if row[0] > int(ask.query["since"])]
            table = [
                [t, *(f"{v:.5f}" for v in candle[:4]), "0.0", f"{candle[4]:.8f}", 9]
                for t, candle in rows
            ]
            return self.edit(
                {
                    "error": [],
                    "result": {ask.query["pair"]: table, "last": rows[-1][0] if rows else 0},
                }
            )
        return None

    @staticmethod
    def market(market: Market) -> dict:
        names = {"altname": market.base + market.quote, "wsname": f"{market.base}/{market.quote}"}
        return {**MARKETS["kraken"], **names, "base": market.base, "quote": market.quote}
