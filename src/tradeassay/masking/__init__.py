"""Aliases for names and dates, and the gate that all traffic with an agent passes."""

from __future__ import annotations

from tradeassay.masking.aliases import ANCHOR, AliasMap, DayMap
from tradeassay.masking.gate import NO_DATE, NO_NAME, Gate
from tradeassay.masking.leaks import Leak, Truth, find_leaks
from tradeassay.masking.mask import Mask, nameless, refuse_nameless
from tradeassay.masking.mask_config import LEVELS, Level, MaskConfig, UnknownAlias
from tradeassay.masking.records import Json
from tradeassay.masking.scales import Ticks
from tradeassay.masking.view import MaskedView

__all__ = [
    "ANCHOR",
    "LEVELS",
    "NO_DATE",
    "NO_NAME",
    "AliasMap",
    "DayMap",
    "Gate",
    "Json",
    "Leak",
    "Level",
    "Mask",
    "MaskConfig",
    "MaskedView",
    "Ticks",
    "Truth",
    "UnknownAlias",
    "find_leaks",
    "nameless",
    "refuse_nameless",
]
