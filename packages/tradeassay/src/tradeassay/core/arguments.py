"""Check arguments and settings. A value of the wrong type raises an error of one line."""

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
    """Return a value as quoted in a message: on one line, and shortened."""
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
    """Return a count as an int. Whole numbers of numpy types are accepted."""
    try:
        number = operator.index(given)  # type: ignore[arg-type]  # whether it is one is the question
    except TypeError:
        number = None
    if number is None or number < 0:
        raise UserError(f"{name} cannot be {shown(given)}", hint="give a whole number of 0 or more")
    return number


def _in_words(complaint: str, kind: Any) -> str:
    """Return a decoder's complaint as a hint. For an unknown enum value, list the valid values."""
    if not (wrong := re.match("Invalid enum value '(.*)'", complaint)):
        return complaint.replace("`", "").replace("Expected", "it wants")
    words, waiting = list[str](), list(get_args(kind))
    while waiting:
        part = waiting.pop(0)
        words += [part] if isinstance(part, str) else []
        waiting[:0] = get_args(part)
    return did_you_mean(wrong[1], words, f"use one of {', '.join(words)}")


def typed(given: Mapping[str, Any], described: type) -> dict[str, Any]:
    """Return values converted to the field types of ``described``.

    Raises :class:`UserError` for a value of the wrong type.
    """
    import numpy as np  # msgspec is slow to load, and every command loads this module.

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
    """Raise :class:`UserError` if a field has a value of a type that it does not declare.

    msgspec checks the types of a struct only when it decodes a file, not when a caller creates it.
    """
    typed({name: getattr(config, name) for name in config.__struct_fields__}, type(config))


def take_fields(spec: msgspec.Struct) -> None:
    """Convert a caller's values as the file reader does: a list to a tuple, a mapping to a struct.

    Raises :class:`UserError` for a value of a type that its field does not declare.
    """
    given = {
        name: value
        for name in spec.__struct_fields__
        if (value := getattr(spec, name)) is not msgspec.UNSET
    }
    for name, value in typed(given, type(spec)).items():
        msgspec.structs.force_setattr(spec, name, value)


def check_keys(given: Iterable[str], known: Sequence[str], whose: str, what: str) -> None:
    """Raise UserError for the first key not in ``known``, and suggest similar names."""
    for key in given:
        refuse_unknown(
            key, known, f"{whose} has no {what} '{key}'", f"it has {', '.join(known) or 'none'}"
        )


def filled(config: type[_C], values: Mapping[str, object], whose: str, hint: str) -> _C:
    """Return a configuration with values as written on a command line or in a file.

    Raises :class:`UserError` for an invalid value. The message names the field and the expected
    value, or else contains ``hint``.
    """
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
