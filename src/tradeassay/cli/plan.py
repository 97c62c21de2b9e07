"""``tradeassay plan``."""

from __future__ import annotations

from typing import Any

import click

from tradeassay.cli._asking import planning_options, take_asking
from tradeassay.cli._output import json_option, print_json, print_table
from tradeassay.cli._spec import build_spec, spec_options


@click.command()
@spec_options
@planning_options
@json_option
def plan(as_json: bool, **described: Any) -> None:
    """Say what a run would take, before it is started: episodes, sessions, time and disk.

    For models also calls, tokens, dollars and hours; none is asked. Their prompts are measured with a scripted
    model; what they write and how fast is assumed.
    """
    from tradeassay.runs import plan as plan_spec

    asking = take_asking(described)
    planned = plan_spec(build_spec(**described), asking=asking)
    if as_json:
        print_json(planned)
        return
    print_table(f"plan of '{planned.slug}'", ("what", "how much"), planned.rows())
