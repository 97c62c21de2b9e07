"""Runs: a frozen spec becomes episodes, episodes become journals, journals become scores. All of it on disk.

The same for runs that trade and for runs in which models write programs.

``run`` starts or continues, ``resume`` continues, ``verify`` checks, ``compare`` puts two side by side, ``plan``
estimates what a run would take. The names are imported on first use, because some of them are heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.benchmarks.quantcode.spec import QuantCodeSpec as QuantCodeSpec
    from tradeassay.benchmarks.systrade.spec import SystradeSpec as SystradeSpec
    from tradeassay.play.dialogue_log import DialogueLine as DialogueLine
    from tradeassay.play.dialogue_log import Spending as Spending
    from tradeassay.runs.play.progress import Advanced as Advanced
    from tradeassay.runs.play.progress import Answered as Answered
    from tradeassay.runs.play.progress import AskStarted as AskStarted
    from tradeassay.runs.play.progress import Finished as Finished
    from tradeassay.runs.play.progress import Listener as Listener
    from tradeassay.runs.play.progress import PhaseStarted as PhaseStarted
    from tradeassay.runs.play.progress import ProgressEvent as ProgressEvent
    from tradeassay.runs.play.progress import RunEnded as RunEnded
    from tradeassay.runs.play.resume import resume as resume
    from tradeassay.runs.play.resume import run as run
    from tradeassay.runs.score import AgentScores as AgentScores
    from tradeassay.runs.score import EpisodeScores as EpisodeScores
    from tradeassay.runs.score import Inference as Inference
    from tradeassay.runs.score import Scores as Scores
    from tradeassay.runs.spec.episode import Asking as Asking
    from tradeassay.runs.spec.episode import EpisodeSpec as EpisodeSpec
    from tradeassay.runs.spec.episode import expand as expand
    from tradeassay.runs.spec.plan import Plan as Plan
    from tradeassay.runs.spec.plan import plan as plan
    from tradeassay.runs.spec.run_spec import AgentSpec as AgentSpec
    from tradeassay.runs.spec.run_spec import RunSpec as RunSpec
    from tradeassay.runs.spec.run_spec import Window as Window
    from tradeassay.runs.spec.run_spec import load_spec as load_spec
    from tradeassay.runs.store.frames import Frames as Frames
    from tradeassay.runs.store.manifest import CodeManifest as CodeManifest
    from tradeassay.runs.store.manifest import RunManifest as RunManifest
    from tradeassay.runs.store.outcome import Outcome as Outcome
    from tradeassay.runs.store.outcome import Violation as Violation
    from tradeassay.runs.store.run import CodeRun as CodeRun
    from tradeassay.runs.store.run import Run as Run
    from tradeassay.runs.store.run import load_run as load_run
    from tradeassay.runs.summary.comparison import RunComparison as RunComparison
    from tradeassay.runs.summary.comparison import compare as compare
    from tradeassay.runs.verify.report import VerifyReport as VerifyReport
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
