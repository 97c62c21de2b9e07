"""``tradeassay code``: run models that write strategies, check programs, and list and validate
tasks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._output import (
    json_option,
    print_json,
    print_rows,
    print_table,
    say,
    write_file,
)
from tradeassay.core.errors import UserError
from tradeassay.core.registry import newest
from tradeassay_bench.cli import _run_options as run_opt
from tradeassay_bench.cli._run_output import finish

if TYPE_CHECKING:
    from tradeassay.core.measure import Measure
    from tradeassay_bench.benchmarks.code_protocol import CodeSpec
    from tradeassay_programs.code.evaluation import Evaluation
    from tradeassay_programs.code.task import CodeTask, Framework
    from tradeassay_programs.code.validation import ProgramLine, ValidationReport

_FIELDS = {
    "to_the_end": "early_stop",
    "decides": "evaluate",
    "temperature": "params",
    "max_tokens": "params",
}
"""The spec field that an option sets, for options with a different name."""

SYSTRADE_OPTIONS = (
    opt.several("--strategy=ID strategies", "systrade: only these strategies."),
    opt.advanced(
        "--iterations=N", "systrade: number of submissions. Default: 4.", type=click.IntRange(1, 10)
    ),
    opt.several(
        "--reviewer=MODEL reviewers",
        "systrade: a model that reviews submissions blind; repeat for several.",
    ),
    opt.advanced("--to-the-end", "systrade: continue after the target is reached.", is_flag=True),
    opt.option(
        "--dataset=NAME", "systrade, --task-file: use stored bars instead of synthetic ones."
    ),
    opt.advanced("--symbols=A,B", "systrade: the data set's symbols to use as legs."),
    opt.advanced(
        "--splits=D,D,D",
        "systrade: with --dataset, the first days of development and test, and the day after the "
        "test.",
    ),
    opt.advanced(
        "--minutes=N",
        "systrade: number of minute bars, for strategies that have a minute version.",
        type=opt.NATURAL,
    ),
    opt.advanced("--data-seed=N", "systrade: number of the synthetic year. Default: 1.", type=int),
)
_FILTERS = (
    opt.advanced(
        "--difficulty=NAME difficulties", "easy, medium or hard; repeat for several.", multiple=True
    ),
    opt.advanced("--timeframe=NAME timeframes", "1d, 1h, 30m, 15m, 5m or 1m.", multiple=True),
    opt.advanced("--family=NAME families", "trend, breakout, calendar ...", multiple=True),
    opt.option("--sample=N", "Only this many tasks, evenly spread.", type=opt.COUNT),
    opt.advanced(
        "--task-file=FILE.json",
        "Your copy of the public 400-task file, to use instead of the built-in tasks.",
        type=opt.FILE,
    ),
)
_RUN = (
    opt.several(
        "-m --model=MODEL models",
        "A model that writes programs; repeat for several.",
        required=True,
        callback=run_opt.one_each,
    ),
    opt.several("-t --task=ID tasks", "Only these tasks."),
    *_FILTERS,
    opt.advanced(
        "--wording=NAME wordings",
        "formal (default) or conversational; repeat for both.",
        multiple=True,
    ),
    opt.advanced(
        "--framework=NAME frameworks",
        "backtrader (default) or frame; repeat for both.",
        multiple=True,
    ),
    opt.several("--setting=NAME settings", "single-turn (default) or agentic; repeat for both."),
    opt.option("--turns=N", "Answers per agentic task. Default: 10.", type=opt.COUNT),
    opt.advanced(
        "--history",
        "The earlier turns that a later turn sees. Default: last.",
        type=click.Choice(["full", "last"]),
    ),
    opt.option("--judge=MODEL", "A language judge, in addition to the behavioural one."),
    opt.advanced(
        "--strict", "quantcode: fail a program for any call that the kernel refuses.", is_flag=True
    ),
    opt.advanced(
        "--decides",
        "Which judge decides the judge stage. Default: reference-first.",
        type=click.Choice(["reference-first", "behaviour", "language", "both"]),
    ),
    opt.option("--seeds", "Answers per task.", type=opt.COUNT, default=1),
    opt.advanced(
        "--temperature", "Sampling temperature of the writer. Default: 0.", type=opt.NUMBER
    ),
    opt.advanced("--max-tokens", "Longest answer of the writer. Default: 16384.", type=opt.COUNT),
    opt.advanced(
        "--secret=HEX",
        "Secret to draw the judged markets from; the secret of an earlier run repeats it. Default: "
        "random.",
    ),
)
_REPORTS = (
    opt.page("scorecard of --spec"),
    opt.option("--junit=FILE", "With --spec: write the gates as JUnit XML.", type=opt.FILE),
    opt.option("--sarif=FILE", "With --spec: write the findings as SARIF.", type=opt.FILE),
    opt.option("--bar-log=FILE", "With --spec: write the audit log by bars as CSV.", type=opt.FILE),
    opt.advanced(
        "--since=FOLDER",
        "With --spec: an earlier submission, to check whether this one repairs or changes it.",
        type=opt.FOLDER,
    ),
    opt.option(
        "--dataset=NAME",
        "With --spec or --task-file, or without a task: use stored bars instead of synthetic ones.",
    ),
    opt.advanced("--symbols=A,B", "With --dataset: the symbols to use."),
    opt.advanced(
        "--splits=D,D,D",
        "With --dataset: the first days of development and test, and the day after the test.",
    ),
    opt.advanced(
        "--data-seed", "Number of the synthetic year that the secret draws.", type=int, default=1
    ),
    opt.advanced(
        "--years",
        "With --spec: measure D4 over this many synthetic years, with its interval.",
        type=opt.COUNT,
        default=1,
    ),
)


@click.group(cls=CommandGroup)
def code() -> None:
    """Have models write trading strategies, run them in a sandbox, and judge their behaviour."""


@code.command(cls=opt.FoldedCommand)
@click.argument("benchmark")
@opt.add_options((*_RUN, *SYSTRADE_OPTIONS))
@opt.option(
    "--name=NAME",
    "Name of the run's folder; the same name resumes. Default: from the run's settings.",
)
@opt.advanced(
    "--retry-failed", "Run failed episodes again; recorded answers are reused.", is_flag=True
)
@run_opt.asking
@run_opt.out
@opt.workers
@opt.executor("local", ("local", "ray"))
@json_option
def run(
    benchmark: str, out: Path, name: str | None, retry_failed: bool, as_json: bool, **options: Any
) -> int:
    """Have models write programs for the tasks of a benchmark.

    \b
    tradeassay code run quantcode-v1 --model scripted/coder-sma --task d-sma-cross-long
    tradeassay code run quantcode-v1 -m openai/gpt-5 --setting agentic --max-usd 20
    tradeassay code run systrade-v1 -m openai/gpt-5 --reviewer openai/gpt-5-mini

    Repeat the same command to continue a stopped run. Exits with 1 if an episode failed.
    """
    from tradeassay.core.hashing import sha256_of
    from tradeassay_bench.benchmarks.code_protocol import code_benchmarks
    from tradeassay_bench.runs import resume, run as run_spec

    benchmark = newest(benchmark, code_benchmarks())
    run_options: dict[str, Any] = {name: options.pop(name) for name in ("executor", "workers")}
    run_options["asking"] = run_opt.take_asking(options, out, benchmark)
    run_options["progress"] = "auto"
    spec = take_spec(benchmark, options)
    # The default name is derived from the spec, so that the same command finds its run again.
    folder = out / (name or f"{benchmark}-{sha256_of(spec)[:8]}")
    result: Any = run_spec(spec, folder, **run_options)
    if retry_failed and result.failed:
        result = resume(folder, retry_failed=True, **run_options)
    status = finish(result, as_json=as_json)
    if not as_json and result.manifest.secret is not None:
        say(f"use --secret {result.manifest.secret} in another run to compare the two task by task")
    return status


def take_spec(benchmark: str, options: dict[str, Any]) -> CodeSpec:
    """Return the spec that the options describe, for any benchmark of programs.

    Raises :class:`UserError` for an option that is not valid with the benchmark, and for an invalid
    value.
    """
    import msgspec

    from tradeassay_bench.benchmarks.code_protocol import find_protocol, refuse_other_kind

    refuse_other_kind(benchmark, trades=False)
    spec_type = find_protocol(benchmark).Spec
    default: Any = spec_type(models=options["models"], benchmark=benchmark)
    set_options = {
        name: value
        for name, value in options.items()
        if value is not None and value != () and value is not False
    }
    for name in set_options:
        if _FIELDS.get(name, name) not in spec_type.__struct_fields__:
            raise _not_valid(run, name, f"'{benchmark}'")
    changes = {_FIELDS.get(name, name): value for name, value in set_options.items()}
    for name in ("symbols", "splits"):
        if name in set_options:
            changes[name] = run_opt.split_list(set_options[name])
    if "task_file" in set_options:
        changes["task_file"] = str(set_options["task_file"])
    if "to_the_end" in set_options:
        changes["early_stop"] = False
    if "decides" in set_options:
        decides = set_options["decides"]
        changes["evaluate"] = msgspec.structs.replace(default.evaluate, decides=decides)
    sampling = {
        name: set_options[name] for name in ("temperature", "max_tokens") if name in set_options
    }
    if sampling:
        params = msgspec.to_builtins(default.params) | sampling
        try:
            changes["params"] = msgspec.convert(params, type(default.params))
        except msgspec.ValidationError as error:
            reason = f"these sampling options are not valid: {error}"
            raise UserError(reason, hint="temperature must be 0 to 2") from error
    changes["seeds"] = tuple(range(options["seeds"]))
    spec: CodeSpec = msgspec.structs.replace(default, **changes)
    return spec


def take_tasks(filters: dict[str, Any]) -> tuple[CodeTask, ...]:
    """Return the tasks that match the filters. Raises :class:`UserError` if no task matches."""
    from tradeassay_programs.benchmarks.quantcode.benchmark import tasks_of
    from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec

    names = ("tasks", "difficulties", "timeframes", "families", "sample")
    chosen = {name: filters[name] for name in names if name in filters}
    file = None if filters["task_file"] is None else str(filters["task_file"])
    matching = tasks_of(QuantCodeSpec(models=("scripted/coder-sma",), task_file=file, **chosen))
    if not matching:
        raise UserError("no task matches the filters", hint="drop a filter")
    return matching


@code.command("eval", cls=opt.FoldedCommand)
@click.argument("program", type=click.Path(path_type=Path))
@opt.option("--task=ID", "The QuantCode task of the program; see tradeassay code tasks.")
@opt.option("--spec=STRATEGY", "The strategy of a submission; see tradeassay code strategies.")
@opt.option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader")
@opt.option("--judge=MODEL", "A language judge, in addition to the behavioural one.")
@opt.option(
    "--task-file=FILE",
    "File with the task: your own ID.toml, or your copy of the public 400-task file.",
    type=opt.FILE,
)
@opt.option("--secret=HEX", "Secret of an earlier examination, to repeat it. Default: random.")
@opt.flag("--strict", "Fail the program for any call that the kernel refuses.")
@opt.flag("--reward", "Print a reward for training, between 0 and 1.")
@opt.flag(
    "--judged", "With --reward: base nearly all of it on agreement with the task's reference."
)
@opt.add_options(_REPORTS)
@json_option
def evaluate(
    program: Path,
    task: str | None,
    spec: str | None,
    framework: Any,
    secret: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Check your own program or submission, without a model.

    \b
    tradeassay code eval mine.py                           does it run, trade, look ahead?
    tradeassay code eval mine.py --task d-sma-cross-long   does it also follow the task?
    tradeassay code eval ./mine --spec bollinger           a submission: gates, scores, scorecard
    tradeassay code eval mine.py --task d-sma-cross-long --reward    a reward for training

    A submission is a folder with strategy.py and strategy_card.json. Exits with 0 if it passes and
    with 1 if it does not. With --reward it always exits with 0.
    """
    judge, task_file, strict, reward, judged = (
        options[name] for name in ("judge", "task_file", "strict", "reward", "judged")
    )
    if spec is not None:
        if task is not None:
            raise UserError(
                "--task and --spec are not valid together",
                hint="give --task for a program, --spec for a folder",
            )
        for_programs = ("judge", "task_file", "strict", "reward", "judged")
        _refuse_options("a folder with --spec", options, *for_programs)
        return evaluate_submission(program, spec, options, as_json=as_json, secret=secret)
    if program.is_dir():
        raise UserError(
            f"{program} is a folder", hint="name its strategy with --spec, or a program in it"
        )
    # These two have defaults, so only a different value counts as set.
    numbers = {"years": options["years"] > 1, "data_seed": options["data_seed"] != 1}
    for_folders = ("junit", "sarif", "page", "bar_log", "since", "splits", *numbers)
    _refuse_options("a program", options | numbers, *for_folders)
    dataset, symbols = options["dataset"], run_opt.split_list(options["symbols"])
    from tradeassay_programs.benchmarks.quantcode.check import (
        check_program,
        find_task,
        read_program,
    )
    from tradeassay_programs.code.running import exam_settings

    if task is None:
        _refuse_options("a program without --task", options, "task_file", "judge", "reward")
    elif reward:
        _refuse_options("--reward", options, "judge", "strict", "task_file", "dataset")
        _print_reward(program, task, framework, secret, judged=judged, as_json=as_json)
        return 0
    if judged:
        raise UserError("--judged is not valid without --reward", hint="give --reward too")
    if symbols and not dataset:
        raise UserError("--symbols needs a data set", hint="give --dataset too")
    rules = exam_settings(secret)
    chosen, home = find_task(task, task_file), None
    if dataset is not None:
        from tradeassay_bench.data import load_dataset
        from tradeassay_programs.benchmarks.quantcode.loading import on_stored_bars

        if len(symbols) > 1:
            reason = f"a program runs on one symbol, got {len(symbols)}"
            raise UserError(reason, hint="run the command once for each symbol")
        symbol = symbols[0] if symbols else None
        chosen, home = on_stored_bars(chosen, load_dataset(dataset), symbol)
    source = read_program(program)
    evaluation = check_program(
        source, chosen, framework=framework, judge=judge, rules=rules, strict=strict, home=home
    )
    if as_json:
        print_json(
            {
                "outcome": evaluation.outcome,
                "verdict": evaluation.verdict,
                "secret": rules.secret,
                "lacks": chosen.lacks,
                "stored_bars": None if home is None else home.name,
                "evaluation": evaluation,
            }
        )
    else:
        from tradeassay_programs.report.code_board import print_evaluation

        title = f"{program.name} without a task"
        if task:
            has_judge = chosen.has_reference or judge
            note = "" if has_judge else " (no judge: the task has no reference program)"
            title = f"{program.name}{note} on {task}"
        print_evaluation(evaluation, title)
        if home is not None:
            first, last = (str(home.times[at])[:10] for at in (0, -1))
            say(f"on {home.rows} stored bars of {home.name}, {first} to {last}")
        for missing in chosen.lacks:
            say(f"the task lacks {missing}")
        for attempt in evaluation.attempts:
            say(f"refused: {attempt}")
        _print_advice(evaluation, source)
        if evaluation.isolation:
            say(f"isolation: {evaluation.isolation}")
            say(f"use --secret {rules.secret} to repeat this examination")
    passed = evaluation.outcome == "solved" or (task is None and evaluation.passed_unjudged)
    return 0 if passed else 1


