"""How commands print: JSON or a rich table on stdout, prose on stderr."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def print_json(value: Any) -> None:
    """Print any struct or plain value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table that fits the terminal; piped output is not cut."""
    import sys

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, no_wrap=position == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def say(text: str) -> None:
    """Print prose on stderr."""
    click.echo(text, err=True)
