"""Prepare episodes for the frontends, with the same data, rules and conversation as in a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.events import Deposited, Marked, StepRecord
from tradeassay_bench.data import Snapshot
from tradeassay_bench.runs.play.trading import prepare_tasks
from tradeassay_bench.runs.spec.episode import EpisodeSpec, expand
from tradeassay_bench.runs.spec.run_spec import AgentSpec, ParamValue, RunSpec, model_agent
from tradeassay_bench.runs.store.manifest import (
    describe,
    played_as,
    snapshot_for,
    windows_by_setting,
)


@dataclass(frozen=True, slots=True)
class PreparedEpisode:
    """An episode with its benchmark, its data and the secret of its aliases."""

    episode: EpisodeSpec
    benchmark: Benchmark
    snapshot: Snapshot
    secret: str | None = None


def spec_for(
    benchmark: str,
    settings: Mapping[str, ParamValue],
    *,
    window: str | None = None,
    dataset: str | None = None,
    seeds: int = 1,
    secret: str | None = None,
    agent: AgentSpec | None = None,
) -> RunSpec:
    """Return the spec of a run with ``agent``.

    If the benchmark accepts a ``secret``, aliases are drawn from it. Raises :class:`UserError` for
    the same invalid input as a run.
    """
    benchmark = benchmarks.full_name(benchmark)
    return RunSpec(
        name="inspect" if agent is None else agent.title,
        benchmarks=(benchmark,),
        agents=(agent or model_agent("inspect/model"),),
        datasets={} if dataset is None else {benchmark: (dataset,)},
        seeds=tuple(range(seeds)),
        convention=benchmarks.get(benchmark).convention,
        protocol=dict(settings),
        windows=() if window is None else (window,),
        secret=secret or UNSET,
    )


def plots_of(spec: RunSpec) -> list[PreparedEpisode]:
    """Return the episodes of a run of one benchmark that have a conversation."""
    (benchmark,) = spec.benchmarks
    config = benchmarks.get(benchmark)
    episodes = tuple(episode for episode in expand(spec) if episode.by_model)
    first = episodes[0]
    task = prepare_tasks(episodes, {benchmark: config}, None)[first.dataset]
    entry = describe(task)
    named = windows_by_setting(episodes, {first.dataset: entry}).get(first.setting)
    snapshot = snapshot_for(first.dataset, None, entry.sha256)
    drawn = (spec.secret or None) if config.takes_secret else None
    return [
        PreparedEpisode(episode, played_as(config, episode, spec, named), snapshot, drawn)
        for episode in episodes
    ]


def earned(journal: Sequence[StepRecord]) -> float | None:
    """Return an account's return so far, or None before the first session is over."""
    if not journal:
        return None
    start = next(event.cash for event in journal[0].opening if isinstance(event, Deposited))
    marks = [event for event in journal[-1].events if isinstance(event, Marked)]
    return marks[-1].nav / start - 1.0
