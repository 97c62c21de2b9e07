"""Print the output of commands about runs: verification, finished runs, and broken packages."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli._output import print_json, print_table, say

if TYPE_CHECKING:
    from tradeassay.core.registry import Registry
    from tradeassay_bench.runs import CodeRun, Run, VerifyReport
    from tradeassay_bench.runs.summary import RunSummary
    from tradeassay_bench.runs.verify.seal import Sealed

_MOST_SHOWN = 20
"""Maximum number of contradictions printed on a terminal."""
_MOST_NOTES = 8
"""Maximum number of notes printed on a terminal."""


def show_verification(report: VerifyReport | None, sealed: Sealed | None = None) -> None:
    """Print the result of every claim of a run.

    Contradictions and the table go to stdout, prose to stderr.
    """
    if report is not None:
        click.echo(report.summary())
    if sealed is not None:
        click.echo(f"seal: {sealed.root} is valid, {sealed.files} files")
    if report is None:
        say("this is the sealed plan of a run: there are no results to check yet")
        return

    for violation in report.violations[:_MOST_SHOWN]:
        click.echo(str(violation))
    if len(report.violations) > _MOST_SHOWN:
        click.echo(f"... and {len(report.violations) - _MOST_SHOWN} more (--json lists all)")
    open_claims = [claim for claim in report.claims if claim.outcome != "re-derived"]
    partly = {claim.claim for claim in open_claims}
    names = dict.fromkeys(claim.claim for claim in report.claims if claim.outcome == "re-derived")
    labels = [f"{name} (in part)" if name in partly else name for name in names]
    more = f" and {len(labels) - _MOST_SHOWN} more" if len(labels) > _MOST_SHOWN else ""
    click.echo(f"re-derived: {', '.join(labels[:_MOST_SHOWN]) or 'nothing'}{more}")
    if open_claims:
        rows = [
            (claim.claim, claim.outcome, str(claim.episodes or ""), claim.why)
            for claim in open_claims
        ]
        print_table("not re-derived", ("claim", "outcome", "episodes", "why not more"), rows)
    if report.freedom is not None:
        say(report.freedom.sentence)
    for note in report.notes[:_MOST_NOTES]:
        say(f"note: {note}")
    if len(report.notes) > _MOST_NOTES:
        say(f"note: ... and {len(report.notes) - _MOST_NOTES} more (--json lists all)")


def exit_4_on_internal_error(command: Callable[..., int]) -> Callable[..., int]:
    """Wrap a checking command so that an internal error prints one line and returns status 4.

    An uncaught exception would exit with 1, which scripts interpret as "contradicted".
    """
    from functools import wraps

    from tradeassay.core.errors import TradeassayError

    @wraps(command)
    def guarded(*args: Any, **given: Any) -> int:
        try:
            return command(*args, **given)
        except (TradeassayError, OSError, ModuleNotFoundError, click.ClickException):
            raise
        except Exception as error:
            from traceback import extract_tb

            frame = extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            message = str(error).partition("\n")[0][:200]
            say(
                f"error: internal error in tradeassay, {type(error).__name__} at {place}: "
                f"{message} "
                "(the run itself was not judged; please report this error)"
            )
            return 4

    return guarded


def finish(run: Run | CodeRun, *, as_json: bool = False) -> int:
    """Print a finished run and write its page. Return 1 if an episode failed, else 0."""
    from tradeassay_bench.report import print_leaderboard, write_html
    from tradeassay_bench.runs import Run
    from tradeassay_bench.runs.summary import summary_of

    # The terminal and the page show numbers from the same summary.
    summary = None
    try:
        if isinstance(run, Run):
            summary = summary_of(run)
        if as_json:
            print_json(run.shown_scores if isinstance(run, Run) else run.scores)
        else:
            print_leaderboard(summary or run)
        say(f"report: {write_html(run, summary=summary)}")
    except KeyboardInterrupt:
        hint = (
            "stopped; the run is complete, show it with: tradeassay report "
            f"{shlex.quote(str(run.folder))}"
        )
        say(hint)
        raise KeyboardInterrupt(hint) from None
    say(f"check:  tradeassay verify {shlex.quote(str(run.folder))}")
    failed = run.failed
    if failed:
        say(f"{len(failed)} of {len(run.episodes)} episodes failed:")
        for key, reason in list(failed.items())[:3]:
            say(f"  {key}: {reason}")
        if len(failed) > 3:
            say("  ...")
        if summary is not None:
            _say_causes(summary)
        own = (
            "; if you changed your file, start a new run"
            if isinstance(run, Run) and run.manifest.files
            else ""
        )
        say(f"try again: tradeassay resume {shlex.quote(str(run.folder))} --retry-failed{own}")
    return 1 if failed else 0


def _say_causes(summary: RunSummary) -> None:
    """Print the causes of failed episodes, for the first three agents with known causes."""
    agents = []
    for setting in summary.settings:
        agents += [agent for agent in setting.agents if agent.failed_episodes and agent.causes]
    for agent in agents[:3]:
        say(f"why {agent.name} failed:")
        for cause in agent.causes:
            answer = ""
            if cause.answer:
                answer = f"; answer: {' '.join(cause.answer.split())[:120]}"
            say(f"  {cause.where}: {cause.kind.replace('_', ' ')}: {cause.detail[:160]}{answer}")


def say_broken(registry: Registry[Any]) -> None:
    """Print the entries of installed packages that could not be loaded, with the reasons."""
    for name, why in registry.broken().items():
        say(f"skipped: {registry.kind} '{name}' of an installed package: {why}")
