"""Aliases for names and dates, and the gate that all traffic with an agent passes."""

from __future__ import annotations

from tradeassay.masking.aliases import (
    ANCHOR,
    HARDENINGS,
    LEVELS,
    AliasMap,
    DayMap,
    Level,
    MaskConfig,
    UnknownAlias,
    mask_bound,
)
from tradeassay.masking.gate import NO_DATE, NO_NAME, Gate, Json
from tradeassay.masking.leaks import Leak, Truth, find_leaks
from tradeassay.masking.scales import ShownBars
from tradeassay.masking.view import Mask, MaskedView, nameless, refuse_nameless
