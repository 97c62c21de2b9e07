"""Further questions to a recorded run: is it robust, in which markets did it work, what did its reasons name?"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from tradeassay.assay.memory.rationale import RationaleReport, rationale_analysis
from tradeassay.assay.regimes import RegimePanel, regime_panels
from tradeassay.assay.robustness import Disturbance, RobustnessConfig, RobustnessReport, robustness_of_run

if TYPE_CHECKING:
    from tradeassay.runs import Run

Study = Literal["robustness", "regimes", "rationales"]
ASKS_NOBODY: tuple[Disturbance, ...] = ("costs", "delay")
"""Disturbances that repeat recorded decisions; the others ask the agents again."""


class Studies(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for; None for the rest."""

    robustness: RobustnessReport | None = None
    regimes: tuple[RegimePanel, ...] | None = None
    rationales: RationaleReport | None = None


def study_run(
    run: Run, what: Collection[Study], *, folder: Path | str | None = None, home: Path | str | None = None
) -> Studies:
    """Make the studies named in ``what`` of one run. Disturbed data and the runs on it are kept in ``folder``, by
    default beside the run. No model is asked again: where models played, robustness covers costs and delay only.
    Raises :class:`~tradeassay.core.errors.UserError` where a run cannot answer: no index for regimes, no model for
    rationales."""
    report = None
    if "robustness" in what:
        models = any(episode.by_model for episode in run.episodes)
        config = RobustnessConfig(what=ASKS_NOBODY) if models else None
        report = robustness_of_run(
            run, folder or run.folder.parent / f"{run.folder.name}-robustness", config, home=home
        )
        note = "universe and news were left as they are: models would have to be asked again"
        report = msgspec.structs.replace(report, notes=(*report.notes, note)) if models else report
    return Studies(
        robustness=report,
        regimes=regime_panels(run) if "regimes" in what else None,
        rationales=rationale_analysis(run) if "rationales" in what else None,
    )
