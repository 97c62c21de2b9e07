"""Did a patch repair the strategy or change it? Cards by meaning, traces by edit distance, patches by lines."""

from __future__ import annotations

from tradeassay.code.drift.card_changes import card_changes
from tradeassay.code.drift.check import DriftConfig, check_drift
from tradeassay.code.drift.patch_budget import changed_lines
from tradeassay.code.drift.trace_distance import trace_distance
from tradeassay.code.drift.verdict import DriftReport, ScenarioDrift

__all__ = [
    "DriftConfig",
    "DriftReport",
    "ScenarioDrift",
    "card_changes",
    "changed_lines",
    "check_drift",
    "trace_distance",
]
