"""``tradeassay report``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._output import say
from tradeassay.cli._run_folder import find_run, out_option


@click.command()
@click.argument("run")
@out_option
@click.option("-o", "--html", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the page.")
def report(run: str, out: Path, html: Path | None) -> None:
    """Show a recorded run's leaderboard and write its HTML page (one file, no network needed to read it)."""
    from tradeassay.report import print_leaderboard, write_html
    from tradeassay.runs import load_run

    recorded = load_run(find_run(run, out))
    print_leaderboard(recorded)
    say(f"report: {write_html(recorded, html)}")
