"""The command ``site``: a leaderboard over all runs of a folder, as files."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._output import json_option, print_json, say


@click.command()
@click.argument("runs", type=click.Path(path_type=Path, file_okay=False, exists=True), default="runs")
@click.option(
    "-o",
    "--html",
    type=click.Path(path_type=Path, file_okay=False),
    default="site",
    show_default=True,
    help="Where to write the pages.",
)
@json_option
def site(runs: Path, html: Path, as_json: bool) -> int:
    """Write a leaderboard site over all finished runs in RUNS: one page per run, agent and conversation.

    The pages need no server: open index.html, or put the folder on any web host. Sealed
    runs (RUN.seal beside the run) are offered for download. Exits with 1 when a run had to be left out.
    """
    from tradeassay.report import write_site

    done = write_site(runs, html)
    if as_json:
        print_json(done)
    for slug, why in done.left_out:
        say(f"left out {slug}: {why}")
    say(f"site: {done.index} ({done.pages} pages, {len(done.runs)} runs)")
    return 1 if done.left_out else 0
