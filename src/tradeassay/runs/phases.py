"""The three phases of a run, each a set of tasks for an executor: data, play, score."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tradeassay.benchmarks import Benchmark
from tradeassay.core.errors import RunError
from tradeassay.core.hashing import sha256_file
from tradeassay.play import MarketConfig
from tradeassay.play.journal import read_lines
from tradeassay.runs.episode import Episode
from tradeassay.runs.executors import Done, Executor, Lost, Task
from tradeassay.runs.layout import RunFolder
from tradeassay.runs.manifest import DatasetEntry, RunManifest
from tradeassay.runs.model_pool import play_models
from tradeassay.runs.models import Asking
from tradeassay.runs.outcome import Outcome, read_outcome, write_outcome
from tradeassay.runs.progress import Advanced, Finished, Listener, PhaseStarted
from tradeassay.runs.progress import Phase as PhaseName
from tradeassay.runs.scores import Scores
from tradeassay.runs.scoring import gather
from tradeassay.runs.tasks import (
    ENCODE,
    PLAYED_DECODER,
    PREPARED_DECODER,
    SCORED_DECODER,
    Played,
    PlayTask,
    PrepareTask,
    Scored,
    ScoreTask,
    WantedWindow,
)


class Phases:
    """Turns a run into tasks and their results into files; remembers how long things took."""

    def __init__(self, place: RunFolder, home: str | None, listen: Listener) -> None:
        self.episode_seconds: dict[str, float] = {}
        self.phase_seconds: dict[str, float] = {}
        self._place = place
        self._home = home
        self._listen = listen

    def prepare(
        self, executor: Executor, episodes: Sequence[Episode], benchmarks: Mapping[str, Benchmark]
    ) -> dict[str, DatasetEntry]:
        """Make every data set ready, see that it can be played as the benchmarks say, and return what it is."""
        wanted = prepare_tasks(episodes, benchmarks, self._home)
        names = list(wanted)
        tasks = [Task(name, ENCODE(task)) for name, task in wanted.items()]
        entries: dict[str, DatasetEntry] = {}
        with self._phase("data", PhaseStarted(phase="data", total=len(names))):
            for done in self._results(executor, tasks):
                entries[done.key] = PREPARED_DECODER.decode(done.payload)
                self._listen(Finished(key=done.key))
        return {name: entries[name] for name in names}

    def play(
        self,
        executor: Executor,
        manifest: RunManifest,
        datasets: Mapping[str, DatasetEntry],
        *,
        retry_failed: bool,
        asking: Asking,
    ) -> int:
        """Play every episode that has not ended and return how many there were.

        Agents that answer at once play first, on the executor's workers; then the models, all in this process:
        what they wait for is not a processor.
        """
        waiting = [episode for episode in manifest.episodes if self._has_work(episode, retry_failed)]
        tasks = [
            Task(episode.key, ENCODE(self._play_task(manifest, episode)))
            for episode in waiting
            if not episode.by_model
        ]
        talking = [self._play_task(manifest, episode) for episode in waiting if episode.by_model]
        sessions = sum(_sessions(manifest, episode, datasets[episode.dataset]) for episode in waiting)
        if waiting:
            # Scores speak of all episodes: while one is missing there are none.
            self._place.scores.unlink(missing_ok=True)
        with self._phase("play", PhaseStarted(phase="play", total=len(waiting), sessions=sessions)):
            for done in self._results(executor, tasks):
                self._played(done.key, PLAYED_DECODER.decode(done.payload))
            if talking:
                play_models(talking, self._place, asking, self._listen, self._played)
        return len(waiting)

    def score(self, executor: Executor, manifest: RunManifest) -> Scores:
        """Score every agent of every cell."""
        tasks = [Task(key, ENCODE(task)) for key, task in score_tasks(self._place, self._home, manifest).items()]
        parts: list[Scored] = []
        with self._phase("score", PhaseStarted(phase="score", total=len(tasks))):
            for done in self._results(executor, tasks):
                parts.append(SCORED_DECODER.decode(done.payload))
                self._listen(Finished(key=done.key))
        return gather(manifest.work_sha256, manifest.episodes, parts)

    @contextmanager
    def _phase(self, name: PhaseName, started: PhaseStarted) -> Iterator[None]:
        began = time.perf_counter()
        self._listen(started)
        try:
            yield
        finally:
            self.phase_seconds[name] = time.perf_counter() - began

    def _results(self, executor: Executor, tasks: Sequence[Task]) -> Iterator[Done]:
        """Yield results; a task whose process died is tried once more, because most such deaths are accidents."""
        lost = yield from self._attempt(executor, tasks)
        again = [task for task in tasks if task.key in lost]
        for key, reason in (yield from self._attempt(executor, again)).items():
            if not self._place.episode(key).is_dir():
                raise RunError(f"{key}: {reason}", mend="free some memory, or use workers=1 to see the error")
            self._record_death(key, reason)

    def _attempt(self, executor: Executor, tasks: Sequence[Task]) -> Generator[Done, None, dict[str, str]]:
        lost: dict[str, str] = {}
        for result in executor.perform(tasks, self._tick):
            if isinstance(result, Lost):
                lost[result.key] = result.reason
            else:
                yield result
        return lost

    def _tick(self, key: str, sessions: int) -> None:
        self._listen(Advanced(key=key, sessions=sessions))

    def _played(self, key: str, played: Played) -> None:
        self.episode_seconds[key] = played.seconds
        if played.outcome is not None:
            self._finished(key, played.outcome)

    def _finished(self, key: str, outcome: Outcome) -> None:
        self._listen(Finished(key=key, status=outcome.status, error=outcome.error))

    def _record_death(self, key: str, reason: str) -> None:
        events = self._place.events(key)
        lines, length = read_lines(events)
        if events.exists():
            with events.open("rb+") as file:
                file.truncate(length)
        else:
            events.touch()
        outcome = Outcome(status="failed", steps=len(lines), events_sha256=sha256_file(events), error=reason)
        write_outcome(self._place.outcome(key), outcome)
        self._finished(key, outcome)

    def _has_work(self, episode: Episode, retry_failed: bool) -> bool:
        path = self._place.outcome(episode.key)
        outcome = read_outcome(path)
        if outcome is None:
            return True
        if retry_failed and outcome.status == "failed":
            path.unlink()
            self._place.events(episode.key).unlink(missing_ok=True)
            self._place.dialogue(episode.key).unlink(missing_ok=True)
            return True
        events = self._place.events(episode.key)
        if not events.is_file() or sha256_file(events) != outcome.events_sha256:
            raise RunError(
                f"the journal of {episode.key} is not the one its outcome.json speaks of",
                mend=f"delete {self._place.episode(episode.key)} and resume: it is played again",
            )
        return False

    def _play_task(self, manifest: RunManifest, episode: Episode) -> PlayTask:
        return PlayTask(
            folder=str(self._place.path.absolute()),
            home=self._home,
            episode=episode,
            benchmark=manifest.benchmark(episode),
            data_sha256=manifest.datasets[episode.dataset].sha256,
        )


def prepare_tasks(
    episodes: Sequence[Episode], benchmarks: Mapping[str, Benchmark], home: str | None
) -> dict[str, PrepareTask]:
    """Return one task per data set: all ways in which it will be played, all named windows it must have."""
    markets: dict[str, dict[str, MarketConfig]] = {}
    windows: dict[str, dict[WantedWindow, None]] = {}
    for episode in episodes:
        benchmark = benchmarks[episode.benchmark]
        markets.setdefault(episode.dataset, {})
        if episode.window is None:
            markets[episode.dataset][episode.benchmark] = benchmark.market
        else:
            wanted = WantedWindow(
                protocol=benchmark.protocol, convention=benchmark.convention, code=episode.window
            )
            windows.setdefault(episode.dataset, {})[wanted] = None
    return {
        name: PrepareTask(
            dataset=name, home=home, markets=tuple(ways.values()), windows=tuple(windows.get(name, ()))
        )
        for name, ways in markets.items()
    }


def score_tasks(place: RunFolder, home: str | None, manifest: RunManifest) -> dict[str, ScoreTask]:
    """Return one task per agent and cell, in the spec's order."""
    groups: dict[tuple[str, str], list[Episode]] = {}
    baselines: dict[str, Episode] = {}
    for episode in manifest.episodes:
        groups.setdefault((episode.cell, episode.label), []).append(episode)
        if episode.baseline:
            baselines[episode.cell] = episode
    return {
        f"{cell}__{label}": ScoreTask(
            folder=str(place.path.absolute()),
            home=home,
            episodes=tuple(members),
            baseline=baselines[cell],
            benchmark=manifest.benchmark(members[0]),
            data_sha256=manifest.datasets[members[0].dataset].sha256,
            bootstrap=manifest.spec.bootstrap,
        )
        for (cell, label), members in groups.items()
    }


def _sessions(manifest: RunManifest, episode: Episode, dataset: DatasetEntry) -> int:
    market = manifest.benchmark(episode).market
    return sum(market.first <= day <= market.last for day in dataset.sessions)
