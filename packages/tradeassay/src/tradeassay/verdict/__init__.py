"""Verdicts: one sentence about the sources of a result, never stronger than the evidence."""

from __future__ import annotations

from tradeassay.verdict.judge import judge as judge
from tradeassay.verdict.own_account import OwnAccount as OwnAccount
from tradeassay.verdict.record import (
    KINDS as KINDS,
    LABELS as LABELS,
    AgentAssay as AgentAssay,
    AgentFindings as AgentFindings,
    Assay as Assay,
    VerdictConfig as VerdictConfig,
)
from tradeassay.verdict.statement import QUANTITIES as QUANTITIES, Statement as Statement
