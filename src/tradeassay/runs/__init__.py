"""Runs: a frozen spec becomes episodes, episodes become journals, journals become scores. All of it on disk.

The same for runs that trade and for runs in which models write programs.

``run`` starts or continues, ``resume`` continues, ``verify`` checks, ``compare`` puts two side by side, ``plan``
estimates what a run would take. The names are imported on first use, because some of them are heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.play.dialogue_log import DialogueLine as DialogueLine, Spending as Spending
    from tradeassay.runs.play.progress import (
        Advanced as Advanced,
        Answered as Answered,
        AskStarted as AskStarted,
        Finished as Finished,
        Listener as Listener,
        PhaseStarted as PhaseStarted,
        ProgressEvent as ProgressEvent,
        RunEnded as RunEnded,
    )
    from tradeassay.runs.play.resume import resume as resume, run as run
    from tradeassay.runs.score import (
        AgentScores as AgentScores,
        EpisodeScores as EpisodeScores,
        Inference as Inference,
        Scores as Scores,
    )
    from tradeassay.runs.spec.episode import Asking as Asking, EpisodeSpec as EpisodeSpec, expand as expand
    from tradeassay.runs.spec.plan import Plan as Plan, plan as plan
    from tradeassay.runs.spec.run_spec import (
        AgentSpec as AgentSpec,
        RunSpec as RunSpec,
        Window as Window,
        load_spec as load_spec,
    )
    from tradeassay.runs.store.frames import Frames as Frames
    from tradeassay.runs.store.manifest import CodeManifest as CodeManifest, RunManifest as RunManifest
    from tradeassay.runs.store.outcome import Outcome as Outcome, Violation as Violation
    from tradeassay.runs.store.run import CodeRun as CodeRun, Run as Run, load_run as load_run
    from tradeassay.runs.summary.comparison import RunComparison as RunComparison, compare as compare
    from tradeassay.runs.verify.report import VerifyReport as VerifyReport
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
