"""``tradeassay resume``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._finish import finish
from tradeassay.cli._run_folder import find_run, out_option, workers_option


@click.command()
@click.argument("run")
@out_option
@workers_option
def resume(run: str, out: Path, workers: int | None) -> int:
    """Continue a stopped run. It ends with the same bytes as if it had never stopped.

    Refuses when data, rules or versions are no longer what the manifest says.
    """
    from tradeassay.runs import resume as resume_run

    return finish(resume_run(find_run(run, out), workers=workers, progress="auto"))
