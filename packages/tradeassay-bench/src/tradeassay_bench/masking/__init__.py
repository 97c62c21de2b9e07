"""Provide aliases for names and dates, and the gate that masks all traffic with an agent."""

from __future__ import annotations

from tradeassay_bench.masking.aliases import (
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
from tradeassay_bench.masking.gate import NO_NAME as NO_NAME, Gate as Gate, Json as Json
from tradeassay_bench.masking.leaks import Leak as Leak, Truth as Truth, find_leaks as find_leaks
from tradeassay_bench.masking.scales import ShownBars as ShownBars
from tradeassay_bench.masking.view import (
    Mask as Mask,
    MaskedView as MaskedView,
    nameless as nameless,
    refuse_nameless as refuse_nameless,
)
