"""Random orders, sensible and not: every unit, kind and life, wrong names, wrong numbers, wrong sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradeassay.core.account import AccountState
from tradeassay.core.orders import Order
from tradeassay.core.view import SessionBars

_WRONG: tuple[dict[str, Any], ...] = (
    {"symbol": "NOBODY"},
    {"amount": float("nan")},
    {"amount": -5.0, "unit": "shares"},
    {"side": None, "unit": "shares"},
    {"kind": "limit", "limit_price": None},
    {"kind": "stop", "stop_price": -1.0},
    {"kind": "market", "limit_price": 10.0},
    {"tif": "until tomorrow"},
    {"unit": "buckets"},
)


def rough_orders(rng: np.random.Generator, bars: SessionBars, account: AccountState) -> list[Order]:
    """Return up to ten orders, half of them for names that are held."""
    held = list(account.positions)
    orders = []
    for _ in range(int(rng.integers(0, 9))):
        symbol = str(rng.choice(held)) if held and rng.random() < 0.5 else str(rng.choice(bars.symbols))
        fields = _fields(rng, symbol, bars, account)
        if rng.random() < 0.06:
            fields.update(_WRONG[int(rng.integers(len(_WRONG)))])
        orders.append(Order(**fields))
    if rng.random() < 0.3:
        orders += _round_trip(rng, str(rng.choice(bars.symbols)), bars)
    return orders


def _round_trip(rng: np.random.Generator, symbol: str, bars: SessionBars) -> list[Order]:
    """Buy at once and sell during the same session, which a T+1 venue must not allow."""
    last = float(bars.prev_close[bars.symbols.index(symbol)])
    price = round(last * float(rng.uniform(0.99, 1.02)), 2) if last == last else 20.0
    return [
        Order(symbol=symbol, amount=200.0, side="BUY"),
        Order(symbol=symbol, amount=200.0, side="SELL", kind="limit", limit_price=max(price, 0.01)),
    ]


def _fields(rng: np.random.Generator, symbol: str, bars: SessionBars, account: AccountState) -> dict[str, Any]:
    column = bars.symbols.index(symbol)
    last = float(bars.prev_close[column])
    price = last if last == last else 20.0
    unit = str(rng.choice(["shares", "dollars", "target_weight", "target_value", "target_shares"]))
    scale = abs(account.nav) * float(rng.choice([0.0, 0.001, 0.05, 0.2, 0.6, 3.0]))
    scale /= bars.instruments[column].multiplier
    amount = {
        "shares": float(np.rint(scale / price / 100.0) * 100.0 + rng.choice([0.0, 0.0, 0.0, 1.0, 37.5])),
        "dollars": scale,
        "target_weight": float(rng.choice([0.0, 0.05, 0.2, 0.5, 1.0, 1.9, -0.2, -1.5])),
        "target_value": scale * float(rng.choice([1.0, 1.0, -1.0])),
        "target_shares": float(np.rint(scale / price / 100.0) * 100.0 * rng.choice([1.0, 1.0, -1.0])),
    }[unit]
    position = account.positions.get(symbol)
    if unit == "shares" and position is not None and rng.random() < 0.4:
        amount = abs(position.quantity) * float(rng.choice([1.0, 0.5, 1.1]))
    fields: dict[str, Any] = {"symbol": symbol, "amount": amount, "unit": unit}
    if unit in ("shares", "dollars") or rng.random() < 0.2:
        fields["side"] = str(rng.choice(["BUY", "SELL"]))
    kind = str(rng.choice(["market", "market", "limit", "stop"]))
    if kind != "market":
        fields["kind"] = kind
        fields[f"{kind}_price"] = max(round(price * float(rng.uniform(0.96, 1.04)), 2), 0.01)
    if rng.random() < 0.25:
        fields["tif"] = "gtc"
    return fields
