"""``tradeassay code``: models write strategies, programs are checked, tasks are listed and validated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._output import (
    finish,
    json_option,
    plain_number,
    print_json,
    print_rows,
    print_table,
    say,
    write_file,
)
from tradeassay.core.errors import UserError
from tradeassay.core.registry import newest

if TYPE_CHECKING:
    from tradeassay.benchmarks.code_protocol import CodeSpec
    from tradeassay.code.evaluation import Evaluation
    from tradeassay.code.task import CodeTask, Framework
    from tradeassay.code.validation import ProgramLine, ValidationReport

_FIELDS = {"to_the_end": "early_stop", "decides": "evaluate", "temperature": "params", "max_tokens": "params"}
"""The field of a spec that an option of another name is about."""

SYSTRADE_OPTIONS = (
    opt.several("--strategy=ID strategies", "systrade: only these strategies."),
    opt.advanced("--iterations=N", "systrade: number of submissions. Default: 4.", type=click.IntRange(1, 10)),
    opt.several(
        "--reviewer=MODEL reviewers", "systrade: a model that marks submissions, blind; repeat for several."
    ),
    opt.advanced("--to-the-end", "systrade: continue after the target is reached.", is_flag=True),
    opt.option("--dataset=NAME", "systrade, --task-file: stored bars, not synthetic ones."),
    opt.advanced("--symbols=A,B", "systrade: which of the data set's symbols are the legs."),
    opt.advanced(
        "--splits=D,D,D",
        "systrade: with --dataset, the days on which development and test begin and the test has ended.",
    ),
    opt.advanced(
        "--minutes=N",
        "systrade: this many minute bars, for strategies that have a minute version.",
        type=opt.NATURAL,
    ),
    opt.advanced("--data-seed=N", "systrade: which synthetic year. Default: 1.", type=int),
)
_FILTERS = (
    opt.advanced("--difficulty=NAME difficulties", "easy, medium or hard; repeat for several.", multiple=True),
    opt.advanced("--timeframe=NAME timeframes", "1d, 1h, 30m, 15m, 5m or 1m.", multiple=True),
    opt.advanced("--family=NAME families", "trend, breakout, calendar ...", multiple=True),
    opt.option("--sample=N", "Only this many of them, evenly spread.", type=opt.COUNT),
    opt.advanced(
        "--task-file=FILE.json", "Your copy of the public 400-task file, instead of our tasks.", type=opt.FILE
    ),
)
_RUN = (
    opt.several(
        "-m --model=MODEL models",
        "A model that writes programs; repeat for several.",
        required=True,
        callback=opt.one_each,
    ),
    opt.several("-t --task=ID tasks", "Only these tasks."),
    *_FILTERS,
    opt.advanced("--wording=NAME wordings", "formal (default) or conversational; repeat for both.", multiple=True),
    opt.advanced("--framework=NAME frameworks", "backtrader (default) or frame; repeat for both.", multiple=True),
    opt.several("--setting=NAME settings", "single-turn (default) or agentic; repeat for both."),
    opt.option("--turns=N", "Answers per agentic task. Default: 10.", type=opt.COUNT),
    opt.advanced(
        "--history",
        "What a later turn sees of the earlier ones. Default: last.",
        type=click.Choice(["full", "last"]),
    ),
    opt.option("--judge=MODEL", "A language judge beside the behavioural one."),
    opt.advanced("--strict", "quantcode: a call that the kernel refuses fails a program.", is_flag=True),
    opt.advanced(
        "--decides",
        "Which judge decides the judge stage. Default: reference-first.",
        type=click.Choice(["reference-first", "behaviour", "language", "both"]),
    ),
    opt.option("--seeds", "Answers per task.", type=opt.COUNT, default=1),
    opt.advanced("--temperature", "Sampling temperature of the writer. Default: 0.", type=opt.NUMBER),
    opt.advanced("--max-tokens", "Longest answer of the writer. Default: 16384.", type=opt.COUNT),
    opt.advanced(
        "--secret=HEX",
        "Secret that the judged markets are drawn from; give an earlier run's to repeat it. Default: random.",
    ),
)
_REPORTS = (
    opt.page("scorecard of --spec"),
    opt.option("--junit=FILE", "With --spec: write the gates as JUnit XML.", type=opt.FILE),
    opt.option("--sarif=FILE", "With --spec: write the findings as SARIF.", type=opt.FILE),
    opt.option("--bar-log=FILE", "With --spec: write the audit log by bars as CSV.", type=opt.FILE),
    opt.advanced(
        "--since=FOLDER",
        "With --spec: an earlier submission; was it repaired, or changed into something else?",
        type=opt.FOLDER,
    ),
    opt.option("--dataset=NAME", "With --spec or --task-file, or without a task: stored bars, not synthetic."),
    opt.advanced("--symbols=A,B", "With --dataset: which of its symbols is meant."),
    opt.advanced("--splits=D,D,D", "With --dataset: first days of development, test, and what follows."),
    opt.advanced("--data-seed", "Which of the secret's years.", type=int, default=1),
    opt.advanced("--years", "With --spec: D4 over so many of them, with its interval.", type=opt.COUNT, default=1),
)


@click.group(cls=CommandGroup)
def code() -> None:
    """Trading strategies written by models: run them in a sandbox and judge them by what they do."""


@code.command(cls=opt.FoldedCommand)
@click.argument("benchmark")
@opt.add_options((*_RUN, *SYSTRADE_OPTIONS))
@opt.option("--slug=NAME", "Name of the run's folder; the same slug resumes. Default: from its content.")
@opt.advanced("--retry-failed", "Play failed episodes again; recorded answers are reused.", is_flag=True)
@opt.asking
@opt.out
@opt.workers
@opt.executor("local", ("local", "ray"))
@json_option
def run(benchmark: str, out: Path, slug: str | None, retry_failed: bool, as_json: bool, **described: Any) -> int:
    """Have models write programs for the tasks of a benchmark.

    \b
    tradeassay code run quantcode-v1 --model scripted/coder-sma --task d-sma-cross-long
    tradeassay code run quantcode-v1 -m openai/gpt-5 --setting agentic --judge openai/gpt-5-mini --max-usd 20
    tradeassay code run systrade-v1 -m openai/gpt-5 --reviewer openai/gpt-5-mini --strategy bollinger

    Giving the same command again continues a stopped run. Exits with 1 when an episode failed.
    """
    from tradeassay.benchmarks.code_protocol import code_benchmarks
    from tradeassay.core.hashing import sha256_of
    from tradeassay.runs import resume, run as run_spec

    benchmark = newest(benchmark, code_benchmarks())
    how: dict[str, Any] = {name: described.pop(name) for name in ("executor", "workers")}
    how |= {"asking": opt.take_asking(described, out, benchmark), "progress": "auto"}
    spec = take_spec(benchmark, described)
    folder = out / (slug or f"{benchmark}-{sha256_of(spec)[:8]}")  # the same command finds its run again
    done: Any = run_spec(spec, folder, **how)
    if retry_failed and done.failed:
        done = resume(folder, retry_failed=True, **how)
    status = finish(done, as_json=as_json)
    if not as_json and done.manifest.secret is not None:
        say(f"a run to compare it with, task by task, takes the same markets: --secret {done.manifest.secret}")
    return status


def take_spec(benchmark: str, given: dict[str, Any]) -> CodeSpec:
    """Return the spec that the options describe, of any benchmark of programs; raises :class:`UserError` for an
    option that its spec has no field for, and for what makes no sense.
    """
    import msgspec

    from tradeassay.benchmarks.code_protocol import find_protocol, refuse_other_kind

    refuse_other_kind(benchmark, trades=False)
    kind = find_protocol(benchmark).Spec
    plain: Any = kind(models=given["models"], benchmark=benchmark)
    asked = {
        name: value for name, value in given.items() if value is not None and value != () and value is not False
    }
    for name in asked:
        if _FIELDS.get(name, name) not in kind.__struct_fields__:
            raise _means_nothing(run, name, f"'{benchmark}'")
    changes = {_FIELDS.get(name, name): value for name, value in asked.items()}
    for name in ("symbols", "splits"):
        if name in asked:
            changes[name] = opt.split_list(asked[name])
    if "task_file" in asked:
        changes["task_file"] = str(asked["task_file"])
    if "to_the_end" in asked:
        changes["early_stop"] = False
    if "decides" in asked:
        changes["evaluate"] = msgspec.structs.replace(plain.evaluate, decides=asked["decides"])
    sampling = {name: asked[name] for name in ("temperature", "max_tokens") if name in asked}
    if sampling:
        try:
            changes["params"] = msgspec.convert(
                {**msgspec.to_builtins(plain.params), **sampling}, type(plain.params)
            )
        except msgspec.ValidationError as error:
            reason = f"the model cannot be asked with these settings: {error}"
            raise UserError(reason, hint="temperature is 0 to 2") from error
    changes["seeds"] = tuple(range(given["seeds"]))
    spec: CodeSpec = msgspec.structs.replace(plain, **changes)
    return spec


def take_tasks(filters: dict[str, Any]) -> tuple[CodeTask, ...]:
    """Return the tasks that the filters leave; raises :class:`UserError` when there are none."""
    from tradeassay.benchmarks.quantcode.benchmark import tasks_of
    from tradeassay.benchmarks.quantcode.spec import QuantCodeSpec

    names = ("tasks", "difficulties", "timeframes", "families", "sample")
    chosen = {name: filters[name] for name in names if name in filters}
    file = None if filters["task_file"] is None else str(filters["task_file"])
    found = tasks_of(QuantCodeSpec(models=("scripted/coder-sma",), task_file=file, **chosen))
    if not found:
        raise UserError("no task is left", hint="drop a filter")
    return found


@code.command("eval", cls=opt.FoldedCommand)
@click.argument("program", type=click.Path(path_type=Path))
@opt.option("--task=ID", "The QuantCode task that a program is for; see tradeassay code tasks.")
@opt.option("--spec=STRATEGY", "The strategy that a folder is for; see tradeassay code strategies.")
@opt.option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader")
@opt.option("--judge=MODEL", "A model that reads the program as well.")
@opt.option(
    "--task-file=FILE",
    "The task is in a file: your own ID.toml, or your copy of the public 400-task file.",
    type=opt.FILE,
)
@opt.option("--secret=HEX", "Secret of an earlier examination, to judge on its markets. Default: random.")
@opt.flag("--strict", "A call that the kernel refuses fails the program.")
@opt.flag("--reward", "Print one number between 0 and 1 to train on: how far it came.")
@opt.flag("--judged", "--reward: half is for doing what the task's reference does.")
@opt.add_options(_REPORTS)
@json_option
def evaluate(
    program: Path,
    task: str | None,
    spec: str | None,
    framework: Any,
    secret: str | None,
    as_json: bool,
    **given: Any,
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
    judge, task_file, strict, reward, judged = (
        given[name] for name in ("judge", "task_file", "strict", "reward", "judged")
    )
    if spec is not None:
        if task is not None:
            raise UserError("both --task and --spec are given", hint="a program has a task, a folder a strategy")
        _refuse_given("a folder with --spec", given, "judge", "task_file", "strict", "reward", "judged")
        return evaluate_submission(program, spec, given, as_json=as_json, secret=secret)
    if program.is_dir():
        raise UserError(f"{program} is a folder", hint="name its strategy with --spec, or a program in it")
    numbers = {"years": given["years"] > 1, "data_seed": given["data_seed"] != 1}
    of_folders = ("junit", "sarif", "page", "bar_log", "since", "splits", *numbers)
    _refuse_given("a program", given | numbers, *of_folders)
    dataset, symbols = given["dataset"], opt.split_list(given["symbols"])
    from tradeassay.benchmarks.quantcode.check import check_program, find_task, read_program
    from tradeassay.code.running import rules_of

    if task is None:
        _refuse_given("a program without --task", given, "task_file", "judge", "reward")
    elif reward:
        _refuse_given("--reward", given, "judge", "strict", "task_file", "dataset")
        _show_reward(program, task, framework, secret, judged=judged, as_json=as_json)
        return 0
    if judged:
        raise UserError("--judged is about a reward", hint="give --reward too")
    if symbols and not dataset:
        raise UserError("--symbols needs a data set", hint="give --dataset too")
    rules = rules_of(secret)
    chosen, home = find_task(task, task_file), None
    if dataset is not None:
        from tradeassay.benchmarks.quantcode.loading import on_stored_bars
        from tradeassay.data import load_dataset

        if len(symbols) > 1:
            many = f"a program is run on one symbol, and {len(symbols)} are named"
            raise UserError(many, hint="run it once for each of them")
        chosen, home = on_stored_bars(chosen, load_dataset(dataset), symbols[0] if symbols else None)
    source = read_program(program)
    found = check_program(source, chosen, framework=framework, judge=judge, rules=rules, strict=strict, home=home)
    if as_json:
        bars = None if home is None else home.name
        about = {"secret": rules.secret, "lacks": chosen.lacks, "stored_bars": bars}
        print_json({"outcome": found.outcome, "verdict": found.verdict, **about, "evaluation": found})
    else:
        from tradeassay.report.code_board import print_evaluation

        unjudged = "" if chosen.has_reference or judge else " (no judge: the task has no reference program)"
        print_evaluation(
            found, f"{program.name}{unjudged} on {task}" if task else f"{program.name} without a task"
        )
        if home is not None:
            first, last = (str(home.times[at])[:10] for at in (0, -1))
            say(f"on {home.rows} stored bars of {home.name}, {first} to {last}")
        for what in chosen.lacks:
            say(f"the task comes without {what}")
        for attempt in found.attempts:
            say(f"refused: {attempt}")
        _say_mend(found, source)
        if found.walls:
            say(f"ran behind {found.walls} walls; --secret {rules.secret} repeats this examination")
    return 0 if found.outcome == "solved" or (task is None and found.unopposed) else 1


def _show_reward(
    program: Path, task: str, framework: Any, secret: str | None, *, judged: bool, as_json: bool
) -> None:
    from tradeassay.benchmarks.quantcode.check import find_task, read_program
    from tradeassay.code.reward import reward

    by: Any = "behaviour" if judged else None
    made = reward(find_task(task), read_program(program), by, framework=framework, secret=secret)
    if as_json:
        print_json({name: getattr(made, name) for name in ("value", "outcome", "parts", "reason")})
        return
    click.echo("none" if made.value is None else f"{made.value:g}")
    parts = ", ".join(f"{name} {part:g}" for name, part in made.parts.items())
    say(f"{made.outcome}: {parts or 'nothing passed'}")
    if made.reason:
        say(made.reason)


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


def _refuse_given(what: str, given: dict[str, Any], *names: str) -> None:
    """Raise :class:`UserError` for an option that would be ignored."""
    for name in names:
        if given[name]:
            raise _means_nothing(evaluate, name, what)


def _means_nothing(command: click.Command, name: str, what: str) -> UserError:
    [option] = [max(one.opts, key=len) for one in command.params if one.name == name]
    return UserError(f"{option} means nothing to {what}", hint=f"see tradeassay code {command.name} --help")


@code.command()
@click.argument("task", required=False)
@opt.add_options(_FILTERS)
@opt.option("--wording", type=click.Choice(["formal", "conversational"]), default="formal")
@opt.option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader")
@opt.flag("--reference", "With TASK: print its reference program instead of its words.")
@opt.option("--draw=N count", "Draw N new tasks of --family, a split or all.", type=click.IntRange(1, 100_000))
@opt.option("--seed", "With --draw: the same seed, the same tasks.", type=int, default=0)
@json_option
def tasks(task: str | None, reference: bool, count: int | None, seed: int, as_json: bool, **filters: Any) -> None:
    """List the tasks, show one (its words, its terms, its reference), or draw new ones.

    `--family FAMILY --draw N` draws from generators; a family may be train, validation, test or all. An id that
    was drawn can be named wherever a task can; with --json whole tasks are printed.
    """
    from tradeassay.benchmarks.quantcode import draw_tasks
    from tradeassay.benchmarks.quantcode.check import find_task, task_line

    if task is not None:
        shown = find_task(task, filters["task_file"])
        if as_json:
            print_json(shown)
        else:
            click.echo(_task_words(shown, filters["wording"], filters["framework"], reference=reference))
        return
    if count is None:
        found = take_tasks(filters)
    else:
        named = filters["families"]
        if len(named) > 1 or any(filters[name] for name in ("difficulties", "timeframes", "sample", "task_file")):
            hint = "tradeassay code tasks --family all --draw 5"
            raise UserError("--draw goes with one --family and --seed", hint=hint)
        found = draw_tasks(named[0] if named else "all", count, seed)
    if as_json:
        print_json([task_line(one) for one in found] if count is None else found)
        return
    rows = [
        (t.id, t.title, t.difficulty, t.timeframe, t.family or "", t.market, "yes" if t.frame else "")
        for t in found
    ]
    print_table("tasks", ("id", "title", "difficulty", "bars of", "family", "market", "frame"), rows)
    say(f"{len(found)} tasks")


def _task_words(task: CodeTask, wording: Any, framework: str, *, reference: bool) -> str:
    """Return a task for a reader, or its reference alone; raises :class:`UserError` for what it does not have."""
    frame = framework == "frame"
    source = (task.frame.reference if task.frame is not None else "") if frame else task.reference
    text = source.strip() or None if reference else task.text(wording, "frame" if frame else "backtrader")
    if text is None:
        lacks = "reference" if reference else f"{wording} wording"
        raise UserError(f"task '{task.id}' has no {lacks} for {framework}", hint="see tradeassay code tasks")
    if reference:
        return text
    about = (
        f"{task.difficulty}, {task.timeframe} bars of '{task.market}', {task.bars} bars, {task.assets} asset(s)"
    )
    sizing = f"sizing {task.sizing.kind} {task.sizing.value:g}"
    terms = f"cash {task.cash:,.0f}, commission {task.commission:g}, {sizing}"
    decoys = "; ".join(f"{decoy.name} fails at {decoy.fails_at}" for decoy in task.decoys) or "none"
    lines = [f"{task.id}: {task.title}", about, terms, "", text, "", f"decoys: {decoys}"]
    return "\n".join([*lines, f"it lacks {', '.join(task.lacks)}"] if task.lacks else lines)


@code.command()
@click.argument("ids", nargs=-1)
@opt.add_options(_FILTERS)
@opt.option("--judge=MODEL", "Measure this language judge too.")
@opt.flag("--thorough", "Full look-ahead check and all markets for every program.")
@opt.option("--secret=HEX", "Secret that the judged markets are drawn from. Default: random.")
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
def validate(ids: tuple[str, ...], look_ahead: int | None, as_json: bool, **given: Any) -> int:
    """Run references and decoys without a model: a reference must pass, a decoy must fail at its stage.

    Exits with 1 when one does not. All tasks take minutes; --sample 5 takes seconds. --look-ahead exits with
    1 when a leak is missed or an honest strategy is flagged.
    """
    if look_ahead is not None:
        return _validate_look_ahead(look_ahead, as_json)
    from itertools import count

    from tradeassay.benchmarks.quantcode.check import validate_tasks
    from tradeassay.runs.play.progress import PacedCount

    numbers, pace = count(1), PacedCount(say)

    def tell(line: ProgramLine) -> None:
        if not line.ok:
            say(f"{line.name}: expected {line.expected}, got {line.outcome} {line.reason}".rstrip())
        pace("programs examined", next(numbers))

    named = ("judge", "thorough", "secret", "workers", "executor")
    how: dict[str, Any] = {name: given.pop(name) for name in named}
    chosen = take_tasks({**given, "tasks": ids})
    done = validate_tasks(chosen, tell=tell, **how)
    if as_json:
        print_json(done)
    else:
        _show_validation(done)
    return 0 if done.ok else 1


def _show_validation(done: ValidationReport) -> None:
    """Print a validation: programs by what was expected, and the judges' errors."""
    kinds: dict[str, list[ProgramLine]] = {}
    for line in done.lines:
        kinds.setdefault("reference" if line.kind == "gold" else f"decoy for {line.expected}", []).append(line)
    rows = [(kind, f"{len(lines)}", f"{sum(line.ok for line in lines)}") for kind, lines in sorted(kinds.items())]
    print_table(f"{done.tasks} task{'s' * (done.tasks != 1)}", ("programs", "run", "as expected"), rows)
    for errors in done.judges:
        rates = (("false rejects", errors.false_rejects), ("false accepts", errors.false_accepts))
        wrong = [f"{name} {'n/a' if r.value is None else f'{r.value:.1%} of {r.n}'}" for name, r in rates]
        say(f"judge {errors.judge}: {', '.join(wrong)}{f' ({errors.note})' if errors.note else ''}")
    for line in done.lines:
        if line.redrawn:
            say(f"{line.name} made no trade on {line.redrawn} drawn home market(s), and was given another")
    for line in done.disagreements:
        say(f"judges disagree on {line.name}: behaviour {line.behaviour}, language {line.language}")
    named = ", ".join(one.name for one in done.wrong)
    say("all as expected" if done.ok else f"{len(done.wrong)} not as expected: {named}")


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
    days, dataset, year = opt.split_list(given["splits"]) or DAYS, given["dataset"], given["data_seed"]
    bars = bars_for(strategy, dataset, opt.split_list(given["symbols"]), days, secret, year)
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
        from tradeassay.report.scorecard import write_check_html

        say(f"scorecard: {write_check_html(found, given['page'])}")
    if as_json:
        body = {"passed": found.passed, "secret": secret, "scorecard": found.scorecard, "trail": found.trail}
        body |= {} if since is None else {"drift": found.drift}
        print_json(body | ({} if found.years is None else {"years": found.years}))
    else:
        from tradeassay.report.code_board import print_check

        print_check(found, name=folder.resolve().name)
        say(f"--secret {secret} repeats this examination")
    return 0 if found.passed else 1


