"""From a spec to its episodes: one agent, one data set, one benchmark, one seed each, with a readable key.

Models and foreign agents play an episode in the benchmark's conversation; its protocol, settings and prompt files
are found here too."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from tradeassay.agents import ModelAgent, ModelConfig, converses, make_conversing, model_params
from tradeassay.agents.model import NAME as MODEL
from tradeassay.benchmarks import Benchmark, ModelProtocol, ProtocolConfig, benchmarks, protocols
from tradeassay.core.arguments import check_fields, filled, instance_of, refuse_unknown
from tradeassay.core.dialogue import ModelReply
from tradeassay.core.errors import MissingExtra, ModelError, TradeassayError, UserError
from tradeassay.core.executors.task import ExecutorName
from tradeassay.core.hashing import sha256_bytes, sha256_file, sha256_of
from tradeassay.core.secrets import remember_address
from tradeassay.llm import (
    Access,
    ModelParams,
    check_model,
    find_local_model,
    load_cutoffs,
    load_prices,
    local_models,
    parse_name,
    scripted_models,
)
from tradeassay.llm.tables import own_file, price_line
from tradeassay.runs.spec.run_spec import AgentSpec, ParamValue, RunSpec, safe_name, variant_name


class EpisodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to play. ``cell`` names the benchmark, the data set and the point of the grid: agents of one cell
    are compared with each other. In every cell one episode is the ``baseline``; it is ``added`` when the spec did
    not ask for that agent itself. ``protocol`` says how the conversation of models differs here, ``window`` names
    the sessions. Where programs are written there is a ``task`` instead of a data set."""

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


def expand(spec: RunSpec) -> tuple[EpisodeSpec, ...]:
    """Return the episodes of a spec, in a fixed order with stable keys. A key depends only on the episode itself:
    other agents, seeds or benchmarks in the spec do not move it. Raises :class:`UserError` for an unknown
    benchmark, one of another convention, settings that its conversation does not have, or clashing keys."""
    episodes: dict[str, EpisodeSpec] = {}
    for name in spec.benchmarks:
        benchmark = benchmarks.get(name)
        if benchmark.convention != spec.convention:
            raise UserError(
                f"benchmark '{name}' follows the convention '{benchmark.convention}', not '{spec.convention}'",
                hint="run it on its own: a report never mixes conventions",
            )
        if any(converses(agent.name) for agent in spec.agents):
            protocol_of(benchmark)
        for settings in spec.variants if spec.protocol else ():
            open_protocol(benchmark, settings)
        plain, first = AgentSpec(name=benchmark.baseline), spec.seeds[0]
        own = next((agent for agent in spec.agents if agent.name == plain.name and not agent.params), None)
        # Who plays, its seed, whether it is the baseline; one the spec did not name is a rule, and plays once.
        players = [] if own is not None else [(plain, first, True)]
        players += [(agent, seed, agent is own and seed == first) for agent in spec.agents for seed in spec.seeds]
        grid = itertools.product(
            spec.datasets.get(name, (benchmark.dataset,)), spec.variants, spec.windows or (None,)
        )
        for dataset, settings, window in grid:
            called = dataset  # ``synthetic/us:7`` becomes ``synthetic+us=7``
            if dataset.startswith("synthetic/"):
                called = dataset.replace("/", "+").replace(":", "=")
            parts = (safe_name(name), safe_name(called), variant_name(settings, window))
            cell = "__".join(part for part in parts if part is not None)
            for agent, seed, baseline in players:
                key = f"{cell}__{agent.title}__s{seed}"
                if key.casefold() in episodes:
                    raise UserError(
                        f"two episodes would be called '{key}'",
                        hint="give the agents different labels; the baseline's name is taken",
                    )
                episodes[key.casefold()] = EpisodeSpec(
                    key=key,
                    cell=cell,
                    benchmark=name,
                    dataset=dataset,
                    agent=agent,
                    seed=seed,
                    baseline=baseline,
                    added=agent is plain,
                    protocol=settings,
                    window=window,
                )
    return tuple(episodes.values())


# -- the conversation that models have in an episode ---


class ProtocolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest keeps of a conversation: its settings in full, their hash, and that of every prompt.
    ``code_sha256`` is the hash of the protocol's code when it is not part of tradeassay."""

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
    if not overrides:
        return benchmark
    return msgspec.structs.replace(benchmark, protocol_params={**benchmark.protocol_params, **overrides})


