"""One call from a source's name to a stored snapshot."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.data.source import SourceConfig, sources
from tradeassay.data.store.manifest import Manifest


def source_config(name: str, options: Mapping[str, object]) -> SourceConfig:
    """Return the configuration of source ``name`` from plain options, numbers and truth values as text included.

    Raises :class:`UserError` for an unknown source, an unknown option or a value of the wrong type.
    """
    config = sources.get(name).Config
    known = [field.name for field in msgspec.structs.fields(config)]
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            raise UserError(
                f"source '{name}' has no option '{option}'",
                mend=f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}",
            )
    try:
        return msgspec.convert(dict(options), type=config, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(
            f"wrong options for source '{name}': {error}", mend=f"known: {', '.join(known)}"
        ) from error


def fetch(name: str, config: SourceConfig, folder: Path, *, allow_faults: bool = False) -> Manifest:
    """Load source ``name`` and write what it gives as a snapshot into ``folder``; return its manifest.

    Raises :class:`~tradeassay.core.errors.MissingExtra` when the vendor's library is not installed,
    :class:`~tradeassay.core.errors.SourceError` when the vendor fails, and
    :class:`~tradeassay.core.errors.DataRefused` when the data doctor finds faults (unless ``allow_faults``).
    """
    from tradeassay.data.store.write import write_snapshot

    return write_snapshot(sources.get(name)(config).load(), folder, allow_faults=allow_faults)
