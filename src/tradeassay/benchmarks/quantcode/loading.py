"""Tasks as files: one TOML file per task, read whole, nothing unknown let through."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from tradeassay.code.task import CodeTask, Decoy, Expectations, FrameVariant, Sizing
from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean

_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]*)`(?: - at `\$\.?(?P<where>[^`]*)`)?")
_PARTS = {"sizing": Sizing, "expect": Expectations, "decoys": Decoy, "frame": FrameVariant}


def read_task(text: str, where: str) -> CodeTask:
    """Return the task written in ``text``; ``where`` names it in errors.

    Raises UserError, in one line, when it is no TOML, misses a key, has an unknown one or a value
    that does not fit.
    """
    try:
        return msgspec.convert(tomllib.loads(text), type=CodeTask)
    except tomllib.TOMLDecodeError as error:
        mend = "code and wordings stand between ''' and '''"
        raise UserError(f"the task {where} is not TOML: {error}", mend=mend) from error
    except msgspec.ValidationError as error:
        raise UserError(f"the task {where} cannot be read: {error}", mend=_mend(str(error))) from error


def _mend(message: str) -> str:
    found = _UNKNOWN.search(message)
    if not found:
        return "docs/reference/quantcode-tasks.md lists every key"
    head = re.split(r"[.\[]", found["where"] or "")[0]
    known = _PARTS.get(head, CodeTask).__struct_fields__
    return did_you_mean(found["field"], known, f"known: {', '.join(known)}")


def read_tasks(folder: Path | Traversable) -> tuple[CodeTask, ...]:
    """Return the tasks of a folder's ``*.toml`` files, by id.

    Raises UserError when the folder has none, when a file is no task or is not named after its
    task's id.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder of tasks", mend="one <id>.toml per task")
    found = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".toml"):
            continue
        task = read_task(file.read_text(encoding="utf-8"), file.name)
        if task.id != file.name.removesuffix(".toml"):
            raise UserError(f"the task {file.name} has the id '{task.id}'", mend=f"name it {task.id}.toml")
        found.append(task)
    if not found:
        raise UserError(f"no tasks in {folder}", mend="one <id>.toml per task")
    return check_ids(found)


def check_ids(tasks: Iterable[CodeTask]) -> tuple[CodeTask, ...]:
    """Return the tasks by id; raise UserError when two share one."""
    by_id: dict[str, CodeTask] = {}
    for task in tasks:
        if task.id in by_id:
            raise UserError(f"two tasks have the id '{task.id}'", mend="give one of them another id")
        by_id[task.id] = task
    return tuple(by_id[key] for key in sorted(by_id))


@cache
def load_tasks() -> tuple[CodeTask, ...]:
    """Return the tasks that come with tradeassay, by id."""
    return read_tasks(files(__package__) / "tasks")


def load_task(task_id: str) -> CodeTask:
    """Return one task; raise UserError, with near names, when there is none of that id."""
    known = {task.id: task for task in load_tasks()}
    if task_id not in known:
        mend = did_you_mean(task_id, known, "see tradeassay code tasks")
        raise UserError(f"there is no task '{task_id}'", mend=mend)
    return known[task_id]
