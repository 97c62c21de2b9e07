"""The command ``start``: the four ways in, each with commands that can be pasted as they stand."""

from __future__ import annotations

import click

from tradeassay.cli._output import json_option, print_json

_WAYS = (
    (
        "Is a result skill? A file of daily returns is enough.",
        ("tradeassay assay returns.csv", "tradeassay power --help"),
    ),
    (
        "Compare models that trade (no key: scripted models and rules).",
        (
            "tradeassay run daily-us-v1 -m scripted/sensible -a momentum-12-1 --slug first",
            "tradeassay assay runs/first",
            "tradeassay report first --format md",
        ),
    ),
    (
        "Bring an agent of your own.",
        ("tradeassay new agent mine", "tradeassay run daily-us-v1 -a ./mine/mine.py:Mine --slug mine"),
    ),
    (
        "May generated code come near money?",
        ("tradeassay code tasks", "tradeassay code eval strategy.py --task d-sma-cross-long"),
    ),
)


@click.command()
@json_option
def start(as_json: bool) -> None:
    """Show the four ways in, with commands that work as they stand."""
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
