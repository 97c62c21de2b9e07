"""What callers hand in and people write as settings: one of another kind is refused in one line that names it."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean, refuse_unknown

_T = TypeVar("_T")
_C = TypeVar("_C", bound=msgspec.Struct)


def shown(given: object) -> str:
    """Return a value as a message quotes it: on one line, and not the whole of a table."""
    return f"{' '.join(repr(given).split()):.60}"


def instance_of(name: str, given: _T, kind: type[Any], hint: str) -> _T:
    if not isinstance(given, kind):
        raise UserError(f"{name} cannot be {shown(given)}", hint=hint)
    return given


def path_from(name: str, given: object, hint: str = "give a path") -> Path:
    if not isinstance(given, str | os.PathLike):
        raise UserError(f"{name} cannot be {shown(given)}", hint=hint)
    return Path(given)


def whole_number(name: str, given: object) -> int:
    """Return a count; whole numbers of numpy are some too."""
    try:
        number = operator.index(given)  # type: ignore[arg-type]  # whether it is one is the question
    except TypeError:
        number = None
    if number is None or number < 0:
        raise UserError(f"{name} cannot be {shown(given)}", hint="give a whole number from 0 on")
    return number


def _in_words(complaint: str, kind: Any) -> str:
    """Return what a decoder complains of as a hint; for a word that ``kind`` does not have, those that it has."""
    if not (wrong := re.match("Invalid enum value '(.*)'", complaint)):
        return complaint.replace("`", "").replace("Expected", "it wants")
    words, waiting = list[str](), list(get_args(kind))
    while waiting:
        part = waiting.pop(0)
        words += [part] if isinstance(part, str) else []
        waiting[:0] = get_args(part)
    return did_you_mean(wrong[1], words, f"it is one of {', '.join(words)}")


def typed(given: Mapping[str, Any], described: type) -> dict[str, Any]:
    """Return values as fields of ``described`` have them; raises :class:`UserError` for one of another kind."""
    import numpy as np  # slow to load, and every command loads this module

    kinds = _kinds_of(described)
    found: dict[str, Any] = {}
    for name, value in given.items():
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            found[name] = msgspec.convert(plain, kinds[name])
        except msgspec.ValidationError as error:
            hint = _in_words(str(error), kinds[name])
            for theirs, ours in (("null", "None"), ("array", "a tuple"), ("object", "a mapping")):
                hint = hint.replace(theirs, ours)
            raise UserError(f"{name} cannot be {shown(value)}", hint=hint) from error
    return found


def check_fields(config: msgspec.Struct) -> None:
    """Raise :class:`UserError` for a field that holds another kind of value than it declares: a struct checks what
    it reads from a file, and takes anything from a caller."""
    typed({name: getattr(config, name) for name in config.__struct_fields__}, type(config))


def take_fields(spec: msgspec.Struct) -> None:
    """Make of a caller's values what would be made of the same values in a file, of a list a tuple, of a mapping a
    struct; raises :class:`UserError` for one of another kind than its field declares.
    """
    given = {
        name: value
        for name in spec.__struct_fields__
        if (value := getattr(spec, name)) is not msgspec.UNSET
    }
    for name, value in typed(given, type(spec)).items():
        msgspec.structs.force_setattr(spec, name, value)


def check_keys(given: Iterable[str], known: Sequence[str], whose: str, what: str) -> None:
    """Raise UserError for the first key that is not among ``known``, with near names."""
    for key in given:
        refuse_unknown(
            key, known, f"{whose} has no {what} '{key}'", f"it has {', '.join(known) or 'none'}"
        )


def filled(config: type[_C], values: Mapping[str, object], whose: str, hint: str) -> _C:
    """Return a configuration with these values, as they are written on a command line or in a file.

    Raises :class:`UserError` naming the field that is wrong and what it wants, else with ``hint``."""
    try:
        return msgspec.convert(dict(values), config, strict=False)
    except msgspec.ValidationError as error:
        where = re.search(r"^(.*) - at `\$\.(\w+)", str(error))
        if where is None:
            raise UserError(f"{whose}: {error}", hint=hint) from error
        complaint, key = where.groups()
        wants = _in_words(complaint, _kinds_of(config).get(key))
        raise UserError(f"{whose} cannot take {key}={values.get(key)!r}", hint=wants) from error


@cache
def _kinds_of(described: type) -> dict[str, Any]:
    return get_type_hints(described, include_extras=True)
