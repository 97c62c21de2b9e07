"""A finished run, prepared for readers: what was recorded, and every figure that follows from it.

:func:`summary_of` reads a run and computes those figures; pages and tables only write them out. Runs recorded by
earlier versions get the same figures, because all of them follow from journals, scores and the hashed data.
"""

from tradeassay.runs.summary.figures import compare_cell, completed_episode, completed_run, contrasts
from tradeassay.runs.summary.models import decision_notes
from tradeassay.runs.summary.reading import summary_of
from tradeassay.runs.summary.rows import (
    AgentSummary,
    CellSummary,
    Contest,
    Contrast,
    ContrastArm,
    EpisodeDetail,
    FailureCause,
    ModelSummary,
    OverMarkets,
    RunSummary,
    failed_too_often,
)
