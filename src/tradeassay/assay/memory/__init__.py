"""Memory: which part of a result disappears when a model cannot recognise the stocks and the dates.

The names are imported on first use: a verdict on a table of returns needs none of the models behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.assay.memory.contrast import DirectProbe as DirectProbe
    from tradeassay.assay.memory.contrast import Fade as Fade
    from tradeassay.assay.memory.contrast import MemoryArm as MemoryArm
    from tradeassay.assay.memory.contrast import MemoryConfig as MemoryConfig
    from tradeassay.assay.memory.contrast import MemoryContrast as MemoryContrast
    from tradeassay.assay.memory.contrast import MemoryGap as MemoryGap
    from tradeassay.assay.memory.contrast import memory_contrast as memory_contrast
    from tradeassay.assay.memory.counterfactual import CounterfactualConfig as CounterfactualConfig
    from tradeassay.assay.memory.counterfactual import CounterfactualReport as CounterfactualReport
    from tradeassay.assay.memory.counterfactual import counterfactual_study as counterfactual_study
    from tradeassay.assay.memory.counterfactual import score_counterfactual as score_counterfactual
    from tradeassay.assay.memory.edge import EdgeSplit as EdgeSplit
    from tradeassay.assay.memory.edge import RecallSplit as RecallSplit
    from tradeassay.assay.memory.edge import split_edge as split_edge
    from tradeassay.assay.memory.edge import split_run as split_run
    from tradeassay.assay.memory.questions import RecallConfig as RecallConfig
    from tradeassay.assay.memory.rationale import NamedThing as NamedThing
    from tradeassay.assay.memory.rationale import RationaleReport as RationaleReport
    from tradeassay.assay.memory.rationale import RationaleRow as RationaleRow
    from tradeassay.assay.memory.rationale import rationale_analysis as rationale_analysis
    from tradeassay.assay.memory.recall import RecallReport as RecallReport
    from tradeassay.assay.memory.recall import plan_recall as plan_recall
    from tradeassay.assay.memory.recall import recall_audit as recall_audit
    from tradeassay.assay.memory.recall import score_recall as score_recall
    from tradeassay.assay.memory.records import MemoryRecord as MemoryRecord
    from tradeassay.assay.memory.records import ask_models as ask_models
    from tradeassay.assay.memory.records import read_record as read_record
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