def write_text(path: Path, text: str) -> None:
    """Write a file; raises :class:`UserError` where it cannot be written."""
    write_file(path, text.encode("utf-8", "replace"))
    say(f"written: {path}")


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
@opt.option("--key", "With tables: the key that was written with the form.", type=opt.FILE)
@opt.option("--seed", "Draws another order.", type=opt.NATURAL, default=0)
@opt.option(
    "-o --out place",
    "Where to write: of a run the folder (default: here), of tables a page.",
    type=click.Path(path_type=Path),
)
@opt.out
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
        return
    if len(what) > 1:
        gone = next(one for one in what if not Path(one).is_file())
        raise UserError(f"no file {gone}", hint="name one run, or the tables that raters filled in")
    import msgspec

    from tradeassay.code.review import make_form
    from tradeassay.report.scorecard import write_review_form
    from tradeassay.runs import CodeRun

    folder, place = opt.find_run(what[0], out), place or Path()
    submissions = []  # the last of every task
    for record in CodeRun.load(folder).records().values():
        made = [one.submission for one in getattr(record, "iterations", ()) if one.submission is not None]
        submissions += [(record.strategy, one) for one in made[-1:]]
    if not submissions:
        raise UserError(f"no submissions in '{folder.name}'", hint="name a run of systrade-v1")
    form, joined = make_form(submissions, seed=seed)
    files = {
        "form": (place / "form.json", form.as_json()),
        "table": (place / "marks.csv", form.as_csv()),
        "key": (place / "key.json", msgspec.json.encode(joined).decode()),
    }
    for path, text in files.values():
        write_text(path, text)
    page = write_review_form(form, place / "form.html")
    say(f"written: {page}")
    if as_json:
        written = {name: str(path) for name, (path, _) in files.items()}
        print_json(written | {"html": str(page), "submissions": len(submissions)})


