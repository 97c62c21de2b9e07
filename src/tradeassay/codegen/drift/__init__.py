"""Did a patch repair the strategy or change it? Cards by meaning, traces by edit distance, patches by lines."""

from __future__ import annotations

from tradeassay.codegen.drift.card_changes import card_changes
from tradeassay.codegen.drift.check import DriftConfig, check_drift
from tradeassay.codegen.drift.patch_budget import changed_lines
from tradeassay.codegen.drift.trace_distance import trace_distance
from tradeassay.codegen.drift.verdict import DriftReport, ScenarioDrift

__all__ = [
    "DriftConfig",
    "DriftReport",
    "ScenarioDrift",
    "card_changes",
    "changed_lines",
    "check_drift",
    "trace_distance",
]
