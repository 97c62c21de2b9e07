"""Aliases for names and dates, and the gate that all traffic with an agent passes."""

from __future__ import annotations

from tradeassay.masking.aliases import (
    ANCHOR as ANCHOR,
    HARDENINGS as HARDENINGS,
    LEVELS as LEVELS,
    AliasMap as AliasMap,
    DayMap as DayMap,
    Level as Level,
    MaskConfig as MaskConfig,
    UnknownAlias as UnknownAlias,
    mask_bound as mask_bound,
)
from tradeassay.masking.gate import NO_NAME as NO_NAME, Gate as Gate, Json as Json
from tradeassay.masking.leaks import Leak as Leak, Truth as Truth, find_leaks as find_leaks
from tradeassay.masking.scales import ShownBars as ShownBars
from tradeassay.masking.view import (
    Mask as Mask,
    MaskedView as MaskedView,
    nameless as nameless,
    refuse_nameless as refuse_nameless,
)
