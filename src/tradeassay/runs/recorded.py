"""A recorded run: everything that is known about it, read from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from tradeassay.core.badges import Badges
from tradeassay.core.errors import RunError
from tradeassay.core.events import StepRecord
from tradeassay.core.near import did_you_mean
from tradeassay.data import Snapshot
from tradeassay.metrics import EpisodeSeries
from tradeassay.play.dialogue_log import DialogueLine, read_dialogue
from tradeassay.play.journal import read_records
from tradeassay.runs.episode import Episode
from tradeassay.runs.layout import RunFolder
from tradeassay.runs.manifest import RunManifest, read_manifest
from tradeassay.runs.outcome import Outcome, read_outcome
from tradeassay.runs.scores import Scores, read_scores
from tradeassay.runs.scoring import ended, series_of
from tradeassay.runs.snapshots import snapshot_for
from tradeassay.runs.spec import RunSpec

if TYPE_CHECKING:
    from tradeassay.runs.frames import Frames

_LIVELINESS = ("none", "scripted", "replayed", "live")


class Run:
    """One run on disk. Reading it changes nothing; what is large is read when it is asked for.

    ``home`` is where the data store is, needed for index levels and prices only.
    """

    def __init__(self, folder: Path, manifest: RunManifest, *, home: str | None = None) -> None:
        self._place = RunFolder(folder)
        self._manifest = manifest
        self._home = home
        self._by_key = {episode.key: episode for episode in manifest.episodes}
        self._series = lru_cache(maxsize=64)(self._read_series)

    @classmethod
    def load(cls, folder: Path | str, *, home: Path | str | None = None) -> Self:
        """Open a run; raises :class:`RunError` when there is none in ``folder``."""
        path = Path(folder)
        manifest = read_manifest(RunFolder(path).manifest)
        return cls(path, manifest, home=None if home is None else str(home))

    def __repr__(self) -> str:
        state = "complete" if self.complete else "unfinished"
        return f"<Run '{self.spec.slug}' {len(self.episodes)} episodes, {state}, in {self.folder}>"

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self._place.path

    @property
    def manifest(self) -> RunManifest:
        """What was run, on what, with what."""
        return self._manifest

    @property
    def spec(self) -> RunSpec:
        """What was asked for."""
        return self._manifest.spec

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """What it consists of, in the spec's order."""
        return self._manifest.episodes

    @property
    def complete(self) -> bool:
        """Whether every episode has ended and the scores are written."""
        return self._place.scores.is_file() and all(
            self._place.outcome(episode.key).is_file() for episode in self.episodes
        )

    @property
    def failed(self) -> tuple[str, ...]:
        """Keys of the episodes that failed."""
        return tuple(
            episode.key
            for episode in self.episodes
            if (outcome := self.outcome(episode.key)) is not None and outcome.status == "failed"
        )

    @property
    def scores(self) -> Scores:
        """All numbers; raises :class:`RunError` while the run is unfinished."""
        return read_scores(self._place.scores)

    def episode(self, key: str) -> Episode:
        """Return one episode; raises :class:`RunError` with near names when there is none."""
        try:
            return self._by_key[key]
        except KeyError:
            mend = did_you_mean(key, self._by_key, "see run.episodes")
            raise RunError(f"no episode '{key}' in {self.folder}", mend=mend) from None

    def outcome(self, key: str) -> Outcome | None:
        """Return how an episode ended, None when it has not."""
        return read_outcome(self._place.outcome(self.episode(key).key))

    def badges(self, key: str) -> Badges:
        """Return what a reader must know before believing a number of an episode."""
        outcome = self.outcome(key)
        badges = self._manifest.badges(self.episode(key))
        if outcome is None or isinstance(outcome.model, msgspec.UnsetType):
            return badges
        return msgspec.structs.replace(badges, model=outcome.model.answers)

    def cell_badges(self, cell: str) -> Badges:
        """Return what a reader must know before believing a table of a cell: its liveliest model counts."""
        badges = [self.badges(episode.key) for episode in self.episodes if episode.cell == cell]
        if not badges:
            raise RunError(f"no cell '{cell}' in {self.folder}", mend="see the cells of run.episodes")
        return max(badges, key=lambda badge: _LIVELINESS.index(badge.model))

    def dialogue(self, key: str) -> Iterator[DialogueLine]:
        """Yield what a model was asked in an episode and what it said; nothing where no model played."""
        return read_dialogue(self._place.dialogue(self.episode(key).key))

    def records(self, key: str) -> Iterator[StepRecord]:
        """Yield an episode's journal; raises :class:`RunError` when it is missing or torn."""
        return read_records(self._place.events(self.episode(key).key))

    def series(self, key: str) -> EpisodeSeries:
        """Return an episode session by session; raises :class:`RunError` when it has not ended."""
        return self._series(key)

    def snapshot(self, key: str) -> Snapshot:
        """Open the data an episode was played on; raises :class:`RunError` when it has changed."""
        episode = self.episode(key)
        return snapshot_for(episode.dataset, self._home, self._manifest.datasets[episode.dataset].sha256)

    def frames(self, kind: Literal["polars", "pandas"] = "polars") -> Frames:
        """Return nav, trades, rejections, decisions, positions and scores as data frames."""
        from tradeassay.runs.frames import build_frames

        return build_frames(self, kind)

    def _read_series(self, key: str) -> EpisodeSeries:
        episode = self.episode(key)
        outcome = ended(self._place, episode)
        return series_of(self._place, episode, outcome, self._manifest.benchmark(episode), self.snapshot(key))
