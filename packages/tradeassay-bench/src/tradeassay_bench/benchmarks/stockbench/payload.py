"""Build the content of StockBench's prompts, as data and as text with plain tables.

The text is rendered from the payload that agents receive as data, so both have the same content.
This module also estimates the length of a prompt, and lists the parts to drop from a long prompt.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tradeassay_bench.benchmarks.stockbench.briefing import (
    Briefing,
    DayShown,
    FundamentalsShown,
    Name,
    NewsBriefed,
)
from tradeassay_bench.benchmarks.stockbench.prompts import PROMPTS
from tradeassay_bench.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay_bench.core.agent import Rules
from tradeassay_bench.core.dialogue import Message
from tradeassay_bench.llm.prompting import cell, table

# Forms rather than examples. They are not valid JSON and contain no symbol, so copying them trades
# nothing.
PICK_FORM = '{"analyse": ["<symbol>", "<symbol>"], "reason": "<why these>"}'
NOTES_FORM = '{"notes": {"<symbol>": "<what you make of it>"}}'
DECISION_FORM = (
    '{"decisions": {"<symbol>": {"action": "<action>", "target_cash_amount": <amount>, "reasons": '
    '["<why>"], '
    '"confidence": <confidence>}}}'
)
Rows = Sequence[Mapping[str, Any]]


def overview_in_words(payload: str, config: StockbenchConfig) -> str:
    """Return the text of the overview stage."""
    seen = msgspec.json.decode(payload)
    return PROMPTS.fill(
        "overview",
        session=seen["session"],
        cash=f"{seen['cash']:.2f}",
        nav=f"{seen['nav']:.2f}",
        rows=_rows(seen["symbols"]),
        history=_history(seen.get("history", ())),
        news=_headlines(seen["symbols"], config),
        max_names=seen["max_names"],
        form=PICK_FORM,
    )


def analysis_in_words(payload: str, config: StockbenchConfig) -> str:
    """Return the text of the analysis stage."""
    rows = msgspec.json.decode(payload)["symbols"]
    known, figures = [row for row in rows if "fundamentals" in row], ""
    if known:
        columns = ("symbol", *known[0]["fundamentals"])
        body = table(columns, ((row["symbol"], *row["fundamentals"].values()) for row in known))
        figures = "\n" + PROMPTS.fill("fundamentals", rows=body) + "\n"
    shown = {"rows": _rows(rows), "fundamentals": figures, "news": _headlines(rows, config)}
    return PROMPTS.fill("analysis", form=NOTES_FORM, **shown)


def decision_in_words(payload: str, config: StockbenchConfig) -> str:
    """Return the text of the decision stage, which ends with the form of the answer."""
    seen = msgspec.json.decode(payload)
    held = [row["symbol"] for row in seen["symbols"] if row["position"] is not None]
    some = f"Only what you hold can be sold: {', '.join(held)}."
    power = f"{seen['buying_power']:.2f}"
    before = (
        f"Each purchase must fit the cash that you have now, {power} at most; what sales of the "
        "same day bring "
        "does not count."
    )
    together = (
        f"All purchases together must fit your cash, which can buy {power}, plus what your "
        "sales bring."
    )
    kept = " Where a decision breaks one of these rules, it is left out and the others stand."
    return PROMPTS.fill(
        "decision",
        cash=f"{seen['cash']:.2f}",
        rows=_rows(seen["symbols"]),
        held=some if held else "You hold nothing, so nothing can be sold.",
        tolerance=f"{config.tolerance * 100:g}",
        money=before if config.spends_cash_only else together,
        kept=kept if config.keeps_valid_decisions else "",
        format=PROMPTS.fill(f"format.{config.prompt}"),
        form=DECISION_FORM,
    )


def _rows(rows: Rows) -> str:
    columns = (
        "symbol",
        "open",
        "closes before",
        "shares held",
        "worth",
        "days held",
        "can be bought",
    )
    shown = []
    for row in rows:
        held = row["position"] or {"shares": 0, "value": 0, "holding_days": 0}
        closes = " ".join(map(cell, row["closes"])) or None
        owned = (held["shares"], held["value"], held["holding_days"])
        shown.append((row["symbol"], row["open"], closes, *owned, bool(row["buyable"])))
    return table(columns, shown)


def _history(days: Rows) -> str:
    lines = []
    for day in days:
        if not day["answered"]:
            summary = "no usable answer, everything was held"
        else:
            summary = "; ".join(map(_past_action, day["actions"])) or "held everything"
        lines.append(f"{day['session']}: {summary}")
    if not lines:
        return ""
    return "\nWhat you decided on the last days:\n" + "\n".join(lines) + "\n"


def _past_action(action: Mapping[str, Any]) -> str:
    """Return a sentence about a past action and its trade."""
    unit = " shares" if action["unit"] == "shares" else ""
    target = "" if action["action"] == "close" else f" to {cell(action['target'])}{unit}"
    traded = action["traded"]
    trade = "nothing was traded"
    if traded:
        trade = f"{'bought' if traded > 0 else 'sold'} {cell(abs(traded))} shares"
    return f"{action['symbol']} {action['action']}{target} ({trade})"


def _headlines(rows: Rows, config: StockbenchConfig) -> str:
    lines = []
    for row in rows:
        for item in row.get("news", ()):
            line = f"{row['symbol']}, {item['published'][:16]}: {item['title']}"
            lines.append(f"{line} {item['text']}" if item["text"] else line)
    if not lines:
        return ""
    return "\n" + PROMPTS.fill("news", days=config.news_days, lines="\n".join(lines)) + "\n"


PER_MESSAGE = 12
"""Estimated overhead of a message in tokens."""
_PIECE = re.compile(r"[A-Za-z]{1,4}|[0-9]{1,3}|[^\sA-Za-z0-9]|[^\S ]+| {2,}")


@lru_cache(maxsize=256)
def tokens_of(text: str) -> int:
    """Return the estimated number of tokens in a text."""
    count = len(_PIECE.findall(text))
    if not text.isascii():
        count += len(text.encode("utf-8", "surrogatepass")) - len(text)
    return count


def tokens_in(messages: Iterable[Message]) -> int:
    """Return the estimated number of tokens in a conversation."""
    return sum(tokens_of(message.text) + PER_MESSAGE for message in messages)


CUTS: tuple[str, ...] = (
    "texts of news",
    "history of own actions",
    "news",
    "closes before the last one",
)
"""Parts dropped from a long prompt, in this order. Today's open and position are always kept."""


class StockPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A holding. ``value`` is its value at today's open."""

    shares: float
    value: float
    holding_days: int


class PayloadRow(msgspec.Struct, frozen=True, kw_only=True):
    """One name. Fields excluded by the inputs are absent."""

    symbol: str
    buyable: bool
    open: float | None
    closes: tuple[float | None, ...]
    position: StockPosition | None
    fundamentals: FundamentalsShown | msgspec.UnsetType = msgspec.UNSET
    news: tuple[NewsBriefed, ...] | msgspec.UnsetType = msgspec.UNSET


class PromptPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a prompt's ``json`` block.

    ``left_out`` lists the parts that exceeded the context limit.
    """

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
    """The rules for an answer, as data. Costs are fractions of the traded value."""

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
        """Return the limits from the market's rules and the protocol's settings."""
        from_config = ("tolerance", "attempts", "max_names")
        values = {}
        for name in cls.__struct_fields__:
            values[name] = getattr(config if name in from_config else rules, name)
        return cls(**values)


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a stage's payload other than prices and positions."""

    kind: str
    history: bool = False
    headlines: bool = False
    texts: bool = False
    fundamentals: bool = False
    asks_for_names: bool = False


OVERVIEW = Parts(kind="stockbench.overview", history=True, headlines=True, asks_for_names=True)
ANALYSIS = Parts(kind="stockbench.analysis", headlines=True, texts=True, fundamentals=True)
DECISION = Parts(kind="stockbench.decision")


def make_payload(
    briefing: Briefing, parts: Parts, names: Sequence[Name], cuts: int = 0
) -> PromptPayload:
    """Return a stage's payload without the first ``cuts`` of :data:`CUTS`."""
    left_out = CUTS[:cuts]
    return PromptPayload(
        kind=parts.kind,
        session=briefing.session,
        cash=round(briefing.cash, 2),
        # Rounded down, so that the displayed amount can be spent in full.
        buying_power=math.floor(briefing.cash / (1.0 + briefing.rules.buy_cost) * 100.0) / 100.0,
        nav=round(briefing.nav, 2),
        symbols=tuple(_row(briefing, parts, name, left_out) for name in names),
        max_names=briefing.config.max_names if parts.asks_for_names else msgspec.UNSET,
        history=briefing.history if parts.history and CUTS[1] not in left_out else msgspec.UNSET,
        left_out=left_out or msgspec.UNSET,
    )


def encode(payload: msgspec.Struct) -> str:
    """Return JSON on one line, so that a fence in a quoted text cannot end its block."""
    return msgspec.json.encode(payload).decode()


def _row(briefing: Briefing, parts: Parts, name: Name, left_out: Sequence[str]) -> PayloadRow:
    closes = name.closes[-1:] if CUTS[3] in left_out else name.closes
    position = None
    if name.shares != 0.0:
        position = StockPosition(
            shares=round(name.shares, 6), value=round(name.value, 2), holding_days=name.held
        )
    figures = parts.fundamentals and briefing.config.shows_fundamentals
    news: tuple[NewsBriefed, ...] | msgspec.UnsetType = msgspec.UNSET
    if parts.headlines and briefing.config.shows_news and CUTS[2] not in left_out:
        news = briefing.news[name.symbol]
        if not parts.texts or CUTS[0] in left_out:
            news = tuple(msgspec.structs.replace(item, text=None) for item in news)
    return PayloadRow(
        symbol=name.symbol,
        buyable=name.buyable,
        open=name.price,
        closes=tuple(None if close is None else round(close, 4) for close in closes),
        position=position,
        fundamentals=briefing.fundamentals.of(name.symbol, name.price)
        if figures
        else msgspec.UNSET,
        news=news,
    )
