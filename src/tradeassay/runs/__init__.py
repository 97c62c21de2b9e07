"""Runs: a frozen spec becomes episodes, episodes become journals, journals become scores. All of it on disk.

The same for runs that trade and for runs in which models write programs.

``run`` starts or continues, ``resume`` continues, ``verify`` checks, ``compare`` puts two side by side, ``plan``
says what a run would take. The names are imported on first use, because some of them are heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.play.dialogue_log import DialogueLine, Spending
    from tradeassay.runs.comparison import RunComparison, compare
    from tradeassay.runs.episode import Episode, expand
    from tradeassay.runs.frames import Frames
    from tradeassay.runs.manifest import CodeManifest, RunManifest
    from tradeassay.runs.models import Asking
    from tradeassay.runs.outcome import Outcome, Violation
    from tradeassay.runs.planning import Plan, plan
    from tradeassay.runs.progress import (
        Advanced,
        Answered,
        AskStarted,
        Finished,
        Listener,
        PhaseStarted,
        ProgressEvent,
        RunEnded,
    )
    from tradeassay.runs.quantcode import QuantCodeSpec
    from tradeassay.runs.recorded import CodeRun, Run, load_run
    from tradeassay.runs.runner import resume, run
    from tradeassay.runs.scores import AgentScores, EpisodeScores, Inference, Scores
    from tradeassay.runs.spec import AgentSpec, RunSpec, Window, load_spec
    from tradeassay.runs.systrade import SystradeSpec
    from tradeassay.runs.verification import VerifyReport, verify

_HOMES = {
    "Advanced": "progress",
    "AgentScores": "scores",
    "AgentSpec": "spec",
    "Answered": "progress",
    "AskStarted": "progress",
    "Asking": "models",
    "DialogueLine": "recorded",
    "Episode": "episode",
    "EpisodeScores": "scores",
    "Finished": "progress",
    "Frames": "frames",
    "Inference": "scores",
    "Listener": "progress",
    "Outcome": "outcome",
    "PhaseStarted": "progress",
    "Plan": "planning",
    "ProgressEvent": "progress",
    "CodeRun": "recorded",
    "CodeManifest": "manifest",
    "Run": "recorded",
    "load_run": "recorded",
    "QuantCodeSpec": "quantcode",
    "SystradeSpec": "systrade",
    "RunComparison": "comparison",
    "RunEnded": "progress",
    "RunManifest": "manifest",
    "RunSpec": "spec",
    "Scores": "scores",
    "Spending": "outcome",
    "VerifyReport": "verification",
    "Violation": "outcome",
    "Window": "spec",
    "compare": "comparison",
    "expand": "episode",
    "load_spec": "spec",
    "plan": "planning",
    "resume": "runner",
    "run": "runner",
    "verify": "verification",
}

__all__ = [
    "Advanced",
    "AgentScores",
    "AgentSpec",
    "Answered",
    "AskStarted",
    "Asking",
    "CodeManifest",
    "CodeRun",
    "DialogueLine",
    "Episode",
    "EpisodeScores",
    "Finished",
    "Frames",
    "Inference",
    "Listener",
    "Outcome",
    "PhaseStarted",
    "Plan",
    "ProgressEvent",
    "QuantCodeSpec",
    "Run",
    "RunComparison",
    "RunEnded",
    "RunManifest",
    "RunSpec",
    "Scores",
    "Spending",
    "SystradeSpec",
    "VerifyReport",
    "Violation",
    "Window",
    "compare",
    "expand",
    "load_run",
    "load_spec",
    "plan",
    "resume",
    "run",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
