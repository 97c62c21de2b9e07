"""Where data lies on this machine: an argument, else ``TRADEASSAY_HOME``, else ``~/.local/share/tradeassay``."""

from __future__ import annotations

import re
from pathlib import Path

from tradeassay.core.errors import UserError
from tradeassay.core.files import data_home as data_home

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


def store_folder(home: Path | None = None) -> Path:
    """Return the folder that holds the snapshots."""
    return data_home(home) / "store"


def snapshot_folder(name: str, home: Path | None = None) -> Path:
    """Return a stored dataset's folder; raises :class:`UserError` for a name that is not a plain name."""
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is not a dataset name", hint="use letters, digits, '.', '-' and '_'")
    return store_folder(home) / name
