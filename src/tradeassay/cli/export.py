"""The command ``export``: a run's numbers for an experiment tracker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradeassay.cli._options import find_run, out_option
from tradeassay.cli._output import json_option, print_json, say
from tradeassay.core.errors import require


@click.command()
@click.argument("run")
@out_option
@click.option("--to", "tracker", type=click.Choice(["mlflow", "wandb"]), help="Log it there. Default: only print.")
@click.option("--project", default="tradeassay", show_default=True, help="The tracker's experiment or project.")
@json_option
def export(run: str, out: Path, tracker: Any, project: str, as_json: bool) -> None:
    """Export a finished run and its page to MLflow or Weights & Biases; nothing is sent without --to.

    \b
    tradeassay export first                  what would be logged
    tradeassay export first --to mlflow      needs pip install 'tradeassay[tracking]'
    """
    if tracker is not None:
        require(tracker, "tracking")
    from tradeassay.report.tracking import track, tracked
    from tradeassay.runs import load_run

    recorded = load_run(find_run(run, out))
    params, numbers = tracked(recorded)
    sent = None if tracker is None else track(recorded, tracker, project=project)
    if as_json or tracker is None:
        print_json({"params": params, "numbers": numbers, "tracker": tracker, "id": sent})
    if sent is not None:
        say(f"logged to {tracker} as {sent}")
