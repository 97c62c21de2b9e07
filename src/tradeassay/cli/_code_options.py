"""Options that say which code tasks are run, on what and how; each belongs to the benchmarks whose spec has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli._options import (
    COUNT,
    FILE,
    NATURAL,
    add_options,
    advanced,
    one_each,
    option,
    several,
    split_list,
)
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.benchmarks.programs import CodeSpec
    from tradeassay.code.task import CodeTask

_FIELDS = {
    "task": "tasks",
    "difficulty": "difficulties",
    "timeframe": "timeframes",
    "family": "families",
    "to_the_end": "early_stop",
    "decides": "evaluate",
    "temperature": "params",
    "max_tokens": "params",
}
"""The field of a spec that an option of another name is about."""
_NAMES = {
    "strategies": "strategy",
    "reviewers": "reviewer",
    "wordings": "wording",
    "frameworks": "framework",
    "settings": "setting",
    "models": "model",
}

SYSTRADE_OPTIONS = (
    click.option("--strategy", "strategies", multiple=True, metavar="ID", help="systrade: only these strategies."),
    advanced(
        "--iterations",
        type=click.IntRange(1, 10),
        metavar="N",
        help="systrade: number of submissions. Default: 4.",
    ),
    several(
        "--reviewer",
        "reviewers",
        metavar="MODEL",
        help="systrade: a model that marks submissions, blind; repeat for several.",
    ),
    advanced("--to-the-end", is_flag=True, help="systrade: continue after the target is reached."),
    click.option("--dataset", metavar="NAME", help="systrade, --task-file: stored bars, not synthetic ones."),
    advanced("--symbols", metavar="A,B", help="systrade: which of the data set's symbols are the legs."),
    advanced(
        "--splits",
        metavar="D,D,D",
        help="systrade: with --dataset, the days on which development and test begin and the test has ended.",
    ),
    advanced(
        "--minutes",
        type=NATURAL,
        metavar="N",
        help="systrade: this many minute bars, for strategies that have a minute version.",
    ),
    advanced("--data-seed", type=int, metavar="N", help="systrade: which synthetic year. Default: 1."),
)
_FILTERS = (
    advanced("--difficulty", multiple=True, metavar="NAME", help="easy, medium or hard; repeat for several."),
    advanced("--timeframe", multiple=True, metavar="NAME", help="1d, 1h, 30m, 15m, 5m or 1m."),
    advanced("--family", multiple=True, metavar="NAME", help="trend, breakout, calendar ..."),
    click.option("--sample", type=COUNT, metavar="N", help="Only this many of them, evenly spread."),
    advanced(
        "--task-file",
        type=FILE,
        metavar="FILE.json",
        help="Your copy of the public 400-task file, instead of our tasks.",
    ),
)
_RUN = (
    several(
        "-m",
        "--model",
        "models",
        required=True,
        metavar="MODEL",
        callback=one_each,
        help="A model that writes programs; repeat for several.",
    ),
    click.option("-t", "--task", "task", multiple=True, metavar="ID", help="Only these tasks."),
    *_FILTERS,
    advanced(
        "--wording",
        "wordings",
        multiple=True,
        metavar="NAME",
        help="formal (default) or conversational; repeat for both.",
    ),
    advanced(
        "--framework",
        "frameworks",
        multiple=True,
        metavar="NAME",
        help="backtrader (default) or frame; repeat for both.",
    ),
    several("--setting", "settings", metavar="NAME", help="single-turn (default) or agentic; repeat for both."),
    click.option("--turns", type=COUNT, metavar="N", help="Answers per agentic task. Default: 10."),
    advanced(
        "--history",
        type=click.Choice(["full", "last"]),
        help="What a later turn sees of the earlier ones. Default: last.",
    ),
    click.option("--judge", metavar="MODEL", help="A language judge beside the behavioural one."),
    advanced("--strict", is_flag=True, help="quantcode: a call that the kernel refuses fails a program."),
    advanced(
        "--decides",
        type=click.Choice(["reference-first", "behaviour", "language", "both"]),
        help="Which judge decides the judge stage. Default: reference-first.",
    ),
    option("--seeds", type=COUNT, default=1, help="Answers per task."),
    advanced("--temperature", type=float, help="Sampling temperature of the writer. Default: 0."),
    advanced("--max-tokens", type=COUNT, help="Longest answer of the writer. Default: 16384."),
    advanced(
        "--secret",
        metavar="HEX",
        help="Secret that the judged markets are drawn from; give an earlier run's to repeat it. Default: random.",
    ),
)


filter_options = add_options(_FILTERS)
run_options = add_options((*_RUN, *SYSTRADE_OPTIONS))


def take_spec(benchmark: str, given: dict[str, Any]) -> CodeSpec:
    """Return the spec that the options describe, of any benchmark of programs; raises :class:`UserError` for an
    option that its spec has no field for, and for what makes no sense.
    """
    import msgspec

    from tradeassay.benchmarks.programs import find_protocol, refuse_other_kind

    refuse_other_kind(benchmark, trades=False)
    kind = find_protocol(benchmark).Spec
    plain: Any = kind(models=given["models"], benchmark=benchmark)
    asked = {
        name: value for name, value in given.items() if value is not None and value != () and value is not False
    }
    for name in asked:
        if _FIELDS.get(name, name) not in kind.__struct_fields__:
            option = f"--{_NAMES.get(name, name).replace('_', '-')}"
            raise UserError(f"{option} means nothing to '{benchmark}'", hint="see tradeassay code run --help")
    changes = {_FIELDS.get(name, name): value for name, value in asked.items()}
    for name in ("symbols", "splits"):
        if name in asked:
            changes[name] = split_list(asked[name])
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


def draw_of(filters: dict[str, Any], count: int, seed: int) -> tuple[CodeTask, ...]:
    """Return drawn tasks of the one family that is named, of all without one."""
    from tradeassay.benchmarks.quantcode import draw_tasks

    named = filters["family"]
    others = [name for name in ("task", "difficulty", "timeframe", "sample", "task_file") if filters.get(name)]
    if len(named) > 1 or others:
        raise UserError(
            "--draw goes with one --family and --seed", hint="tradeassay code tasks --family all --draw 5"
        )
    return draw_tasks(named[0] if named else "all", count, seed)


def take_tasks(filters: dict[str, Any]) -> tuple[CodeTask, ...]:
    """Return the tasks that the filters leave; raises :class:`UserError` when there are none."""
    from tradeassay.benchmarks.quantcode.benchmark import tasks_of
    from tradeassay.benchmarks.quantcode.spec import QuantCodeSpec

    file: Path | None = filters.get("task_file")
    chosen = QuantCodeSpec(
        models=("scripted/coder-sma",),
        tasks=tuple(filters.get("task") or ()),
        difficulties=filters["difficulty"],
        timeframes=filters["timeframe"],
        families=filters["family"],
        sample=filters["sample"],
        task_file=None if file is None else str(file),
    )
    found = tasks_of(chosen)
    if not found:
        raise UserError("no task is left", hint="drop a filter")
    return found
