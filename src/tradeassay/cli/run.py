"""``tradeassay run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradeassay.cli._asking import asking_options, take_asking
from tradeassay.cli._finish import finish
from tradeassay.cli._output import json_option
from tradeassay.cli._run_folder import out_option, workers_option
from tradeassay.cli._spec import build_spec, spec_options


@click.command()
@spec_options
@out_option
@workers_option
@click.option(
    "--executor",
    type=click.Choice(["local", "inline", "ray"]),
    default="local",
    show_default=True,
    help="Processes here, this process, or Ray; the bytes are the same.",
)
@asking_options
@json_option
def run(out: Path, workers: int | None, executor: Any, as_json: bool, **described: Any) -> int:
    """Run agents over benchmarks, score them, write the page.

    \b
    tradeassay run daily-us-v1 daily-ashare-v1 -a momentum-12-1:k=10 -a random --seeds 3
    tradeassay run my-grid.toml
    tradeassay run ktdfin-v1 -m openai/gpt-5 --mask bright,blinded --window W4 --max-usd 20

    Giving the same command again continues a run that was stopped. Exits with 1 when an episode failed.
    """
    from tradeassay.runs import run as run_spec

    asking = take_asking(described, out)
    spec = build_spec(**described)
    done = run_spec(spec, out / spec.slug, executor=executor, workers=workers, progress="auto", asking=asking)
    return finish(done, as_json=as_json)
