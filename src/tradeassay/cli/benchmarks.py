"""``tradeassay benchmarks``."""

from __future__ import annotations

import click

from tradeassay.cli._output import json_option, print_json, print_table


@click.command()
@click.argument("name", required=False)
@json_option
def benchmarks(name: str | None, as_json: bool) -> None:
    """List the benchmarks, or show the rules of one."""
    from tradeassay.benchmarks import benchmarks as registry

    if name is not None:
        benchmark = registry.get(name)
        if as_json:
            print_json(benchmark)
        else:
            click.echo(benchmark.rules_text())
        return
    listed = [benchmark for _, benchmark in registry.items()]
    if as_json:
        print_json(listed)
        return
    rows = [
        (b.id, b.title, b.dataset, b.market.venue, f"{b.market.first} .. {b.market.last}", b.convention)
        for b in listed
    ]
    print_table("benchmarks", ("id", "title", "data set", "venue", "window", "convention"), rows)
