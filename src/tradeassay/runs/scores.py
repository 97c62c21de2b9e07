"""``scores.json``: every number with its interval, or null and the reason.

The file depends on the spec (its slug aside), the data and the journals, on nothing else: no time, no path, no
machine. Scoring the same run again gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.core.errors import RunError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.measure import Measure
from tradeassay.metrics import Comparison, SeedSummary
from tradeassay.runs.inference import Inference
from tradeassay.runs.outcome import Status

SCORES_FORMAT = 1


class EpisodeScores(msgspec.Struct, frozen=True, kw_only=True):
    """One episode. ``reason`` says why a failed one has no result; ``inference`` what a model's answers took."""

    key: str
    cell: str
    benchmark: str
    dataset: str
    agent: str
    seed: int
    baseline: bool
    status: Status
    reason: str | None
    steps: int
    events_sha256: str
    measures: dict[str, Measure]
    rejections: dict[str, int] = {}
    failures: dict[str, int] = {}
    inference: Inference | msgspec.UnsetType = msgspec.UNSET


class AgentScores(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one cell, over its seeds: a row of the leaderboard.

    ``versus_baseline`` is None for the baseline itself. ``p_adjusted`` is its p-value after Holm's correction for
    the number of agents that were compared in the cell; ``added`` marks a baseline that the spec did not name.
    """

    cell: str
    benchmark: str
    dataset: str
    agent: str
    baseline: bool
    added: bool
    episodes: tuple[str, ...]
    failed: int
    measures: dict[str, SeedSummary]
    versus_baseline: Comparison | None
    p_adjusted: float | None = None
    inference: Inference | msgspec.UnsetType = msgspec.UNSET


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of a run: ``episodes`` in the spec's order, ``agents`` likewise."""

    format: int = SCORES_FORMAT
    work_sha256: str
    episodes: tuple[EpisodeScores, ...]
    agents: tuple[AgentScores, ...]

    def episode(self, key: str) -> EpisodeScores:
        """Return one episode's scores; raises :class:`RunError` when there is none."""
        for episode in self.episodes:
            if episode.key == key:
                return episode
        raise RunError(f"no episode '{key}' in the scores", mend="see run.episodes for the keys")


def encode_scores(scores: Scores) -> bytes:
    """Return the exact content of ``scores.json``."""
    return msgspec.json.format(canonical_json(scores), indent=1) + b"\n"


def read_scores(path: Path) -> Scores:
    """Read ``scores.json``; raises :class:`RunError` when it is missing or damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no scores yet", mend=f"tradeassay resume {path.parent}") from None
    try:
        return msgspec.json.decode(content, type=Scores)
    except msgspec.DecodeError as error:
        raise RunError(f"{path} is damaged: {error}", mend="delete it and resume: it is computed again") from error
