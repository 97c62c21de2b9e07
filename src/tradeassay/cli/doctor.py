"""``tradeassay doctor``."""

from __future__ import annotations

import click

from tradeassay.cli._output import json_option, print_json, print_table, say


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check this machine: Python, packages, store, optional parts. Exits with 1 when something needed fails."""
    from tradeassay.cli._machine import examine

    findings = examine()
    if as_json:
        print_json(findings)
    else:
        marks = {"ok": "ok", "absent": "-", "broken": "BROKEN"}
        print_table(
            "this machine", ("part", "", "finding"), [(f.part, marks[f.state], f.finding) for f in findings]
        )
        broken = [f.part for f in findings if f.state == "broken"]
        say("everything needed is here" if not broken else f"needs attention: {', '.join(broken)}")
    return 1 if any(f.state == "broken" for f in findings) else 0
