"""How a scripted model plays the daily benchmarks: every fifth session, hold what rose most.

It reads the question as data, not the prompt.
"""

from __future__ import annotations

import msgspec

from tradeassay.core.dialogue import AskModel, Given

PURPOSE = "orders"
NAMES = 8
EVERY = 5
INVESTED = 0.9
WORTH_TRADING = 0.25
"""A position is moved when it is off its target by more than this share of it."""


class _Name(msgspec.Struct, frozen=True):
    symbol: str
    tradable: bool
    r20: float | None = None


class _Holding(msgspec.Struct, frozen=True):
    symbol: str
    weight: float


class _Day(msgspec.Struct, frozen=True):
    step: int
    positions: tuple[_Holding, ...]
    names: tuple[_Name, ...]


_DAY = msgspec.json.Decoder(_Day)


class ScriptedDailyOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One order, as the protocol wants it."""

    symbol: str
    unit: str
    amount: float
    reason: str


def orders(request: AskModel) -> dict[str, object]:
    """Return the day's answer; an order that was rejected is not tried again."""
    if not isinstance(request.given, Given) or request.attempt > 1:
        return {"orders": [], "reason": "nothing is worth another try"}
    day = _DAY.decode(request.given.observation)
    if day.step % EVERY:
        return {"orders": [], "reason": "holds until the next look"}
    known = [name for name in day.names if name.tradable and name.r20 is not None]
    ranked = [name.symbol for name in sorted(known, key=lambda name: (-(name.r20 or 0.0), name.symbol))]
    weights = {holding.symbol: holding.weight for holding in day.positions}
    kept = [symbol for symbol in ranked[: 2 * NAMES] if symbol in weights]
    chosen = [*kept, *(symbol for symbol in ranked if symbol not in weights)][:NAMES]
    share = round(INVESTED / NAMES, 4)
    placed = [
        ScriptedDailyOrder(symbol=symbol, unit="target_weight", amount=0.0, reason="fell behind")
        for symbol in weights
        if symbol not in chosen
    ]
    placed += [
        ScriptedDailyOrder(symbol=symbol, unit="target_weight", amount=share, reason="among those that rose most")
        for symbol in chosen
        if abs(weights.get(symbol, 0.0) - share) > WORTH_TRADING * share
    ]
    return {"orders": placed, "reason": "holds what rose most over twenty sessions"}