def _print_reward(
    program: Path, task: str, framework: Any, secret: str | None, *, judged: bool, as_json: bool
) -> None:
    from tradeassay_programs.benchmarks.quantcode.check import find_task, read_program
    from tradeassay_programs.code.reward import reward

    by: Any = "behaviour" if judged else None
    result = reward(find_task(task), read_program(program), by, framework=framework, secret=secret)
    if as_json:
        fields = ("value", "outcome", "parts", "reason")
        print_json({name: getattr(result, name) for name in fields})
        return
    click.echo("none" if result.value is None else f"{result.value:g}")
    parts = ", ".join(f"{name} {part:g}" for name, part in result.parts.items())
    say(f"{result.outcome}: {parts or 'nothing passed'}")
    if result.reason:
        say(result.reason)


def _print_advice(evaluation: Evaluation, source: str) -> None:
    """Print a remedy for a failure.

    Models also see the reason of a failure, so the reason does not name options of the command
    line.
    """
    import sys

    from tradeassay_programs.code.program_source import check_compiles
    from tradeassay_programs.sandbox.sandbox_config import PRELOAD

    other: Framework = "backtrader" if evaluation.framework == "frame" else "frame"
    no_strategy = evaluation.compile.error_class == "no_strategy"
    if no_strategy and check_compiles(source, other).passed:
        say(f"this is a program for the other framework: add --framework {other}")
    if evaluation.backtest.error_class == "forbidden_import":
        packages = dict.fromkeys(name.partition(".")[0] for name in PRELOAD)
        third_party = ", ".join(name for name in packages if name not in sys.stdlib_module_names)
        say(f"a program may import {third_party} if installed, and most of the standard library")


