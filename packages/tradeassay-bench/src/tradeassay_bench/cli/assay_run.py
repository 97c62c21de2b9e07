"""Define commands that judge results, such as ``assay run``, ``luck``, ``power``, ``leak-test``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, print_rows, print_table, say
from tradeassay.cli.assay import (
    capacity_option,
    percent,
    portfolios_option,
    show_verdicts,
    trades_options,
    tries_option,
    watched_option,
)
from tradeassay_bench.cli import _run_options as run_opt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tradeassay_bench.examine import RegimePanel
    from tradeassay_bench.examine.luck import Luck


class AssayRunCommand(opt.FoldedCommand):
    """The command ``assay run``."""

    @staticmethod
    def check_subject(name: str) -> None:
        """Raise :class:`~tradeassay.core.errors.UserError` if the run ``name`` does not exist."""
        run_opt.find_run(name, Path("runs"))


@click.command("run", cls=AssayRunCommand)
@click.argument("run")
@opt.several("--agent=NAME agents", "Only this agent of the run; repeat for several.")
@opt.page("page. Default: report.html in its folder, RUN-assay.html for --agent")
@tries_option
@watched_option
@portfolios_option
@opt.flag("--leak-test", "Replay every session with changed future data; queries no model.")
@opt.option(
    "--leak-sessions=N", "Only the first N sessions of the leak test.", type=click.IntRange(2)
)
@opt.several(
    "--recall=FILE|ask recalls",
    "A record of memory recall or counterfactual for its models (repeat), or ask them now.",
)
@opt.several(
    "--mask-price=RUN mask_prices",
    "The same models and masks on a synthetic world: what a mask takes there is no memory "
    "(repeat).",
)
@capacity_option
@opt.flag("--regimes", "Show every agent in rising, falling, V-shaped and flat markets.")
@run_opt.out
@opt.workers
@opt.executor()
@json_option
def assay_run(
    run: str,
    agents: tuple[str, ...],
    page: Path | None,
    out: Path,
    as_json: bool,
    capacity: bool,
    **given: Any,
) -> None:
    """Judge the agents of a recorded run: is it skill, luck, or something else?"""
    from tradeassay.verdict import VerdictConfig
    from tradeassay_bench.core.executors import Spread
    from tradeassay_bench.examine import regime_panels
    from tradeassay_bench.examine.assay_file import record_assay
    from tradeassay_bench.examine.judge import assay as assay_of
    from tradeassay_bench.examine.leaks import LeakTestConfig
    from tradeassay_bench.examine.leaks.examine import leak_tests
    from tradeassay_bench.examine.memory import ask_models, read_record
    from tradeassay_bench.report import write_html
    from tradeassay_bench.runs import Run

    folder = run_opt.find_run(run, out)
    recorded = Run.load(folder)
    spread = Spread(executor=given["executor"], workers=given["workers"])
    regimes = regime_panels(recorded) if given["regimes"] else None
    leaks = None
    if given["leak_test"] or given["leak_sessions"] is not None:
        tests = LeakTestConfig(sessions=given["leak_sessions"])
        leaks = leak_tests(recorded, agents=agents, config=tests, say=say, spread=spread)
    memory = []
    for name in given["recalls"]:
        memory += ask_models(recorded, say=say) if name == "ask" else [read_record(Path(name))]
    config = VerdictConfig(**{name: given[name] for name in ("tries", "portfolios", "watched")})
    judged = assay_of(
        recorded,
        config,
        agents=agents,
        leaks=leaks,
        memory=memory,
        mask_price=[Run.load(run_opt.find_run(name, out)) for name in given["mask_prices"]],
        say=say,
        spread=spread,
    )
    # The run's own page shows the recorded assay of all agents. An assay of some agents gets a
    # separate page.
    default_page: Path | None = Path(f"{folder.name}-assay.html")
    if not agents:
        try:
            record_assay(recorded, judged, memory)
            default_page = None
        except OSError as error:  # the result is shown even if the file cannot be written
            say(f"{folder / 'assay.json'} cannot be written: {error.strerror}")
    if as_json:
        studies = {"assay": judged, "studies": {"regimes": regimes}}
        print_json(judged if regimes is None else studies)
    else:
        show_verdicts(judged, as_json, capacity=capacity)
        if regimes is not None:
            _print_regimes(regimes)
    if page is not None or not as_json:
        say(f"page: {write_html(recorded, page or default_page, assay=judged)}")


@click.command("self-test")
@opt.option("--worlds", "Number of synthetic worlds.", type=opt.COUNT, default=10)
@tries_option
@portfolios_option
@opt.workers
@opt.executor()
@json_option
def self_test(
    worlds: int,
    tries: int | None,
    portfolios: int,
    workers: int | None,
    executor: Any,
    as_json: bool,
) -> None:
    """Test the verdict itself on agents of known skill in synthetic worlds."""
    from tradeassay.verdict import VerdictConfig
    from tradeassay_bench.core.executors import Spread
    from tradeassay_bench.examine import planted_trial

    config = VerdictConfig(tries=tries, portfolios=portfolios)
    trial = planted_trial(worlds, config=config, spread=Spread(executor=executor, workers=workers))
    kinds = [
        kind
        for kind in next(iter(trial.counts.values()))
        if any(row[kind] for row in trial.counts.values())
    ]
    rows = [
        (name, *(str(row[kind]) for kind in kinds), percent(trial.right[name]))
        for name, row in trial.counts.items()
    ]
    title = f"verdicts on agents of known skill in {trial.worlds} worlds"
    print_rows(trial, as_json, title, ("planted", *kinds, "right"), rows)


def _print_regimes(regimes: Sequence[RegimePanel]) -> None:
    measures = ("return", "against the index", "selection", "sharpe", "max_drawdown")
    rows = []
    for panel in regimes:
        cells = (percent(panel.measures.get(name), ratio=name == "sharpe") for name in measures)
        rows.append((panel.agent, panel.regime, str(panel.sessions), *cells))
    columns = ("agent", "market", "sessions", *measures)
    print_table("regimes: annualised measures in each regime", columns, rows)


@click.command()
@click.argument("run")
@run_opt.out
@opt.several("--agent=NAME agents", "Only this agent of the run; repeat for several.")
@opt.option(
    "--portfolios", "Number of random portfolios.", type=click.IntRange(100), default=10_000
)
@opt.option("--seed", "Seed of the random portfolios.", type=opt.NATURAL, default=0)
@opt.option(
    "--by", "The measure to rank by.", type=click.Choice(["return", "sharpe"]), default="return"
)
@opt.option(
    "--suite=ID", "For a table of returns: the benchmark suite whose market and rules are used."
)
@opt.option("--dataset=NAME", "For a table of returns: a data set other than the benchmark's own.")
@trades_options
@opt.workers
@opt.executor()
@json_option
def luck(run: str, out: Path, agents: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Rank a result among random portfolios with the same rules, turnover and costs.

    RUN is a recorded run, or a Parquet or CSV file with the columns date and return. Random
    portfolios trade at the same times and in the same amounts as the run, but in other names. A
    file has no trades, so set --suite, --names and --turnover.
    """
    from tradeassay.report.numbers import written
    from tradeassay_bench.core.executors import Spread
    from tradeassay_bench.examine.luck import LuckConfig, luck_of_run

    path, spread = Path(run), Spread(executor=given.pop("executor"), workers=given.pop("workers"))
    config = LuckConfig(**{name: given.pop(name) for name in ("portfolios", "seed", "by")})
    if path.is_file():
        from tradeassay.verdict.own_account import OwnAccount
        from tradeassay_bench.examine import luck_of_file

        results: tuple[Luck, ...] = (luck_of_file(OwnAccount(returns=str(path), **given), config),)
    else:
        from tradeassay_bench.runs import Run

        results = luck_of_run(
            Run.load(run_opt.find_run(run, out)), agents=agents, config=config, spread=spread
        )
    rows = []
    for result in results:
        cells = ["", "", "", "", "", "", str(result.reason)]
        if result.place is not None:
            place, share = result.place, result.place.percentile
            form = "change" if place.by == "return" else "signed"
            cells = [
                written(value, form) for value in (place.value, place.low, place.median, place.high)
            ]
            span = "" if share.low is None else f"{share.low:.0%} to {share.high:.0%}"
            cells += [f"{share.value:.1%}", span, share.note or ""]
        rows.append((result.agent, str(result.seed), *cells))
    columns = (
        "agent",
        "seed",
        "result",
        "random 5 %",
        "median",
        "95 %",
        "beats",
        "interval",
        "note",
    )
    print_rows(results, as_json, f"luck of '{path.name}'", columns, rows)
    if not as_json:
        say("beats: the share of random portfolios (same trades, other names) with a lower result")