def protocol_config(benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None) -> ProtocolConfig:
    """Return the settings of a benchmark's conversation. Raises :class:`UserError` for an unknown setting, with
    near names, for an invalid value, and for a setting that belongs to the benchmark itself."""
    config = protocol_of(benchmark).Config
    given = dict(overrides or {})
    known = [field.encode_name for field in msgspec.structs.fields(config)]
    refuse_unknown(given, known, f"benchmark '{benchmark.id}'", "setting")
    if given.get("convention", benchmark.convention) != benchmark.convention:
        raise UserError(
            f"benchmark '{benchmark.id}' follows the convention '{benchmark.convention}'",
            hint="run the benchmark that follows the other one",
        )
    values = {**benchmark.protocol_params, **given}
    return filled(config, values, f"benchmark '{benchmark.id}'", hint="correct the setting")


def open_protocol(benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None) -> ModelProtocol:
    """Return a fresh protocol for one episode; raises :class:`UserError` for nonsensical settings."""
    return protocol_of(benchmark)(protocol_config(benchmark, overrides))


def code_sha256(module: str) -> str | None:
    """Return the hash of a module's file, or of all Python files of the outermost package that it is in: what it
    does may be in any of them. None for our own code, which has a version, and for code without a file."""
    parts = module.split(".")
    around = (sys.modules.get(".".join(parts[:n])) for n in range(1, len(parts) + 1))
    # A namespace has no file: then the package is the one in it.
    file = next((Path(found) for one in around if (found := getattr(one, "__file__", None))), None)
    if parts[0] == "tradeassay" or file is None or not file.is_file():
        return None
    inside = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    hashes = {path.relative_to(file.parent).as_posix(): sha256_file(path) for path in inside}
    return sha256_of(hashes) if len(hashes) > 1 else sha256_file(file)


def describe_protocol(benchmark: Benchmark) -> ProtocolRecord:
    kind, config = protocol_of(benchmark), protocol_config(benchmark)
    package, module = kind.__module__.partition(".")[0], sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    # Prompts are below the protocol's top-level package, or next to a module outside any package.
    beside = Path(file).parent if file and module is not None and not module.__package__ else None
    return ProtocolRecord(
        protocol=benchmark.protocol,
        config=msgspec.to_builtins(config),
        config_sha256=sha256_of(config),
        prompts={
            name: sha256_bytes((beside or files(package)).joinpath(name).read_bytes()) for name in kind.prompts
        },
        code_sha256=code_sha256(kind.__module__),
    )


class CapReached(ModelError):
    """A cap on dollars is reached: a question was not asked."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """How models are asked. This is not part of the run's identity: a run may be continued with other options.

    ``concurrency`` episodes talk at the same time. ``max_usd`` is a hard cap on what the whole run spends, and
    ``spent_usd`` what was spent under that cap elsewhere, by other runs of the same study. ``replay`` takes
    recorded answers only, with no network; ``cassettes`` is another run whose recorded answers are taken over.
    ``prices`` is a file of prices that override the packaged ones, ``base_url`` another server.
    Raises :class:`UserError` for nonsensical numbers."""

    concurrency: int = 8
    max_usd: float | None = None
    spent_usd: float = 0.0
    replay: bool = False
    cassettes: Path | None = None
    prices: Path | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        for name in ("cassettes", "prices"):
            if isinstance(path := getattr(self, name), str):
                msgspec.structs.force_setattr(self, name, Path(path))
        check_fields(self)
        remember_address(self.base_url)
        if self.concurrency < 1:
            raise UserError(f"{self.concurrency} episodes cannot be played at a time", hint="give 1 or more")
        if self.max_usd is not None and not self.max_usd > 0:
            raise UserError(f"a cap of {self.max_usd:g} dollars buys nothing", hint="give a positive amount")
        if not 0 <= self.spent_usd < float("inf"):
            raise UserError(f"{self.spent_usd:g} dollars cannot have been spent", hint="give 0 or more")

    def unanswered(self, model: str, reply: ModelReply) -> ModelError:
        """Return what to raise where nobody answered: what happened, what to do, and whether answers are kept."""
        kept = "answers are kept" if self.cassettes else "answers are kept only with cassettes=FOLDER"
        if reply.error_kind == "over_budget":
            return CapReached(f"{model} was not asked: {reply.error}", hint=f"give a larger max_usd=; {kept}")
        return ModelError(f"{model} was not reached: {reply.error}", hint=f"try again; {kept}")


def asking_of(given: Asking | None) -> Asking:
    """Return how models are asked, as usual where nothing is said of it."""
    hint = "write e.g. asking=tradeassay.Asking(max_usd=5)"
    return Asking() if given is None else instance_of("asking", given, Asking, hint)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is carried out. Nothing here changes a byte of its result, except a budget that runs out."""

    executor: ExecutorName = "local"
    workers: int | None = None
    home: str | None = None
    retry_failed: bool = False
    asking: Asking = Asking()


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was known about a model when the run was started. ``price_as_of`` is None when the price is unknown."""

    model: str
    params: dict[str, float | int | str | bool]
    price_as_of: date | None
    price_source: str | None
    cutoff: date | None


def record_models(
    asked: Mapping[str, tuple[str, dict[str, float | int | str | bool]]], prices_file: Path | None
) -> dict[str, ModelRecord]:
    """Return what is known here about models, given with their parameters under any name."""
    if not asked:
        return {}
    prices, cutoffs = load_prices(prices_file), load_cutoffs()
    found: dict[str, ModelRecord] = {}
    for label, (name, params) in asked.items():
        price, cutoff = prices.of(name), cutoffs.of(name)
        found[label] = ModelRecord(
            model=name,
            params=params,
            price_as_of=None if price is None else price.as_of,
            price_source=None if price is None else price.source,
            cutoff=None if cutoff is None else cutoff.last_day,
        )
    return found


def model_config(episode: EpisodeSpec) -> ModelConfig:
    """Return the settings of an episode's model; raises :class:`UserError` when they are wrong."""
    agent = make_conversing(episode.agent.name, episode.agent.params)
    assert isinstance(agent, ModelAgent)
    return agent.config


