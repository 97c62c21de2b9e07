"""How much of the machine a local model may use."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
from msgspec import Meta


def half_the_cores() -> int:
    """Return half of the machine's cores, at least one: an engine that waits for a core waits very long."""
    return max(1, (os.cpu_count() or 1) // 2)


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Threads to compute with, and tokens of context (prompt and answer together)."""

    threads: Annotated[int, Meta(ge=1)] = msgspec.field(default_factory=half_the_cores)
    context: Annotated[int, Meta(ge=256)] = 8192
