"""Commands about a result: ``assay``, ``luck``, ``power``, ``leak-test``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._output import json_option, print_json, print_rows, print_table, say, written_page
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.assay import Studies
    from tradeassay.assay.luck import Luck
    from tradeassay.assay.verdict import Assay
    from tradeassay.core.measure import Measure
    from tradeassay.runs import Run

_trades_options = opt.add_options(
    (
        opt.advanced("--names", "For a table of returns: how many names were held.", type=opt.COUNT),
        opt.advanced("--turnover", "For a table of returns: yearly one-way turnover.", type=opt.Fraction(0.0)),
    )
)
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".ods")


_WORDS = "tradeassay.assay.words"


class _ByArgument(CommandGroup):
    """A group whose first word may be left out: a table's file means ``file``, anything else ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            subject = self._subject(args)
            table = Path(subject).suffix.lower() in _TABLES or Path(subject).is_file()
            args = ["file" if table else "run", *args]
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def _subject(self, args: list[str]) -> str:
        """Return the first word that is neither an option nor an option's value: RUN or FILE."""
        options = [one for name in ("run", "file") for one in self.commands[name].params]
        takes_value = {
            word for one in options if isinstance(one, click.Option) and not one.is_flag for word in one.opts
        }
        before = ""
        for word in args:
            if not word.startswith("-") and before not in takes_value:
                return word
            before = word
        return ""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            command, *words = ctx.meta[_WORDS]
            subject = self._subject(words)
            # A run or file that does not exist is the first thing to correct.
            if command == "file" and not Path(subject).is_file():
                raise UserError(f"no file {subject}", hint="check the path") from error
            if command == "run" and subject and "--runs" not in words:
                opt.find_run(subject, Path("runs"))
            for name, goes, here in (("run", "a run", "a table"), ("file", "a table", "a run")):
                if command != name and any(error.option_name in one.opts for one in self.commands[name].params):
                    problem = f"{error.option_name} goes with {goes}, and {subject} is {here}"
                    raise UserError(problem) from error
            raise


@click.group(cls=_ByArgument, subcommand_metavar="RUN | FILE.csv | self-test [OPTIONS]")
def assay() -> None:
    """Say what a result is made of: skill, luck, style, leaked future, or memory.

    \b
    tradeassay assay my-run                  a recorded run: tradeassay assay run --help
    tradeassay assay returns.csv             an account of your own: tradeassay assay file --help
    tradeassay assay self-test               the verdict itself, on agents of known nature

    Every verdict is one sentence, never stronger than the evidence.
    """


_trials = opt.option(
    "--trials", "How many strategies were tried before this one was shown.", type=opt.COUNT, default=1
)
_watched = opt.flag("--watched", "It still grows and is looked at again: intervals that hold however often.")
_capacity = opt.advanced("--capacity", "Show what larger accounts would have left of the edge.", is_flag=True)
_portfolios = opt.advanced(
    "--portfolios",
    "Random portfolios of the luck baseline (fewer where that is enough); 0 for none.",
    type=opt.NATURAL,
    default=10_000,
)


@assay.command("run", cls=opt.FoldedCommand)
@click.argument("run")
@opt.several("--agent=NAME agents", "Only this agent of the run; repeat for several.")
@opt.page("page. Default: report.html in its folder, RUN-assay.html for --agent")
@_trials
@_watched
@_portfolios
@opt.flag("--leak-test", "Replay every session with the future changed; no model is asked.")
@opt.option("--leak-sessions=N", "Only the first N sessions of the leak test.", type=click.IntRange(2))
@opt.flag("--robustness", "Repeat the run with other costs, delay, names and news; no model is asked again.")
@opt.several(
    "--recall=FILE|ask recalls",
    "What its models remember: a record of memory recall or counterfactual (repeat), or ask them now.",
)
@_capacity
@opt.flag("--regimes", "Show every agent in rising, falling, V-shaped and flat markets.")
@opt.out
@opt.workers
@opt.executor()
@json_option
def assay_run(
    run: str, agents: tuple[str, ...], page: Path | None, out: Path, as_json: bool, capacity: bool, **given: Any
) -> None:
    """Say what a recorded run is made of."""
    from tradeassay.assay import study_run
    from tradeassay.assay.assay_file import record_assay
    from tradeassay.assay.judge import assay as assay_of
    from tradeassay.assay.leaks import LeakTestConfig
    from tradeassay.assay.leaks.examine import leak_tests
    from tradeassay.assay.memory import ask_models, read_record
    from tradeassay.assay.verdict import VerdictConfig
    from tradeassay.core.executors import Spread
    from tradeassay.runs import Run
    from tradeassay.runs.verify.attested import vouched

    folder = opt.find_run(run, out)
    recorded, spread = Run.load(folder), Spread(executor=given["executor"], workers=given["workers"])
    wanted: list[Any] = [study for study in ("robustness", "regimes") if given[study]]
    studies, leaks = study_run(recorded, wanted) if wanted else None, None
    if given["leak_test"] or given["leak_sessions"] is not None:
        tests = LeakTestConfig(sessions=given["leak_sessions"])
        leaks = leak_tests(recorded, agents=agents, config=tests, say=say, spread=spread)
    memory = []
    for name in given["recalls"]:
        memory += ask_models(recorded, say=say) if name == "ask" else [read_record(Path(name))]
    config = VerdictConfig(**{name: given[name] for name in ("trials", "portfolios", "watched")})
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


