"""Where tradeassay keeps things on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def data_home(home: Path | None = None) -> Path:
    """Return the root of everything tradeassay keeps; it need not exist yet."""
    if home is not None:
        return home
    configured = os.environ.get("TRADEASSAY_HOME")
    return Path(configured) if configured else Path.home() / ".local" / "share" / "tradeassay"
