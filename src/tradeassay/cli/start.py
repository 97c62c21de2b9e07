"""The command ``start``: the four ways in, each with commands to paste; only YOUR.csv and YOUR.py are yours."""

from __future__ import annotations

import click

from tradeassay.cli._output import json_option, print_json

_WAYS = (
    (
        "Is a result skill? A file of your daily returns is enough.",
        ("tradeassay assay YOUR.csv", "tradeassay power --ir 1 --sessions 252"),
    ),
    (
        "Compare models that trade (no key: scripted models and rules).",
        (
            "tradeassay run daily-us-v1 -m scripted/sensible -a momentum-12-1 --slug models",
            "tradeassay assay models",
            "tradeassay report models --format md",
        ),
    ),
    (
        "Bring your own agent.",
        ("tradeassay new agent mine", "tradeassay run daily-us-v1 -a ./mine/mine.py:Mine --slug mine"),
    ),
    (
        "Check a strategy that a model (or you) wrote.",
        ("tradeassay code tasks d-sma-cross-long", "tradeassay code eval YOUR.py --task d-sma-cross-long"),
    ),
)


@click.command()
@json_option
def start(as_json: bool) -> None:
    """Show the four ways in, with commands to paste."""
    if as_json:
        print_json([{"way": what, "commands": lines} for what, lines in _WAYS])
        return
    click.echo("tradeassay says what a trading result is made of. Four ways in:\n")
    for place, (what, lines) in enumerate(_WAYS, 1):
        click.echo(f"{place}. {what}")
        for line in lines:
            click.echo(f"     {line}")
        click.echo()
    click.echo("All commands: tradeassay --help. This machine: tradeassay doctor.")
