"""Verdicts: what a result is made of, in one sentence that is never stronger than the evidence."""

from __future__ import annotations

from tradeassay.assay.own import OwnAccount
from tradeassay.assay.verdict.build import assay, brought_assay, check_assay, record_assay, recorded_assay
from tradeassay.assay.verdict.decide import decide, judge
from tradeassay.assay.verdict.record import KINDS, LABELS, AgentAssay, AgentFindings, Assay, Verdict, VerdictConfig

__all__ = [
    "KINDS",
    "LABELS",
    "AgentAssay",
    "AgentFindings",
    "Assay",
    "OwnAccount",
    "Verdict",
    "VerdictConfig",
    "assay",
    "brought_assay",
    "check_assay",
    "decide",
    "judge",
    "record_assay",
    "recorded_assay",
]
