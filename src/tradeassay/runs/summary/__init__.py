"""A finished run, prepared for readers: what was recorded, and every figure that follows from it.

:func:`summary_of` reads a run and computes those figures; pages and tables only write them out. Runs recorded by
earlier versions get the same figures, because all of them follow from journals, scores and the hashed data."""

from tradeassay.runs.summary.figures import (
    compare_cell as compare_cell,
    completed_episode as completed_episode,
    completed_run as completed_run,
    contrasts as contrasts,
)
from tradeassay.runs.summary.models import decision_notes as decision_notes
from tradeassay.runs.summary.reading import summary_of as summary_of
from tradeassay.runs.summary.rows import (
    AgentSummary as AgentSummary,
    CellSummary as CellSummary,
    Contest as Contest,
    Contrast as Contrast,
    ContrastArm as ContrastArm,
    EpisodeDetail as EpisodeDetail,
    FailureCause as FailureCause,
    ModelSummary as ModelSummary,
    OverMarkets as OverMarkets,
    RunSummary as RunSummary,
)
