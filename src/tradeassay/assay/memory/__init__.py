"""Memory: which part of a result disappears when a model cannot recognise the stocks and the dates."""

from __future__ import annotations

from tradeassay.assay.memory.contrast import (
    DirectProbe,
    Fade,
    MemoryArm,
    MemoryConfig,
    MemoryContrast,
    MemoryGap,
    memory_contrast,
)
from tradeassay.assay.memory.counterfactual import (
    CounterfactualConfig,
    CounterfactualReport,
    counterfactual_study,
    score_counterfactual,
)
from tradeassay.assay.memory.edge import EdgeSplit, RecallSplit, split_edge, split_run
from tradeassay.assay.memory.propensity import Propensity
from tradeassay.assay.memory.questions import RecallAnswer, RecallConfig, RecallQuestion
from tradeassay.assay.memory.rationale import (
    CATEGORIES,
    Category,
    NamedThing,
    RationaleReport,
    RationaleRow,
    rationale_analysis,
)
from tradeassay.assay.memory.recall import (
    RecallMonth,
    RecallPlan,
    RecallReport,
    RecallScore,
    plan_recall,
    recall_audit,
    score_recall,
)
from tradeassay.assay.memory.records import MemoryRecord, ask_models, read_record

__all__ = [
    "CATEGORIES",
    "Category",
    "CounterfactualConfig",
    "CounterfactualReport",
    "DirectProbe",
    "EdgeSplit",
    "Fade",
    "MemoryArm",
    "MemoryConfig",
    "MemoryContrast",
    "MemoryGap",
    "MemoryRecord",
    "NamedThing",
    "Propensity",
    "RationaleReport",
    "RationaleRow",
    "RecallAnswer",
    "RecallConfig",
    "RecallMonth",
    "RecallPlan",
    "RecallQuestion",
    "RecallReport",
    "RecallScore",
    "RecallSplit",
    "ask_models",
    "counterfactual_study",
    "memory_contrast",
    "plan_recall",
    "rationale_analysis",
    "read_record",
    "recall_audit",
    "score_counterfactual",
    "score_recall",
    "split_edge",
    "split_run",
]
