"""The columns in which a child sends a strategy's decisions home. The host believes none of it."""

from __future__ import annotations

import struct
from typing import Final

ACTION_SUBMIT: Final = 0
ACTION_CANCEL: Final = 1

INTEGERS: Final = (
    "action", "turn", "row", "ref", "asset", "side", "kind", "given", "parent", "oco", "transmit", "tradeid",
)  # fmt: skip
FLOATS: Final = ("size", "price", "pricelimit", "trailamount", "trailpercent", "valid")

ACTION: Final = struct.Struct(f"<{len(INTEGERS)}q{len(FLOATS)}d")
"""One order or cancellation of a fed run: the columns in their order."""

PRICES: Final = ("open", "high", "low", "close", "volume")
"""What a frame of a fed run holds of each asset, after the time."""

GIVEN: Final = {"price": 1, "pricelimit": 2, "trailamount": 4, "trailpercent": 8, "valid": 16}
"""Bits of ``given``: which of an order's numbers were named at all; NaN is a number a strategy may name."""

KINDS: Final = ("market", "close", "limit", "stop", "stop-limit", "trailing", "trailing-limit")
"""Kinds of orders, by the framework's own number."""

ACCOUNT: Final = "account"
"""The child's own figures: value, cash, number of completed orders, broker turns. Compared, never used."""

NOTES: Final = "notes"
"""Advice of the child about itself, one text each."""

PATCHED: Final = "patched: "
FUTURE: Final = "future: "
"""How notes begin."""

HARNESS_MODULE: Final = "tradeassay.code.backtrader.child"
HARNESS: Final = f"{HARNESS_MODULE}:run"
FED_MODULE: Final = "tradeassay.code.backtrader.child_fed"
FED: Final = f"{FED_MODULE}:run"
