"""Define names and formats that the host and the child share, besides the columns of orders.

The host trusts none of the child's data.
"""

from __future__ import annotations

import struct
from typing import Final

from tradeassay.core.order_columns import FLOATS, INTEGERS

ACTION: Final = struct.Struct(f"<{len(INTEGERS)}q{len(FLOATS)}d")

PRICES: Final = ("open", "high", "low", "close", "volume")
"""The values of each asset in a message of a fed run, after the time."""

ACCOUNT: Final = "account"
"""The child's figures: value, cash, number of completed orders, and broker turns.

The host compares them with its own figures and never uses them.
"""

NOTES: Final = "notes"

PATCHED: Final = "patched: "
FUTURE: Final = "future: "

HARNESS_MODULE: Final = "tradeassay_programs.code.harness.backtrader"
HARNESS: Final = f"{HARNESS_MODULE}:run"
FED: Final = f"{HARNESS_MODULE}:run_fed"
GROWING_MODULE: Final = "tradeassay_programs.code.harness.frames"
GROWING: Final = f"{GROWING_MODULE}:grow"
HARNESS_MODULES: Final = (HARNESS_MODULE, GROWING_MODULE)
"""The modules that the zygote loads for programs of both frameworks."""