def _refuse_options(context: str, options: dict[str, Any], *names: str) -> None:
    """Raise :class:`UserError` if one of these options is set, because it would be ignored."""
    for name in names:
        if options[name]:
            raise _not_valid(evaluate, name, context)


def _not_valid(command: click.Command, name: str, context: str) -> UserError:
    """Return the error for an option that is not valid in a context."""
    [option] = [max(param.opts, key=len) for param in command.params if param.name == name]
    return UserError(
        f"{option} is not valid with {context}", hint=f"see tradeassay code {command.name} --help"
    )


@code.command()
@click.argument("task", required=False)
@opt.add_options(_FILTERS)
@opt.option("--wording", type=click.Choice(["formal", "conversational"]), default="formal")
@opt.option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader")
@opt.flag("--reference", "With TASK: print its reference program instead of its wording.")
@opt.option(
    "--draw=N count",
    "Draw N new tasks of --family, a split or all.",
    type=click.IntRange(1, 100_000),
)
@opt.option("--seed", "With --draw: the same seed draws the same tasks.", type=int, default=0)
@json_option
def tasks(
    task: str | None, reference: bool, count: int | None, seed: int, as_json: bool, **filters: Any
) -> None:
    """List the tasks, show one with its wording and terms, or draw new ones.

    `--family FAMILY --draw N` draws new tasks from generators. A family may also be train,
    validation, test or all. The ids of drawn tasks work wherever a task can be named. With --json
    whole tasks are printed.
    """
    from tradeassay_programs.benchmarks.quantcode import draw_tasks
    from tradeassay_programs.benchmarks.quantcode.check import find_task, task_line

    if task is not None:
        selected = find_task(task, filters["task_file"])
        if as_json:
            print_json(selected)
            return
        wording, framework = filters["wording"], filters["framework"]
        click.echo(_describe_task(selected, wording, framework, reference=reference))
        return
    if count is None:
        listed = take_tasks(filters)
    else:
        families = filters["families"]
        others = ("difficulties", "timeframes", "sample", "task_file")
        if len(families) > 1 or any(filters[name] for name in others):
            hint = "e.g. tradeassay code tasks --family all --draw 5"
            raise UserError("--draw is valid only with one --family and --seed", hint=hint)
        listed = draw_tasks(families[0] if families else "all", count, seed)
    if as_json:
        print_json([task_line(task) for task in listed] if count is None else listed)
        return
    rows = [
        (
            task.id,
            task.title,
            task.difficulty,
            task.timeframe,
            task.family or "",
            task.market,
            "yes" if task.frame else "",
        )
        for task in listed
    ]
    columns = ("id", "title", "difficulty", "bars of", "family", "market", "frame")
    print_table("tasks", columns, rows)
    say(f"{len(listed)} tasks")


