"""Plan, run, verify, score and compare recorded runs.

A frozen spec is expanded into episodes. Every episode writes a journal, and scores are computed
from the journals. There are trading runs, and runs in which models write programs. ``run`` starts
or continues a run. ``resume`` continues a run, ``verify`` checks it, ``compare`` compares two runs,
and ``plan`` estimates the cost of a run. Names are imported on first use because some modules are
slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from tradeassay_bench.play.dialogue_log import (
        DialogueLine as DialogueLine,
        Spending as Spending,
    )
    from tradeassay_bench.runs.play.progress import (
        Advanced as Advanced,
        Answered as Answered,
        AskStarted as AskStarted,
        Finished as Finished,
        Listener as Listener,
        PhaseStarted as PhaseStarted,
        ProgressEvent as ProgressEvent,
        RunEnded as RunEnded,
    )
    from tradeassay_bench.runs.play.resume import resume as resume, run as run
    from tradeassay_bench.runs.score import (
        AgentScores as AgentScores,
        EpisodeScores as EpisodeScores,
        Inference as Inference,
        Scores as Scores,
    )
    from tradeassay_bench.runs.spec.episode import (
        Asking as Asking,
        EpisodeSpec as EpisodeSpec,
        expand as expand,
    )
    from tradeassay_bench.runs.spec.plan import Plan as Plan, plan as plan
    from tradeassay_bench.runs.spec.run_spec import (
        AgentSpec as AgentSpec,
        RunSpec as RunSpec,
        Window as Window,
        load_spec as load_spec,
    )
    from tradeassay_bench.runs.store.frames import Frames as Frames
    from tradeassay_bench.runs.store.manifest import (
        CodeManifest as CodeManifest,
        RunManifest as RunManifest,
    )
    from tradeassay_bench.runs.store.outcome import Outcome as Outcome, Violation as Violation
    from tradeassay_bench.runs.store.run import CodeRun as CodeRun, Run as Run, load_run as load_run
    from tradeassay_bench.runs.summary.comparison import (
        RunComparison as RunComparison,
        compare as compare,
    )
    from tradeassay_bench.runs.verify.report import VerifyReport as VerifyReport
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.play.dialogue_log": ["DialogueLine", "Spending"],
            "tradeassay_bench.runs.play.progress": [
                "Advanced",
                "Answered",
                "AskStarted",
                "Finished",
                "Listener",
                "PhaseStarted",
                "ProgressEvent",
                "RunEnded",
            ],
            "tradeassay_bench.runs.play.resume": ["resume", "run"],
            "tradeassay_bench.runs.score": ["AgentScores", "EpisodeScores", "Inference", "Scores"],
            "tradeassay_bench.runs.spec.episode": ["Asking", "EpisodeSpec", "expand"],
            "tradeassay_bench.runs.spec.plan": ["Plan", "plan"],
            "tradeassay_bench.runs.spec.run_spec": ["AgentSpec", "RunSpec", "Window", "load_spec"],
            "tradeassay_bench.runs.store.frames": ["Frames"],
            "tradeassay_bench.runs.store.manifest": ["CodeManifest", "RunManifest"],
            "tradeassay_bench.runs.store.outcome": ["Outcome", "Violation"],
            "tradeassay_bench.runs.store.run": ["CodeRun", "Run", "load_run"],
            "tradeassay_bench.runs.summary.comparison": ["RunComparison", "compare"],
            "tradeassay_bench.runs.verify.report": ["VerifyReport"],
        },
    )
