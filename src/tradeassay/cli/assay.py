"""``tradeassay assay``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tradeassay.cli._output import json_option, print_json, say
from tradeassay.cli._run_folder import find_run, out_option

if TYPE_CHECKING:
    from tradeassay.assay.verdict import Assay, VerdictConfig


@click.command()
@click.argument("run")
@out_option
@click.option("--agent", "agents", multiple=True, help="Only this agent of the run (several times for several).")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the verdict page.")
@click.option("--trials", type=click.IntRange(1), default=1, show_default=True,
              help="How many strategies were tried before these were shown.")  # fmt: skip
@click.option("--portfolios", type=click.IntRange(0), default=10_000, show_default=True,
              help="Random portfolios of the luck baseline; 0 for none.")  # fmt: skip
@click.option("--leak-test", is_flag=True, help="Play the run's rules again in other futures.")
@click.option("--weights", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="For a table of returns: the weights that were held.")  # fmt: skip
@click.option("--dataset", help="For a table: the data set with the prices.")
@click.option(
    "--universe", default="all", show_default=True, help="For a table: an index of the data set, or all."
)
@click.option("--between", type=click.Choice(["cash", "hold"]), default="cash", show_default=True,
              help="For weights: what sessions without a row mean.")  # fmt: skip
@click.option("--benchmark", help="For a table of returns: the benchmark whose rules the luck baseline follows.")
@click.option("--names", type=click.IntRange(1), help="For a table of returns: how many names were held.")
@click.option("--turnover", type=click.FloatRange(0.0), help="For a table of returns: yearly one-way turnover.")
@json_option
def assay(
    run: str,
    out: Path,
    agents: tuple[str, ...],
    html: Path | None,
    trials: int,
    portfolios: int,
    leak_test: bool,
    weights: Path | None,
    dataset: str | None,
    universe: str,
    between: Literal["cash", "hold"],
    benchmark: str | None,
    names: int | None,
    turnover: float | None,
    as_json: bool,
) -> None:
    """Say what a result is made of: skill, luck, style, leaked future, or memory.

    RUN is a recorded run, or a Parquet or CSV table of an account's own returns (date, return) or weights (date,
    symbol, weight); a table needs --dataset. Every verdict is one sentence, never stronger than the evidence.
    """
    from tradeassay.assay.verdict import OwnAccount, VerdictConfig
    from tradeassay.assay.verdict import assay as assay_of

    config = VerdictConfig(trials=trials, portfolios=portfolios)
    path = Path(run)
    if path.is_file():
        own = OwnAccount(
            weights=None if weights is None else str(weights),
            returns=str(path),
            dataset=dataset,
            universe=universe,
            between=between,
            benchmark=benchmark,
            names=names,
            turnover=turnover,
        )
        _show(assay_of(own, config), html, as_json)
        return
    _show(_recorded(find_run(run, out), config, agents, leak_test), html, as_json)


def _recorded(folder: Path, config: VerdictConfig, agents: tuple[str, ...], leak_test: bool) -> Assay:
    from tradeassay.assay.verdict import assay as assay_of
    from tradeassay.assay.verdict.leak_tests import leak_tests
    from tradeassay.runs import Run

    recorded = Run.load(folder)
    leaks = leak_tests(recorded, agents=agents) if leak_test else None
    return assay_of(recorded, config, agents=agents, leaks=leaks)


def _show(made: Assay, html: Path | None, as_json: bool) -> None:
    if html is not None:
        from tradeassay.report import write_verdicts

        say(f"verdicts: {write_verdicts(made, html)}")
    if as_json:
        print_json(made)
        return
    from tradeassay.report import print_verdicts

    print_verdicts(made)