@assay.command("file", cls=opt.FoldedCommand)
@click.argument("table", metavar="FILE")
@opt.option(
    "--against=MARKET",
    "A file of a market's prices or returns, a column, or sp500, nasdaq, us-market (until 2018).",
)
@opt.option("--cash=FILE", "What cash earned: a file, or french; none for returns beyond it.")
@opt.option("--factors=FILE", "Returns of styles, a column each (RF and Mkt-RF among them), or french.")
@opt.option("--dataset=NAME", "The data set with the prices of what was held.")
@opt.advanced("--universe=NAME", "An index of the data set, or all.", default="all")
@opt.option("--weights=FILE", "The weights that were held, beside a table of returns.", type=opt.THERE)
@opt.option("--prices=FILE", "For a trade log: bars of what was traded, instead of --dataset.")
@opt.option("--cash-at-start", "For a trade log: what it began with.", type=opt.Fraction(0.0, min_open=True))
@opt.advanced("--until=DAY", "For a trade log: hold on after its last trade.")
@opt.advanced("--symbol=NAME", "For a list of decisions: what was bought and sold.")
@opt.option(
    "--between",
    "For weights: what sessions without a row mean. Default: hold where rows are rare, or asked.",
    type=click.Choice(["cash", "hold"]),
)
@opt.page("page. Default: FILE-assay.html")
@_trials
@_watched
@opt.option("--column", "The account's column.")
@opt.option(
    "--unit",
    "What the numbers are. Default: guessed from their size.",
    type=click.Choice(["fraction", "percent", "basis points"]),
)
@opt.option("--dates", "Which way 03/04/2024 is read.", type=click.Choice(["dmy", "mdy"]))
@opt.advanced(
    "--dividends",
    "The most that the market's returns leave out a year; 0 for none.",
    type=opt.Fraction(0.0, 1.0),
    default=0.025,
)
@opt.advanced("--interest", "The most that cash earned in a year.", type=opt.Fraction(0.0, 1.0), default=0.05)
@_portfolios
@opt.advanced("--benchmark=ID", "The benchmark whose rules a luck baseline follows.")
@_capacity
@_trades_options
@json_option
def assay_file(table: str, page: Path | None, capacity: bool, as_json: bool, **given: Any) -> None:
    """Say what an account of your own is made of.

    FILE is a Parquet or CSV table of returns or values (date, return), of weights (date, symbol, weight), or a
    trade log (time, symbol, side, quantity, price, fees; a broker's export; days with BUY, SELL or HOLD). It is
    judged against --dataset, or its returns --against a market's.
    """
    from tradeassay.assay.judge import assay as assay_of
    from tradeassay.assay.verdict import OwnAccount, VerdictConfig
    from tradeassay.data.tables.account import TableReading

    opt.refuse_seal(table)
    if not Path(table).is_file():
        raise UserError(f"no file {table}", hint="check the path")
    judged = ("trials", "portfolios", "dividends", "interest", "watched")
    config = VerdictConfig(**{name: given.pop(name) for name in judged})
    reading = TableReading(**{name: given.pop(name) for name in ("unit", "dates", "column")})
    weights = given.pop("weights")
    own = OwnAccount(weights=None if weights is None else str(weights), returns=table, reading=reading, **given)
    usual = Path(table).with_name(f"{Path(table).stem}-assay.html")
    _show_verdicts(assay_of(own, config), page, usual, as_json, capacity=capacity)


