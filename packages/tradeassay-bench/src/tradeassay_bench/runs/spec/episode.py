"""Expand a spec into episodes. An episode has one agent, data set, benchmark and seed.

This module also defines the options of a model's conversation, the options for access to models,
and the checks of models before a run.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal

import msgspec

from tradeassay.core.arguments import check_fields, check_keys, filled, instance_of
from tradeassay.core.errors import MissingExtra, TradeassayError, UserError
from tradeassay.core.hashing import sha256_bytes, sha256_file, sha256_of
from tradeassay.core.our_code import is_ours
from tradeassay.core.secrets import remember_address
from tradeassay_bench.agents import (
    ModelAgent,
    ModelConfig,
    converses,
    make_conversing,
    model_params,
)
from tradeassay_bench.agents.model import NAME as MODEL
from tradeassay_bench.benchmarks import (
    Benchmark,
    ModelProtocol,
    ProtocolConfig,
    benchmarks,
    protocols,
)
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.core.errors import ModelError
from tradeassay_bench.core.executors.task import ExecutorName
from tradeassay_bench.llm import (
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
from tradeassay_bench.llm.tables import own_file, price_line
from tradeassay_bench.runs.spec.run_spec import (
    AgentSpec,
    ParamValue,
    RunSpec,
    safe_name,
    variant_name,
)


class EpisodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One episode of a run.

    ``key`` is the readable id of the episode. ``setting`` names the benchmark, the data set, the
    options of the conversation and the window. Agents of one setting are compared with each other.
    In every setting one episode is the ``baseline``. The baseline is ``added`` if the spec does not
    contain its agent. ``protocol`` contains the options of the conversation that the spec changes.
    ``window`` is the name of a window, or None for the window of the benchmark. In a run of
    programs a ``task`` replaces the data set.
    """

    key: str
    setting: str = msgspec.field(name="cell")
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
        """Return the name of the episode's language model; empty without a model."""
        return str(self.agent.params.get("model", "")) if self.by_model else ""

    @property
    def by_model(self) -> bool:
        """Return whether the agent answers in a conversation.

        This is true for language models and for external agents over HTTP, over a pipe or in
        Python.
        """
        return converses(self.agent.name)

    @property
    def label(self) -> str:
        """Return the label of the agent."""
        return self.agent.title


