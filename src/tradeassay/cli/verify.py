"""``tradeassay verify``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._output import json_option, print_json, say
from tradeassay.cli._run_folder import find_run, out_option


@click.command()
@click.argument("run")
@out_option
@json_option
def verify(run: str, out: Path, as_json: bool) -> int:
    """Check a recorded run: hashes, money, fills inside the bar, venue rules, scores.

    Exits with 1 and names every violation when something does not hold.
    """
    from tradeassay.runs import verify as verify_run

    found = verify_run(find_run(run, out))
    if as_json:
        print_json(found)
    else:
        for violation in found.violations:
            click.echo(str(violation))
        say(found.summary())
    return 0 if found.ok else 1
