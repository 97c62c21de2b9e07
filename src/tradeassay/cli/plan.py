"""``tradeassay plan``."""

from __future__ import annotations

from typing import Any

import click

from tradeassay.cli._output import json_option, print_json, print_table
from tradeassay.cli._spec import build_spec, spec_options


@click.command()
@spec_options
@json_option
def plan(as_json: bool, **described: Any) -> None:
    """Say how many episodes, sessions, seconds and bytes a run would take, before it is started."""
    from tradeassay.runs import plan as plan_spec

    planned = plan_spec(build_spec(**described))
    if as_json:
        print_json(planned)
        return
    print_table(f"plan of '{planned.slug}'", ("what", "how much"), planned.rows())
