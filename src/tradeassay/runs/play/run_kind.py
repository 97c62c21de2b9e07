"""What both kinds of run share while they are carried out: options, a watch, and the parts they provide.

A track knows how its run is described, played and scored; :mod:`tradeassay.runs.play.runner` does everything else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self, TypeVar

import msgspec

from tradeassay.core.executors import ExecutorName
from tradeassay.runs.play.progress import Advanced, Finished, Listener, Phase, PhaseStarted
from tradeassay.runs.play.worker_tasks import Played
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.spec.models import Asking
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.manifest import Manifest
from tradeassay.runs.store.outcome import Outcome

M = TypeVar("M", bound=Manifest)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is carried out. Nothing here changes a byte of its result, except a budget that runs out."""

    executor: ExecutorName = "local"
    workers: int | None = None
    home: str | None = None
    retry_failed: bool = False
    asking: Asking = Asking()


class RunWatch:
    """Tells the listener what happens, and remembers how long it took."""

    def __init__(self, listen: Listener) -> None:
        self.listen = listen
        self.episode_seconds: dict[str, float] = {}
        self.phase_seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: Phase, *, total: int, sessions: int = 0) -> Iterator[None]:
        """Time one part of a run."""
        began = time.perf_counter()
        self.listen(PhaseStarted(phase=name, total=total, sessions=sessions))
        try:
            yield
        finally:
            self.phase_seconds[name] = time.perf_counter() - began

    def tick(self, key: str, sessions: int) -> None:
        """Say that sessions of an episode were played."""
        self.listen(Advanced(key=key, sessions=sessions))

    def played(self, key: str, played: Played) -> None:
        """Say that an episode was played, to its end or until it was told to stop."""
        self.episode_seconds[key] = played.seconds
        if played.outcome is not None:
            self.finished(key, played.outcome)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Say how an episode ended."""
        words = "" if isinstance(outcome.program, msgspec.UnsetType) else outcome.words
        self.listen(Finished(key=key, status=outcome.status, error=outcome.error, words=words))


class Track(Protocol[M]):
    """One run to be carried out. Creating one raises for whatever is certain to fail, before anything is written.

    A context manager: it holds the resources of the run.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def describe(self, watch: RunWatch) -> M:
        """Return the manifest of the run as it would be started now."""
        ...

    def sessions(self, manifest: M, waiting: Sequence[EpisodeSpec]) -> int:
        """Return how many sessions are to be played, 0 where unknown."""
        ...

    def play(self, manifest: M, place: RunFolder, waiting: Sequence[EpisodeSpec], watch: RunWatch) -> None:
        """Play episodes to their end and record how each ended; raises what stops a run."""
        ...

    def scores(self, manifest: M, place: RunFolder, watch: RunWatch) -> bytes:
        """Return the content of ``scores.json``."""
        ...
