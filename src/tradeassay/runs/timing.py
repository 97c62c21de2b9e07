"""``timing.json``: wall times, beside the results and never compared. A resumed run adds to it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds: per episode (the last time it was worked on), and per start of the run (one entry each)."""

    episodes: dict[str, float] = {}
    starts: tuple[dict[str, float], ...] = ()


def read_timing(path: Path) -> Timing:
    """Return the times so far; a missing or damaged file is an empty one, since nothing depends on it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Timing)
    except (FileNotFoundError, msgspec.DecodeError):
        return Timing()


def add_timing(path: Path, episodes: dict[str, float], phases: dict[str, float]) -> None:
    """Add one start of a run."""
    before = read_timing(path)
    after = Timing(
        episodes={**before.episodes, **{key: round(seconds, 4) for key, seconds in episodes.items()}},
        starts=(*before.starts, {phase: round(seconds, 4) for phase, seconds in phases.items()}),
    )
    write_atomic(path, msgspec.json.format(canonical_json(after), indent=1) + b"\n")
