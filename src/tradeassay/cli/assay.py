"""``tradeassay assay``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.cli._run_folder import find_run, out_option
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.assay import Studies
    from tradeassay.assay.studies import Study
    from tradeassay.assay.verdict import Assay, VerdictConfig
    from tradeassay.core.measure import Measure


@click.command()
@click.argument("run", required=False)
@out_option
@click.option("--agent", "agents", multiple=True, help="Only this agent of the run (several times for several).")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the verdict page.")
@click.option("--trials", type=click.IntRange(1), default=1, show_default=True,
              help="How many strategies were tried before these were shown.")  # fmt: skip
@click.option("--portfolios", type=click.IntRange(0), default=10_000, show_default=True,
              help="Random portfolios of the luck baseline; 0 for none.")  # fmt: skip
@click.option("--leak-test", is_flag=True, help="Play the run's rules again in other futures.")
@click.option("--robustness", is_flag=True,
              help="Repeat it under other costs, delay, names and news; no model is asked again.")  # fmt: skip
@click.option("--regimes", is_flag=True, help="Show every agent in rising, falling, V-shaped and flat markets.")
@click.option("--rationales", is_flag=True, help="Count reasons that name what the model had not been shown.")
@click.option("--planted", type=click.IntRange(1), metavar="WORLDS",
              help="Without a run: judge agents of known kind in so many synthetic worlds.")  # fmt: skip
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
    run: str | None,
    out: Path,
    agents: tuple[str, ...],
    html: Path | None,
    trials: int,
    portfolios: int,
    leak_test: bool,
    robustness: bool,
    regimes: bool,
    rationales: bool,
    planted: int | None,
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
    --planted tests the instrument itself, on agents of which the truth is known.
    """
    from tradeassay.assay.verdict import OwnAccount, VerdictConfig
    from tradeassay.assay.verdict import assay as assay_of

    config = VerdictConfig(trials=trials, portfolios=portfolios)
    if run is None:
        _planted(planted, config, as_json)
        return
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
    folder = find_run(run, out)
    wanted: dict[Study, bool] = {"robustness": robustness, "regimes": regimes, "rationales": rationales}
    studies = _studies(folder, [name for name, asked in wanted.items() if asked])
    _show(_recorded(folder, config, agents, leak_test), html, as_json, studies)


def _recorded(folder: Path, config: VerdictConfig, agents: tuple[str, ...], leak_test: bool) -> Assay:
    from tradeassay.assay.verdict import assay as assay_of
    from tradeassay.assay.verdict.evidence import leak_tests
    from tradeassay.runs import Run

    recorded = Run.load(folder)
    leaks = leak_tests(recorded, agents=agents) if leak_test else None
    return assay_of(recorded, config, agents=agents, leaks=leaks)


def _studies(folder: Path, wanted: list[Study]) -> Studies | None:
    if not wanted:
        return None
    from tradeassay.assay import study_run
    from tradeassay.runs import Run

    return study_run(Run.load(folder), wanted)


def _show(made: Assay, html: Path | None, as_json: bool, studies: Studies | None = None) -> None:
    if html is not None:
        from tradeassay.report import write_verdicts

        say(f"verdicts: {write_verdicts(made, html)}")
    if as_json:
        print_json(made if studies is None else {"assay": made, "studies": studies})
        return
    from tradeassay.report import print_verdicts

    print_verdicts(made)
    if studies is not None:
        _print_studies(studies)


def _print_studies(studies: Studies) -> None:
    if studies.robustness is not None:
        columns = ("agent", "disturbance", "variant", "return", "edge", "decisions changed", "obeyed")
        print_table(
            "robustness: change a year when disturbed",
            columns,
            (
                (one.agent, one.disturbance, one.variant, _cell(one.return_change), _cell(one.edge_change),
                 _cell(one.decisions_changed), _cell(one.obeyed))
                for one in studies.robustness.scores
            ),
        )  # fmt: skip
        for note in studies.robustness.notes:
            say(note)
    if studies.regimes is not None:
        shown = ("return", "against the index", "selection", "sharpe", "max_drawdown")
        print_table(
            "regimes: a year's pace in each",
            ("agent", "market", "sessions", *shown),
            (
                (one.agent, one.regime, str(one.sessions),
                 *(_cell(one.measures.get(name), ratio=name == "sharpe") for name in shown))
                for one in studies.regimes
            ),
        )  # fmt: skip
    if studies.rationales is not None:
        rows = studies.rationales.rows
        print_table(
            "rationales: reasons that name something unseen",
            ("agent", "mask", "reasons", "any", *(rows[0].shares if rows else ())),
            (
                (one.agent, one.arm, str(one.reasons), _cell(one.any), *map(_cell, one.shares.values()))
                for one in rows
            ),
        )


def _cell(measure: Measure | None, *, ratio: bool = False) -> str:
    if measure is None or measure.value is None:
        return "not scored"
    return f"{measure.value:+.2f}" if ratio else f"{measure.value:+.1%}"


def _planted(worlds: int | None, config: VerdictConfig, as_json: bool) -> None:
    if worlds is None:
        raise UserError("nothing to assay is named", mend="give a run, a table, or --planted WORLDS")
    from tradeassay.assay import planted_trial

    found = planted_trial(worlds, config=config)
    if as_json:
        print_json(found)
        return
    kinds = [kind for kind in next(iter(found.counts.values())) if any(row[kind] for row in found.counts.values())]
    rows = [
        (name, *(str(row[kind]) for kind in kinds), _cell(found.right[name])) for name, row in found.counts.items()
    ]
    print_table(f"verdicts on planted agents in {found.worlds} worlds", ("planted", *kinds, "right"), rows)
