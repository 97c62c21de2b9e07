"""``tradeassay code strategies`` and ``code schema``: the twelve strategies of SysTradeBench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradeassay.cli._output import json_option, print_json, print_table, say


@click.command()
@click.argument("strategy", required=False)
@click.option("--semantics", is_flag=True, help="With STRATEGY: print its frozen semantics instead of its doc.")
@click.option(
    "--reference", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
    help="With STRATEGY: write the reference submission there, to start from.",
)  # fmt: skip
@json_option
def strategies(strategy: str | None, semantics: bool, reference: Path | None, as_json: bool) -> None:
    """List the twelve strategies, or show one: its doc, its frozen semantics, its reference."""
    from tradeassay.benchmarks.systrade.loading import strategy_lines, strategy_text, write_reference

    if strategy is None:
        lines = strategy_lines()
        if as_json:
            print_json(lines)
            return
        rows = [
            (one.id, one.title, one.legs, one.timeframes, f"{one.complexity:.2f}", one.sha256[:12])
            for one in lines
        ]
        print_table("strategies", ("id", "title", "legs", "bars", "complexity", "semantics"), rows)
        return
    if reference is not None:
        write_reference(strategy, reference)
        say(f"written: {reference}; check it with: tradeassay code eval {reference} --spec {strategy}")
        return
    click.echo(strategy_text(strategy, semantics=semantics or as_json))


@click.command()
@click.argument("what", type=click.Choice(["card", "semantics"]))
def schema(what: Any) -> None:
    """Print the JSON schema of a strategy card, or of frozen semantics."""
    from tradeassay.benchmarks.systrade.loading import schema_text

    click.echo(schema_text(what))
