"""Define the command ``site``: a static leaderboard for a folder of runs, or an arena's pages."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, say


@click.command()
@click.argument("runs", default="runs", metavar="[RUNS | ARENA.db]")
@opt.page(
    "pages",
    type=click.Path(path_type=Path, file_okay=False),
    default="site",
    show_default=True,
    metavar="FOLDER",
)
@opt.workers
@json_option
def site(runs: str, page: Path, workers: int | None, as_json: bool) -> int:
    """Write a leaderboard site for all finished runs in RUNS, with one page per run.

    The pages need no server: open index.html, or copy the folder to any web host. Every run is
    verified first, which takes as long as verify does. Each row shows the result: verified, named
    (with a list of parts that nobody can repeat) or unverified (listed without numbers). Sealed
    runs (RUN.seal next to the run) are offered for download. For an arena's database (a file or
    URL) all public pages are written. Unchanged files are not written again. Exits with 1 if a run
    was skipped or is shown without numbers.
    """
    if not Path(runs).is_dir():
        return _arena(runs, page, as_json)
    from tradeassay.core.tables import counted
    from tradeassay_bench.report import write_site
    from tradeassay_bench.runs.play.progress import PacedCount

    written = write_site(Path(runs), page, workers=workers, progress=PacedCount(say))
    if as_json:
        print_json(written)
    for name, reason in written.left_out:
        say(f"skipped {name}: {reason}")
    unverified = [name for name, verdict in written.runs.items() if verdict.word == "unverified"]
    for name in unverified:
        say(f"listed without numbers: {name}: {'; '.join(written.runs[name].why)}")
    pages, count = counted(written.pages, "page"), counted(len(written.runs), "run")
    say(f"site: {written.index} ({pages}, {count})")
    return 1 if written.left_out or unverified else 0


def _arena(db: str, folder: Path, as_json: bool) -> int:
    from tradeassay.core.errors import UserError
    from tradeassay_bench.runs.seasons import arena

    if "://" not in db and not Path(db).is_file():
        raise UserError(f"there is no folder of runs and no arena '{db}'", hint="check the path")
    written = arena().write_site(db, folder)
    if as_json:
        print_json({"folder": str(folder), "written": written})
    say(f"{written} files written to {folder}")
    return 0
