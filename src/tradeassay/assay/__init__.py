"""The assay: what a recorded result is made of. Joins runs with attribution and statistics.

``attribute_run`` takes returns apart into market, style, selection and trading. The names are imported on first
use, because some of them are heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.assay.attribute import (
        AgentAttribution,
        RunAttribution,
        attribute_episode,
        attribute_run,
        check_identity,
    )
    from tradeassay.assay.attribution_record import Attribution, BrinsonTotals, DailyAttribution
    from tradeassay.assay.inputs import MarketInputs, MarketQuery, market_inputs
    from tradeassay.assay.leaks.examine import leak_test
    from tradeassay.assay.leaks.records import LeakFinding, LeakTestConfig, LeakTestReport
    from tradeassay.assay.luck.luck import Luck, luck_of_episode, luck_of_returns, luck_of_run
    from tradeassay.assay.memory.contrast import memory_contrast
    from tradeassay.assay.memory.rationale import NamedThing, RationaleReport, RationaleRow, rationale_analysis
    from tradeassay.assay.memory.records import (
        DirectProbe,
        Fade,
        MemoryArm,
        MemoryConfig,
        MemoryContrast,
        MemoryGap,
    )
    from tradeassay.assay.own_attribution import attribute_tables
    from tradeassay.assay.own_luck import luck_of_file
    from tradeassay.assay.power import AgentPower, power_of_run
    from tradeassay.assay.probe.config import ProbeConfig
    from tradeassay.assay.probe.probe import probe_mask
    from tradeassay.assay.probe.records import ProbeReport, ProbeRow
    from tradeassay.assay.regimes import RegimePanel, RegimeRules, RegimeSpan, regime_panels, tag_regimes
    from tradeassay.assay.robustness.records import RobustnessConfig, RobustnessReport, RobustnessScore
    from tradeassay.assay.robustness.study import robustness_of_run
    from tradeassay.assay.verdict.assaying import assay
    from tradeassay.assay.verdict.config import VerdictConfig
    from tradeassay.assay.verdict.of_tables import OwnAccount
    from tradeassay.assay.verdict.record import AgentAssay, Assay, Verdict

_HOMES = {
    "AgentAssay": "verdict.record",
    "AgentAttribution": "attribute",
    "AgentPower": "power",
    "Assay": "verdict.record",
    "Attribution": "attribution_record",
    "BrinsonTotals": "attribution_record",
    "DailyAttribution": "attribution_record",
    "DirectProbe": "memory.records",
    "Fade": "memory.records",
    "LeakFinding": "leaks.records",
    "LeakTestConfig": "leaks.records",
    "LeakTestReport": "leaks.records",
    "Luck": "luck.luck",
    "MarketInputs": "inputs",
    "MarketQuery": "inputs",
    "MemoryArm": "memory.records",
    "MemoryConfig": "memory.records",
    "MemoryContrast": "memory.records",
    "MemoryGap": "memory.records",
    "NamedThing": "memory.rationale",
    "OwnAccount": "verdict.of_tables",
    "ProbeConfig": "probe.config",
    "ProbeReport": "probe.records",
    "ProbeRow": "probe.records",
    "RationaleReport": "memory.rationale",
    "RationaleRow": "memory.rationale",
    "RegimePanel": "regimes",
    "RegimeRules": "regimes",
    "RegimeSpan": "regimes",
    "RobustnessConfig": "robustness.records",
    "RobustnessReport": "robustness.records",
    "RobustnessScore": "robustness.records",
    "RunAttribution": "attribute",
    "Verdict": "verdict.record",
    "VerdictConfig": "verdict.config",
    "assay": "verdict.assaying",
    "attribute_episode": "attribute",
    "attribute_run": "attribute",
    "attribute_tables": "own_attribution",
    "check_identity": "attribute",
    "leak_test": "leaks.examine",
    "luck_of_episode": "luck.luck",
    "luck_of_file": "own_luck",
    "luck_of_returns": "luck.luck",
    "luck_of_run": "luck.luck",
    "market_inputs": "inputs",
    "memory_contrast": "memory.contrast",
    "power_of_run": "power",
    "probe_mask": "probe.probe",
    "rationale_analysis": "memory.rationale",
    "regime_panels": "regimes",
    "robustness_of_run": "robustness.study",
    "tag_regimes": "regimes",
}
"""Where each public name lives: a module of this package."""

__all__ = [
    "AgentAssay",
    "AgentAttribution",
    "AgentPower",
    "Assay",
    "Attribution",
    "BrinsonTotals",
    "DailyAttribution",
    "DirectProbe",
    "Fade",
    "LeakFinding",
    "LeakTestConfig",
    "LeakTestReport",
    "Luck",
    "MarketInputs",
    "MarketQuery",
    "MemoryArm",
    "MemoryConfig",
    "MemoryContrast",
    "MemoryGap",
    "NamedThing",
    "OwnAccount",
    "ProbeConfig",
    "ProbeReport",
    "ProbeRow",
    "RationaleReport",
    "RationaleRow",
    "RegimePanel",
    "RegimeRules",
    "RegimeSpan",
    "RobustnessConfig",
    "RobustnessReport",
    "RobustnessScore",
    "RunAttribution",
    "Verdict",
    "VerdictConfig",
    "assay",
    "attribute_episode",
    "attribute_run",
    "attribute_tables",
    "check_identity",
    "leak_test",
    "luck_of_episode",
    "luck_of_file",
    "luck_of_returns",
    "luck_of_run",
    "market_inputs",
    "memory_contrast",
    "power_of_run",
    "probe_mask",
    "rationale_analysis",
    "regime_panels",
    "robustness_of_run",
    "tag_regimes",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
