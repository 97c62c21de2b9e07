"""Print command results: JSON or a table on stdout, prose on stderr."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from tradeassay.core.printable import printable

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def print_json(value: Any) -> None:
    """Print a struct or a plain value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode())


def _plain(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], heads: int = 1
) -> None:
    """Print a table that fits the terminal. Piped output is not truncated."""
    from tradeassay.core.screen import StackedTable, stdout

    stdout().print(StackedTable(columns, rows, heads=heads, title=title, ruled=False))


def print_rows(
    found: Any, as_json: bool, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a listing, either the whole value as JSON or its rows as a table."""
    if as_json:
        print_json(found)
    else:
        print_table(title, columns, rows)


def say(text: str) -> None:
    """Print prose on stderr.

    Control characters are removed because it may quote an agent's answer.
    """
    click.echo(printable(text, kept="\n\t\xa0\u202f"), err=True)


_KEYWORD = re.compile(
    r"\b(?P<name>[a-z_]+)=(?P<value>\{[^}]*\}|\([^)]*\)|'[^']*'|[A-Z]+\b|\d[\d.]*|True\b|(?=[\s,;:)]|$))"
)
_LISTED = re.compile(r"(--[a-z-]+ [^\s,]+), (?=--)")
_OF_THEIR_OWN = {"reading": "", "protocol": "settings"}
"""Keywords whose entries have options, and the option for all remaining entries."""


def as_options(hint: str, command: click.Command) -> str:
    """Return a hint in which Python keywords are replaced by options of ``command``.

    ``names=20`` becomes ``--names 20`` and ``reading={'unit': 'percent'}`` becomes ``--unit
    percent``. A keyword is the name of a parameter. All remaining options of a data source become
    ``--option``.
    """
    known = {
        one.name: max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)
    }

    def spelled(found: re.Match[str]) -> str:
        name, value, others = found["name"], found["value"], "options"
        plain = re.sub(r"[{}()' ]", "", value).replace(":", "=").strip(",")
        if name in _OF_THEIR_OWN:
            others = _OF_THEIR_OWN[name]
            name, _, plain = plain.partition("=")
        name = "columns" if name == "header" else name
        if name in known:
            return known[name] if value in ("", "True") else f"{known[name]} {plain}"
        return f"{known[others]} {name}={plain}" if others in known else found[0]

    return _LISTED.sub(r"\1 ", _KEYWORD.sub(spelled, hint))


def write_file(path: Path, content: bytes) -> None:
    """Write a file. Raises :class:`UserError` if it cannot be written."""
    from tradeassay.core.errors import UserError
    from tradeassay.core.files import write_atomic

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror}", hint="name another file"
        ) from error
