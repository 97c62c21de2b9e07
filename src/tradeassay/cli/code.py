"""``tradeassay code``: models write strategies, programs are checked, tasks are listed and validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradeassay.cli._asking import asking_options, take_asking
from tradeassay.cli._code_options import filter_options, run_options, take_spec, take_tasks
from tradeassay.cli._code_strategies import schema, strategies
from tradeassay.cli._code_submission import evaluate_submission, reports_options
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.cli._run_folder import workers_option
from tradeassay.core.errors import UserError


@click.group()
def code() -> None:
    """Models write trading strategies; their programs run in a sandbox and are judged by what they do."""


@code.command()
@click.argument("benchmark")
@run_options
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"), show_default=True,
    help="Folder that holds the runs.",
)  # fmt: skip
@click.option("--slug", help="The run's name. Default: the benchmark and a hash of what is asked for.")
@workers_option
@click.option("--retry-failed", is_flag=True, help="Play failed episodes again, with recorded answers.")
@asking_options
@json_option
def run(
    benchmark: str,
    out: Path,
    slug: str | None,
    workers: int | None,
    retry_failed: bool,
    as_json: bool,
    **described: Any,
) -> int:
    """Let models write programs for the tasks of a benchmark.

    \b
    tradeassay code run quantcode-v1 --model scripted/coder-sma --task d-sma-cross-long
    tradeassay code run quantcode-v1 -m openai/gpt-5 --setting agentic --judge openai/gpt-5-mini --max-usd 20
    tradeassay code run systrade-v1 -m openai/gpt-5 --reviewer openai/gpt-5-mini --strategy bollinger

    Giving the same command again continues a run that was stopped. Exits with 1 when an episode failed.
    """
    from tradeassay.cli._finish import finish
    from tradeassay.runs import CodeRun, Run, resume
    from tradeassay.runs import run as run_spec

    asking = take_asking(described, out)
    spec = take_spec(benchmark, described)
    folder = out / (slug or default_slug(benchmark, spec))
    done: Run | CodeRun = run_spec(spec, folder, asking=asking, workers=workers, progress="auto")
    if retry_failed and done.failed:
        done = resume(folder, asking=asking, workers=workers, progress="auto", retry_failed=True)
    return finish(done, as_json=as_json)


def default_slug(benchmark: str, spec: Any) -> str:
    """Return a name that the same command gets again."""
    from tradeassay.core.hashing import sha256_of

    return f"{benchmark}-{sha256_of(spec)[:8]}"


@code.command("eval")
@click.argument("program", type=click.Path(path_type=Path))
@click.option("--task", help="The QuantCode task that a program is for; see tradeassay code tasks.")
@click.option(
    "--spec", metavar="STRATEGY", help="The strategy that a folder is for; see tradeassay code strategies."
)
@click.option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader", show_default=True)
@click.option("--judge", metavar="MODEL", help="A model that reads the program as well.")
@click.option("--thorough", is_flag=True, help="The full look-ahead check: more cuts, more runs.")
@reports_options
@json_option
def evaluate(
    program: Path,
    task: str | None,
    spec: str | None,
    framework: Any,
    judge: str | None,
    thorough: bool,
    as_json: bool,
    **reports: Any,
) -> int:
    """Check your own work, with no model at all.

    \b
    tradeassay code eval mine.py --task d-sma-cross-long     a program: stages, look-ahead, agreement, tricks
    tradeassay code eval ./mine --spec bollinger             a submission: seven gates, scores, scorecard

    A submission is a folder with strategy.py and strategy_card.json. Exits with 0 when it passes, with 1 when
    it does not.
    """
    if spec is not None:
        return evaluate_submission(program, spec, task, as_json=as_json, **reports)
    if task is None:
        raise UserError("neither a task nor a strategy is named", mend="give --task, or --spec for a folder")
    from tradeassay.benchmarks.quantcode.check import check_program, read_program

    found = check_program(read_program(program), task, framework=framework, judge=judge, thorough=thorough)
    if as_json:
        print_json({"outcome": found.outcome, "evaluation": found})
    else:
        from tradeassay.report import print_evaluation

        print_evaluation(found, name=program.name)
    return 0 if found.outcome == "solved" else 1


@code.command()
@click.argument("task", required=False)
@filter_options
@click.option("--wording", type=click.Choice(["formal", "conversational"]), default="formal", show_default=True)
@click.option("--framework", type=click.Choice(["backtrader", "frame"]), default="backtrader", show_default=True)
@click.option("--reference", is_flag=True, help="With TASK: print its reference program instead of its words.")
@json_option
def tasks(task: str | None, wording: Any, framework: Any, reference: bool, as_json: bool, **filters: Any) -> None:
    """List the tasks, or show one: its words, its terms, its reference."""
    from tradeassay.benchmarks.quantcode.check import task_line

    if task is None:
        listed = [task_line(one) for one in take_tasks(filters)]
        if as_json:
            print_json(listed)
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
            for one in listed
        ]
        print_table("tasks", ("id", "title", "difficulty", "bars of", "family", "market", "frame"), rows)
        say(f"{len(listed)} tasks")
        return
    from tradeassay.benchmarks.quantcode.check import find_task
    from tradeassay.cli._code_finish import task_words

    found = find_task(task, filters.get("task_file"))
    if as_json:
        print_json(found)
    else:
        click.echo(task_words(found, wording, framework, reference=reference))


@code.command()
@click.argument("ids", nargs=-1)
@filter_options
@click.option("--judge", metavar="MODEL", help="Measure this language judge too.")
@click.option("--thorough", is_flag=True, help="Full look-ahead check and all markets for every program.")
@workers_option
@json_option
def validate(
    ids: tuple[str, ...], judge: str | None, thorough: bool, workers: int | None, as_json: bool, **filters: Any
) -> int:
    """Run references and decoys without a model: a reference must pass, a decoy must fail at its stage.

    Exits with 1 when one does not. All tasks take minutes; --sample 5 takes seconds.
    """
    from tradeassay.benchmarks.quantcode.check import validate_tasks
    from tradeassay.cli._code_finish import show_validation, tell_program

    chosen = take_tasks({**filters, "task": ids})
    done = validate_tasks(chosen, judge=judge, thorough=thorough, workers=workers or 2, tell=tell_program)
    if as_json:
        print_json(done)
    else:
        show_validation(done)
    return 0 if done.ok else 1


code.add_command(strategies)
code.add_command(schema)
