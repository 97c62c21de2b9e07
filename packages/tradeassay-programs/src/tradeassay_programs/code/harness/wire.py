"""What host and child of a job agree on beside the columns of orders. The host trusts none of it."""

from __future__ import annotations

import struct
from typing import Final

from tradeassay.core.order_columns import FLOATS, INTEGERS

ACTION: Final = struct.Struct(f"<{len(INTEGERS)}q{len(FLOATS)}d")

PRICES: Final = ("open", "high", "low", "close", "volume")
"""What a frame of a fed run holds for each asset, after the time."""

ACCOUNT: Final = "account"
"""The child's own figures: value, cash, number of completed orders, broker turns. Compared, never used."""

NOTES: Final = "notes"

PATCHED: Final = "patched: "
FUTURE: Final = "future: "

HARNESS_MODULE: Final = "tradeassay_programs.code.harness.backtrader"
HARNESS: Final = f"{HARNESS_MODULE}:run"
FED: Final = f"{HARNESS_MODULE}:run_fed"
GROWING_MODULE: Final = "tradeassay_programs.code.harness.frames"
GROWING: Final = f"{GROWING_MODULE}:grow"
HARNESS_MODULES: Final = (HARNESS_MODULE, GROWING_MODULE)
"""What the zygote loads for programs of both frameworks."""
