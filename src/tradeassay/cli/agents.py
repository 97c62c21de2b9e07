"""``tradeassay agents``."""

from __future__ import annotations

import click

from tradeassay.cli._output import json_option, print_json, print_table


@click.command()
@json_option
def agents(as_json: bool) -> None:
    """List the agents that can trade, with their parameters."""
    from tradeassay.api import list_agents

    listed = list_agents()
    if as_json:
        print_json(listed)
        return
    rows = [(a.name, a.summary, ", ".join(f"{k}={v}" for k, v in a.params.items())) for a in listed]
    print_table("agents", ("name", "what it does", "parameters"), rows)