def _describe_task(task: CodeTask, wording: Any, framework: Framework, *, reference: bool) -> str:
    """Return a description of a task, or its reference program alone.

    Raises :class:`UserError` if the task has no such wording or reference.
    """
    from tradeassay_programs.code.running import reference_of

    if reference:
        text = reference_of(task, framework).strip() or None
    else:
        text = task.text(wording, framework)
    if text is None:
        lacks = "reference" if reference else f"{wording} wording"
        raise UserError(
            f"task '{task.id}' has no {lacks} for {framework}", hint="see tradeassay code tasks"
        )
    if reference:
        return text
    market = (
        f"{task.difficulty}, {task.timeframe} bars of '{task.market}', {task.bars} bars, "
        f"{task.assets} asset(s)"
    )
    sizing = f"sizing {task.sizing.kind} {task.sizing.value:g}"
    terms = f"cash {task.cash:,.0f}, commission {task.commission:g}, {sizing}"
    decoys = "; ".join(f"{decoy.name} fails at {decoy.fails_at}" for decoy in task.decoys) or "none"
    lines = [f"{task.id}: {task.title}", market, terms, "", text, "", f"decoys: {decoys}"]
    if task.lacks:
        lines.append(f"the task lacks {', '.join(task.lacks)}")
    return "\n".join(lines)


