"""Every option that a message names is one that the command in question has."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import msgspec
import pytest
from sources import FOLDERS

from tradeassay.cli import root
from tradeassay.core.syntax import syntax_tree
from tradeassay_bench.data import FilesConfig

OPTION = re.compile(r"(?<![\w\-/.>])(--[A-Za-z][\w-]*|-[A-Za-z]\b(?!-))(?:[ =]([A-Za-z_]+)=)?")
OF_OTHERS = re.compile(r"write -NAME|\b(pip|python -m|docker|ulimit)\b[^;]*|--(thin|wide):")
"""Commands of other programs, styles of a page, and a factor's name with a minus."""
ONLY_WORDS = re.compile(r"(--?[A-Za-z][\w-]*[ ]?)+(:all: .*)?|-[A-Za-z]+|-m pip .*|\W*-\w+\W*")
"""Arguments handed to another program, and ends of names (``-paper``)."""

OF_FOLDERS = {
    "examine/memory": ("memory recall", "memory probe", "run", "assay"),
    "papers": ("reproduce",),
    "verdict": ("assay",),
    "agents/own_file.py": ("run",),
    "benchmarks/needs.py": ("run",),
    "benchmarks/quantcode/tables.py": ("reproduce",),
    "benchmarks/systrade/tables.py": ("reproduce", "code run"),
    "data/doctor.py": ("data doctor",),
    "reference.py": ("assay",),
    "tables": ("assay",),
    "tables/columns.py": ("data import", "data doctor"),
    "data/tables": ("data import", "data doctor"),
    "runs/summary/comparison.py": ("run",),
    "runs/verify": ("verify",),
    "sandbox": ("doctor",),
}
"""Whose options a message names that names no command, by where it stands."""


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))
    yield " ".join(path), command


EVERY = dict(commands(root))


@cache
def options_of(name: str) -> dict[str, click.Option]:
    # ``assay`` chooses between ``assay run`` and ``assay file`` by its argument.
    chosen = ("assay", "assay run", "assay file") if name == "assay" else (name,)
    options = [
        option for one in chosen for option in EVERY[one].params if isinstance(option, click.Option)
    ]
    named = {flag: option for option in options for flag in (*option.opts, *option.secondary_opts)}
    help_option = EVERY[name].get_help_option(click.Context(EVERY[name]))
    assert help_option is not None
    return named | dict.fromkeys(("--help", "-h"), help_option)


def said(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every string of a file that is no docstring; expressions
    become ``<>``.
    """
    tree = syntax_tree(path.read_text(encoding="utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "<>" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@cache
def allowed(where: str) -> dict[str, click.Option] | None:
    """Return the options that a message at a place may name without a command; None for options
    of any command.
    """
    longest = max(
        (key for key in OF_FOLDERS if where == key or where.startswith(f"{key}/")),
        key=len,
        default=None,
    )
    if longest is not None:
        return {
            flag: option
            for name in OF_FOLDERS[longest]
            for flag, option in options_of(name).items()
        }
    if where.startswith("cli/") and not where.startswith("cli/_"):
        module = f".cli.{Path(where).stem}"
        modules = {
            name: getattr(command.callback, "__module__", "") for name, command in EVERY.items()
        }
        mine = [name for name, found in modules.items() if found.endswith(module)]
        return {flag: option for name in mine for flag, option in options_of(name).items()}
    return None


def wrong_options(where: str, text: str) -> Iterator[str]:
    """Yield the options of a text that nobody has who reads it."""
    text = OF_OTHERS.sub("", re.sub(r"\s+", " ", text))
    if ONLY_WORDS.fullmatch(text):
        return
    for sentence in re.split(r"(?=tradeassay [a-z])|[;`()]", text):
        known = allowed(where)
        words = re.match(r"(?:tradeassay )?([a-z-]+)(?: ([a-z-]+))?", sentence)
        if words is not None:
            named = next(
                (name for name in (f"{words[1]} {words[2]}", words[1]) if name in EVERY), None
            )
            if named is not None:
                known = options_of(named)
            elif sentence.startswith("tradeassay "):
                known = None
        for flag, key in OPTION.findall(sentence):
            option = EVERYBODYS.get(flag) if known is None else known.get(flag)
            if option is None:
                yield f"{flag} in {text!r}"
            elif key and "=" not in (option.metavar or ""):
                yield f"{flag} {key}= in {text!r}: {flag} takes {option.metavar}"


EVERYBODYS = {flag: option for name in EVERY for flag, option in options_of(name).items()}


def test_every_option_that_a_message_names_is_there():
    texts = [
        (path.relative_to(folder).as_posix(), line, text)
        for folder in FOLDERS
        for path in sorted(folder.rglob("*.py"))
        for line, text in said(path)
    ]
    named = [(where, line, text) for where, line, text in texts if OPTION.search(text)]
    assert len(named) > 300
    assert [
        f"{where}:{line}: {wrong}"
        for where, line, text in named
        for wrong in wrong_options(where, text)
    ] == []


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("data/tables/bars.py", "say so with -o timezone=UTC"),
        ("data/tables/folder.py", "ask for them with --prices adjusted"),
        ("verdict/own_returns.py", "--portfolio says otherwise"),
        ("runs/run.py", "tradeassay verify RUN --harden X"),
        ("cli/data.py", "name it with --seeds"),
    ],
)
def test_an_option_of_another_command_is_found(where, text):
    """The test above can fail."""
    assert len(list(wrong_options(where, text))) == 1


def test_every_key_that_a_message_about_files_names_is_one():
    keys = set()
    for path in (path for folder in FOLDERS for path in (folder / "data" / "tables").glob("*.py")):
        for _, text in said(path):
            keys.update(re.findall(r"-p ([a-z_]+)=", text))
    assert keys and keys <= set(msgspec.structs.asdict(FilesConfig(path="")))
