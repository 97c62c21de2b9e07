"""What can be completed on the command line: ids, from where they are registered or stored.

A shell waits for these at every press of the key, so nothing is imported before it is asked for, names that only
installed files decide are kept from one press to the next, and whatever goes wrong completes nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _completing(kind: str, *, files: bool = False) -> Callable[..., list[CompletionItem]]:
    """Return what click asks while somebody types: the names of a kind that begin so, or files."""

    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            known = _runs(context) if kind == "runs" else _kept(kind)
            found = [name for name in known if name.startswith(typed)]
        except Exception:  # a completion that raises would write into the line that is being typed
            found = []
        if not found and files:
            return [CompletionItem(typed, type="file")]
        return [CompletionItem(name) for name in found]

    return complete


def _runs(context: click.Context) -> list[str]:
    out = Path(context.params.get("out") or "runs")
    return sorted(path.parent.name for path in out.glob("*/manifest.json"))


def _kept(kind: str) -> list[str]:
    """Return names from the press before, unless a file of ours, a package or a stored data set came since."""
    from tradeassay.core.files import data_home, write_atomic

    inside = (Path(at) / name for at, _, files in os.walk(Path(__file__).parents[1]) for name in files)
    folders = filter(Path.is_dir, (data_home() / "store", *map(Path, sys.path)))
    seen = [*(file for file in inside if file.suffix in (".py", ".toml")), *folders]
    state = [len(seen), max(file.stat().st_mtime_ns for file in seen)]
    place = data_home() / "completions" / f"{kind}.json"
    try:
        known = json.loads(place.read_bytes())
        if known[:2] == state:
            return list(map(str, known[2]))
    except (OSError, ValueError, LookupError, TypeError):
        pass
    found = [*_names(kind)]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, json.dumps([*state, found]).encode())
    except OSError:  # a home that cannot be written to is only slower
        pass
    return found


def _names(kind: str) -> Iterable[str]:
    match kind:
        case "benchmarks":
            from tradeassay.benchmarks import benchmarks

            return benchmarks.names()
        case "datasets":
            from tradeassay.benchmarks import benchmarks
            from tradeassay.data import list_datasets

            return sorted({info.name for info in list_datasets()} | {one.dataset for _, one in benchmarks.items()})
        case "obtainable":
            from tradeassay.data import list_catalogue, sources

            return [*(entry.name for entry in list_catalogue()), *sources.names()]
        case "local_models":
            from tradeassay.llm import local_models

            return local_models.names()
        case "models":
            from tradeassay.runs.spec.episode import known_models

            return [model.name for model in known_models()]
        case "agents":
            from tradeassay.agents import agents

            return agents.names()
        case "code_benchmarks":
            from tradeassay.benchmarks.programs import code_benchmarks

            return code_benchmarks()
        case "tasks":
            from tradeassay.benchmarks.quantcode import load_tasks

            return [task.id for task in load_tasks()]
        case "strategies":
            from tradeassay.benchmarks.systrade.loading import STRATEGIES, SYSTB_STRATEGIES

            return (*STRATEGIES, *SYSTB_STRATEGIES)
    raise ValueError(kind)


_BY_NAME: dict[str, Callable[..., list[CompletionItem]]] = {
    "what": _completing("benchmarks", files=True),
    "agents": _completing("agents", files=True),
    "models": _completing("models"),
    "model": _completing("models"),
    "judge": _completing("models"),
    "dataset": _completing("datasets"),
    "run": _completing("runs", files=True),
    "runs": _completing("runs", files=True),
    "task": _completing("tasks"),
    "ids": _completing("tasks"),
    "strategy": _completing("strategies"),
    "spec": _completing("strategies"),
}
"""What a parameter of this name is completed with, whatever its command."""

_OF_COMMAND: dict[tuple[str, str], Callable[..., list[CompletionItem]]] = {
    ("benchmarks", "name"): _completing("benchmarks"),
    ("code run", "benchmark"): _completing("code_benchmarks"),
    ("leak-test", "benchmark"): _completing("benchmarks"),
    ("memory probe", "benchmark"): _completing("benchmarks"),
    ("assay file", "benchmark"): _completing("benchmarks"),
    ("luck", "benchmark"): _completing("benchmarks"),
    ("data get", "source"): _completing("obtainable"),
    ("models", "name"): _completing("local_models"),
    ("code review", "what"): _completing("runs", files=True),
}
"""What a parameter is completed with in one command."""


def completed(command: click.Command, path: str) -> click.Command:
    """Give the parameters of a command, and of all below it, the ids that they take."""
    for parameter in command.params:
        found = _OF_COMMAND.get((path, parameter.name or "")) or _BY_NAME.get(parameter.name or "")
        if found is not None and not isinstance(parameter.type, click.Choice | click.Path):
            parameter._custom_shell_complete = found
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            completed(child, f"{path} {name}")
    return command
