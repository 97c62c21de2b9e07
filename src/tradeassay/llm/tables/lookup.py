"""Reading the tables, and finding a model in them by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TypeVar

import msgspec

from tradeassay.core.errors import UserError

T = TypeVar("T")

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


def read_table(kind: type[T], section: str, packaged: str, override: Path | None) -> dict[str, T]:
    """Return a packaged table, with a user's file of the same form laid over it entry by entry.

    Raises :class:`UserError` when the user's file is missing, no TOML, or has an entry of another shape.
    """
    text = resources.files("tradeassay.llm.tables").joinpath(packaged).read_text(encoding="utf-8")
    table = _entries(kind, section, tomllib.loads(text), packaged)
    if override is not None:
        table |= _entries(kind, section, _user_file(override), str(override))
    return table


def find_model(table: Mapping[str, T], name: str) -> T | None:
    """Return a model's entry: by its whole name, then without the date of a snapshot; None when there is none.

    ``openai/gpt-4o-2024-11-20`` finds ``openai/gpt-4o`` unless the snapshot has an entry of its own. An entry that
    ends in ``/*`` stands for every model of a provider.
    """
    for candidate in _candidates(name):
        if candidate in table:
            return table[candidate]
    return None


def _candidates(name: str) -> Iterator[str]:
    yield name
    plain = _SNAPSHOT.sub("", name)
    if plain != name:
        yield plain
    yield f"{name.partition('/')[0]}/*"


def _user_file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", mend="check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no TOML file: {error}", mend="see the reference of model prices") from error


def _entries(kind: type[T], section: str, content: Mapping[str, object], source: str) -> dict[str, T]:
    table = content.get(section, {})
    if not isinstance(table, dict):
        raise UserError(f"'{section}' in {source} is no table", mend=f'write [{section}."provider/model"]')
    found: dict[str, T] = {}
    for name, entry in table.items():
        try:
            found[name] = msgspec.convert(entry, kind)
        except msgspec.ValidationError as error:
            raise UserError(
                f'{source}, {section}."{name}": {error}', mend="see the reference of model prices"
            ) from None
    return found