@code.command()
@click.argument("ids", nargs=-1)
@opt.add_options(_FILTERS)
@opt.option("--judge=MODEL", "Measure the errors of this language judge too.")
@opt.flag("--thorough", "Run the full look-ahead check and all markets for every program.")
@opt.option("--secret=HEX", "Secret to draw the judged markets from. Default: random.")
@opt.option(
    "--look-ahead=[SEED]",
    "Instead test the look-ahead check, on strategies that look ahead and on honest ones.",
    type=opt.NATURAL,
    is_flag=False,
    flag_value=0,
)
@opt.workers
@opt.executor("local", ("local", "ray"))
@json_option
def validate(ids: tuple[str, ...], look_ahead: int | None, as_json: bool, **options: Any) -> int:
    """Run references and decoys without a model: a reference must pass, a decoy must fail at its
    stage.

    Exits with 1 if any program has an unexpected outcome. All tasks take minutes; --sample 5 takes
    seconds. --look-ahead exits with 1 if it misses a leak or flags an honest strategy.
    """
    if look_ahead is not None:
        return _validate_look_ahead(look_ahead, as_json)
    from itertools import count

    from tradeassay_bench.runs.play.progress import PacedCount
    from tradeassay_programs.benchmarks.quantcode.check import validate_tasks

    numbers, pace = count(1), PacedCount(say)

    def report(line: ProgramLine) -> None:
        if not line.ok:
            say(f"{line.name}: expected {line.expected}, got {line.outcome} {line.reason}".rstrip())
        pace("programs examined", next(numbers))

    names = ("judge", "thorough", "secret", "workers", "executor")
    settings: dict[str, Any] = {name: options.pop(name) for name in names}
    chosen = take_tasks({**options, "tasks": ids})
    validation = validate_tasks(chosen, tell=report, **settings)
    if as_json:
        print_json(validation)
    else:
        _print_validation(validation)
    return 0 if validation.ok else 1


