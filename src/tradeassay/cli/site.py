"""The command ``site``: a leaderboard over all runs of a folder, or an arena's public pages, as files."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, say


@click.command()
@click.argument("runs", default="runs", metavar="[RUNS | ARENA.db]")
@opt.page(
    "pages", type=click.Path(path_type=Path, file_okay=False), default="site", show_default=True, metavar="FOLDER"
)
@opt.workers
@json_option
def site(runs: str, page: Path, workers: int | None, as_json: bool) -> int:
    """Write a leaderboard site over all finished runs in RUNS: a board per benchmark, a page per run.

    The pages need no server: open index.html, or put the folder on any web host. Every run is verified first,
    which takes as long as verify does. The verdict stands in every row: verified, named (what nobody can make
    again is named) or unverified (listed without numbers). Sealed runs (RUN.seal beside the run) are offered
    for download. Of an arena's database (a file or URL) all public pages are written; unchanged files are
    left alone. Exits with 1 when a run had to be left out or its numbers are not shown.
    """
    if not Path(runs).is_dir():
        return _arena(runs, page, as_json)
    from tradeassay.core.tables import counted
    from tradeassay.report import write_site
    from tradeassay.runs.play.progress import PacedCount

    done = write_site(Path(runs), page, workers=workers, progress=PacedCount(say))
    if as_json:
        print_json(done)
    for slug, why in done.left_out:
        say(f"left out {slug}: {why}")
    unsure = [slug for slug, verdict in done.runs.items() if verdict.word == "unverified"]
    for slug in unsure:
        say(f"listed without numbers: {slug}: {'; '.join(done.runs[slug].why)}")
    say(f"site: {done.index} ({counted(done.pages, 'page')}, {counted(len(done.runs), 'run')})")
    return 1 if done.left_out or unsure else 0


def _arena(db: str, folder: Path, as_json: bool) -> int:
    from tradeassay.core.errors import UserError
    from tradeassay.runs.seasons import arena

    if "://" not in db and not Path(db).is_file():
        raise UserError(f"there is no folder of runs and no arena '{db}'", hint="check the path")
    written = arena().write_site(db, folder)
    if as_json:
        print_json({"folder": str(folder), "written": written})
    say(f"{written} files written to {folder}")
    return 0
