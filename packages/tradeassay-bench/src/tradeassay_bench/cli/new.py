"""Define the commands ``start`` and ``new``: example commands, and a starter folder with a test."""

from __future__ import annotations

import re
from importlib import resources
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

import click

from tradeassay.cli._output import json_option, print_json, say

_KINDS = ("agent", "benchmark", "source", "task")
_NAME = r"[a-z][a-z0-9_]{1,39}"


@click.command()
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("name")
@click.option(
    "--in",
    "parent",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="The parent folder.",
)
@json_option
def new(kind: str, name: str, parent: Path, as_json: bool) -> None:
    """Create a folder for your own agent, benchmark, data source or code task.

    The folder contains a small working example, a passing test, and a README with commands.
    """
    from tradeassay.core.errors import UserError

    if not re.fullmatch(_NAME, name):
        similar = re.sub(r"\W+", "_", name.lower())
        example = f"; for example {similar}" if re.fullmatch(_NAME, similar) else ""
        hint = (
            "use 2 to 40 lower-case letters, digits and underscores, starting with a "
            f"letter{example}"
        )
        raise UserError(f"'{name}' is not a valid name", hint=hint)
    if kind != "task" and (iskeyword(name) or find_spec(name) is not None):
        # The test in the folder imports the file by this name.
        raise UserError(
            f"'{name}' is a keyword or a module of Python",
            hint=f"choose another name, e.g. my_{name}",
        )
    folder = parent / name
    if folder.exists():
        raise UserError(f"{folder} exists already", hint="choose another name")
    slug = name.replace("_", "-")
    title = "".join(part.capitalize() for part in name.split("_"))
    files = resources.files("tradeassay_bench.cli") / "starters" / kind
    folder.mkdir(parents=True)
    written = []
    for file in sorted(files.iterdir(), key=lambda entry: entry.name):
        text = file.read_text(encoding="utf-8")
        for mark, word in (("name", name), ("Name", title), ("NAME", name.upper()), ("slug", slug)):
            text = text.replace("{{" + mark + "}}", word)
        stem = slug if file.name.endswith(".toml.txt") and "NAME" in file.name else name
        path = folder / file.name.replace("NAME", stem).removesuffix(".txt")
        path.write_text(text, encoding="utf-8")
        written.append(str(path))
        say(f"wrote {path}")
    if as_json:
        print_json({"folder": str(folder), "files": written})
    if kind == "agent":
        file = folder / f"{name}.py"
        agent_file = str(file) if file.is_absolute() else f"./{file}"
        say(f"try it: tradeassay run daily-us-v1 -a {agent_file}:{title} --name {slug}")
    say(f"more: {folder / 'README.md'}")


_WAYS = (
    (
        "Is a result skill? Give your daily returns and your market's prices, one file each.",
        (
            "tradeassay assay YOUR.csv --benchmark MARKET.csv",
            "tradeassay power --ratio 1 --sessions 252",
        ),
    ),
    (
        "Compare models that trade (no key: scripted models and rules).",
        (
            "tradeassay run daily-us-v1 -m scripted/sensible -a momentum-12-1 --name models",
            "tradeassay assay models",
            "tradeassay report models --format md",
        ),
    ),
    (
        "Bring your own agent.",
        (
            "tradeassay new agent mine",
            "tradeassay run daily-us-v1 -a ./mine/mine.py:Mine --name mine",
        ),
    ),
    (
        "Check a strategy that a model (or you) wrote.",
        (
            "tradeassay code tasks d-sma-cross-long",
            "tradeassay code eval YOUR.py --task d-sma-cross-long",
        ),
    ),
)


@click.command()
@json_option
def start(as_json: bool) -> None:
    """Show four ways to start, with commands to copy."""
    if as_json:
        print_json([{"way": way, "commands": lines} for way, lines in _WAYS])
        return
    click.echo("tradeassay shows what a trading result consists of. Four ways to start:\n")
    for number, (way, lines) in enumerate(_WAYS, 1):
        click.echo(f"{number}. {way}")
        for line in lines:
            click.echo(f"     {line}")
        click.echo()
    click.echo("All commands: tradeassay --help. This machine: tradeassay doctor.")