@assay.command("self-test")
@opt.option("--worlds", "Synthetic worlds to judge agents in.", type=opt.COUNT, default=10)
@_trials
@_portfolios
@opt.workers
@opt.executor()
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
    from tradeassay.assay.verdict.record import money_words
    from tradeassay.report import print_verdicts, write_html

    if as_json:
        print_json(made if studies is None else {"assay": made, "studies": studies})
    else:
        print_verdicts(made)
    rows = []
    for one in made.agents if capacity and not as_json else ():
        known = one.capacity
        if known is None:
            why = "it has no edge before impact, or the usual amounts of what it traded are not known"
            say(f"{one.agent}: no size is known: {why}")
            continue
        say(f"{one.agent}: {known.sentence}")
        for size, edge in zip(known.sizes, known.edges, strict=True):
            ends = "" if edge.low is None else f"{edge.low:+.1%} to {edge.high:+.1%}"
            rows.append((one.agent, money_words(size), _cell(edge), ends))
    if rows:
        print_table("capacity: the edge a year of larger accounts", ("agent", "size", "edge", "interval"), rows)
    if studies is not None and not as_json:
        _print_studies(studies)
    if page is not None or not as_json:
        place = page or usual
        say(f"page: {write_html(made, place) if run is None else written_page(run, place, assay=made)}")


def _print_studies(studies: Studies) -> None:
    if studies.robustness is not None:
        changes = ("return_change", "edge_change", "decisions_changed", "obeyed")
        columns = ("agent", "disturbance", "variant", "return", "edge", "decisions changed", "obeyed")
        rows = [
            (one.agent, one.disturbance, one.variant, *(_cell(getattr(one, name)) for name in changes))
            for one in studies.robustness.scores
        ]
        print_table("robustness: change a year when disturbed", columns, rows)
        for note in studies.robustness.notes:
            say(note)
    if studies.regimes is not None:
        shown = ("return", "against the index", "selection", "sharpe", "max_drawdown")
        rows = []
        for part in studies.regimes:
            cells = (_cell(part.measures.get(name), ratio=name == "sharpe") for name in shown)
            rows.append((part.agent, part.regime, str(part.sessions), *cells))
        print_table("regimes: a year's pace in each", ("agent", "market", "sessions", *shown), rows)


def _cell(measure: Measure | None, *, ratio: bool = False) -> str:
    if measure is None or measure.value is None:
        return "not scored"
    return f"{measure.value:+.2f}" if ratio else f"{measure.value:+.1%}"


