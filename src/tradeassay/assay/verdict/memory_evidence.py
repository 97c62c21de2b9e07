"""What masks say about an agent: its edge unmasked less its edge where names or dates are hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from tradeassay.assay.verdict.config import VerdictConfig
from tradeassay.assay.verdict.evidence import EDGE, tested
from tradeassay.assay.verdict.record import AgentFindings, MemoryEvidence
from tradeassay.core.errors import UserError
from tradeassay.core.measure import not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.attribution import MAIN

if TYPE_CHECKING:
    from tradeassay.assay.memory.records import MemoryContrast
    from tradeassay.runs import Run

BRIGHT = "bright"
_SHOWN = (*MAIN, EDGE)


def memory_evidence(
    bright: Mapping[str, Floats],
    masked: Mapping[str, Floats],
    year: int,
    config: VerdictConfig,
    *,
    against: str,
    comparisons: int = 1,
) -> MemoryEvidence:
    """Return the contrast of daily parts with those of the same agent under a mask, session by session."""
    parts = {name: tested(bright[name] - masked[name], year, config, 1) for name in _SHOWN}
    return MemoryEvidence(
        against=against,
        gap=parts[EDGE],
        masked=tested(masked[EDGE], year, config, comparisons),
        parts=parts,
    )


def no_memory(reason: str) -> MemoryEvidence:
    """Return that there is no contrast, and why."""
    return MemoryEvidence(against=None, gap=not_scored(reason), masked=not_scored(reason), reason=reason)


def contrast_of(run: Run, masks: Iterable[str | None], config: VerdictConfig) -> MemoryContrast | None:
    """Return what masks say over all windows of the run; None where none was run."""
    if all(mask in (None, BRIGHT) for mask in masks):
        return None
    from tradeassay.assay.memory.contrast import memory_contrast
    from tradeassay.assay.memory.records import MemoryConfig

    try:
        return memory_contrast(run, config=MemoryConfig(level=config.level, draws=config.draws))
    except UserError:  # no masked episode has a result: the rows say so themselves
        return None


def with_contrast(found: AgentFindings, contrast: MemoryContrast | None, mode: str | None) -> AgentFindings:
    """Return findings with what the contrast over all windows says about the agent."""
    memory = found.memory
    if memory is None or memory.against is None or contrast is None:
        return found
    gap = contrast.gap_of(found.agent, masked=memory.against, mode=mode)
    said = "" if gap is None else gap.sentence
    doubted = contrast.controls_hold is False
    return msgspec.structs.replace(found, memory=msgspec.structs.replace(memory, sentence=said, doubted=doubted))
