"""The command ``new``: a folder to start from, with a test that passes."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import click

from tradeassay.cli._output import json_option, print_json, say

_KINDS = ("agent", "benchmark", "source", "task")


@click.command()
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("name")
@click.option("--in", "parent", type=click.Path(path_type=Path, file_okay=False), default=".", help="Where.")
@json_option
def new(kind: str, name: str, parent: Path, as_json: bool) -> None:
    """Make a folder for your own agent, benchmark, data source or code task.

    It holds a small working example, a test that passes, and a README with the commands that use it.
    """
    from tradeassay.core.errors import UserError

    if not re.fullmatch(r"[a-z][a-z0-9_]{1,39}", name):
        raise UserError(
            f"'{name}' is not a valid name", hint="2 to 40 small letters, digits and underscores, a letter first"
        )
    folder = parent / name
    if folder.exists():
        raise UserError(f"{folder} is already there", hint="choose another name")
    slug = name.replace("_", "-")
    title = "".join(part.capitalize() for part in name.split("_"))
    files = resources.files("tradeassay.cli") / "starters" / kind
    folder.mkdir(parents=True)
    written = []
    for file in sorted(files.iterdir(), key=lambda one: one.name):
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
        where = file if file.is_absolute() else f"./{file}"
        say(f"try it: tradeassay run daily-us-v1 -a {where}:{title} --slug {slug}")
    say(f"more: {folder / 'README.md'}")