@click.command()
@click.argument("run")
@opt.out
@opt.several("--agent=NAME agents", "Only this agent of the run; repeat for several.")
@opt.option("--portfolios", "How many.", type=click.IntRange(100), default=10_000)
@opt.option("--seed", "Draws other portfolios.", type=opt.NATURAL, default=0)
@opt.option("--by", "What to rank by.", type=click.Choice(["return", "sharpe"]), default="return")
@opt.option("--benchmark=ID", "For a table of returns: the benchmark whose market and rules are used.")
@opt.option("--dataset=NAME", "For a table of returns: a data set other than the benchmark's own.")
@_trades_options
@opt.workers
@opt.executor()
@json_option
def luck(run: str, out: Path, agents: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Rank a result among random portfolios with the same rules, turnover and costs.

    RUN is a recorded run, or a Parquet or CSV file with the columns date and return. Random portfolios trade when
    the run traded, as much as it did, in other names. A file does not say how it traded, so give --benchmark,
    --names and --turnover.
    """
    from tradeassay.assay.luck import LuckConfig, luck_of_run
    from tradeassay.core.executors import Spread
    from tradeassay.report.numbers import written

    path, spread = Path(run), Spread(executor=given.pop("executor"), workers=given.pop("workers"))
    config = LuckConfig(**{name: given.pop(name) for name in ("portfolios", "seed", "by")})
    if path.is_file():
        from tradeassay.assay import OwnAccount, luck_of_file

        found: tuple[Luck, ...] = (luck_of_file(OwnAccount(returns=str(path), **given), config),)
    else:
        from tradeassay.runs import Run

        found = luck_of_run(Run.load(opt.find_run(run, out)), agents=agents, config=config, spread=spread)
    rows = []
    for one in found:
        cells = ["", "", "", "", "", "", str(one.reason)]
        if one.place is not None:
            place, share = one.place, one.place.percentile
            form = "change" if place.by == "return" else "signed"
            cells = [written(value, form) for value in (place.value, place.low, place.median, place.high)]
            span = "" if share.low is None else f"{share.low:.0%} to {share.high:.0%}"
            cells += [f"{share.value:.1%}", span, share.note or ""]
        rows.append((one.agent, str(one.seed), *cells))
    columns = ("agent", "seed", "result", "random 5 %", "median", "95 %", "better than", "interval", "note")
    print_rows(found, as_json, f"luck of '{path.name}'", columns, rows)
    if not as_json:
        say("better than: share of random portfolios with the same trades in other names that did worse")


_SHARE = opt.Fraction(0.0, 1.0, min_open=True, max_open=True)


@click.command()
@click.argument("run", required=False)
@opt.out
@opt.option("--ir", "The yearly information ratio to detect.", type=opt.NUMBER, default=1.0)
@opt.option("--sessions", "Sessions played.", type=opt.COUNT, default=252)
@opt.option("--seeds", "Repetitions of the agent.", type=opt.COUNT, default=1)
@opt.option("--level", "Confidence level of the test.", type=_SHARE, default=0.95)
@opt.option("--power", "Probability of detecting the ratio.", type=_SHARE, default=0.8)
@opt.option("--agents comparisons", "Agents judged together.", type=opt.COUNT, default=1)
@opt.option(
    "--seed-correlation", "Correlation of two seeds' active returns.", type=opt.Fraction(0.0, 1.0), default=0.5
)
@opt.option("--autocorrelation", "Autocorrelation of active returns.", type=opt.Fraction(-0.9, 0.9), default=0.0)
@json_option
def power(run: str | None, out: Path, ir: float, autocorrelation: float, as_json: bool, **planned: Any) -> None:
    """Say how many sessions and seeds it takes to detect an information ratio.

    With a recorded RUN: what each of its comparisons could have shown, with the dependence measured in it.
    """
    from tradeassay.metrics import Design, ar1_inflation, power_summary, seeds_needed

    if run is not None:
        from tradeassay.assay.power import power_of_run
        from tradeassay.runs import Run

        found = power_of_run(Run.load(opt.find_run(run, out)), ir=ir)
        rows: list[tuple[str, ...]] = []
        for one in found:
            known = one.power_summary
            shown = ("", "") if known is None else (f"{known.smallest:.2f}", f"{known.chance:.0%}")
            rows.append((one.cell, one.agent, *shown, one.sentence))
        columns = ("cell", "agent", "smallest ratio", f"chance for {ir:g}", "in words")
        print_rows(found, as_json, "power", columns, rows)
        if not as_json:
            say("smallest ratio: the information ratio that would be found with a chance of 80 %")
        return
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


@click.command("leak-test")
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
@opt.option("--benchmark=ID", "The benchmark to play.", default="daily-us-v1")
@opt.option("--dataset=NAME", "A data set other than the benchmark's own.")
@opt.option("--first=DAY", "First session, YYYY-MM-DD. Default: the benchmark's.")
@opt.option("--sessions", "Decisions to test. Default: all; 40 for a model.", type=click.IntRange(2))
@opt.option("--seed", "Draws other futures.", type=opt.NATURAL, default=0)
@opt.workers
@opt.executor()
@json_option
def leak_test(agents: tuple[str, ...], benchmark: str, first: str | None, as_json: bool, **given: Any) -> None:
    """Test whether an agent's decisions depend on what lies after its clock, and say through which channel.

    In every session everything after the clock is replaced by another future, twice. AGENT is a registered agent
    or a model (scripted/sensible); several are tested one by one, or side by side with --executor. A model is
    asked once per session. Exits with 1 when something leaks.
    """
    from functools import partial

    from tradeassay.assay.leaks import LeakTestConfig, leak_test as examine
    from tradeassay.benchmarks import benchmarks
    from tradeassay.benchmarks.code_protocol import refuse_other_kind
    from tradeassay.core.executors import Spread
    from tradeassay.core.measure import at_most
    from tradeassay.runs import Window

    refuse_other_kind(benchmark, trades=True)
    window = None if first is None else Window(first=first, last=max(first, benchmarks.get(benchmark).market.last))
    config = LeakTestConfig(sessions=given["sessions"], seed=given["seed"])
    one = partial(examine, benchmark=benchmark, dataset=given["dataset"], window=window, config=config)
    reports = Spread(executor=given["executor"], workers=given["workers"]).map(one, agents)
    if as_json:
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        for report in reports:
            rows = [
                (name, f"{share.value:.0%}", "none" if share.high is None else at_most(share.high))
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
        click.get_current_context().exit(1)
