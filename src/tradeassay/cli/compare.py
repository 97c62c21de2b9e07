"""``tradeassay compare``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._output import json_option, print_json
from tradeassay.cli._run_folder import find_run, out_option


@click.command()
@click.argument("first")
@click.argument("second")
@out_option
@json_option
def compare(first: str, second: str, out: Path, as_json: bool) -> None:
    """Put two runs side by side, with a paired test where the sessions coincide."""
    from tradeassay.runs import compare as compare_runs

    comparison = compare_runs(find_run(first, out), find_run(second, out))
    if as_json:
        print_json(comparison)
        return
    from tradeassay.report import print_comparison

    print_comparison(comparison)
