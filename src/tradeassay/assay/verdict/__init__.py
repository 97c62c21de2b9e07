"""Verdicts: what a result is made of, in one sentence that is never stronger than the evidence."""

from __future__ import annotations

from tradeassay.assay.verdict.assaying import assay
from tradeassay.assay.verdict.config import VerdictConfig
from tradeassay.assay.verdict.decide import decide, judge
from tradeassay.assay.verdict.of_tables import OwnAccount
from tradeassay.assay.verdict.record import KINDS, LABELS, AgentAssay, AgentFindings, Assay, Verdict

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
    "decide",
    "judge",
]