def expand(spec: RunSpec) -> tuple[EpisodeSpec, ...]:
    """Return the episodes of a spec, in a fixed order with stable keys.

    A key depends only on its episode. Other agents, seeds or benchmarks in the spec do not change
    it. Raises :class:`UserError` for an unknown benchmark, for a benchmark with a different
    convention than the spec, for options that the conversation does not have, and for equal keys.
    """
    episodes: dict[str, EpisodeSpec] = {}
    for name in spec.benchmarks:
        benchmark = benchmarks.get(name)
        if benchmark.convention != spec.convention:
            raise UserError(
                f"benchmark '{name}' follows the convention '{benchmark.convention}', not "
                f"'{spec.convention}'",
                hint="run it separately: a report never mixes conventions",
            )
        if any(converses(agent.name) for agent in spec.agents):
            protocol_of(benchmark)
        for settings in spec.variants if spec.protocol else ():
            open_protocol(benchmark, settings)
        plain, first = AgentSpec(name=benchmark.baseline), spec.seeds[0]
        own = next(
            (agent for agent in spec.agents if agent.name == plain.name and not agent.params), None
        )
        # Each player is an agent, a seed, and whether it is the baseline. A baseline that is not in
        # the spec is a rule and runs only once.
        players = [] if own is not None else [(plain, first, True)]
        players += [
            (agent, seed, agent is own and seed == first)
            for agent, seed in product(spec.agents, spec.seeds)
        ]
        grid = itertools.product(
            spec.datasets.get(name, (benchmark.dataset,)), spec.variants, spec.windows or (None,)
        )
        for dataset, settings, window in grid:
            called = dataset  # ``synthetic/us:7`` becomes ``synthetic+us=7``
            if dataset.startswith("synthetic/"):
                called = dataset.replace("/", "+").replace(":", "=")
            parts = (safe_name(name), safe_name(called), variant_name(settings, window))
            setting = "__".join(part for part in parts if part is not None)
            for agent, seed, baseline in players:
                key = f"{setting}__{agent.title}__s{seed}"
                if key.casefold() in episodes:
                    raise UserError(
                        f"two episodes would have the key '{key}'",
                        hint="give the agents different labels; the baseline's name is taken",
                    )
                episodes[key.casefold()] = EpisodeSpec(
                    key=key,
                    setting=setting,
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


# -- the conversation of models in an episode ---


class ProtocolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest's record of a conversation: all options, their hash, and the prompts' hashes.

    ``code_sha256`` is the hash of the protocol's code. It is None for a protocol of tradeassay.
    """

    protocol: str
    config: dict[str, ParamValue | None]
    config_sha256: str
    prompts: dict[str, str]
    code_sha256: str | None = None


def protocol_of(benchmark: Benchmark) -> type[ModelProtocol]:
    """Return the class of a benchmark's protocol for conversations with models.

    Raises :class:`UserError` if the benchmark does not support models.
    """
    if benchmark.protocol not in protocols:
        raise UserError(
            f"benchmark '{benchmark.id}' has no conversation: it does not support models",
            hint="choose a benchmark with one of these protocols: "
            f"{', '.join(protocols.names()) or 'none'}",
        )
    return protocols.get(benchmark.protocol)


def with_protocol(benchmark: Benchmark, overrides: Mapping[str, ParamValue]) -> Benchmark:
    """Return the benchmark with the given options of its conversation replaced."""
    if not overrides:
        return benchmark
    return msgspec.structs.replace(
        benchmark, protocol_params={**benchmark.protocol_params, **overrides}
    )


def protocol_config(
    benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None
) -> ProtocolConfig:
    """Return the options of a benchmark's conversation.

    Raises :class:`UserError` for an unknown option or an invalid value, and if the convention
    differs from the convention of the benchmark.
    """
    config = protocol_of(benchmark).Config
    given = dict(overrides or {})
    names = [field.encode_name for field in msgspec.structs.fields(config)]
    check_keys(given, names, f"benchmark '{benchmark.id}'", "option")
    if given.get("convention", benchmark.convention) != benchmark.convention:
        raise UserError(
            f"benchmark '{benchmark.id}' follows the convention '{benchmark.convention}'",
            hint="run the benchmark with the other convention",
        )
    values = {**benchmark.protocol_params, **given}
    return filled(config, values, f"benchmark '{benchmark.id}'", hint="correct the option")


def open_protocol(
    benchmark: Benchmark, overrides: Mapping[str, ParamValue] | None = None
) -> ModelProtocol:
    """Return a new protocol for one episode. Raises :class:`UserError` for invalid options."""
    return protocol_of(benchmark)(protocol_config(benchmark, overrides))


def code_sha256(module: str) -> str | None:
    """Return the hash of a module's file, or of all Python files of its outermost package.

    Any file of the package may affect the module, so all files are hashed. Returns None for
    tradeassay's own code, which is identified by its version, and for code without a file.
    """
    parts = module.split(".")
    modules = (sys.modules.get(".".join(parts[:n])) for n in range(1, len(parts) + 1))
    # A namespace package has no file, so its subpackage is hashed.
    file = next(
        (Path(path) for imported in modules if (path := getattr(imported, "__file__", None))), None
    )
    if is_ours(module) or file is None or not file.is_file():
        return None
    inside = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    hashes = {path.relative_to(file.parent).as_posix(): sha256_file(path) for path in inside}
    return sha256_of(hashes) if len(hashes) > 1 else sha256_file(file)


def describe_protocol(benchmark: Benchmark) -> ProtocolRecord:
    """Return the record of a benchmark's conversation for the manifest."""
    kind, config = protocol_of(benchmark), protocol_config(benchmark)
    package, module = kind.__module__.partition(".")[0], sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    # Prompts are below the protocol's top-level package, or next to a module without a package.
    folder = Path(file).parent if file and module is not None and not module.__package__ else None
    return ProtocolRecord(
        protocol=benchmark.protocol,
        config=msgspec.to_builtins(config),
        config_sha256=sha256_of(config),
        prompts={
            name: sha256_bytes((folder or files(package)).joinpath(name).read_bytes())
            for name in kind.prompts
        },
        code_sha256=code_sha256(kind.__module__),
    )


class CapReached(ModelError):
    """Raised if a question was not sent because the cap on dollars is reached."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """The options for access to models.

    These options are not part of a run's identity: a run may be continued with different values.

    ``concurrency`` is the maximum number of episodes that query models at the same time.
    ``max_usd`` is the cap on the dollars that the whole run may spend. ``spent_usd`` is the amount
    that other runs of a study have spent under the same cap. With ``replay`` only recorded answers
    are used, and no model is queried. ``recordings`` is the folder of another run, whose recorded
    answers are used. ``prices`` is a file of prices, which override the packaged prices.
    ``base_url`` is the address of the server to use instead of the provider's server.

    Raises :class:`UserError` for numbers out of range.
    """

    concurrency: int = 8
    max_usd: float | None = None
    spent_usd: float = 0.0
    replay: bool = False
    recordings: Path | None = None
    prices: Path | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        for name in ("recordings", "prices"):
            if isinstance(path := getattr(self, name), str):
                msgspec.structs.force_setattr(self, name, Path(path))
        check_fields(self)
        remember_address(self.base_url)
        if self.concurrency < 1:
            raise UserError(
                f"expected 1 episode or more at a time, got {self.concurrency}",
                hint="give 1 or more",
            )
        if self.max_usd is not None and not self.max_usd > 0:
            raise UserError(
                f"expected a positive cap in dollars, got {self.max_usd:g}",
                hint="give a positive amount",
            )
        if not 0 <= self.spent_usd < float("inf"):
            raise UserError(
                f"expected the dollars spent so far, got {self.spent_usd:g}",
                hint="give 0 or more",
            )

    def unanswered(self, model: str, reply: ModelReply) -> ModelError:
        """Return the error for a question without an answer.

        The hint of the error states whether earlier answers are stored.
        """
        kept = (
            "answers are kept"
            if self.recordings
            else "answers are stored only with recordings=FOLDER"
        )
        if reply.error_kind == "over_budget":
            return CapReached(
                f"{model} was not queried: {reply.error}", hint=f"give a larger max_usd=; {kept}"
            )
        return ModelError(f"{model} could not be reached: {reply.error}", hint=f"try again; {kept}")


def asking_or_default(given: Asking | None) -> Asking:
    """Return ``given``, or the defaults if it is None.

    Raises :class:`UserError` for any other type.
    """
    hint = "write e.g. asking=tradeassay_bench.Asking(max_usd=5)"
    return Asking() if given is None else instance_of("asking", given, Asking, hint)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options for executing a run.

    They do not change the result, unless the cap on dollars ends episodes.
    """

    executor: ExecutorName = "local"
    workers: int | None = None
    home: str | None = None
    retry_failed: bool = False
    asking: Asking = Asking()


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The known facts about a model at the start of a run.

    ``price_as_of`` and ``price_source`` are the date and the source of the price. They are None if
    the price is unknown. ``cutoff`` is the last day of the model's knowledge; None if unknown.
    """

    model: str
    params: dict[str, float | int | str | bool]
    price_as_of: date | None
    price_source: str | None
    cutoff: date | None


def record_models(
    models: Mapping[str, tuple[str, dict[str, float | int | str | bool]]], prices_file: Path | None
) -> dict[str, ModelRecord]:
    """Return the known facts about models, by label.

    ``models`` maps labels to the name and the parameters of a model. ``prices_file`` overrides the
    packaged prices.
    """
    if not models:
        return {}
    prices, cutoffs = load_prices(prices_file), load_cutoffs()
    records: dict[str, ModelRecord] = {}
    for label, (name, params) in models.items():
        price, cutoff = prices.of(name), cutoffs.of(name)
        records[label] = ModelRecord(
            model=name,
            params=params,
            price_as_of=None if price is None else price.as_of,
            price_source=None if price is None else price.source,
            cutoff=None if cutoff is None else cutoff.last_day,
        )
    return records


def model_config(episode: EpisodeSpec) -> ModelConfig:
    """Return the options of an episode's model. Raises :class:`UserError` if they are invalid."""
    agent = make_conversing(episode.agent.name, episode.agent.params)
    assert isinstance(agent, ModelAgent)
    return agent.config


def params_for(episode: EpisodeSpec, benchmark: Benchmark) -> ModelParams:
    """Return the parameters of all requests of an episode.

    ``benchmark`` is the benchmark with the options of the episode.
    """
    return model_params(model_config(episode), protocol_config(benchmark))


def refuse_bad_models(
    episodes: Sequence[EpisodeSpec], asking: Asking, home: str | None = None
) -> None:
    """Check that the language models of all episodes can be queried.

    Raises the errors of :func:`refuse_bad_names`. ``home`` is the root of the data store.
    """
    refuse_bad_names(
        [model_config(episode).model for episode in episodes if episode.agent.name == MODEL],
        asking,
        home,
    )


def refuse_bad_names(names: Iterable[str], asking: Asking, home: str | None = None) -> None:
    """Check that models can be queried.

    Raises :class:`UserError` for unknown models and missing keys (one error lists all of them), and
    for a cap on dollars if the price of a model is unknown. Raises :class:`MissingExtra` if a
    package is not installed. In a replay only prices are checked.
    """
    prices, errors = load_prices(asking.prices), []
    access = Access(base_url=asking.base_url, home=None if home is None else Path(home))
    for name in dict.fromkeys(names):
        if asking.max_usd is not None and prices.of(name) is None:
            raise UserError(
                f"the price of {name} is unknown, so a cap of {asking.max_usd:g} dollars cannot be "
                "enforced",
                hint=f"run without a cap, or add to {own_file()}: {price_line(name)}",
            )
        if asking.replay:
            continue
        try:
            check_model(name, access)
        except MissingExtra:
            raise
        except TradeassayError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        problems = "; ".join(error.message for error in errors)
        raise UserError(problems, hint=f"{errors[0].hint or 'leave them out'}; no episode was run")


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model with its price and its knowledge cutoff, which are None if they are unknown.

    Prices are in dollars per million tokens.
    """

    name: str
    kind: Literal["scripted", "local", "provider"]
    note: str
    input_usd: float | None = None
    output_usd: float | None = None
    price_as_of: date | None = None
    cutoff: date | None = None


def known_models() -> tuple[ModelInfo, ...]:
    """Return every known model: scripted models, local models, then the models of providers.

    The models of providers are listed in the tables of prices and cutoffs.
    """
    priced, cutoffs = load_prices(), load_cutoffs()
    models = [
        ModelInfo(
            name=f"scripted/{name}",
            kind="scripted",
            note=model.summary,
            input_usd=0.0,
            output_usd=0.0,
        )
        for name, model in scripted_models.items()
    ]
    for name, local in local_models.items():
        full, place = f"local/{name}", "on this machine"
        try:
            find_local_model(parse_name(full))
        except UserError:
            place = f"not downloaded: tradeassay models --get {name}"
        cutoff, note = cutoffs.of(full), f"{local.title}; {place}"
        last = None if cutoff is None else cutoff.last_day
        models.append(
            ModelInfo(
                name=full, kind="local", note=note, input_usd=0.0, output_usd=0.0, cutoff=last
            )
        )
    for name in sorted({*priced.prices, *cutoffs.cutoffs}):
        if name.endswith("/*") or name.startswith(("local/", "scripted/")):
            continue
        cutoff, price, note = cutoffs.of(name), priced.of(name), ""
        last = None if cutoff is None else cutoff.last_day
        paid: dict[str, Any] = {}
        if price is not None:
            note = price.source
            paid = {
                "input_usd": price.input,
                "output_usd": price.output,
                "price_as_of": price.as_of,
            }
        models.append(ModelInfo(name=name, kind="provider", note=note, cutoff=last, **paid))
    return tuple(models)
