"""``tradeassay code eval FOLDER --spec STRATEGY``: the gates for anybody's build server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tradeassay.cli._output import print_json, say
from tradeassay.cli._systrade_options import parts_of
from tradeassay.core.errors import UserError
from tradeassay.core.secrets import clean_text

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option("--junit", type=_FILE, metavar="FILE", help="With --spec: write the gates as JUnit XML."),
    click.option("--sarif", type=_FILE, metavar="FILE", help="With --spec: write the findings as SARIF."),
    click.option("--html", type=_FILE, metavar="FILE", help="With --spec: write the scorecard as a page."),
    click.option("--dataset", metavar="NAME", help="With --spec: stored bars instead of the synthetic year."),
    click.option("--symbols", metavar="A,B", help="With --dataset: which of its symbols are the legs."),
    click.option("--splits", metavar="D,D,D", help="With --dataset: development, test, and end begin."),
    click.option("--data-seed", type=int, default=1, show_default=True, help="Which synthetic year."),
)  # fmt: skip


def reports_options(command: F) -> F:
    """Add what a submission's check may be told and may write."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def evaluate_submission(
    folder: Path,
    strategy: str,
    task: str | None,
    *,
    as_json: bool,
    junit: Path | None,
    sarif: Path | None,
    html: Path | None,
    dataset: str | None,
    symbols: str | None,
    splits: str | None,
    data_seed: int,
) -> int:
    """Check a submission, write what was asked for, and return 0 when every gate held, else 1."""
    from tradeassay.benchmarks.systrade.data import DAYS
    from tradeassay.benchmarks.systrade.examine import bars_for, check_submission

    if task is not None:
        raise UserError("--task and --spec are given", mend="a program has a task, a folder a strategy")
    bars = bars_for(strategy, dataset, parts_of(symbols), data_seed, parts_of(splits) or DAYS)
    found = check_submission(folder, strategy, bars=bars)
    for path, text in ((junit, found.junit), (sarif, found.sarif)):
        if path is not None:
            write_text(path, text())
    if html is not None:
        from tradeassay.report import write_check_html

        say(f"scorecard: {write_check_html(found, html)}")
    if as_json:
        print_json({"passed": found.passed, "scorecard": found.scorecard, "trail": found.trail})
    else:
        from tradeassay.report import print_check

        print_check(found, name=folder.resolve().name)
    return 0 if found.passed else 1


def write_text(path: Path, text: str) -> None:
    """Write a file; raises :class:`UserError` where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(clean_text(text), encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", mend="name another file") from error
    say(f"written: {path}")
