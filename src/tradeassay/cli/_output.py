"""How commands print: JSON or a table on stdout, prose on stderr; and how a command that ends a run ends."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.core.printable import printable

if TYPE_CHECKING:
    from tradeassay.core.measure import Measure
    from tradeassay.core.registry import Registry
    from tradeassay.runs import CodeRun, Run, VerifyReport
    from tradeassay.runs.verify.seal import Sealed

_MOST_SHOWN = 20
_MOST_NOTES = 8
"""Contradictions and notes on a terminal, which has few lines."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def print_json(value: Any) -> None:
    """Print any struct or plain value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode())


def _plain(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], heads: int = 1) -> None:
    """Print a table that fits the terminal; piped output is not cut."""
    from tradeassay.core.screen import StackedTable, stdout

    stdout().print(StackedTable(columns, rows, heads=heads, title=title, ruled=False))


def print_rows(
    found: Any, as_json: bool, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print what was found: all of it as JSON, or its rows as a table."""
    if as_json:
        print_json(found)
    else:
        print_table(title, columns, rows)


def plain_number(measure: Measure | None) -> str:
    """Return a measure's value without its interval."""
    return "none" if measure is None or measure.value is None else f"{measure.value:.2f}"


def say(text: str) -> None:
    """Print prose on stderr. What an agent answered may be quoted in it: no sign of it steers the terminal."""
    click.echo(printable(text, kept="\n\t\xa0\u202f"), err=True)


def say_broken(registry: Registry[Any]) -> None:
    """Say what installed packages would add to a list and cannot, and why."""
    for name, why in registry.broken().items():
        say(f"left out: {registry.kind} '{name}' of an installed package: {why}")


_KEYWORD = re.compile(
    r"\b(?P<name>[a-z_]+)=(?P<value>\{[^}]*\}|\([^)]*\)|'[^']*'|[A-Z]+\b|\d[\d.]*|True\b|(?=[\s,;:)]|$))"
)
_LISTED = re.compile(r"(--[a-z-]+ [^\s,]+), (?=--)")
_OF_THEIR_OWN = {"reading": "", "protocol": "settings"}
"""Keywords whose entries are options of their own, and the option that takes those that are none."""


def as_options(hint: str, command: click.Command) -> str:
    """Return a hint with the options of ``command`` for the keywords of Python that it names: ``names=20`` becomes
    ``--names 20``, ``reading={'unit': 'percent'}`` becomes ``--unit percent``. A keyword is a parameter's name;
    what a data source is asked with beside them is an ``--option``.
    """
    known = {one.name: max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)}

    def spelled(found: re.Match[str]) -> str:
        name, value, others = found["name"], found["value"], "options"
        plain = re.sub(r"[{}()' ]", "", value).replace(":", "=").strip(",")
        if name in _OF_THEIR_OWN:
            others = _OF_THEIR_OWN[name]
            name, _, plain = plain.partition("=")
        name = "columns" if name == "header" else name
        if name in known:
            return known[name] if value in ("", "True") else f"{known[name]} {plain}"
        return f"{known[others]} {name}={plain}" if others in known else found[0]

    return _LISTED.sub(r"\1 ", _KEYWORD.sub(spelled, hint))


def write_file(path: Path, content: bytes) -> None:
    """Write a file; raises :class:`UserError` where it cannot be written."""
    from tradeassay.core.errors import UserError
    from tradeassay.core.files import write_atomic

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", hint="name another file") from error


