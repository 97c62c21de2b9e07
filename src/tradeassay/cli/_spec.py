"""The arguments that ``run`` and ``plan`` share, and how they become a :class:`RunSpec`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.runs import AgentSpec, RunSpec

F = TypeVar("F", bound=Callable[..., Any])


def spec_options(command: F) -> F:
    """Add the arguments that describe a run."""
    for option in reversed(
        (
            click.argument("what", nargs=-1, required=True, metavar="BENCHMARK... | SPEC.toml"),
            click.option(
                "-a", "--agent", "agents", multiple=True, metavar="NAME[:KEY=VALUE,...]",
                help="An agent, with parameters; repeat for several. Default: every registered one.",
            ),
            click.option("--seeds", default=1, show_default=True, help="Run every agent under this many seeds."),
            click.option("--dataset", help="Trade another data set than the benchmark's own."),
            click.option("--first", metavar="DAY", help="First session to trade, YYYY-MM-DD."),
            click.option("--last", metavar="DAY", help="Last session to trade, YYYY-MM-DD."),
            click.option("--slug", metavar="NAME",
                help="Name of the run's folder; the same slug resumes. Default: from its content."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def parse_agent(text: str) -> AgentSpec:
    """Read ``name:key=value,...``; raises :class:`UserError` on a malformed parameter."""
    from tradeassay.runs import AgentSpec

    name, _, rest = text.partition(":")
    params: dict[str, bool | int | float | str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise UserError(f"'{part}' in --agent {text} is no parameter", mend="write name:key=value,key=value")
        params[key.strip()] = _value(value.strip())
    return AgentSpec(name=name.strip(), params=params)


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def build_spec(
    what: tuple[str, ...],
    agents: tuple[str, ...],
    seeds: int,
    dataset: str | None,
    first: str | None,
    last: str | None,
    slug: str | None,
) -> RunSpec:
    """Make the spec from a file, or from benchmark ids and options; raises :class:`UserError`."""
    from tradeassay.api import make_spec
    from tradeassay.runs import load_spec

    if len(what) == 1 and what[0].endswith((".toml", ".json")):
        if agents or dataset or first or last or seeds != 1:
            raise UserError(
                f"{what[0]} already says what to run", mend="drop the other options, or put them into the file"
            )
        return load_spec(Path(what[0]), slug=slug)
    return make_spec(
        benchmarks=what, agents=tuple(map(parse_agent, agents)) or None, seeds=range(seeds), dataset=dataset,
        first=first, last=last, slug=slug,
    )  # fmt: skip
