"""From a spec to its episodes: one agent, one data set, one benchmark, one seed each, with a readable key."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tradeassay.agents import converses
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.errors import UserError
from tradeassay.runs.spec.conversation import open_protocol, protocol_of
from tradeassay.runs.spec.run_spec import AgentSpec, ParamValue, RunSpec, safe_name, variant_name


class EpisodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to play.

    ``cell`` names the benchmark, the data set and the point of the grid: agents of one cell are compared with each
    other. In every cell one episode is the ``baseline``; it is ``added`` when the spec did not ask for that agent
    itself. ``protocol`` says how the conversation of models differs here, ``window`` names the sessions. Where
    programs are written there is a ``task`` instead of a data set.
    """

    key: str
    cell: str
    benchmark: str
    dataset: str
    agent: AgentSpec
    seed: int
    baseline: bool = False
    added: bool = False
    protocol: dict[str, ParamValue] = {}
    window: str | None = None
    task: str = ""

    @property
    def model(self) -> str:
        """The name of the language model that plays it; empty when none does."""
        return str(self.agent.params.get("model", "")) if self.by_model else ""

    @property
    def by_model(self) -> bool:
        """Whether it is played in the benchmark's conversation: by a language model, or by a foreign agent."""
        return converses(self.agent.name)

    @property
    def label(self) -> str:
        """What the agent is called."""
        return self.agent.title


def expand(spec: RunSpec, lookup: Callable[[str], Benchmark] = benchmarks.get) -> tuple[EpisodeSpec, ...]:
    """Return the episodes of a spec, in a fixed order with stable keys.

    A key depends only on the episode itself: other agents, seeds or benchmarks in the spec do not move it.
    Raises :class:`UserError` for an unknown benchmark, one of another convention, or clashing keys.
    """
    episodes: list[EpisodeSpec] = []
    for name in spec.benchmarks:
        benchmark = lookup(name)
        if benchmark.convention != spec.convention:
            raise UserError(
                f"benchmark '{name}' follows the convention '{benchmark.convention}', not '{spec.convention}'",
                hint="run it on its own: a report never mixes conventions",
            )
        _check_conversation(spec, benchmark)
        for dataset in spec.datasets.get(name, (benchmark.dataset,)):
            for settings in spec.variants:
                for window in spec.windows or (None,):
                    episodes += _cell(spec, name, benchmark.baseline, (dataset, settings, window))
    _refuse_clashes(episodes)
    return tuple(episodes)


def _check_conversation(spec: RunSpec, benchmark: Benchmark) -> None:
    """Check that models can play, and that every combination of settings is valid."""
    if any(converses(agent.name) for agent in spec.agents):
        protocol_of(benchmark)
    if spec.protocol:
        for settings in spec.variants:
            open_protocol(benchmark, settings)


def _cell(
    spec: RunSpec, benchmark: str, baseline_name: str, place: tuple[str, dict[str, ParamValue], str | None]
) -> list[EpisodeSpec]:
    dataset, settings, window = place
    cell = f"{safe_name(benchmark)}__{dataset_name(dataset)}"
    variant = variant_name(settings, window)
    if variant is not None:
        cell = f"{cell}__{variant}"
    plain = AgentSpec(name=baseline_name)
    own = next((agent for agent in spec.agents if agent.name == plain.name and not agent.params), None)
    agents = spec.agents if own is not None else (plain, *spec.agents)
    baseline = own or plain
    return [
        EpisodeSpec(
            key=f"{cell}__{agent.title}__s{seed}",
            cell=cell,
            benchmark=benchmark,
            dataset=dataset,
            agent=agent,
            seed=seed,
            baseline=agent is baseline and seed == spec.seeds[0],
            added=own is None and agent is plain,
            protocol=settings,
            window=window,
        )
        for agent in agents
        for seed in (spec.seeds[:1] if own is None and agent is plain else spec.seeds)
    ]


def dataset_name(dataset: str) -> str:
    """Return a data set's name as part of a key: ``synthetic/us:7`` becomes ``synthetic+us=7``."""
    if dataset.startswith("synthetic/"):
        return safe_name(dataset.replace("/", "+").replace(":", "="))
    return safe_name(dataset)


def _refuse_clashes(episodes: list[EpisodeSpec]) -> None:
    seen: set[str] = set()
    for episode in episodes:
        folded = episode.key.casefold()
        if folded in seen:
            raise UserError(
                f"two episodes would be called '{episode.key}'",
                hint="give the agents different labels; the baseline's name is taken",
            )
        seen.add(folded)
