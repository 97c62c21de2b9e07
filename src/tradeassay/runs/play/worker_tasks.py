"""What is asked of an executor, as plain records: prepare data, play an episode, check one, score an agent."""

from __future__ import annotations

import msgspec

from tradeassay.benchmarks import Benchmark
from tradeassay.core.badges import Convention
from tradeassay.metrics import BootstrapConfig
from tradeassay.play import MarketConfig
from tradeassay.runs.score.scores import AgentScores, EpisodeScores
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.store.manifest import DatasetEntry
from tradeassay.runs.store.outcome import ClaimOutcome, Outcome, Violation

ENTRY = "tradeassay.runs.play.perform:perform"
"""The function that performs these tasks."""


class WantedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A named window to be found on a data set."""

    protocol: str
    convention: Convention
    code: str


class PrepareTask(msgspec.Struct, frozen=True, kw_only=True, tag="prepare"):
    """Prepare a data set for reading (generate a synthetic world), describe it, and check that it can be played.

    ``markets`` are the ways in which it will be played, ``windows`` the named windows that it must have.
    """

    dataset: str
    home: str | None
    markets: tuple[MarketConfig, ...]
    windows: tuple[WantedWindow, ...] = ()


class PlayTask(msgspec.Struct, frozen=True, kw_only=True, tag="play"):
    """Play an episode to its end, from where its journal ends. ``benchmark`` has the run's window.

    ``secret`` is what a conversation's draws are derived from, where the benchmark has any.
    """

    folder: str
    home: str | None
    episode: EpisodeSpec
    benchmark: Benchmark
    data_sha256: str
    secret: str | None = None


class ScoreTask(msgspec.Struct, frozen=True, kw_only=True, tag="score"):
    """Score all repetitions of one agent in one cell, and compare them with the cell's baseline."""

    folder: str
    home: str | None
    episodes: tuple[EpisodeSpec, ...]
    baseline: EpisodeSpec
    benchmark: Benchmark
    data_sha256: str
    bootstrap: BootstrapConfig


class CheckTask(msgspec.Struct, frozen=True, kw_only=True, tag="check"):
    """Check what an episode left behind; with ``data_sha256`` None, without its data.

    ``benchmark`` is the registered one where there is one, whatever the run says.
    """

    folder: str
    home: str | None
    episode: EpisodeSpec
    benchmark: Benchmark
    data_sha256: str | None
    secret: str | None = None


class Played(msgspec.Struct, frozen=True, kw_only=True, tag="played"):
    """How an episode ended (None: it was told to stop), and how long it took."""

    outcome: Outcome | None
    seconds: float


class Scored(msgspec.Struct, frozen=True, kw_only=True, tag="scored"):
    """The numbers of one agent in one cell."""

    episodes: tuple[EpisodeScores, ...]
    agent: AgentScores


class Checked(msgspec.Struct, frozen=True, kw_only=True, tag="checked"):
    """The violations found in an episode, what became of its claims, and its number of steps.

    ``notes`` say what is beside the record and was not looked at.
    """

    steps: int
    violations: tuple[Violation, ...]
    claims: tuple[ClaimOutcome, ...] = ()
    notes: tuple[str, ...] = ()


RunTask = PrepareTask | PlayTask | ScoreTask | CheckTask
TASK_DECODER: msgspec.msgpack.Decoder[RunTask] = msgspec.msgpack.Decoder(RunTask)
ENCODE = msgspec.msgpack.Encoder().encode
PREPARED_DECODER = msgspec.msgpack.Decoder(DatasetEntry)
PLAYED_DECODER = msgspec.msgpack.Decoder(Played)
SCORED_DECODER = msgspec.msgpack.Decoder(Scored)
CHECKED_DECODER = msgspec.msgpack.Decoder(Checked)
