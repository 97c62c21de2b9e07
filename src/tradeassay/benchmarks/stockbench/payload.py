"""The structured part of the prompts, how long a prompt is, and what may be left out when it is too long."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from tradeassay.benchmarks.stockbench.briefing import Briefing, DayShown, FundamentalsShown, Name, NewsBriefed
from tradeassay.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay.core.agent import Rules
from tradeassay.core.dialogue import Message

PER_MESSAGE = 12
_PIECE = re.compile(r"[A-Za-z]{1,4}|[0-9]{1,3}|[^\sA-Za-z0-9]|[^\S ]+| {2,}")


@lru_cache(maxsize=256)
def tokens_of(text: str) -> int:
    count = len(_PIECE.findall(text))
    if not text.isascii():
        count += len(text.encode("utf-8", "surrogatepass")) - len(text)
    return count


def tokens_in(messages: Iterable[Message]) -> int:
    return sum(tokens_of(message.text) + PER_MESSAGE for message in messages)


CUTS: tuple[str, ...] = ("texts of news", "history of own actions", "news", "closes before the last one")
"""What is left out, in this order, when a prompt does not fit. Today's open and the position always stay."""


class StockPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A holding; ``value`` is at today's open."""

    shares: float
    value: float
    holding_days: int


class PayloadRow(msgspec.Struct, frozen=True, kw_only=True):
    """One name. A field that the inputs leave out is not there at all."""

    symbol: str
    buyable: bool
    open: float | None
    closes: tuple[float | None, ...]
    position: StockPosition | None
    fundamentals: FundamentalsShown | msgspec.UnsetType = msgspec.UNSET
    news: tuple[NewsBriefed, ...] | msgspec.UnsetType = msgspec.UNSET


class PromptPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a prompt's ``json`` block. ``left_out`` names what did not fit the context limit."""

    kind: str
    session: str
    cash: float
    buying_power: float
    nav: float
    symbols: tuple[PayloadRow, ...]
    max_names: int | msgspec.UnsetType = msgspec.UNSET
    history: tuple[DayShown, ...] | msgspec.UnsetType = msgspec.UNSET
    left_out: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that an answer must obey, as data. Costs are shares of what is traded."""

    currency: str
    long_only: bool
    lot: float
    max_weight: float | None
    max_positions: int | None
    buy_cost: float
    sell_cost: float
    tolerance: float
    attempts: int
    max_names: int

    @classmethod
    def of(cls, rules: Rules, config: StockbenchConfig) -> Limits:
        """Take them from the market's rules and the protocol's settings."""
        return cls(
            currency=rules.currency,
            long_only=rules.long_only,
            lot=rules.lot,
            max_weight=rules.max_weight,
            max_positions=rules.max_positions,
            buy_cost=rules.buy_cost,
            sell_cost=rules.sell_cost,
            tolerance=config.tolerance,
            attempts=config.attempts,
            max_names=config.max_names,
        )


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage shows besides prices and positions."""

    kind: str
    history: bool = False
    headlines: bool = False
    texts: bool = False
    fundamentals: bool = False
    asks_for_names: bool = False


OVERVIEW = Parts(kind="stockbench.overview", history=True, headlines=True, asks_for_names=True)
ANALYSIS = Parts(kind="stockbench.analysis", headlines=True, texts=True, fundamentals=True)
DECISION = Parts(kind="stockbench.decision")


def make_payload(briefing: Briefing, parts: Parts, names: Sequence[Name], cuts: int = 0) -> PromptPayload:
    """Return a stage's payload without the first ``cuts`` of :data:`CUTS`."""
    left_out = CUTS[:cuts]
    return PromptPayload(
        kind=parts.kind,
        session=briefing.session,
        cash=_money(briefing.cash),
        # Rounded down, so that exactly what is shown can be spent.
        buying_power=math.floor(briefing.cash / (1.0 + briefing.rules.buy_cost) * 100.0) / 100.0,
        nav=_money(briefing.nav),
        symbols=tuple(_row(briefing, parts, name, left_out) for name in names),
        max_names=briefing.config.max_names if parts.asks_for_names else msgspec.UNSET,
        history=briefing.history if parts.history and CUTS[1] not in left_out else msgspec.UNSET,
        left_out=left_out or msgspec.UNSET,
    )


def encode(payload: msgspec.Struct) -> str:
    """Return JSON on one line, so that a fence inside a quoted text can never end the surrounding block."""
    return msgspec.json.encode(payload).decode()


def _row(briefing: Briefing, parts: Parts, name: Name, left_out: Sequence[str]) -> PayloadRow:
    closes = name.closes[-1:] if CUTS[3] in left_out else name.closes
    position = None
    if name.shares != 0.0:
        position = StockPosition(shares=round(name.shares, 6), value=_money(name.value), holding_days=name.held)
    figures = parts.fundamentals and briefing.config.shows_fundamentals
    return PayloadRow(
        symbol=name.symbol,
        buyable=name.buyable,
        open=name.price,
        closes=tuple(None if close is None else round(close, 4) for close in closes),
        position=position,
        fundamentals=briefing.fundamentals(name.symbol) if figures else msgspec.UNSET,
        news=_news(briefing, parts, name, left_out),
    )


def _news(
    briefing: Briefing, parts: Parts, name: Name, left_out: Sequence[str]
) -> tuple[NewsBriefed, ...] | msgspec.UnsetType:
    if not parts.headlines or not briefing.config.shows_news or CUTS[2] in left_out:
        return msgspec.UNSET
    items = briefing.news[name.symbol]
    if parts.texts and CUTS[0] not in left_out:
        return items
    return tuple(msgspec.structs.replace(item, text=None) for item in items)


def _money(value: float) -> float:
    return round(value, 2)
