"""Settings as people write them become a configuration, or one line that names the one that is wrong."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from tradeassay.core.arguments import in_words, kinds_of
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean

C = TypeVar("C", bound=msgspec.Struct)


def refuse_unknown(given: Iterable[str], known: Sequence[str], whose: str, what: str) -> None:
    """Raise :class:`UserError` for the first key that is not known, with near names."""
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known, f"it has {', '.join(known) or 'none'}")
            raise UserError(f"{whose} has no {what} '{key}'", hint=hint)


def filled(config: type[C], values: Mapping[str, object], whose: str, hint: str) -> C:
    """Return a configuration with these values, as they are written on a command line or in a file.

    Raises :class:`UserError` naming the field that is wrong and what it wants, else with ``hint``."""
    try:
        return msgspec.convert(dict(values), config, strict=False)
    except msgspec.ValidationError as error:
        where = re.search(r"^(.*) - at `\$\.(\w+)", str(error))
        if where is None:
            raise UserError(f"{whose}: {error}", hint=hint) from error
        complaint, key = where.groups()
        wants = in_words(complaint, kinds_of(config).get(key))
        raise UserError(f"{whose} cannot take {key}={values.get(key)!r}", hint=wants) from error