def _print_validation(report: ValidationReport) -> None:
    """Print a validation: the programs by their expected outcome, and the errors of the judges."""
    kinds: dict[str, list[ProgramLine]] = {}
    for line in report.lines:
        kind = "reference" if line.kind == "gold" else f"decoy for {line.expected}"
        kinds.setdefault(kind, []).append(line)
    rows = [
        (kind, f"{len(lines)}", f"{sum(line.ok for line in lines)}")
        for kind, lines in sorted(kinds.items())
    ]
    title = "1 task" if report.tasks == 1 else f"{report.tasks} tasks"
    print_table(title, ("programs", "run", "as expected"), rows)
    for errors in report.judges:
        rates = []
        for name, rate in (
            ("false rejects", errors.false_rejects),
            ("false accepts", errors.false_accepts),
        ):
            value = "n/a" if rate.value is None else f"{rate.value:.1%} of {rate.n}"
            rates.append(f"{name} {value}")
        note = f" ({errors.note})" if errors.note else ""
        say(f"judge {errors.judge}: {', '.join(rates)}{note}")
    for line in report.lines:
        if line.redrawn:
            say(f"{line.name} made no trade on {line.redrawn} drawn home market(s) and got another")
    for line in report.disagreements:
        say(f"judges disagree on {line.name}: behaviour {line.behaviour}, language {line.language}")
    if report.ok:
        say("all as expected")
    else:
        names = ", ".join(line.name for line in report.wrong)
        say(f"{len(report.wrong)} not as expected: {names}")


