"""Episodes prepared for other frontends: data, rules and conversation as a run would have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.events import Deposited, Marked, StepRecord
from tradeassay.data import Snapshot
from tradeassay.runs.play.trading import prepare_tasks
from tradeassay.runs.spec.episode import EpisodeSpec, expand
from tradeassay.runs.spec.run_spec import AgentSpec, ParamValue, RunSpec, model_agent
from tradeassay.runs.store.manifest import describe, played_as, snapshot_for, windows_by_cell


@dataclass(frozen=True, slots=True)
class PreparedEpisode:
    """What an episode is played on, and how."""

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
    """Return the run of a task, which ``agent`` plays; raises :class:`UserError` for whatever a run would refuse.
    ``secret`` is what aliases are drawn from, for a benchmark that takes one."""
    benchmark = benchmarks.full_name(benchmark)
    return RunSpec(
        slug="inspect" if agent is None else agent.title,
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
    """Return the episodes of a run of one benchmark that are played in its conversation."""
    (benchmark,) = spec.benchmarks
    config = benchmarks.get(benchmark)
    episodes = tuple(episode for episode in expand(spec) if episode.by_model)
    first = episodes[0]
    task = prepare_tasks(episodes, {benchmark: config}, None)[first.dataset]
    entry = describe(task)
    named = windows_by_cell(episodes, {first.dataset: entry}).get(first.cell)
    snapshot = snapshot_for(first.dataset, None, entry.sha256)
    drawn = (spec.secret or None) if config.takes_secret else None
    return [
        PreparedEpisode(episode, played_as(config, episode, spec, named), snapshot, drawn) for episode in episodes
    ]


def earned(journal: Sequence[StepRecord]) -> float | None:
    """Return what an account made so far; None before the first session is over."""
    if not journal:
        return None
    start = next(event.cash for event in journal[0].opening if isinstance(event, Deposited))
    return [event.nav for event in journal[-1].events if isinstance(event, Marked)][-1] / start - 1.0
