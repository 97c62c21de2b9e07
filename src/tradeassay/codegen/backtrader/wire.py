"""The columns in which a child sends a strategy's decisions home. The host believes none of it."""

from __future__ import annotations

from typing import Final

ACTION_SUBMIT: Final = 0
ACTION_CANCEL: Final = 1

INTEGERS: Final = (
    "action", "turn", "row", "ref", "asset", "side", "kind", "given", "parent", "oco", "transmit", "tradeid",
)  # fmt: skip
FLOATS: Final = ("size", "price", "pricelimit", "trailamount", "trailpercent", "valid")

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

HARNESS_MODULE: Final = "tradeassay.codegen.backtrader.child"
HARNESS: Final = f"{HARNESS_MODULE}:run"
