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
from tradeassay.assay.memory.rationale import (
    CATEGORIES,
    Category,
    NamedThing,
    RationaleReport,
    RationaleRow,
    rationale_analysis,
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
    "memory_contrast",
    "rationale_analysis",
]