def show_verification(found: VerifyReport | None, sealed: Sealed | None = None) -> None:
    """Print what became of every claim of a run: contradictions and the table on stdout, prose on stderr."""
    if found is not None:
        click.echo(found.summary())
    if sealed is not None:
        click.echo(f"seal: {sealed.root} holds, {sealed.files} files, {sealed.signature}")
    if found is None:
        say("the seal of a plan: nothing has been played that could be checked")
        return

    for violation in found.violations[:_MOST_SHOWN]:
        click.echo(str(violation))
    if len(found.violations) > _MOST_SHOWN:
        click.echo(f"... and {len(found.violations) - _MOST_SHOWN} more (--json names all)")
    left = [one for one in found.claims if one.outcome != "re-derived"]
    partly = {one.claim for one in left}
    claimed = dict.fromkeys(one.claim for one in found.claims if one.outcome == "re-derived")
    made = [f"{claim} (in part)" if claim in partly else claim for claim in claimed]
    more = f" and {len(made) - _MOST_SHOWN} more" if len(made) > _MOST_SHOWN else ""
    click.echo(f"re-derived: {', '.join(made[:_MOST_SHOWN]) or 'nothing'}{more}")
    if left:
        rows = [(one.claim, one.outcome, str(one.episodes or ""), one.why) for one in left]
        print_table("not re-derived", ("claim", "outcome", "episodes", "why not more"), rows)
    if found.freedom is not None:
        say(found.freedom.sentence)
    for note in found.notes[:_MOST_NOTES]:
        say(f"note: {note}")
    if len(found.notes) > _MOST_NOTES:
        say(f"note: ... and {len(found.notes) - _MOST_NOTES} more (--json has all)")


def own_fault(command: Callable[..., int]) -> Callable[..., int]:
    """Let a fault of a checking command end it in one line and with a status of its own, 4.

    A traceback ends with 1, and a script would read that as "contradicted".
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
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            what = str(error).partition("\n")[0][:200]
            say(
                f"error: a fault of tradeassay's own, {type(error).__name__} at {where}: {what} "
                "(nothing is said about the run; please report it)"
            )
            return 4

    return guarded


def finish(run: Run | CodeRun, *, as_json: bool = False) -> int:
    """Show a finished run; return 1 when an episode failed, else 0."""
    from tradeassay.report import print_leaderboard
    from tradeassay.runs import Run
    from tradeassay.runs.summary import summary_of

    # One record holds the figures that both the terminal and the page show.
    summary = None
    try:
        if isinstance(run, Run):
            summary = summary_of(run)
        if as_json:
            print_json(run.shown_scores if isinstance(run, Run) else run.scores)
        else:
            print_leaderboard(summary or run)
        say(f"report: {written_page(run, summary=summary)}")
    except KeyboardInterrupt:
        hint = f"stopped; the run is complete, see it with: tradeassay report {shlex.quote(str(run.folder))}"
        say(hint)
        raise KeyboardInterrupt(hint) from None
    say(f"check:  tradeassay verify {shlex.quote(str(run.folder))}")
    failed = run.failed
    if failed:
        say(f"{len(failed)} of {len(run.episodes)} episodes failed:")
        for key, why in list(failed.items())[:3]:
            say(f"  {key}: {why}")
        if len(failed) > 3:
            say("  ...")
        agents = [] if summary is None else [agent for cell in summary.cells for agent in cell.agents]
        for agent in [agent for agent in agents if agent.failed_episodes and agent.causes][:3]:
            say(f"why {agent.name} failed:")
            for cause in agent.causes:
                said = f"; it said: {' '.join(cause.answer.split())[:120]}" if cause.answer else ""
                say(f"  {cause.where}: {cause.kind.replace('_', ' ')}: {cause.detail[:160]}{said}")
        own = "; after a change of your file, run it anew" if isinstance(run, Run) and run.manifest.files else ""
        say(f"try again: tradeassay resume {shlex.quote(str(run.folder))} --retry-failed{own}")
    return 1 if failed else 0


def written_page(run: Run | CodeRun, page: Path | None = None, **made: Any) -> str:
    """Write a run's page; return its path, or why the one that came with the run was kept."""
    from tradeassay.report import write_html
    from tradeassay.report.run_page import PageKept

    try:
        return str(write_html(run, page, **made))
    except PageKept as kept:
        return str(kept)
