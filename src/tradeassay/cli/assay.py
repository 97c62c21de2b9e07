"""Commands about a result: ``assay``, ``luck``, ``power``, ``leak-test``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tradeassay.cli._group import CommandGroup
from tradeassay.cli._options import (
    COUNT,
    NATURAL,
    FoldedCommand,
    add_options,
    advanced,
    executor_option,
    file_option,
    find_run,
    option,
    out_option,
    page_option,
    refuse_seal,
    several,
    workers_option,
)
from tradeassay.cli._output import json_option, print_json, print_rows, print_table, say, written_page
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tradeassay.assay import Studies
    from tradeassay.assay.luck import Luck
    from tradeassay.assay.verdict import Assay
    from tradeassay.core.measure import Measure
    from tradeassay.runs import Run

_trades_options = add_options(
    (
        advanced("--names", type=COUNT, help="For a table of returns: how many names were held."),
        advanced(
            "--turnover", type=click.FloatRange(0.0), help="For a table of returns: yearly one-way turnover."
        ),
    )
)
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".ods")


class _ByArgument(CommandGroup):
    """A group whose first word may be left out: a table's file means ``file``, anything else ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            # The file behind --recall is about a run; any other file is what is to be judged.
            words = [one for before, one in zip(("", *args), args, strict=False) if before != "--recall"]
            table = any(Path(one).suffix.lower() in _TABLES or Path(one).is_file() for one in words)
            args = ["file" if table else "run", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            for name, goes, here in (("run", "a run", "a table"), ("file", "a table", "a run")):
                if any(error.option_name in one.opts for one in self.commands[name].params):
                    raise UserError(f"{error.option_name} goes with {goes}, and this is {here}") from error
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        run = self.commands["run"]
        return super().shell_complete(ctx, incomplete) + run.params[0].shell_complete(ctx, incomplete)


@click.group(cls=_ByArgument, subcommand_metavar="RUN | FILE.csv | self-test [OPTIONS]")
def assay() -> None:
    """Say what a result is made of: skill, luck, style, leaked future, or memory.

    \b
    tradeassay assay my-run                  a recorded run: tradeassay assay run --help
    tradeassay assay returns.csv             an account of your own: tradeassay assay file --help
    tradeassay assay self-test               the verdict itself, on agents of known nature

    Every verdict is one sentence, never stronger than the evidence.
    """


_trials = option(
    "--trials", type=COUNT, default=1, help="How many strategies were tried before this one was shown."
)
_watched = click.option(
    "--watched", is_flag=True, help="It still grows and is looked at again: intervals that hold however often."
)
_capacity = advanced("--capacity", is_flag=True, help="Show what larger accounts would have left of the edge.")
_portfolios = advanced(
    "--portfolios",
    type=NATURAL,
    default=10_000,
    help="Random portfolios of the luck baseline (fewer where that is enough); 0 for none.",
)


@assay.command("run", cls=FoldedCommand)
@click.argument("run")
@several("--agent", "agents", metavar="NAME", help="Only this agent of the run; repeat for several.")
@page_option("page. Default: report.html in its folder, RUN-assay.html for --agent")
@_trials
@_watched
@_portfolios
@click.option("--leak-test", is_flag=True, help="Replay every session with the future changed; no model is asked.")
@click.option(
    "--leak-sessions", type=click.IntRange(2), metavar="N", help="Only the first N sessions of the leak test."
)
@click.option(
    "--robustness",
    is_flag=True,
    help="Repeat the run with other costs, delay, names and news; no model is asked again.",
)
@several(
    "--recall",
    "recalls",
    metavar="FILE|ask",
    help="What its models remember: a record of memory recall or counterfactual (repeat), or ask them now.",
)
@_capacity
@click.option("--regimes", is_flag=True, help="Show every agent in rising, falling, V-shaped and flat markets.")
@click.option("--rationales", is_flag=True, help="Count reasons that name things the model had not been shown.")
@out_option
@workers_option
@executor_option()
@json_option
def assay_run(
    run: str,
    agents: tuple[str, ...],
    page: Path | None,
    trials: int,
    watched: bool,
    portfolios: int,
    leak_test: bool,
    leak_sessions: int | None,
    recalls: tuple[str, ...],
    out: Path,
    workers: int | None,
    executor: Any,
    as_json: bool,
    capacity: bool,
    **asked: bool,
) -> None:
    """Say what a recorded run is made of."""
    from tradeassay.assay import study_run
    from tradeassay.assay.leaks import LeakTestConfig
    from tradeassay.assay.leaks.examine import leak_tests
    from tradeassay.assay.memory import ask_models, read_record
    from tradeassay.assay.verdict import VerdictConfig, assay as assay_of, record_assay
    from tradeassay.core.executors import Spread
    from tradeassay.runs import Run
    from tradeassay.runs.verify.attested import vouched

    folder = find_run(run, out)
    recorded, spread = Run.load(folder), Spread(executor=executor, workers=workers)
    wanted: list[Any] = [study for study, chosen in asked.items() if chosen]
    studies = study_run(recorded, wanted) if wanted else None
    leaks = None
    if leak_test or leak_sessions is not None:
        tests = LeakTestConfig(sessions=leak_sessions)
        leaks = leak_tests(recorded, agents=agents, config=tests, say=say, spread=spread)
    memory = [
        one
        for name in recalls
        for one in (ask_models(recorded, say=say) if name == "ask" else [read_record(Path(name))])
    ]
    config = VerdictConfig(trials=trials, portfolios=portfolios, watched=watched)
    made = assay_of(recorded, config, agents=agents, leaks=leaks, memory=memory, say=say, spread=spread)
    # Of some agents: beside the run, whose own page shows what is recorded.
    usual: Path | None = Path(f"{folder.name}-assay.html")
    kept = folder / "assay.json"
    if not agents and kept.is_file() and not vouched(kept.read_bytes()):
        say(f"{kept} was not made on this machine and is kept")
    elif not agents:
        try:
            record_assay(recorded, made, memory)
            usual = None
        except OSError as error:  # what was computed is shown all the same
            say(f"{kept} cannot be written: {error.strerror}")
    _show_verdicts(made, page, usual, as_json, studies, run=recorded, capacity=capacity)


@assay.command("file", cls=FoldedCommand)
@click.argument("table", metavar="FILE")
@click.option(
    "--against", metavar="MARKET", help="sp500, nasdaq, us-market, a file of a benchmark's returns, or a column."
)
@click.option("--cash", metavar="FILE", help="What cash earned: a file, or french; none for returns beyond it.")
@click.option(
    "--factors", metavar="FILE", help="Returns of styles, a column each (RF and Mkt-RF among them), or french."
)
@click.option("--dataset", metavar="NAME", help="The data set with the prices of what was held.")
@advanced("--universe", metavar="NAME", default="all", help="An index of the data set, or all.")
@file_option("--weights", "The weights that were held, beside a table of returns.")
@click.option("--prices", metavar="FILE", help="For a trade log: bars of what was traded, instead of --dataset.")
@click.option(
    "--cash-at-start", type=click.FloatRange(0.0, min_open=True), help="For a trade log: what it began with."
)
@advanced("--until", metavar="DAY", help="For a trade log: hold on after its last trade.")
@advanced("--symbol", metavar="NAME", help="For a list of decisions: what was bought and sold.")
@click.option(
    "--between",
    type=click.Choice(["cash", "hold"]),
    help="For weights: what sessions without a row mean. Default: hold where rows are rare, or asked.",
)
@page_option("page. Default: FILE-assay.html")
@_trials
@_watched
@click.option("--column", help="The account's column.")
@click.option(
    "--unit",
    type=click.Choice(["fraction", "percent", "basis points"]),
    help="What the numbers are. Default: guessed from their size.",
)
@click.option("--dates", type=click.Choice(["dmy", "mdy"]), help="Which way 03/04/2024 is read.")
@advanced(
    "--dividends",
    type=click.FloatRange(0.0, 1.0),
    default=0.025,
    help="The most that the market's returns leave out a year; 0 for none.",
)
@advanced("--interest", type=click.FloatRange(0.0, 1.0), default=0.05, help="The most that cash earned in a year.")
@_portfolios
@advanced("--benchmark", metavar="ID", help="The benchmark whose rules a luck baseline follows.")
@_capacity
@_trades_options
@json_option
def assay_file(
    table: str,
    weights: Path | None,
    page: Path | None,
    column: str | None,
    unit: Any,
    dates: Any,
    capacity: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Say what an account of your own is made of.

    FILE is a Parquet or CSV table of returns or values (date, return), of weights (date, symbol, weight), or a
    trade log (time, symbol, side, quantity, price, fees; a broker's export; days with BUY, SELL or HOLD). It is
    judged against --dataset, or its returns --against a market's.
    """
    from tradeassay.assay.verdict import OwnAccount, VerdictConfig, assay as assay_of
    from tradeassay.data.tables.account import TableReading

    refuse_seal(table)
    if not Path(table).is_file():
        raise UserError(f"no file {table}", hint="check the path")
    config = VerdictConfig(
        **{name: given.pop(name) for name in ("trials", "portfolios", "dividends", "interest", "watched")}
    )
    reading = TableReading(unit=unit, dates=dates, column=column)
    own = OwnAccount(weights=None if weights is None else str(weights), returns=table, reading=reading, **given)
    usual = Path(table).with_name(f"{Path(table).stem}-assay.html")
    _show_verdicts(assay_of(own, config), page, usual, as_json, capacity=capacity)


@assay.command("self-test")
@option("--worlds", type=COUNT, default=10, help="Synthetic worlds to judge agents in.")
@_trials
@_portfolios
@workers_option
@executor_option()
@json_option
def self_test(
    worlds: int, trials: int, portfolios: int, workers: int | None, executor: Any, as_json: bool
) -> None:
    """Test the verdict itself: judge agents of a known kind in synthetic worlds."""
    from tradeassay.assay import planted_trial
    from tradeassay.assay.verdict import VerdictConfig
    from tradeassay.core.executors import Spread

    config = VerdictConfig(trials=trials, portfolios=portfolios)
    found = planted_trial(worlds, config=config, spread=Spread(executor=executor, workers=workers))
    kinds = [kind for kind in next(iter(found.counts.values())) if any(row[kind] for row in found.counts.values())]
    rows = [
        (name, *(str(row[kind]) for kind in kinds), _cell(found.right[name])) for name, row in found.counts.items()
    ]
    title = f"verdicts on planted agents in {found.worlds} worlds"
    print_rows(found, as_json, title, ("planted", *kinds, "right"), rows)


def _show_verdicts(
    made: Assay,
    page: Path | None,
    usual: Path | None,
    as_json: bool,
    studies: Studies | None = None,
    run: Run | None = None,
    *,
    capacity: bool,
) -> None:
    """Print the verdicts and write the page: where it was asked for, else at its usual place unless for JSON. That
    of a run is in its folder where ``usual`` is None."""
    from tradeassay.report import print_verdicts, write_html

    if as_json:
        print_json(made if studies is None else {"assay": made, "studies": studies})
    else:
        print_verdicts(made)
        if capacity:
            _print_capacity(made)
        if studies is not None:
            _print_studies(studies)
    if page is not None or not as_json:
        place = page or usual
        say(f"page: {write_html(made, place) if run is None else written_page(run, place, assay=made)}")


def _print_capacity(made: Assay) -> None:
    """Print what larger accounts would have left; say why where that is not known."""
    from tradeassay.assay.verdict.record import money_words

    rows = []
    for one in made.agents:
        known = one.capacity
        for size, edge in () if known is None else zip(known.sizes, known.edges, strict=True):
            ends = "" if edge.low is None else f"{edge.low:+.1%} to {edge.high:+.1%}"
            rows.append((one.agent, money_words(size), _cell(edge), ends))
        say(
            f"{one.agent}: no size is known: it has no edge before impact, or the usual amounts of what it traded "
            "are not known"
            if known is None
            else f"{one.agent}: {known.sentence}"
        )
    if rows:
        print_table("capacity: the edge a year of larger accounts", ("agent", "size", "edge", "interval"), rows)


def _print_studies(studies: Studies) -> None:
    if studies.robustness is not None:
        columns = ("agent", "disturbance", "variant", "return", "edge", "decisions changed", "obeyed")
        print_table(
            "robustness: change a year when disturbed",
            columns,
            (
                (
                    one.agent,
                    one.disturbance,
                    one.variant,
                    _cell(one.return_change),
                    _cell(one.edge_change),
                    _cell(one.decisions_changed),
                    _cell(one.obeyed),
                )
                for one in studies.robustness.scores
            ),
        )
        for note in studies.robustness.notes:
            say(note)
    if studies.regimes is not None:
        shown = ("return", "against the index", "selection", "sharpe", "max_drawdown")
        print_table(
            "regimes: a year's pace in each",
            ("agent", "market", "sessions", *shown),
            (
                (
                    one.agent,
                    one.regime,
                    str(one.sessions),
                    *(_cell(one.measures.get(name), ratio=name == "sharpe") for name in shown),
                )
                for one in studies.regimes
            ),
        )
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


@click.command()
@click.argument("run")
@out_option
@several("--agent", "agents", metavar="NAME", help="Only this agent of the run; repeat for several.")
@option("--portfolios", type=click.IntRange(100), default=10_000, help="How many.")
@option("--seed", type=NATURAL, default=0, help="Draws other portfolios.")
@option("--by", type=click.Choice(["return", "sharpe"]), default="return", help="What to rank by.")
@click.option(
    "--benchmark", metavar="ID", help="For a table of returns: the benchmark whose market and rules are used."
)
@click.option(
    "--dataset", metavar="NAME", help="For a table of returns: a data set other than the benchmark's own."
)
@_trades_options
@workers_option
@executor_option()
@json_option
def luck(
    run: str,
    out: Path,
    agents: tuple[str, ...],
    portfolios: int,
    seed: int,
    by: Literal["return", "sharpe"],
    workers: int | None,
    executor: Any,
    as_json: bool,
    **stated: Any,
) -> None:
    """Rank a result among random portfolios with the same rules, turnover and costs.

    RUN is a recorded run, or a Parquet or CSV file with the columns date and return. Random portfolios trade when
    the run traded, as much as it did, in other names. A file does not say how it traded, so give --benchmark,
    --names and --turnover.
    """
    from tradeassay.assay.luck import LuckConfig, luck_of_run

    path, config = Path(run), LuckConfig(portfolios=portfolios, seed=seed, by=by)
    if path.is_file():
        from tradeassay.assay import OwnAccount, luck_of_file

        found: tuple[Luck, ...] = (luck_of_file(OwnAccount(returns=str(path), **stated), config),)
    else:
        from tradeassay.core.executors import Spread
        from tradeassay.runs import Run

        recorded, spread = Run.load(find_run(run, out)), Spread(executor=executor, workers=workers)
        found = luck_of_run(recorded, agents=agents, config=config, spread=spread)
    print_rows(found, as_json, f"luck of '{path.name}'", _LUCK, map(_luck_row, found))
    if not as_json:
        say("better than: share of random portfolios with the same trades in other names that did worse")


_LUCK = ("agent", "seed", "result", "random 5 %", "median", "95 %", "better than", "interval", "note")


def _luck_row(one: Luck) -> tuple[str, ...]:
    place = one.place
    if place is None:
        return (one.agent, str(one.seed), *[""] * 6, str(one.reason))
    from tradeassay.report.numbers import written

    form = "change" if place.by == "return" else "signed"
    numbers = [written(value, form) for value in (place.value, place.low, place.median, place.high)]
    share = place.percentile
    span = "" if share.low is None else f"{share.low:.0%} to {share.high:.0%}"
    return (one.agent, str(one.seed), *numbers, f"{share.value:.1%}", span, share.note or "")


_SHARE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)


@click.command()
@click.argument("run", required=False)
@out_option
@option("--ir", type=float, default=1.0, help="The yearly information ratio to detect.")
@option("--sessions", type=COUNT, default=252, help="Sessions played.")
@option("--seeds", type=COUNT, default=1, help="Repetitions of the agent.")
@option("--level", type=_SHARE, default=0.95, help="Confidence level of the test.")
@option("--power", type=_SHARE, default=0.8, help="Probability of detecting the ratio.")
@option("--agents", "comparisons", type=COUNT, default=1, help="Agents judged together.")
@option(
    "--seed-correlation",
    type=click.FloatRange(0.0, 1.0),
    default=0.5,
    help="Correlation of two seeds' active returns.",
)
@option(
    "--autocorrelation", type=click.FloatRange(-0.9, 0.9), default=0.0, help="Autocorrelation of active returns."
)
@json_option
def power(run: str | None, out: Path, ir: float, autocorrelation: float, as_json: bool, **planned: Any) -> None:
    """Say how many sessions and seeds it takes to detect an information ratio.

    With a recorded RUN: what each of its comparisons could have shown, with the dependence measured in it.
    """
    if run is not None:
        _recorded_power(find_run(run, out), ir, as_json)
        return
    from tradeassay.metrics import Design, ar1_inflation, power_summary, seeds_needed

    design = Design(inflation=ar1_inflation(autocorrelation), **planned)
    seen, more = power_summary(design, ir=ir), seeds_needed(ir, design)
    if as_json:
        print_json({"design": design, "power_summary": seen, "seeds_needed": more})
        return
    within, seeds = f"in {design.sessions:,} sessions", f"{design.seeds} seed{'s' * (design.seeds > 1)}"
    rows = [
        (f"chance to see {ir:g} {within} with {seeds}", f"{seen.chance:.1%}"),
        (f"smallest ratio seen with a chance of {design.power:.0%}", f"{seen.smallest:.2f}"),
        (f"sessions needed to see {ir:g}", f"{seen.sessions:,} ({seen.sessions / 252:,.1f} years)"),
        (f"seeds needed {within}", "no number of seeds is enough" if more is None else f"{more:,}"),
    ]
    print_table("power", ("question", "answer"), rows)


def _recorded_power(folder: Path, ir: float, as_json: bool) -> None:
    from tradeassay.assay.power import power_of_run
    from tradeassay.runs import Run

    found = power_of_run(Run.load(folder), ir=ir)
    rows = []
    for one in found:
        seen = one.power_summary
        shown = ("", "") if seen is None else (f"{seen.smallest:.2f}", f"{seen.chance:.0%}")
        rows.append((one.cell, one.agent, *shown, one.sentence))
    columns = ("cell", "agent", "smallest ratio", f"chance for {ir:g}", "in words")
    print_rows(found, as_json, "power", columns, rows)
    if not as_json:
        say("smallest ratio: the information ratio that would be found with a chance of 80 %")


@click.command("leak-test")
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
@option("--benchmark", metavar="ID", default="daily-us-v1", help="The benchmark to play.")
@click.option("--dataset", metavar="NAME", help="A data set other than the benchmark's own.")
@click.option("--first", metavar="DAY", help="First session, YYYY-MM-DD. Default: the benchmark's.")
@click.option("--sessions", type=click.IntRange(2), help="Decisions to test. Default: all; 40 for a model.")
@option("--seed", type=NATURAL, default=0, help="Draws other futures.")
@workers_option
@executor_option()
@json_option
@click.pass_context
def leak_test(
    ctx: click.Context,
    agents: tuple[str, ...],
    benchmark: str,
    dataset: str | None,
    first: str | None,
    sessions: int | None,
    seed: int,
    workers: int | None,
    executor: Any,
    as_json: bool,
) -> None:
    """Test whether an agent's decisions depend on what lies after its clock, and say through which channel.

    In every session everything after the clock is replaced by another future, twice. AGENT is a registered agent
    or a model (scripted/sensible); several are tested one by one, or side by side with --executor. A model is
    asked once per session. Exits with 1 when something leaks.
    """
    from functools import partial

    from tradeassay.assay.leaks import LeakTestConfig, leak_test as examine
    from tradeassay.benchmarks import benchmarks
    from tradeassay.benchmarks.programs import refuse_other_kind
    from tradeassay.core.executors import Spread
    from tradeassay.runs import Window

    refuse_other_kind(benchmark, trades=True)
    window = None if first is None else Window(first=first, last=max(first, benchmarks.get(benchmark).market.last))
    config = LeakTestConfig(sessions=sessions, seed=seed)
    one = partial(examine, benchmark=benchmark, dataset=dataset, window=window, config=config)
    reports = Spread(executor=executor, workers=workers).map(one, agents)
    if as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        for report in reports:
            rows = [
                (name, f"{share.value:.0%}", "none" if share.high is None else f"{share.high:.0%}")
                for name, share in report.moved.items()
            ]
            rows += [(name, "not tested", why) for name, why in report.untested.items()]
            print_table(f"{report.agent}: sessions that moved", ("channel", "moved", "could be at most"), rows)
            for finding in report.findings:
                where = finding.channel or "a time stamp"
                say(f"{where} through {finding.through} on {finding.session}: {finding.detail}")
            for note in report.notes:
                say(note)
            say(report.sentence)
    if any(report.leaks for report in reports):
        ctx.exit(1)
