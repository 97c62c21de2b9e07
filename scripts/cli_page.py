"""Write docs/reference/cli.md from the commands' own help, so that the page is always correct."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from tradeassay.cli import root
from tradeassay.cli._options import Advanced, FoldedCommand

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
HEAD = """# Command line

Results go to stdout, prose and progress to stderr, and commands that print a result take `--json`. `-o`, `--out`
is the page, file or folder to write. An id without its version (`daily-us`) means the newest. This page lists the
options of each command. `--help` explains them with examples, `--help-advanced` explains those marked `*`.
`scripts/cli_page.py` writes this page from the commands.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | done, but with a failure or an error |
| 2 | bad input; the message has the remedy |
| 3 | `verify`: nothing is contradicted, but something cannot be checked |
| 4 | `verify` itself failed; the run is not judged |
| 75 | `arena`: the database was unreachable for an hour; start it again |
| 130 | stopped by Ctrl-C |

Common options are listed once: `--json` (print JSON on stdout), `--runs` (the folder of the
runs), `--workers` and `--executor local|inline|ray` (where to compute; the result is the same), `-h`.
"""
COMMON = {"--json", "--runs", "--workers", "--executor", "--help", "--help-advanced"}


def commands(
    group: click.Group, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below ``group`` with its full name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def described(command: click.Command, path: tuple[str, ...]) -> str:
    """Return the description of one command: usage, help text and its own options."""
    context = click.Context(command, info_name=" ".join(path), **root.context_settings)
    usage = " ".join(command.collect_usage_pieces(context)).replace("[OPTIONS]", "").strip()
    said = cleandoc(command.help or "").replace("\b\n", "").partition("\n\n")[0]
    lines = [" ".join((*path, usage)).strip(), "", *said.splitlines()]
    folded = isinstance(command, FoldedCommand)
    options = [
        option.opts[-1] + ("*" if folded and isinstance(option, Advanced) else "")
        for option in command.get_params(context)
        if isinstance(option, click.Option) and not COMMON & set(option.opts)
    ]
    if options:
        lines += ["", *textwrap.wrap(f"options: {', '.join(options)}", 115, break_on_hyphens=False)]
    return "\n".join(line.rstrip() for line in lines)


def render() -> str:
    """Return the page."""
    parts = [HEAD]
    for path, command in commands(root, ("tradeassay",)):
        if not isinstance(command, click.Group):
            parts.append(f"## {' '.join(path[1:])}\n\n```text\n{described(command, path)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render())
