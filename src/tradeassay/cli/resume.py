"""``tradeassay resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradeassay.cli._asking import asking_options, take_asking
from tradeassay.cli._finish import finish
from tradeassay.cli._run_folder import find_run, out_option, workers_option


@click.command()
@click.argument("run")
@out_option
@workers_option
@asking_options
@click.option(
    "--retry-failed", is_flag=True, help="Play failed episodes again; recorded answers are not asked again."
)
def resume(run: str, out: Path, workers: int | None, retry_failed: bool, **asked: Any) -> int:
    """Continue a stopped run. It ends with the same bytes as if it had never stopped.

    Refuses when data, rules, prompts or versions are no longer what the manifest says.
    """
    from tradeassay.runs import resume as resume_run

    asking = take_asking(asked, out)
    folder = find_run(run, out)
    done = resume_run(folder, workers=workers, progress="auto", retry_failed=retry_failed, asking=asking)
    return finish(done)
