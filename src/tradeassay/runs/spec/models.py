"""The models of a run: their names, settings, prices and knowledge cutoffs, as the manifest keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

import msgspec

from tradeassay.agents import ModelAgent, ModelConfig, make_conversing, model_params
from tradeassay.agents.model import NAME as MODEL
from tradeassay.benchmarks import Benchmark
from tradeassay.core.errors import UserError, require
from tradeassay.core.secrets import remember_address
from tradeassay.llm import Access, ModelParams, check_model, load_cutoffs, load_prices, parse_name
from tradeassay.llm.tables import own_file, price_line
from tradeassay.runs.spec.conversation import protocol_config
from tradeassay.runs.spec.episode import EpisodeSpec


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

    That is a scripted or local model that does not exist, an extra that is not installed, or a cap on a model
    without a known price. A missing key is found when the model is asked: other models must not suffer from it.
    """
    prices = load_prices(asking.prices)
    for name in dict.fromkeys(names):
        if asking.max_usd is not None and prices.of(name) is None:
            raise UserError(
                f"the price of {name} is unknown, so a cap of {asking.max_usd:g} dollars cannot be kept",
                hint=f"run without a cap, or write into {own_file()}: {price_line(name)}",
            )
        if not asking.replay:
            _check(name, asking.base_url, home)


def _check(name: str, base_url: str | None, home: str | None) -> None:
    if parse_name(name).route == "inspect":
        require("inspect_ai", "models")
        return
    check_model(name, Access(base_url=base_url, home=None if home is None else Path(home)))