@code.command()
@click.argument("strategy", required=False)
@opt.flag("--semantics", "With STRATEGY: print its frozen semantics instead of its doc.")
@opt.option(
    "--reference=FOLDER",
    "With STRATEGY: write the reference submission there, to start from.",
    type=opt.FOLDER,
)
@opt.option(
    "--schema",
    "Print the JSON schema of a strategy card, or of frozen semantics.",
    type=click.Choice(["card", "semantics"]),
)
@json_option
def strategies(
    strategy: str | None, semantics: bool, reference: Path | None, schema: Any, as_json: bool
) -> None:
    """List the twelve strategies, or show one: its doc, its frozen semantics, its reference."""
    from tradeassay_programs.benchmarks.systrade.loading import (
        schema_text,
        strategy_lines,
        strategy_text,
        write_reference,
    )

    if schema is not None:
        click.echo(schema_text(schema))
        return
    if strategy is None:
        lines = strategy_lines()
        rows = [
            (
                line.id,
                line.title,
                line.legs,
                line.timeframes,
                f"{line.complexity:.2f}",
                line.sha256[:12],
            )
            for line in lines
        ]
        columns = ("id", "title", "legs", "bars", "complexity", "semantics")
        print_rows(lines, as_json, "strategies", columns, rows)
        return
    if reference is not None:
        write_reference(strategy, reference)
        if as_json:
            print_json({"folder": reference, "strategy": strategy})
        say(
            f"written: {reference}; check it with: tradeassay code eval {reference} --spec "
            f"{strategy}"
        )
        return
    click.echo(strategy_text(strategy, semantics=semantics or as_json))


def evaluate_submission(
    folder: Path, strategy: str, options: dict[str, Any], *, as_json: bool, secret: str | None
) -> int:
    """Check a submission, write the requested files, and return 0 if it passed and 1 otherwise."""
    from tradeassay_bench.core.run_secret import draw_secret, refuse_bad_secret
    from tradeassay_programs.benchmarks.systrade.data import DAYS
    from tradeassay_programs.benchmarks.systrade.examine import bars_for, check_submission

    if secret is not None:
        refuse_bad_secret(secret)
    secret = secret or draw_secret()
    days = run_opt.split_list(options["splits"]) or DAYS
    symbols = run_opt.split_list(options["symbols"])
    dataset, year = options["dataset"], options["data_seed"]
    bars = bars_for(strategy, dataset, symbols, days, secret, year)
    since, years = options["since"], options["years"]
    if years > 1 and (dataset is not None or year != 1):
        raise UserError(
            "--years is not valid with --dataset or --data-seed",
            hint="leave them out: --years draws synthetic years",
        )
    check = check_submission(folder, strategy, bars=bars, secret=secret, since=since, years=years)
    if options["junit"] is not None:
        write_text(options["junit"], check.junit())
    if options["sarif"] is not None:
        write_text(options["sarif"], check.sarif())
    if options["bar_log"] is not None:
        log = check.bar_log
        if log is None:
            say("there is no audit log by bars, because the submission could not be run")
        else:
            write_text(options["bar_log"], log)
    if options["page"] is not None:
        from tradeassay_programs.report.scorecard import write_check_html

        say(f"scorecard: {write_check_html(check, options['page'])}")
    if as_json:
        body = {
            "passed": check.passed,
            "secret": secret,
            "scorecard": check.scorecard,
            "trail": check.trail,
        }
        if since is not None:
            body["drift"] = check.drift
        if check.years is not None:
            body["years"] = check.years
        print_json(body)
    else:
        from tradeassay_programs.report.code_board import print_check

        print_check(check, name=folder.resolve().name)
        say(f"use --secret {secret} to repeat this examination")
    return 0 if check.passed else 1


def write_text(path: Path, text: str) -> None:
    """Write a text file. Raises :class:`UserError` if the file cannot be written."""
    write_file(path, text.encode("utf-8", "replace"))
    say(f"written: {path}")


def _validate_look_ahead(seed: int, as_json: bool) -> int:
    """Run the look-ahead check on strategies that look ahead and on honest ones, and print the
    results.
    """
    from tradeassay_programs.code.lookahead.bench import measure_bench

    lines = measure_bench(seed)
    wrong = [line.name for line in lines if line.check != line.leaky]
    if as_json:
        print_json(lines)
    else:
        rows = [
            (
                line.name,
                "yes" if line.leaky else "no",
                "yes" if line.check else "no",
                line.method,
                str(line.runs),
            )
            for line in lines
        ]
        print_table("look-ahead check", ("strategy", "looks ahead", "found", "by", "runs"), rows)
        say(f"wrong: {', '.join(wrong)}" if wrong else f"all {len(lines)} are right")
    return 1 if wrong else 0