def _read_marks(tables: tuple[Path, ...], key: Path, page: Path | None, as_json: bool) -> None:
    """Print marks, ratings, agreement, and who marked whom how, the strictest reviewer first."""
    from tradeassay.code.review import read_form

    rated = read_form(tables, key)
    board, agreed = rated.board, rated.raters
    if page is not None:
        from tradeassay.report.scorecard import write_review_html

        say(f"written: {write_review_html(rated, page)}")
    if as_json:
        print_json({"board": board, "agreement": agreed})
        return
    rows = [
        (author, *map(plain_number, (board.fidelity[author], board.risk[author], board.rating.get(author))))
        for author in board.fidelity
    ]
    title = f"{agreed.ratings} marks by {agreed.raters} raters"
    print_table(title, ("author", "fidelity", "risk", "rating"), rows)
    if board.standings and board.desks:
        authors = [one.author for one in board.standings]
        rows = [
            (desk.reviewer, *map(plain_number, (desk.mean, *(desk.marks[a] for a in authors))))
            for desk in board.desks
        ]
        print_table("mean of both marks", ("reviewer", "mean given", *authors), rows)
    for name, alpha in (("fidelity", agreed.fidelity), ("risk", agreed.risk)):
        say(f"agreement on {name}: {plain_number(alpha)}" + (f" ({alpha.reason})" if alpha.reason else ""))
