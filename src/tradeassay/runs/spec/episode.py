"""From a spec to its episodes: one agent, one data set, one benchmark, one seed each, with a readable key.

Models and foreign agents play an episode in the benchmark's conversation; its protocol, settings and prompt files
are found here too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from tradeassay.agents import converses
from tradeassay.benchmarks import Benchmark, ModelProtocol, ProtocolConfig, benchmarks, protocols
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_file, sha256_of
from tradeassay.core.suggest import did_you_mean
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
        return self.agent.title


def expand(spec: RunSpec, lookup: Callable[[str], Benchmark] = benchmarks.get) -> tuple[EpisodeSpec, ...]:
    """Return the episodes of a spec, in a fixed order with stable keys.

    A key depends only on the episode itself: other agents, seeds or benchmarks in the spec do not move it.
    Raises :class:`UserError` for an unknown benchmark, one of another convention, settings that its conversation
    does not have, or clashing keys.
    """
    episodes: list[EpisodeSpec] = []
    for name in spec.benchmarks:
        benchmark = lookup(name)
        if benchmark.convention != spec.convention:
            raise UserError(
                f"benchmark '{name}' follows the convention '{benchmark.convention}', not '{spec.convention}'",
                hint="run it on its own: a report never mixes conventions",
            )
        if any(converses(agent.name) for agent in spec.agents):
            protocol_of(benchmark)
        for settings in spec.variants if spec.protocol else ():
            open_protocol(benchmark, settings)
        for dataset in spec.datasets.get(name, (benchmark.dataset,)):
            for settings in spec.variants:
                for window in spec.windows or (None,):
                    parts = (safe_name(name), dataset_name(dataset), variant_name(settings, window))
                    cell = "__".join(part for part in parts if part is not None)
                    for agent, seed, baseline, added in _players(spec, benchmark.baseline):
                        episodes.append(
                            EpisodeSpec(
                                key=f"{cell}__{agent.title}__s{seed}",
                                cell=cell,
                                benchmark=name,
                                dataset=dataset,
                                agent=agent,
                                seed=seed,
                                baseline=baseline,
                                added=added,
                                protocol=settings,
                                window=window,
                            )
                        )
    seen: set[str] = set()
    for episode in episodes:
        if episode.key.casefold() in seen:
            raise UserError(
                f"two episodes would be called '{episode.key}'",
                hint="give the agents different labels; the baseline's name is taken",
            )
        seen.add(episode.key.casefold())
    return tuple(episodes)


def _players(spec: RunSpec, baseline: str) -> list[tuple[AgentSpec, int, bool, bool]]:
    """Return (agent, seed, is the baseline, was added) for everything that plays in a cell of a benchmark."""
    plain = AgentSpec(name=baseline)
    own = next((agent for agent in spec.agents if agent.name == plain.name and not agent.params), None)
    first = spec.seeds[0]
    # A baseline that the spec did not name is a rule, and plays once.
    found = [] if own is not None else [(plain, first, True, True)]
    return found + [
        (agent, seed, agent is own and seed == first, False) for agent in spec.agents for seed in spec.seeds
    ]


def dataset_name(dataset: str) -> str:
    """Return a data set's name as part of a key: ``synthetic/us:7`` becomes ``synthetic+us=7``."""
    if dataset.startswith("synthetic/"):
        return safe_name(dataset.replace("/", "+").replace(":", "="))
    return safe_name(dataset)


# -- the conversation that models have in an episode ---


class ProtocolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest keeps of a conversation: its settings in full, their hash, and that of every prompt.

    ``code_sha256`` is the hash of the protocol's file when it is not part of tradeassay.
    """

    protocol: str
    config: dict[str, ParamValue | None]
    config_sha256: str
    prompts: dict[str, str]
    code_sha256: str | None = None


def protocol_of(benchmark: Benchmark) -> type[ModelProtocol]:
    """Return a benchmark's protocol; raises :class:`UserError` when it has none for models."""
    if benchmark.protocol not in protocols:
        raise UserError(
            f"benchmark '{benchmark.id}' has no conversation: models cannot play it",
            hint=f"choose one whose protocol is among {', '.join(protocols.names()) or 'none'}",
        )
    return protocols.get(benchmark.protocol)


def with_protocol(benchmark: Benchmark, overrides: Mapping[str, ParamValue]) -> Benchmark:
    """Return a benchmark with the conversation settings in ``overrides``."""
    if not overrides:
        return benchmark
    return msgspec.structs.replace(benchmark, protocol_params={**benchmark.protocol_params, **overrides})


def protocol_config(benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None) -> ProtocolConfig:
    """Return the settings of a benchmark's conversation.

    Raises :class:`UserError` for an unknown setting, with near names, for an invalid value, and for a setting that
    belongs to the benchmark itself.
    """
    config = protocol_of(benchmark).Config
    given = dict(overrides or {})
    known = [field.encode_name for field in msgspec.structs.fields(config)]
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known, f"it has {', '.join(known) or 'none'}")
            raise UserError(f"benchmark '{benchmark.id}' has no setting '{key}'", hint=hint)
    if given.get("convention", benchmark.convention) != benchmark.convention:
        raise UserError(
            f"benchmark '{benchmark.id}' follows the convention '{benchmark.convention}'",
            hint="run the benchmark that follows the other one",
        )
    values = {**benchmark.protocol_params, **given}
    try:
        return msgspec.convert(values, config, strict=False)
    except msgspec.ValidationError as error:
        where = re.search(r"^(.*) - at `\$\.(\w+)", str(error))
        if where is None:
            raise UserError(f"benchmark '{benchmark.id}': {error}", hint="correct the setting") from error
        complaint, key = where.groups()
        hint = complaint.replace("`", "").replace("Expected", "it wants")
        for field in msgspec.inspect.type_info(config).fields:  # type: ignore[attr-defined]  # a struct has fields
            if field.encode_name == key and isinstance(field.type, msgspec.inspect.LiteralType):
                hint = f"it is one of {', '.join(map(str, field.type.values))}"
        raise UserError(f"benchmark '{benchmark.id}' cannot take {key}={values.get(key)!r}", hint=hint) from error


def open_protocol(benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None) -> ModelProtocol:
    """Return a fresh protocol for one episode; raises :class:`UserError` for nonsensical settings."""
    return protocol_of(benchmark)(protocol_config(benchmark, overrides))


def describe_protocol(benchmark: Benchmark) -> ProtocolRecord:
    """Return what a manifest keeps of a benchmark's conversation."""
    kind, config = protocol_of(benchmark), protocol_config(benchmark)
    package, module = kind.__module__.partition(".")[0], sys.modules.get(kind.__module__)
    file = Path(found) if (found := getattr(module, "__file__", None)) else None
    # Prompts are below the protocol's top-level package, or next to a module outside any package.
    loose = file is not None and module is not None and not module.__package__

    def prompt(name: str) -> bytes:
        return (file.parent if loose and file is not None else files(package)).joinpath(name).read_bytes()

    return ProtocolRecord(
        protocol=benchmark.protocol,
        config=msgspec.to_builtins(config),
        config_sha256=sha256_of(config),
        prompts={name: sha256_bytes(prompt(name)) for name in kind.prompts},
        code_sha256=sha256_file(file) if package != "tradeassay" and file is not None and file.is_file() else None,
    )
