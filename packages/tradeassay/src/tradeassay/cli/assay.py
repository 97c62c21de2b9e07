"""The command ``assay``, which judges an account.

Other packages add subcommands such as ``assay run``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup, subcommands
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.core.measure import Measure
    from tradeassay.verdict.record import Assay

trades_options = opt.add_options(
    (
        opt.advanced("--names", "For a table of returns: number of assets held.", type=opt.COUNT),
        opt.advanced(
            "--turnover", "For a table of returns: annual one-way turnover.", type=opt.Fraction(0.0)
        ),
    )
)
_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".ods")


_WORDS = "tradeassay_bench.examine.words"


class _AssayGroup(CommandGroup):
    """A group whose subcommand may be left out: ``file`` for a table's file, otherwise ``run``.

    Commands of other packages are searched only if the first word is not ``file``.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *subcommands("assay")})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = super().get_command(ctx, cmd_name)
        if known is not None or cmd_name not in subcommands("assay"):
            return known
        return subcommands("assay")[cmd_name].load()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            subject = _subject(args, [self.commands["file"]])
            if Path(subject).suffix.lower() in _TABLES or Path(subject).is_file():
                args = ["file", *args]
            elif args[0] not in self.list_commands(ctx):
                if "run" not in self.list_commands(ctx):
                    hint = "give a file; runs are judged with pip install 'tradeassay[bench]'"
                    raise UserError(f"no file {subject or args[0]}", hint=hint)
                args = ["run", *args]
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def _judging(self, ctx: click.Context) -> dict[str, click.Command]:
        """Return the command ``file`` and, if it is installed, the command ``run``."""
        found = {name: self.get_command(ctx, name) for name in ("run", "file")}
        return {name: command for name, command in found.items() if command is not None}

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            command, *words = ctx.meta[_WORDS]
            subject = _subject(words, self._judging(ctx).values())
            # Report a missing run or file first. The user has to correct it before any option.
            if command == "file" and not Path(subject).is_file():
                raise UserError(f"no file {subject}", hint="check the path") from error
            judging = self._judging(ctx)
            if command == "run" and subject and "--runs" not in words:
                check = getattr(judging["run"], "check_subject", None)
                if check is not None:
                    check(subject)
            for name, goes, here in (("run", "a run", "a table"), ("file", "a table", "a run")):
                params = judging[name].params if name in judging else []
                if command != name and any(error.option_name in one.opts for one in params):
                    problem = (
                        f"{error.option_name} is valid only with {goes}, and {subject} is {here}"
                    )
                    raise UserError(problem) from error
            raise


def _subject(args: list[str], commands: Iterable[click.Command]) -> str:
    """Return RUN or FILE from the arguments.

    It is the first word that is neither an option of ``commands`` nor an option's value.
    """
    takes_value: set[str] = set()
    for command in commands:
        for param in command.params:
            if isinstance(param, click.Option) and not param.is_flag:
                takes_value.update(param.opts)
    before = ""
    for word in args:
        if not word.startswith("-") and before not in takes_value:
            return word
        before = word
    return ""


@click.group(cls=_AssayGroup, subcommand_metavar="RUN | FILE.csv | self-test [OPTIONS]")
def assay() -> None:
    """Judge a result: is it skill, luck, style, a leaked future or memory?

    \b
    tradeassay assay my-run                  a recorded run: tradeassay assay run --help
    tradeassay assay returns.csv             an account of your own: tradeassay assay file --help
    tradeassay assay self-test               a test of the verdicts on agents of known nature

    Every verdict is one sentence, never stronger than the evidence.
    """


tries_option = opt.option(
    "--tries",
    "How many strategies, settings or agents were tried to find this one. Default: 20 are assumed.",
    type=opt.COUNT,
)
watched_option = opt.flag(
    "--watched", "Use intervals that stay valid if a growing account is judged repeatedly."
)
capacity_option = opt.advanced(
    "--capacity", "Show the alpha that larger accounts would have kept.", is_flag=True
)
portfolios_option = opt.advanced(
    "--portfolios",
    "Number of random portfolios in the luck baseline (fewer if enough); 0 for none.",
    type=opt.NATURAL,
    default=10_000,
)


