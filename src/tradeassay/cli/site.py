"""The command ``site``: a leaderboard over all runs of a folder, as files."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._options import workers_option
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
@workers_option
@json_option
def site(runs: Path, html: Path, workers: int | None, as_json: bool) -> int:
    """Write a leaderboard site over all finished runs in RUNS: one page per run, agent and conversation.

    The pages need no server: open index.html, or put the folder on any web host. Every run is verified first,
    unless a verdict is kept here for exactly its bytes, and the verdict stands in every row: verified, named (what
    nobody can make again is named) or unverified (listed without numbers). Sealed runs (RUN.seal beside the run)
    are offered for download. Exits with 1 when a run had to be left out or its numbers are not shown.
    """
    from tradeassay.report import write_site
    from tradeassay.runs.play.progress import PacedCount

    done = write_site(runs, html, workers=workers, progress=PacedCount(say))
    if as_json:
        print_json(done)
    for slug, why in done.left_out:
        say(f"left out {slug}: {why}")
    unsure = [slug for slug, verdict in done.runs.items() if verdict.word == "unverified"]
    for slug in unsure:
        say(f"listed without numbers: {slug}: {'; '.join(done.runs[slug].why)}")
    say(f"site: {done.index} ({done.pages} pages, {len(done.runs)} runs)")
    return 1 if done.left_out or unsure else 0
