"""Options that say which code tasks are run, on what and how; and which option belongs to which benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeassay.cli._options import one_each
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.code.task import CodeTask
    from tradeassay.llm import ModelParams
    from tradeassay.runs.quantcode import QuantCodeSpec
    from tradeassay.runs.systrade import SystradeSpec

SYSTRADE_OPTIONS = (
    click.option("--strategy", "strategies", multiple=True, metavar="ID", help="systrade: only these strategies."),
    click.option("--iterations", type=click.IntRange(1, 10), metavar="N",
                 help="systrade: number of submissions. Default: 4."),
    click.option("--reviewer", "reviewers", multiple=True, metavar="MODEL",
                 help="systrade: a model that marks submissions, blind; repeat for several."),
    click.option("--to-the-end", is_flag=True, help="systrade: continue after the target is reached."),
    click.option("--dataset", metavar="NAME", help="systrade, --task-file: stored bars, not synthetic ones."),
    click.option("--symbols", metavar="A,B", help="systrade: which of the data set's symbols are the legs."),
    click.option(
        "--splits", metavar="D,D,D",
        help="systrade: with --dataset, the days on which development and test begin and the test has ended.",
    ),
    click.option(
        "--minutes", type=click.IntRange(0), metavar="N",
        help="systrade: this many minute bars, for strategies that have a minute version.",
    ),
    click.option("--data-seed", type=int, metavar="N", help="systrade: which synthetic year. Default: 1."),
)  # fmt: skip
_OURS = (
    "strategies",
    "iterations",
    "reviewers",
    "to_the_end",
    "symbols",
    "splits",
    "minutes",
    "data_seed",
)
_THEIRS = ("task", "difficulty", "timeframe", "family", "sample", "task_file", "judge")


def parts_of(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated text."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def refuse_options(benchmark: str, given: dict[str, Any], *, systrade: bool) -> None:
    """Raise :class:`UserError` for an option that belongs to another benchmark."""
    names = {"strategies": "strategy", "reviewers": "reviewer"}
    for name in _THEIRS if systrade else _OURS:
        if given.get(name):
            option = f"--{names.get(name, name).replace('_', '-')}"
            raise UserError(f"{option} means nothing to '{benchmark}'", hint="see tradeassay code run --help")


def _params(plain: ModelParams, given: dict[str, Any]) -> ModelParams:
    """Return how the model is asked; raises :class:`UserError` for what makes no sense."""
    import msgspec

    changes = {name: given[name] for name in ("temperature", "max_tokens") if given[name] is not None}
    try:
        return msgspec.convert({**msgspec.to_builtins(plain), **changes}, type(plain))
    except msgspec.ValidationError as error:
        raise UserError(
            f"the model cannot be asked with these settings: {error}", hint="temperature is 0 to 2"
        ) from error


def take_systrade_spec(benchmark: str, given: dict[str, Any]) -> SystradeSpec:
    """Return the spec that the options describe; raises :class:`UserError` for what makes no sense."""
    import msgspec

    from tradeassay.runs.systrade import SystradeSpec

    refuse_options(benchmark, given, systrade=True)
    plain = SystradeSpec(models=("scripted/builder-gold",))
    return SystradeSpec(
        benchmark=benchmark,
        models=given["models"],
        strategies=given["strategies"],
        iterations=given["iterations"] or plain.iterations,
        early_stop=not given["to_the_end"],
        reviewers=given["reviewers"],
        seeds=tuple(range(given["seeds"])),
        secret=given["secret"] or msgspec.UNSET,
        dataset=given["dataset"],
        symbols=parts_of(given["symbols"]),
        splits=parts_of(given["splits"]) or plain.splits,
        data_seed=plain.data_seed if given["data_seed"] is None else given["data_seed"],
        minutes=given["minutes"] or 0,
        params=_params(plain.params, given),
    )


F = TypeVar("F", bound=Callable[..., Any])

_FILTERS = (
    click.option("--difficulty", multiple=True, metavar="NAME", help="easy, medium or hard; repeat for several."),
    click.option("--timeframe", multiple=True, metavar="NAME", help="1d, 1h, 30m, 15m, 5m or 1m."),
    click.option("--family", multiple=True, metavar="NAME", help="trend, breakout, calendar ..."),
    click.option("--sample", type=click.IntRange(1), metavar="N", help="Only this many of them, evenly spread."),
    click.option(
        "--task-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.json",
        help="Your copy of the public 400-task file, instead of our tasks.",
    ),
)  # fmt: skip
_RUN = (
    click.option("-m", "--model", "models", multiple=True, required=True, metavar="MODEL", callback=one_each,
                 help="A model that writes programs; repeat for several."),
    click.option("-t", "--task", "task", multiple=True, metavar="ID", help="Only these tasks."),
    *_FILTERS,
    click.option(
        "--wording", "wordings", multiple=True, default=("formal",), show_default=True, metavar="NAME",
        help="formal or conversational; repeat for both.",
    ),
    click.option(
        "--framework", "frameworks", multiple=True, default=("backtrader",), show_default=True, metavar="NAME",
        help="backtrader or frame; repeat for both.",
    ),
    click.option(
        "--setting", "settings", multiple=True, default=("single-turn",), show_default=True, metavar="NAME",
        help="single-turn or agentic; repeat for both.",
    ),
    click.option(
        "--turns", type=click.IntRange(1), default=10, show_default=True, help="Answers per agentic task."
    ),
    click.option(
        "--history", type=click.Choice(["full", "last"]),
        help="What a later turn sees of the earlier ones. Default: last.",
    ),
    click.option("--judge", metavar="MODEL", help="A language judge beside the behavioural one."),
    click.option("--strict", is_flag=True, help="quantcode: a call that the kernel refuses fails a program."),
    click.option(
        "--decides", type=click.Choice(["reference-first", "behaviour", "language", "both"]),
        default="reference-first", show_default=True, help="Which judge decides the judge stage.",
    ),
    click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Answers per task."),
    click.option("--temperature", type=float, help="Sampling temperature of the writer. Default: 0."),
    click.option("--max-tokens", type=click.IntRange(1), help="Longest answer of the writer. Default: 16384."),
    click.option(
        "--secret", metavar="HEX",
        help="Secret that the judged markets are drawn from; give an earlier run's to repeat it. Default: random.",
    ),
)  # fmt: skip


def filter_options(command: F) -> F:
    """Add the options that choose tasks."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def run_options(command: F) -> F:
    """Add everything that describes a run."""
    for option in reversed((*_RUN, *SYSTRADE_OPTIONS)):
        command = option(command)
    return command