_SHARE = opt.Fraction(0.0, 1.0, min_open=True, max_open=True)


@click.command()
@click.argument("run", required=False)
@run_opt.out
@opt.option("--ratio", "The annual alpha ratio to detect.", type=opt.NUMBER, default=1.0)
@opt.option("--sessions", "Sessions played.", type=opt.COUNT, default=252)
@opt.option(
    "--seeds", "Number of runs of the agent with different seeds.", type=opt.COUNT, default=1
)
@opt.option("--level", "Confidence level of the test.", type=_SHARE, default=0.95)
@opt.option("--power", "Probability of detecting the ratio.", type=_SHARE, default=0.8)
@opt.option("--agents comparisons", "Agents judged together.", type=opt.COUNT, default=1)
@opt.option(
    "--seed-correlation",
    "Correlation between the active returns of two seeds.",
    type=opt.Fraction(0.0, 1.0),
    default=0.5,
)
@opt.option(
    "--autocorrelation",
    "Autocorrelation of active returns.",
    type=opt.Fraction(-0.9, 0.9),
    default=0.0,
)
@json_option
def power(
    run: str | None, out: Path, ratio: float, autocorrelation: float, as_json: bool, **planned: Any
) -> None:
    """Show how many sessions and seeds a design needs to detect an alpha ratio.

    Power depends on the design, not on a result. For a recorded RUN, show what each of its
    comparisons could have detected, given the dependence measured in the run.
    """
    from tradeassay.metrics import Design, ar1_inflation, power_summary, seeds_needed

    if run is not None:
        from tradeassay_bench.examine.power import power_of_run
        from tradeassay_bench.runs import Run

        comparisons = power_of_run(Run.load(run_opt.find_run(run, out)), ratio=ratio)
        rows: list[tuple[str, ...]] = []
        for comparison in comparisons:
            summary = comparison.power_summary
            cells = ("", "")
            if summary is not None:
                cells = (f"{summary.smallest:.2f}", f"{summary.chance:.0%}")
            rows.append((comparison.setting, comparison.agent, *cells, comparison.sentence))
        columns = ("setting", "agent", "smallest ratio", f"chance for {ratio:g}", "in words")
        print_rows(comparisons, as_json, "power of the design", columns, rows)
        if not as_json:
            say("smallest ratio: the smallest alpha ratio detected with a probability of 80 %")
        return
    design = Design(inflation=ar1_inflation(autocorrelation), **planned)
    power_now, needed = power_summary(design, ratio=ratio), seeds_needed(ratio, design)
    if as_json:
        print_json({"design": design, "power_summary": power_now, "seeds_needed": needed})
        return
    span = f"in {design.sessions:,} sessions"
    seeds = f"{design.seeds} seed{'s' * (design.seeds > 1)}"
    years = power_now.sessions / 252
    rows = [
        (f"probability of detecting {ratio:g} {span} with {seeds}", f"{power_now.chance:.1%}"),
        (
            f"smallest ratio detected with a probability of {design.power:.0%}",
            f"{power_now.smallest:.2f}",
        ),
        (f"sessions needed to detect {ratio:g}", f"{power_now.sessions:,} ({years:,.1f} years)"),
        (
            f"seeds needed {span}",
            "no number of seeds is enough" if needed is None else f"{needed:,}",
        ),
    ]
    print_table("power of the design", ("question", "answer"), rows)


