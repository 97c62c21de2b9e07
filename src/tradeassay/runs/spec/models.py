"""Models by name: how those of a run are asked, what its manifest keeps of them, and all that are known here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.agents import ModelAgent, ModelConfig, make_conversing, model_params
from tradeassay.agents.model import NAME as MODEL
from tradeassay.benchmarks import Benchmark
from tradeassay.core.errors import MissingExtra, TradeassayError, UserError
from tradeassay.core.executors import ExecutorName
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
from tradeassay.runs.spec.episode import EpisodeSpec, protocol_config


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """How models are asked. This is not part of the run's identity: a run may be continued with other options.

    ``concurrency`` episodes talk at the same time. ``max_usd`` is a hard cap on what the whole run spends.
    ``replay`` takes recorded answers only, with no network; ``cassettes`` is another run whose recorded answers
    are taken over. ``prices`` is a file of prices that override the packaged ones, ``base_url`` another server.
    Raises :class:`UserError` for nonsensical numbers.
    """

    concurrency: int = 8
    max_usd: float | None = None
    replay: bool = False
    cassettes: Path | None = None
    prices: Path | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        remember_address(self.base_url)
        if self.concurrency < 1:
            raise UserError(f"{self.concurrency} episodes cannot be played at a time", hint="give 1 or more")
        if self.max_usd is not None and not self.max_usd > 0:
            raise UserError(f"a cap of {self.max_usd:g} dollars buys nothing", hint="give a positive amount")


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


def describe_models(episodes: Sequence[EpisodeSpec], prices_file: Path | None = None) -> dict[str, ModelRecord]:
    """Return what the manifest keeps of every model of a run, by its label."""
    played = {episode.label: episode for episode in episodes if episode.agent.name == MODEL}
    if not played:
        return {}
    prices, cutoffs = load_prices(prices_file), load_cutoffs()
    found: dict[str, ModelRecord] = {}
    for label, episode in played.items():
        name = model_config(episode).model
        price, cutoff = prices.of(name), cutoffs.of(name)
        found[label] = ModelRecord(
            model=name,
            params=dict(episode.agent.params),
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
    """Raise for whatever is certain to make every question to a model fail.

    That is a model that does not exist, an extra or a key that is missing, or a cap on a model without a known
    price. All that is wrong is said at once.
    """
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

    def price_words(self) -> str:
        if self.input_usd is None or self.output_usd is None:
            return "price unknown"
        free = self.input_usd == 0 and self.output_usd == 0
        return "free" if free else f"{self.input_usd:g} / {self.output_usd:g} ({self.price_as_of})"

    def cutoff_words(self) -> str:
        if self.kind == "scripted":
            return "nothing"
        return "unknown" if self.cutoff is None else str(self.cutoff)


def known_models(*, prices: Path | None = None, home: Path | None = None) -> tuple[ModelInfo, ...]:
    """Return every model that is known here: scripted, then local, then those in the tables."""
    priced, cutoffs = load_prices(prices), load_cutoffs()
    found = [
        ModelInfo(name=f"scripted/{name}", kind="scripted", note=model.summary, input_usd=0.0, output_usd=0.0)
        for name, model in scripted_models.items()
    ]
    for name, local in local_models.items():
        cutoff = cutoffs.of(f"local/{name}")
        here = "on this machine"
        try:
            find_local_model(parse_name(f"local/{name}"), home)
        except UserError:
            here = f"not here: tradeassay models --get {name}"
        found.append(
            ModelInfo(
                name=f"local/{name}",
                kind="local",
                note=f"{local.title}; {here}",
                input_usd=0.0,
                output_usd=0.0,
                cutoff=None if cutoff is None else cutoff.last_day,
            )
        )
    for name in sorted({*priced.prices, *cutoffs.cutoffs}):
        if name.endswith("/*") or name.startswith(("local/", "scripted/")):
            continue
        price, cutoff = priced.of(name), cutoffs.of(name)
        found.append(
            ModelInfo(
                name=name,
                kind="provider",
                note="" if price is None else price.source,
                input_usd=None if price is None else price.input,
                output_usd=None if price is None else price.output,
                price_as_of=None if price is None else price.as_of,
                cutoff=None if cutoff is None else cutoff.last_day,
            )
        )
    return tuple(found)
