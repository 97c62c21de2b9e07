"""``tradeassay code``: models write strategies, programs are checked, tasks are listed and validated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli._code_options import draw_of, filter_options, run_options, take_spec, take_tasks
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._options import (
    COUNT,
    FILE,
    FOLDER,
    NATURAL,
    FoldedCommand,
    add_options,
    advanced,
    asking_options,
    executor_option,
    find_run,
    option,
    out_option,
    page_option,
    split_list,
    take_asking,
    workers_option,
)
from tradeassay.cli._output import (
    finish,
    json_option,
    plain_number,
    print_json,
    print_rows,
    print_table,
    program_teller,
    say,
    show_validation,
    task_words,
    write_file,
)
from tradeassay.core.errors import UserError
from tradeassay.core.registry import newest

if TYPE_CHECKING:
    from tradeassay.code.bars import TaskBars
    from tradeassay.code.evaluation import Evaluation
    from tradeassay.code.review import ReviewBoard
    from tradeassay.code.task import Framework

_REPORTS = (
    page_option("scorecard of --spec"),
    click.option("--junit", type=FILE, metavar="FILE", help="With --spec: write the gates as JUnit XML."),
    click.option("--sarif", type=FILE, metavar="FILE", help="With --spec: write the findings as SARIF."),
    click.option("--bar-log", type=FILE, metavar="FILE", help="With --spec: write the audit log by bars as CSV."),
    advanced(
        "--since",
        type=FOLDER,
        metavar="FOLDER",
        help="With --spec: an earlier submission; was it repaired, or changed into something else?",
    ),
    click.option(
        "--dataset",
        metavar="NAME",
        help="With --spec or --task-file, or without a task: stored bars, not synthetic.",
    ),
    advanced("--symbols", metavar="A,B", help="With --dataset: which of its symbols is meant."),
    advanced(
        "--splits", metavar="D,D,D", help="With --dataset: first days of development, test, and what follows."
    ),
    advanced("--data-seed", type=int, default=1, help="Which of the secret's years."),
    advanced("--years", type=COUNT, default=1, help="With --spec: D4 over so many of them, with its interval."),
)


@click.group(cls=CommandGroup)
def code() -> None:
    """Trading strategies written by models: run them in a sandbox and judge them by what they do."""


@code.command(cls=FoldedCommand)
@click.argument("benchmark")
@run_options
@click.option(
    "--slug", metavar="NAME", help="Name of the run's folder; the same slug resumes. Default: from its content."
)
@advanced("--retry-failed", is_flag=True, help="Play failed episodes again; recorded answers are reused.")
@asking_options
@out_option
@workers_option
@executor_option("local", ("local", "ray"))
@json_option
def run(
    benchmark: str,
    out: Path,
    slug: str | None,
    workers: int | None,
    executor: Any,
    retry_failed: bool,
    as_json: bool,
    **described: Any,
) -> int:
    """Have models write programs for the tasks of a benchmark.

    \b
    tradeassay code run quantcode-v1 --model scripted/coder-sma --task d-sma-cross-long
    tradeassay code run quantcode-v1 -m openai/gpt-5 --setting agentic --judge openai/gpt-5-mini --max-usd 20
    tradeassay code run systrade-v1 -m openai/gpt-5 --reviewer openai/gpt-5-mini --strategy bollinger

    Giving the same command again continues a stopped run. Exits with 1 when an episode failed.
    """
    from tradeassay.benchmarks.programs import code_benchmarks
    from tradeassay.core.hashing import sha256_of
    from tradeassay.runs import CodeRun, Run, resume, run as run_spec

    benchmark = newest(benchmark, code_benchmarks())
    asking = take_asking(described, out, benchmark)
    spec = take_spec(benchmark, described)
    folder = out / (slug or f"{benchmark}-{sha256_of(spec)[:8]}")  # the same command finds its run again
    how = {"asking": asking, "executor": executor, "workers": workers, "progress": "auto"}
    done: Run | CodeRun = run_spec(spec, folder, **how)
    if retry_failed and done.failed:
        done = resume(folder, retry_failed=True, **how)
    status = finish(done, as_json=as_json)
    if not as_json and done.manifest.secret is not None:
        say(f"a run to compare it with, task by task, takes the same markets: --secret {done.manifest.secret}")
    return status


@code.command("eval", cls=FoldedCommand)
@click.argument("program", type=click.Path(path_type=Path))
@click.option("--task", metavar="ID", help="The QuantCode task that a program is for; see tradeassay code tasks.")
@click.option(
    "--spec", metavar="STRATEGY", help="The strategy that a folder is for; see tradeassay code strategies."
)
@option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader")
@click.option("--judge", metavar="MODEL", help="A model that reads the program as well.")
@click.option(
    "--task-file",
    type=FILE,
    metavar="FILE",
    help="The task is in a file: your own ID.toml, or your copy of the public 400-task file.",
)
@click.option(
    "--secret", metavar="HEX", help="Secret of an earlier examination, to judge on its markets. Default: random."
)
@click.option("--strict", is_flag=True, help="A call that the kernel refuses fails the program.")
@click.option("--reward", is_flag=True, help="Print one number between 0 and 1 to train on: how far it came.")
@click.option("--judged", is_flag=True, help="--reward: half is for doing what the task's reference does.")
@add_options(_REPORTS)
@json_option
def evaluate(
    program: Path,
    task: str | None,
    spec: str | None,
    framework: Any,
    judge: str | None,
    task_file: Path | None,
    secret: str | None,
    strict: bool,
    reward: bool,
    judged: bool,
    as_json: bool,
    **reports: Any,
) -> int:
    """Check your own program or submission, without a model.

    \b
    tradeassay code eval mine.py                             any program: does it run, trade, look ahead?
    tradeassay code eval mine.py --task d-sma-cross-long     ... and does it do what the task says?
    tradeassay code eval ./mine --spec bollinger             a submission: its gates, scores, scorecard
    tradeassay code eval mine.py --task d-sma-cross-long --reward    a number to train on

    A submission is a folder with strategy.py and strategy_card.json. Exits with 0 when it passes, with 1 when
    it does not; with --reward always with 0.
    """
    if spec is not None:
        if task is not None:
            raise UserError("both --task and --spec are given", hint="a program has a task, a folder a strategy")
        _refuse_given(
            "a folder with --spec", judge=judge, task_file=task_file, strict=strict, reward=reward, judged=judged
        )
        return evaluate_submission(program, spec, reports, as_json=as_json, secret=secret)
    if program.is_dir():
        raise UserError(f"{program} is a folder", hint="name its strategy with --spec, or a program in it")
    drawn = {"years": reports["years"] > 1, "data_seed": reports["data_seed"] != 1}
    _refuse_given("a program", **{name: reports[name] for name in _OF_FOLDERS}, **drawn)
    if task is None:
        _refuse_given("a program without --task", task_file=task_file, judge=judge, reward=reward)
    elif reward:
        _refuse_given("--reward", judge=judge, strict=strict, task_file=task_file, dataset=reports["dataset"])
        return _show_reward(program, task, framework, secret, judged=judged, as_json=as_json)
    if judged:
        raise UserError("--judged is about a reward", hint="give --reward too")
    if reports["symbols"] and not reports["dataset"]:
        raise UserError("--symbols needs a data set", hint="give --dataset too")
    from tradeassay.benchmarks.quantcode.check import check_program, find_task, read_program
    from tradeassay.code.running import rules_of

    rules = rules_of(secret)
    chosen, home = find_task(task, task_file), None
    if reports["dataset"] is not None:
        from tradeassay.benchmarks.quantcode.loading import on_stored_bars
        from tradeassay.data import load_dataset

        named = split_list(reports["symbols"])
        if len(named) > 1:
            raise UserError(
                f"a program is run on one symbol, and {len(named)} are named", hint="run it once for each of them"
            )
        chosen, home = on_stored_bars(chosen, load_dataset(reports["dataset"]), named[0] if named else None)
    source = read_program(program)
    found = check_program(source, chosen, framework=framework, judge=judge, rules=rules, strict=strict, home=home)
    if as_json:
        bars = None if home is None else home.name
        about = {"secret": rules.secret, "lacks": chosen.lacks, "stored_bars": bars}
        print_json({"outcome": found.outcome, "verdict": found.verdict, **about, "evaluation": found})
    else:
        unjudged = "" if chosen.has_reference or judge else " (no judge: the task has no reference program)"
        title = f"{program.name}{unjudged} on {task}" if task else f"{program.name} without a task"
        _show_evaluation(found, title, home, chosen.lacks)
        _say_mend(found, source)
        if found.walls:
            say(f"ran behind {found.walls} walls; --secret {rules.secret} repeats this examination")
    return 0 if found.outcome == "solved" or (task is None and found.unopposed) else 1


def _show_evaluation(found: Evaluation, title: str, home: TaskBars | None, lacks: Sequence[str]) -> None:
    from tradeassay.report import print_evaluation

    print_evaluation(found, title)
    if home is not None:
        first, last = (str(home.times[at])[:10] for at in (0, -1))
        say(f"on {home.rows} stored bars of {home.name}, {first} to {last}")
    for what in lacks:
        say(f"the task comes without {what}")
    for attempt in found.attempts:
        say(f"refused: {attempt}")


def _say_mend(found: Evaluation, source: str) -> None:
    """Say what a person can do about a failure whose reason, which models are shown too, does not name it."""
    import sys

    from tradeassay.code.program_source import check_compiles
    from tradeassay.sandbox.sandbox_config import PRELOAD

    other: Framework = "backtrader" if found.framework == "frame" else "frame"
    if found.compile.error_class == "no_strategy" and check_compiles(source, other).status == "passed":
        say(f"this is a program for the other framework: add --framework {other}")
    if found.backtest.error_class == "forbidden_import":
        named = dict.fromkeys(one.partition(".")[0] for one in PRELOAD)
        theirs = ", ".join(one for one in named if one not in sys.stdlib_module_names)
        say(f"a program may import {theirs}, where installed, and most of the standard library")


_OF_FOLDERS = ("junit", "sarif", "page", "bar_log", "since", "splits")


def _refuse_given(what: str, **given: Any) -> None:
    """Raise :class:`UserError` for an option that would be ignored."""
    for name, value in given.items():
        if value:
            raise UserError(
                f"--{'out' if name == 'page' else name.replace('_', '-')} means nothing to {what}",
                hint="see tradeassay code eval --help",
            )


@code.command()
@click.argument("task", required=False)
@filter_options
@option("--wording", type=click.Choice(["formal", "conversational"]), default="formal")
@option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader")
@click.option("--reference", is_flag=True, help="With TASK: print its reference program instead of its words.")
@click.option("--draw", "count", type=COUNT, metavar="N", help="Draw N new tasks of --family, a split or all.")
@option("--seed", type=int, default=0, help="With --draw: the same seed, the same tasks.")
@json_option
def tasks(
    task: str | None,
    wording: Any,
    framework: Any,
    reference: bool,
    count: int | None,
    seed: int,
    as_json: bool,
    **filters: Any,
) -> None:
    """List the tasks, show one (its words, its terms, its reference), or draw new ones.

    `--family FAMILY --draw N` draws from generators; a family may be train, validation, test or all. An id that
    was drawn can be named wherever a task can; with --json whole tasks are printed.
    """
    from tradeassay.benchmarks.quantcode.check import task_line

    if task is None:
        found = take_tasks(filters) if count is None else draw_of(filters, count, seed)
        if as_json:
            print_json([task_line(one) for one in found] if count is None else found)
            return
        rows = [
            (
                one.id,
                one.title,
                one.difficulty,
                one.timeframe,
                one.family or "",
                one.market,
                "yes" if one.frame else "",
            )
            for one in found
        ]
        print_table("tasks", ("id", "title", "difficulty", "bars of", "family", "market", "frame"), rows)
        say(f"{len(found)} tasks")
        return
    from tradeassay.benchmarks.quantcode.check import find_task

    shown = find_task(task, filters.get("task_file"))
    if as_json:
        print_json(shown)
    else:
        click.echo(task_words(shown, wording, framework, reference=reference))


@code.command()
@click.argument("ids", nargs=-1)
@filter_options
@click.option("--judge", metavar="MODEL", help="Measure this language judge too.")
@click.option("--thorough", is_flag=True, help="Full look-ahead check and all markets for every program.")
@click.option("--secret", metavar="HEX", help="Secret that the judged markets are drawn from. Default: random.")
@click.option(
    "--look-ahead",
    type=NATURAL,
    is_flag=False,
    flag_value=0,
    metavar="[SEED]",
    help="Instead test the look-ahead check, on strategies that look ahead and on honest ones.",
)
@workers_option
@executor_option("local", ("local", "ray"))
@json_option
def validate(
    ids: tuple[str, ...],
    judge: str | None,
    thorough: bool,
    secret: str | None,
    look_ahead: int | None,
    workers: int | None,
    executor: Any,
    as_json: bool,
    **filters: Any,
) -> int:
    """Run references and decoys without a model: a reference must pass, a decoy must fail at its stage.

    Exits with 1 when one does not. All tasks take minutes; --sample 5 takes seconds. --look-ahead exits with
    1 when a leak is missed or an honest strategy is flagged.
    """
    if look_ahead is not None:
        return _validate_look_ahead(look_ahead, as_json)
    from tradeassay.benchmarks.quantcode.check import validate_tasks

    chosen = take_tasks({**filters, "task": ids})
    done = validate_tasks(
        chosen,
        judge=judge,
        thorough=thorough,
        workers=workers,
        secret=secret,
        tell=program_teller(),
        executor=executor,
    )
    if as_json:
        print_json(done)
    else:
        show_validation(done)
    return 0 if done.ok else 1


@code.command()
@click.argument("strategy", required=False)
@click.option("--semantics", is_flag=True, help="With STRATEGY: print its frozen semantics instead of its doc.")
@click.option(
    "--reference",
    type=FOLDER,
    metavar="FOLDER",
    help="With STRATEGY: write the reference submission there, to start from.",
)
@click.option(
    "--schema",
    type=click.Choice(["card", "semantics"]),
    help="Print the JSON schema of a strategy card, or of frozen semantics.",
)
@json_option
def strategies(strategy: str | None, semantics: bool, reference: Path | None, schema: Any, as_json: bool) -> None:
    """List the twelve strategies, or show one: its doc, its frozen semantics, its reference."""
    from tradeassay.benchmarks.systrade.loading import schema_text, strategy_lines, strategy_text, write_reference

    if schema is not None:
        click.echo(schema_text(schema))
        return
    if strategy is None:
        lines = strategy_lines()
        rows = [
            (one.id, one.title, one.legs, one.timeframes, f"{one.complexity:.2f}", one.sha256[:12])
            for one in lines
        ]
        columns = ("id", "title", "legs", "bars", "complexity", "semantics")
        print_rows(lines, as_json, "strategies", columns, rows)
        return
    if reference is not None:
        write_reference(strategy, reference)
        if as_json:
            print_json({"folder": reference, "strategy": strategy})
        say(f"written: {reference}; check it with: tradeassay code eval {reference} --spec {strategy}")
        return
    click.echo(strategy_text(strategy, semantics=semantics or as_json))


def evaluate_submission(
    folder: Path, strategy: str, given: dict[str, Any], *, as_json: bool, secret: str | None
) -> int:
    """Check a submission, write what was asked for, and return 0 when it passed, else 1."""
    from tradeassay.benchmarks.systrade.data import DAYS
    from tradeassay.benchmarks.systrade.examine import bars_for, check_submission
    from tradeassay.core.hashing import draw_secret, refuse_bad_secret

    if secret is not None:
        refuse_bad_secret(secret)
    secret = secret or draw_secret()
    days, dataset, year = split_list(given["splits"]) or DAYS, given["dataset"], given["data_seed"]
    bars = bars_for(strategy, dataset, split_list(given["symbols"]), days, secret, year)
    since, years, bar_log = given["since"], given["years"], given["bar_log"]
    if years > 1 and (dataset is not None or year != 1):
        raise UserError("--years draws synthetic years", hint="leave --dataset and --data-seed out")
    found = check_submission(folder, strategy, bars=bars, secret=secret, since=since, years=years)
    for path, text in ((given["junit"], found.junit), (given["sarif"], found.sarif)):
        if path is not None:
            write_text(path, text())
    if bar_log is not None and (log := found.bar_log) is not None:
        write_text(bar_log, log)
    elif bar_log is not None:
        say("there is no audit log by bars: it could not be run")
    if given["page"] is not None:
        from tradeassay.report import write_check_html

        say(f"scorecard: {write_check_html(found, given['page'])}")
    if as_json:
        body = {"passed": found.passed, "secret": secret, "scorecard": found.scorecard, "trail": found.trail}
        body |= {} if since is None else {"drift": found.drift}
        print_json(body | ({} if found.years is None else {"years": found.years}))
    else:
        from tradeassay.report import print_check

        print_check(found, name=folder.resolve().name)
        say(f"--secret {secret} repeats this examination")
    return 0 if found.passed else 1


def write_text(path: Path, text: str) -> None:
    """Write a file; raises :class:`UserError` where it cannot be written."""
    write_file(path, text.encode("utf-8", "replace"))
    say(f"written: {path}")


def _show_reward(
    program: Path, task: str, framework: Any, secret: str | None, *, judged: bool, as_json: bool
) -> int:
    from tradeassay.benchmarks.quantcode.check import find_task, read_program
    from tradeassay.code.reward import reward

    found = reward(
        find_task(task), read_program(program), "behaviour" if judged else None, framework=framework, secret=secret
    )
    if as_json:
        print_json({"value": found.value, "outcome": found.outcome, "parts": found.parts, "reason": found.reason})
        return 0
    click.echo("none" if found.value is None else f"{found.value:g}")
    parts = ", ".join(f"{name} {part:g}" for name, part in found.parts.items())
    say(f"{found.outcome}: {parts or 'nothing passed'}")
    if found.reason:
        say(found.reason)
    return 0


@code.command()
@click.argument("names", nargs=-1, metavar="[STRATEGY]...")
@option("--variants", type=COUNT, default=17, help="Settings per strategy; the first are the frozen ones.")
@option("--tapes", type=COUNT, default=3, help="Synthetic years of days.")
@option("--seed", type=NATURAL, default=0, help="Draws other settings.")
@workers_option
@executor_option("local")
@json_option
def sweep(
    names: tuple[str, ...], variants: int, tapes: int, seed: int, workers: int | None, executor: Any, as_json: bool
) -> None:
    """Backtest many settings of the strategies on synthetic days, at five cost levels."""
    from statistics import median_high

    from tradeassay.code.sweep import sweep as run_sweep

    batches = [batch for name in names or _swept() for batch in _batches(name, variants, tapes, seed)]
    rows = run_sweep(batches, workers=workers, executor=executor)
    found: dict[tuple[str, float], list[float]] = {}
    for row in rows:
        found.setdefault((row.strategy, row.cost_bp), []).append(row.final - 1.0)
    table = [
        (strategy, f"{cost:g}", str(len(made)), *(f"{of(made):+.1%}" for of in (min, median_high, max)))
        for (strategy, cost), made in found.items()
    ]
    columns = ("strategy", "costs in bp", "backtests", "lowest", "median", "highest")
    print_rows(rows, as_json, "returns", columns, table)


def _swept() -> list[str]:
    """Return the strategies that have a daily version."""
    from tradeassay.benchmarks.systrade.loading import strategy_lines

    return [line.id for line in strategy_lines() if "1d" in line.timeframes]


def _batches(name: str, variants: int, tapes: int, seed: int) -> list[Any]:
    from tradeassay.benchmarks.systrade.loading import load_spec
    from tradeassay.code.bars import make_bars
    from tradeassay.code.semantics.compiler import KernelTape
    from tradeassay.code.sweep import Batch, spread_parameters

    spec = load_spec(name).semantics
    if "1d" not in spec.inputs.timeframes:
        raise UserError(f"'{name}' has no daily version", hint=f"one of {', '.join(_swept())}")
    legs, made = spec.inputs.legs, []
    for tape in range(tapes):
        bars = make_bars("pairs" if len(legs) == 2 else "us", "1d", len(legs), 252, tape)
        feeds = {leg: bars.feeds[asset] for leg, asset in zip(legs, bars.feeds, strict=True)}
        settings = spread_parameters(spec, variants, seed)
        made.append(Batch(spec, KernelTape(feeds, legs, bars.times), f"synthetic us:{tape}", settings))
    return made


def _validate_look_ahead(seed: int, as_json: bool) -> int:
    """Show the look-ahead check on strategies known to look ahead, and on honest ones."""
    from tradeassay.code.lookahead.bench import measure_bench

    lines = measure_bench(seed)
    wrong = [line.name for line in lines if line.check != line.leaky]
    if as_json:
        print_json(lines)
    else:
        rows = [
            (line.name, "yes" if line.leaky else "no", "yes" if line.check else "no", line.method, str(line.runs))
            for line in lines
        ]
        print_table("look-ahead check", ("strategy", "looks ahead", "found", "by", "runs"), rows)
        say(f"wrong: {', '.join(wrong)}" if wrong else f"all {len(lines)} judged right")
    return 1 if wrong else 0


@code.command()
@click.argument("what", nargs=-1, required=True, metavar="RUN | TABLE.csv...")
@click.option("--key", type=FILE, help="With tables: the key that was written with the form.")
@option("--seed", type=NATURAL, default=0, help="Draws another order.")
@click.option(
    "-o",
    "--out",
    "place",
    type=click.Path(path_type=Path),
    help="Where to write: of a run the folder (default: here), of tables a page.",
)
@out_option
@json_option
def review(
    what: tuple[str, ...], key: Path | None, seed: int, place: Path | None, out: Path, as_json: bool
) -> None:
    """Have people mark the submissions of a systrade run blind, and evaluate their marks.

    \b
    tradeassay code review my-run                         writes form.html, form.json, marks.csv, key.json
    tradeassay code review a.csv b.csv --key key.json     marks, ratings, how far the raters agree

    Raters read form.html (or form.json) and fill in marks.csv; key.json, which is not for them, says whose work is
    whose.
    """
    if all(Path(one).is_file() for one in what):
        if key is None:
            raise UserError("marks cannot be read without their key", hint="give --key key.json")
        _read_marks(tuple(map(Path, what)), key, place, as_json)
    elif len(what) == 1:
        _write_form(find_run(what[0], out), place or Path(), seed, as_json)
    else:
        gone = next(one for one in what if not Path(one).is_file())
        raise UserError(f"no file {gone}", hint="name one run, or the tables that raters filled in")


def _write_form(folder: Path, place: Path, seed: int, as_json: bool) -> None:
    import msgspec

    from tradeassay.code.review import make_form
    from tradeassay.report import write_review_form
    from tradeassay.runs import CodeRun

    last = [
        (record.strategy, [one.submission for one in record.iterations if one.submission is not None][-1:])
        for record in CodeRun.load(folder).records().values()
        if hasattr(record, "iterations")
    ]
    submissions = [(strategy, found[0]) for strategy, found in last if found]
    if not submissions:
        raise UserError(f"no submissions in '{folder.name}'", hint="name a run of systrade-v1")
    made, joined = make_form(submissions, seed=seed)
    files = {
        "form": (place / "form.json", made.as_json()),
        "table": (place / "marks.csv", made.as_csv()),
        "key": (place / "key.json", msgspec.json.encode(joined).decode()),
    }
    for path, text in files.values():
        write_text(path, text)
    page = write_review_form(made, place / "form.html")
    say(f"written: {page}")
    if as_json:
        written = {name: str(path) for name, (path, _) in files.items()}
        print_json(written | {"html": str(page), "submissions": len(submissions)})


def _read_marks(tables: tuple[Path, ...], key: Path, page: Path | None, as_json: bool) -> None:
    from tradeassay.code.review import read_form

    rated = read_form(tables, key)
    board, agreed = rated.board, rated.raters
    if page is not None:
        from tradeassay.report import write_review_html

        say(f"written: {write_review_html(rated, page)}")
    if as_json:
        print_json({"board": board, "agreement": agreed})
        return
    rows = [
        (author, *map(plain_number, (board.fidelity[author], board.risk[author], board.rating.get(author))))
        for author in board.fidelity
    ]
    print_table(
        f"{agreed.ratings} marks by {agreed.raters} raters", ("author", "fidelity", "risk", "rating"), rows
    )
    print_desks(board)
    for name, alpha in (("fidelity", agreed.fidelity), ("risk", agreed.risk)):
        say(f"agreement on {name}: {plain_number(alpha)}" + (f" ({alpha.reason})" if alpha.reason else ""))


def print_desks(board: ReviewBoard) -> None:
    """Print who marked whom how, the strictest reviewer first."""
    if not board.standings or not board.desks:
        return
    authors = [one.author for one in board.standings]
    rows = [
        (desk.reviewer, *map(plain_number, (desk.mean, *(desk.marks[a] for a in authors)))) for desk in board.desks
    ]
    print_table("mean of both marks", ("reviewer", "mean given", *authors), rows)