def params_for(episode: EpisodeSpec, benchmark: Benchmark) -> ModelParams:
    """Return what is sent with every request of an episode; ``benchmark`` is as the episode plays it."""
    return model_params(model_config(episode), protocol_config(benchmark))


def refuse_bad_models(episodes: Sequence[EpisodeSpec], asking: Asking, home: str | None = None) -> None:
    """Raise, before anything is written, for whatever is certain to make every day of an episode fail."""
    refuse_bad_names(
        [model_config(episode).model for episode in episodes if episode.agent.name == MODEL], asking, home
    )


def refuse_bad_names(names: Iterable[str], asking: Asking, home: str | None = None) -> None:
    """Raise for whatever is certain to make every question to a model fail. That is a model that does not exist,
    an extra or a key that is missing, or a cap on a model without a known price. All that is wrong is said at
    once."""
    prices, wrong = load_prices(asking.prices), []
    access = Access(base_url=asking.base_url, home=None if home is None else Path(home))
    for name in dict.fromkeys(names):
        if asking.max_usd is not None and prices.of(name) is None:
            raise UserError(
                f"the price of {name} is unknown, so a cap of {asking.max_usd:g} dollars cannot be kept",
                hint=f"run without a cap, or write into {own_file()}: {price_line(name)}",
            )
        if asking.replay:
            continue
        try:
            check_model(name, access)
        except MissingExtra:
            raise
        except TradeassayError as error:
            wrong.append(error)
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        said = "; ".join(error.message for error in wrong)
        raise UserError(said, hint=f"{wrong[0].hint or 'leave them out'}; nothing was played")


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model, its price per million tokens and its knowledge cutoff. None means "unknown"."""

    name: str
    kind: Literal["scripted", "local", "provider"]
    note: str
    input_usd: float | None = None
    output_usd: float | None = None
    price_as_of: date | None = None
    cutoff: date | None = None


def known_models() -> tuple[ModelInfo, ...]:
    """Return every model that is known here: scripted, then local, then those in the tables."""
    priced, cutoffs = load_prices(), load_cutoffs()
    found = [
        ModelInfo(name=f"scripted/{name}", kind="scripted", note=model.summary, input_usd=0.0, output_usd=0.0)
        for name, model in scripted_models.items()
    ]
    for name, local in local_models.items():
        full, here = f"local/{name}", "on this machine"
        try:
            find_local_model(parse_name(full))
        except UserError:
            here = f"not here: tradeassay models --get {name}"
        known, note = cutoffs.of(full), f"{local.title}; {here}"
        last = None if known is None else known.last_day
        found.append(ModelInfo(name=full, kind="local", note=note, input_usd=0.0, output_usd=0.0, cutoff=last))
    for name in sorted({*priced.prices, *cutoffs.cutoffs}):
        if name.endswith("/*") or name.startswith(("local/", "scripted/")):
            continue
        known, price, note = cutoffs.of(name), priced.of(name), ""
        last = None if known is None else known.last_day
        paid: dict[str, Any] = {}
        if price is not None:
            note = price.source
            paid = {"input_usd": price.input, "output_usd": price.output, "price_as_of": price.as_of}
        found.append(ModelInfo(name=name, kind="provider", note=note, cutoff=last, **paid))
    return tuple(found)
