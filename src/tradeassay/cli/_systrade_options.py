"""Options of ``tradeassay code run systrade-v1``, and which options belong to which benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.runs.systrade import SystradeSpec

SYSTRADE_OPTIONS = (
    click.option("--strategy", "strategies", multiple=True, metavar="ID", help="systrade: only these strategies."),
    click.option("--iterations", type=click.IntRange(1, 10), metavar="N", help="systrade: hand-ins. Default: 4."),
    click.option("--reviewer", "reviewers", multiple=True, metavar="MODEL", help="systrade: who marks, blind."),
    click.option("--to-the-end", is_flag=True, help="systrade: go on after the target is reached."),
    click.option("--dataset", metavar="NAME", help="systrade: stored bars instead of synthetic ones."),
    click.option("--symbols", metavar="A,B", help="systrade: which of the data set's symbols are the legs."),
    click.option(
        "--splits", metavar="D,D,D",
        help="systrade: with --dataset, the days on which development and test begin and the test has ended.",
    ),
    click.option(
        "--minutes", type=click.IntRange(0), metavar="N",
        help="systrade: minute bars for strategies that have a minute version, so many.",
    ),
    click.option("--data-seed", type=int, metavar="N", help="systrade: which synthetic year. Default: 1."),
)  # fmt: skip
_OURS = (
    "strategies",
    "iterations",
    "reviewers",
    "to_the_end",
    "dataset",
    "symbols",
    "splits",
    "minutes",
    "data_seed",
)
_THEIRS = ("task", "difficulty", "timeframe", "family", "sample", "task_file", "judge")


def parts_of(text: str | None) -> tuple[str, ...]:
    """Return what stands between commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def refuse_options(benchmark: str, given: dict[str, Any], *, systrade: bool) -> None:
    """Raise :class:`UserError` for an option that belongs to another benchmark."""
    names = {"strategies": "strategy", "reviewers": "reviewer"}
    for name in _THEIRS if systrade else _OURS:
        if given.get(name):
            option = f"--{names.get(name, name).replace('_', '-')}"
            raise UserError(f"{option} means nothing to '{benchmark}'", mend="see tradeassay code run --help")


def take_systrade_spec(benchmark: str, given: dict[str, Any]) -> SystradeSpec:
    """Return the spec that the options describe; raises :class:`UserError` for what makes no sense."""
    import msgspec

    from tradeassay.runs.systrade import SystradeSpec

    refuse_options(benchmark, given, systrade=True)
    plain = SystradeSpec(models=("scripted/builder-gold",))
    changes = {name: given[name] for name in ("temperature", "max_tokens") if given[name] is not None}
    try:
        params = msgspec.convert({**msgspec.to_builtins(plain.params), **changes}, type(plain.params))
    except msgspec.ValidationError as error:
        raise UserError(f"the model cannot be asked so: {error}", mend="temperature is 0 to 2") from error
    return SystradeSpec(
        benchmark=benchmark,
        models=given["models"],
        strategies=given["strategies"],
        iterations=given["iterations"] or plain.iterations,
        early_stop=not given["to_the_end"],
        reviewers=given["reviewers"],
        seeds=tuple(range(given["seeds"])),
        dataset=given["dataset"],
        symbols=parts_of(given["symbols"]),
        splits=parts_of(given["splits"]) or plain.splits,
        data_seed=plain.data_seed if given["data_seed"] is None else given["data_seed"],
        minutes=given["minutes"] or 0,
        params=params,
    )
