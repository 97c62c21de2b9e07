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
    read_recall,
    recall_audit,
    score_recall,
)

__all__ = [
    "CATEGORIES",
    "Category",
    "DirectProbe",
    "Fade",
    "MemoryArm",
    "MemoryConfig",
    "MemoryContrast",
    "MemoryGap",
    "NamedThing",
    "RationaleReport",
    "RationaleRow",
    "RecallAnswer",
    "RecallConfig",
    "RecallMonth",
    "RecallPlan",
    "RecallQuestion",
    "RecallReport",
    "RecallScore",
    "memory_contrast",
    "plan_recall",
    "rationale_analysis",
    "read_recall",
    "recall_audit",
    "score_recall",
]
