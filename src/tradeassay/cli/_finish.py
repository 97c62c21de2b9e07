"""What every command that ends a run does: the leaderboard on stdout, the page beside the run, the exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.cli._output import print_json, say

if TYPE_CHECKING:
    from tradeassay.runs import CodeRun, Run


def finish(run: Run | CodeRun, *, as_json: bool = False) -> int:
    """Show a finished run; return 1 when an episode failed, else 0."""
    from tradeassay.report import print_leaderboard, write_html

    if as_json:
        print_json(run.scores)
    else:
        print_leaderboard(run)
    page = write_html(run)
    say(f"report: {page}")
    say(f"check:  tradeassay verify {run.folder}")
    failed = run.failed
    if failed:
        more = " ..." if len(failed) > 3 else ""
        say(f"{len(failed)} of {len(run.episodes)} episodes failed: {', '.join(list(failed)[:3])}{more}")
    return 1 if failed else 0
