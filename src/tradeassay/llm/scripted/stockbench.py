"""How a scripted model plays StockBench: look at what moved, then tilt towards what rose.

It holds the better half of the names by the return over the closes it is shown, equally weighted, trades only when
a target is worth the cost, and keeps a twentieth in cash.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tradeassay.llm.scripted.reading import Json, Reading, mapping, number, objects

INVESTED = 0.95
WORTH_TRADING = 0.2
"""A position is moved when it is off its target by more than this share of it."""
LEAST_HOLDING_DAYS = 5


class ScriptedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One name's decision, as the protocol wants it."""

    action: str
    target_cash_amount: float
    reasons: tuple[str, ...]
    confidence: float


class ScriptedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One name of a payload."""

    symbol: str
    open: float
    change: float
    value: float
    holding_days: int
    buyable: bool


def rows(reading: Reading) -> list[ScriptedRow]:
    """Return the names of a payload that have a price."""
    return [row for row in map(_row, objects(reading.payload.get("symbols"))) if row is not None and row.open > 0]


def pick(reading: Reading) -> list[str]:
    """Return the names to analyse: those that moved most, what is held first."""
    most = int(number(reading.payload.get("max_names"), 10))
    ordered = sorted(rows(reading), key=lambda row: (row.value <= 0, -abs(row.change), row.symbol))
    return [row.symbol for row in ordered[: max(0, most)]]


def notes(reading: Reading) -> dict[str, str]:
    """Return a line about each name."""
    return {row.symbol: f"{row.change:+.2%} over the closes shown" for row in rows(reading)}


def decide(reading: Reading) -> dict[str, ScriptedDecision]:
    """Return a decision for every name; buys fit what cash and sales provide.

    When an answer was rejected it buys less, and from the third attempt on it holds everything.
    """
    names = rows(reading)
    if reading.tries >= 3:
        return {row.symbol: _hold(row, "what I wanted was turned down twice") for row in names}
    nav = number(reading.payload.get("nav"))
    told_off = {complaint.name for complaint in reading.feedback}
    fit = [row for row in names if row.buyable and row.symbol not in told_off]
    best = sorted(fit, key=lambda row: (-row.change, row.symbol))[: max(1, (len(names) + 1) // 2)]
    wanted = {row.symbol for row in best}
    target = round(INVESTED * nav / max(1, len(best)), 2)
    decisions = {
        row.symbol: _hold(row, "it was turned down")
        if row.symbol in told_off
        else _sale_or_hold(row, wanted, target)
        for row in names
    }
    freed = sum(row.value - decisions[row.symbol].target_cash_amount for row in names)
    money = max(0.0, INVESTED * (number(reading.payload.get("cash")) + freed))
    buys = [row for row in best if row.value < target * (1 - WORTH_TRADING)]
    need = sum(target - row.value for row in buys)
    share = min(1.0, money / need) / reading.tries if need > 0 else 0.0
    for row in buys:
        aim = round(row.value + share * (target - row.value), 2)
        if aim > row.value * 1.01 + 1:
            decisions[row.symbol] = ScriptedDecision(
                action="increase",
                target_cash_amount=aim,
                reasons=(f"among the better half: {row.change:+.2%} over the closes shown",),
                confidence=0.65,
            )
    return decisions


def _sale_or_hold(row: ScriptedRow, wanted: set[str], target: float) -> ScriptedDecision:
    if row.value > 0 and row.symbol not in wanted and row.holding_days >= LEAST_HOLDING_DAYS:
        reason = f"fell behind: {row.change:+.2%} over the closes shown"
        return ScriptedDecision(action="close", target_cash_amount=0.0, reasons=(reason,), confidence=0.6)
    if row.symbol in wanted and row.value > target * (1 + WORTH_TRADING):
        reason = "grew beyond its share"
        return ScriptedDecision(action="decrease", target_cash_amount=target, reasons=(reason,), confidence=0.55)
    reason = "no change is worth its cost" if row.value > 0 else "not among the better half"
    return _hold(row, reason)


def _hold(row: ScriptedRow, reason: str) -> ScriptedDecision:
    return ScriptedDecision(action="hold", target_cash_amount=row.value, reasons=(reason,), confidence=0.5)


def _row(raw: Json) -> ScriptedRow | None:
    closes = raw.get("closes")
    shown = [number(close) for close in closes if number(close) > 0] if isinstance(closes, list) else []
    position = mapping(raw.get("position"))
    symbol = raw.get("symbol")
    if not isinstance(symbol, str):
        return None
    return ScriptedRow(
        symbol=symbol,
        open=number(raw.get("open")),
        change=shown[-1] / shown[0] - 1 if len(shown) >= 2 else 0.0,
        value=number(position.get("value")),
        holding_days=int(number(position.get("holding_days"), LEAST_HOLDING_DAYS)),
        buyable=raw.get("buyable") is not False,
    )


GOOD = (
    "more than expected",
    "beats",
    "strong",
    "wins",
    "raises",
    "upgrade",
    "above",
    "record",
    "approval",
    "buyback",
)
BAD = (
    "misses",
    "falls short",
    "weak",
    "loses",
    "cuts",
    "downgrade",
    "below",
    "recall",
    "investigation",
    "lawsuit",
)
CHEAP = 12.0
"""A price of less than this many yearly earnings speaks for a stock."""


def read_everything(reading: Reading) -> dict[str, str]:
    """Return a note about each name that holds the score of its news and figures, for the decision to come."""
    notes = {}
    for raw in objects(reading.payload.get("symbols")):
        texts = [f"{item.get('title', '')} {item.get('text') or ''}".lower() for item in objects(raw.get("news"))]
        tone = sum(word in text for text in texts for word in GOOD)
        tone -= sum(word in text for text in texts for word in BAD)
        ratio = number(mapping(raw.get("fundamentals")).get("pe"))
        score = tone + (0.5 if 0.0 < ratio < CHEAP else 0.0)
        notes[str(raw.get("symbol"))] = f"score {score:+.1f}"
    return notes


def by_scores(reading: Reading, scores: Mapping[str, float]) -> dict[str, ScriptedDecision]:
    """Return decisions that hold what has a score above 0, equally weighted, and sell what fell below it."""
    names = rows(reading)
    wanted = [row for row in names if row.buyable and scores.get(row.symbol, 0.0) > 0.0]
    target = round(INVESTED * number(reading.payload.get("nav")) / max(10, len(wanted)), 2)
    money = number(reading.payload.get("cash")) * INVESTED
    decisions = {}
    for row in names:
        score = scores.get(row.symbol, 0.0)
        if row.value > 0 and score < 0.0:
            decisions[row.symbol] = ScriptedDecision(
                action="close",
                target_cash_amount=0.0,
                reasons=(f"news and figures: {score:+.1f}",),
                confidence=0.6,
            )
        elif row in wanted and row.value < target * (1 - WORTH_TRADING) and money > target - row.value:
            money -= target - row.value
            decisions[row.symbol] = ScriptedDecision(
                action="increase", target_cash_amount=target, reasons=(f"news and figures: {score:+.1f}",),
                confidence=0.6,
            )  # fmt: skip
    return decisions
