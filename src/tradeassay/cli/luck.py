"""``tradeassay luck``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.cli._run_folder import find_run, out_option

if TYPE_CHECKING:
    from tradeassay.assay.luck import Luck


@click.command()
@click.argument("run")
@out_option
@click.option("--agent", "agents", multiple=True, help="Only this agent of the run (several times for several).")
@click.option("--portfolios", type=click.IntRange(100), default=10_000, show_default=True, help="How many.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Makes other portfolios.")
@click.option("--by", type=click.Choice(["return", "sharpe"]), default="return", show_default=True,
              help="What is ranked.")  # fmt: skip
@click.option("--benchmark", help="For a table of returns: the benchmark whose market and rules are used.")
@click.option("--dataset", help="For a table of returns: another data set than the benchmark's own.")
@click.option("--names", type=click.IntRange(1), help="For a table of returns: how many names were held.")
@click.option("--turnover", type=click.FloatRange(0.0), help="For a table of returns: yearly one-way turnover.")
@json_option
def luck(
    run: str,
    out: Path,
    agents: tuple[str, ...],
    portfolios: int,
    seed: int,
    by: Literal["return", "sharpe"],
    benchmark: str | None,
    dataset: str | None,
    names: int | None,
    turnover: float | None,
    as_json: bool,
) -> None:
    """Say where a result lies among random portfolios under the same rules, turnover and costs.

    RUN is a recorded run, or a Parquet or CSV file with the columns date and return. Random portfolios trade when
    the run traded, as much as it did, in other names; a file does not say when it traded, so --benchmark, --names
    and --turnover do.
    """
    path = Path(run)
    if path.is_file():
        from tradeassay.assay import OwnAccount, luck_of_file

        own = OwnAccount(returns=str(path), benchmark=benchmark, dataset=dataset, names=names, turnover=turnover)
        found: tuple[Luck, ...] = (luck_of_file(own, portfolios=portfolios, seed=seed, by=by),)
    else:
        from tradeassay.assay.luck import luck_of_run
        from tradeassay.runs import Run

        recorded = Run.load(find_run(run, out))
        found = luck_of_run(recorded, agents=agents, portfolios=portfolios, seed=seed, by=by)
    if as_json:
        print_json(found)
        return
    print_table(f"luck of '{path.name}'", _COLUMNS, [_row(each) for each in found])
    say("better than: share of random portfolios with the same trades in other names that did worse")


_COLUMNS = ("agent", "seed", "result", "random 5 %", "median", "95 %", "better than", "interval", "note")


def _row(one: Luck) -> tuple[str, ...]:
    place = one.place
    if place is None:
        return (one.agent, str(one.seed), *[""] * 6, str(one.reason))
    percent = place.by == "return"
    values = (place.value or 0.0, place.low, place.median, place.high)
    numbers = [f"{value:.1%}" if percent else f"{value:.2f}" for value in values]
    share = place.percentile
    span = "" if share.low is None else f"{share.low:.0%} to {share.high:.0%}"
    return (one.agent, str(one.seed), *numbers, f"{share.value:.1%}", span, share.note or "")