@code.command()
@click.argument("what", nargs=-1, required=True, metavar="RUN | TABLE.csv...")
@opt.option("--key", "With tables: the key that was written with the form.", type=opt.FILE)
@opt.option("--seed", "Seed of the order of submissions.", type=opt.NATURAL, default=0)
@opt.option(
    "-o --out place",
    "With a run: folder for the form. Default: this folder. With tables: page to write.",
    type=click.Path(path_type=Path),
)
@run_opt.out
@json_option
def review(
    what: tuple[str, ...], key: Path | None, seed: int, place: Path | None, out: Path, as_json: bool
) -> None:
    """Have people mark the submissions of a systrade run blind, and evaluate their marks.

    \b
    tradeassay code review my-run                      writes the form, marks.csv and key.json
    tradeassay code review a.csv b.csv --key key.json  marks, ratings, agreement of the raters

    Raters read form.html (or form.json) and fill in marks.csv. Do not give key.json to them: it
    names the authors.
    """
    if all(Path(name).is_file() for name in what):
        if key is None:
            raise UserError("marks cannot be read without their key", hint="give --key key.json")
        _evaluate_marks(tuple(map(Path, what)), key, place, as_json)
        return
    if len(what) > 1:
        missing = next(name for name in what if not Path(name).is_file())
        hint = "name one run, or the tables that raters filled in"
        raise UserError(f"no such file: {missing}", hint=hint)
    import msgspec

    from tradeassay_bench.runs import CodeRun
    from tradeassay_programs.code.review import make_form
    from tradeassay_programs.report.scorecard import write_review_form

    folder, place = run_opt.find_run(what[0], out), place or Path()
    submissions = []
    for record in CodeRun.load(folder).records().values():
        iterations = getattr(record, "iterations", ())
        handed_in = [each.submission for each in iterations if each.submission is not None]
        # People mark the last submission of every task.
        if handed_in:
            submissions.append((record.strategy, handed_in[-1]))
    if not submissions:
        raise UserError(f"no submissions in '{folder.name}'", hint="name a run of systrade-v1")
    form, authors = make_form(submissions, seed=seed)
    files = {
        "form": (place / "form.json", form.as_json()),
        "table": (place / "marks.csv", form.as_csv()),
        "key": (place / "key.json", msgspec.json.encode(authors).decode()),
    }
    for path, text in files.values():
        write_text(path, text)
    page = write_review_form(form, place / "form.html")
    say(f"written: {page}")
    if as_json:
        written = {name: str(path) for name, (path, _) in files.items()}
        print_json(written | {"html": str(page), "submissions": len(submissions)})


def _evaluate_marks(tables: tuple[Path, ...], key: Path, page: Path | None, as_json: bool) -> None:
    """Print marks, ratings, agreement, and each reviewer's marks by author.

    The strictest reviewer is first.
    """
    from tradeassay_programs.code.review import read_form

    rated = read_form(tables, key)
    board, agreement = rated.board, rated.raters
    if page is not None:
        from tradeassay_programs.report.scorecard import write_review_html

        say(f"written: {write_review_html(rated, page)}")
    if as_json:
        print_json({"board": board, "agreement": agreement})
        return
    rows = []
    for author in board.fidelity:
        marks = (board.fidelity[author], board.risk[author], board.rating.get(author))
        rows.append((author, *map(_plain_number, marks)))
    title = f"{agreement.ratings} marks by {agreement.raters} raters"
    print_table(title, ("author", "fidelity", "risk", "rating"), rows)
    if board.standings and board.reviewers:
        authors = [standing.author for standing in board.standings]
        rows = []
        for reviewer in board.reviewers:
            means = (reviewer.mean, *(reviewer.marks[author] for author in authors))
            rows.append((reviewer.reviewer, *map(_plain_number, means)))
        print_table("mean of both marks", ("reviewer", "mean given", *authors), rows)
    for name, alpha in (("fidelity", agreement.fidelity), ("risk", agreement.risk)):
        reason = f" ({alpha.reason})" if alpha.reason else ""
        say(f"agreement on {name}: {_plain_number(alpha)}{reason}")


def _plain_number(measure: Measure | None) -> str:
    """Return a measure's value as text, without its interval."""
    return "none" if measure is None or measure.value is None else f"{measure.value:.2f}"
