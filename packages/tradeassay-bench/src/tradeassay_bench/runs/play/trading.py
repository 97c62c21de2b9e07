"""Split a trading run into tasks for an executor: data, episodes, scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import msgspec

from tradeassay.core.hashing import sha256_file
from tradeassay.core.our_code import is_ours
from tradeassay_bench.agents import agents, check_agent
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors import Spread, make_executor
from tradeassay_bench.core.executors.task import (
    ExecutorName,
    Lost,
    Stopping,
    Task,
    TaskExecutor,
    TaskResult,
    Tick,
)
from tradeassay_bench.play import MarketConfig
from tradeassay_bench.play.journal import read_lines
from tradeassay_bench.runs.play.episodes import (
    PlayTask,
    copy_recorded_answers,
    play,
    play_in_worker,
    play_models,
    play_task,
)
from tradeassay_bench.runs.play.progress import Finished, RunWatch
from tradeassay_bench.runs.score import (
    GatherTask,
    Scored,
    ScoreTask,
    encode_scores,
    gather,
    score_agent,
)
from tradeassay_bench.runs.spec.episode import EpisodeSpec, Options, expand, refuse_bad_models
from tradeassay_bench.runs.spec.run_spec import RunSpec
from tradeassay_bench.runs.store.folder import RunFolder, present_versions
from tradeassay_bench.runs.store.manifest import (
    DatasetEntry,
    PrepareTask,
    RunManifest,
    WantedWindow,
    agent_files,
    build_manifest,
    describe,
    played_as,
)
from tradeassay_bench.runs.store.outcome import Outcome, Played, write_outcome
from tradeassay_bench.runs.verify.checks import Checked, CheckTask, check_episode


class Trading:
    """A trading run: its data, its episodes and its scores as tasks for an executor.

    Call :meth:`prepare` first. The constructor raises :class:`~tradeassay.core.errors.UserError`
    for a spec that cannot run.
    """

    _executor: TaskExecutor
    _datasets: dict[str, DatasetEntry]

    def __init__(self, spec: RunSpec, options: Options) -> None:
        self._spec, self._options, self._home = spec, options, options.home
        self._episodes = expand(spec)
        for episode in self._episodes:
            check_agent(episode.agent.name, episode.agent.params, replay=options.asking.replay)
        if any(episode.by_model for episode in self._episodes):
            refuse_bad_models(self._episodes, options.asking, options.home)

    def prepare(self, watch: RunWatch, stack: ExitStack) -> RunManifest:
        """Start the executor, prepare every data set, and return the manifest of the run.

        Raises an error if the data does not support a benchmark. ``stack`` closes the executor.
        """
        modules, own_script = modules_of(self._episodes)
        name: ExecutorName = (
            "inline" if own_script and self._options.executor == "local" else self._options.executor
        )
        self._executor = stack.enter_context(
            make_executor(name, entry=ENTRY, workers=self._options.workers, modules=modules)
        )
        benchmarks_played = {
            episode.benchmark: played_as(benchmarks.get(episode.benchmark), episode, self._spec)
            for episode in self._episodes
        }
        wanted = prepare_tasks(self._episodes, benchmarks_played, self._home)
        tasks = [Task(name, ENCODE(task)) for name, task in wanted.items()]
        entries: dict[str, DatasetEntry] = {}
        with watch.phase("data", total=len(tasks)):
            for done in self._results(tasks, None, watch):
                entries[done.key] = msgspec.msgpack.decode(done.payload, type=DatasetEntry)
                watch.listen(Finished(key=done.key))
        self._datasets = {name: entries[name] for name in wanted}
        versions, asking = present_versions(), self._options.asking
        # In a replay external agents do not run, so their files are not hashed.
        files = agent_files(
            tuple(episode for episode in self._episodes if not (asking.replay and episode.by_model))
        )
        spec, episodes, prices = self._spec, self._episodes, asking.prices
        return build_manifest(spec, episodes, self._datasets, versions, prices=prices, files=files)

    def sessions(self, manifest: RunManifest, waiting: Sequence[EpisodeSpec]) -> int:
        """Return the total number of sessions of the waiting episodes."""
        total = 0
        for episode in waiting:
            market = manifest.benchmark(episode).market
            days = self._datasets[episode.dataset].sessions
            total += sum(market.first <= day <= market.last for day in days)
        return total

    def play(
        self,
        manifest: RunManifest,
        place: RunFolder,
        waiting: Sequence[EpisodeSpec],
        watch: RunWatch,
    ) -> None:
        """Run the waiting episodes to their end.

        Episodes of agents that answer directly run first, on the executor's workers. Then the
        episodes of models run, in this process, because they need little processor time. With
        ``executor="ray"`` they run on the nodes of the cluster. If there is a cap on dollars, they
        always run in this process, because all episodes must share one budget.
        """
        model_tasks: list[PlayTask] = []
        tasks: list[Task] = []
        for episode in waiting:
            task = play_task(place, self._home, manifest, episode)
            if episode.by_model:
                model_tasks.append(task)
            else:
                tasks.append(Task(episode.key, ENCODE(task)))
        for done in self._results(tasks, place, watch):
            watch.played(done.key, msgspec.msgpack.decode(done.payload, type=Played))
        asking = self._options.asking
        if self._options.executor != "ray" or asking.max_usd is not None:
            if model_tasks:
                play_models(model_tasks, place, asking, watch.listen, watch.played)
            return
        copy_recorded_answers([task.episode.key for task in model_tasks], place, asking)
        play_task_in_worker = partial(
            play_in_worker,
            RunFolder(place.path.absolute()),
            msgspec.structs.replace(asking, recordings=None),
        )
        spread = Spread(
            executor="ray", workers=self._options.workers, modules=modules_of(self._episodes)[0]
        )
        spread.map(
            play_task_in_worker,
            model_tasks,
            done=lambda at, played: watch.played(model_tasks[at].episode.key, played),
        )

    def scores(self, manifest: RunManifest, place: RunFolder, watch: RunWatch) -> bytes:
        """Score every agent of every setting and return the content of ``scores.json``."""
        tasks = [
            Task(key, ENCODE(task))
            for key, task in score_tasks(place, self._home, manifest).items()
        ]
        parts: list[Scored] = []
        with watch.phase("score", total=len(tasks)):
            for done in self._results(tasks, None, watch):
                parts.append(SCORED_DECODER.decode(done.payload))
                watch.listen(Finished(key=done.key))
        level = manifest.spec.bootstrap.level
        whole = GatherTask(
            work_sha256=manifest.work_sha256,
            episodes=manifest.episodes,
            parts=tuple(parts),
            level=level,
        )
        (done,) = self._results([Task("scores", ENCODE(whole))], None, watch)
        return done.payload

    def _results(
        self, tasks: Sequence[Task], place: RunFolder | None, watch: RunWatch
    ) -> Iterator[TaskResult]:
        """Perform tasks on the executor and yield their results.

        An episode whose process died repeatedly is recorded as failed, with the complete lines of
        its journal, and has no result here. ``place`` is None for tasks that are not episodes. If
        the process of such a task died, :class:`RunError` is raised.
        """
        for result in self._executor.perform(tasks, watch.tick):
            if not isinstance(result, Lost):
                yield result
                continue
            key = result.key
            if place is None or not place.episode(key).is_dir():
                hint = "free some memory, or use workers=1 to see the error"
                raise RunError(f"{key}: {result.reason}", hint=hint)
            events = place.events(key)
            lines, length = read_lines(events)
            events.touch()
            os.truncate(events, length)
            digest = sha256_file(events)
            outcome = Outcome(
                status="failed", steps=len(lines), events_sha256=digest, error=result.reason
            )
            write_outcome(place.outcome(key), outcome)
            watch.finished(key, outcome)


def prepare_tasks(
    episodes: Sequence[EpisodeSpec], benchmarks: Mapping[str, Benchmark], home: str | None
) -> dict[str, PrepareTask]:
    """Return one task per data set, with all markets and named windows that the episodes need.

    ``benchmarks`` contains the benchmark of every episode by its id.
    """
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
            dataset=name,
            home=home,
            markets=tuple(ways.values()),
            windows=tuple(windows.get(name, ())),
        )
        for name, ways in markets.items()
    }


def score_tasks(
    place: RunFolder,
    home: str | None,
    manifest: RunManifest,
    benchmark: Callable[[EpisodeSpec], Benchmark] | None = None,
) -> dict[str, ScoreTask]:
    """Return one task per agent and setting, in the spec's order.

    ``benchmark`` returns the benchmark of an episode. The default is the manifest's benchmark.
    """
    played = benchmark or manifest.benchmark
    groups: dict[tuple[str, str], list[EpisodeSpec]] = {}
    baselines: dict[str, EpisodeSpec] = {}
    for episode in manifest.episodes:
        groups.setdefault((episode.setting, episode.label), []).append(episode)
        if episode.baseline:
            baselines[episode.setting] = episode
    return {
        f"{setting}__{label}": ScoreTask(
            folder=str(place.path.absolute()),
            home=home,
            episodes=tuple(members),
            baseline=baselines[setting],
            benchmark=played(members[0]),
            data_sha256=manifest.datasets[members[0].dataset].sha256,
            bootstrap=manifest.spec.bootstrap,
        )
        for (setting, label), members in groups.items()
    }


def modules_of(episodes: Sequence[EpisodeSpec]) -> tuple[tuple[str, ...], bool]:
    """Return the external modules that register the agents, and whether a script registers one.

    The second value is true if an agent is defined in the caller's script. Modules of tradeassay
    are left out. Agents that are not registered here are left out too, because a recorded run must
    not determine which modules are imported.
    """
    names = dict.fromkeys(episode.agent.name for episode in episodes)
    modules = dict.fromkeys(agents.get(name).__module__ for name in names if name in agents)
    external = tuple(module for module in modules if not is_ours(module))
    return tuple(module for module in external if module != "__main__"), "__main__" in external


ENTRY = "tradeassay_bench.runs.play.trading:perform"
"""The import path of :func:`perform`, for executors."""
_DECODER = msgspec.msgpack.Decoder(PrepareTask | PlayTask | ScoreTask | GatherTask | CheckTask)
ENCODE = msgspec.msgpack.Encoder().encode
SCORED_DECODER = msgspec.msgpack.Decoder(Scored)
CHECKED_DECODER = msgspec.msgpack.Decoder(Checked)


def perform(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    """Perform an encoded task in a worker process and return the encoded result."""
    task = _DECODER.decode(payload)
    if isinstance(task, PrepareTask):
        return ENCODE(describe(task))
    if isinstance(task, PlayTask):
        return ENCODE(play(task, tick, stopping))
    if isinstance(task, CheckTask):
        return ENCODE(check_episode(task))
    if isinstance(task, GatherTask):
        return encode_scores(gather(task.work_sha256, task.episodes, task.parts, level=task.level))
    return ENCODE(score_agent(task))
