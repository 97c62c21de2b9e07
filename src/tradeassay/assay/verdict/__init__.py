"""Verdicts: what a result is made of, in one sentence that is never stronger than the evidence."""

from __future__ import annotations

from tradeassay.assay.own import OwnAccount as OwnAccount
from tradeassay.assay.verdict.build import assay as assay
from tradeassay.assay.verdict.build import brought_assay as brought_assay
from tradeassay.assay.verdict.build import check_assay as check_assay
from tradeassay.assay.verdict.build import record_assay as record_assay
from tradeassay.assay.verdict.build import recorded_assay as recorded_assay
from tradeassay.assay.verdict.decide import decide as decide
from tradeassay.assay.verdict.decide import judge as judge
from tradeassay.assay.verdict.record import KINDS as KINDS
from tradeassay.assay.verdict.record import LABELS as LABELS
from tradeassay.assay.verdict.record import AgentAssay as AgentAssay
from tradeassay.assay.verdict.record import AgentFindings as AgentFindings
from tradeassay.assay.verdict.record import Assay as Assay
from tradeassay.assay.verdict.record import Verdict as Verdict
from tradeassay.assay.verdict.record import VerdictConfig as VerdictConfig
