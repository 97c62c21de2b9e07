"""Summarise a finished run for readers.

:func:`summary_of` reads a run and computes all displayed figures. Pages and tables only format the
figures. All figures are derived from journals, scores and the hashed data, so that runs of earlier
versions have the same figures.
"""

from tradeassay_bench.runs.summary.figures import (
    compare_setting as compare_setting,
    completed_episode as completed_episode,
    completed_run as completed_run,
    contrasts as contrasts,
)
from tradeassay_bench.runs.summary.models import decision_notes as decision_notes
from tradeassay_bench.runs.summary.reading import summary_of as summary_of
from tradeassay_bench.runs.summary.rows import (
    AgentSummary as AgentSummary,
    Contest as Contest,
    Contrast as Contrast,
    ContrastArm as ContrastArm,
    EpisodeDetail as EpisodeDetail,
    FailureCause as FailureCause,
    ModelSummary as ModelSummary,
    OverMarkets as OverMarkets,
    RunSummary as RunSummary,
    SettingSummary as SettingSummary,
)