def take_spec(benchmark: str, given: dict[str, Any]) -> QuantCodeSpec | SystradeSpec:
    """Return the spec that the options describe; raises :class:`UserError` for what makes no sense."""
    import msgspec

    from tradeassay.runs.code_protocol import find_protocol
    from tradeassay.runs.quantcode import QuantCodeSpec
    from tradeassay.runs.systrade import SystradeSpec

    kind = find_protocol(benchmark).Spec
    if kind is SystradeSpec:
        return take_systrade_spec(benchmark, given)
    if kind is not QuantCodeSpec:
        raise UserError(f"'{benchmark}' cannot be described by these options", hint="run it from Python")
    refuse_options(benchmark, given, systrade=False)
    plain = QuantCodeSpec(models=("scripted/coder-sma",))
    if given["dataset"] and given["task_file"] is None:
        hint = "give --task-file too, or leave it out"
        raise UserError(f"--dataset means nothing to our tasks of '{benchmark}'", hint=hint)
    return QuantCodeSpec(
        strict=given["strict"],
        dataset=given["dataset"] or msgspec.UNSET,
        benchmark=benchmark,
        models=given["models"],
        **_chosen(given),
        wordings=given["wordings"],
        frameworks=given["frameworks"],
        settings=given["settings"],
        turns=given["turns"],
        history=given["history"] or plain.history,
        seeds=tuple(range(given["seeds"])),
        secret=given["secret"] or msgspec.UNSET,
        judge=given["judge"],
        evaluate=msgspec.structs.replace(plain.evaluate, decides=given["decides"]),
        params=_params(plain.params, given),
    )


def take_tasks(filters: dict[str, Any]) -> tuple[CodeTask, ...]:
    """Return the tasks that the filters leave; raises :class:`UserError` when there are none."""
    from tradeassay.runs.quantcode import QuantCodeSpec, tasks_of

    found = tasks_of(QuantCodeSpec(models=("scripted/coder-sma",), **_chosen(filters)))
    if not found:
        raise UserError("no task is left", hint="drop a filter")
    return found


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    file: Path | None = given.get("task_file")
    return {
        "tasks": tuple(given.get("task") or ()),
        "difficulties": given["difficulty"],
        "timeframes": given["timeframe"],
        "families": given["family"],
        "sample": given["sample"],
        "task_file": None if file is None else str(file),
    }