@assay.command("file", cls=opt.FoldedCommand)
@click.argument("table", metavar="FILE")
@opt.option(
    "--benchmark=MARKET",
    "Benchmark: a file of prices or returns, a column, or sp500, nasdaq, us-market (until 2018).",
)
@opt.option(
    "--cash=FILE", "Returns of cash: a file or french; none if the returns are in excess of cash."
)
@opt.option(
    "--factors=FILE", "Returns of styles, one per column (may include RF and Mkt-RF), or french."
)
@opt.option("--dataset=NAME", "Data set with the prices of the assets held.")
@opt.advanced("--universe=NAME", "Assets to use: an index of the data set, or all.", default="all")
@opt.option(
    "--weights=FILE", "File with the weights held, besides a table of returns.", type=opt.THERE
)
@opt.option(
    "--prices=FILE", "For a trade log: price bars of the traded assets, instead of --dataset."
)
@opt.option(
    "--cash-at-start", "For a trade log: cash at the start.", type=opt.Fraction(0.0, min_open=True)
)
@opt.advanced("--until=DAY", "For a trade log: last day, if later than the last trade.")
@opt.advanced("--symbol=NAME", "For a list of decisions: the traded asset.")
@opt.option(
    "--between",
    "For weights: meaning of sessions without a row. Default: hold if rows are rare, else "
    "required.",
    type=click.Choice(["cash", "hold"]),
)
@opt.page("page. Default: FILE-assay.html")
@tries_option
@watched_option
@opt.option("--column", "The account's column.")
@opt.option(
    "--unit",
    "Unit of the numbers. Default: inferred from their size.",
    type=click.Choice(["fraction", "percent", "basis points"]),
)
@opt.option(
    "--dates",
    "Order of day and month in dates such as 03/04/2024.",
    type=click.Choice(["dmy", "mdy"]),
)
@opt.advanced(
    "--dividends",
    "Highest annual dividend yield missing from the benchmark's returns; 0 for none.",
    type=opt.Fraction(0.0, 1.0),
    default=0.025,
)
@opt.advanced(
    "--interest", "Highest annual interest on cash.", type=opt.Fraction(0.0, 1.0), default=0.05
)
@portfolios_option
@opt.advanced("--suite=ID", "Benchmark suite with the trading rules for the luck baseline.")
@capacity_option
@trades_options
@json_option
def assay_file(table: str, page: Path | None, capacity: bool, as_json: bool, **given: Any) -> None:
    """Judge an account of your own.

    FILE is a Parquet or CSV table of returns or values (date, return), of weights (date, symbol,
    weight), or a trade log (time, symbol, side, quantity, price, fees; a broker's export; days with
    BUY, SELL or HOLD). The verdict needs a benchmark: the returns of --benchmark, or the
    prices of --dataset.
    """
    with _without_collection():
        _assay_file(table, page, capacity, as_json, **given)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection of cycles inside the block.

    Imported objects live until the process ends, and scanning them takes a tenth of a command's CPU
    time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _assay_file(table: str, page: Path | None, capacity: bool, as_json: bool, **given: Any) -> None:
    from tradeassay.report.page import write_assay
    from tradeassay.tables.account import TableReading
    from tradeassay.verdict.own_account import OwnAccount
    from tradeassay.verdict.own_returns import assay_own
    from tradeassay.verdict.record import VerdictConfig

    opt.refuse_seal(table)
    if not Path(table).is_file():
        raise UserError(f"no file {table}", hint="check the path")
    judged = ("tries", "portfolios", "dividends", "interest", "watched")
    config = VerdictConfig(**{name: given.pop(name) for name in judged})
    reading = TableReading(**{name: given.pop(name) for name in ("unit", "dates", "column")})
    weights = given.pop("weights")
    own = OwnAccount(
        weights=None if weights is None else str(weights), returns=table, reading=reading, **given
    )
    usual = Path(table).with_name(f"{Path(table).stem}-assay.html")
    made = assay_own(own, config)
    show_verdicts(made, as_json, capacity=capacity)
    if page is not None or not as_json:
        say(f"page: {write_assay(made, page or usual)}")


def show_verdicts(made: Assay, as_json: bool, *, capacity: bool) -> None:
    """Print the verdicts.

    With ``capacity``, also print the alpha that larger accounts would have kept.
    """
    from tradeassay.report.verdicts import print_verdicts
    from tradeassay.verdict.record import money_words

    if as_json:
        print_json(made)
        return
    print_verdicts(made)
    rows = []
    for one in made.agents if capacity else ():
        known = one.capacity
        if known is None:
            why = (
                "it has no alpha before market impact, or the usual volumes of its assets are "
                "not known"
            )
            say(f"{one.agent}: no size is known: {why}")
            continue
        say(f"{one.agent}: {known.sentence}")
        for size, alpha in zip(known.sizes, known.alphas, strict=True):
            ends = "" if alpha.low is None else f"{alpha.low:+.1%} to {alpha.high:+.1%}"
            rows.append((one.agent, money_words(size), percent(alpha), ends))
    if rows:
        print_table(
            "capacity: alpha per year of larger accounts",
            ("agent", "size", "alpha", "interval"),
            rows,
        )


def percent(measure: Measure | None, *, ratio: bool = False) -> str:
    """Return a measure as a percentage or a ratio, or "not scored" if it has no value."""
    if measure is None or measure.value is None:
        return "not scored"
    return f"{measure.value:+.2f}" if ratio else f"{measure.value:+.1%}"