@click.command("leak-test")
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
@opt.option("--suite=ID", "Benchmark suite for the test.", default="daily-us-v1")
@opt.option("--dataset=NAME", "A data set other than the benchmark's own.")
@opt.option("--first=DAY", "First session, YYYY-MM-DD. Default: the benchmark's.")
@opt.option(
    "--sessions", "Decisions to test. Default: all; 40 for a model.", type=click.IntRange(2)
)
@opt.option("--seed", "Seed of the alternative futures.", type=opt.NATURAL, default=0)
@opt.workers
@opt.executor()
@json_option
def leak_test(
    agents: tuple[str, ...], suite: str, first: str | None, as_json: bool, **given: Any
) -> None:
    """Test whether an agent's decisions depend on future data, and through which channel.

    In every session all data after the agent's clock is replaced twice, by two different futures.
    AGENT is a registered agent or a model (scripted/sensible). Several agents are tested one by
    one, or in parallel with --executor. A model is queried once per session. Exits with 1 if an
    agent leaks.
    """
    from functools import partial

    from tradeassay.core.measure import at_most
    from tradeassay_bench.benchmarks import benchmarks
    from tradeassay_bench.benchmarks.code_protocol import refuse_other_kind
    from tradeassay_bench.core.executors import Spread
    from tradeassay_bench.examine.leaks import LeakTestConfig, leak_test as examine
    from tradeassay_bench.runs import Window

    refuse_other_kind(suite, trades=True)
    window = (
        None
        if first is None
        else Window(first=first, last=max(first, benchmarks.get(suite).market.last))
    )
    config = LeakTestConfig(sessions=given["sessions"], seed=given["seed"])
    test = partial(examine, benchmark=suite, dataset=given["dataset"], window=window, config=config)
    reports = Spread(executor=given["executor"], workers=given["workers"]).map(test, agents)
    if as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        for report in reports:
            rows = [
                (name, f"{share.value:.0%}", "none" if share.high is None else at_most(share.high))
                for name, share in report.moved.items()
            ]
            rows += [(name, "not tested", reason) for name, reason in report.untested.items()]
            print_table(
                f"{report.agent}: changed decisions",
                ("channel", "moved", "upper bound"),
                rows,
            )
            for finding in report.findings:
                channel = finding.channel or "a time stamp"
                say(f"{channel} through {finding.through} on {finding.session}: {finding.detail}")
            for note in report.notes:
                say(note)
            say(report.sentence)
    if any(report.leaks for report in reports):
        click.get_current_context().exit(1)
