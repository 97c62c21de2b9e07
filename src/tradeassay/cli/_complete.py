"""What can be completed on the command line: ids, from where they are registered or stored.

A shell waits for these at every press of the key, so nothing is imported before it is asked for, names that only
installed files decide are kept from one press to the next, and whatever goes wrong completes nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _complete(
    kind: str, files: bool, context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Return what click asks while somebody types: the names of a kind that begin so, or files."""
    from click.shell_completion import CompletionItem

    try:
        known = _runs(context) if kind == "runs" else _kept(kind)
        found = [name for name in known if name.startswith(typed)]
    except Exception:  # a completion that raises would write into the line that is being typed
        found = []
    return [CompletionItem(name) for name in found] or ([CompletionItem(typed, type="file")] if files else [])


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
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
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
            from tradeassay.benchmarks.code_protocol import code_benchmarks

            return code_benchmarks()
        case "tasks":
            from tradeassay.benchmarks.quantcode import load_tasks

            return [task.id for task in load_tasks()]
        case "strategies":
            from tradeassay.benchmarks.systrade.loading import STRATEGIES, SYSTB_STRATEGIES

            return (*STRATEGIES, *SYSTB_STRATEGIES)
    raise ValueError(kind)


_BY_NAME = {
    **{"what": "benchmarks", "agents": "agents", "dataset": "datasets", "run": "runs", "runs": "runs"},
    **dict.fromkeys(("models", "model", "judge"), "models"),
    **dict.fromkeys(("task", "tasks", "ids"), "tasks"),
    **dict.fromkeys(("strategy", "spec"), "strategies"),
}
"""What a parameter of this name is completed with, whatever its command."""
_OR_FILES = ("what", "agents", "run", "runs")
_OF_COMMAND = {
    ("benchmarks", "name"): "benchmarks",
    ("code run", "benchmark"): "code_benchmarks",
    **{(name, "benchmark"): "benchmarks" for name in ("leak-test", "memory probe", "assay file", "luck")},
    ("data get", "source"): "obtainable",
    ("models", "name"): "local_models",
    ("code review", "what"): "runs",
}
"""What a parameter is completed with in one command."""


def completed(command: click.Command, path: str) -> click.Command:
    """Give the parameters of a command, and of all below it, the ids that they take."""
    for parameter in command.params:
        name = parameter.name or ""
        kind = _OF_COMMAND.get((path, name)) or _BY_NAME.get(name)
        if kind is not None and not isinstance(parameter.type, click.Choice | click.Path):
            parameter._custom_shell_complete = partial(_complete, kind, name in _OR_FILES)
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            completed(child, f"{path} {name}")
    return command
