"""Verdicts: what a result is made of, in one sentence that is never stronger than the evidence."""

from __future__ import annotations

from tradeassay.assay.own import OwnAccount as OwnAccount
from tradeassay.assay.verdict.assay_file import (
    brought_assay as brought_assay,
    check_assay as check_assay,
    record_assay as record_assay,
    recorded_assay as recorded_assay,
)
from tradeassay.assay.verdict.build import assay as assay
from tradeassay.assay.verdict.decide import decide as decide, judge as judge
from tradeassay.assay.verdict.record import (
    KINDS as KINDS,
    LABELS as LABELS,
    AgentAssay as AgentAssay,
    AgentFindings as AgentFindings,
    Assay as Assay,
    VerdictConfig as VerdictConfig,
)
