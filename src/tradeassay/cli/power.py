"""``tradeassay power``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.cli._run_folder import find_run, out_option

_SHARE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)


@click.command()
@click.argument("run", required=False)
@out_option
@click.option("--ir", type=float, default=1.0, show_default=True, help="The yearly information ratio to be seen.")
@click.option(
    "--sessions", type=click.IntRange(1), default=252, show_default=True, help="Sessions that are played."
)
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Repetitions of the agent.")
@click.option("--level", type=_SHARE, default=0.95, show_default=True, help="Confidence level of the test.")
@click.option("--power", "wanted", type=_SHARE, default=0.8, show_default=True, help="Chance to find the ratio.")
@click.option("--agents", type=click.IntRange(1), default=1, show_default=True, help="Agents judged together.")
@click.option("--seed-correlation", type=click.FloatRange(0.0, 1.0), default=0.5, show_default=True,
              help="How alike two seeds' active returns are.")  # fmt: skip
@click.option("--autocorrelation", type=click.FloatRange(-0.9, 0.9), default=0.0, show_default=True,
              help="Of active returns from one session to the next.")  # fmt: skip
@json_option
def power(
    run: str | None,
    out: Path,
    ir: float,
    sessions: int,
    seeds: int,
    level: float,
    wanted: float,
    agents: int,
    seed_correlation: float,
    autocorrelation: float,
    as_json: bool,
) -> None:
    """Say how many sessions and seeds it takes to see an information ratio.

    With a recorded RUN: what each of its comparisons could have shown, with the dependence measured in it.
    """
    if run is not None:
        _recorded(find_run(run, out), ir, as_json)
        return
    from tradeassay.metrics import Design, ar1_inflation, foresight, seeds_needed

    design = Design(
        sessions=sessions,
        seeds=seeds,
        level=level,
        power=wanted,
        seed_correlation=seed_correlation,
        inflation=ar1_inflation(autocorrelation),
        comparisons=agents,
    )
    seen, more = foresight(design, ir=ir), seeds_needed(ir, design)
    if as_json:
        print_json({"design": design, "foresight": seen, "seeds_needed": more})
        return
    rows = [
        (f"chance to see {ir:g} in {sessions:,} sessions with {seeds} seeds", f"{seen.chance:.1%}"),
        (f"smallest ratio seen with a chance of {wanted:.0%}", f"{seen.smallest:.2f}"),
        (f"sessions needed to see {ir:g}", f"{seen.sessions:,} ({seen.sessions / 252:,.1f} years)"),
        (
            f"seeds needed in {sessions:,} sessions",
            "no number of seeds is enough" if more is None else f"{more:,}",
        ),
    ]
    print_table("power", ("question", "answer"), rows)


def _recorded(folder: Path, ir: float, as_json: bool) -> None:
    from tradeassay.assay.power import power_of_run
    from tradeassay.runs import Run

    found = power_of_run(Run.load(folder), ir=ir)
    if as_json:
        print_json(found)
        return
    rows = [
        (one.cell, one.agent, "" if one.foresight is None else f"{one.foresight.smallest:.2f}",
         "" if one.foresight is None else f"{one.foresight.chance:.0%}", one.sentence)
        for one in found
    ]  # fmt: skip
    print_table("power", ("cell", "agent", "smallest ratio", f"chance for {ir:g}", "in words"), rows)
    say("smallest ratio: the information ratio that would be found with a chance of 80 %")
